"""Models for every kind of update, and engines run beside the oracle."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import oracle

from spinsim.engine import Dynamics, Engine, create_engine
from spinsim.engine.measuring.correlations import OVERLAPS_ONLY
from spinsim.engine.protocols import LadderMeasurement
from spinsim.model.disorder import EdwardsAnderson
from spinsim.model.graph import Graph
from spinsim.model.ising import Ising
from spinsim.model.lattice import Lattice, chain, cubic, honeycomb, hypercubic, square, triangular
from spinsim.model.trotter import trotter
from spinsim.packing import Packing, packed_spins


def random_graph(sites: int, bonds: int, seed: int) -> Graph:
    generator = np.random.default_rng(seed)
    ends = generator.integers(0, sites, (bonds, 2)).astype(np.int32)
    return Graph(sites, ends[ends[:, 0] != ends[:, 1]])


def hubs(sites: int, bonds: int, steep: float, seed: int) -> Graph:
    """Of degrees from 0 up, the higher the lower a site's number."""
    generator = np.random.default_rng(seed)
    one = (sites * generator.random(bonds) ** steep).astype(np.int32)
    other = generator.integers(0, sites, bonds, dtype=np.int32)
    return Graph(sites, np.column_stack([one, other])[one != other])


def ring_of_degree_five(half: int) -> Graph:
    """Of two colours: sites i and half + (i + 0 ... 4)."""
    one, step = (x.ravel() for x in np.divmod(np.arange(5 * half), 5))
    return Graph(2 * half, np.column_stack([one, half + (one + step) % half]).astype(np.int32))


def random_signs(graph: Graph, seed: int, samples: int = 1) -> Ising:
    return Ising(graph, np.random.default_rng(seed).choice([-1.0, 1.0], (samples, graph.bonds)))


def units(bonds: int, samples: int, largest: int) -> np.ndarray:
    """Random whole couplings of sizes from 1 to the largest, which samples share, and of signs of their own."""
    generator = np.random.default_rng(3)
    return generator.integers(1, largest + 1, bonds) * generator.choice([-1.0, 1.0], (samples, bonds))


def in_units(graph: Graph, samples: int, largest: int, unit: float) -> Ising:
    """Couplings of so many units at most, and fields of as many, or 0, of signs that samples have of their own."""
    generator = np.random.default_rng(4)
    fields = generator.integers(0, largest + 1, graph.sites) * generator.choice([-1.0, 1.0], (samples, graph.sites))
    return Ising(graph, unit * units(graph.bonds, samples, largest), unit * fields)


PACKED = {
    "chain-8": lambda: Ising(chain(8)),
    "chain-7-odd": lambda: Ising(chain(7)),
    "chain-2-double-bond": lambda: Ising(chain(2)),
    "square-6": lambda: Ising(square(6)),
    "square-5x4-odd": lambda: EdwardsAnderson(square(5, 4), seed=3),
    "square-open": lambda: EdwardsAnderson(square(5, 7, periodic=False), seed=3),
    "square-antiferromagnet": lambda: Ising(square(4), -2.5),
    "cubic-samples": lambda: EdwardsAnderson(cubic(4), samples=3, seed=5),
    "cubic-open-odd": lambda: EdwardsAnderson(cubic(3, 5, 4, periodic=False), seed=5),
    "cubic-periodic-odd": lambda: EdwardsAnderson(cubic(3), seed=5),
    "cubic-many-batches": lambda: EdwardsAnderson(cubic(6, 6, 12), seed=8),
    "square-field": lambda: Ising(square(4), 1.0, 0.3),
    "cubic-field-samples": lambda: EdwardsAnderson(cubic(3, 4, 2), samples=2, seed=2, field=-0.7),
    "field-ties": lambda: Ising(square(4, 3), 1.0, 2.0),
    "random-graph": lambda: random_signs(random_graph(40, 200, 1), 1),
    "random-graph-field": lambda: Ising(random_graph(30, 130, 2), -1.0, 0.3),
    "random-graph-hubs": lambda: Ising(hubs(70, 260, 3.0, 3), -1.0),
    "random-graph-hubs-samples": lambda: random_signs(hubs(90, 600, 2.0, 4), 2, samples=2),
    "random-units": lambda: Ising(hubs(40, 50, 2.0, 3), 0.5 * units(hubs(40, 50, 2.0, 3).bonds, 1, 3)),
    "random-units-samples": lambda: Ising(random_graph(40, 160, 1), units(random_graph(40, 160, 1).bonds, 3, 5)),
    "random-units-fields": lambda: in_units(hubs(40, 50, 2.0, 3), 1, 3, 0.5),
    "random-units-fields-samples": lambda: in_units(random_graph(40, 120, 1), 3, 4, 1.0),
    "random-graph-hubs-field": lambda: Ising(hubs(70, 160, 3.0, 3), -0.5, -1.5),
    "isolated-sites": lambda: Ising(Graph(5, np.array([[0, 1]], np.int32))),
    "triangular": lambda: EdwardsAnderson(triangular(6, 3), samples=2, seed=3),
    "triangular-odd": lambda: Ising(triangular(5, 4), -1.0),
    "honeycomb": lambda: EdwardsAnderson(honeycomb(3, 5), samples=2, seed=3),
    "hypercubic": lambda: EdwardsAnderson(hypercubic(2, 3, 4, 2), seed=3),
    "one-by-many": lambda: Ising(Lattice((1, 6, 3))),
}


SITE = {
    "square-256x2": (lambda: Ising(square(256, 2)), 1),
    "square-256x6": (lambda: Ising(square(256, 6)), 3),
    "square-512x4": (lambda: Ising(square(512, 4)), 1),
    "square-768x44-many-batches": (lambda: EdwardsAnderson(square(768, 44), seed=2), 1),
    "square-antiferromagnet": (lambda: Ising(square(512, 2), -2.5), 2),
    "square-signs-double-bonds": (lambda: EdwardsAnderson(square(256, 2), seed=3), 3),
    "square-signs-samples": (lambda: EdwardsAnderson(square(512, 6), samples=2, seed=3), 3),
    "square-field": (lambda: Ising(square(256, 4), 1.0, 0.3), 2),
    "square-signs-field": (lambda: EdwardsAnderson(square(512, 4), samples=2, seed=3, field=-0.7), 1),
    "square-field-ties": (lambda: Ising(square(256, 2), 1.0, 2.0), 1),
    "cubic-256x2x2": (lambda: Ising(cubic(256, 2, 2)), 1),
    "cubic-signs-double-bonds": (lambda: EdwardsAnderson(cubic(256, 2, 2), samples=2, seed=4), 3),
    "cubic-signs": (lambda: EdwardsAnderson(cubic(256, 4, 6), seed=5), 1),
    "cubic-signs-two-groups": (lambda: EdwardsAnderson(cubic(512, 2, 4), seed=5), 2),
    "cubic-signs-field": (lambda: EdwardsAnderson(cubic(256, 4, 2), seed=2, field=0.5), 2),
}

ANY_ROWS = {
    "one group": lambda: Ising(square(4)),
    "double bonds": lambda: EdwardsAnderson(square(34, 2), seed=3),
    "rows of a fourth of a word": lambda: EdwardsAnderson(square(32, 6), samples=2, seed=3),
    "rows of 50": lambda: EdwardsAnderson(square(100, 22), samples=2, seed=3),
    "rows of 65": lambda: Ising(square(130, 8), -1.0, 0.25),
    "rows of 75": lambda: EdwardsAnderson(square(150, 4), seed=3, field=-0.5),
    "many rows": lambda: Ising(square(4, 1000)),
    "smallest cubic": lambda: EdwardsAnderson(cubic(2), seed=3),
    "cubic": lambda: EdwardsAnderson(cubic(32, 6, 4), samples=2, seed=3),
    "planes that fill no word": lambda: EdwardsAnderson(cubic(6, 10, 4), samples=2, seed=3),
    "planes of five words": lambda: EdwardsAnderson(cubic(32, 20, 4), seed=3, field=0.75),
}
"""Lattices that can be site-packed, though their rows begin within words."""


GENERAL = {
    "gaussian": lambda: EdwardsAnderson(cubic(4, 3, 2), couplings="gaussian", seed=4),
    "gaussian-samples-field": lambda: EdwardsAnderson(square(4), samples=3, couplings="gaussian", seed=4, field=0.4),
    "site-fields": lambda: Ising(square(5, 3), 1.0, np.linspace(-1, 1, 15)),
    "wide-integers": lambda: Ising(square(4), np.linspace(1, 1e9, 32)),
    "many-zero-costs": lambda: Ising(chain(9), np.where(np.arange(9) % 2, 1.0, 2.0)),
    "field-only": lambda: Ising(Graph(6, np.empty((0, 2), np.int32)), 1.0, np.arange(6) / 4),
    "dense": lambda: random_signs(random_graph(20, 3000, 1), 1),
    "many-degrees": lambda: normal(hubs(40, 160, 2.0, 3), 1, 2.0**-40, field=np.arange(40) % 3 / 4),
}


def complete(sites: int) -> Graph:
    """A bond between any two sites."""
    return Graph(sites, np.column_stack(np.triu_indices(sites, 1)).astype(np.int32))


def normal(graph: Graph, samples: int, unit: float, **options: Any) -> Ising:
    """Couplings from the normal distribution in multiples of a unit."""
    drawn = np.random.default_rng(5).normal(size=(samples, graph.bonds))
    return Ising(graph, np.rint(drawn / unit) * unit, **options)


def small(graph: Graph) -> Ising:
    """Couplings of -2 to 2 but 0."""
    return Ising(graph, np.random.default_rng(1).choice([-2, -1, 1, 2], graph.bonds))


DENSE = {
    "small-integers": lambda: small(complete(130)),
    "samples-field": lambda: normal(complete(129), 2, 2.0**-20, field=np.arange(129) % 3 / 4),
    "wide-integers": lambda: normal(complete(129), 1, 2.0**-45),
    "several-bonds": lambda: small(random_graph(150, 10_000, 2)),
}
"""Models that keep local fields: of 16, 32 and 64 bits, and one where two sites may share bonds."""


def gaussian(lattice: Lattice, **options: Any) -> Ising:
    return EdwardsAnderson(lattice, couplings="gaussian", **options)


def by_axis(
    lattice: Lattice, along: list[float], terms: list[int], signs: int = 0, field: npt.ArrayLike = 0.0
) -> Ising:
    """Couplings and terms by the axis of each bond; with random signs of so many samples, or none."""
    axis, generator = lattice.bond_numbers(), np.random.default_rng(7)
    sign = generator.choice([-1.0, 1.0], (signs, lattice.bonds)) if signs else 1.0
    return Ising(lattice, np.array(along)[axis] * sign, field, terms=np.array(terms)[axis])


def in_time(space: Graph, slices: int, samples: int, seed: int) -> Ising:
    """Copies of a graph with random signs that are the same in every slice; each site is joined to itself in time."""
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], (samples, space.bonds))
    sites, first = np.arange(space.sites), space.sites * np.arange(slices)[:, None]
    within = (first[..., None] + space.edges).reshape(-1, 2)
    onward = np.stack([first + sites, (first + space.sites) % (space.sites * slices) + sites], axis=-1).reshape(-1, 2)
    couplings = np.concatenate([np.tile(signs, slices), np.ones((samples, len(onward)))], axis=1)
    graph = Graph(space.sites * slices, np.concatenate([within, onward]).astype(np.int32))
    return Ising(graph, couplings, terms=np.repeat([0, 1], [len(within), len(onward)]))


TERMS = {
    "square": (lambda: by_axis(square(6), [1.0, 0.5], [0, 1]), [0.5, 0.8]),
    "square-signs-odd": (lambda: by_axis(square(5, 4), [0.3, -1.0], [0, 1], 2), [1.5, 0.4]),
    "square-cancelling": (lambda: by_axis(square(6), [1.0, 0.5], [0, 1]), [0.3, 0.6]),
    "square-open": (lambda: by_axis(square(5, 7, periodic=False), [1.0, 2.0], [0, 1], 2), [0.7, 0.3]),
    "square-field": (lambda: by_axis(square(4, 6), [1.0, 1.0], [0, 1], 2, 0.25), [0.5, 0.2]),
    "cubic-space-time": (lambda: by_axis(cubic(4, 4, 6), [1.0, 1.0, 1.0], [0, 0, 1], 3), [0.6, 0.9]),
    "cubic-open-odd": (lambda: by_axis(cubic(3, 5, 4, periodic=False), [1.0, 1.0, 0.7], [0, 0, 1], 1), [0.6, 0.9]),
    "cubic-field": (lambda: by_axis(cubic(4, 2, 4), [1.0, 1.0, 0.5], [0, 0, 1], 1, -0.7), [0.6, 0.9]),
    "hypercubic": (lambda: by_axis(hypercubic(2, 3, 4, 2), [1.0, 1.0, 1.0, 0.5], [0, 0, 0, 1], 2), [0.3, 0.9]),
    "hypercubic-even": (lambda: by_axis(hypercubic(2, 2, 4, 4), [1.0, 1.0, 1.0, 0.5], [0, 0, 0, 1], 2), [0.3, 0.9]),
    "graph-in-time": (lambda: in_time(random_graph(12, 30, 5), 6, 2, 3), [0.4, 0.7]),
    "one-term-alone": (lambda: by_axis(square(4), [1.0, 1.0], [0, 0], 1), [0.6, 9.0]),
    "many-batches": (lambda: by_axis(cubic(6, 6, 12), [1.0, 1.0, 1.0], [0, 1, 1], 1), [0.2, 0.3]),
}
"""Models of two terms, each of couplings of one magnitude, and a pair of inverse temperatures."""


GENERAL_TERMS = {
    "gaussian": (lambda: trotter(gaussian(square(4), samples=2, seed=4), 4, by_term=True), [0.7, 0.4]),
    "gaussian-field-open": (lambda: trotter(gaussian(square(3, 4, periodic=False), field=0.3), 6, True), [0.5, 0.9]),
    "site-fields": (lambda: trotter(Ising(square(3), 1.0, np.linspace(-1, 1, 9)), 4, by_term=True), [0.3, 0.5]),
    "diluted": (lambda: trotter(EdwardsAnderson(square(4), dilution=0.3, seed=5), 4, by_term=True), [0.6, 0.4]),
    "dense": (lambda: trotter(random_signs(random_graph(20, 600, 1), 1), 4, by_term=True), [0.1, 0.4]),
    "many-magnitudes": (lambda: Ising(square(6), np.arange(72) % 5 - 1.0, terms=np.arange(72) % 2), [0.4, 0.3]),
    "cancelling": (lambda: Ising(square(4), np.arange(32) % 3 - 1.0, 0.5, terms=np.arange(32) % 2), [0.3, 0.3]),
    "cancelling-to-rounding": (lambda: by_axis(square(6), [1.0, 3.0], [0, 1], 1, np.eye(1, 36)), [0.3, 0.1]),
    "wide-integers": (lambda: Ising(square(4), np.linspace(1, 1e9, 32), terms=np.arange(32) % 2), [2e-9, 1e-9]),
    "star": (lambda: Ising(Graph(34, np.stack([0 * np.arange(33), np.arange(1, 34)], 1)), terms=np.arange(33) % 2),
             [0.4, 0.2]),
    "field-alone": (lambda: Ising(Graph(6), 1.0, np.arange(6) / 4, terms=np.empty(0, int)), [1.0, 2.0]),
}  # fmt: skip
"""Models of two terms that only the unpacked update takes, and a pair of inverse temperatures."""


def configurations(engine: Engine) -> np.ndarray:
    """All spins, (samples, sites, replicas), which the engine says alike in bits."""
    samples, replicas = range(engine.model.samples), range(engine.replicas)
    last = engine.model.samples - 1, engine.replicas - 1
    np.testing.assert_array_equal(engine.bits(*last), packed_spins(engine.spins(*last)))
    return np.stack([np.stack([engine.spins(k, r) for r in replicas], axis=-1) for k in samples])


def check_counts(engine: Engine) -> None:
    spins, counts = configurations(engine), engine.counts()
    np.testing.assert_array_equal(counts.energy * engine.model.quantum, engine.model.energy(spins))
    np.testing.assert_array_equal(counts.magnetization, spins.sum(axis=1, dtype=np.int64))
    np.testing.assert_array_equal(counts.staggered_magnetization, oracle.staggered(engine.model, spins))
    np.testing.assert_array_equal(counts.by_term, oracle.energies(engine.model, spins))


def plainly(engine: Engine, dynamics: Dynamics) -> tuple[np.ndarray, Callable[..., np.ndarray]]:
    """The oracle's initial spins and its uniforms."""
    start = oracle.start_site if engine.packing is Packing.SITE else oracle.start
    uniform = {
        Packing.SITE: oracle.uniform_site(engine.model),
        Packing.REPLICA: oracle.uniform_packed,
        Packing.UNPACKED: oracle.uniform_general,
        Packing.ANISOTROPIC: oracle.uniform_packed,
    }[engine.packing]
    return start(engine.model, engine.replicas, dynamics.seed, dynamics.rng_rounds), uniform


def of_terms(engine: Engine, beta: float | np.ndarray) -> tuple[np.ndarray, bool]:
    """Inverse temperatures as the oracle takes them, and whether in pairs, as some engines take all of them."""
    values = np.asarray(beta, np.float64)
    if engine.packing is Packing.ANISOTROPIC and values.ndim < 2:
        values = np.stack([values, values], axis=-1)
        return values, True
    return values, values.ndim == 2


def run_both(
    device: str, model: Ising, replicas: int, beta: float | np.ndarray, sweeps: tuple[int, ...], **options: object
) -> None:
    dynamics = Dynamics(seed=2**40 + 17, **options)  # type: ignore[arg-type]
    engine = create_engine(model, replicas, dynamics, device)
    expected, uniform = plainly(engine, dynamics)
    engine.set_beta(beta)
    (values, in_pairs), done = of_terms(engine, beta), 0
    for count in sweeps:
        engine.sweep(count)
        oracle.sweep(
            model, expected, values, dynamics.seed, count, uniform, dynamics.zero_acceptance, done,
            dynamics.rng_rounds, in_pairs,
        )  # fmt: skip
        done += count
        np.testing.assert_array_equal(configurations(engine), expected)
        check_counts(engine)


def around(pair: list[float], replicas: int) -> np.ndarray:
    """Pairs of inverse temperatures, (replicas, 2), of which the first is 0 and the second is the given one."""
    return np.concatenate([[[0.0, 0.0], pair], np.array(pair) * np.random.default_rng(3).random((replicas - 2, 2)) * 2])


def overlaps(engine: Engine) -> np.ndarray:
    return engine.begin_measurement(OVERLAPS_ONLY)().correlations.overlap


def check_measurement(m: LadderMeasurement, engine: Engine, state: oracle.State, spins: np.ndarray) -> None:
    """That all stands at its temperature, for an engine in ``state`` with ``spins`` (samples, sites, replicas)."""
    samples, copies, temperatures = m.energy.shape
    at = state.place.reshape(samples, copies, temperatures).argsort(axis=-1)
    holder = at + temperatures * np.arange(copies)[:, None]
    np.testing.assert_array_equal(m.holder, holder)
    counts, quantum, flat = engine.counts(), np.float64(engine.model.quantum), holder.reshape(samples, -1)
    for name, unit in (("energy", quantum), ("magnetization", 1), ("staggered_magnetization", 1)):
        by_replica = np.take_along_axis(getattr(counts, name) * unit, flat, axis=1)
        np.testing.assert_array_equal(getattr(m, name), by_replica.reshape(holder.shape))
    by_term = np.take_along_axis(counts.by_term, flat[..., None], axis=1) * quantum
    np.testing.assert_array_equal(m.energy_by_term, by_term.reshape(*holder.shape, -1))
    for name, expected in state._asdict().items():
        np.testing.assert_array_equal(getattr(m.exchange, name), expected, name)
    np.testing.assert_array_equal(m.correlations.overlap, oracle.overlaps(spins, state.place, copies))
    np.testing.assert_array_equal(m.spins(samples - 1, 0), spins[-1, :, 0])


def temper_both(
    device: str, model: Ising, beta: np.ndarray, copies: int, parts: list[tuple[int, int]], **options: object
) -> oracle.State:
    """Temper for all ``parts``, (rounds, sweeps), and compare with the oracle after each; the last state."""
    dynamics = Dynamics(seed=2**40 + 17, **options)  # type: ignore[arg-type]
    engine = create_engine(model, copies * len(beta), dynamics, device)
    spins, uniform = plainly(engine, dynamics)
    engine.set_ladder(beta, copies)
    values, in_pairs = of_terms(engine, beta)
    state = oracle.begin(model.samples, copies, len(beta))
    done = round_ = 0
    for rounds, sweeps in parts:
        engine.temper(rounds, sweeps)
        exchange, measured = engine.begin_exchange(), engine.begin_measurement(OVERLAPS_ONLY)
        for _ in range(rounds):
            betas = values[state.place][:, None]
            oracle.sweep(
                model, spins, betas, dynamics.seed, sweeps, uniform, dynamics.zero_acceptance, done,
                dynamics.rng_rounds, in_pairs,
            )  # fmt: skip
            done += sweeps
            oracle.exchange(model, spins, values, copies, state, round_, dynamics.seed, dynamics.rng_rounds)
            round_ += 1
        for name, expected in state._asdict().items():
            np.testing.assert_array_equal(getattr(exchange(), name), expected, name)
            assert getattr(exchange(), name).dtype == expected.dtype
        check_measurement(measured(), engine, state, spins)
        np.testing.assert_array_equal(configurations(engine), spins)
    check_counts(engine)
    return state


def ladder(coldest: float, hottest: float, temperatures: int) -> np.ndarray:
    return 1 / np.linspace(coldest, hottest, temperatures)


TERMS_TEMPERED = {
    "square": (TERMS["square"][0], np.array([0.9, 0.6, 0.4]), 2),
    "square-gamma": (TERMS["square-signs-odd"][0], np.array([[1.0, 0.3], [1.0, 0.5], [1.0, 0.8]]), 2),
    "cubic-both": (TERMS["cubic-space-time"][0], np.stack([np.linspace(0.9, 0.4, 5), np.linspace(0.3, 0.6, 5)], 1), 3),
    "hypercubic": (TERMS["hypercubic-even"][0], np.stack([np.linspace(0.6, 0.2, 4), np.linspace(0.2, 0.5, 4)], 1), 2),
    "cubic-temperature": (TERMS["cubic-space-time"][0], np.linspace(0.9, 0.4, 5)[:, None] * [1.0, 0.6], 2),
    "two-blocks": (TERMS["square-open"][0], np.linspace(0.9, 0.3, 40)[:, None] * [0.6, 1.0], 4),
    "field": (TERMS["cubic-field"][0], np.linspace(0.9, 0.4, 4)[:, None] * [1.0, 0.6], 2),
    "graph-in-time": (TERMS["graph-in-time"][0], np.stack([np.full(4, 0.5), np.linspace(0.3, 0.6, 4)], 1), 2),
}
"""Models of two terms, and ladders of temperatures or of pairs of inverse temperatures."""

GENERAL_TERMS_TEMPERED = {
    "gaussian-gamma": (GENERAL_TERMS["gaussian"][0], np.stack([np.full(5, 0.7), np.linspace(0.9, 0.2, 5)], 1), 2),
    "gaussian-temperature": (GENERAL_TERMS["gaussian"][0], np.linspace(1.0, 0.3, 5)[:, None] * [0.5, 1.0], 3),
    "gaussian-one-temperature": (GENERAL_TERMS["gaussian"][0], np.linspace(1.0, 0.3, 5), 2),
    "unpacked-two-blocks": (GENERAL_TERMS["site-fields"][0], np.linspace(0.9, 0.3, 67)[:, None] * [0.6, 1.0], 2),
    "staggered": (GENERAL_TERMS["many-magnitudes"][0], np.linspace(0.6, 0.2, 4)[:, None] * [0.6, 1.0], 2),
    "wide-integers": (GENERAL_TERMS["wide-integers"][0], np.linspace(4e-9, 1e-9, 4)[:, None] * [1.0, 0.3], 2),
}
"""The same of those that only the unpacked update takes."""

ALONE = {
    "square": (lambda: Ising(square(8)), 0.44),
    "rows of 50": (lambda: EdwardsAnderson(square(100, 22), samples=2, seed=3), 0.7),
    "cubic-samples-field": (lambda: EdwardsAnderson(cubic(4, 6, 4), samples=5, seed=5, field=0.25), 0.6),
    "large": (lambda: Ising(square(160, 130)), 0.44),
}
"""Site-packed models of one replica, and an inverse temperature."""

TEMPERED = {
    "cubic-samples": (lambda: EdwardsAnderson(cubic(4), samples=3, seed=1), ladder(0.8, 2.0, 5), 2),
    "cubic-shared-signs": (lambda: Ising(cubic(4)), ladder(3.0, 6.0, 4), 3),
    "full-block": (lambda: EdwardsAnderson(cubic(4, 6, 4), samples=2, seed=1), ladder(0.8, 2.0, 32), 4),
    "two-blocks": (lambda: EdwardsAnderson(cubic(4), samples=3, seed=1), ladder(0.8, 2.0, 40), 4),
    "hot": (lambda: EdwardsAnderson(cubic(4), samples=2, seed=1), ladder(1.0, 5.0, 6), 2),
    "warm": (lambda: EdwardsAnderson(cubic(4), samples=2, seed=1), ladder(2.2, 4.2, 6), 2),
    "warm-square": (lambda: EdwardsAnderson(square(6), samples=2, seed=1), ladder(2.2, 2.8, 4), 2),
    "infinite-temperature": (lambda: EdwardsAnderson(square(4), seed=1), np.array([0.8, 0.4, 0.0]), 2),
    "open-square": (lambda: EdwardsAnderson(square(5, 7, periodic=False), samples=2, seed=3), ladder(0.5, 2.0, 6), 3),
    "odd-degrees": (lambda: random_signs(ring_of_degree_five(20), 4), ladder(0.8, 2.5, 6), 3),
    "one-copy": (lambda: EdwardsAnderson(square(6), seed=3), ladder(0.5, 2.0, 7), 1),
    "field": (lambda: EdwardsAnderson(cubic(3, 4, 2), samples=2, seed=2, field=-0.7), ladder(0.8, 2.0, 5), 2),
    "field-in-halves": (lambda: EdwardsAnderson(cubic(4), samples=2, seed=2, field=0.5), ladder(0.8, 2.0, 5), 2),
    "hot-field": (lambda: Ising(ring_of_degree_five(20), -1.0, 0.9), ladder(2.0, 9.0, 5), 2),
    "graph": (lambda: random_signs(random_graph(40, 200, 1), 1), ladder(2.0, 8.0, 5), 2),
    "gaussian": (
        lambda: EdwardsAnderson(cubic(4, 3, 2), samples=3, couplings="gaussian", seed=4),
        ladder(0.5, 2.0, 5),
        3,
    ),
    "gaussian-two-blocks": (
        lambda: EdwardsAnderson(square(4), samples=2, couplings="gaussian", seed=4, field=0.4),
        ladder(0.2, 1.0, 67),
        2,
    ),
    "site-packed": (lambda: Ising(square(256, 4)), ladder(2.2, 2.4, 3), 2),
    "site-packed-signs": (
        lambda: EdwardsAnderson(cubic(256, 2, 4), samples=2, seed=5, field=0.25),
        ladder(1.9, 2.0, 4),
        2,
    ),
}
