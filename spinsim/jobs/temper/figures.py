"""Figures of a tempering run, and of several sizes together.

For one run: averages, approach to equilibrium, exchanges and round trips, P(q), the cut of a MaxCut instance.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial
from typing import Any, Final

import numpy as np
from matplotlib.axes import Axes

from spinsim.analysis.density import of_ladder
from spinsim.analysis.equilibration import TESTED, approach
from spinsim.analysis.figures import paper
from spinsim.analysis.figures.density import density_figure
from spinsim.analysis.figures.paper import BLUE, GREY, SKY, VERMILION, PaperFigure, drawn_panels
from spinsim.analysis.overlaps import bins_for, overlap_distribution
from spinsim.analysis.runs import Integers, Tempered, samples_in
from spinsim.analysis.space import ANALYSES
from spinsim.analysis.statistics import choice_of, statistics_of
from spinsim.analysis.summary import Summary, summarize
from spinsim.errors import InputError
from spinsim.inputs.texts import count
from spinsim.jobs.base import Draw, Drawing
from spinsim.jobs.plotting import Course, averages_of_one, check_begun, draw_cuts, figures_of_several
from spinsim.jobs.temper.run import TemperResult
from spinsim.observables.quantities import in_field
from spinsim.observables.table import SYMBOLS

_BARS: Final = 30  # largest number of bars of the histogram
_LABELS: Final = {
    "energy_per_site": SYMBOLS["energy_per_site"],
    "overlap_squared": r"overlap $[\langle q^2\rangle]$",
    "link_overlap": r"link overlap $[\langle q_\ell\rangle]$",
    "link_residual": r"$U + (z/2)(1 - [\langle q_\ell\rangle])/T$",
}


def draw(results: Sequence[TemperResult], wanted: Drawing) -> Draw:
    if wanted.figure in ANALYSES:
        return {wanted.figure: partial(analysis_figure, wanted.figure, results, wanted.style)}
    if len(results) > 1:
        return figures_of_several(results, wanted)
    (result,), figure, style = results, wanted.figure, wanted.style
    summary = cache(partial(summarize, result))
    figures = averages_of_one(result, wanted, summary)
    if figure == "cut" or result.model.maxcut_weight is not None:
        figures["cut"] = partial(cut_figure, result, style)
    if figure == "overlap" or choice_of(result).copies > 1:
        figures["overlap"] = partial(overlap_figure, result, style)
    if figure == "exchange" or result.attempts.any():
        figures["exchange"] = partial(exchange_figure, result, style)
    if figure == "density":
        figures["density"] = lambda: density_figure(of_ladder(result), style)
    figures["equilibration"] = lambda: equilibration_figure(result, summary(), style)
    return figures


def cut_figure(result: TemperResult, style: str = "single") -> PaperFigure:
    """Draw cuts against sweeps: mean and range of the copies at the lowest temperature, and the best of all so far."""
    check_begun(result.model, len(result.energy))
    best = result.energy if result.best_energy is None else result.best_energy
    course = Course(
        result.energy,
        shown=result.energy[..., 0].reshape(len(result.energy), -1),
        done=result.sweep.astype(np.float64),
        unit="sweeps after thermalisation",
        lowest=float(best.min()),
        run=paper.run_text(result),
        which=" at the lowest temperature",
    )
    return draw_cuts(result.model, course, style)


def _named(result: Tempered) -> str:
    return f"{result.model.name}, {paper.run_text(result)}"


def equilibration_figure(result: Tempered, summary: Summary, style: str = "single") -> PaperFigure:
    """Draw averages over the last half of the run, the quarter before and so on, at several temperatures.

    Each bin is drawn at its last sweep; the verdict compares the shaded bins. With Gaussian couplings, a panel shows
    the difference between energy and link overlap, which vanishes in equilibrium. The caption holds the verdicts.
    """
    averages = approach(result)
    between = np.sqrt(averages.last_sweep[-TESTED - 1] * averages.last_sweep[-TESTED])  # between two bins
    with drawn_panels(style, len(averages.mean), 1.7, "sweeps after thermalisation") as (figure, axes):
        for ax, (name, mean) in zip(axes, averages.mean.items(), strict=True):
            ax.axvspan(between, averages.last_sweep[-1], color=GREY, alpha=0.15, linewidth=0, zorder=0)
            for k, colour in paper.some_temperatures(result.temperature):
                error, label = averages.error[name][:, k], f"$T = {result.temperature[k]:.3g}$"
                bars = np.where(np.isfinite(error), error, 0)  # no error bar for a constant series
                look: dict[str, Any] = {"fmt": "o-", "lw": 0.6, "mec": "none", "color": colour, "label": label}
                ax.errorbar(averages.last_sweep, mean[:, k], bars, **look, **paper.POINTS)
            if name == "link_residual":
                ax.axhline(0, color=GREY, linewidth=0.8, zorder=1)
            ax.set_ylabel(_LABELS[name])
            ax.set_xscale("log")
    residual = " The last panel is 0 in equilibrium." if "link_residual" in averages.mean else ""
    verdicts = " ".join(f"{name}: {e.verdict}." for name, e in summary.equilibration.items())
    verdicts, verdict = paper.in_math(verdicts), paper.in_math(summary.verdict)
    figure.caption = (
        f"Averages over the last half of the measurements, the quarter before and so on, each bin at its last sweep, "
        f"of {_named(result)}. Bars are standard errors; the verdict compares the shaded bins."
        f"{residual} The run: {verdict}. Of the lowest temperature, {verdicts}"
    )
    return figure


def exchange_figure(result: Tempered, style: str = "single") -> PaperFigure:
    """Draw the exchange rate of each pair of neighbouring temperatures, and a histogram of the replicas' round trips.

    Bars span the lowest to the highest rate of the samples; they are not errors. A pair is drawn at the geometric mean
    of its temperatures. Replicas without a round trip have their own colour.
    """
    if not result.attempts.any():
        raise InputError(f"the run of {result.model.name} has saved no exchange yet: wait for the first checkpoint")
    samples = result.model.samples
    with drawn_panels(style, 2, 1.7) as (figure, (rates, trips)):
        _draw_rates(rates, result)
        _draw_trips(trips, result.round_trips)
    bars = " Bars reach from the lowest to the highest of the samples." if samples > 1 else ""
    none, statistics = int((result.round_trips == 0).sum()), statistics_of(result)
    (sweeps,) = statistics.sweep_of(np.array([statistics.measurements - 1]))
    figure.caption = (
        f"Share of exchanges accepted between neighbouring temperatures, at their geometric mean, and histogram of "
        f"round trips from the highest temperature to the lowest and back, of {_named(result)}."
        f"{bars} Of {count(result.round_trips.size, 'replica')} {none} made no round trip; the mean is "
        f"{result.round_trips.mean():.3g} in {count(int(sweeps), 'sweep')}."
    )
    return figure


def _draw_rates(ax: Axes, result: Tempered) -> None:
    """Draw means over the samples, with bars over the range of several samples."""
    rates, mean, ladder = result.accepts / np.maximum(result.attempts, 1), result.swap_rate, result.temperature
    x = np.sqrt(ladder[1:] * ladder[:-1])
    if len(rates) > 1:
        # by rounding, the overall rate can lie outside the range
        reach = np.maximum(np.stack([mean - rates.min(axis=0), rates.max(axis=0) - mean]), 0)
        ax.errorbar(x, mean, reach, fmt="none", color=SKY, elinewidth=1.6, capsize=0, label="range of samples")
    label = "mean of samples" if len(rates) > 1 else "rate"
    ax.plot(x, mean, "o", ms=paper.POINTS["ms"], mec="none", color=BLUE, label=label)
    margin = 0.03 * np.ptp(ladder)
    ax.set_xlim(ladder.min() - margin, ladder.max() + margin)  # the whole ladder, not only the middles of its pairs
    ax.set_ylim(0, 1)
    ax.set_xlabel(paper.TEMPERATURE)
    ax.set_ylabel("exchanges accepted")


def _draw_trips(ax: Axes, trips: Integers) -> None:
    none, most = int((trips == 0).sum()), max(1, int(trips.max()))
    least = 1 if none else int(trips.min())
    width = -(-(most - least + 1) // _BARS)
    edges = np.arange(least, most + width + 1, width)
    counts, _ = np.histogram(trips, edges)
    style: dict[str, Any] = {"align": "edge", "ec": "white", "lw": 0.3}
    ax.bar(edges[:-1] - 0.5, counts, np.diff(edges), color=BLUE, **style)
    if none:
        ax.bar([-0.5], [none], 1, color=VERMILION, label="no round trip", **style)
    ax.set_xlim((0 if none else least) - 0.5, edges[-1] - 0.5)
    paper.tick_integers(ax.xaxis)
    paper.tick_integers(ax.yaxis)
    ax.set_xlabel("round trips")
    ax.set_ylabel("replicas")


def overlap_figure(result: Tempered, style: str = "single") -> PaperFigure:
    """Draw P(q) at evenly chosen temperatures from the lowest to the highest; bands are standard errors.

    Without a field, the mean of P(q) and P(-q) is drawn, as both are equal. Untrusted errors have no band.
    """
    chosen, even = paper.some_temperatures(result.temperature), not in_field(result.model)
    is_known = True
    with drawn_panels(style, 1, 2.4) as (figure, (ax,)):
        for k, colour in chosen:
            p = overlap_distribution(result, bins_for(result, k), symmetrize=even, places=[k])
            density, error, known = p.density[0], p.error[0], p.trusted[0]
            ax.plot(p.q, density, color=colour, linewidth=0.8, label=f"$T = {result.temperature[k]:.3g}$")
            if known.any():
                low, high = np.maximum(density - error, 0), density + error
                ax.fill_between(p.q, low, high, where=known, color=colour, alpha=0.25, linewidth=0)
            is_known &= bool(known[density > 0].all())
        ax.fill_between([], [], color=GREY, alpha=0.4, linewidth=0, label="standard error")
        ax.set_xlim(-1, 1)
        ax.set_xticks([-1, -0.5, 0, 0.5, 1])
        ax.set_xlabel("overlap $q$")
        ax.set_ylabel("distribution $P(q)$")
        paper.show_zero(ax)
    over = "over samples" if samples_in(result) > 1 else "of one sample, from its autocorrelation times"
    symmetry = ", the mean of $P(q)$ and $P(-q)$" if even else ""
    none = "" if is_known else " There is none where the error cannot be trusted."
    figure.caption = (
        f"Distribution $P(q)$ of the overlap of two copies at {len(chosen)} of {len(result.temperature)} temperatures, "
        f"of {_named(result)}{symmetry}, in bins as wide as its noise asks for. Bands are "
        f"standard errors {over}.{none}"
    )
    return figure


def analysis_figure(name: str, results: Sequence[Tempered], style: str = "single") -> PaperFigure:
    """Draw the panels of an analysis, each with up to five curves."""
    found = ANALYSES[name](*results)
    temperatures = [f"$T = {t:.3g}$" for t in results[0].temperature]
    with drawn_panels(style, len(found.panels), 1.9) as (figure, axes):
        for ax, panel in zip(axes, found.panels, strict=True):
            labels = panel.labels or temperatures
            for k, colour in paper.some_temperatures(np.arange(float(len(labels)))):
                bars = np.nan_to_num(panel.curves.error[k])
                look: dict[str, Any] = {"fmt": "o-", "lw": 0.6, "mec": "none", "color": colour, **paper.POINTS}
                ax.errorbar(panel.x, panel.curves.value[k], bars, label=labels[k], **look)
            ax.set_xlabel(panel.axes[0])
            ax.set_ylabel(panel.axes[1])
    figure.caption = f"Analysis: {found.words}: {paper.runs_text(results)}. {paper.BARS}"
    return figure
