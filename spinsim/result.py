"""Results of all jobs, and ``load``, which reads a run back from its file."""

from __future__ import annotations

import base64
import html
import json
import os
import re
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar

from spinsim.errors import InputError, MissingError, WrongTypeError
from spinsim.inputs.arguments import public
from spinsim.inputs.texts import Described, count
from spinsim.machine.files import as_path
from spinsim.model.disorder import RANDOM_KINDS
from spinsim.model.ising import Ising
from spinsim.record import Record, as_dataset
from spinsim.registry import job_of
from spinsim.solution import Lowest, Solution, as_sampleset, solutions
from spinsim.store.contents import MEASUREMENTS
from spinsim.store.files import DamageError, damaged, read, replace, save_new, stamp, text_attributes
from spinsim.store.models import model_of, record_of_model

if TYPE_CHECKING:
    import xarray

POOLED: Final = "pooled"
"""Root attribute of a pooled run: JSON with the seeds and the SHA-256 of the configuration of each run in it."""
OneResult = TypeVar("OneResult", bound="Result")
_LARGE: Final = 10**8  # bytes of series from which on a result is displayed without its figure and verdict
PICTURE_WIDTH: Final = 420  # of the figure in a notebook, in pixels


class _WhenAsked:
    """A field of a frozen dataclass that may be given as a function, which is called at the first access."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: object | None, owner: type) -> Any:
        if instance is None:
            raise AttributeError(self._name)  # tells dataclasses that there is no default
        value = vars(instance)[self._name]
        if callable(value):
            value = vars(instance)[self._name] = value()
        return value

    def __set__(self, instance: object, value: Any) -> None:
        vars(instance)[self._name] = value


def when_asked() -> Any:
    """Return a lazy field of a frozen dataclass, for values that take longer than a small run, such as digests."""
    return _WhenAsked()


@public
class Result(Described):
    """Result of a run of any job: the run's record, stored unchanged in its file, and views of it."""

    job: ClassVar[str]
    series_group: ClassVar[str] = MEASUREMENTS  # the group of the record that has a row for each step or measurement
    record: Record  # the whole run as named arrays; for a run in memory without the model
    model: Ising

    @property
    def attributes(self) -> dict[str, str]:
        """Root attributes of the record: configuration, versions and so on."""
        return text_attributes(self.record)

    def __repr__(self) -> str:
        found = self._findings.items()  # a verdict without its reasons, such as "verdict: in equilibrium"
        words = [f"verdict: {re.split('[:,;]', said)[0]}" if name == "verdict" else said for name, said in found]
        findings = f":\n  {'; '.join(words)}" if words else ""
        return f"{type(self).__name__}({', '.join(self._facts.values())}{findings})"

    def _repr_html_(self) -> str:
        return super()._repr_html_() + self._picture

    @property
    def _summary(self) -> dict[str, str]:
        return self._facts | self._findings

    @property
    def _facts(self) -> dict[str, str]:
        """Size, length and seeds of the run, by name."""
        size = {"model": self.model.name, "size": count(self.model.sites, "site")}
        samples = {"samples": count(self.model.samples, "sample")}
        state = {"state": "finished" if self.finished else "not finished"}
        return size | samples | self._run_facts | self._seeds | state

    @property
    def _findings(self) -> dict[str, str]:
        """Main outcomes of the run in words, by name; ``repr`` shows only the first words of a ``verdict``."""
        return {}

    @property
    def _settings(self) -> dict[str, Any]:
        """The job's own settings; empty for a result without a configuration."""
        config = json.loads(self.attributes.get("config", "{}"))
        return dict(config.get(self.job, config))

    @property
    def _seeds(self) -> dict[str, str]:
        attributes = self.attributes
        if POOLED in attributes:
            return {"runs": f"{count(len(json.loads(attributes[POOLED])), 'run')} pooled"}
        seeds = zip(("seed", "disorder seed"), seeds_of(json.loads(attributes.get("config", "{}"))), strict=True)
        return {name: f"{name} {seed}" for name, seed in seeds if seed is not None}

    @property
    def _is_large(self) -> bool:
        """True if averages or figures of the run may take longer than a display should."""
        series = self.record.group(self.series_group).arrays
        return sum(int(one.values.nbytes) for one in series.values()) > _LARGE

    @property
    def _picture(self) -> str:
        """The first figure of the run as an image in HTML, a sentence for large runs; empty if there is no figure."""
        if self._is_large:
            return "<p>The run is large: <code>result.plot()</code> draws its figures.</p>"
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                picture, caption = job_of(self.job).preview(self, PICTURE_WIDTH)
        except Exception:
            return ""  # the table says all that is known of an unfinished run
        data = base64.b64encode(picture).decode()
        return f'<img width="{PICTURE_WIDTH}" alt="{html.escape(caption)}" src="data:image/png;base64,{data}">'

    @property
    def _lowest(self) -> Lowest | None:
        """The lowest states that the run met; None for jobs without lowest states."""
        return None

    @property
    def solutions(self) -> list[Solution]:
        """The lowest state of each sample, with values by the labels of the problem.

        Raises:
            MissingError: if the run has none, or none yet; ``hasattr`` is then False.
        """
        lowest = self._lowest
        if lowest is None:
            raise MissingError(
                f"{job_of(self.job).a_run} of {self.model.name} keeps no lowest states: anneal or temper it"
            )
        return solutions(self.model, lowest)

    @property
    def best(self) -> Solution:
        """The lowest state of a run of one sample, with values by the labels of the problem.

        Raises:
            MissingError: as ``solutions``, and if the run has several samples.
        """
        each = self.solutions
        if len(each) > 1:
            raise MissingError(
                f"the run has {len(each)} samples, which are different problems, each with a lowest state of its own: "
                "ask for its solutions, a list of them"
            )
        return each[0]

    def to_sampleset(self) -> Any:
        """The lowest states as a ``dimod.SampleSet``, with a row for each replica if each kept its own, else one row.

        Energies include the constant of the problem. With several samples, the column ``disorder_sample`` numbers them.

        Raises:
            InputError: as ``solutions``, and if dimod is not installed.
        """
        return as_sampleset(self.solutions, self.model)

    @property
    def _run_facts(self) -> dict[str, str]:
        raise NotImplementedError

    @property
    def config(self) -> dict[str, Any]:
        """Parameters of the run; for a model that is not a lattice by name, its known properties."""
        return dict(json.loads(self.attributes["config"]))

    @property
    def finished(self) -> bool:
        """True if the run reached its end."""
        return "finished" in self.attributes

    def save(self, path: str | os.PathLike[str], overwrite: bool = False) -> Path:
        """Write the run to an HDF5 file and return its path.

        Args:
            path: Path of a new file.
            overwrite: True to allow replacing another file that spinsim wrote.

        Raises:
            InputError: if the file exists and ``overwrite`` is False, if spinsim did not write it, if it is in use,
                and if it cannot be written.
        """
        target, record = Path(path), self.record
        if "model" not in record.groups:
            attributes = {"created": stamp()} | record.attributes
            record = Record(attributes, record.arrays, {"model": record_of_model(self.model)} | record.groups)
        if not os.path.lexists(target):
            save_new(target, record)
        elif overwrite:
            replace(target, record)
        else:
            raise InputError(f"{target} exists: give overwrite=True to save() to replace it, or another path")
        return target

    def dataset(self) -> xarray.Dataset:
        """The measurements as an xarray dataset with named axes.

        Raises:
            InputError: if xarray is not installed.
        """
        return as_dataset(self.record.groups[self.series_group])

    def plot(
        self,
        names: str | Iterable[str] | None = None,
        folder: str | os.PathLike[str] | None = None,
        *,
        style: str = "single",
        format: str = "pdf",  # noqa: A002  (as on the command line)
        overwrite: bool = False,
        **options: Any,
    ) -> dict[str, Any]:
        """Draw the figures of ``spinsim plot`` for this run.

        Args:
            names: One or several names of figures, such as ``thermodynamics``; by default all figures of the run.
            folder: Folder for the figures and their captions; without it, figures are returned.
            style: ``single`` or ``double``: one or two columns wide.
            format: File format: ``pdf``, ``png`` or ``svg``.
            overwrite: True to replace existing files of the same kind.
            options: Options of the command line, such as ``columns`` of tempering runs and ``sample`` of anneals.

        Returns:
            A ``matplotlib.figure.Figure`` by name of the figure, or the path of its file if a folder is given.

        Raises:
            InputError: for figures that the run does not have, and files that may not be written.
        """
        about = {"style": style, "format": format, "overwrite": overwrite} | options
        figures: dict[str, Any] = job_of(self.job).plot(self, names, folder, about)
        return figures


def seeds_of(config: Mapping[str, Any]) -> tuple[int | None, int | None]:
    """Return the seeds of the dynamics and of the disorder in a configuration; None if there are none."""
    run, model = (config.get(table) or {} for table in ("run", "model"))
    is_random = model.get("couplings") in RANDOM_KINDS or model.get("dilution") or model.get("random_field")
    return run.get("seed"), model.get("disorder_seed") if is_random else None


@public
def load(path: str | os.PathLike[str]) -> Any:
    """Read a run back from its file; an unfinished run is read up to its last checkpoint.

    Args:
        path: A file that spinsim wrote.

    Returns:
        The result of the file's job, such as an ``AnnealResult``.

    Raises:
        InputError: for a missing file or one that spinsim did not write.
    """
    record = read(as_path(path, "a run"))
    try:
        return result_of(record.attributes["job"], record, model_of(record))
    except DamageError as error:
        raise damaged(path, str(error)) from error


Run = Result | str | os.PathLike[str]
"""A result, or the file of a run."""


def runs_in(runs: Run | Iterable[Run]) -> list[Run]:
    """Return the one run that is given, or all runs of an iterable.

    Raises:
        InputError: for anything else, and for no runs.
    """
    if isinstance(runs, Result | str | os.PathLike):
        return [runs]
    try:
        found = list(runs)
    except TypeError as error:
        raise WrongTypeError(f"a {type(runs).__name__} is no run: give a result, a file, or a list of these") from error
    if not found:
        raise InputError("no runs are given: give a result, a file, or a list of these")
    return found


def as_result(run: Run) -> Any:
    """Return a result as it is, or the result in a file."""
    return run if isinstance(run, Result) else load(run)


def result_of(job: str, record: Record, model: Ising) -> Any:
    """Return the result of a run of this job, from its record."""
    return job_of(job).read(record, model)


def load_as(kind: type[OneResult], run: Run) -> OneResult:
    result = as_result(run)
    if not isinstance(result, kind):
        wanted, what = job_of(kind.job).a_run, job_of(result.attributes["job"]).a_run
        if isinstance(run, Result):
            raise InputError(f"the result of {result.model.name} is {what}: give {wanted}")
        raise InputError(f"{run} holds {what}: give the file of {wanted}")
    return result
