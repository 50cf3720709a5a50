"""Saved configurations: arrays of +1 and -1 with labels, and the base class of results that have them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from functools import cached_property
from math import prod
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from spinsim.errors import InputError, argument
from spinsim.inputs.arguments import as_stated, public
from spinsim.inputs.numbers import whole_array
from spinsim.inputs.texts import Described, count
from spinsim.machine.files import as_path
from spinsim.machine.memory import require
from spinsim.packing import Bits, States, spins_up, unpacked_spins
from spinsim.record import Array, Record
from spinsim.result import Result
from spinsim.store.contents import BITS, BYTE, EVERY, MEASUREMENTS, STEP, Series, group_of, rows_in
from spinsim.store.files import CONFIGURATIONS, read

_PIECE_BYTES: Final = 2**24  # bits in memory at a time
_BATCH_BYTES: Final = 2**24  # spins unpacked at a time during iteration
Labels = Mapping[str, npt.NDArray[Any]]


@public
class Configurations(Described):
    """Saved configurations as a sequence of arrays of +1 and -1, with labels of the same length.

    ``c[i]`` is one configuration, ``int8`` (sites,). ``c[a:b]``, ``c[numbers]`` and ``c[mask]`` are (configurations,
    sites). Configurations are read from the file on access. The configurations of one saved row follow each other in
    the order of ``axes``; the last axis runs fastest.

    Attributes:
        axes: Labels along each axis by name. The first axis is ``step``, the saved rows; then follow ``sample``,
            ``copy`` and ``temperature`` of a tempering run, ``sample`` and ``replica`` of an annealing run.
        sites: Sites of a configuration, in the order of the model.
        every: Number of rows of the run for each saved row.
    """

    def __init__(self, axes: Labels, of_rows: Labels, sites: int, every: int, bits: Any) -> None:
        self.axes, self.sites, self.every = dict(axes), sites, every
        self._of_rows, self._stored = dict(of_rows), bits  # (rows, ..., bytes), in memory or in a file
        self._last_piece: tuple[int, Bits] | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """Length along each axis."""
        return tuple(len(values) for values in self.axes.values())

    def __len__(self) -> int:
        return prod(self.shape)

    @property
    def _summary(self) -> dict[str, str]:
        along = " x ".join(count(length, name) for name, length in zip(self.axes, self.shape, strict=True))
        return {"number": count(len(self), "configuration"), "size": count(self.sites, "site"), "axes": along}

    def __getitem__(self, which: Any) -> npt.NDArray[np.int8]:
        if isinstance(which, slice):
            return self._chosen(np.arange(*which.indices(len(self))))
        if np.ndim(which) == 0:
            number = range(len(self))[as_stated("number", which, "int")]
            return np.asarray(self._chosen(np.array([number]))[0])
        if np.asarray(which).dtype.kind != "b":  # no mask
            which = whole_array(as_stated("numbers", which, "ArrayLike"), "number")
        return self._chosen(np.arange(len(self))[which])

    def __iter__(self) -> Iterator[npt.NDArray[np.int8]]:
        together = max(1, _BATCH_BYTES // self.sites)
        for first in range(0, len(self), together):
            yield from self[first : first + together]

    def row(self, number: int) -> npt.NDArray[np.int8]:
        """Return the configurations of one saved row, ``int8`` (..., sites), with the other axes in their order."""
        return unpacked_spins(self._bits(number), self.sites)

    def samples_of_row(self, number: int) -> Iterator[npt.NDArray[np.int8]]:
        """Iterate over the samples of one saved row, ``int8`` (..., sites) each, of which one is unpacked at a time."""
        return (unpacked_spins(bits, self.sites) for bits in self._bits(number))

    def of_sample(self, sample: int) -> Bits:
        """Return the bits of one disorder sample, (saved rows, ..., bytes), with the other axes in their order."""
        row = self.shape[2:]
        require(self.shape[0] * prod(row) * -(-self.sites // 8), "the configurations of a sample", "save fewer")
        pieces = [self._piece(first)[:, sample] for first in range(0, self.shape[0], self._depth)]
        return np.concatenate([piece.copy() for piece in pieces])

    @property
    def labels(self) -> dict[str, npt.NDArray[Any]]:
        """All labels, each (configurations,), for example for a pandas table; ``parity`` reads all configurations."""
        names = ["step", *self._of_rows, *(name for name in self.axes if name != "step")]
        return {name: self.label(name) for name in names} | {"parity": self.parity}

    @property
    def temperature(self) -> npt.NDArray[np.float64]:
        """Temperature of each configuration, in the unit of the couplings."""
        return self.label("temperature")

    @property
    def sample(self) -> npt.NDArray[np.int64]:
        """Disorder sample of each configuration."""
        return self.label("sample")

    @property
    def copy(self) -> npt.NDArray[np.int64]:
        """Copy of each configuration at its temperature; for an annealing run, its replica."""
        return self.label("replica" if "replica" in self.axes else "copy")

    @property
    def sweep(self) -> npt.NDArray[np.int64]:
        """Sweeps done before each configuration: since thermalisation, or since the start of an annealing run."""
        return self.label("sweep")

    @cached_property
    def parity(self) -> npt.NDArray[np.int8]:
        """Product of all spins of each configuration, +1 or -1."""
        up = [spins_up(self._piece(first)) for first in range(0, self.shape[0], self._depth)]
        down = self.sites - np.concatenate([part.reshape(-1) for part in up] or [np.empty(0, np.int64)])
        return (1 - 2 * (down % 2)).astype(np.int8)

    def label(self, name: str) -> npt.NDArray[Any]:
        """Return one label of each configuration by name, such as ``field`` of an annealing run in a changing field.

        Raises:
            InputError: if the configurations have no such label.
        """
        names = [*self._of_rows, *self.axes]
        if name not in names:
            raise InputError(f"these configurations have no {name}: they have {', '.join(names)}")
        axis = 0 if name in self._of_rows else list(self.axes).index(name)
        values = self._of_rows[name] if name in self._of_rows else self.axes[name]
        along = [1] * len(self.shape)
        along[axis] = -1
        return np.broadcast_to(values.reshape(along), self.shape).reshape(-1)

    def _bits(self, row: int) -> Bits:
        number = range(self.shape[0])[row]
        return np.asarray(self._piece(number // self._depth * self._depth)[number % self._depth])

    @property
    def _depth(self) -> int:
        """Number of saved rows in memory at a time."""
        return max(1, _PIECE_BYTES // (prod(self.shape[1:]) * -(-self.sites // 8)))

    def _piece(self, first: int) -> Bits:
        """Return the bits of ``_depth`` saved rows from row ``first`` on; the last piece is cached."""
        if self._last_piece is None or self._last_piece[0] != first:
            self._last_piece = first, self._stored[first : min(first + self._depth, self.shape[0])]
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
    """A ``Result`` whose record has a row for each step or measurement, and the lowest states met."""

    best_energy: npt.NDArray[np.float64] | None  # lowest energy of each sample and replica; None if no state is known
    best_spins: npt.NDArray[np.int8] | States | None  # lowest state of each sample; None if no state is known
    configurations: Configurations | None  # saved configurations; None if there are none


@public
def configurations(run: Result | str | os.PathLike[str]) -> Configurations:
    """Return the configurations that a run has saved, as training data; for an unfinished run, those saved so far.

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
        saved, name = configurations_in(read(as_path(run, "a run"))), os.fspath(run)
    if saved is None:
        raise InputError(
            f"{name} has saved no configurations: run it again with {argument('save_configurations', 1)} or more, into "
            "another file"
        )
    return saved


def configurations_in(record: Record) -> Configurations | None:
    """Return the configurations in a record, or None if none are saved."""
    if CONFIGURATIONS not in record.groups:
        return None
    group = record.groups[CONFIGURATIONS]
    spins = group.arrays["spins"]
    lengths = zip(spins.axes, spins.values.shape, strict=True)
    axes = {name: group[name] if name in group else np.arange(n) for name, n in lengths if name != BYTE}
    rows = [name for name, one in group.arrays.items() if one.axes == (STEP,)]
    sites, every = (int(group.attributes[name]) for name in ("sites", EVERY))
    return Configurations(axes, {name: np.asarray(group[name]) for name in rows}, sites, every, spins.values)


def with_configurations(contents: Record, every: int, sites: int) -> Record:
    """Return contents with room for the configurations of all replicas that the first measured quantity has.

    Each saved row also holds the coordinates of its measurement, such as its temperature, and the sweeps done. One of
    ``every`` rows of the run is saved; for 0 the contents are returned unchanged. Bit b of byte k is site 8 k + b;
    replicas are ordered by copies and temperatures.
    """
    if not every:
        return contents
    measured = contents.groups[MEASUREMENTS]
    first = next(one for one in rows_in(measured).values() if len(one.axes) > 1)
    lengths = dict(zip(first.axes, first.values.shape, strict=True)) | {BYTE: -(-sites // 8)}
    arrays: dict[str, Array] = {axis: measured.arrays[axis] for axis in first.axes if axis in measured.arrays}
    where = str(measured.attributes["coordinates"]).split()
    series = [
        Series("measurement", (STEP,), np.int64, "row of /measurements of the same moment"),
        Series("sweep", (STEP,), np.int64, "sweeps done"),
        Series("spins", (*first.axes, BYTE), np.uint8, f"spins, {BITS}"),
    ]
    group = group_of(series, lengths, arrays, {EVERY: every, "sites": sites})
    group.arrays |= {name: measured.arrays[name] for name in where}
    group.attributes["coordinates"] = " ".join(dict.fromkeys(["measurement", "sweep", *where]))
    more = contents.copy()
    more.groups[CONFIGURATIONS] = group
    return more


def saved_of(result: Result) -> tuple[Configurations, npt.NDArray[np.int64]]:
    """Return the configurations of a run and the rows of its series at which they were saved."""
    saved = configurations(result)
    if not len(saved):
        raise InputError(f"the run has not come to its first saved configurations, at every {saved.every} steps: go on")
    return saved, (np.arange(saved.shape[0]) + 1) * saved.every - 1
