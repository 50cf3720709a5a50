"""Figures for a paper: one column wide or two, 8 pt, Okabe-Ito colours, the same bytes for the same result.

Figures and their files come first, then the elements that panels share: labels, points and exact curves. Figures are
``Figure`` objects, never pyplot's, need no display, and have the caption that a paper needs. Colours:
M. Okabe, K. Ito, Color Universal Design (2008), https://jfly.uni-koeln.de/color. Sizes in inches.
"""

from __future__ import annotations

import io
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import cycle, islice
from pathlib import Path
from string import ascii_lowercase
from typing import Any, Final, Literal, NamedTuple

import matplotlib.style
import numpy as np
import numpy.typing as npt
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.axis import Axis as PanelAxis
from matplotlib.container import Container
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter, NullLocator

from spinsim.analysis import onsager
from spinsim.analysis.runs import Array, Axis, Bools, Tempered
from spinsim.analysis.statistics import choice_of
from spinsim.analysis.summary import Estimate
from spinsim.errors import InputError
from spinsim.inputs.texts import count
from spinsim.machine.files import CAPTION, write_outputs
from spinsim.model.ising import Ising
from spinsim.model.lattice import Lattice
from spinsim.observables.quantities import in_space

FORMATS: Final = ("pdf", "png", "svg")

STYLES: Final = {"single": 3.4, "double": 7.0}  # widths: of a column, and of a page of two
_IN_A_ROW: Final = 3  # panels across two columns
_LEGEND: Final = 0.4  # height reserved for the legend
_LEGEND_COLUMNS: Final = 6
_COLUMNS: Final = 100  # width of a caption's lines
_STAMPS: Final = {"pdf": ("CreationDate",), "png": ("Software",), "svg": ("Date", "Creator")}
"""Metadata left out, as a date or a version would make equal figures differ."""

BLUE: Final = "#0072B2"
ORANGE: Final = "#E69F00"
VERMILION: Final = "#D55E00"
GREEN: Final = "#009E73"
PURPLE: Final = "#CC79A7"
SKY: Final = "#56B4E9"
GREY: Final = "#7F7F7F"
COLOURS: Final = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY)
MARKERS: Final = ("o", "s", "^", "D", "v", "P")  # for prints without colours
PAPER: Final = ["default", "spinsim.paper"]  # spinsim/paper.mplstyle; a user's matplotlibrc changes nothing


TEMPERATURE: Final = "temperature $T$ ($J / k_B$)"
FIELD: Final = r"transverse field $\Gamma$ ($J$)"
UNKNOWN_ERROR: Final = "error unknown"
_LADDERS: Final = {
    "temperature": TEMPERATURE,
    "k": "step in time $k$",
    "gamma": FIELD,
    "beta": r"inverse temperature $\beta$ ($1 / J$)",
}
BEYOND: Final = "off scale"
CROSSINGS: Final = "crossings"
BARS: Final = "Bars are standard errors."
OPEN: Final = "Open points have an unknown error, as the series are too short."
OFF_SCALE: Final = (
    "Marks above a panel are specific heats beyond twice the largest $dE/dT$, of runs out of equilibrium."
)
POINTS: Final[dict[str, Any]] = {"ms": 2.2, "elinewidth": 0.6, "capthick": 0.6}
_OPEN: Final[dict[str, Any]] = {"ms": 2.6, "mfc": "white", "mew": 0.6, "linestyle": "none"}
_FORMULAS: Final[dict[str, str | Callable[[re.Match[str]], str]]] = {
    r"\bq_link\b": r"$q_\\ell$",
    r"\bq\^2": r"$q^2$",
    r"\b(Gamma|beta)(?= = )": r"\\\1",
    r"(\\?\b\w+ = -?\d+(\.\d+)?(\([\d.]+\))?)": r"$\1$",
    "%": r"\\%",
    r"\b\d+( x \d+)+\b": lambda match: curve_label(match[0]),
}
"""Patterns of formulas in plain text."""
_CURVES: Final = 5  # temperatures whose curves are drawn
_FEWEST_FOR_SLOPE: Final = 10  # temperatures
_WRITTEN_OUT: Final = 100  # ratio of the ends of a logarithmic axis


class PaperFigure(Figure):
    """A figure of one width, with its caption in whole sentences, whose formulas are as LaTeX writes them."""

    def __init__(self, style: str, height: float, layout: Literal["constrained", "compressed"] = "constrained") -> None:
        if style not in STYLES:
            raise InputError(f"style {style!r} is unknown: choose {' or '.join(STYLES)}")
        super().__init__(figsize=(STYLES[style], height), layout=layout)
        self.caption = ""


def lay_panels(style: str, count: int, height: float, xlabel: str = "") -> tuple[PaperFigure, list[Axes]]:
    """Panels, ``height`` each, under each other or up to three in a row; the lowest have ``xlabel``."""
    in_a_row = 1 if style == "single" else 2 if count == 4 else min(count, _IN_A_ROW)
    rows = -(-count // in_a_row)
    figure = PaperFigure(style, _LEGEND + rows * height)
    axes = list(figure.subplots(rows, in_a_row, sharex=bool(xlabel), squeeze=False).flat)
    for ax in axes[count:]:
        ax.remove()
    if xlabel:
        for ax in axes[max(0, count - in_a_row) : count]:
            ax.tick_params(labelbottom=True)
            ax.set_xlabel(xlabel)
    return figure, axes[:count]


@contextmanager
def drawn_panels(style: str, count: int, height: float, xlabel: str = "") -> Iterator[tuple[PaperFigure, list[Axes]]]:
    """Panels of ``lay_panels``; several have letters, aligned labels and one legend."""
    with matplotlib.style.context(PAPER):
        figure, axes = lay_panels(style, count, height, xlabel)
        if count > 1:
            for letter, ax in zip(ascii_lowercase, axes, strict=False):
                ax.set_title(f"({letter})", loc="left")
        yield figure, axes
        figure.align_ylabels()
        draw_legend(figure, *axes)


def bar_figure(names: list[str], values: dict[str, npt.NDArray[np.float64]], label: str) -> Figure:
    """Horizontal bars: a group for each name, from the top, in it a bar for each series; NaN where there is none."""
    colours = (BLUE, ORANGE, VERMILION, GREY)
    with matplotlib.style.context(PAPER):
        figure = Figure(figsize=(STYLES["single"], 0.8 + 0.06 * len(names) * (1 + len(values))), layout="constrained")
        axes = figure.subplots()
        height, middle = 0.8 / len(values), np.arange(len(names), dtype=np.float64)
        for i, (series, lengths) in enumerate(values.items()):
            axes.barh(middle - 0.4 + (i + 0.5) * height, lengths, height, color=colours[i % len(colours)], label=series)
        axes.set_yticks(middle, names)
        axes.yaxis.set_minor_locator(NullLocator())
        axes.tick_params(axis="y", length=0)
        axes.invert_yaxis()
        axes.set_xlabel(label)
        axes.legend()
    return figure


def save_figure(figure: Figure, path: Path, overwrite: bool = False) -> None:
    """Write a figure as PDF with embedded TrueType fonts, as PNG of 300 dpi or as SVG, by the suffix.

    The caption of a ``PaperFigure`` goes into a text file of the same name. An equal figure may exist already. Another
    figure of that format, and its caption, is replaced with ``overwrite``; no other file ever is.
    """
    save_figures({path: figure}, overwrite)


def save_figures(figures: Mapping[Path, Figure], overwrite: bool = False) -> None:
    """Write several figures like ``save_figure``; none is written where one of them may not be."""
    outputs = {path: _picture(figure, path) for path, figure in figures.items()}
    for path, figure in figures.items():
        if isinstance(figure, PaperFigure):
            lines = textwrap.wrap(CAPTION + figure.caption, _COLUMNS, break_long_words=False, break_on_hyphens=False)
            outputs[path.with_suffix(".txt")] = "caption", ("\n".join(lines) + "\n").encode()
    write_outputs(outputs, overwrite)


def _picture(figure: Figure, path: Path) -> tuple[str, bytes]:
    """Format named by the suffix, and the content of the file."""
    kind = path.suffix[1:].lower()
    if kind not in FORMATS:
        suffixes = f".{', .'.join(FORMATS[:-1])} or .{FORMATS[-1]}"
        raise InputError(f"{path} is not a figure that spinsim can write: its suffix must be {suffixes}")
    picture = io.BytesIO()
    with matplotlib.style.context(PAPER):
        figure.savefig(picture, format=kind, metadata=dict.fromkeys(_STAMPS[kind]))
    return kind, picture.getvalue()


def draw_legend(figure: Figure, *axes: Axes) -> None:
    """One legend for all panels, above them, in as few rows as fit the width; error bars come first."""
    unique: dict[str, Any] = {}
    for ax in axes:
        pairs = zip(*ax.get_legend_handles_labels(), strict=True)  # error bars, which matplotlib lists last, come first
        for handle, label in sorted(pairs, key=lambda pair: not isinstance(pair[0], Container)):
            unique.setdefault(label, handle)
    most = min(len(unique), _LEGEND_COLUMNS)
    even = {-(-len(unique) // rows) for rows in range(1, len(unique) + 1)}  # numbers of columns that fill their rows
    for columns in sorted((k for k in even if k <= most), reverse=True):
        labels = [label for column in range(columns) for label in list(unique)[column::columns]]  # read row by row
        handles = [unique[label] for label in labels]
        legend = figure.legend(
            handles, labels, loc="outside upper center", ncols=columns, handlelength=1.6, columnspacing=1.4
        )
        box = legend.get_tightbbox()
        if columns == 1 or box is None or box.width <= figure.bbox.width:
            break
        legend.remove()


def is_constant(temperature: Array) -> bool:
    return bool(np.all(temperature == temperature[0]))


def is_onsager(model: Ising) -> bool:
    """Return True if the model is a periodic square ferromagnet with equal couplings in zero field."""
    lattice = model.lattice
    return lattice is not None and lattice.name == "square" and exact_transition(model) is not None


def exact_transition(model: Ising) -> float | None:
    """Exact T_c of the infinite lattice, of a periodic ferromagnet with equal couplings in zero field; else None."""
    lattice = model.lattice
    if lattice is None or lattice.name not in onsager.CRITICAL_TEMPERATURES or lattice.present_bonds() is not None:
        return None
    if model.magnitude is None or model.extreme_couplings[0] <= 0 or np.any(model.fields):
        return None
    return model.coupling_unit * onsager.CRITICAL_TEMPERATURES[lattice.name]


class Mark(NamedTuple):
    """A place on the axis of the ladder, such as an exact T_c, and its label."""

    place: float
    label: str


def draw_mark(ax: Axes, mark: Mark | None) -> None:
    """Draw a dotted vertical line at a mark within the panel; none for None."""
    low, high = ax.get_xlim()
    if mark is not None and low < mark.place < high:
        ax.axvline(mark.place, color=GREY, lw=0.8, ls=":", zorder=1, label=mark.label)


def without_unit(label: str) -> str:
    """Label of an axis without its unit, for captions."""
    return label.partition(" (")[0]


def ladder_label(axis: Axis) -> str:
    return _LADDERS[axis.name]


def curve_label(size: str) -> str:
    return "${}$".format(size.replace("x", r"\times"))


def run_text(result: Tempered) -> str:
    """Size and samples of a run, such as "8 x 8 x 8, 4 samples of 2 copies"."""
    copies = choice_of(result).copies
    return _text(result.model, f"{copies} cop" + ("ies" if copies > 1 else "y"))


def runs_text(results: Iterable[Tempered]) -> str:
    """Model, size and samples of each run."""
    return "; ".join(f"{result.model.name}, {run_text(result)}" for result in results)


def replicas_text(result: Any) -> str:
    """Size, samples and replicas of a run whose energies are (steps, samples, replicas)."""
    return _text(result.model, count(result.energy.shape[2], "replica"))


def _text(model: Ising, each: str) -> str:
    """Size of space ("N = 100" unless a lattice of two dimensions or more), slices and samples."""
    lattice, slices, samples = in_space(model), model.graph.slices, model.samples
    size = f"${sides(lattice)}$" if lattice and lattice.dimension > 1 else f"$N = {model.sites // slices}$"
    in_time = f", {slices} slices" if slices > 1 else ""
    return f"{size}{in_time}, " + (f"{samples} samples of {each}" if samples > 1 else each)


def sides(lattice: Lattice) -> str:
    return r" \times ".join(map(str, lattice.shape))


def mark_crossing(ax: Axes, x: float, y: float, error: float, colours: tuple[str, str]) -> None:
    """Draw a diamond with the colours of the two curves that cross, and a bar where the error is known."""
    bar = None if np.isnan(error) else [error]
    diamond: dict[str, Any] = {"fillstyle": "left", "mfc": colours[0], "markerfacecoloralt": colours[1], "mec": "black"}
    ax.errorbar([x], [y], xerr=bar, fmt="D", ms=4.2, mew=0.5, color="black", elinewidth=0.6, capthick=0.6, zorder=4,
                label=CROSSINGS, **diamond)  # fmt: skip


def curve_styles(count: int) -> list[tuple[str, str]]:
    """Colour and marker of each of several curves; colours begin again where there are more than there are colours."""
    return list(islice(zip(cycle(COLOURS), cycle(MARKERS)), count))


def in_math(text: str) -> str:
    """Convert the plain formulas of a verdict or a crossing to the mathtext of captions."""
    for plain, formula in _FORMULAS.items():
        text = re.sub(plain, formula, text)
    return text


def show_zero(ax: Axes) -> None:
    """Let a positive quantity's axis begin just below 0."""
    high = ax.get_ylim()[1]
    ax.set_ylim(-0.05 * high, 1.02 * high)


def draw_exact(
    ax: Axes, temperature: Array, exact: Callable[[Array, float], Array], coupling: float, highest: float | None = None
) -> None:
    """Draw the infinite lattice over the range of the data, no higher than ``highest`` times the top of the data."""
    if not ax.containers:
        return
    top = ax.get_ylim()[1]
    style: dict[str, Any] = {"color": GREY, "linewidth": 0.8, "zorder": 1, "label": r"exact, $L = \infty$"}
    # m falls like (T_c - T)^(1/8): its foot needs points much closer to T_c than an even grid has
    near = coupling * np.geomspace(1e-9, 0.1, 100)
    critical = coupling * onsager.CRITICAL_TEMPERATURE
    low, high = temperature.min(), temperature.max()
    grid = np.unique(np.concatenate([np.linspace(low, high, 500), critical - near, critical + near]))
    grid = grid[(grid >= low) & (grid <= high)]
    x = ax.get_xlim() if is_constant(temperature) else grid
    ax.plot(x, np.broadcast_to(exact(grid, coupling), len(x)), **style)
    if highest is not None:
        ax.set_ylim(top=min(ax.get_ylim()[1], highest * top))


def draw_estimate(
    ax: Axes, x: Array, estimate: Estimate, colour: str, label: str, joined: bool = False, marker: str = "o"
) -> bool:
    """Draw points with error bars, open ones without a bar where the error is unknown; return True if any are open."""
    value, error = estimate.value, estimate.error
    known = estimate.trusted & np.isfinite(error)
    line: dict[str, Any] = {"fmt": marker}
    if joined:  # in one artist with the points, so that its key in the legend has the line too
        line = {"fmt": f"{marker}-", "lw": 0.6, "markevery": np.flatnonzero(known).tolist(), "zorder": 2}
    ax.errorbar(
        x, value if joined else np.where(known, value, np.nan), np.where(known, error, np.nan),
        mec="none", color=colour, label=label, **line, **POINTS,
    )  # fmt: skip
    unknown = ~known & np.isfinite(value)
    if unknown.any():
        ax.plot(x[unknown], value[unknown], marker=marker, mec=colour, label=UNKNOWN_ERROR, **_OPEN)
    return bool(unknown.any())


def is_off_scale(temperature: Array, energy: Array, heat: Array) -> Bools:
    """Mark specific heats above twice the largest dE/dT over thirtieths of the range; none if all would be marked.

    In equilibrium dE/dT is the specific heat. Out of equilibrium the spread of energies can dwarf all other values.
    """
    none = np.zeros(len(heat), np.bool_)
    if len(temperature) < _FEWEST_FOR_SLOPE or is_constant(temperature):
        return none
    order = np.argsort(temperature, kind="stable")
    grid, step = np.linspace(temperature.min(), temperature.max(), 31, retstep=True)
    slope = float(np.diff(np.interp(grid, temperature[order], energy[order])).max() / step)
    beyond = np.asarray(heat > 2 * slope)
    return beyond if slope > 0 and (heat <= 2 * slope).any() else none


def mark_off_scale(ax: Axes, x: Array) -> None:
    if len(x):
        place: dict[str, Any] = {"transform": ax.get_xaxis_transform(), "clip_on": False, "ms": 2.5, "mec": "none"}
        ax.plot(x, np.full(len(x), 1.04), "^", color=VERMILION, label=BEYOND, **place)


def some_temperatures(temperature: Array) -> list[tuple[int, Any]]:
    """Indices and colours of up to five temperatures, evenly chosen from the lowest to the highest."""
    chosen = sorted({round(k * (len(temperature) - 1) / (_CURVES - 1)) for k in range(_CURVES)})
    return list(zip(chosen, colormaps["plasma"](np.linspace(0, 0.85, len(chosen))), strict=True))


def scale_logarithmically(ax: Axes, which: Literal["x", "y"] = "y") -> None:
    """Make an axis logarithmic; over less than two decades its numbers are written out: 0.5, 1, 2, 5."""
    axis = ax.yaxis if which == "y" else ax.xaxis
    ax.set(**{f"{which}scale": "log"})
    low, high = ax.get_ylim() if which == "y" else ax.get_xlim()
    if high < _WRITTEN_OUT * low:
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.set_major_formatter("{x:g}")
        axis.set_minor_formatter(NullFormatter())


def tick_integers(axis: PanelAxis) -> None:
    """Ticks at whole numbers only, for sites and steps: there is nothing between two."""
    axis.set_major_locator(MaxNLocator(nbins=6, steps=[1, 2, 5, 10], integer=True, min_n_ticks=1))
    axis.set_minor_locator(NullLocator())
