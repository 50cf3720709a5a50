"""Runs whose measurements are added up, and the same sums from a list of all measurements by plain NumPy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import permutations
from typing import NamedTuple

import numpy as np
from engines import DENSE, GENERAL_TERMS_TEMPERED, ladder

from spinsim.engine import Dynamics, create_engine
from spinsim.engine.measuring.correlations import OVERLAPS_ONLY, WITHOUT_TIMES, Quantities
from spinsim.engine.measuring.cpu_reduction import Best, HostReduction
from spinsim.engine.measuring.reduction import (
    ABSOLUTE,
    CONNECTED,
    COUNTS,
    LEVELS,
    SUMS,
    Reduced,
    Source,
    Term,
    block_length,
    shift_of,
)
from spinsim.engine.moves.exchange import copy_pairs
from spinsim.engine.protocols import Engine, LadderMeasurement, Reduction
from spinsim.model.disorder import EdwardsAnderson
from spinsim.model.ising import Ising
from spinsim.model.lattice import cubic, square
from spinsim.model.trotter import trotter
from spinsim.observables.moments import Ladder, reduced_run
from spinsim.observables.quantities import Choice


class Run(NamedTuple):
    """A run on a ladder.

    Attributes:
        make: Makes its model.
        beta: Inverse temperatures.
        copies: At each of them.
        wanted: What is measured beside overlaps.
    """

    make: Callable[[], Ising]
    beta: np.ndarray
    copies: int
    wanted: Quantities = Quantities(magnetization_modes=False)

    def reduced(self, model: Ising) -> Reduced:
        """All that such a run adds up."""
        places, wanted = len(self.beta), self.wanted
        in_time = bool(wanted.times)
        numbers = np.linspace(0.2, 0.7, places) if in_time else np.empty(0)
        return reduced_run(model, Choice(self.copies, wanted, staggered=True), Ladder(places, numbers, numbers[::-1]))


def glass(samples: int) -> Callable[[], Ising]:
    return lambda: EdwardsAnderson(cubic(4), samples=samples, seed=1)


IN_TIME = Quantities(times=(1, 2), even=True)
PAIRS = np.stack([np.full(4, 0.5), np.linspace(0.3, 0.6, 4)], 1)
RUNS = {
    "glass": Run(glass(3), ladder(0.8, 2.0, 4), 2),
    "many-samples": Run(lambda: EdwardsAnderson(square(4), samples=17), ladder(0.8, 2.0, 3), 3),
    "ferromagnet": Run(lambda: Ising(square(6)), ladder(2.0, 3.0, 5), 3, WITHOUT_TIMES),
    "gaussian": Run(lambda: EdwardsAnderson(cubic(3), samples=2, couplings="gaussian"), ladder(0.5, 2.0, 4), 2),
    "field": Run(lambda: EdwardsAnderson(square(4, 6), samples=2, field=0.5), ladder(0.5, 2.0, 3), 4),
    "field-many-samples": Run(lambda: EdwardsAnderson(square(4), samples=16, field=0.5), ladder(0.5, 2.0, 2), 5),
    "in-time": Run(lambda: trotter(EdwardsAnderson(square(3), samples=2), 6), ladder(2.0, 4.0, 3), 2, IN_TIME),
    "in-time-terms": Run(lambda: trotter(EdwardsAnderson(square(3), samples=2), 4, by_term=True), PAIRS, 2, IN_TIME),
    "in-time-terms-gaussian": Run(*GENERAL_TERMS_TEMPERED["gaussian-gamma"], Quantities(times=(1,))),
    "overlaps-alone": Run(glass(2), ladder(0.8, 2.0, 3), 2, OVERLAPS_ONLY),
    "one-copy": Run(glass(2), ladder(0.8, 2.0, 5), 1),
    "many-replicas": Run(lambda: EdwardsAnderson(square(4)), ladder(0.8, 2.0, 9), 15),
    "site-packed": Run(lambda: Ising(square(256, 2)), ladder(2.0, 2.4, 3), 2, WITHOUT_TIMES),
    "one-replica": Run(lambda: EdwardsAnderson(square(6, 8), samples=3), ladder(2.0, 2.0, 1), 1),
    "one-replica-with-modes": Run(lambda: Ising(cubic(6, 4, 2)), ladder(2.0, 2.0, 1), 1, WITHOUT_TIMES),
    "dense": Run(DENSE["samples-field"], ladder(0.5, 2.0, 3), 2, OVERLAPS_ONLY),
}


def begin(run: Run, device: str) -> tuple[Engine, Reduced]:
    """An engine on the ladder of a run, and what the run adds up."""
    model = run.make()
    engine = create_engine(model, run.copies * len(run.beta), Dynamics(seed=3), device)
    engine.set_ladder(run.beta / model.energy_scale if run.beta.ndim == 1 else run.beta, run.copies)
    return engine, run.reduced(model)


def measure(
    engine: Engine, wanted: Quantities, count: int, reduction: Reduction | None = None
) -> list[LadderMeasurement]:
    """Measurements that are all fetched, and added up too."""
    return [begun() for begun in engine.temper_measured(count, 1, 1, wanted, reduction)]


def assert_same(found: Reduction, expected: Reduction) -> None:
    """All arrays have the same types, shapes and bits."""
    one, other = found.state(), expected.state()
    assert one.keys() == other.keys()
    for name, array in other.items():
        assert one[name].dtype == array.dtype, name
        np.testing.assert_array_equal(one[name].view(np.uint8), array.view(np.uint8), name)


def check_reduction(run: Run, device: str, counts: Sequence[int]) -> None:
    """What a device adds up has the bits of the host's sums, also when it goes on from other sums."""
    engine, reduced = begin(run, device)
    reduction, host = engine.reduction(reduced), HostReduction(reduced)
    for count in counts:
        for one in measure(engine, run.wanted, count, reduction):
            host.add(one)
        assert_same(reduction, host)
        assert reduction.measurements == host.measurements
        went_before, reduction = reduction, engine.reduction(reduced)
        reduction.restore(went_before.state())
    assert host.measurements == sum(counts)


def check_lowest(run: Run, device: str, counts: Sequence[int]) -> None:
    """Lowest states are those that a host keeps, and those alone are changed that it changes."""
    engine, reduced = begin(run, device)
    reduction, best = engine.reduction(reduced), Best(engine.model, engine.replicas)
    for number, count in enumerate(counts):
        before = best.energy.min(axis=1)
        for one in measure(engine, run.wanted, count, reduction):
            best.update(one.replica_energy, one.spins)
        energy, spins, changed = reduction.lowest()
        np.testing.assert_array_equal(energy, best.energy)
        np.testing.assert_array_equal(changed, np.flatnonzero(best.energy.min(axis=1) < before))
        for sample, expected in enumerate(np.asarray(best.spins)):
            np.testing.assert_array_equal(spins(sample), expected)
        assert not reduction.lowest().changed.size
        if number % 2:  # go on from what was found so far
            reduction = engine.reduction(reduced)
            reduction.restore_lowest(best.energy.copy(), best.spins.copy())


def values_of(measurement: LadderMeasurement, source: Source) -> np.ndarray:
    """A source's values (samples, copies or pairs, places)."""
    holder = measurement if hasattr(measurement, source.name) else measurement.correlations
    values = getattr(holder, source.name)
    return values[..., list(source.elements)].sum(axis=-1) if source.elements else values


def values_of_term(reduced: Reduced, term: Term, measurement: LadderMeasurement) -> np.ndarray:
    """A term's values (samples, copies, pairs or one, places)."""
    if term.power == CONNECTED:
        return term.scales[0] * connected(reduced.copies, values_of(measurement, term.sources[0]))
    scaled = [scale * values_of(measurement, source) for scale, source in zip(term.scales, term.sources, strict=True)]
    total = sum(scaled) + term.constant
    return abs(total) if term.power == ABSOLUTE else total**term.power


def connected(copies: int, overlap: np.ndarray) -> np.ndarray:
    """Average of q_ab^2 - 2 q_ab q_ac + q_ab q_cd over all choices of four copies, (samples, 1, places)."""
    number = {tuple(sorted(pair)): k for k, pair in enumerate(copy_pairs(copies).tolist())}

    def q(a: int, b: int) -> np.ndarray:
        return overlap[:, number[min(a, b), max(a, b)]].astype(float)

    chosen = list(permutations(range(copies), 4))
    total = sum(q(a, b) ** 2 - 2 * q(a, b) * q(a, c) + q(a, b) * q(c, d) for a, b, c, d in chosen)
    return (total / len(chosen))[:, None]


def oracle(reduced: Reduced, measurements: Sequence[LadderMeasurement]) -> dict[str, np.ndarray]:
    """All arrays, from values of all measurements at once."""
    arrays = {name: np.zeros(shape, kind) for name, (shape, kind) in reduced.arrays().items()}
    arrays["measurements"][:] = count = len(measurements)
    length, coldest = (block_length(blocks, count) for blocks in (reduced.blocks, reduced.coldest_blocks))
    own = followed = judged = 0
    for k, term in enumerate(reduced.terms):
        values = np.stack([values_of_term(reduced, term, one) for one in measurements])
        for number, each in enumerate(values):
            arrays["block_sums"][k, number // length] += each.sum(axis=1)
        if term.by_copy:
            arrays["copy_sums"][own], own = values.sum(axis=0), own + 1
        if term.is_judged:
            for number, each in enumerate(values[..., 0]):
                arrays["coldest_sums"][judged, number // coldest, :, : each.shape[1]] += each
            judged += 1
        if term.followed:
            series = values.sum(axis=2)
            arrays["first_value"][followed] = first = series[0]
            series = series - first
            for level, number, total in sums_of_series(series):
                block = number // length if reduced.few else 0
                arrays["level_sums"][followed, block, level] += total
                arrays["level_squares"][followed, block, level] += total**2
                if (number + 1) % 2 ** (level + 1):
                    arrays["level_open"][followed, level] = total
            followed += 1
    walks = np.stack([2 * one.exchange.place.astype(int) - reduced.places + 1 for one in measurements])
    length = block_length(reduced.walk_blocks, count)
    for number, each in enumerate(walks):
        arrays["walk_sums"][0, number // length] += each
        arrays["walk_squares"] += (each**2).sum(axis=1)
    for histogram in reduced.histograms:
        found = arrays[f"{histogram.source}_histogram"]
        for one in measurements:
            overlap = getattr(one.correlations, histogram.source)
            for (sample, _, place), value in np.ndenumerate(overlap):
                found[sample, place, (value + histogram.values - 1) // 2 * histogram.cells // histogram.values] += 1
    add_energies(reduced, measurements, arrays)
    return arrays


def add_energies(reduced: Reduced, measurements: Sequence[LadderMeasurement], arrays: dict[str, np.ndarray]) -> None:
    """Sums over energy, values rounded to the unit that sums have in the end."""
    energies, count = reduced.energies, len(measurements)
    if energies is None or not measurements:
        return
    level = np.stack([np.rint(one.energy / energies.unit).astype(int) for one in measurements])
    arrays["energy_range"][...] = np.stack([level.min(axis=(0, 2, 3)), level.max(axis=(0, 2, 3))], axis=1)
    first, second = copy_pairs(reduced.copies).T
    levels = {False: level, True: level[:, :, first] + level[:, :, second]}
    step, sample = np.indices(level.shape[:2])
    block = step // block_length(energies.blocks, count) if energies.blocks > 1 else 0 * step
    shift = np.array([shift_of(low, high, energies.bins) for low, high in arrays["energy_range"]])

    def add(name: str, row: int, of_pairs: bool, chain: int, values: np.ndarray) -> None:
        bins = (1 + of_pairs) * energies.bins
        here = (levels[of_pairs][:, :, chain] >> shift[:, None]) % bins
        np.add.at(arrays[name][row], (block[..., None], sample[..., None], here), values)

    for of_pairs, name in enumerate(COUNTS):
        for chain in range(reduced.pairs if of_pairs else reduced.copies):
            add(name, 0 if of_pairs else chain, bool(of_pairs), chain, np.array(1))
            add(name, -1, bool(of_pairs), chain, levels[bool(of_pairs)][:, :, chain])
    scale = 2.0 ** energies.exponent(count - 1)
    for k, term in enumerate(reduced.terms):
        row = energies.pair_row[k] if term.of_pairs else energies.row[k]
        if row >= 0:
            values = np.rint(np.stack([values_of_term(reduced, term, one) for one in measurements]) * scale).astype(int)
            for chain in range(values.shape[2]):
                add(SUMS[term.of_pairs], row + chain * term.by_copy, term.of_pairs, chain, values[:, :, chain])


def sums_of_series(series: np.ndarray) -> list[tuple[int, int, np.ndarray]]:
    """Level l, number of the last one and sum of each 2^l consecutive values."""
    return [
        (level, end - 1, series[end - 2**level : end].sum(axis=0))
        for level in range(LEVELS)
        for end in range(2**level, len(series) + 1, 2**level)
    ]
