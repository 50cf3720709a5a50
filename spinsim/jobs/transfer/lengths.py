"""xi / L of transfer matrices against temperature, a curve for each width."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib.style
import numpy as np

from spinsim.analysis.figures.panels import TEMPERATURE, scale_logarithmically
from spinsim.analysis.figures.paper import COLOURS, GREY, MARKERS, PAPER, PaperFigure, draw_legend, lay_panels
from spinsim.analysis.strips import LengthCrossing, length_curve
from spinsim.jobs.transfer.result import TransferResult


def lengths_figure(
    results: Sequence[TransferResult],
    crossings: Sequence[LengthCrossing],
    average: str = "mean",
    style: str = "single",
) -> PaperFigure:
    """Correlation lengths over widths, on a logarithmic axis, which cross near a transition, with the crossings.

    Error bars are those over samples, of curves and of crossings, where there are several.

    The axis is k where the first run was given k, else the temperature.

    Raises:
        InputError: where a result has no such length.
    """
    by_k = "k" in given_by(results[0])
    with matplotlib.style.context(PAPER):
        figure, (ax,) = lay_panels(style, 1, 2.4)
        for i, result in enumerate(sorted(results, key=lambda result: result.model.sites)):
            curve = length_curve(result, average)
            x = 1 / curve.temperature if by_k else curve.temperature
            bars = (
                None
                if np.isnan(curve.log_error).all()
                else curve.value * np.expm1(np.multiply.outer([-1, 1], curve.log_error))
            )
            shape = result.model.lattice.shape if result.model.lattice else ()
            sides = r" \times ".join(map(str, shape))
            marker = MARKERS[i % len(MARKERS)] if len(x) < 30 else ""
            ax.errorbar(
                x, curve.value, None if bars is None else np.abs(bars), fmt=f"{marker}-", ms=2.2, lw=0.8,
                elinewidth=0.6, color=COLOURS[i % len(COLOURS)], label=f"$L = {sides}$",
            )  # fmt: skip
        for c in crossings:
            if not c.reason:
                x_error = c.error / c.temperature**2 if by_k else c.error
                ax.errorbar(1 / c.temperature if by_k else c.temperature, c.height, fmt="D", ms=3, mew=0.6, mfc="none",
                            xerr=None if np.isnan(c.error) else x_error, elinewidth=0.8, color=GREY, zorder=3,
                            label="crossings")  # fmt: skip
        scale_logarithmically(ax)
        ax.set_xlabel(r"coupling $k = 1/T$" if by_k else TEMPERATURE)
        ax.set_ylabel(r"$\exp[\ln\xi]/L$" if average == "typical" else r"$\xi/L$")
        draw_legend(figure, ax)
    figure.caption = _caption(results, average)
    return figure


def _caption(results: Sequence[TransferResult], average: str) -> str:
    samples = max(result.model.samples for result in results)
    what = "Typical correlation length" if average == "typical" else "Correlation length"
    names = ", ".join(result.model.name for result in results)
    over = f", over {samples} samples; bars are standard errors over them" if samples > 1 else ""
    return f"{what} over width from transfer matrices of {names}{over}. Diamonds are crossings; lines guide the eye."


def given_by(result: TransferResult) -> list[str]:
    """Which of ``temperature`` and ``k`` a run was given."""
    settings = result.config.get("transfer", result.config)
    return [name for name in ("temperature", "k") if settings.get(name) is not None]
