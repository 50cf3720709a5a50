"""``spinsim plot``: figures fit for a paper; ``spinsim view``: saved configurations as a picture or an animation."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from spinsim.cli import flags
from spinsim.cli.flags import Flag, Real, Whole
from spinsim.cli.saying import say
from spinsim.errors import InputError
from spinsim.inputs.texts import either, quoted, wrapped
from spinsim.jobs import all_jobs, job_of
from spinsim.jobs.base import Drawing, FigureSet, Job

_LONGEST: Final = 120  # largest length of the file stems in the name of a figure


def plot(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE", help="A file that spinsim wrote, or temper, quantum or transfer files of several sizes."
        ),
    ],
    figure_name: Annotated[
        str,
        Flag(
            "--what",
            help="all, or one: thermodynamics, configuration or landscape of an anneal run; thermodynamics, order, "
            "walks, overlap, exchange, equilibration, density or an analysis (see spinsim analyze --what) of a temper "
            "run; thermodynamics, order, walks, time, gaps or local of a quantum run; correlation, length or protocol "
            "of an evolve run; density of a multicanonical run; cut of a MaxCut run; crossings or thermodynamics of "
            "several sizes and, where asked for, collapse or estimates; lengths of transfer runs.",
        ),
    ] = "all",
    sample: Annotated[int | None, Whole(help="Disorder sample of the configuration.  [0]")] = None,
    observable: Annotated[
        str | None,
        Flag(
            help="Of several sizes: overlap, magnetization or staggered_magnetization.  [magnetization of "
            "ferromagnets, staggered_magnetization of antiferromagnets, else overlap]"
        ),
    ] = None,
    columns: Annotated[
        str | None,
        Flag(help="Averages to draw as thermodynamics or crossings, such as binder_cumulant,overlap_binder_cumulant."),
    ] = None,
    near: Annotated[float | None, Real(help="Temperature (k, Gamma, beta) near which to look for crossings.")] = None,
    mark: Annotated[
        float | None, Real(help="Place of a dotted line, such as a published T_c.  [the exact T_c if there is one]")
    ] = None,
    average: Annotated[
        str | None,
        Flag(help="Average of xi over samples of transfer runs: mean, or typical, which is exp[ln xi].  [mean]"),
    ] = None,
    out: Annotated[
        str | None,
        Flag(
            metavar="FILE or FOLDER/",
            help="Figure file, or a folder for figures named <stems of the FILEs>-<what>.pdf.  [the folder of the "
            "first FILE]",
        ),
    ] = None,
    suffix: Annotated[str | None, Flag("--format", help="pdf, png or svg.  [the suffix of --out, else pdf]")] = None,
    style: Annotated[str, Flag(help="single or double: as wide as one column or as two.")] = "single",
    overwrite: flags.Overwrite = False,
) -> None:
    """Draw figures for a paper: the measurements of a run, its lowest state, or runs of several sizes together.

    Files that differ only in seeds, disorder, sweeps and thermalize are drawn as one run of all their samples.

    The caption of a figure is a text file of the same name in the same folder; for some figures it has the verdict.
    """
    from spinsim.analysis.figures import FORMATS, STYLES, save_figures
    from spinsim.machine.files import check_output
    from spinsim.pooling import gathered, pool_of
    from spinsim.result import load

    if style not in STYLES:
        raise InputError(f"style {style!r} is unknown: choose {' or '.join(STYLES)}")
    folder, file = _folder_and_file(out, files[0])
    if file and suffix and file.suffix[1:].lower() != suffix.lower():
        raise InputError(f"--out {out} and --format {suffix} disagree: leave one of them out")
    if file and file.suffix[1:].lower() in FORMATS:
        check_output(file, file.suffix[1:].lower(), overwrite=True)  # refuses other files, such as results
    runs = gathered(files, [load(file) for file in files])
    results = [run for _, run in runs]
    for pool in map(pool_of, results):
        if pool is not None and pool.difference:
            say(*wrapped(pool.difference), err=True)
    job = _job_of_all([of[0] for of, _ in runs], results)
    chosen = job.figures if len(results) == 1 else job.figures_of_several
    given = {
        "sample": sample,
        "observable": observable,
        "columns": columns,
        "near": near,
        "mark": mark,
        "average": average,
    }
    options = {name: value for name, value in given.items() if value is not None}
    _check_figure(job, figure_name, files, results)
    _check_options(job, chosen, figure_name, options)
    figures = job.draw(results, Drawing(figure_name, style, options, say, partial(say, err=True)))
    if file and figure_name == "all" and len(figures) > 1:
        raise InputError(
            f"--out {out} names one figure of {', '.join(figures)}: add --what and one of these, or name a folder"
        )
    drawn = {
        file or folder / f"{_stem(files)}-{name}.{suffix or 'pdf'}": draw()
        for name, draw in figures.items()
        if figure_name in ("all", name)
    }
    save_figures(drawn, overwrite)
    say(*drawn)
    say("Captions are beside them, in files that end in .txt." if len(drawn) > 1 else
               "Its caption is beside it, in a file that ends in .txt.", err=True)  # fmt: skip


def _folder_and_file(out: str | None, first: Path) -> tuple[Path, Path | None]:
    """Return the folder of the figures, and the file if ``out`` names one; a folder exists or ends in /."""
    if not out:
        return first.parent, None
    path = Path(out)
    return (path, None) if out.endswith(("/", os.sep)) or path.is_dir() else (path.parent, path)


def _stem(files: list[Path]) -> str:
    """Return the start of the figures' names, from the stems and folders of all files; a digest replaces many."""
    import hashlib

    names = [file.stem if file.parent == files[0].parent else f"{file.parent.name}-{file.stem}" for file in files]
    together = "+".join(names)
    if len(together) <= _LONGEST:
        return together
    digest = hashlib.sha256("\0".join(map(str, files)).encode(errors="surrogateescape")).hexdigest()
    return f"{names[0][:_LONGEST]}+{len(files) - 1}-more-{digest[:8]}"


def _job_of_all(files: list[Path], results: list[Any]) -> Job:
    jobs = [job_of(result.job) for result in results]
    for file, job in zip(files, jobs, strict=True):
        if len(files) > 1 and not job.figures_of_several.names:
            together = " or ".join(other.name for other in all_jobs() if other.figures_of_several.names)
            raise InputError(
                f"{file} holds {job.a_run}: of several files only {together} runs are drawn together, "
                f"give {job.a_run.removesuffix('run')}file alone"
            )
        if job is not jobs[0]:
            raise InputError(f"{file} holds {job.a_run} and {files[0]} {jobs[0].a_run}: give files of one job")
    return jobs[0]


def _check_figure(job: Job, figure: str, files: list[Path], results: list[Any]) -> None:
    chosen = job.figures if len(results) == 1 else job.figures_of_several
    if figure in ("all", *chosen.names):
        return
    if figure in job.figures_of_several.names:
        raise InputError(f"{files[0]} alone has no {figure}: give {job.name} files of two sizes or more")
    figures = either(("all", *job.draw(results, Drawing())))
    if len(results) > 1:
        raise InputError(f"there is no figure {figure!r} of several {job.name} files: choose {figures}")
    raise InputError(f"{files[0]} holds {job.a_run} and has no figure {figure!r}: choose {figures}")


def _check_options(job: Job, chosen: FigureSet, figure: str, options: Mapping[str, object]) -> None:
    sets = [one for known in (job, *all_jobs()) for one in (known.figures, known.figures_of_several)]
    for name in options:
        option = chosen.options.get(name) or next(one.options[name] for one in sets if name in one.options)
        if name not in chosen.options:
            raise InputError(f"--{name} is for {option.purpose}: leave it out")
        if figure not in ("all", *option.figures):
            raise InputError(f"--{name} is for {option.purpose}: leave it out, or ask for --what {option.figures[0]}")


def view(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A file of a run with --save-configurations.")],
    sample: Annotated[int, Whole(help="Disorder sample.")] = 0,
    copy: Annotated[int | None, Whole(help="Copy at each temperature.  [0]")] = None,
    row: Annotated[int, Whole(help="Saved row of a picture, -1 for the last.")] = -1,
    out: Annotated[
        Path | None,
        Flag(metavar="FILE", help="pdf, png or svg for a picture, gif or mp4 for an animation.  [<FILE>-spins.png]"),
    ] = None,
    overwrite: flags.Overwrite = False,
) -> None:
    """Draw saved configurations: the spins at up to eight temperatures, or layers of a three-dimensional lattice.

    If --out ends in .gif or .mp4 (which requires ffmpeg), draw an animation of up to 200 saved rows.
    """
    from spinsim.analysis.figures import save_figure
    from spinsim.analysis.figures.configurations import Panels
    from spinsim.machine.files import write_outputs
    from spinsim.result import load
    from spinsim.saved import configurations

    result = load(file)
    job = job_of(result.job)
    if "save_configurations" not in flags.places_of(job.config):
        raise InputError(f"{file} holds {job.a_run}, which has no configurations: spinsim plot {quoted(file)} draws it")
    panels = Panels(configurations(result), result.model.embedding, sample, copy)
    path = out or file.with_name(f"{file.stem}-spins.png")
    kind = path.suffix.lower().removeprefix(".")
    if kind in ("gif", "mp4"):
        write_outputs({path: (kind, panels.animation(kind))}, overwrite)
    else:
        save_figure(panels.draw(row), path, overwrite)
    say(path)
