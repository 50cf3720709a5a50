"""The record by which the rest of the program knows a job."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from spinsim.errors import InputError, argument, worded

if TYPE_CHECKING:
    from pathlib import Path

    import h5py
    from matplotlib.figure import Figure

    from spinsim.analysis.summary import Summary
    from spinsim.analysis.tables import Columns
    from spinsim.result import Result
    from spinsim.run import Plan, Watch
    from spinsim.run.progress import Bar
    from spinsim.settings.config import Config
    from spinsim.store.forms import Form

    Draw = dict[str, Callable[[], Figure]]


def _ignore(_: str) -> None:
    """Say nothing."""


class Told(NamedTuple):
    """What is said of a run.

    Attributes:
        numbers: For ``--json``.
        lines: For people.
        following: Commands that go on from here, a line each.
        verdict: What a search came to, the last line; empty of other runs.
        missed: Whether that is that its target was not met.
    """

    numbers: dict[str, Any]
    lines: list[str]
    following: Sequence[str] = ()
    verdict: str = ""
    missed: bool = False


class PlotOption(NamedTuple):
    """What an option of ``spinsim plot`` is for.

    Attributes:
        purpose: In words, such as "the crossings of several temper runs".
        figures: Names of the figures that take it.
    """

    purpose: str
    figures: tuple[str, ...]


class FigureSet(NamedTuple):
    """The figures that a job has of one file, or of several files together.

    Attributes:
        names: Of the figures.
        options: The options of ``spinsim plot`` that some of them take, by name.
    """

    names: tuple[str, ...] = ()
    options: Mapping[str, PlotOption] = {}


def ladder_options(job: str) -> tuple[dict[str, PlotOption], dict[str, PlotOption]]:
    """Returns the options for figures of runs with a ladder (``ladders.py``), of one run of a job and of several."""
    columns = {"columns": PlotOption(f"the thermodynamics of {job} runs", ("thermodynamics",))}
    several = {
        "observable": PlotOption(f"the figures of several {job} runs", ("crossings", "thermodynamics")),
        "near": PlotOption(f"the crossings of several {job} runs", ("crossings",)),
    }
    return columns, several | columns


class Drawing(NamedTuple):
    """How figures are wanted; by default all that a run has, as wide as a column, without a word.

    Attributes:
        what: Name of the one figure that is wanted, or ``all``.
        style: Width, ``single`` or ``double``.
        options: Values of the options that were given, by name.
        say: Takes a line of what the figures show.
        warn: Takes a line on what they do not show.
    """

    what: str = "all"
    style: str = "single"
    options: Mapping[str, Any] = {}
    say: Callable[[str], None] = _ignore
    warn: Callable[[str], None] = _ignore


class Job(ABC):
    """What the rest of the program knows of a job.

    Members import what they need when they are used, so that a record costs nothing until then.

    Attributes:
        name: The command, the table of its settings, and the root attribute ``job`` of its files.
        a_run: One of its runs in the words of a sentence, such as "an anneal run".
        about: What its command does, a sentence and what else ``--help`` says of it.
        resumable: Its own settings that ``resume`` may change, with what they are in words, empty where the usual words
            serve.
        figures: What ``spinsim plot`` draws of one file.
        figures_of_several: What it draws of several files together.
    """

    name: ClassVar[str]
    a_run: ClassVar[str]
    about: ClassVar[str]
    resumable: ClassVar[Mapping[str, str]] = {}
    figures: ClassVar[FigureSet] = FigureSet()
    figures_of_several: ClassVar[FigureSet] = FigureSet()

    @property
    @abstractmethod
    def config(self) -> type[Config]:
        """The class of its configurations."""

    @property
    @abstractmethod
    def plan_type(self) -> type[Plan[Any]]:
        """The class of runs that are ready to begin."""

    @property
    @abstractmethod
    def form(self) -> Form:
        """What the store must know of its files."""

    @abstractmethod
    def read(self, file: h5py.File, rows: int, attributes: dict[str, str]) -> Result:
        """Returns the result that the first rows of an open file come to.

        Raises:
            DamageError: where the numbers of the file do not fit together.
        """

    @abstractmethod
    def plan(self, config: Any) -> Plan[Any]:
        """Returns the run of a configuration, ready to begin: its model built, its file named.

        Raises:
            InputError: for anything that keeps the run from beginning.
        """

    @abstractmethod
    def to_file(self, plan: Any, watch: Watch) -> bool:
        """Run a plan into its file; False where the file already holds the finished run.

        Raises:
            InputError: where the file belongs to another run or cannot be written.
        """

    @abstractmethod
    def progress(self, silent: bool) -> Bar:
        """Returns what counts and shows how far a run is."""

    @abstractmethod
    def describe(self, plan: Any) -> str:
        """Returns what is about to run, in one sentence."""

    @abstractmethod
    def outcome(self, plan: Any, rate: float | None) -> Told:
        """Returns what is said of a run when it is done.

        Args:
            plan: Of the run.
            rate: As its progress has it; None where the run was finished before.
        """

    @abstractmethod
    def show(self, path: Path) -> Told:
        """Returns what ``spinsim show`` says of a file.

        Raises:
            InputError: where it cannot be read.
        """

    def changed(self, config: Any, settings: Mapping[str, Any], path: Path) -> Any:
        """Returns the configuration of a file's run with other values of settings of the job's own.

        Raises:
            InputError: for a setting that ``resume`` may not change, and for a value that the run cannot have.
        """
        table = getattr(config, self.name)
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
        """Returns the names of the settings that say how long a run is; with more of them it goes on where it ended."""
        return ()

    def as_once_meant(self, tables: dict[str, Any]) -> dict[str, Any] | None:
        """Returns what an early version may have meant by such tables, None where that is the same as today."""
        return None

    def check_averages(self, path: Path) -> None:
        """Refuse a file whose series ``spinsim analyze`` cannot average.

        Raises:
            InputError: saying what to do with the file instead.
        """
        raise InputError(
            f"{path} holds {self.a_run}, whose series are not in equilibrium: give the file of a temper run or of a "
            "quantum run"
        )

    def recounted(self, result: Any, device: str, threads: int | None) -> Any:
        """Returns a run with the series of those of its rows alone at which it has saved configurations.

        The numbers are counted anew from the spins; what does not follow from spins stays as it is.

        Args:
            result: The run, with configurations.
            device: Where they are counted, ``auto``, ``cpu`` or ``cuda``.
            threads: CPU threads, None for all.

        Raises:
            InputError: where it has no configurations.
        """
        raise InputError(f"{self.a_run} saves no configurations from which anything could be counted: load its file")

    def analysis(self, result: Any) -> list[str]:
        """Returns lines of what ``spinsim analyze`` finds beside averages, which this job alone has."""
        return []

    def kept(self, result: Any, found: Summary) -> Any:
        """Returns what ``together`` needs of a run, which is small; None where several runs say no more than each."""
        return None

    def together(self, kept: list[Any], choose: Callable[[Mapping[str, Any]], list[str]]) -> Told:
        """Returns what ``spinsim analyze`` finds in several runs together.

        Args:
            kept: What ``kept`` gave of each.
            choose: Returns the names of the columns that are to be printed, of estimates by name.
        """
        return Told({}, [])

    def columns(self, result: Any, by: str) -> Columns:
        """Returns the columns of ``ss.table``, a row for each of what ``by`` names.

        Raises:
            InputError: where there is no such table.
        """
        raise InputError(
            f"a table of {self.a_run} of {result.model.name} is its own dataset().to_dataframe(): ask for that"
        )

    def draw(self, results: Sequence[Any], wanted: Drawing) -> Draw:
        """Returns functions that draw the figures that can be drawn of one run or several, by the figures' names.

        Raises:
            InputError: where the one that is wanted cannot be drawn.
        """
        name = results[0].model.name
        look = worded("spinsim show prints what is in its file", "its dataset() has the series")
        raise InputError(f"{self.a_run} of {name} has no figures: {look}")

    def plot(
        self,
        result: Result,
        names: str | Iterable[str] | None,
        folder: str | PathLike[str] | None,
        about: Mapping[str, Any],
    ) -> dict[str, Any]:
        """Returns the figures of a run by their names, or their files where a folder is given.

        Args:
            result: The run.
            names: Of figures, None for all.
            folder: For the files, if any.
            about: ``style``, ``format`` and ``overwrite`` of ``Result.plot``, and options of figures.

        Raises:
            InputError: for figures that the run does not have, and files that may not be written.
        """
        from spinsim.jobs.plotting import drawn, saved

        options = dict(about)
        style, suffix, overwrite = (options.pop(name) for name in ("style", "format", "overwrite"))
        figures = drawn(self, result, names, style, options)
        return dict(figures if folder is None else saved(figures, result, folder, suffix, overwrite))
