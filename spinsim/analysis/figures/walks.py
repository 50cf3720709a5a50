"""Distribution of the autocorrelation times of replicas' walks over the samples of a run."""

from __future__ import annotations

from typing import Final

import numpy as np

from spinsim.analysis.figures import paper
from spinsim.analysis.figures.paper import BLUE, VERMILION, PaperFigure, drawn_panels
from spinsim.analysis.runs import Tempered
from spinsim.analysis.walks import equilibrium
from spinsim.inputs.texts import count

_MOST_BARS: Final = 30


def walks_figure(result: Tempered, style: str = "single") -> PaperFigure:
    """Draw the histogram of log10 tau_exp over the samples, and the longest time for which the run is long enough."""
    found = equilibrium(result)
    times, longest = np.log10(found.tau_exp), float(np.log10(found.sweeps.min() / found.needed))
    bars = int(np.clip(2 * np.sqrt(len(times)), 4, _MOST_BARS))
    with drawn_panels(style, 1, 2.0, r"$\log_{10} \tau_\mathrm{exp}$ (sweeps)") as (figure, (ax,)):
        ax.hist(times, bars, color=BLUE, ec="white", lw=0.3)
        ax.axvline(longest, color=VERMILION, lw=0.8, label=f"sweeps / {found.needed}")
        paper.tick_integers(ax.yaxis)
        ax.set_ylabel("samples")
    figure.caption = (
        f"Histogram over samples of log10 of the exponential autocorrelation time of replicas' walks along the ladder, "
        f"of {result.model.name}, {paper.run_text(result)}. The line is the longest time that {found.needed} times fit "
        f"into the run; {len(found.slow)} of {count(len(times), 'sample')} are slow."
    )
    return figure
