"""``spinsim plot``: figures fit for a paper."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spinsim.cli import flags
from spinsim.cli.plot_transfer import FIGURE as LENGTHS
from spinsim.cli.plot_transfer import is_transfer, plot_transfer
from spinsim.cli.saying import say
from spinsim.cli.showing import save_and_say
from spinsim.cli.values import Real, Whole

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from spinsim.result import AnnealResult, TemperResult

    Figures = dict[str, Callable[[], Figure]]

FIGURES = {
    "anneal": ("thermodynamics", "cut", "configuration"),
    "temper": ("thermodynamics", "cut", "overlap", "exchange", "equilibration"),
    "several": ("crossings", "thermodynamics"),
}
EVERY = *dict.fromkeys(name for names in FIGURES.values() for name in names), LENGTHS


def plot(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE", help="A file that spinsim wrote, or temper or transfer files of several sizes."),
    ],
    what: Annotated[
        str,
        typer.Option(
            help="all, or one: thermodynamics or configuration of an anneal run; thermodynamics, overlap, exchange or "
            "equilibration of a temper run; cut of a MaxCut run; crossings or thermodynamics of several sizes; lengths "
            "of transfer runs."
        ),
    ] = "all",
    sample: Annotated[int | None, Whole(help="Disorder sample of the configuration.  [0]")] = None,
    observable: Annotated[
        str | None,
        typer.Option(help="Of several sizes: overlap or magnetization.  [magnetization of ferromagnets, else overlap]"),
    ] = None,
    near: Annotated[float | None, Real(help="Temperature near which to look for crossings.")] = None,
    average: Annotated[
        str | None, typer.Option(help="Of xi of transfer runs over samples, mean or typical, exp[ln xi].  [mean]")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Figure file.  [beside the first FILE, <its stem>-<what>.pdf]")
    ] = None,
    suffix: Annotated[
        str | None, typer.Option("--format", help="pdf, png or svg.  [the suffix of --out, else pdf]")
    ] = None,
    style: Annotated[str, typer.Option(help="single or double: as wide as one column or as two.")] = "single",
    overwrite: flags.Overwrite = False,
) -> None:
    """Draw the measurements of a run, its lowest state, or runs of several sizes together, for a paper.

    The caption of a figure lies beside it, in a text file of the same name: what is drawn, and the verdicts.
    """
    from spinsim.analysis.figures import FORMATS, STYLES
    from spinsim.errors import InputError
    from spinsim.outputs import check_output

    if what != "all" and what not in EVERY:
        raise InputError(f"figure {what!r} is unknown: choose all, {', '.join(EVERY[:-1])} or {EVERY[-1]}")
    if style not in STYLES:
        raise InputError(f"style {style!r} is unknown: choose {' or '.join(STYLES)}")
    if out and suffix and out.suffix[1:].lower() != suffix.lower():
        raise InputError(f"--out {out} and --format {suffix} disagree: leave one of them out")
    if out and out.suffix[1:].lower() in FORMATS:
        check_output(out, out.suffix[1:].lower(), overwrite=True)  # no other file, such as a result
    if is_transfer(files[0]):
        _check_options("transfer", {"--sample": (sample, "anneal"), "--observable": (observable, "several")})
        plot_transfer(files, what, out, suffix, style, overwrite, average or "mean", near)
        return
    results, kind = _read(files, what)
    _check_options(kind, {"--sample": (sample, "anneal"), "--observable": (observable, "several"),
                          "--near": (near, "several"), "--average": (average, "transfer")})  # fmt: skip
    if kind == "several":
        figures = _of_several(results, observable, near, style)
    elif kind == "temper":
        figures = _of_tempering(results[0], what, style)
    else:
        figures = _of_annealing(results[0], what, sample, style)
    if out and what == "all" and len(figures) > 1:
        raise InputError(f"--out {out} names one figure: add --what {' or --what '.join(figures)}")
    drawn = {name: draw() for name, draw in figures.items() if what in ("all", name)}
    paths = {name: out or files[0].with_name(f"{files[0].stem}-{name}.{suffix or 'pdf'}") for name in drawn}
    save_and_say({paths[name]: figure for name, figure in drawn.items()}, overwrite)


def _read(files: list[Path], what: str) -> tuple[list[Any], str]:
    """The runs, and the key of ``FIGURES`` that they belong to."""
    from spinsim.errors import InputError
    from spinsim.result import AnnealResult, load

    results = [load(file) for file in files]
    jobs = ["anneal" if isinstance(result, AnnealResult) else "temper" for result in results]
    kind = jobs[0] if len(files) == 1 else "several"
    if kind == "several" and "anneal" in jobs:
        raise InputError(
            f"{files[jobs.index('anneal')]} holds an anneal run: of several files only temper runs are drawn together, "
            "give an anneal file alone"
        )
    if what == "crossings" and kind != "several":
        raise InputError(f"{files[0]} alone has no crossings: give temper files of two sizes or more")
    if what != "all" and what not in FIGURES[kind]:
        whose = "several files" if kind == "several" else f"{'an' if kind == 'anneal' else 'a'} {kind} run"
        raise InputError(f"figure {what!r} is none of {whose}: choose all, {' or '.join(FIGURES[kind])}")
    return results, kind


def _check_options(kind: str, options: dict[str, tuple[object, str]]) -> None:
    """Refuse options that would do nothing."""
    from spinsim.errors import InputError

    whose = {"anneal": "the configuration of an anneal run", "several": "the crossings of several temper runs",
             "transfer": "the lengths of transfer runs"}  # fmt: skip
    for name, (value, of) in options.items():
        if value is not None and of != kind:
            raise InputError(f"{name} is for {whose[of]}: leave it out")


def _of_annealing(result: AnnealResult, what: str, sample: int | None, style: str) -> Figures:
    from spinsim.analysis.figures import configuration_figure, cut_figure, thermodynamics_figure, why_no_configuration

    figures: Figures = {"thermodynamics": lambda: thermodynamics_figure(result, style)}
    if what == "cut" or result.model.maxcut_weight is not None:
        figures["cut"] = lambda: cut_figure(result, style)
    reason = why_no_configuration(result, sample or 0)
    if what == "configuration" or sample is not None or not reason:
        figures["configuration"] = lambda: configuration_figure(result, sample or 0, style)
    elif what == "all" and result.model.lattice is not None:
        say(f"No figure of the configuration: {reason}.", err=True)
    return figures


def _of_tempering(result: TemperResult, what: str, style: str) -> Figures:
    from functools import cache

    from spinsim.analysis import figures as draw
    from spinsim.analysis.summary import summarize

    summary = cache(lambda: summarize(result))
    figures: Figures = {"thermodynamics": lambda: draw.averages_figure([result], [summary()], style)}
    if what == "cut" or result.model.maxcut_weight is not None:
        figures["cut"] = lambda: draw.cut_figure(result, style)
    if what == "overlap" or result.overlap.shape[2]:
        figures["overlap"] = lambda: draw.overlap_figure(result, style)
    if what == "exchange" or result.attempts.any():
        figures["exchange"] = lambda: draw.exchange_figure(result, style)
    figures["equilibration"] = lambda: draw.equilibration_figure(result, summary(), style)
    return figures


def _of_several(results: list[TemperResult], observable: str | None, near: float | None, style: str) -> Figures:
    """Crossings, which are printed too, and averages."""
    from spinsim.analysis.figures import averages_figure, crossings_figure
    from spinsim.analysis.sizes import check_sizes, compare_sizes
    from spinsim.analysis.summary import summarize

    ordered = sorted(results, key=lambda result: result.model.sites)
    check_sizes(ordered)

    def crossings() -> Figure:
        found = compare_sizes(ordered, observable, near)
        for comparison in found:
            for pair in comparison.crossings:
                choose = len(pair.crossing.candidates) > 1 and "say near which" in pair.crossing.reason
                say(f"{comparison.name}: {pair.sentence}{', with --near T' if choose else ''}")
        return crossings_figure(found, style)

    def averages() -> Figure:
        return averages_figure(ordered, [summarize(result) for result in ordered], style, observable)

    return {"crossings": crossings, "thermodynamics": averages}
