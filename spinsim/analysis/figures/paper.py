"""Figures for a paper: single column, 8 pt, Okabe-Ito colours, the same bytes for the same result.

Figures are plain ``Figure`` objects, never pyplot's, and need no display. Colours: M. Okabe, K. Ito, Color Universal
Design (2008), https://jfly.uni-koeln.de/color. Sizes in inches.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import matplotlib.style
from matplotlib.axes import Axes
from matplotlib.container import Container
from matplotlib.figure import Figure

from spinsim.errors import InputError
from spinsim.outputs import write_outputs

FORMATS: Final = ("pdf", "png")

WIDTH: Final = 3.4
BLUE: Final = "#0072B2"
ORANGE: Final = "#E69F00"
VERMILION: Final = "#D55E00"
GREEN: Final = "#009E73"
PURPLE: Final = "#CC79A7"
SKY: Final = "#56B4E9"
GREY: Final = "#7F7F7F"
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
PAPER: Final[list[str | dict[str, Any]]] = ["default", _STYLE]  # a user's matplotlibrc changes nothing


def save_figure(figure: Figure, path: Path, overwrite: bool = False) -> None:
    """Write a figure as PDF with embedded TrueType fonts or as PNG of 300 dpi, whichever the suffix says.

    Args:
        figure: The figure.
        path: The new file; the same figure may be there already.
        overwrite: Whether another figure of that format is replaced; nothing else ever is.

    Raises:
        InputError: for another suffix, where another file is there, and where it cannot be written.
    """
    save_figures({path: figure}, overwrite)


def save_figures(figures: Mapping[Path, Figure], overwrite: bool = False) -> None:
    """The same of several figures: none is written where one of them may not be."""
    write_outputs({path: _picture(figure, path) for path, figure in figures.items()}, overwrite)


def _picture(figure: Figure, path: Path) -> tuple[str, bytes]:
    """The format that a suffix says, and the content of the file."""
    kind = path.suffix[1:].lower()
    if kind not in FORMATS:
        raise InputError(f"{path} is not a figure that spinsim can write: its suffix must be .{' or .'.join(FORMATS)}")
    picture = io.BytesIO()
    with matplotlib.style.context(PAPER):
        # a date or a version in the metadata would make equal figures differ
        figure.savefig(picture, format=kind, metadata={"CreationDate" if kind == "pdf" else "Software": None})
    return kind, picture.getvalue()


def draw_legend(figure: Figure, *axes: Axes) -> None:
    """One legend for all panels, above them, where it hides nothing; error bars, which matplotlib lists last, first."""
    found = [pair for ax in axes for pair in sorted(zip(*ax.get_legend_handles_labels(), strict=True), key=_is_line)]
    unique: dict[str, Any] = {}
    for handle, label in found:
        unique.setdefault(label, handle)
    figure.legend(unique.values(), unique.keys(), loc="outside upper center", ncols=2, handlelength=1.6)


def _is_line(pair: tuple[object, str]) -> bool:
    return not isinstance(pair[0], Container)
