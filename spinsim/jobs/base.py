"""The interface of a job to the rest of the program."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

from spinsim.errors import InputError, argument, worded
from spinsim.registry import FOLDERS

if TYPE_CHECKING:
    from spinsim.analysis.density import DensityOfStates
    from spinsim.analysis.summary import Summary
    from spinsim.analysis.tables import Columns, Report, Row
    from spinsim.model.ising import Ising
    from spinsim.record import Record

Draw = dict[str, Callable[[], Any]]  # functions that draw figures, by the figures' names


class PlotOption(NamedTuple):
    """An option of ``spinsim plot``."""

    purpose: str  # in words, such as "the crossings of several temper runs"
    figures: tuple[str, ...]  # names of the figures that take it


class FigureSet(NamedTuple):
    """Names of the figures that a job can draw, of one file or of several files together, and their options."""

    names: tuple[str, ...] = ()  # names of the figures
    options: Mapping[str, PlotOption] = {}  # options of ``spinsim plot`` for these figures, by name


class Drawing(NamedTuple):
    """Request for figures; by default all figures of a run, one column wide, without printed lines."""

    figure: str = "all"  # name of the requested figure, or ``all``
    style: str = "single"  # width, ``single`` or ``double``
    options: Mapping[str, Any] = {}  # values of the given options, by name
    say: Callable[[str], None] = lambda words: None  # prints a line about what the figures show
    warn: Callable[[str], None] = lambda words: None  # prints a line about what the figures omit


class Reports(Protocol):
    """Interface of a job's module ``report.py``: its runs in sentences, rows and tables."""

    def describe(self, plan: Any) -> str:
        """Return a sentence about the run that a plan will begin."""

    def outcome(self, plan: Any, result: Any, rate: float | None) -> Report:
        """Return the report of a plan's finished run, from its result.

        ``rate`` comes from the progress bar; it is None if the run had been finished before.
        """

    def show(self, path: Path, result: Any) -> Report:
        """Return the report that ``spinsim show`` prints, of a file and its result."""

    def columns(self, result: Any, by: str) -> Columns:
        """Return the columns of ``ss.table`` with a line for each temperature, sample and so on."""


class Job:
    """A job, as seen by the rest of the program.

    A member imports modules of the job's folder on use, so that an unused job costs nothing. Methods are defaults,
    which find modules and objects of the folder by their usual names.
    """

    name: ClassVar[str]  # the command, the name of its settings table, and the root attribute ``job`` of its files
    a_run: ClassVar[str]  # name of one of its runs in a sentence, such as "an anneal run"
    about: ClassVar[str]  # text for ``--help``: a sentence about the command, and more
    resumable: ClassVar[Mapping[str, str]] = {}
    """Settings of the job that ``resume`` may change, with help texts; an empty text keeps the usual one."""
    has_slow_samples: ClassVar[bool] = False  # True if its command can go on with the slow samples of a finished run
    counts_rows: ClassVar[bool] = False  # True if the progress of a run is counted in rows of the file
    figures: ClassVar[FigureSet] = FigureSet()  # figures of one file
    figures_of_several: ClassVar[FigureSet] = FigureSet()  # figures of several files together

    recounts: ClassVar[str] = ""  # function that recounts runs from saved configurations, as ``module:function``
    reads_in: ClassVar[str] = "run"  # module of the job's folder that has ``read``

    def _of_folder(self, name: str) -> Any:
        """Return a module of the job's folder, or with ``module:name`` an object of it, imported now."""
        return resolve_name(f"{FOLDERS[self.name]}.{name}")

    @property
    def config(self) -> Any:
        """Class of the job's configurations (a ``Config``): ``Anneal`` of ``settings.py`` for a job named anneal."""
        return self._of_folder(f"settings:{self.name.capitalize()}")

    @property
    def plan_type(self) -> Any:
        """Class of the job's plans (a ``Plan``): ``AnnealPlan`` of ``run.py`` for a job named anneal."""
        return self._of_folder(f"run:{self.name.capitalize()}Plan")

    def read(self, record: Record, model: Ising) -> Any:
        """Return the ``Result`` of a run from its record and its model."""
        return self._of_folder(f"{self.reads_in}:read")(record, model)

    @property
    def report(self) -> Any:
        """Module with the ``Reports`` of the job's runs."""
        return self._of_folder("report")

    def plan(self, config: Any) -> Any:
        return self.plan_type.of(config)

    def changed(self, config: Any, settings: Mapping[str, Any], path: Path) -> Any:
        """Return the configuration of a file's run with new values of the job's own settings."""
        table = getattr(config, self.name)
        if "time_limit" in settings.keys() & self.resumable.keys() and table.time_limit is None:
            ends = "a search that goes on until its target is met" if table.target else "a run without a time limit"
            raise InputError(f"{path} holds {ends}: leave {argument('time_limit')} out")
        for name in settings.keys() & set(self.lengths(config)):
            wanted, before = settings[name], getattr(table, name)
            if wanted < before:
                less = "are fewer" if isinstance(before, int) else "is less"
                raise InputError(f"{name} {wanted} {less} than the {before} of {path}: give more")
        for name in settings:
            if name not in self.resumable:
                words = name.replace("_", " ")
                raise InputError(
                    f"{path} holds {self.a_run}, which has no {words} that may change: leave {argument(name)} out"
                )
        return replace(config, **{self.name: replace(table, **settings)})

    def lengths(self, config: Any) -> tuple[str, ...]:
        """Return the names of the settings for the length of a run; larger values continue the run from its end."""
        return ()

    def check_averages(self, path: Path, result: Any) -> None:
        """Refuse a file whose series ``spinsim analyze`` cannot average, and name the alternative."""
        raise InputError(
            f"{path} holds {self.a_run}, whose series are not in equilibrium: give the file of a temper run or of a "
            "quantum run; spinsim show prints averages of this one, and ss.table has them in Python"
        )

    def recounted(self, result: Any, device: str, threads: int | None) -> Any:
        """Return the run restricted to rows with saved configurations, with measurements recounted from these.

        Data that do not follow from spins stay unchanged.
        """
        if self.recounts:
            return resolve_name(self.recounts)(result, device, threads)
        raise InputError(f"{self.a_run} saves no configurations from which anything could be counted: load its file")

    def analysis(self, result: Any) -> list[Row | str]:
        """Return further rows for ``spinsim analyze`` that only this job has."""
        return []

    def density(self, result: Any) -> DensityOfStates:
        """Return the density of states that follows from a run."""
        raise InputError(f"{self.a_run} gives no density of states: give a multicanonical run or a temper run")

    def together(self, runs: list[tuple[Any, Summary]], choose: Callable[[Mapping[str, Any]], list[str]]) -> Report:
        """Return the joint report of ``spinsim analyze`` on several runs; empty if it adds nothing to single ones.

        ``choose`` maps estimates by name to the names of the columns that are printed.
        """
        from spinsim.analysis.tables import Report

        return Report()

    def draw(self, results: Sequence[Any], wanted: Drawing) -> Any:
        """Return functions that draw the possible figures of one or several runs, by name (a ``Draw``)."""
        if self.figures.names:
            return self._of_folder("figures:draw")(results, wanted)
        name = results[0].model.name
        look = worded("spinsim show prints what is in its file", "its dataset() has the series")
        raise InputError(f"{self.a_run} of {name} has no figures: {look}")

    def plot(self, result: Any, names: Any, folder: Any, about: Mapping[str, Any]) -> dict[str, Any]:
        """Return the figures of a result by name, or the paths of their files if a folder is given."""
        figures: dict[str, Any] = resolve_name("spinsim.jobs.plotting:figures_of")([result], names, folder, about)
        return figures

    def preview(self, result: Any, width: int) -> tuple[bytes, str]:
        """Return the first figure of a result as a PNG, to be shown ``width`` pixels wide, and its caption.

        The PNG has two pixels for each that is shown, as fine screens have.
        """
        import io

        import matplotlib.style

        from spinsim.analysis.figures.paper import PAPER

        figure = next(iter(self.draw([result], Drawing()).values()))()
        for ax in figure.axes:
            ax.minorticks_off()  # laying them out takes half of the time
        picture = io.BytesIO()
        with matplotlib.style.context(PAPER):
            figure.savefig(picture, format="png", dpi=2 * width / figure.get_figwidth(), metadata={"Software": None})
        return picture.getvalue(), getattr(figure, "caption", "")
