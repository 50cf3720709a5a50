"""``spinsim view``: saved configurations as a picture or an animation."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from spinsim.cli import flags
from spinsim.cli.flags import Whole
from spinsim.cli.saying import say


def view(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A file of a run with --save-configurations.")],
    sample: Annotated[int, Whole(help="Disorder sample.")] = 0,
    copy: Annotated[int | None, Whole(help="Copy at each temperature.  [0]")] = None,
    row: Annotated[int, Whole(help="Saved row of a picture, -1 for the last.")] = -1,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="pdf, png or svg for a picture, gif or mp4 for an animation.  [<FILE>-spins.png]"
        ),
    ] = None,
    overwrite: flags.Overwrite = False,
) -> None:
    """Draw saved configurations: the spins at up to eight temperatures, or layers of a lattice of three dimensions.

    With an --out that ends in .gif or .mp4 (which takes ffmpeg), draw an animation of up to 200 saved rows.
    """
    from spinsim.analysis.figures import save_figure
    from spinsim.analysis.figures.configurations import Panels
    from spinsim.machine.outputs import write_outputs
    from spinsim.result import load
    from spinsim.saved import configurations

    panels = Panels(configurations(file), load(file).model.lattice, sample, copy)
    path = out or file.with_name(f"{file.stem}-spins.png")
    kind = path.suffix.lower().removeprefix(".")
    if kind in ("gif", "mp4"):
        write_outputs({path: (kind, panels.animation(kind))}, overwrite)
    else:
        save_figure(panels.draw(row), path, overwrite)
    say(path)
