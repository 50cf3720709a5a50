"""Configurations that runs have saved, arrays of +1 and -1 with labels; results of runs of replicas that have them."""

from __future__ import annotations

import operator
import os
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import h5py
import numpy as np
import numpy.typing as npt

from spinsim import store
from spinsim.bits import Bits, States, spins_up, unpacked_spins
from spinsim.errors import InputError, argument
from spinsim.inputs.signatures import public
from spinsim.inputs.texts import Described, count
from spinsim.machine.memory import require
from spinsim.result import Result
from spinsim.store import complete_rows, open_to_read
from spinsim.store.contents import BYTE, EVERY, MEASUREMENTS, Contents
from spinsim.store.schema import CONFIGURATIONS, with_configurations

if TYPE_CHECKING:
    import xarray

_PIECE_BYTES: Final = 2**24  # of bits that are in memory at a time
_BATCH_BYTES: Final = 2**24  # of spins that iterating unpacks at a time
Labels = Mapping[str, npt.NDArray[Any]]


@public
class Configurations(Described):
    """Saved configurations as a sequence of arrays of +1 and -1, with labels of the same length.

    ``c[i]`` is one configuration, ``int8`` (sites,). ``c[a:b]``, ``c[numbers]`` and ``c[mask]`` are (configurations,
    sites). Configurations are read from the file when they are used. Those of one saved row follow each other in the
    order of ``axes``, the last of which runs fastest.

    Attributes:
        axes: Labels along each axis, by its name: ``step``, the saved rows, and then ``sample``, ``copy`` and
            ``temperature`` of a tempering run, ``sample`` and ``replica`` of an annealing run.
        sites: Sites of a configuration, in the order of the model.
        every: Number of rows of the run from one saved row to the next.
    """

    def __init__(self, axes: Labels, of_rows: Labels, sites: int, every: int, read: Callable[[int, int], Bits]) -> None:
        self.axes, self.sites, self.every = dict(axes), sites, every
        self._of_rows, self._read = dict(of_rows), read
        self._last_piece: tuple[int, Bits] | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """Length along each axis."""
        return tuple(len(values) for values in self.axes.values())

    def __len__(self) -> int:
        return prod(self.shape)

    @property
    def _facts(self) -> dict[str, str]:
        along = f"({', '.join(self.axes)}) = {self.shape}"
        return {"number": count(len(self), "configuration"), "size": count(self.sites, "site"), "axes": along}

    def __getitem__(self, which: Any) -> npt.NDArray[np.int8]:
        if isinstance(which, slice):
            return self._chosen(np.arange(*which.indices(len(self))))
        if np.ndim(which) == 0:
            number = range(len(self))[operator.index(which)]
            return np.asarray(self._chosen(np.array([number]))[0])
        return self._chosen(np.arange(len(self))[which])

    def __iter__(self) -> Iterator[npt.NDArray[np.int8]]:
        together = max(1, _BATCH_BYTES // self.sites)
        for first in range(0, len(self), together):
            yield from self[first : first + together]

    def row(self, number: int) -> npt.NDArray[np.int8]:
        """The configurations of one saved row, ``int8`` (..., sites) with the other axes in their order."""
        return unpacked_spins(self._bits(number), self.sites)

    def of_sample(self, sample: int) -> Bits:
        """Returns the bits of one disorder sample, (saved rows, ..., bytes) with the other axes in their order."""
        row = self.shape[2:]
        require(self.shape[0] * prod(row) * -(-self.sites // 8), "the configurations of a sample", "save fewer")
        pieces = [self._piece(first)[:, sample] for first in range(0, self.shape[0], self._depth)]
        return np.concatenate([piece.copy() for piece in pieces])

    @property
    def labels(self) -> dict[str, npt.NDArray[Any]]:
        """All labels, each of shape (configurations,), such as pandas makes a table of; ``parity`` reads everything."""
        names = ["step", *self._of_rows, *(name for name in self.axes if name != "step")]
        return {name: self.label(name) for name in names} | {"parity": self.parity}

    @property
    def temperature(self) -> npt.NDArray[np.float64]:
        """The temperature of each, in the unit of the couplings."""
        return self.label("temperature")

    @property
    def sample(self) -> npt.NDArray[np.int64]:
        """The disorder sample of each."""
        return self.label("sample")

    @property
    def copy(self) -> npt.NDArray[np.int64]:
        """The copy of each at its temperature; of an annealing run its replica."""
        return self.label("replica" if "replica" in self.axes else "copy")

    @property
    def sweep(self) -> npt.NDArray[np.int64]:
        """The sweeps done before each: since thermalisation, or of an annealing run since its start."""
        return self.label("sweep")

    @cached_property
    def parity(self) -> npt.NDArray[np.int8]:
        """The product of all spins of each, (-1) to the number of spins -1, as +1 and -1."""
        up = [spins_up(self._piece(first)) for first in range(0, self.shape[0], self._depth)]
        down = self.sites - np.concatenate([part.reshape(-1) for part in up] or [np.empty(0, np.int64)])
        return (1 - 2 * (down % 2)).astype(np.int8)

    def label(self, name: str) -> npt.NDArray[Any]:
        """One label of each configuration, by its name, such as ``field`` of an annealing run in a field that changes.

        Raises:
            InputError: where they have no such label.
        """
        names = [*self._of_rows, *self.axes]
        if name not in names:
            raise InputError(f"these configurations have no {name}: they have {', '.join(names)}")
        axis = 0 if name in self._of_rows else list(self.axes).index(name)
        values = self._of_rows[name] if name in self._of_rows else self.axes[name]
        along = [1] * len(self.shape)
        along[axis] = -1
        return np.broadcast_to(values.reshape(along), self.shape).reshape(-1)

    def at_step(self, step: int) -> dict[str, Any]:
        """Values of the run's row of a number, by the names of series; nothing where none were saved."""
        if (step + 1) % self.every:
            return {}
        row = step // self.every
        return {"spins": self._bits(row)} | {name: values[row] for name, values in self._of_rows.items()}

    def _bits(self, row: int) -> Bits:
        number = range(self.shape[0])[row]
        return np.asarray(self._piece(number // self._depth * self._depth)[number % self._depth])

    @property
    def _depth(self) -> int:
        """Saved rows that are in memory at a time."""
        return max(1, _PIECE_BYTES // (prod(self.shape[1:]) * -(-self.sites // 8)))

    def _piece(self, first: int) -> Bits:
        """The bits of the saved rows from a multiple of ``_depth`` on; the piece read last is kept."""
        if self._last_piece is None or self._last_piece[0] != first:
            self._last_piece = first, self._read(first, min(first + self._depth, self.shape[0]))
        return self._last_piece[1]

    def _chosen(self, numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.int8]:
        require(numbers.size * self.sites, count(numbers.size, "configuration"), "take fewer at a time")
        spins = np.empty((*numbers.shape, self.sites), np.int8)
        together = self._depth * prod(self.shape[1:])
        pieces = numbers // together
        for piece in np.unique(pieces).tolist():
            here = pieces == piece
            bits = self._piece(piece * self._depth)
            one_by_one = bits.reshape(-1, bits.shape[-1])
            spins[here] = unpacked_spins(one_by_one[numbers[here] - piece * together], self.sites)
        return spins


class SampledResult(Result):
    """A ``Result`` whose file has a row for each step or measurement, and the lowest states met."""

    best_energy: npt.NDArray[np.float64] | None  # lowest of each sample and replica, None where no state is known
    best_spins: npt.NDArray[np.int8] | States | None  # the lowest state of each sample, likewise
    configurations: Configurations | None  # saved ones, None where there are none

    @property
    def _rows(self) -> int:
        raise NotImplementedError

    @property
    def _planned(self) -> int:
        raise NotImplementedError

    @property
    def _contents(self) -> Contents:
        raise NotImplementedError

    def _written_again(self, contents: Contents) -> dict[str, npt.NDArray[Any]]:
        """Datasets of a file of these contents that are written again and again, by path."""
        raise NotImplementedError

    def series(self, name: str) -> npt.NDArray[Any]:
        """Returns a series of its file, one of the user's own among them."""
        own: dict[str, npt.NDArray[Any]] = getattr(self, "measured", {})
        values: npt.NDArray[Any] = own[name] if name in own else getattr(self, name)
        return values

    def dataset(self) -> xarray.Dataset:
        """The measurements as an xarray dataset with named axes.

        Raises:
            InputError: where xarray is not installed.
        """
        contents = self._contents
        names = [s.name for s in contents.series if s.group == MEASUREMENTS and s.name != "step"]
        return self._labelled(contents, {name: self.series(name) for name in names} | {"step": np.arange(self._rows)})

    def _write(self, target: Path) -> None:
        saved, contents, names = self.configurations, self._contents, {series.name for series in self._contents.series}
        if saved is not None:
            contents = with_configurations(contents, saved.every, saved.sites)
        best_of = 0 if self.best_energy is None else self.best_energy.shape[1]
        store.create(target, self.model, contents, max(self._planned, self._rows), self._origin, best_of)
        with store.open_to_append(target) as file:
            for step in range(self._rows):
                of_row = {} if saved is None else saved.at_step(step)
                file.write({"step": step} | of_row | {name: self.series(name)[step] for name in names - {"step"}})
            file.write_again(self._written_again(contents))
            if self.best_energy is not None and self.best_spins is not None:
                file.write_best(self.best_energy, self.best_spins)
            if self.finished:
                file.finish()


@public
def configurations(run: Result | str | os.PathLike[str]) -> Configurations:
    """The configurations that a run has saved, as data to learn from; of an unfinished run, those so far.

    Args:
        run: A result, or a file of a run with ``save_configurations``.

    Returns:
        A sequence of arrays of +1 and -1 with labels of the same length.

    Examples:
        >>> run = ss.temper(ss.Ising(ss.square(4)), "2:3:3", sweeps=40, save_configurations=2, device="cpu")
        >>> saved = ss.configurations(run)
        >>> saved[saved.temperature < 2.2].shape  # (configurations, sites)
        (4, 16)

    Raises:
        InputError: as ``load``, and for a run that has saved none.
    """
    saved: Configurations | None
    if isinstance(run, Result):
        saved, name = getattr(run, "configurations", None), "this run"
    else:
        name = os.fspath(run)
        with open_to_read(Path(run)) as file:
            saved = in_file(file, complete_rows(file))
    if saved is None:
        raise InputError(
            f"{name} has saved no configurations: run it again with {argument('save_configurations', 1)} or more, into "
            "another file"
        )
    return saved


def in_file(file: h5py.File, rows: int) -> Configurations | None:
    """Lazily read configurations of the first rows of the run in an open file; None where none are saved."""
    if CONFIGURATIONS not in file:
        return None
    group, path = file[CONFIGURATIONS], Path(os.fsdecode(file.filename)).absolute()
    sites, every = (int(group.attrs[name]) for name in ("sites", EVERY))
    saved, spins = rows // every, group["spins"]
    names = [spins.dims[axis][0].name.rpartition("/")[2] for axis in range(1, spins.ndim)]
    axes = {"step": np.arange(saved)} | {name: group[name][...] for name in names if name != BYTE}
    series = [name for name in group if name not in ("spins", "step") and not group[name].is_scale]

    def read(first: int, end: int) -> Bits:
        with open_to_read(path) as again:
            bits: Bits = again[CONFIGURATIONS]["spins"][first:end]
            return bits

    return Configurations(axes, {name: group[name][:saved] for name in series}, sites, every, read)


def in_memory(contents: Contents, kept: Mapping[str, Mapping[str, npt.NDArray[Any]]]) -> Configurations | None:
    if CONFIGURATIONS not in kept:
        return None
    group, numbers = kept[CONFIGURATIONS], contents.numbers[CONFIGURATIONS]
    spins = next(s for s in contents.series if (s.group, s.name) == (CONFIGURATIONS, "spins"))
    axes = {"step": group["step"]} | {name: np.asarray(contents.scales[name]) for name in spins.axes if name != BYTE}
    of_rows = {name: values for name, values in group.items() if name not in ("spins", "step")}
    bits = group["spins"]
    return Configurations(axes, of_rows, numbers["sites"], numbers[EVERY], lambda first, end: bits[first:end])


def saved_of(result: Result) -> tuple[Configurations, npt.NDArray[np.int64]]:
    """Returns the configurations of a run and the rows of its series at which they were saved."""
    saved = configurations(result)
    if not len(saved):
        raise InputError(f"the run has not come to its first saved configurations, at every {saved.every} steps: go on")
    return saved, (np.arange(saved.shape[0]) + 1) * saved.every - 1
