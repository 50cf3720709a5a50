"""Figures for a paper: one column wide or two, 8 pt, Okabe-Ito colours, the same bytes for the same result.

Figures are ``Figure`` objects, never pyplot's, need no display, and have the caption that a paper needs. Colours:
M. Okabe, K. Ito, Color Universal Design (2008), https://jfly.uni-koeln.de/color. Sizes in inches.
"""

from __future__ import annotations

import io
import textwrap
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Literal

import matplotlib.style
import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.container import Container
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from spinsim.errors import InputError
from spinsim.machine.files import CAPTION, write_outputs

FORMATS: Final = ("pdf", "png", "svg")

STYLES: Final = {"single": 3.4, "double": 7.0}  # widths: of a column, and of a page of two
_IN_A_ROW: Final = 3  # panels across two columns
_LEGEND: Final = 0.4  # height that is set aside for it
_LEGEND_COLUMNS: Final = 6
_COLUMNS: Final = 100  # of a caption's lines
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
MARKERS: Final = ("o", "s", "^", "D", "v", "P")  # for those who print without colours
_STYLE: Final[dict[str, Any]] = {
    "font.family": "STIXGeneral",
    "mathtext.fontset": "stix",
    "font.size": 8,
    "axes.titlesize": 8,
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
    "svg.hashsalt": "spinsim",  # else names in the file are random
}
PAPER: Final[list[str | dict[str, Any]]] = ["default", _STYLE]  # a user's matplotlibrc changes nothing


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
    """Panels as ``lay_panels`` lays them; when they are drawn their labels are aligned and have one legend."""
    with matplotlib.style.context(PAPER):
        figure, axes = lay_panels(style, count, height, xlabel)
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
    """Write a figure as PDF with embedded TrueType fonts, as PNG of 300 dpi or as SVG, whichever the suffix says.

    The caption of a ``PaperFigure`` goes into a text file of the same name beside it. The same figure may be there
    already; another of that format, and its caption, is replaced with ``overwrite``, nothing else ever is.
    """
    save_figures({path: figure}, overwrite)


def save_figures(figures: Mapping[Path, Figure], overwrite: bool = False) -> None:
    """The same of several figures: none is written where one of them may not be."""
    outputs = {path: _picture(figure, path) for path, figure in figures.items()}
    for path, figure in figures.items():
        if isinstance(figure, PaperFigure):
            lines = textwrap.wrap(CAPTION + figure.caption, _COLUMNS, break_long_words=False, break_on_hyphens=False)
            outputs[path.with_suffix(".txt")] = "caption", ("\n".join(lines) + "\n").encode()
    write_outputs(outputs, overwrite)


def _picture(figure: Figure, path: Path) -> tuple[str, bytes]:
    """The format that a suffix says, and the content of the file."""
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
