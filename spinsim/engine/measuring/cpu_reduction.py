"""Sums of the measurements of a ladder on the host, for engines that do not add up on their own device."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import ldexp
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from spinsim.engine.measuring.cpu import Compared
from spinsim.engine.measuring.cpu_sums import (
    Floats,
    Integers,
    Sums,
    add_measurement,
    add_succession,
    empty_bins,
    fill_values,
    find_lower,
)
from spinsim.engine.measuring.reduction import (
    SAMPLE_AXIS,
    SUMS,
    Blocks,
    Reduced,
    Source,
    blocks_in_succession,
    blocks_of,
    is_halved,
    merge_blocks,
    tables_of,
)
from spinsim.engine.moves.exchange import copy_pairs
from spinsim.engine.protocols import Configurations, KeptSpins, LadderMeasurement, LowestStates, Spins, bits_of_one
from spinsim.machine.threads import Threads
from spinsim.model.ising import Ising
from spinsim.packing import Bits, States, packed_spins

VALUES_A_WORD: Final = 40  # values added up in the time of a kernel's update of a word
_OF_CHAINS: Final = "copy_sums"
"""The array with the copies of a sample contiguous in the file, but the samples of a copy contiguous in memory."""
_ENERGY: Final = Source("energy")


BY_KERNEL: Final = (
    "energy", "magnetization", "staggered_magnetization", "magnetization_mode", "overlap", "link_overlap",
    "overlap_mode",
)  # fmt: skip
"""Sources that a kernel reads from a measurement of a CPU engine."""


def fill(room: Floats, measurement: LadderMeasurement, source: Source, samples: slice) -> None:
    """Copy the values of a source for some samples into ``room``, (copies or pairs, samples, places)."""
    whole = getattr(measurement, source.name, None)
    if whole is None:
        whole = getattr(measurement.correlations, source.name)
    room, whole = room[:, samples], whole[samples].swapaxes(0, 1)
    if not source.elements:
        room[...] = whole
        return
    first, *others = source.elements
    room[...] = whole[..., first]
    for element in others:
        room += whole[..., element]


class HostReduction:
    """Adds up measurements in host memory, and keeps the lowest states found by them.

    Args:
        threads: Threads that add up samples in parallel; by default there is one.
    """

    def __init__(self, reduced: Reduced, threads: Threads | None = None) -> None:
        self.reduced, self.measurements, self._threads = reduced, 0, threads or Threads(1)
        samples, places, sources = reduced.model.samples, reduced.places, reduced.sources
        self._tables, self._bins = tables_of(reduced), empty_bins(reduced)
        shapes = reduced.arrays()
        sums = Sums(*(np.zeros(_side_by_side(name, shapes[name][0])) for name in Sums._fields))
        there: dict[str, npt.NDArray[Any]] = {
            name: _by_sample(name, array, samples, places) for name, array in sums._asdict().items()
        }
        if reduced.energies is not None:
            there |= self._bins.arrays(reduced.copies, reduced.energies.pair_rows)
        self._arrays = {name: there[name] if name in there else np.zeros(*shape) for name, shape in shapes.items()}
        pairs = {source for term in reduced.terms for source in term.sources if term.of_pairs}
        self._of_copies = np.zeros((len(sources), reduced.copies, samples, places))
        self._of_pairs = np.zeros((len(sources), reduced.pairs, samples, places))
        rooms = [self._of_pairs if source in pairs else self._of_copies for source in sources]
        self._rooms = [(source, room[k]) for k, (source, room) in enumerate(zip(sources, rooms, strict=True))]
        energy = dict(self._rooms).get(_ENERGY)
        if energy is None:
            energy = np.zeros((reduced.copies, samples, places))
            self._rooms.append((_ENERGY, energy))
        rows = (room.reshape(*room.shape[:-2], samples * places) for room in (self._of_copies, self._of_pairs, energy))
        which = [BY_KERNEL.index(source.name) if source.name in BY_KERNEL else -1 for source, _ in self._rooms]
        self._others = [room for room, is_other in zip(self._rooms, np.array(which) < 0, strict=True) if is_other]
        axes = max(1, *(len(source.elements) for source, _ in self._rooms))
        elements = [(*source.elements, *(-1,) * axes)[:axes] for source, _ in self._rooms]
        filling = np.array(which), np.array(elements), self._of_copies, self._of_pairs, energy
        walks = self._arrays["walk_sums"], self._arrays["walk_squares"]
        adding = (
            *rows, self._tables, np.array(copy_pairs(reduced.copies), np.int64).reshape(-1, 2), sums,
            self._bins, walks, self._histogram("overlap"), self._histogram("link_overlap"),
        )  # fmt: skip
        self._fill, self._add = fill_values.given(*filling), add_measurement.given(*adding)
        self._add_succession = add_succession.given(filling, adding)
        values = sum(reduced.pairs if term.of_pairs else reduced.copies for term in reduced.terms)
        self._words = samples * places * values // VALUES_A_WORD
        self._best, self._changed = Best(reduced.model, reduced.copies * places), np.zeros(samples, np.bool_)
        self._better, self._moment = np.empty(samples, np.int64), np.empty(samples, np.int64)
        lowest = self._best.energy, self._better, self._moment
        self._find_lower = find_lower.given(np.float64(reduced.model.quantum), *lowest)

    def add(self, measurement: LadderMeasurement) -> None:
        """Add the run's next measurement, and keep the states that are lower than all before."""
        self.add_numbers(measurement)
        self._changed[self._best.update(measurement.replica_energy, measurement.spins)] = True

    def add_numbers(self, measurement: LadderMeasurement) -> None:
        """Add only the numbers of a measurement, such as one from a stored series."""

        def add(begin: int, end: int) -> None:
            self.add_samples(measurement, self.measurements, slice(begin, end))

        self._threads.share_out(add, self.reduced.model.samples, self._words)
        self.end(1)

    @property
    def adds_successions(self) -> bool:
        """True if kernels read all summed quantities from measurements of CPU engines."""
        return not self._others

    def keep_lowest(self, energy: Integers, spins: Callable[[int], Spins], samples: slice) -> None:
        """Keep the states of some samples that are lower than all before.

        ``energy`` has consecutive measurements, (measurements, samples, replicas) in quanta. ``spins`` finds the
        configurations of a measurement by its number.
        """
        better = self._better[samples]
        self._find_lower(energy, samples.start, samples.stop)
        for k in np.flatnonzero(better >= 0).tolist() if (better >= 0).any() else ():
            sample = samples.start + k
            self._best.record(sample, int(better[k]), spins(int(self._moment[sample])))
            self._changed[sample] = True

    def end(self, measurements: int) -> None:
        self.measurements += measurements
        self._arrays["measurements"][:] = self.measurements

    def add_samples(
        self, measurement: LadderMeasurement, number: int, mine: slice, compared: Compared | None = None
    ) -> None:
        """Add the numbers of some samples of measurement ``number``; ``compared`` has comparisons by CPU engines."""
        scale, blocks = self._begin_block(number, mine)
        if compared is not None:
            self._fill(*measurement[:3], *compared, mine.start, mine.stop)
        for source, room in self._rooms if compared is None else self._others:
            fill(room, measurement, source, mine)
        self._add(scale, number, blocks, measurement.exchange.place, mine.start, mine.stop)

    def add_in_succession(self, measurement: LadderMeasurement, compared: Compared, number: int) -> None:
        """Add measurements from number ``number`` on, with the samples of one after the samples of the other."""
        samples, place, values = self.reduced.model.samples, measurement.exchange.place, (*measurement[:3], *compared)
        done, count = 0, len(place) // samples
        while done < count:
            scale, _ = self._begin_block(number + done, slice(0, samples))
            blocks = blocks_in_succession(self.reduced, number + done, count - done)
            mine = slice(done * samples, (done + len(blocks)) * samples)
            *of_samples, modes = values
            self._add_succession(
                scale, number + done, blocks, *(each[mine] for each in of_samples), modes[:, mine], place[mine]
            )
            done += len(blocks)

    def _begin_block(self, number: int, mine: slice) -> tuple[float, Blocks]:
        """Merge blocks and halve sums of some samples before a measurement; return its scale of moments and blocks."""
        arrays, reduced = self._arrays, self.reduced
        blocks, merged = blocks_of(reduced, number)
        for name in merged:
            merge_blocks(_of_samples(name, arrays[name], mine), 1)
        if reduced.energies is None:
            return 1.0, blocks
        if is_halved(number):
            for name in SUMS:
                if name in arrays:
                    halved = _of_samples(name, arrays[name], mine)[:, : blocks.energy_block + 1]  # the rest is empty
                    halved >>= 1
        return ldexp(1.0, reduced.energies.exponent(number)), blocks

    def _histogram(self, name: str) -> tuple[int, npt.NDArray[np.uint32], npt.NDArray[Any]]:
        """Source, cell of each value and histogram of an overlap; without a histogram there are no cells."""
        for one in self.reduced.histograms:
            if one.source == name:
                cell = (np.arange(one.values) * one.cells // one.values).astype(np.uint32)
                return self.reduced.sources.index(Source(name)), cell, self._arrays[f"{name}_histogram"]
        return 0, np.empty(0, np.uint32), np.empty((0, 0, 0), np.uint32)

    def state(self) -> dict[str, npt.NDArray[Any]]:
        return {name: array.copy() for name, array in self._arrays.items()}

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        for name, array in self._arrays.items():
            array[...] = arrays[name]
        self.measurements = int(self._arrays["measurements"][0])

    def lowest(self) -> LowestStates:
        changed = np.flatnonzero(self._changed)
        self._changed[:] = False
        return LowestStates(self._best.energy.copy(), lambda sample: self._best.spins[sample], changed)

    def restore_lowest(self, energy: npt.NDArray[np.float64], spins: Configurations) -> None:
        self._best.energy[...] = energy
        if isinstance(self._best.spins, States):
            self._best.spins.bits[...] = spins.bits if isinstance(spins, States) else packed_spins(spins)
        else:
            self._best.spins[...] = spins
        self._changed[:] = False


def _side_by_side(name: str, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Shape of an array of ``Sums``, from the shape in ``Reduced.arrays``."""
    if name == "coldest_sums":
        return shape
    *before, samples, places = shape if name != _OF_CHAINS else (*shape[:-3], shape[-2], shape[-3], shape[-1])
    return *before, samples * places


def _by_sample(name: str, array: Floats, samples: int, places: int) -> Floats:
    """View an array of ``Sums`` with the shape in ``Reduced.arrays``."""
    if name == "coldest_sums":
        return array
    apart = array.reshape(*array.shape[:-1], samples, places)
    return np.moveaxis(apart, -3, -2) if name == _OF_CHAINS else apart


def _of_samples(name: str, array: npt.NDArray[Any], samples: slice) -> npt.NDArray[Any]:
    return array[(slice(None),) * SAMPLE_AXIS.get(name, 0) + (samples,)]


class Best:
    """Keeps the lowest energy of every replica and the lowest configuration of every sample.

    Args:
        samples: Number of samples, if not the model's.

    Attributes:
        energy: Lowest energy, shape (samples, replicas).
    """

    def __init__(self, model: Ising, replicas: int, samples: int | None = None) -> None:
        rows = samples or model.samples
        self.energy = np.full((rows, replicas), np.inf)
        self._spins: npt.NDArray[np.int8] | States
        if model.graph.is_listed:
            self._spins = np.zeros((rows, model.sites), np.int8)
        else:
            self._spins = States(np.zeros((rows, -(-model.sites // 8)), np.uint8), model.sites)
        self._on_device: dict[int, Callable[[], Bits]] = {}  # functions that read states on their device, by sample

    @property
    def spins(self) -> npt.NDArray[np.int8] | States:
        """Configurations of lowest energy, ``int8`` (samples, sites); the first found among equals.

        They are ``States`` for a lattice without a bond list, as in the files of its runs.
        """
        if isinstance(self._spins, States):
            for sample, read in self._on_device.items():
                self._spins.bits[sample] = read()
            self._on_device.clear()
        return self._spins

    @spins.setter
    def spins(self, states: npt.NDArray[np.int8] | States) -> None:
        self._spins = states
        self._on_device.clear()

    def update(self, energy: npt.NDArray[np.float64], spins: Spins) -> npt.NDArray[np.int64]:
        """Record energies (samples, replicas) and their configurations; return the samples with lower energies."""
        better = np.flatnonzero(energy.min(axis=1) < self.energy.min(axis=1))
        np.minimum(self.energy, energy, out=self.energy)
        for sample in better.tolist():
            self.record(sample, int(energy[sample].argmin()), spins)
        return better

    def record(self, sample: int, replica: int, spins: Spins) -> None:
        """Record the configuration of a replica as the lowest of its sample."""
        if not isinstance(self._spins, States):
            self._spins[sample] = spins(sample, replica)
        elif isinstance(spins, KeptSpins) and spins.copied is not None:
            self._on_device[sample] = spins.copied(sample, replica)
        else:
            self._spins.bits[sample] = bits_of_one(spins, sample, replica)
