"""Figures of tempering runs: averages, overlaps, exchanges, equilibration."""

from __future__ import annotations

import textwrap
from typing import Any, Final

import matplotlib.style
import numpy as np
import numpy.typing as npt
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from spinsim.analysis import onsager
from spinsim.analysis.equilibration import Equilibration
from spinsim.analysis.figures.panels import draw_estimate, draw_exact, is_onsager, show_zero, size_text, tick_integers
from spinsim.analysis.figures.paper import BLUE, GREY, PAPER, WIDTH, draw_legend
from spinsim.analysis.overlaps import overlap_distribution
from spinsim.analysis.sizes import is_ferromagnet
from spinsim.analysis.summary import Summary
from spinsim.errors import InputError
from spinsim.result import TemperResult

Array = npt.NDArray[np.float64]

TEMPERATURE: Final = r"temperature $T$ ($|J|/k_\mathrm{B}$)"
_CURVES: Final = 5  # temperatures whose P(q) is drawn
_TESTED: Final = 3  # bins that the verdict on equilibrium compares
_COLUMNS: Final = 62  # characters of a verdict's line


def averages_figure(result: TemperResult, summary: Summary) -> Figure:
    """Energy and specific heat per site and an order parameter against temperature, with errors that can be trusted.

    The third panel is mean |m| for ferromagnets and where there are no overlaps, else the spin-glass susceptibility.
    Points whose error cannot be trusted are open and have no bar. A square ferromagnet in zero field comes with the
    exact curves of the infinite lattice.
    """
    unit, estimates = result.model.coupling_unit, summary.estimates
    x = summary.temperature / unit
    magnetic = is_ferromagnet(result.model) or "spin_glass_susceptibility" not in estimates
    third = "abs_magnetization" if magnetic else "spin_glass_susceptibility"
    with matplotlib.style.context(PAPER):
        figure = Figure(figsize=(WIDTH, 4.6), layout="constrained")
        top, middle, bottom = figure.subplots(3, sharex=True)
        draw_estimate(top, x, estimates["energy_per_site"], BLUE, _size_label(result), unit)
        draw_estimate(middle, x, estimates["specific_heat"], BLUE, _size_label(result))
        draw_estimate(bottom, x, estimates[third], BLUE, _size_label(result))
        top.set_ylabel("energy $E/(N|J|)$")
        middle.set_ylabel(r"specific heat $C/(Nk_\mathrm{B})$")
        bottom.set_ylabel(
            r"magnetisation $\langle|m|\rangle$" if magnetic else r"$\chi_\mathrm{SG} = N[\langle q^2\rangle]$"
        )
        bottom.set_xlabel(TEMPERATURE)
        if is_onsager(result.model):
            draw_exact(top, x, onsager.energy)
            draw_exact(middle, x, onsager.specific_heat)
            draw_exact(bottom, x, onsager.magnetization)
        show_zero(middle)
        show_zero(bottom)
        figure.align_ylabels()
        draw_legend(figure, top, middle, bottom)
    return figure


def overlap_figure(result: TemperResult) -> Figure:
    """P(q) at temperatures from the lowest to the highest, evenly chosen; bands are standard errors over samples.

    Raises:
        InputError: for a run of one copy or without measurements.
    """
    found = overlap_distribution(result)
    count = len(result.temperature)
    chosen = sorted({round(k * (count - 1) / (_CURVES - 1)) for k in range(_CURVES)})
    colours = colormaps["plasma"](np.linspace(0, 0.85, len(chosen)))
    with matplotlib.style.context(PAPER):
        figure = Figure(figsize=(WIDTH, 2.8), layout="constrained")
        ax = figure.subplots()
        for colour, k in zip(colours, chosen, strict=True):
            label = f"$T = {result.temperature[k] / result.model.coupling_unit:.4g}$"
            ax.plot(found.q, found.density[k], color=colour, linewidth=0.8, label=label)
            if np.isfinite(found.error[k]).all():
                low, high = found.density[k] - found.error[k], found.density[k] + found.error[k]
                ax.fill_between(found.q, np.maximum(low, 0), high, color=colour, alpha=0.25, linewidth=0)
        ax.set_xlim(-1, 1)
        ax.set_xlabel("overlap $q$")
        ax.set_ylabel("probability density $P(q)$")
        show_zero(ax)
        draw_legend(figure, ax)
    return figure


def exchange_figure(result: TemperResult) -> Figure:
    """Accepted exchanges of each pair of neighbouring temperatures, and round trips of each replica.

    Bars reach from the lowest to the highest of the samples. A pair stands at the geometric mean of its temperatures.

    Raises:
        InputError: where nothing was exchanged yet.
    """
    if not result.attempts.any():
        raise InputError(
            f"the run of {result.model.name} has saved no exchange yet: a first checkpoint must come before"
        )
    ladder = result.temperature / result.model.coupling_unit
    rates = result.accepts / np.maximum(result.attempts, 1)
    trips = result.round_trips.astype(np.float64)
    with matplotlib.style.context(PAPER):
        figure = Figure(figsize=(WIDTH, 3.6), layout="constrained")
        top, bottom = figure.subplots(2)
        _draw_range(top, np.sqrt(ladder[1:] * ladder[:-1]), rates, result.swap_rate, _size_label(result))
        top.set_ylim(0, 1)
        top.set_xlabel(TEMPERATURE)
        top.set_ylabel("exchanges accepted")
        _draw_range(bottom, np.arange(trips.shape[1], dtype=np.float64), trips, trips.mean(axis=0), _size_label(result))
        bottom.axhline(1, color=GREY, linewidth=0.8, zorder=1, label="one round trip")
        show_zero(bottom)
        tick_integers(bottom.xaxis)
        bottom.set_xlabel("replica")
        bottom.set_ylabel("round trips")
        figure.align_ylabels()
        draw_legend(figure, top, bottom)
    return figure


def equilibration_figure(result: TemperResult, summary: Summary) -> Figure:
    """Averages over the last half of the run, the quarter before and so on, at the lowest temperature; the verdicts.

    Each bin stands at its end; the three that the verdict compares are filled.
    """
    unit = result.model.coupling_unit
    names = {"energy": "energy $E/(N|J|)$", "q^2": r"$[\langle q^2\rangle]$"}
    with matplotlib.style.context(PAPER):
        figure = Figure(figsize=(WIDTH, 0.3 + 1.9 * len(summary.equilibration)), layout="constrained")
        panels = figure.subplots(len(summary.equilibration), squeeze=False, sharex=True)[:, 0]
        for ax, (name, found) in zip(panels, summary.equilibration.items(), strict=True):
            _draw_bins(ax, found, unit if name == "energy" else 1.0)
            ax.set_ylabel(names.get(name, name))
            ax.set_title(textwrap.fill(found.verdict, _COLUMNS), loc="left", fontsize=7)
        panels[-1].set_xscale("log")
        every = int(result.sweep[1] - result.sweep[0])
        panels[-1].set_xlabel("measurements" + (f", one in {every} sweeps" if every > 1 else ""))
        figure.suptitle(f"{_size_label(result)}, $T = {result.temperature[0] / unit:.4g}$", fontsize=8)
        figure.align_ylabels()
    return figure


def _draw_bins(ax: Axes, found: Equilibration, unit: float) -> None:
    """Averages over bins against their ends; those that decide filled."""
    value, error = found.mean / unit, found.error / unit
    bars = None if np.isnan(error).any() else error
    tested = np.arange(len(value)) >= len(value) - _TESTED
    for chosen, face in ((~tested, "white"), (tested, BLUE)):
        style: dict[str, Any] = {"ms": 3, "mew": 0.6, "elinewidth": 0.6, "capthick": 0.6, "color": BLUE, "mfc": face}
        ax.errorbar(found.stop[chosen], value[chosen], None if bars is None else bars[chosen], fmt="o", **style)


def _draw_range(ax: Axes, x: Array, samples: Array, mean: Array, label: str) -> None:
    """Means with bars over the range of the samples (samples, points), where there are several."""
    style: dict[str, Any] = {"fmt": "o", "ms": 2.2, "mec": "none", "elinewidth": 0.6, "capthick": 0.6, "color": BLUE}
    reach = np.stack([mean - samples.min(axis=0), samples.max(axis=0) - mean]) if len(samples) > 1 else None
    # the rate of all samples can lie outside the range by rounding
    ax.errorbar(x, mean, None if reach is None else np.maximum(reach, 0), label=label, **style)


def _size_label(result: TemperResult) -> str:
    """Such as "8 x 8 x 8, 4 samples of 2 copies"."""
    _, samples, copies, _ = result.energy.shape
    each = f"{copies} cop" + ("ies" if copies > 1 else "y")
    run = f"{samples} samples of {each}" if samples > 1 else each
    return f"{size_text(result.model)}, {run}"
