"""Figures of finite-size scaling: sizes that collapse onto one curve, and estimates against 1 / L."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from matplotlib.axes import Axes

from spinsim.analysis.figures import paper
from spinsim.analysis.figures.paper import BLUE, GREY, PaperFigure, drawn_panels
from spinsim.analysis.scaling.collapse import Collapse
from spinsim.analysis.scaling.report import Estimates
from spinsim.analysis.tables import with_error
from spinsim.errors import InputError
from spinsim.observables.table import SYMBOLS

_FINE: Final = 300  # points along curves


def collapse_figure(found: Sequence[Collapse], style: str, symbol: str, of_runs: str) -> PaperFigure:
    """Draw the scaled points of all sizes with the curve of the fit, a panel for each average."""
    with drawn_panels(style, len(found), 1.9) as (figure, axes):
        for ax, one in zip(axes, found, strict=True):
            _draw_collapse(ax, one)
            ax.set_xlabel(rf"$({symbol} - {symbol}_\mathrm{{c}})\,L^{{1/\nu}}$")
    said = "; ".join(_sentence(one, symbol) for one in found)
    corrected = " Corrections to scaling are taken off the points." * any(len(one.corrections) for one in found)
    figure.caption = (
        f"Averages of several sizes, of {of_runs}, against the scaled distance from the critical point, with the "
        f"polynomial that was fitted. {said}.{corrected} {paper.BARS}"
    )
    return figure


def _draw_collapse(ax: Axes, found: Collapse) -> None:
    reach = []
    for points, (colour, marker) in zip(found.points, paper.curve_styles(len(found.points)), strict=True):
        u, y, error = found.scaled(points)
        label = paper.curve_label(f"L = {points.side:g}")
        look: dict[str, Any] = {"fmt": marker, "color": colour, "mec": "none", "label": label}
        ax.errorbar(u, y, error, **look, **paper.POINTS)
        reach += [u.min(), u.max()]
    grid = np.linspace(min(reach), max(reach), _FINE)
    curve = np.polynomial.polynomial.polyval(grid, found.coefficients)
    ax.plot(grid, curve, color=GREY, lw=0.8, zorder=1, label="fit")
    scaled = "" if found.power == 0 else f"$\\,L^{{{-found.power:.3g}}}$"
    ax.set_ylabel(SYMBOLS.get(found.name, found.name) + scaled)


def _sentence(found: Collapse, symbol: str) -> str:
    numbers = [
        rf"${symbol}_\mathrm{{c}} = {with_error(found.critical, found.critical_error)}$",
        rf"$\nu = {with_error(found.nu, found.nu_error)}$",
    ]
    numbers += [f"$p = {with_error(found.power, found.power_error)}$"] * bool(found.power_error)
    numbers += [rf"$\omega = {with_error(found.omega, found.omega_error)}$"] * bool(found.omega_error)
    quality = rf"$\chi^2 = {found.chi2:.1f}$ of {found.freedom}, probability {found.probability:.2g}"
    return f"{SYMBOLS.get(found.name, found.name)}: {', '.join(numbers)}, {quality}"


def estimates_figure(estimates: Sequence[Estimates], style: str, of_runs: str) -> PaperFigure:
    """Draw estimates of single sizes or pairs against 1 / L, with the fit of their limit where there is one.

    Raises:
        InputError: for no estimates.
    """
    if not estimates:
        raise InputError("no pair of sizes crosses and no specific heat has its peak inside the ladder: give more")
    with drawn_panels(style, len(estimates), 1.6, "inverse size $1/L$") as (figure, axes):
        for ax, (label, values, fit) in zip(axes, estimates, strict=True):
            side, value, error = np.array(values).T
            look: dict[str, Any] = {"fmt": "o", "color": BLUE, "mec": "none", "label": "sizes"}
            ax.errorbar(1 / side, value, error, **look, **paper.POINTS)
            if fit is not None:
                grid = np.linspace(1e-9, 1 / side.min(), _FINE)
                ax.plot(grid, fit.value + fit.amplitude * grid**fit.exponent, color=GREY, lw=0.8, label="fit")
                ax.errorbar([0], [fit.value], [fit.error], fmt="s", color=GREY, label=r"$L = \infty$", **paper.POINTS)
            ax.set_xlim(left=-0.03 / side.min())
            ax.set_ylabel(label)
    fits = "; ".join(f"{label}: ${with_error(fit.value, fit.error)}$" for label, _, fit in estimates if fit is not None)
    limits = f" Limits of infinite size, by fits with one power of $L$: {fits}." if fits else ""
    figure.caption = (
        "Estimates from pairs of sizes where their correlation lengths over side are equal, drawn at the smaller size, "
        f"and from peaks, against inverse size, of {of_runs}.{limits} {paper.BARS}"
    )
    return figure
