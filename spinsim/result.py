"""Results of all jobs, and reading a run back from its file."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt

from spinsim import store
from spinsim.errors import InputError, MissingError
from spinsim.inputs.signatures import public
from spinsim.inputs.texts import Described, count
from spinsim.machine.files import as_path, hidden_name, not_written
from spinsim.model.ising import Ising, described, described_in
from spinsim.registry import record_of
from spinsim.solution import Lowest, Solution, as_sampleset, solutions
from spinsim.store.contents import Contents

if TYPE_CHECKING:
    import xarray

OneResult = TypeVar("OneResult", bound="Result")


class _WhenAsked:
    """A field of a frozen dataclass that may be given as a function, which is called when the field is looked at."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: object | None, owner: type) -> Any:
        if instance is None:
            raise AttributeError(self._name)  # by which dataclasses know that there is no default
        value = vars(instance)[self._name]
        if callable(value):
            value = vars(instance)[self._name] = value()
        return value

    def __set__(self, instance: object, value: Any) -> None:
        vars(instance)[self._name] = value


def when_asked() -> Any:
    """A field of a frozen dataclass that takes longer to make than a small run takes, such as digests."""
    return _WhenAsked()


@public
class Result(Described):
    """The result of a run of any job, read off the root attributes of their files."""

    job: ClassVar[str]
    attributes: dict[str, str] = when_asked()
    model: Ising

    @property
    def _facts(self) -> dict[str, str]:
        size = {"model": self.model.name, "size": count(self.model.sites, "site")}
        samples = {"samples": count(self.model.samples, "sample")}
        return size | samples | self._run_facts | {"state": "finished" if self.finished else "not finished"}

    @property
    def _lowest(self) -> Lowest | None:
        """The lowest states that the run met, None of a job that has none."""
        return None

    @property
    def solutions(self) -> list[Solution]:
        """The lowest state of each sample, with values by the labels of the problem.

        Raises:
            MissingError: where the run has none, or none yet; ``hasattr`` is False then.
        """
        lowest = self._lowest
        if lowest is None:
            raise MissingError(
                f"{record_of(self.job).a_run} of {self.model.name} keeps no lowest states: anneal or temper it"
            )
        return solutions(self.model, lowest)

    @property
    def best(self) -> Solution:
        """The lowest state of a run of one sample, with values by the labels of the problem.

        Raises:
            MissingError: as ``solutions``, and for several samples.
        """
        each = self.solutions
        if len(each) > 1:
            raise MissingError(
                f"the run has {len(each)} samples, which are different problems, each with a lowest state of its own: "
                "ask for its solutions, a list of them"
            )
        return each[0]

    def to_sampleset(self) -> Any:
        """The lowest states as a ``dimod.SampleSet``: a row for each replica where each kept its own, else one.

        Energies have the constant of the problem; of several samples the column ``disorder_sample`` says which it is.

        Raises:
            InputError: as ``solutions``, and where dimod is not installed.
        """
        return as_sampleset(self.solutions, self.model)

    @property
    def _run_facts(self) -> dict[str, str]:
        raise NotImplementedError

    @property
    def config(self) -> dict[str, Any]:
        """The run's parameters; of a model that is no lattice by name, what is known of it."""
        settings = dict(json.loads(self.attributes.get("config", "{}")))
        table = settings.get("model")
        instance = table.get("instance") if isinstance(table, dict) else None
        if instance is not None and not described_in(settings):  # older files name a lattice that is not the model's
            settings["model"] = {**described(self.model), "instance": instance}
        return settings

    @property
    def finished(self) -> bool:
        """True if the run went on to its end."""
        return "finished" in self.attributes

    def save(self, path: str | os.PathLike[str], overwrite: bool = False) -> Path:
        """Write the run to an HDF5 file and return its path.

        Args:
            path: Of a new file.
            overwrite: True if it may take the place of another file that spinsim wrote.

        Raises:
            InputError: where the file exists and is not to be overwritten, is none of spinsim's or is in use, and where
                it cannot be written.
        """
        target = Path(path)
        if not os.path.lexists(target):
            self._write(target)
            return target
        if not overwrite:
            raise InputError(f"{target} exists: give overwrite=True to save() to replace it, or another path")
        store.check_replaceable(target)
        real = Path(os.path.realpath(target))
        temporary = real.with_name(hidden_name(real.name, f"{os.getpid():08d}"))
        try:
            self._write(temporary)
            os.replace(temporary, real)
        except OSError as error:
            raise not_written(target, error) from error
        finally:
            temporary.unlink(missing_ok=True)
        return target

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
        """The figures that ``spinsim plot`` draws of the run, by their names.

        Args:
            names: Of one figure or several, such as ``thermodynamics``; by default all that the run has.
            folder: Where figures are written, with their captions; without one they are returned.
            style: ``single`` or ``double``: as wide as one column or as two.
            format: Of files: ``pdf``, ``png`` or ``svg``.
            overwrite: True if files of the same kind that are there already are replaced.
            options: As the command line has them, such as ``columns`` of tempering runs and ``sample`` of anneals.

        Returns:
            A ``matplotlib.figure.Figure`` for each name; the path of its file where a folder is given.

        Raises:
            InputError: for figures that the run does not have, and files that may not be written.
        """
        about = {"style": style, "format": format, "overwrite": overwrite} | options
        figures: dict[str, Any] = record_of(self.job).plot(self, names, folder, about)
        return figures

    def _write(self, target: Path) -> None:
        raise NotImplementedError

    @property
    def _origin(self) -> dict[str, str]:
        own = {key: value for key, value in self.attributes.items() if key not in ("created", "finished")}
        return {"job": self.job} | own

    def _labelled(self, contents: Contents, values: Mapping[str, npt.NDArray[Any]]) -> xarray.Dataset:
        """Series of the first group of contents as xarray opens them in the file."""
        group = contents.groups[0]
        try:
            import xarray
        except ImportError as error:
            raise InputError("xarray is missing: install spinsim-ising[xarray] to use dataset()") from error
        variables: dict[str, Any] = {}
        for axis in contents.axes(group):
            labels: Any = contents.scales[axis]
            if labels.dtype.kind == "S":  # names as Python's text
                labels = np.array([name.decode() for name in labels], object)
            variables[axis] = (axis, labels, store.scale_attributes(axis, contents.units.get(axis, "1")))
        coordinates = [*variables, "step", *contents.coordinates(group)]
        for series in contents.series:
            if series.group == group:
                attributes = {"long_name": series.long_name, "units": series.units}
                numbers: npt.NDArray[Any] = np.asarray(values[series.name], series.dtype)
                variables[series.name] = (("step", *series.axes), numbers, attributes)
        origin = {key: value for key, value in self.attributes.items() if key != "finished"}
        return xarray.Dataset(variables, attrs=origin).set_coords(coordinates)


@public
def load(path: str | os.PathLike[str]) -> Any:
    """Read a run back from its file; of an unfinished one, the steps it has.

    Args:
        path: A file that spinsim wrote, of any version.

    Returns:
        The result of the file's job, such as an ``AnnealResult``.

    Raises:
        InputError: for a missing file or one that spinsim did not write.
    """
    with store.open_to_read(as_path(path, "a run")) as file:
        rows, attributes = store.complete_rows(file), store.text_attributes(file)
        store.check_room(file, rows)
        result = record_of(attributes["job"]).read(file, rows, attributes)
    with contextlib.suppress(ValueError):  # a damaged text, which others refuse
        result.model.origin = described_in(json.loads(attributes.get("config", "{}")))
    return result


def load_as(kind: type[OneResult], path: str | os.PathLike[str]) -> OneResult:
    result = load(path)
    if not isinstance(result, kind):
        wanted = record_of(kind.job).a_run
        raise InputError(f"{path} holds {record_of(result.attributes['job']).a_run}: give the file of {wanted}")
    return result
