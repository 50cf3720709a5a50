"""The lowest state that an annealing run met, as a picture."""

from __future__ import annotations

import math
from typing import Final

import matplotlib.style
import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.collections import EllipseCollection
from matplotlib.colors import ListedColormap
from matplotlib.patches import Patch

from spinsim.analysis.figures.panels import sides, tick_integers
from spinsim.analysis.figures.paper import BLUE, ORANGE, PAPER, STYLES, PaperFigure
from spinsim.errors import InputError
from spinsim.jobs.anneal.result import AnnealResult
from spinsim.model.geometry.lattice import Lattice

_THIN: Final = 15  # ratio of sides beyond which the short one has no room for tick labels
_TALLEST: Final = 7.0  # inches
_MOST_DRAWN: Final = 2**26  # sites


def configuration_figure(result: AnnealResult, sample: int = 0, style: str = "single") -> PaperFigure:
    """The state of lowest energy met by one sample: a picture, a strip for a chain, one layer of three axes or more.

    Args:
        result: A run on a lattice.
        sample: Disorder sample, from 0.
        style: Width, ``single`` or ``double``.

    Raises:
        InputError: as ``why_no_configuration`` says.
    """
    reason = why_no_configuration(result, sample)
    if reason:
        raise InputError(reason)
    model, lattice = result.model, result.model.lattice
    assert lattice is not None  # noqa: S101  (a reason above)
    with matplotlib.style.context(PAPER):
        figure = _draw_spins(lattice, result.best_spins[sample], style)
        figure.draw_without_rendering()  # one pass of the layout misjudges axes of fixed aspect; saving is the second
    of = f"sample {sample} of {model.name}" if model.samples > 1 else model.name
    layer = rf", layer ${_layer(lattice)}$ of ${sides(lattice)}$" if lattice.dimension > 2 else ""
    figure.caption = (
        f"State of the lowest energy met, $E = {result.best_energy[sample].min():.10g}$, by {of}{layer}. "
        f"{'Squares' if lattice.joins_layers else 'Discs'} are spins, +1 orange and -1 blue."
    )
    return figure


def why_no_configuration(result: AnnealResult, sample: int = 0) -> str:
    """Why there is no lowest state to draw, in a sentence; empty where there is one.

    There is none without a lattice, of a run that was killed before it stored one, and where all spins that would be
    drawn are equal.
    """
    model, lattice = result.model, result.model.lattice
    if lattice is None:
        return f"model {model.name} is a graph without a lattice: it has no configuration to draw"
    if not 0 <= sample < model.samples:
        return f"sample {sample} is not in the result: give a number from 0 to {model.samples - 1}"
    if not np.isfinite(result.best_energy).all():
        return f"the run of {model.name} has no lowest state yet: complete it first"
    drawn = math.prod(lattice.shape[:2]) * lattice.cell.sites
    if drawn > _MOST_DRAWN:
        return f"a configuration of {drawn} sites of {model.name} is too large for a picture: at most {_MOST_DRAWN}"
    spins = result.best_spins[sample][:drawn]
    if (spins == spins[0]).all():
        layer = f"the layer {_layer(lattice)} of " if lattice.dimension > 2 else ""
        return (
            f"all spins are {spins[0]:+d} in {layer}the lowest state met by {model.name}: there is no picture to draw"
        )
    return ""


def _layer(lattice: Lattice) -> str:
    """What the coordinates of the sites that are drawn have in common, such as z = 0."""
    return " = ".join([*"zw"[: lattice.dimension - 2], "0"])


def _draw_spins(lattice: Lattice, spins: npt.NDArray[np.int8], style: str) -> PaperFigure:
    """The sites of the first layer, x to the right and y upwards: squares, or discs where axes have other angles."""
    width, height = lattice.shape[0], (*lattice.shape, 1)[1]
    chain = lattice.dimension == 1
    if not lattice.joins_layers:
        width, height = (math.ceil(extent) for extent in np.ptp(lattice.site_positions(), axis=0) + 1)
    inches = 1.0 if chain else min(max(1.4, 0.85 + 0.82 * STYLES[style] * height / width), _TALLEST)
    figure = PaperFigure(style, inches, layout="compressed")
    ax = figure.subplots()
    ax.tick_params(direction="out", top=False, right=False)  # inward ticks would cover sites
    if lattice.joins_layers:
        ax.imshow(
            spins[: width * height].reshape(height, width),
            cmap=ListedColormap([BLUE, ORANGE]),
            vmin=-1,
            vmax=1,
            interpolation="none",
            origin="lower",
            aspect="auto" if chain else "equal",
        )
    else:
        _draw_discs(ax, lattice.site_positions(), spins)
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


def _draw_discs(ax: Axes, positions: npt.NDArray[np.float64], spins: npt.NDArray[np.int8]) -> None:
    """A disc at each position, as wide as neighbours are apart."""
    one = np.ones(len(positions))
    discs = EllipseCollection(
        one,
        one,
        0 * one,
        units="xy",
        offsets=positions,
        offset_transform=ax.transData,
        facecolors=np.where(spins > 0, ORANGE, BLUE).tolist(),
        linewidths=0,
    )
    ax.add_collection(discs)
    low, high = positions.min(axis=0) - 0.6, positions.max(axis=0) + 0.6
    ax.set_xlim(low[0], high[0])
    ax.set_ylim(low[1], high[1])
    ax.set_aspect("equal")
