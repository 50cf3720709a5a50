"""xi / L of transfer matrices against temperature, a curve for each width."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import matplotlib.style
import numpy as np
from matplotlib.figure import Figure

from spinsim.analysis.figures.panels import TEMPERATURE
from spinsim.analysis.figures.paper import BLUE, GREEN, GREY, ORANGE, PAPER, PURPLE, SKY, VERMILION, WIDTH
from spinsim.analysis.strips import LengthCrossing, scaled_lengths
from spinsim.result import TransferResult

_COLOURS: Final = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY)


def lengths_figure(results: Sequence[TransferResult], crossings: Sequence[LengthCrossing]) -> Figure:
    """Correlation lengths over widths, which cross near a transition, with the crossings marked below.

    The axis is k where the first run was given k, else the temperature.

    Raises:
        InputError: where a result has no such length.
    """
    by_k = "k" in given_by(results[0])
    with matplotlib.style.context(PAPER):
        figure = Figure(figsize=(WIDTH, 2.8), layout="constrained")
        ax = figure.subplots()
        for i, result in enumerate(sorted(results, key=lambda result: result.model.sites)):
            x = result.k if by_k else result.temperature
            order = np.argsort(x)
            shape = result.model.lattice.shape if result.model.lattice else ()
            sides = r" \times ".join(map(str, shape))
            style = "o-" if len(order) < 30 else "-"
            ax.plot(
                x[order], scaled_lengths(result)[order], style, ms=2.2, lw=0.8,
                color=_COLOURS[i % len(_COLOURS)], label=f"$L = {sides}$",
            )  # fmt: skip
        known = [1 / c.temperature if by_k else c.temperature for c in crossings if not np.isnan(c.temperature)]
        if known:
            ax.plot(known, np.zeros(len(known)), "|", ms=8, color=GREY, label="crossings", clip_on=False,
                    transform=ax.get_xaxis_transform())  # fmt: skip
        ax.set_xlabel(r"coupling $k = 1/T$" if by_k else TEMPERATURE)
        ax.set_ylabel(r"$\xi/L$")
        figure.legend(loc="outside upper center", ncols=4, handlelength=1.6)
    return figure


def given_by(result: TransferResult) -> list[str]:
    """Which of ``temperature`` and ``k`` a run was given."""
    settings = result.config.get("transfer", result.config)
    return [name for name in ("temperature", "k") if settings.get(name) is not None]
