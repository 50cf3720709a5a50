"""The lowest state that an annealing run met, as a picture."""

from __future__ import annotations

from typing import Final

import matplotlib.style
import numpy as np
import numpy.typing as npt
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from spinsim.analysis.figures.panels import sides, tick_integers
from spinsim.analysis.figures.paper import BLUE, ORANGE, PAPER, WIDTH
from spinsim.errors import InputError
from spinsim.model.lattice import Lattice
from spinsim.result import AnnealResult

_THIN: Final = 15  # ratio of sides beyond which the short one has no room for tick labels


def configuration_figure(result: AnnealResult, sample: int = 0) -> Figure:
    """The state of lowest energy met by one sample: a picture, a strip for a chain, layer z = 0 of a cubic lattice.

    Args:
        result: A run on a lattice.
        sample: Disorder sample, from 0.

    Raises:
        InputError: for a model without a lattice, a sample that is not there, and where no lowest state is stored yet.
    """
    model, lattice = result.model, result.model.lattice
    if lattice is None:
        raise InputError(f"model {model.name} is a graph without a lattice: it has no configuration to draw")
    if not 0 <= sample < model.samples:
        raise InputError(f"sample {sample} is not in the result: give a number from 0 to {model.samples - 1}")
    if not has_configuration(result):
        raise InputError(f"the run of {model.name} has no lowest state yet: complete it first")
    energy = float(result.best_energy[sample].min())
    place = [rf"layer $z = 0$ of ${sides(lattice)}$"] if lattice.dimension == 3 else []
    place += [f"sample {sample}"] if model.samples > 1 else []
    title = rf"lowest state met, $E = {energy:.10g}$"
    with matplotlib.style.context(PAPER):
        figure = _draw_spins(lattice, result.best_spins[sample])
        figure.axes[0].set_title(f"{', '.join(place)}\n{title}" if place else title)
        figure.draw_without_rendering()  # one pass of the layout misjudges axes of fixed aspect; saving is the second
    return figure


def has_configuration(result: AnnealResult) -> bool:
    """Whether there are lowest states on a lattice to draw; a run that was killed early has stored none."""
    return result.model.lattice is not None and bool(np.isfinite(result.best_energy).all())


def _draw_spins(lattice: Lattice, spins: npt.NDArray[np.int8]) -> Figure:
    """The sites with z = 0 as squares, x to the right and y upwards."""
    width, height, *_ = (*lattice.shape, 1)
    chain = lattice.dimension == 1
    inches = 1.2 if chain else min(max(1.6, 1.05 + 2.8 * height / width), 7.0)
    figure = Figure(figsize=(WIDTH, inches), layout="compressed")
    ax = figure.subplots()
    ax.tick_params(direction="out", top=False, right=False)  # inward ticks would cover sites
    ax.imshow(
        spins[: width * height].reshape(height, width),
        cmap=ListedColormap([BLUE, ORANGE]),
        vmin=-1,
        vmax=1,
        interpolation="none",
        origin="lower",
        aspect="auto" if chain else "equal",
    )
    tick_integers(ax.xaxis)
    tick_integers(ax.yaxis)
    if chain or _THIN * height < width:
        ax.set_yticks([])
    if _THIN * width < height:
        ax.set_xticks([])
    ax.set_xlabel("$x$ (lattice units)")
    ax.set_ylabel("" if chain else "$y$ (lattice units)")
    patches = [Patch(fc=ORANGE, label="$s = +1$"), Patch(fc=BLUE, label="$s = -1$")]
    figure.legend(handles=patches, loc="outside lower center", ncols=2, handlelength=1, handleheight=1)
    return figure
