"""Measuring a ladder on the CPU: numbers by temperature, and correlations of copies at equal temperatures."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Protocol

import numpy as np
import numpy.typing as npt

from spinsim.engine.measuring.correlations import (
    Correlations,
    Items,
    Wanted,
    all_bonds,
    by_kind,
    compared,
    layers,
    modes_by_kind,
    overlaps_alone,
    waves,
)
from spinsim.engine.measuring.cpu_comparison import (
    count_items,
    differing_copies,
    second_and_fourth_powers,
    squared_modes,
)
from spinsim.engine.measuring.in_time import CpuEven, pairs_in_time, slices
from spinsim.engine.moves.exchange.cpu import CpuTempering
from spinsim.engine.moves.exchange.ladder import Ladder, copy_pairs, holders
from spinsim.engine.protocols import Counts, LadderMeasurement, Spins
from spinsim.machine.threads import Threads
from spinsim.model.ising import Ising
from spinsim.packing import LANES, block_count

Words = npt.NDArray[np.uint64]
Integers = npt.NDArray[np.int64]


class CpuComparison(Protocol):
    """Counts where copies, or pairs of replicas ``one[p]``, ``other[p]``, differ; an update has its own way.

    Attributes:
        reference: Number of a replica that stands for all spins -1 in ``differing_in_layers``.
    """

    reference: int

    def differing_copies(self, words: Words, holder: Integers, pairs: Integers) -> Integers:
        """Returns how many sites copies differ at, (samples, pairs, temperatures), from the ``words`` of some samples.

        ``holder`` is the replica at each temperature, (samples, copies, temperatures), ``pairs`` (pairs, 2) are copies.
        """

    def differing_bonds(self, words: Words, one: Integers, other: Integers) -> Integers:
        """Bonds at which the products of both ends differ, (pairs,), from the ``words`` of one sample, and so on."""

    def differing_in_layers(self, words: Words, one: Integers, other: Integers) -> list[Integers]:
        """Sites of each layer along each axis at which replicas differ, (layers, pairs)."""


class CpuReplicaComparison:
    """A ``CpuComparison`` by replica-packed words, (blocks, sites, 2) of each sample.

    Args:
        model: What is simulated.
        replicas: Replicas of each sample.
    """

    def __init__(self, model: Ising, replicas: int) -> None:
        self._model, self.reference = model, LANES * block_count(replicas)

    @cached_property
    def _layers(self) -> list[Items]:
        lattice = self._model.lattice
        return [layers(lattice, axis) for axis in range(lattice.dimension)] if lattice else []

    def differing_copies(self, words: Words, holder: Integers, pairs: Integers) -> Integers:
        found = np.empty((len(holder), len(pairs), holder.shape[2]), np.int64)
        differing_copies(words, holder, pairs, found)
        return found

    def differing_bonds(self, words: Words, one: Integers, other: Integers) -> Integers:
        return np.asarray(count_items(words, all_bonds(self._model), one, other).sum(axis=0))

    def differing_in_layers(self, words: Words, one: Integers, other: Integers) -> list[Integers]:
        return [count_items(words, items, one, other) for items in self._layers]


class CpuMeasuring:
    """Measures every copy at every temperature of a ladder.

    Args:
        model: What is simulated.
        comparison: How two replicas are compared.
        words_of: Gives the words of some samples that are compared.
        threads: Samples are compared side by side.
    """

    def __init__(
        self, model: Ising, comparison: CpuComparison, words_of: Callable[[slice], Words], threads: Threads
    ) -> None:
        self._model, self._comparison, self._words_of, self._threads = model, comparison, words_of, threads
        self._listed: dict[tuple[int, ...], Items] = {}
        self._products: dict[tuple[int, ...], CpuEven] = {}

    def measure(self, tempering: CpuTempering, counts: Counts, spins: Spins, wanted: Wanted) -> LadderMeasurement:
        """The measurement of the present state, whose ``counts`` and ``spins`` are given.

        Args:
            tempering: Which replica is where.
            counts: Energies and magnetisations (samples, replicas).
            spins: Configurations, which later sweeps leave alone.
            wanted: What is asked for beside overlaps.
        """
        ladder, exchange = tempering.ladder, tempering.exchange.copied()
        holder = holders(exchange.place, ladder.copies)
        among_all = np.arange(0, holder.size, ladder.replicas)[:, None, None] + holder
        quantum = np.float64(self._model.quantum)
        energy = counts.energy.take(among_all) * quantum
        terms = counts.terms
        return LadderMeasurement(
            energy,
            counts.magnetization.take(among_all),
            counts.staggered_magnetization.take(among_all),
            holder.astype(np.int32),
            exchange,
            self._correlations(ladder, holder, wanted)
            if wanted.full
            else overlaps_alone(self._overlaps(ladder, holder, wanted.overlaps), ladder),
            spins,
            energy[..., None] if terms is None else terms.reshape(-1, terms.shape[-1])[among_all] * quantum,
        )

    def _overlaps(self, ladder: Ladder, holder: Integers, are_wanted: bool = True) -> Integers:
        """Overlaps of copies at equal temperatures, of no pairs where they are not wanted."""
        pairs = copy_pairs(ladder.copies if are_wanted else 1)
        found = np.empty((self._model.samples, len(pairs), ladder.temperatures), np.int64)

        def compare(first: int, stop: int) -> None:
            mine = slice(first, stop)
            found[mine] = self._comparison.differing_copies(self._words_of(mine), holder[mine], pairs)

        words = self._model.samples * self._model.sites * block_count(ladder.replicas)
        if found.size:
            self._threads.share_out(compare, self._model.samples, words)
        return self._model.sites - 2 * found

    def _correlations(self, ladder: Ladder, holder: Integers, wanted: Wanted) -> Correlations:
        times, even = wanted.times, self._even(wanted.times) if wanted.even else None
        model, pairs, comparison = self._model, len(copy_pairs(ladder.copies)), self._comparison
        shape = model.samples, pairs, ladder.temperatures
        links = np.empty(shape, np.int64)
        of_pairs = shape[1] * shape[2]
        compared_all = of_pairs + ladder.replicas
        in_waves = compared_all if wanted.magnetization_modes else of_pairs  # pairs come first
        modes = np.empty((model.samples, len(self._waves), in_waves))
        powers = np.zeros((model.samples, compared_all, 2 if self._slices else 0), np.int64)
        in_time = np.empty((model.samples, ladder.replicas, len(times)), np.int64)
        even_in_time = np.empty((*in_time.shape[:2], len(times) if even else 0), np.int64)
        in_space = np.empty((model.samples, pairs if even else 0, ladder.temperatures), np.int64)

        def measure(k: int) -> None:
            one, other = compared(holder[k], ladder.copies, comparison.reference)
            (words,) = self._words_of(slice(k, k + 1))
            links[k] = comparison.differing_bonds(words, one[:of_pairs], other[:of_pairs]).reshape(shape[1:])
            if self._slices:
                differing = count_items(words, self._slices, one, other)
                second_and_fourth_powers(differing, self._slices.size, powers[k])
            if times:
                in_time[k] = count_items(words, self._in_time(times), one[of_pairs:], other[of_pairs:]).T
            if even:
                counted = even.count(words, one, other, of_pairs)
                in_space[k] = counted.bonds - 2 * counted.differing.reshape(shape[1:])
                even_in_time[k] = counted.bonds - 2 * counted.turned.T
            if not modes.size:
                return
            by_layer = comparison.differing_in_layers(words, one[:in_waves], other[:in_waves])
            for differing, of_axis, found in zip(by_layer, self._waves, modes[k], strict=True):
                squared_modes(differing, model.sites // len(differing), of_axis, found)

        def task(first: int, stop: int) -> None:
            for k in range(first, stop):
                measure(k)

        self._threads.share_out(task, model.samples)
        return Correlations(
            self._overlaps(ladder, holder),
            model.bonds - 2 * links,
            *modes_by_kind(modes.swapaxes(1, 2), shape, ladder.copies, wanted.magnetization_modes),
            *by_kind(powers, shape),
            (model.sites - 2 * in_time).reshape(*holder.shape, len(times)),
            even_in_time.reshape(*holder.shape, -1 if even else 0),
            in_space,
        )

    @cached_property
    def _slices(self) -> Items | None:
        """The slices of a model of space and time, whose words are never site-packed."""
        return slices(self._model.graph) if self._model.graph.slices > 1 else None

    def _in_time(self, times: tuple[int, ...]) -> Items:
        if times not in self._listed:
            self._listed = {times: pairs_in_time(self._model.graph.world_lines(), times)}
        return self._listed[times]

    def _even(self, times: tuple[int, ...]) -> CpuEven:
        if times not in self._products:
            self._products = {times: CpuEven(self._model.graph, times)}
        return self._products[times]

    @cached_property
    def _waves(self) -> list[npt.NDArray[np.float64]]:
        return waves(self._model.lattice)
