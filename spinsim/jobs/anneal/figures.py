"""The figures of annealing runs: averages against temperature, cuts, and the lowest state as a picture."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Final

import matplotlib.style
import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, ListedColormap
from matplotlib.patches import Patch

from spinsim.analysis import onsager
from spinsim.analysis.figures import panels
from spinsim.analysis.figures.configurations import draw_discs
from spinsim.analysis.figures.paper import BLUE, ORANGE, PAPER, STYLES, VERMILION, PaperFigure, drawn_panels
from spinsim.analysis.figures.runs import Course, check_begun, draw_cuts
from spinsim.analysis.kinds import favours_parallel_spins
from spinsim.analysis.thermodynamics import FEWEST, MANY, OrderParameter, Thermodynamics, thermodynamics
from spinsim.errors import InputError
from spinsim.inputs.texts import count
from spinsim.jobs.anneal.report import quantum_energies
from spinsim.jobs.anneal.result import AnnealResult
from spinsim.jobs.base import Draw, Drawing
from spinsim.model.ising import Ising
from spinsim.model.lattice import Lattice
from spinsim.observables.table import SYMBOLS, TABLE

Array = npt.NDArray[np.float64]
_THIN: Final = 15  # ratio of sides beyond which the short one has no room for tick labels
_TALLEST: Final = 7.0  # inches
_MOST_DRAWN: Final = 2**26  # sites
_LEVELS: Final = 80  # bins of a landscape


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
    course = Course(result.energy, shown, done, unit, float(lowest), panels.replicas_text(result))
    return draw_cuts(result.model, course, style)


def thermodynamics_figure(result: AnnealResult, style: str = "single") -> PaperFigure:
    """Energy and specific heat per site and the order parameter against temperature, with standard errors.

    The order parameter is mean |m_s| of antiferromagnets, else mean |m| where something favours parallel spins; a
    glass and a MaxCut instance have none. Runs at one
    temperature are drawn against the step number. A square ferromagnet in zero field comes with the exact curves of the
    infinite lattice. Specific heats that are not the slope of the energy are left out, and those far above it where
    that could not be tested are marked "off scale". A run in a field that changes has its energy and m, with its sign,
    against the field, a quantum anneal the energies of its slices against the transverse field.
    """
    if not len(result.temperature):
        raise InputError(f"the run of {result.model.name} has no finished step: there is nothing to draw yet")
    if result.gamma is not None:
        return _quantum_figure(result, result.gamma, style)
    table, model = thermodynamics(result), result.model
    if result.field is not None:
        return _loop_figure(result, result.field, table, style)
    temperature, counts_steps = table.temperature, panels.is_constant(table.temperature)
    x, abscissae = temperature, panels.TEMPERATURE
    if counts_steps:
        x, abscissae = np.arange(len(x), dtype=np.float64), f"step number, all at $T = {temperature[0]:.6g}$"
    order = table.order_parameter(model)
    names = ["energy_per_site", "specific_heat", *([order.name] if _is_shown(order, model) else [])]
    off_scale = panels.is_off_scale(temperature, table.energy.mean, table.specific_heat.mean)
    heat = table.specific_heat._replace(mean=np.where(off_scale, np.nan, table.specific_heat.mean))
    with _panels(style, names, abscissae) as (figure, axes):
        _draw_series(axes[0], x, table.energy, panels.replicas_text(result))
        why = "undefined for a single replica" if result.energy.shape[2] == 1 else "nowhere the slope of the energy"
        _draw_series(axes[1], x, heat, why_none=why)
        if len(names) > 2:
            _draw_series(axes[2], x, order.value)
        if panels.is_onsager(model):
            panels.draw_exact(axes[0], temperature, onsager.energy, model.coupling_unit)
            panels.draw_exact(axes[1], temperature, onsager.specific_heat, model.coupling_unit, 1.3)
            panels.draw_exact(axes[2], temperature, onsager.magnetization, model.coupling_unit)
        for ax in axes[1:]:
            panels.show_zero(ax)
        panels.mark_off_scale(axes[1], x[off_scale])
        if counts_steps:
            margin = max(0.5, len(x) / 30)
            for ax in axes:
                ax.set_xlim(-margin, len(x) - 1 + margin)
                panels.tick_integers(ax.xaxis)
        elif result.family is not None:  # from infinity on
            axes[-1].set_xscale("log")
    figure.caption = _caption(result, table, bool(off_scale.any()))
    return figure


@contextmanager
def _panels(style: str, names: Sequence[str], abscissa: str) -> Iterator[tuple[PaperFigure, list[Axes]]]:
    with drawn_panels(style, len(names), 1.4, abscissa) as (figure, axes):
        for ax, name in zip(axes, names, strict=True):
            ax.set_ylabel(SYMBOLS[name])
        yield figure, axes


def _is_shown(order: OrderParameter, model: Ising) -> bool:
    return model.maxcut_weight is None and (order.name != "abs_magnetization" or favours_parallel_spins(model))


def _quantum_figure(result: AnnealResult, gamma: Array, style: str) -> PaperFigure:
    with _panels(style, ["energy_per_site"], panels.FIELD) as (figure, (ax,)):
        best, mean = quantum_energies(result)
        _draw_series(ax, gamma, best, "best slices")
        _draw_series(ax, gamma, mean, "all slices", color=ORANGE)
    figure.caption = (
        f"Energy per site of the best slice of each replica, and of all its slices, after each step of "
        f"{result.model.name}, {panels.replicas_text(result)}. {panels.BARS[:-1]} {_entries(result)}."
    )
    return figure


def _loop_figure(result: AnnealResult, field: Array, table: Thermodynamics, style: str) -> PaperFigure:
    temperature = table.temperature
    where = f", at $T = {temperature[0]:.6g}$" if panels.is_constant(temperature) else ""
    with _panels(style, ["energy_per_site", "magnetization"], f"field $h${where}") as (figure, axes):
        _draw_series(axes[0], field, table.energy, panels.replicas_text(result))
        _draw_series(axes[1], field, table.signed_magnetization)
    quantities = r"Energy, that of the field included, and magnetisation $\langle m\rangle$ per site"
    of = f"{result.model.name}, {panels.replicas_text(result)}"
    figure.caption = f"{quantities} of {of}, after each step. {panels.BARS[:-1]} {_entries(result)}."
    return figure


def _draw_series(
    ax: Axes, x: Array, average: tuple[Array, Array], label: str | None = None, why_none: str = "", color: str = BLUE
) -> None:
    """Points with error bars, or the words ``why_none`` where there are none to draw."""
    mean, error = average
    if np.isnan(mean).all():
        ax.text(0.5, 0.5, why_none, transform=ax.transAxes, ha="center", va="center")
        ax.set_yticks([])
        ax.set_yticks([], minor=True)
        return
    bars = None if np.isnan(error).all() else error
    ax.errorbar(x, mean, bars, fmt="o", mec="none", color=color, label=label, **panels.POINTS)


def _entries(result: AnnealResult) -> str:
    if result.model.samples > 1:
        return "over samples"
    if result.parents is None:
        return "over replicas"
    groups = "populations" if result.parents.shape[2] >= MANY else "families"
    few = f", left out where they count as fewer than {FEWEST}" if np.isnan(result.free_energy_error).any() else ""
    return f"over {groups}{few}"


def _caption(result: AnnealResult, table: Thermodynamics, off_scale: bool) -> str:
    order, quantities = table.order_parameter(result.model), "Energy and specific heat per site"
    if _is_shown(order, result.model):
        quantities = f"Energy, specific heat and {next(o.caption for o in TABLE if o.name == order.name)}"
    sentences = [
        f"{quantities} after each step of {result.model.name}, {panels.replicas_text(result)}.",
        f"{panels.BARS[:-1]} {_entries(result)}.",
    ]
    left_out = int(np.isnan(table.specific_heat.mean).sum())
    if left_out and result.energy.shape[2] > 1:
        sentences.append(
            f"The specific heat is left out at {left_out} of {len(table.temperature)} steps, where it is not the slope "
            "of the energy: the replicas have frozen."
        )
    return " ".join([*sentences, panels.OFF_SCALE] if off_scale else sentences)


def landscape_figure(result: AnnealResult, sample: int = 0, style: str = "single") -> PaperFigure:
    """Energies of the replicas of one sample over the schedule: their distribution at each step, mean and lowest."""
    model, steps = result.model, len(result.energy)
    check_begun(model, steps)
    _check_sample(result, sample)
    if result.energy.shape[2] < 2:
        raise InputError(f"the run of {model.name} has one replica, whose energies are no distribution: give more")
    energy = result.energy[:, sample].astype(np.float64) / model.sites
    x, abscissa = result.temperature, panels.TEMPERATURE
    if result.gamma is not None:
        x, abscissa = result.gamma, panels.FIELD
    elif result.field is not None:
        x, abscissa = result.field, "field $h$"
    if steps < 2 or not (np.all(np.diff(x) > 0) or np.all(np.diff(x) < 0)):
        x, abscissa = np.arange(steps, dtype=np.float64), "step number"
    levels = np.unique(energy)
    width = np.diff(levels).min(initial=np.inf) if len(levels) > 1 else 1.0
    width *= max(1, math.ceil((levels[-1] - levels[0]) / (_LEVELS * width)))  # bins hold equally many levels
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
    """The state of lowest energy met by one sample: a picture, a strip for a chain, one layer of three axes or more."""
    reason = why_no_configuration(result, sample)
    if reason:
        raise InputError(reason)
    model, lattice = result.model, result.model.embedding
    assert lattice is not None  # noqa: S101  (a reason above)
    with matplotlib.style.context(PAPER):
        figure = _draw_spins(lattice, result.best_spins[sample], style)
        figure.draw_without_rendering()  # one pass of the layout misjudges axes of fixed aspect; saving is the second
    of = f"sample {sample} of {model.name}" if model.samples > 1 else model.name
    layer = rf", layer ${_layer(lattice)}$ of ${panels.sides(lattice)}$" if lattice.dimension > 2 else ""
    figure.caption = (
        f"State of the lowest energy met, $E = {result.best_energy[sample].min():.10g}$, by {of}{layer}. "
        f"{'Squares' if lattice.joins_layers else 'Discs'} are spins, +1 orange and -1 blue."
    )
    return figure


def why_no_configuration(result: AnnealResult, sample: int = 0) -> str:
    """Reason for which there is no lowest state to draw, in a sentence; empty where there is one.

    There is none without a lattice, of a run that was killed before it stored one, and where all spins that would be
    drawn are equal.
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
            interpolation="none",
            origin="lower",
            aspect="auto" if chain else "equal",
        )
    else:
        draw_discs(ax, lattice.site_positions()).set_facecolor(np.where(spins > 0, ORANGE, BLUE).tolist())
    panels.tick_integers(ax.xaxis)
    panels.tick_integers(ax.yaxis)
    if chain or _THIN * height < width:
        ax.set_yticks([])
    if _THIN * width < height:
        ax.set_xticks([])
    ax.set_xlabel("$x$ (lattice units)")
    ax.set_ylabel("" if chain else "$y$ (lattice units)")
    patches = [Patch(fc=ORANGE, label="$s = +1$"), Patch(fc=BLUE, label="$s = -1$")]
    figure.legend(handles=patches, loc="outside lower center", ncols=2, handlelength=1, handleheight=1)
    return figure
