"""Pictures of saved configurations, a panel for each place of a ladder and layer of a lattice, and animations."""

from __future__ import annotations

import io
import math
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any, Final, Literal

import matplotlib.style
import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.collections import EllipseCollection
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure

from spinsim.analysis.figures.paper import BLUE, ORANGE, PAPER, PaperFigure
from spinsim.errors import InputError, argument
from spinsim.model.lattice import Lattice
from spinsim.saved import Configurations

_IN_A_ROW: Final = 4
_MOST_PLACES: Final = 8
_MOST_PLACES_IN_LAYERS: Final = 3
_MOST_FRAMES: Final = 200
_MOST_SITES: Final = 2**24
_MILLISECONDS: Final = 100  # of a frame
_DOTS: Final = 110  # an inch


class Panels:
    """Panels of one row of saved configurations, which can show another row.

    Args:
        saved: The configurations.
        lattice: The lattice that they lie on, with time as its first axis where there is time; None is refused.
        sample: Disorder sample.
        copy: Copy at each temperature, by default the first; runs of ``anneal`` have a panel for each replica.

    Raises:
        InputError: for a model without a lattice, a number that is not in the run, and lattices too large to draw.
    """

    def __init__(
        self, saved: Configurations, lattice: Lattice | None, sample: int = 0, copy: int | None = None
    ) -> None:
        if lattice is None:
            raise InputError("the run is of a graph without a lattice: there is no picture of its configurations")
        if saved.sites > _MOST_SITES:
            raise InputError(f"a configuration of {saved.sites} sites is too large to draw: at most {_MOST_SITES}")
        if not len(saved):
            raise InputError("the run has saved no configuration yet: let it go on")
        self.saved, self.lattice = saved, lattice
        if copy is not None and "copy" not in saved.axes:
            raise InputError(f"{argument('copy', copy)} is for runs of temper and quantum: leave it out")
        copies = [self._number("copy", copy or 0)] if "copy" in saved.axes else []
        self.chosen = (self._number("sample", sample), *copies)
        self.name, places = list(saved.axes.items())[-1]
        self.layers = _spread(math.prod(lattice.shape[2:]), _IN_A_ROW)
        self.places = _spread(len(places), _MOST_PLACES if len(self.layers) == 1 else _MOST_PLACES_IN_LAYERS)
        self._drawn: list[Any] = []

    def draw(self, row: int) -> PaperFigure:
        """A figure of one saved row, the last one for -1."""
        count = len(self.places) * len(self.layers)
        across = (3 if count in (5, 6) else min(count, _IN_A_ROW)) if len(self.layers) == 1 else len(self.layers)
        down = -(-count // across)
        width, height = self._extent()
        with matplotlib.style.context(PAPER):
            panel = min(7.0 / across, 3.0)
            figure = PaperFigure("double", 0.4 + down * (0.25 + min(max(panel * height / width, 0.3), 4.0)))
            axes = list(figure.subplots(down, across, squeeze=False).flat)
            for ax in axes[count:]:
                ax.remove()
            self._drawn = [self._panel(ax) for ax in axes[:count]]
            for ax, title in zip(axes, self._titles(), strict=False):
                ax.set(xticks=[], yticks=[], title=title)
            self.show(figure, row)
        where = f"sample {self.chosen[0]}, saved row {row % self.saved.shape[0]}"
        figure.caption = f"Configurations of {where}. Spins +1 are orange and -1 blue."
        return figure

    def show(self, figure: Figure, row: int) -> None:
        """Show another saved row."""
        spins = self.saved.row(self._number("step", row, "row"))[self.chosen]
        for artist, (place, layer) in zip(self._drawn, product(self.places, self.layers), strict=True):
            flat = spins[place].reshape(math.prod(self.lattice.shape[2:]), -1)[layer]
            if self.lattice.joins_layers:
                artist.set_data(flat.reshape(-1, self.lattice.shape[0]))
            else:
                artist.set_facecolor(np.where(flat > 0, ORANGE, BLUE).tolist())
        sweeps = self.saved.label("sweep").reshape(self.saved.shape[0], -1)[row, 0]
        figure.suptitle(f"{sweeps} sweeps", fontsize=8)

    def animation(self, kind: str = "gif") -> bytes:
        """The content of a ``gif`` or ``mp4`` file that shows all saved rows, or 200 of them evenly chosen.

        Raises:
            InputError: for an ``mp4`` where ffmpeg is not installed or fails.
        """
        figure = self.draw(0)
        with matplotlib.style.context(PAPER):
            return (_film if kind == "mp4" else _gif)(figure, self._frames(figure))

    def _frames(self, figure: Figure) -> Iterator[None]:
        for row in _spread(self.saved.shape[0], _MOST_FRAMES):
            self.show(figure, row)
            yield

    def _number(self, axis: str, number: int, word: str = "") -> int:
        """Index along an axis; negative numbers count from its end."""
        length = len(self.saved.axes[axis])
        if not -length <= number < length:
            name = argument(word or axis, number)
            raise InputError(f"{name} is not in the run: give a number from 0 to {length - 1}")
        return number % length

    def _titles(self) -> list[str]:
        values = self.saved.axes[self.name]
        symbol = {"temperature": "T", "gamma": r"\Gamma", "beta": r"\beta"}.get(self.name, self.name)
        form = "replica {0}" if self.name == "replica" else f"${symbol} = {{1:.4g}}$"
        form += ", layer {2}" if len(self.layers) > 1 else ""
        return [form.format(place, values[place], layer) for place, layer in product(self.places, self.layers)]

    def _extent(self) -> tuple[float, float]:
        if self.lattice.joins_layers:
            return self.lattice.shape[0], (*self.lattice.shape, 1)[1]
        width, height = np.ptp(self.lattice.site_positions(), axis=0) + 1
        return float(width), float(height)

    def _panel(self, ax: Axes) -> Any:
        """Draw an empty panel and return the artist that shows spins."""
        if not self.lattice.joins_layers:
            return draw_discs(ax, self.lattice.site_positions())
        width, height = self._extent()
        empty = np.zeros((int(height), int(width)))
        colours = ListedColormap([BLUE, ORANGE])
        aspect: Literal["auto", "equal"] = "auto" if height == 1 else "equal"
        return ax.imshow(empty, cmap=colours, vmin=-1, vmax=1, interpolation="none", origin="lower", aspect=aspect)


def _gif(figure: Figure, frames: Iterator[None]) -> bytes:
    """A GIF file of a figure that changes from frame to frame."""
    from PIL import Image

    images, content = [], io.BytesIO()
    for _ in frames:
        picture = io.BytesIO()
        figure.savefig(picture, format="png", dpi=_DOTS)
        images.append(Image.open(picture).convert("P", palette=Image.Palette.ADAPTIVE))
    images[0].save(content, "GIF", save_all=True, append_images=images[1:], duration=_MILLISECONDS, loop=0)
    return content.getvalue()


def _film(figure: Figure, frames: Iterator[None]) -> bytes:
    """An MP4 file of a figure that changes from frame to frame, made by ffmpeg."""
    from matplotlib.animation import FFMpegWriter

    if not FFMpegWriter.isAvailable():
        raise InputError("an mp4 film is made by ffmpeg, which is not installed: install it, or give a .gif")
    writer = FFMpegWriter(fps=1000 // _MILLISECONDS)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "film.mp4")
        try:
            with writer.saving(figure, str(path), _DOTS):
                for _ in frames:
                    writer.grab_frame()
            return path.read_bytes()
        except (OSError, subprocess.CalledProcessError) as error:
            raise InputError(f"ffmpeg has failed to make the film ({error}): give a .gif instead") from error


def draw_discs(ax: Axes, positions: npt.NDArray[np.float64]) -> EllipseCollection:
    """Draw a disc at each position, with the distance of neighbours as diameter."""
    one = np.ones(len(positions))
    discs = EllipseCollection(
        *(one, one, 0 * one), units="xy", offsets=positions, offset_transform=ax.transData, linewidths=0
    )
    ax.add_collection(discs)
    low, high = positions.min(axis=0) - 0.6, positions.max(axis=0) + 0.6
    ax.set_xlim(low[0], high[0])
    ax.set_ylim(low[1], high[1])
    ax.set_aspect("equal")
    return discs


def _spread(count: int, most: int) -> Sequence[int]:
    """Numbers from 0 to ``count`` - 1, or ``most`` of them with both ends, evenly spaced."""
    return [int(number) for number in np.unique(np.linspace(0, count - 1, min(count, most)).round())]
