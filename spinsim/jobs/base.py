"""A job, as the rest of the program knows it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

from spinsim.errors import InputError, argument, worded

if TYPE_CHECKING:
    from spinsim.analysis.summary import Summary
    from spinsim.analysis.tables import Columns, Report
    from spinsim.model.ising import Ising
    from spinsim.record import Record
    from spinsim.result import Result
    from spinsim.run.plan import Plan
    from spinsim.settings.config import Config

Draw = dict[str, Callable[[], Any]]  # functions that draw figures, by the figures' names


class PlotOption(NamedTuple):
    """An option of ``spinsim plot``."""

    purpose: str  # in words, such as "the crossings of several temper runs"
    figures: tuple[str, ...]  # names of the figures that take it


class FigureSet(NamedTuple):
    """The figures that a job has of one file, or of several files together."""

    names: tuple[str, ...] = ()  # of the figures
    options: Mapping[str, PlotOption] = {}  # the options of ``spinsim plot`` that some of them take, by name


class Drawing(NamedTuple):
    """How figures are wanted; by default all that a run has, as wide as a column, without a word."""

    figure: str = "all"  # name of the one figure that is wanted, or ``all``
    style: str = "single"  # width, ``single`` or ``double``
    options: Mapping[str, Any] = {}  # values of the options that were given, by name
    say: Callable[[str], None] = lambda words: None  # takes a line of what the figures show
    warn: Callable[[str], None] = lambda words: None  # takes a line on what they do not show


class Reports(Protocol):
    """What the module ``report.py`` of a job has: its runs in sentences, rows and tables."""

    def describe(self, plan: Any) -> str:
        """Return a sentence on the run that a plan is about to begin."""

    def outcome(self, plan: Any, result: Any, rate: float | None) -> Report:
        """Return the report of a plan's run when it is done, of its result.

        ``rate`` is that of its progress, None where the run was finished before.
        """

    def show(self, path: Path, result: Any) -> Report:
        """Return the report of a file and its result that ``spinsim show`` prints."""

    def columns(self, result: Any, by: str) -> Columns:
        """Return the columns of ``ss.table`` with a line for each temperature, sample and so on."""


class Job(ABC):
    """A job: all that the rest of the program knows of it.

    Modules of the job's folder are imported where a member needs them, so that a job costs nothing until then. The
    methods that are not abstract serve jobs that have none of their own.
    """

    name: ClassVar[str]  # the command, the table of its settings, and the root attribute ``job`` of its files
    a_run: ClassVar[str]  # one of its runs in the words of a sentence, such as "an anneal run"
    about: ClassVar[str]  # a sentence for ``--help`` on what its command does, and more
    resumable: ClassVar[Mapping[str, str]] = {}
    """Its own settings that ``resume`` may change, in words, empty where the usual words serve."""
    counts_rows: ClassVar[bool] = False  # True if the progress of its runs is told in rows of the file
    figures: ClassVar[FigureSet] = FigureSet()  # figures of one file
    figures_of_several: ClassVar[FigureSet] = FigureSet()  # figures of several files together

    @property
    @abstractmethod
    def config(self) -> type[Config]:
        """Class of its configurations."""

    @property
    @abstractmethod
    def plan_type(self) -> type[Plan[Any]]:
        """Class of its runs that are ready to begin."""

    @abstractmethod
    def read(self, record: Record, model: Ising) -> Result:
        """Return the result of a run from its record and its model."""

    @property
    @abstractmethod
    def report(self) -> Reports:
        """Module of what is said of its runs."""

    def plan(self, config: Any) -> Plan[Any]:
        return self.plan_type.of(config)

    def changed(self, config: Any, settings: Mapping[str, Any], path: Path) -> Any:
        """Returns the configuration of a file's run with other values of settings of the job's own."""
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
        """Returns the names of the settings that say how long a run is; with more of them it goes on where it ended."""
        return ()

    def check_averages(self, path: Path, result: Any) -> None:
        """Refuse a file whose series ``spinsim analyze`` cannot average, saying what to do with it instead."""
        raise InputError(
            f"{path} holds {self.a_run}, whose series are not in equilibrium: give the file of a temper run or of a "
            "quantum run; spinsim show prints averages of this one, and ss.table has them in Python"
        )

    def recounted(self, result: Any, device: str, threads: int | None) -> Any:
        """Returns the run restricted to rows with saved configurations, its numbers counted anew from these.

        What does not follow from spins stays as it is.
        """
        raise InputError(f"{self.a_run} saves no configurations from which anything could be counted: load its file")

    def analysis(self, result: Any) -> list[str]:
        """Returns lines of what ``spinsim analyze`` finds beside averages, which this job alone has."""
        return []

    def together(self, runs: list[tuple[Any, Summary]], choose: Callable[[Mapping[str, Any]], list[str]]) -> Report:
        """Returns the report of ``spinsim analyze`` on runs together, empty where they say no more than each alone.

        ``choose`` returns the names of the columns that are to be printed, of estimates by name.
        """
        from spinsim.analysis.tables import Report

        return Report()

    def draw(self, results: Sequence[Any], wanted: Drawing) -> Draw:
        """Returns functions that draw the figures that can be drawn of one run or several, by the figures' names."""
        name = results[0].model.name
        look = worded("spinsim show prints what is in its file", "its dataset() has the series")
        raise InputError(f"{self.a_run} of {name} has no figures: {look}")

    def plot(self, result: Any, names: Any, folder: Any, about: Mapping[str, Any]) -> dict[str, Any]:
        """Return the figures of a result by their names, or their files where a folder is given."""
        return self.draw([result], Drawing())
