"""Figures for a paper: single column, 8 pt, Okabe-Ito colours, the same bytes for the same result.

Figures are plain ``Figure`` objects, never pyplot's, and need no display. Colours: M. Okabe, K. Ito, Color Universal
Design (2008), https://jfly.uni-koeln.de/color. Sizes in inches.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import matplotlib.style
import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator, NullLocator

from spinsim.analysis import onsager
from spinsim.analysis.thermodynamics import thermodynamics
from spinsim.errors import InputError
from spinsim.model.ising import Ising
from spinsim.model.lattice import Lattice
from spinsim.result import AnnealResult

Array = npt.NDArray[np.float64]

FORMATS: Final = ("pdf", "png")

_WIDTH: Final = 3.4
_BLUE: Final = "#0072B2"
_ORANGE: Final = "#E69F00"
_VERMILION: Final = "#D55E00"
_GREY: Final = "#7F7F7F"
_STYLE: Final[dict[str, Any]] = {
    "font.family": "STIXGeneral",
    "mathtext.fontset": "stix",
    "font.size": 8,
    "axes.labelsize": 8,
    "axes.titlesize": 8,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "axes.linewidth": 0.6,
    "xtick.direction": "in",
    "ytick.direction": "in",
    "xtick.top": True,
    "ytick.right": True,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.minor.width": 0.4,
    "ytick.minor.width": 0.4,
    "xtick.minor.visible": True,
    "ytick.minor.visible": True,
    "errorbar.capsize": 1.2,
    "savefig.dpi": 300,
    "pdf.fonttype": 42,
}
_FEWEST_FOR_SLOPE: Final = 10  # temperatures
_THIN: Final = 15  # ratio of sides beyond which the short one has no room for tick labels
_PAPER: Final[list[str | dict[str, Any]]] = ["default", _STYLE]  # a user's matplotlibrc changes nothing


def thermodynamics_figure(result: AnnealResult) -> Figure:
    """Energy and specific heat per site and mean |m| against temperature, with standard errors.

    Axes are in units of |J| where all bonds share one, else in the model's own. Runs at one temperature are drawn
    against the step number. A square ferromagnet in zero field comes with the exact curves of the infinite lattice.
    The specific heat is the spread of the replicas' energies: where they fall out of equilibrium it says nothing and
    can dwarf all else, so points far above dE/dT are marked above the panel, "off scale".

    Raises:
        InputError: where no step is done yet.
    """
    if not len(result.temperature):
        raise InputError(f"the run of {result.model.name} has no finished step: there is nothing to draw yet")
    table, unit = thermodynamics(result), _coupling_unit(result.model)
    temperature, energy = table.temperature / unit, table.energy / unit
    x = np.arange(len(temperature), dtype=np.float64) if _is_constant(temperature) else temperature
    with matplotlib.style.context(_PAPER):
        figure = Figure(figsize=(_WIDTH, 4.6), layout="constrained")
        top, middle, bottom = figure.subplots(3, sharex=True)
        _label_axes(top, middle, bottom, temperature)
        _draw_series(top, x, energy, table.energy_error / unit, _size_label(result))
        _draw_heat(middle, x, table.specific_heat, table.specific_heat_error, _heat_ceiling(temperature, energy))
        _draw_series(bottom, x, table.magnetization, table.magnetization_error)
        if _is_onsager(result.model):
            _draw_exact(top, temperature, onsager.energy)
            _draw_exact(middle, temperature, onsager.specific_heat)
            _draw_exact(bottom, temperature, onsager.magnetization)
        _show_zero(bottom)
        figure.align_ylabels()
        _draw_legend(figure, top, middle)
    return figure


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
    energy = float(result.best_energy[sample].min()) / _coupling_unit(model)
    place = [rf"layer $z = 0$ of ${_sides(lattice)}$"] if lattice.dimension == 3 else []
    place += [f"sample {sample}"] if model.samples > 1 else []
    title = rf"lowest state met, $E = {energy:.10g}\,|J|$"
    with matplotlib.style.context(_PAPER):
        figure = _draw_spins(lattice, result.best_spins[sample])
        figure.axes[0].set_title(f"{', '.join(place)}\n{title}" if place else title)
        figure.draw_without_rendering()  # one pass of the layout misjudges axes of fixed aspect; saving is the second
    return figure


def has_configuration(result: AnnealResult) -> bool:
    """Whether there are lowest states on a lattice to draw; a run that was killed early has stored none."""
    return result.model.lattice is not None and bool(np.isfinite(result.best_energy).all())


def save_figure(figure: Figure, path: Path) -> None:
    """Write a figure as PDF with embedded TrueType fonts or as PNG of 300 dpi, whichever the suffix says.

    Raises:
        InputError: for another suffix and where the file cannot be written.
    """
    kind = path.suffix[1:].lower()
    if kind not in FORMATS:
        raise InputError(f"{path} is not a figure that spinsim can write: its suffix must be .{' or .'.join(FORMATS)}")
    picture = io.BytesIO()
    with matplotlib.style.context(_PAPER):
        # a date or a version in the metadata would make equal figures differ
        figure.savefig(picture, format=kind, metadata={"CreationDate" if kind == "pdf" else "Software": None})
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(picture.getvalue())
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror or error}") from error


def _coupling_unit(model: Ising) -> float:
    """|J| where all bonds share one, else 1."""
    return model.magnitude * model.quantum if model.magnitude else 1.0


def _is_constant(temperature: Array) -> bool:
    return bool(np.all(temperature == temperature[0]))


def _is_onsager(model: Ising) -> bool:
    """Whether the model is a periodic square ferromagnet with equal couplings in zero field."""
    lattice = model.lattice
    return (
        lattice is not None
        and lattice.dimension == 2
        and lattice.present_bonds() is None
        and model.magnitude is not None
        and bool(model.couplings.min() > 0)
        and not np.any(model.fields)
    )


def _sides(lattice: Lattice) -> str:
    return r" \times ".join(map(str, lattice.shape))


def _size_label(result: AnnealResult) -> str:
    """Such as "8 x 8 x 8, 4 samples of 128 replicas"."""
    _, samples, replicas = result.energy.shape
    lattice = result.model.lattice
    size = f"${_sides(lattice)}$" if lattice and lattice.dimension > 1 else f"$N = {result.model.sites}$"
    copies = f"{replicas} replica" + "s" * (replicas > 1)
    return f"{size}, {samples} samples of {copies}" if samples > 1 else f"{size}, {copies}"


def _label_axes(top: Axes, middle: Axes, bottom: Axes, temperature: Array) -> None:
    top.set_ylabel("energy $E/(N|J|)$")
    middle.set_ylabel(r"specific heat $C/(Nk_\mathrm{B})$")
    bottom.set_ylabel(r"magnetisation $\langle|m|\rangle$")
    bottom.set_xlabel(r"temperature $T$ ($|J|/k_\mathrm{B}$)")
    if _is_constant(temperature):
        margin = max(0.5, len(temperature) / 30)
        bottom.set_xlim(-margin, len(temperature) - 1 + margin)
        bottom.set_xlabel(rf"step number, all at $T = {temperature[0]:.6g}\,|J|/k_\mathrm{{B}}$")
        _tick_integers(bottom.xaxis)


def _draw_series(ax: Axes, x: Array, mean: Array, error: Array, label: str | None = None) -> None:
    """Points with error bars, or a word where there are none to draw."""
    if np.isnan(mean).all():
        ax.text(0.5, 0.5, "undefined for a single replica", transform=ax.transAxes, ha="center", va="center")
        ax.set_yticks([])
        ax.set_yticks([], minor=True)
        return
    bars = None if np.isnan(error).all() else error
    ax.errorbar(x, mean, bars, fmt="o", ms=2.2, mec="none", elinewidth=0.6, capthick=0.6, color=_BLUE, label=label)


def _heat_ceiling(temperature: Array, energy: Array) -> float:
    """Twice the largest dE/dT over thirtieths of the range, in k_B: in equilibrium dE/dT is the specific heat."""
    if len(temperature) < _FEWEST_FOR_SLOPE or _is_constant(temperature):
        return np.inf
    order = np.argsort(temperature, kind="stable")
    grid, step = np.linspace(temperature.min(), temperature.max(), 31, retstep=True)
    slope = float(np.diff(np.interp(grid, temperature[order], energy[order])).max() / step)
    return 2 * slope if slope > 0 else np.inf


def _draw_heat(ax: Axes, x: Array, heat: Array, error: Array, ceiling: float) -> None:
    """Points up to the ceiling, and a mark above the frame for each beyond it; all points where none is below it."""
    beyond = (heat > ceiling) & bool((heat <= ceiling).any())
    _draw_series(ax, x, np.where(beyond, np.nan, heat), error)
    _show_zero(ax)
    if beyond.any():
        place: dict[str, Any] = {"transform": ax.get_xaxis_transform(), "clip_on": False, "ms": 2.5, "mec": "none"}
        ax.plot(x[beyond], np.full(beyond.sum(), 1.04), "^", color=_VERMILION, label="off scale", **place)


def _show_zero(ax: Axes) -> None:
    """Let a positive quantity's axis begin just below 0."""
    high = ax.get_ylim()[1]
    ax.set_ylim(-0.05 * high, 1.02 * high)


def _draw_legend(figure: Figure, *axes: Axes) -> None:
    """One legend for all panels, above them, where it hides nothing; error bars, which matplotlib lists last, first."""
    found = [pair for ax in axes for pair in reversed([*zip(*ax.get_legend_handles_labels(), strict=True)])]
    unique = {label: handle for handle, label in found}
    figure.legend(unique.values(), unique.keys(), loc="outside upper center", ncols=2, handlelength=1.6)


def _draw_exact(ax: Axes, temperature: Array, exact: Callable[[Array], Array]) -> None:
    """The infinite lattice over the range of the data, in a panel that has any; at one temperature a level line."""
    if not ax.containers:
        return
    style: dict[str, Any] = {"color": _GREY, "linewidth": 0.8, "zorder": 1, "label": r"exact, $L = \infty$"}
    # m falls like (T_c - T)^(1/8): its foot needs points much closer to T_c than an even grid has
    near = np.geomspace(1e-9, 0.1, 100)
    critical = onsager.CRITICAL_TEMPERATURE
    low, high = temperature.min(), temperature.max()
    grid = np.unique(np.concatenate([np.linspace(low, high, 500), critical - near, critical + near]))
    grid = grid[(grid >= low) & (grid <= high)]
    x = ax.get_xlim() if _is_constant(temperature) else grid
    ax.plot(x, np.broadcast_to(exact(grid), len(x)), **style)


def _tick_integers(axis: Axis) -> None:
    """Ticks at whole numbers only, for sites and steps: there is nothing between two."""
    axis.set_major_locator(MaxNLocator(nbins=6, steps=[1, 2, 5, 10], integer=True, min_n_ticks=1))
    axis.set_minor_locator(NullLocator())


def _draw_spins(lattice: Lattice, spins: npt.NDArray[np.int8]) -> Figure:
    """The sites with z = 0 as squares, x to the right and y upwards."""
    width, height, *_ = (*lattice.shape, 1)
    chain = lattice.dimension == 1
    inches = 1.2 if chain else min(max(1.6, 1.05 + 2.8 * height / width), 7.0)
    figure = Figure(figsize=(_WIDTH, inches), layout="compressed")
    ax = figure.subplots()
    ax.tick_params(direction="out", top=False, right=False)  # inward ticks would cover sites
    ax.imshow(
        spins[: width * height].reshape(height, width),
        cmap=ListedColormap([_BLUE, _ORANGE]),
        vmin=-1,
        vmax=1,
        interpolation="none",
        origin="lower",
        aspect="auto" if chain else "equal",
    )
    _tick_integers(ax.xaxis)
    _tick_integers(ax.yaxis)
    if chain or _THIN * height < width:
        ax.set_yticks([])
    if _THIN * width < height:
        ax.set_xticks([])
    ax.set_xlabel("$x$ (lattice units)")
    ax.set_ylabel("" if chain else "$y$ (lattice units)")
    patches = [Patch(fc=_ORANGE, label="$s = +1$"), Patch(fc=_BLUE, label="$s = -1$")]
    figure.legend(handles=patches, loc="outside lower center", ncols=2, handlelength=1, handleheight=1)
    return figure
