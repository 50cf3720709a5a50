"""Measuring a ladder on the CPU: numbers by temperature, and correlations of copies at equal temperatures."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Final, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from spinsim.engine.measuring.correlations import (
    Correlations,
    Wanted,
    all_bonds,
    all_sites,
    layers,
    overlaps_alone,
    waves,
)
from spinsim.engine.measuring.cpu_comparison import Along, WordList, compare_words, word_list, word_lists
from spinsim.engine.measuring.in_time import CpuInTime
from spinsim.engine.moves.exchange.cpu import CpuTempering
from spinsim.engine.moves.exchange.ladder import Ladder, copy_pairs, holders
from spinsim.engine.protocols import Counts, LadderMeasurement, Spins
from spinsim.machine.threads import Threads
from spinsim.model.ising import Ising
from spinsim.packing import block_count

Words = npt.NDArray[np.uint64]
Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

FULLY: Final = 4
"""Times as long as counting overlaps that comparing copies fully takes."""


class Differing(NamedTuple):
    """Numbers of some samples that a ``CpuComparison`` finds; those that are not wanted have no pairs or no axes.

    Attributes:
        sites: At which pairs of copies differ, int64 (samples, pairs, temperatures).
        bonds: At which products of both ends do, likewise.
        modes: Squared modes along each axis, float64 (axes, samples, pairs, then copies if wanted, temperatures).
    """

    sites: Integers
    bonds: Integers
    modes: Floats

    def of(self, samples: slice) -> Differing:
        """The same of some samples."""
        return Differing(self.sites[samples], self.bonds[samples], self.modes[:, samples])


class CpuComparison(Protocol):
    """Compares copies at equal temperatures; an update has its own way."""

    def compare(self, words: Words, holder: Integers, found: Differing) -> None:
        """Fill in ``found``, of the samples whose ``words`` are given; pairs of copies are those of ``copy_pairs``.

        ``holder`` is the replica at each temperature, (samples, copies, temperatures).
        """


class CpuReplicaComparison:
    """A ``CpuComparison`` by replica-packed words, (blocks, sites, 2) of each sample.

    Args:
        model: What is simulated.
    """

    def __init__(self, model: Ising) -> None:
        self._model = model

    @cached_property
    def _bonds(self) -> WordList:
        return word_list(all_bonds(self._model))

    @cached_property
    def _sites(self) -> WordList:
        return word_list(all_sites(self._model))

    @cached_property
    def _layers(self) -> list[WordList]:
        """Sites with layers of all axes."""
        lattice = self._model.lattice
        of_axes = [] if lattice is None else [layers(lattice, axis) for axis in range(lattice.dimension)]
        along = [Along(k, *one) for k, one in enumerate(zip(of_axes, waves(lattice), strict=True))]
        return word_lists(all_sites(self._model), along)

    def compare(self, words: Words, holder: Integers, found: Differing) -> None:
        sites, nothing = found.sites, found.sites[:, :0]
        for items in self._layers if len(found.modes) else [self._sites]:
            compare_words(words, holder, items, sites, found.modes)
            sites = nothing  # one order has told
        if found.bonds.shape[1]:
            compare_words(words, holder, self._bonds, found.bonds, found.modes[:, :, :0])


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
        self._in_time: dict[Wanted, CpuInTime] = {}

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
            self._correlations(ladder, holder, wanted),
            spins,
            energy[..., None] if terms is None else terms.reshape(-1, terms.shape[-1])[among_all] * quantum,
        )

    def _correlations(self, ladder: Ladder, holder: Integers, wanted: Wanted) -> Correlations:
        """Correlations of copies; of no pairs where no overlaps are wanted."""
        model, pairs = self._model, np.array(copy_pairs(ladder.copies if wanted.full or wanted.overlaps else 1))
        shape, axes = (model.samples, len(pairs), ladder.temperatures), 0
        if wanted.full and model.lattice:
            axes = model.lattice.dimension
        in_modes = len(pairs) + (ladder.copies if wanted.magnetization_modes else 0)
        found = Differing(
            np.empty(shape, np.int64),
            np.empty(shape if wanted.full else (model.samples, 0, ladder.temperatures), np.int64),
            np.empty((axes, model.samples, in_modes, ladder.temperatures)),
        )
        in_time = self._of_times(wanted).begin(model.samples, ladder) if wanted.full else None

        def compare(first: int, stop: int) -> None:
            mine = slice(first, stop)
            words = self._words_of(mine)
            self._comparison.compare(words, holder[mine], found.of(mine))
            if in_time is not None:
                for k in range(first, stop):
                    in_time.count(k, words[k - first], holder[k])

        if found.sites.size or found.modes.size:
            words = model.samples * model.sites * block_count(ladder.replicas)
            self._threads.share_out(compare, model.samples, words * (FULLY if wanted.full else 1))
        overlap = model.sites - 2 * found.sites
        if in_time is None:
            return overlaps_alone(overlap, ladder)
        modes = np.moveaxis(found.modes, 0, -1)
        return Correlations(
            overlap,
            model.bonds - 2 * found.bonds,
            modes[:, : len(pairs)],
            modes[:, len(pairs) :] if wanted.magnetization_modes else np.empty((*holder.shape, 0)),
            *in_time.found(),
        )

    def _of_times(self, wanted: Wanted) -> CpuInTime:
        if wanted not in self._in_time:
            self._in_time = {wanted: CpuInTime(self._model.graph, wanted)}
        return self._in_time[wanted]
