"""Measuring a ladder on the CPU: numbers by temperature, and correlations of copies at equal temperatures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spinsim.engine.measuring.correlations import (
    Correlations,
    Items,
    Wanted,
    all_bonds,
    all_sites,
    layers,
    overlaps_only,
    waves,
)
from spinsim.engine.measuring.cpu_comparison import Along, WordList, compare_ladder, word_list, word_lists
from spinsim.engine.measuring.in_time import CpuInTime, InTimeCounts
from spinsim.engine.moves.exchange.cpu import CpuTempering
from spinsim.engine.moves.exchange.ladder import copy_pairs
from spinsim.engine.protocols import Counts, LadderMeasurement, Spins
from spinsim.machine.compiled import kernel
from spinsim.model.ising import Ising
from spinsim.packing import block_count

Words = npt.NDArray[np.uint64]
Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

Keep = Callable[[slice], None]
FULLY: Final = 4  # times as long as counting overlaps that comparing copies fully takes


class Compared(NamedTuple):
    """Numbers that ``Compare`` finds; those that are not wanted have no pairs or no axes."""

    overlap: Integers  # as ``Correlations`` has them, int64 (samples, pairs, temperatures)
    link_overlap: Integers
    modes: Floats  # squared modes along each axis, float64 (axes, samples, pairs, then copies if wanted, temperatures)


Compare = Callable[[Words, Integers, Compared, slice], None]
"""Fills in what is ``Compared`` of some samples, from their words and the replicas at temperatures of all samples."""


class CpuReplicaComparison:
    """Comparison of copies at equal temperatures, by replica-packed words (blocks, sites, 2) of each sample."""

    def __init__(self, model: Ising) -> None:
        self._model = model

    @cached_property
    def _fully(self) -> Callable[..., None]:
        """``compare_ladder`` of sites with layers along all axes, and of bonds."""
        lattice = self._model.embedding
        of_axes = [] if lattice is None else [layers(lattice, axis) for axis in range(lattice.dimension)]
        along = [Along(k, *one) for k, one in enumerate(zip(of_axes, waves(lattice), strict=True))]
        return _compare(word_lists(all_sites(self._model), along), all_bonds(self._model))

    @cached_property
    def _sites(self) -> Callable[..., None]:
        return _compare([word_list(all_sites(self._model))], Items(np.empty((0, 2), np.int32), 1, 0))

    def compare(self, words: Words, holder: Integers, results: Compared, samples: slice) -> None:
        """Fill in the ``results`` of some samples; ``holder`` is (all samples, copies, temperatures)."""
        compare = self._fully if results.link_overlap.shape[1] or len(results.modes) else self._sites
        compare(words, holder, *results, samples.start, samples.stop)


def _compare(orders: Sequence[WordList], bonds: Items) -> Callable[..., None]:
    kernel: Callable[..., None] = compare_ladder.given(tuple(orders), word_list(bonds))
    return kernel


class Measurement:
    """Room for a measurement of a ladder, which is filled sample by sample.

    Args:
        in_time: Lists of what models of space and time have.
        terms: Terms of the energy that counts tell apart.
        keep: Keeps those of some samples; None for a measurement that nobody reads, in which exchanges go on.

    Attributes:
        holder: Replica at each temperature, (samples, copies, temperatures).
    """

    def __init__(
        self, model: Ising, tempering: CpuTempering, wanted: Wanted, in_time: CpuInTime, spins: Spins, terms: int,
        keep: Keep | None,
    ) -> None:  # fmt: skip
        ladder, self._model, self._exchange, self.wanted = tempering.ladder, model, tempering.exchange, wanted
        copies = ladder.copies if wanted.full or wanted.overlaps else 1
        pairs, shape = len(copy_pairs(copies)), (model.samples, ladder.copies, ladder.temperatures)
        of_pairs = model.samples, pairs, ladder.temperatures
        axes = model.embedding.dimension if wanted.full and model.embedding else 0
        in_modes = pairs + (copies if wanted.magnetization_modes else 0)
        modes = np.empty((axes, model.samples, in_modes, ladder.temperatures))
        links = np.empty(of_pairs if wanted.full else (model.samples, 0, ladder.temperatures), np.int64)
        self.compared = Compared(np.empty(of_pairs, np.int64), links, modes)
        self.in_time = InTimeCounts(in_time, model.samples, ladder) if wanted.full else None
        correlations = overlaps_only(self.compared.overlap, ladder)
        if self.in_time is not None:
            last = np.moveaxis(modes, 0, -1)
            of_spins = last[:, pairs:] if wanted.magnetization_modes else np.empty((*shape, 0))
            correlations = Correlations(*self.compared[:2], last[:, :pairs], of_spins, *self.in_time.results())
        self.is_fetched, self._keep, self.holder = keep is not None, keep, np.empty(shape, np.int64)
        energy = np.empty(shape)
        self.measurement = LadderMeasurement(
            energy, np.empty(shape, np.int64), np.empty(shape, np.int64), np.empty(shape, np.int32),
            self._exchange.copied() if keep else self._exchange, correlations, spins,
            energy[..., None] if terms == 1 else np.empty((*shape, terms)),
        )  # fmt: skip
        numbers = energy, self.measurement.magnetization, self.measurement.staggered_magnetization
        self._sort = sort_numbers.given(np.float64(model.quantum), self.holder, self.measurement.holder, *numbers)

    def later(self) -> LadderMeasurement:
        return self.measurement

    def record(self, counts: Counts, samples: slice) -> None:
        """Take what is counted of some samples, (samples, replicas), and how far their exchanges are."""
        measurement = self.measurement
        if self._keep is not None:
            self._keep(samples)
            for name, now in self._exchange._asdict().items():
                getattr(measurement.exchange, name)[samples] = now[samples]
        self._sort(self._exchange.place, *counts[:3], samples.start, samples.stop)
        if counts.terms is not None:
            of_term = np.take_along_axis(counts.terms[:, None], self.holder[samples][..., None], axis=2)
            measurement.energy_by_term[samples] = of_term * np.float64(self._model.quantum)


@kernel
def sort_numbers(  # type: ignore[no-untyped-def]
    quantum, holder, holder_32, energies, magnetizations, of_sublattices, place, energy, magnetization, staggered,
    begin, end,
):  # fmt: skip
    """Sort numbers of some samples' replicas by copy and temperature, from ``begin`` to before ``end``.

    Args:
        holder, holder_32, energies, magnetizations, of_sublattices: Written, (samples, copies, temperatures).
        place: Temperature of each replica, (samples, replicas).
        energy, magnetization, staggered: Counts of these samples, (samples, replicas).
    """
    temperatures = holder.shape[2]
    for sample in range(begin, end):
        k = sample - begin
        for replica in range(place.shape[1]):
            copy, t = replica // temperatures, place[sample, replica]
            holder[sample, copy, t] = holder_32[sample, copy, t] = replica
            energies[sample, copy, t] = np.float64(energy[k, replica]) * quantum
            magnetizations[sample, copy, t] = magnetization[k, replica]
            of_sublattices[sample, copy, t] = staggered[k, replica]


class CpuMeasuring:
    """Measures every copy at every temperature of a ladder."""

    def __init__(self, model: Ising, compare: Compare, words_of: Callable[[slice], Words], terms: int) -> None:
        self._model, self._compare, self._words_of, self._terms = model, compare, words_of, terms
        self._in_time: dict[Wanted, CpuInTime] = {}

    def begin(self, tempering: CpuTempering, wanted: Wanted, spins: Spins, keep: Keep | None = None) -> Measurement:
        """Make room for a measurement; arguments are those of ``Measurement``."""
        if wanted not in self._in_time:
            self._in_time = {wanted: CpuInTime(self._model.graph, wanted)}
        return Measurement(self._model, tempering, wanted, self._in_time[wanted], spins, self._terms, keep)

    def measure(self, room: Measurement, counts: Counts, samples: slice) -> None:
        """Measure the present state of some samples, of which ``counts`` are given."""
        room.record(counts, samples)
        compared = room.compared
        if not (compared.overlap.size or compared.modes.size):
            return
        words = self._words_of(samples)
        self._compare(words, room.holder, compared, samples)
        if room.in_time is not None:
            for k, sample in enumerate(range(samples.start, samples.stop)):
                room.in_time.count(sample, words[k], room.holder[sample])

    def words(self, wanted: Wanted, replicas: int) -> int:
        """Words of 128 spins whose update takes about as long as a measurement of all samples."""
        return self._model.samples * self._model.sites * block_count(replicas) * (1 + (FULLY if wanted.full else 1))
