"""The figures of annealing runs: averages against temperature, cuts, and the lowest state as a picture."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Final

import matplotlib.style
import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, ListedColormap
from matplotlib.patches import Patch

from spinsim.analysis.figures import paper
from spinsim.analysis.figures.averages import Averages, caption, draw_averages
from spinsim.analysis.figures.configurations import draw_discs
from spinsim.analysis.figures.paper import BLUE, ORANGE, PAPER, STYLES, VERMILION, PaperFigure, drawn_panels
from spinsim.analysis.kinds import favours_parallel_spins
from spinsim.analysis.runs import Array
from spinsim.analysis.summary import Estimate
from spinsim.analysis.tables import Row
from spinsim.analysis.thermodynamics import FEWEST, MANY
from spinsim.errors import InputError
from spinsim.inputs.texts import count
from spinsim.jobs.anneal.report import averages_by_step
from spinsim.jobs.anneal.result import AnnealResult
from spinsim.jobs.base import Draw, Drawing
from spinsim.jobs.plotting import Course, check_begun, draw_cuts
from spinsim.model.ising import Ising
from spinsim.model.lattice import Lattice
from spinsim.observables.table import SYMBOLS, TABLE

_THIN: Final = 15  # ratio of sides above which the short one has no room for tick labels
_TALLEST: Final = 7.0  # inches
_MOST_DRAWN: Final = 2**26  # sites
_LEVELS: Final = 80  # largest number of bins in a landscape
_FROZEN: Final = (
    "The specific heat is left out at {} of {} steps, where it is not the slope of the energy: the replicas have "
    "frozen."
)


def draw(results: Sequence[AnnealResult], wanted: Drawing) -> Draw:
    (result,), sample = results, wanted.options.get("sample")
    figures: Draw = {"thermodynamics": partial(thermodynamics_figure, result, wanted.style)}
    if wanted.figure == "cut" or result.model.maxcut_weight is not None:
        figures["cut"] = partial(cut_figure, result, wanted.style)
    if wanted.figure == "landscape":
        figures["landscape"] = partial(landscape_figure, result, sample or 0, wanted.style)
    reason = why_no_configuration(result, sample or 0)
    if wanted.figure == "configuration" or sample is not None or not reason:
        figures["configuration"] = partial(configuration_figure, result, sample or 0, wanted.style)
    elif wanted.figure == "all" and result.model.embedding is not None:
        wanted.warn(f"No figure of the configuration: {reason}.")
    return figures


def cut_figure(result: AnnealResult, style: str = "single") -> PaperFigure:
    steps = len(result.energy)
    check_begun(result.model, steps)
    sweeps = result.config.get(result.job, result.config).get("sweeps")
    done = np.arange(1, steps + 1, dtype=np.float64) * (sweeps or 1)
    shown, unit, lowest = result.energy.reshape(steps, -1), "sweeps" if sweeps else "steps", result.lowest_energy.min()
    course = Course(result.energy, shown, done, unit, float(lowest), paper.replicas_text(result))
    return draw_cuts(result.model, course, style)


def thermodynamics_figure(result: AnnealResult, style: str = "single") -> PaperFigure:
    """Draw energy and specific heat per site and the order parameter against temperature, with standard errors.

    The order parameter is mean |m_s| for antiferromagnets, else mean |m| if parallel spins are favoured; glasses and
    MaxCut instances have none. Runs at one temperature are drawn against the step number. For a square ferromagnet in
    zero field, the exact curves of the infinite lattice are added. Specific heats that differ from the slope of the
    energy are left out. If the slope could not be tested, values far above it are marked "off scale". For a changing
    field, energy and signed m are drawn against the field; for a quantum anneal, energies of slices against the
    transverse field.
    """
    model, temperature, text = result.model, result.temperature, paper.replicas_text(result)
    check_begun(model, len(temperature))
    rows = [row for row in averages_by_step(result) if row.error is not None]
    estimates = {row.key: _estimate(row) for row in rows}
    names, x, against = ["energy_per_site", "specific_heat", *_order(model, rows)], temperature, paper.TEMPERATURE
    counts_steps = paper.is_constant(temperature) and result.field is None and result.gamma is None
    at = f", at $T = {temperature[0]:.6g}$" if paper.is_constant(temperature) else ""
    if result.gamma is not None:
        names, x, against = ["energy_per_site"], result.gamma, paper.FIELD
    elif result.field is not None:
        names, x, against = ["energy_per_site", "magnetization"], result.field, f"field $h${at}"
    elif counts_steps:
        x, against = np.arange(len(x), dtype=np.float64), f"step number, all{at.removeprefix(',')}"
    runs = [Averages(model, x, temperature, estimates, text if result.gamma is None else "best slices")]
    if result.gamma is not None:
        of_all = {"energy_per_site": estimates["mean_slice_energy_per_site"]}
        runs.append(Averages(model, x, temperature, of_all, "all slices"))
    figure = draw_averages(runs, names, style, against)
    with matplotlib.style.context(PAPER):
        if "specific_heat" in names and np.isnan(estimates["specific_heat"].value).all():
            _say_why_empty(figure.axes[1], result.energy.shape[2])
        if counts_steps:
            margin = max(0.5, len(x) / 30)
            for ax in figure.axes:
                ax.set_xlim(-margin, len(x) - 1 + margin)
                paper.tick_integers(ax.xaxis)
        elif result.family is not None and result.field is None:  # populations begin at infinite temperature
            figure.axes[-1].set_xscale("log")
    quantities = [next(one.caption for one in TABLE if one.name == name) for name in names]
    bars = f"{paper.BARS[:-1]} {_entries(result)}."
    sentences = [caption(quantities, f"after each step of {model.name}, {text}", figure, bars)]
    if result.gamma is not None:
        sentences.append("Energies are those of the best slice of each replica, and of all its slices.")
    elif "specific_heat" in names and result.energy.shape[2] > 1:
        left_out = int(np.isnan(estimates["specific_heat"].value).sum())
        sentences += [_FROZEN.format(left_out, len(temperature))] if left_out else []
    figure.caption = " ".join(sentences)
    return figure


def _estimate(row: Row) -> Estimate:
    """Return the averages of a row; if replicas do not differ, the error is unknown and the bar has no length."""
    is_known = np.isfinite(row.value)
    return Estimate(row.value, np.nan_to_num(row.error), np.zeros(len(row.value)), is_known)


def _order(model: Ising, rows: Sequence[Row]) -> list[str]:
    """Return the name of the printed order parameter in a list, which is empty if the model has none."""
    names = [row.key for row in rows if row.label and row.key in ("abs_magnetization", "abs_staggered_magnetization")]
    if model.maxcut_weight is not None or (names == ["abs_magnetization"] and not favours_parallel_spins(model)):
        return []
    return names


def _say_why_empty(ax: Axes, replicas: int) -> None:
    """Write the reason for an empty specific heat into its panel."""
    why = "undefined for a single replica" if replicas == 1 else "nowhere the slope of the energy"
    ax.text(0.5, 0.5, why, transform=ax.transAxes, ha="center", va="center")
    ax.set_yticks([])
    ax.set_yticks([], minor=True)


def _entries(result: AnnealResult) -> str:
    if result.model.samples > 1:
        return "over samples"
    if result.parents is None:
        return "over replicas"
    groups = "populations" if result.parents.shape[2] >= MANY else "families"
    few = f", left out where they count as fewer than {FEWEST}" if np.isnan(result.free_energy_error).any() else ""
    return f"over {groups}{few}"


def landscape_figure(result: AnnealResult, sample: int = 0, style: str = "single") -> PaperFigure:
    """Draw the energies of the replicas of one sample over the schedule: distribution at each step, mean and lowest."""
    model, steps = result.model, len(result.energy)
    check_begun(model, steps)
    _check_sample(result, sample)
    if result.energy.shape[2] < 2:
        raise InputError(f"the run of {model.name} has one replica, whose energies are no distribution: give more")
    energy = result.energy[:, sample].astype(np.float64) / model.sites
    x, abscissa = result.temperature, paper.TEMPERATURE
    if result.gamma is not None:
        x, abscissa = result.gamma, paper.FIELD
    elif result.field is not None:
        x, abscissa = result.field, "field $h$"
    if steps < 2 or not (np.all(np.diff(x) > 0) or np.all(np.diff(x) < 0)):
        x, abscissa = np.arange(steps, dtype=np.float64), "step number"
    levels = np.unique(energy)
    width = np.diff(levels).min(initial=np.inf) if len(levels) > 1 else 1.0
    width *= max(1, math.ceil((levels[-1] - levels[0]) / (_LEVELS * width)))  # the same number of levels in each bin
    edges = levels[0] + width * (np.arange((levels[-1] - levels[0]) // width + 3) - 0.5)
    counts = np.array([np.histogram(row, edges)[0] for row in energy])
    shades = LinearSegmentedColormap.from_list("shades", ["white", BLUE])
    with drawn_panels(style, 1, 2.6, abscissa) as (figure, (ax,)):
        relative = counts.T / counts.max(axis=1)
        ax.pcolormesh(_edges(x), edges, relative, cmap=shades, vmin=0, vmax=1, rasterized=True)
        ax.plot(x, energy.mean(axis=1), color=ORANGE, lw=0.8, label="mean of replicas")
        ax.plot(x, energy.min(axis=1), color=VERMILION, lw=0.8, label="lowest")
        ax.set_ylabel(SYMBOLS["energy_per_site"])
    figure.caption = (
        f"Energies per site of {count(result.energy.shape[2], 'replica')} of sample {sample} of {model.name} after "
        "each step. "
        "The shade is the number of replicas at an energy, relative to the largest number of the step."
    )
    return figure


def _edges(centres: Array) -> Array:
    """Edges of cells around rising or falling centres."""
    if len(centres) < 2:
        return np.array([centres[0] - 0.5, centres[0] + 0.5])
    middles = (centres[1:] + centres[:-1]) / 2
    return np.concatenate([[1.5 * centres[0] - 0.5 * centres[1]], middles, [1.5 * centres[-1] - 0.5 * centres[-2]]])


def _check_sample(result: AnnealResult, sample: int) -> None:
    if not 0 <= sample < result.model.samples:
        raise InputError(f"sample {sample} is not in the result: give a number from 0 to {result.model.samples - 1}")


def configuration_figure(result: AnnealResult, sample: int = 0, style: str = "single") -> PaperFigure:
    """Draw the lowest state of one sample: a picture, a strip for a chain, or one layer from three dimensions on."""
    reason = why_no_configuration(result, sample)
    if reason:
        raise InputError(reason)
    model, lattice = result.model, result.model.embedding
    assert lattice is not None  # noqa: S101  (implied by the check above)
    with matplotlib.style.context(PAPER):
        figure = _draw_spins(lattice, result.best_spins[sample], style)
        figure.draw_without_rendering()  # fixed aspects require two layout passes; saving is the second
    of = f"sample {sample} of {model.name}" if model.samples > 1 else model.name
    layer = rf", layer ${_layer(lattice)}$ of ${paper.sides(lattice)}$" if lattice.dimension > 2 else ""
    figure.caption = (
        f"State of the lowest energy met, $E = {result.best_energy[sample].min():.10g}$, by {of}{layer}. "
        f"{'Squares' if lattice.joins_layers else 'Discs'} are spins, +1 orange and -1 blue."
    )
    return figure


def why_no_configuration(result: AnnealResult, sample: int = 0) -> str:
    """Return in a sentence why there is no lowest state to draw; empty if there is one.

    There is none without a lattice, for a run that was killed before it stored one, and if all spins in the picture
    are equal.
    """
    model, lattice = result.model, result.model.embedding
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
        where = f"in {layer}the lowest state met by {model.name}"
        return f"all spins are {spins[0]:+d} {where}: there is no picture to draw"
    return ""


def _layer(lattice: Lattice) -> str:
    return " = ".join([*"zw"[: lattice.dimension - 2], "0"])


def _draw_spins(lattice: Lattice, spins: npt.NDArray[np.int8], style: str) -> PaperFigure:
    """Draw the sites of the first layer, x to the right, y upwards: squares, or discs for axes at other angles."""
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
            interpolation="none",
            origin="lower",
            aspect="auto" if chain else "equal",
        )
    else:
        draw_discs(ax, lattice.site_positions()).set_facecolor(np.where(spins > 0, ORANGE, BLUE).tolist())
    paper.tick_integers(ax.xaxis)
    paper.tick_integers(ax.yaxis)
    if chain or _THIN * height < width:
        ax.set_yticks([])
    if _THIN * width < height:
        ax.set_xticks([])
    ax.set_xlabel("$x$ (lattice units)")
    ax.set_ylabel("" if chain else "$y$ (lattice units)")
    patches = [Patch(fc=ORANGE, label="$s = +1$"), Patch(fc=BLUE, label="$s = -1$")]
    figure.legend(handles=patches, loc="outside lower center", ncols=2, handlelength=1, handleheight=1)
    return figure
