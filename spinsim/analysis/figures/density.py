"""Figures of densities of states: entropy, specific heat, and the two phases of a first-order transition."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from spinsim.analysis.density import DensityOfStates
from spinsim.analysis.figures.paper import BLUE, GREY, SKY, TEMPERATURE, PaperFigure, drawn_panels
from spinsim.analysis.tables import with_error
from spinsim.errors import InputError
from spinsim.observables.table import SYMBOLS

_POINTS = 300  # along a curve


def density_figures(
    density: DensityOfStates, style: str = "single", figure: str = "all"
) -> dict[str, Callable[[], PaperFigure]]:
    """Return functions that draw the possible figures by name: ``density``, and ``transition`` if there are phases."""
    figures: dict[str, Callable[[], PaperFigure]] = {"density": lambda: density_figure(density, style)}
    if figure == "transition" or (figure == "all" and density.transition is not None):
        figures["transition"] = lambda: transition_figure(density, style)
    return figures


def density_figure(density: DensityOfStates, style: str = "single") -> PaperFigure:
    """Draw ln g per site against energy, with bands of a standard error, and specific heat against temperature."""
    model, (at, error, _) = density.model, density.peak
    grid = np.linspace(at / 3, min(3 * at, density.hottest), _POINTS)
    heat = density.averages(grid)
    with drawn_panels(style, 2, 2.1) as (figure, (left, right)):
        for k, row in enumerate(density.log_density / model.sites):
            there, spread = np.isfinite(row), np.nan_to_num(density.error[k] / model.sites)
            x = density.energy[there] / model.sites
            left.fill_between(x, (row - spread)[there], (row + spread)[there], color=SKY, alpha=0.5, lw=0)
            left.plot(x, row[there], color=BLUE, lw=0.8)
        c, spread = heat["specific_heat"], np.nan_to_num(heat["specific_heat_error"])
        right.fill_between(grid, c - spread, c + spread, color=SKY, alpha=0.5, lw=0)
        right.plot(grid, c, color=BLUE, lw=0.8)
        right.axvline(at, color=GREY, lw=0.8, ls=":")
        left.set_xlabel("energy per site $E/N$")
        left.set_ylabel(r"$\ln g(E)\,/\,N$")
        right.set_xlabel(TEMPERATURE)
        right.set_ylabel(SYMBOLS["specific_heat"])
    figure.caption = (
        f"Density of states of {model.name} (a) and the specific heat that follows from it (b), largest at "
        f"$T = {with_error(at, error)}$ (dotted). Bands are standard errors."
    )
    return figure


def transition_figure(density: DensityOfStates, style: str = "single") -> PaperFigure:
    """Draw the distribution of energies where both phases have equal weight, on a logarithmic axis."""
    model, found = density.model, density.transition
    if found is None:
        raise InputError(
            f"the energies of {model.name} have a single peak at every temperature, or there are several samples: "
            "draw the density alone"
        )
    share = density.probability(found.temperature)[0]
    x = density.energy / model.sites
    shown = share > share.max() * np.exp(-1.5 * found.barrier - 3)
    with drawn_panels(style, 1, 2.3) as (figure, (ax,)):
        ax.plot(x[shown], share[shown], "o-", ms=2.2, lw=0.6, color=BLUE, mec="none")
        for energy in found.energy:
            ax.axvline(energy / model.sites, color=GREY, lw=0.8, ls=":")
        ax.set_yscale("log")
        ax.set_xlabel("energy per site $E/N$")
        ax.set_ylabel("$P(E)$")
    figure.caption = (
        f"Distribution of energies of {model.name} at $T = {with_error(found.temperature, found.temperature_error)}$, "
        "where two phases have equal weight. Dotted lines are at the maxima and the minimum. The latent heat per site "
        f"is {with_error(found.latent_heat_per_site, found.latent_heat_per_site_error)} and the barrier "
        rf"$\ln(P_{{\max}}/P_{{\min}}) = {with_error(found.barrier, found.barrier_error)}$."
    )
    return figure
