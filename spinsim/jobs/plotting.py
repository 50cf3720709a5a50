"""``result.plot()``: the figures of ``spinsim plot``, as Matplotlib figures or files; figures that jobs share."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np

from spinsim.analysis import figures
from spinsim.analysis.figures import FORMATS, STYLES, paper, save_figures
from spinsim.analysis.figures.paper import BLUE, SKY, VERMILION, PaperFigure, drawn_panels
from spinsim.analysis.runs import Array, Tempered, samples_in
from spinsim.analysis.scaling.curves import sizes_of
from spinsim.analysis.scaling.report import best_collapses, estimates_of
from spinsim.analysis.sizes import check_sizes, compare_sizes, say_crossings, sites_of_space
from spinsim.analysis.summary import Summary, summarize
from spinsim.analysis.tables import chosen_columns
from spinsim.errors import InputError, WrongTypeError, warn_caller
from spinsim.inputs.arguments import public
from spinsim.inputs.texts import either, nearest
from spinsim.jobs import job_of
from spinsim.jobs.base import Draw, Drawing, FigureSet, Job
from spinsim.machine.files import as_path
from spinsim.model.ising import Ising
from spinsim.result import Result, Run, as_result, runs_in


@public
def plot(
    runs: Run | Iterable[Run],
    names: str | Iterable[str] | None = None,
    folder: str | os.PathLike[str] | None = None,
    *,
    style: str = "single",
    format: str = "pdf",  # noqa: A002  (as on the command line)
    overwrite: bool = False,
    **options: Any,
) -> dict[str, Any]:
    """Figures of a run, or of runs of several sizes together, as ``spinsim plot`` draws them.

    Args:
        runs: A result or a file; or a list of results or files of one job, each of another size.
        names: One figure or several (``--what`` of the command line), such as ``thermodynamics`` or, of several
            sizes, ``crossings``; by default all.
        folder: Where figures are written, with their captions; without one they are returned.
        style: ``single`` or ``double``: as wide as one column or as two.
        format: Of files: ``pdf``, ``png`` or ``svg``.
        overwrite: True if files of the same kind that are there already are replaced.
        options: Options of the command line: ``columns``, ``mark`` and, of several sizes, ``observable`` and
            ``near``.

    Returns:
        A ``matplotlib.figure.Figure`` for each name; the path of its file where a folder is given.

    Raises:
        InputError: for runs that are not drawn together, figures that they do not have, and files that may not be
            written.
    """
    results = [as_result(one) for one in runs_in(runs)]
    job, others = job_of(results[0].job), [job_of(one.job) for one in results[1:]]
    for other in others:
        if other is not job:
            raise InputError(f"{other.a_run} and {job.a_run}: only runs of one job are drawn together")
    if others and not job.figures_of_several.names:
        raise InputError(f"several {job.name} runs are not drawn together: give {job.a_run} alone")
    return figures_of(results, names, folder, {"style": style, "format": format, "overwrite": overwrite} | options)


def figures_of(
    results: Sequence[Result], names: str | Iterable[str] | None, folder: str | os.PathLike[str] | None,
    about: Mapping[str, Any],
) -> dict[str, Any]:  # fmt: skip
    """Returns the figures of a run, or of several sizes, by their names, or their files where a folder is given."""
    job, options = job_of(results[0].job), dict(about)
    known = job.figures if len(results) == 1 else job.figures_of_several
    style, suffix, overwrite = (options.pop(name) for name in ("style", "format", "overwrite"))
    if style not in STYLES:
        raise InputError(f"style {style!r} is unknown: choose {' or '.join(STYLES)}")
    wanted = None if names is None else [names] if isinstance(names, str) else list(names)
    _check(job, known, wanted, options)
    how = partial(Drawing, style=style, options=options, warn=warn_caller)
    draw = job.draw(results, how((wanted or ["all"])[0]))
    for name in wanted or ():
        if name not in known.names:
            raise InputError(f"{job.a_run} has no figure {name!r}: choose {either(tuple(draw))}")
        if name not in draw:
            draw |= {name: job.draw(results, how(name))[name]}
    figures = {name: draw[name]() for name in wanted or draw}
    if folder is None:
        return figures
    if suffix not in FORMATS:
        raise InputError(f"format {suffix!r} is unknown: choose {either(tuple(FORMATS))}")
    identities = (result.attributes.get("config_sha256", "")[:8] for result in results)
    models = "+".join(result.model.name for result in results)
    stem = re.sub(r"[^\w.+-]", "-", "-".join(filter(None, (job.name, models, *identities))))
    paths = {name: as_path(folder, "figures") / f"{stem}-{name}.{suffix}" for name in figures}
    save_figures({paths[name]: figure for name, figure in figures.items()}, overwrite)
    return paths


def _check(job: Job, figures: FigureSet, names: Sequence[str] | None, options: Mapping[str, Any]) -> None:
    known = figures.options
    for name in options:
        if name not in known:
            hint = f": {nearest(name, list(known))}" if known else ""
            raise WrongTypeError(f"plot() of {job.a_run} has no option {name!r}{hint}")
        if names is not None and not set(names) & set(known[name].figures):
            raise InputError(f"{name} is for {known[name].purpose}: leave it out, or ask for {known[name].figures[0]}")


def _mark(wanted: Drawing) -> paper.Mark | None:
    """The place that the option ``mark`` names; None without it."""
    place = wanted.options.get("mark")
    return None if place is None else paper.Mark(place, f"${place:g}$")


def averages_of_one(result: Tempered, wanted: Drawing, summary: Callable[[], Summary]) -> Draw:
    def thermodynamics() -> PaperFigure:
        columns = wanted.options.get("columns")
        return figures.averages_figure([result], [summary()], wanted.style, columns=columns, mark=_mark(wanted))

    drawn: Draw = {"thermodynamics": thermodynamics}
    if wanted.figure == "order" or figures.order_names(result):
        drawn["order"] = lambda: figures.order_figure(result, summary(), wanted.style)
    if wanted.figure == "walks" or (samples_in(result) > 1 and len(result.temperature) > 1):
        drawn["walks"] = lambda: figures.walks_figure(result, wanted.style)
    return drawn


def figures_of_several(results: Sequence[Tempered], wanted: Drawing) -> Draw:
    """Return functions that draw the crossings of several sizes, which are also printed, averages, and scaling."""
    ordered = sorted(results, key=lambda result: sites_of_space(result.model))
    check_sizes(ordered)
    observable, near, columns = (wanted.options.get(name) for name in ("observable", "near", "columns"))
    mark = _mark(wanted)

    @cache
    def summaries() -> list[Summary]:
        return [summarize(result) for result in ordered]

    def crossings() -> PaperFigure:
        compared = compare_sizes(ordered, observable, near, summaries())
        if columns is not None:
            chosen = chosen_columns(columns, {one.name: one for one in compared})
            compared = [one for one in compared if one.name in chosen]
        say_crossings(compared, wanted.say)
        against = figures.ladder_label(ordered[0].axis)
        exact = figures.mark_of([result.model for result in ordered], against)
        return figures.crossings_figure(compared, wanted.style, against, mark or exact, paper.runs_text(ordered))

    def thermodynamics() -> PaperFigure:
        return figures.averages_figure(ordered, summaries(), wanted.style, observable, columns, mark)

    drawn: Draw = {"crossings": crossings, "thermodynamics": thermodynamics}
    if wanted.figure in ("collapse", "estimates"):  # only by name: not all runs of several sizes can be fitted
        symbol, runs = ordered[0].axis.symbol, paper.runs_text(ordered)
        sizes = cache(partial(sizes_of, ordered))
        drawn["collapse"] = lambda: figures.collapse_figure(best_collapses(sizes()), wanted.style, symbol, runs)
        drawn["estimates"] = lambda: figures.estimates_figure(estimates_of(sizes()), wanted.style, runs)
    return drawn


class Course(NamedTuple):
    """Energies of a run in the order of its measurements."""

    energy: Array  # totals of all replicas, the measurement on the first axis
    shown: Array  # energies of the replicas whose mean and range are drawn, (measurements, replicas)
    done: Array  # amount of work done at each measurement, (measurements,)
    unit: str  # unit of ``done``, in words
    lowest: float  # lowest energy known, also between measurements
    run: str  # size of the run, in words
    which: str = ""  # the replicas in ``shown``, in words that follow "replicas"; empty for all


def draw_cuts(model: Ising, course: Course, style: str = "single") -> PaperFigure:
    """Draw cuts against work: mean and range of the replicas, and the best measured so far."""
    cuts, shown = model.cut(course.energy), model.cut(course.shown)  # refuses models without cuts
    best = np.maximum.accumulate(cuts.reshape(len(cuts), -1).max(axis=1))
    with drawn_panels(style, 1, 2.3) as (figure, (ax,)):
        if shown.shape[1] > 1:
            low, high = shown.min(axis=1), shown.max(axis=1)
            ax.fill_between(course.done, low, high, color=SKY, alpha=0.5, lw=0, label="range of replicas")
        ax.plot(course.done, shown.mean(axis=1), color=BLUE, lw=0.8, label="mean of replicas")
        ax.plot(course.done, best, color=VERMILION, lw=0.8, label="best so far")
        ax.set_xlim(0, 1.05 * course.done[-1])  # room for the last label within the frame
        ax.set_xlabel(course.unit)
        ax.set_ylabel("cut")
        if (cuts == np.rint(cuts)).all():
            paper.tick_integers(ax.yaxis)
    figure.caption = (
        f"Cuts of the MaxCut instance {model.name}, {course.run}, against {course.unit}: mean and range of the "
        f"replicas{course.which}, and the best that was measured so far. The best is "
        f"{float(model.cut(course.lowest)):.10g}."
    )
    return figure


def check_begun(model: Ising, measurements: int) -> None:
    if not measurements:
        raise InputError(f"the run of {model.name} has no finished step: there is nothing to draw yet")
