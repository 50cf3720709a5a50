"""The kernels of every device against the oracle, bit for bit."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import oracle
import pytest

from spinsim.engine import Dynamics, Engine, check_run, choose_packing, create_engine
from spinsim.engine.protocols import LadderMeasurement
from spinsim.engine.replica_packed import cpu as packed_engine
from spinsim.engine.replica_packed.cuda_records import PLACE, PLACE_BITS, bond_groups, places, site_records
from spinsim.engine.replica_packed.plan import ReplicaPlan
from spinsim.engine.site_packed import cpu as site_engine
from spinsim.errors import InputError
from spinsim.jobs.anneal.call import anneal
from spinsim.model.disorder import EdwardsAnderson
from spinsim.model.geometry.chain import chain
from spinsim.model.geometry.cubic import cubic
from spinsim.model.geometry.honeycomb import honeycomb
from spinsim.model.geometry.hypercubic import hypercubic
from spinsim.model.geometry.lattice import Lattice
from spinsim.model.geometry.square import square
from spinsim.model.geometry.triangular import triangular
from spinsim.model.graph import Graph
from spinsim.model.ising import Ising
from spinsim.packing import Packing, lane_masks


def random_graph(sites: int, bonds: int, seed: int) -> Graph:
    generator = np.random.default_rng(seed)
    ends = generator.integers(0, sites, (bonds, 2)).astype(np.int32)
    return Graph(sites, ends[ends[:, 0] != ends[:, 1]])


def ring_of_degree_five(half: int) -> Graph:
    """Of two colours: sites i and half + (i + 0 ... 4)."""
    one, step = (x.ravel() for x in np.divmod(np.arange(5 * half), 5))
    return Graph(2 * half, np.column_stack([one, half + (one + step) % half]).astype(np.int32))


def random_signs(graph: Graph, seed: int) -> Ising:
    return Ising(graph, np.random.default_rng(seed).choice([-1.0, 1.0], graph.bonds))


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
    "random-graph-field": lambda: Ising(random_graph(30, 130, 2), -1.0, 0.5),
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
GENERAL = {
    "gaussian": lambda: EdwardsAnderson(cubic(4, 3, 2), couplings="gaussian", seed=4),
    "gaussian-samples-field": lambda: EdwardsAnderson(square(4), samples=3, couplings="gaussian", seed=4, field=0.4),
    "site-fields": lambda: Ising(square(5, 3), 1.0, np.linspace(-1, 1, 15)),
    "wide-integers": lambda: Ising(square(4), np.linspace(1, 1e9, 32)),
    "many-zero-costs": lambda: Ising(chain(9), np.where(np.arange(9) % 2, 1.0, 2.0)),
    "field-only": lambda: Ising(Graph(6, np.empty((0, 2), np.int32)), 1.0, np.arange(6) / 4),
    "dense": lambda: random_signs(random_graph(20, 600, 1), 1),
}


def configurations(engine: Engine) -> np.ndarray:
    """All spins, (samples, sites, replicas)."""
    samples, replicas = range(engine.model.samples), range(engine.replicas)
    return np.stack([np.stack([engine.spins(k, r) for r in replicas], axis=-1) for k in samples])


def check_counts(engine: Engine) -> None:
    spins, counts = configurations(engine), engine.counts()
    np.testing.assert_array_equal(counts.energy * engine.model.quantum, engine.model.energy(spins))
    np.testing.assert_array_equal(counts.magnetization, spins.sum(axis=1, dtype=np.int64))


def plainly(engine: Engine, dynamics: Dynamics) -> tuple[np.ndarray, Callable[..., np.ndarray]]:
    """The oracle's initial spins and its uniforms."""
    start = oracle.start_site if engine.packing is Packing.SITE else oracle.start
    uniform = {
        Packing.SITE: oracle.uniform_site(engine.model),
        Packing.REPLICA: oracle.uniform_packed,
        Packing.UNPACKED: oracle.uniform_general,
    }[engine.packing]
    return start(engine.model, engine.replicas, dynamics.seed, dynamics.rng_rounds), uniform


def run_both(
    device: str, model: Ising, replicas: int, beta: float | np.ndarray, sweeps: tuple[int, ...], **options: object
) -> None:
    dynamics = Dynamics(seed=2**40 + 17, **options)  # type: ignore[arg-type]
    engine = create_engine(model, replicas, dynamics, device)
    expected, uniform = plainly(engine, dynamics)
    engine.set_beta(beta)
    done = 0
    for count in sweeps:
        engine.sweep(count)
        oracle.sweep(
            model, expected, beta, dynamics.seed, count, uniform, dynamics.zero_acceptance, done, dynamics.rng_rounds
        )
        done += count
        np.testing.assert_array_equal(configurations(engine), expected)
        check_counts(engine)


@pytest.mark.parametrize("name", PACKED)
def test_packed_kernels_equal_the_oracle(device: str, name: str) -> None:
    model = PACKED[name]()
    run_both(device, model, 130, 0.6, (1, 9))
    assert create_engine(model, 1, Dynamics()).packing is Packing.REPLICA


@pytest.mark.parametrize("name", SITE)
def test_site_packed_kernels_equal_the_oracle(device: str, name: str) -> None:
    make, replicas = SITE[name]
    model = make()
    run_both(device, model, replicas, 0.6, (1, 9))
    assert choose_packing(model) is Packing.SITE


@pytest.mark.parametrize("field", [0.0, 0.5])
@pytest.mark.parametrize(
    ("beta", "options"),
    [
        (0.5, {"rng_rounds": 7}),
        (0.5, {"zero_acceptance": 1.0}),
        (0.5, {"zero_acceptance": 0.7}),
        (np.array([0.0, 0.4, 3.0]), {}),  # at infinite temperature probability 1 has no threshold
        (0.0, {}),
        (1e-9, {}),
        (40.0, {}),
    ],
)
def test_site_packed_options(device: str, field: float, beta: float | np.ndarray, options: dict[str, object]) -> None:
    run_both(device, EdwardsAnderson(square(256, 2), seed=1, field=field), 3, beta, (4,), **options)


@pytest.mark.parametrize(
    "model",
    [
        lambda: Ising(square(128, 256)),
        lambda: Ising(square(256, 3)),
        lambda: Ising(square(256, 4, periodic=False)),
        lambda: Ising(cubic(256, 4, 3)),
        lambda: Ising(chain(256)),
        lambda: Ising(Graph(512, square(256, 2).edges())),
    ],
)
def test_other_shapes_are_replica_packed(model: Callable[[], Ising]) -> None:
    assert choose_packing(model()) is Packing.REPLICA


def test_site_fields_and_gaussian_couplings_are_unpacked() -> None:
    assert choose_packing(Ising(square(256, 2), 1.0, np.arange(512.0))) is Packing.UNPACKED
    assert choose_packing(EdwardsAnderson(square(256, 2), couplings="gaussian")) is Packing.UNPACKED


def test_site_packed_replicas_fit_their_counter() -> None:
    check_run(Ising(square(256, 2)), 2**14, 1, 2)
    with pytest.raises(InputError, match=r"16385 replicas of a site-packed lattice .* 2\^14"):
        check_run(Ising(square(256, 2)), 2**14 + 1, 1, 2)


@pytest.mark.parametrize("name", [name for name in PACKED if not name.startswith(("random", "hypercubic"))])  # 7 slots
def test_gpu_records_hold_sites_and_places_of_their_neighbours(name: str) -> None:
    model = PACKED[name]()
    batches = ReplicaPlan(model, 1, Dynamics(), 2**62).batches
    near, negative = site_records(batches)
    np.testing.assert_array_equal(near[:, 0], batches.order)
    np.testing.assert_array_equal(batches.order[places(batches)], np.arange(model.sites))
    slots = np.repeat(batches.slots, np.diff(batches.first))
    for sample, bonds in enumerate(model.negative_bonds().tolist()):
        expected: list[list[tuple[int, int]]] = [[] for _ in range(model.sites)]
        for (a, b), sign in zip(model.graph.edges.tolist(), bonds, strict=True):
            expected[a].append((b, 255 * sign))
            expected[b].append((a, 255 * sign))
        for place, site in enumerate(batches.order):
            neighbours = batches.order[near[place, 1 : 1 + slots[place]] // PLACE].tolist()
            signs = negative[sample, place, : slots[place]].tolist()
            found = [bond for bond in zip(neighbours, signs, strict=True) if bond[0] != site]  # not phantoms
            assert sorted(found) == sorted(expected[site])


@pytest.mark.parametrize("name", PACKED)
def test_groups_of_bonds_hold_every_bond(name: str) -> None:
    model = PACKED[name]()
    place = places(ReplicaPlan(model, 1, Dynamics(), 2**62).batches)
    ends = np.sort(place[model.graph.edges].astype(np.int64), axis=1)
    for row, negative in zip(bond_groups(ends, model.negative_bonds()), model.negative_bonds(), strict=True):
        fields = row[:, None] >> np.arange(0, 60, PLACE_BITS, dtype=np.uint64) & np.uint64(2**PLACE_BITS - 1)
        signs = row[:, None] >> np.arange(60, 63, dtype=np.uint64) & np.uint64(1)
        found = np.stack(np.broadcast_arrays(fields[:, :1], fields[:, 1:], signs), axis=-1).reshape(-1, 3)
        found = found[found[:, 0] != found[:, 1]]  # what is missing is a bond with itself
        assert sorted(found.tolist()) == sorted(np.column_stack([ends, negative]).tolist())


@pytest.mark.gpu
@pytest.mark.parametrize("name", PACKED)
def test_packed_kernels_from_global_memory(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from spinsim.engine.replica_packed import cuda_lattices

    monkeypatch.setattr(cuda_lattices, "shared_memory", lambda device: 0)
    run_both("cuda", PACKED[name](), 130, 0.6, (1, 9))


@pytest.mark.gpu
@pytest.mark.parametrize("couplings", ["pm-j", "gaussian"])
def test_devices_agree_after_a_thousand_sweeps(couplings: str) -> None:
    model = EdwardsAnderson(cubic(8), samples=3, couplings=couplings, seed=1)
    engines = [create_engine(model, 200, Dynamics(), device) for device in ("cpu", "cuda")]
    for engine in engines:
        engine.set_beta(1.0)
        engine.sweep(1000)
    np.testing.assert_array_equal(engines[0].counts().energy, engines[1].counts().energy)
    for sample, replica in ((0, 0), (1, 130), (2, 199)):
        np.testing.assert_array_equal(*(engine.spins(sample, replica) for engine in engines))


@pytest.mark.parametrize("name", GENERAL)
def test_general_kernel_equals_the_oracle(device: str, name: str) -> None:
    model = GENERAL[name]()
    run_both(device, model, 70, 0.6 / model.energy_scale, (1, 9))
    assert create_engine(model, 1, Dynamics()).packing is Packing.UNPACKED


@pytest.mark.parametrize("replicas", [1, 2, 31, 33, 64, 65, 127, 128, 129, 257, 300])
@pytest.mark.parametrize("couplings", ["pm-j", "gaussian"])
def test_any_number_of_replicas(device: str, replicas: int, couplings: str) -> None:
    run_both(device, EdwardsAnderson(square(4), couplings=couplings, seed=1), replicas, 0.8, (5,))


COUNTED = {
    "packed-odd": (lambda: EdwardsAnderson(cubic(13), samples=2, seed=1), 300),  # a block's share leaves a remainder
    "packed-graph": (lambda: random_signs(random_graph(4000, 9000, 3), 3), 130),
    "packed-few-bonds": (lambda: Ising(Graph(7001, np.array([[0, 1], [5, 7000]], np.int32))), 3),
    "site-square": (lambda: EdwardsAnderson(square(256, 530), seed=1), 2),
    "site-cubic": (lambda: EdwardsAnderson(cubic(256, 24, 22), samples=2, seed=1), 1),
    "general-two-blocks-of-columns": (lambda: EdwardsAnderson(square(37, 9), couplings="gaussian", field=0.3), 528),
    "general-many-sites": (lambda: EdwardsAnderson(square(97), couplings="gaussian", samples=2), 128),
    "general-four-replicas-a-thread": (lambda: EdwardsAnderson(cubic(7), couplings="gaussian"), 140),
    "general-wide-integers": (lambda: Ising(square(5), np.linspace(1, 1e9, 50)), 64),
}


@pytest.mark.parametrize("name", COUNTED)
def test_counts(device: str, name: str) -> None:
    make, replicas = COUNTED[name]
    check_counts(create_engine(make(), replicas, Dynamics(), device))
    check_counts(create_engine(make(), replicas, Dynamics(start="up"), device))  # the largest count of up spins


@pytest.mark.gpu
@pytest.mark.parametrize("name", COUNTED)
def test_counts_by_the_fewest_blocks(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from spinsim.engine.site_packed import cuda_lattices as cuda_site
    from spinsim.engine.unpacked import cuda as cuda_general

    monkeypatch.setattr(cuda_general, "MEASURE_BLOCKS", 0)
    monkeypatch.setattr(cuda_site, "COUNT_BLOCKS", 0)
    make, replicas = COUNTED[name]
    check_counts(create_engine(make(), replicas, Dynamics(), "cuda"))


@pytest.mark.parametrize("name", ["packed-odd", "site-square", "general-many-sites"])
def test_counts_may_be_fetched_late_in_any_order_or_never(device: str, name: str) -> None:
    make, replicas = COUNTED[name]
    engine, reference = (create_engine(make(), replicas, Dynamics(), device) for _ in range(2))
    expected, fetched = {}, {}
    for each in (engine, reference):
        each.set_beta(0.4 / each.model.energy_scale)
    for first in (0, 6):  # the second time with what the first has left
        pending = {}
        for k in range(first, first + 6):
            engine.sweep(1)
            engine.begin_counts()  # never fetched
            pending[k] = engine.begin_counts()
            reference.sweep(1)
            expected[k] = reference.counts()
        for k in (3, 0, 5, 5, 2, 4, 1):
            fetched[first + k] = pending[first + k]()
    for k, counts in expected.items():
        np.testing.assert_array_equal(fetched[k], counts)
    assert len({counts.energy.tobytes() for counts in expected.values()}) == 12


@pytest.mark.parametrize("couplings", ["pm-j", "gaussian"])
def test_a_temperature_for_each_replica(device: str, couplings: str) -> None:
    beta = np.linspace(0.0, 3.0, 150)  # the first lane is at infinite temperature: probability 1 has no threshold
    run_both(device, EdwardsAnderson(cubic(4), couplings=couplings, seed=1), 150, beta, (1, 20))


@pytest.mark.parametrize(
    "hottest", [2.4, 2.25]
)  # in units of |J|: from 2.31 downwards only the smallest cost has own bits
@pytest.mark.parametrize(
    "lattice",
    [cubic(4), square(6), square(5, 3, periodic=False), pytest.param(cubic(26), marks=pytest.mark.gpu)],
    ids=str,
)
def test_kinds_of_rules(device: str, lattice: Lattice, hottest: float) -> None:
    model = EdwardsAnderson(lattice, seed=1)
    beta = 1 / np.linspace(0.3, hottest, 130)
    run_both(device, model, 130 if lattice.sites < 100 else 3, beta[-3:] if lattice.sites > 100 else beta, (1, 5))


@pytest.mark.parametrize("couplings", ["pm-j", "gaussian"])
@pytest.mark.parametrize("options", [{"rng_rounds": 7}, {"zero_acceptance": 1.0}, {"zero_acceptance": 0.7}])
def test_options(device: str, couplings: str, options: dict[str, object]) -> None:
    run_both(device, EdwardsAnderson(square(6), couplings=couplings, seed=1), 40, 0.5, (4,), **options)


@pytest.mark.parametrize("couplings", ["pm-j", "gaussian"])
@pytest.mark.parametrize("beta", [1e-9, 40.0])
def test_extreme_temperatures(device: str, couplings: str, beta: float) -> None:
    run_both(device, EdwardsAnderson(square(4), couplings=couplings, seed=1), 128, beta, (6,))


@pytest.mark.parametrize("field", [0.0, 0.5])
def test_lanes_past_the_last_replica_stay_zero(field: float) -> None:
    engine = create_engine(EdwardsAnderson(cubic(4), seed=1, field=field), 70, Dynamics(), "cpu")
    engine.set_beta(0.5)
    engine.sweep(20)
    assert not np.any(engine.snapshot()["spins"] & ~lane_masks(70)[None, :, None, :])


@pytest.mark.parametrize("couplings", ["pm-j", "gaussian"])
def test_threads_and_other_replicas_change_nothing(couplings: str) -> None:
    def energies(replicas: int, threads: int, samples: int = 2) -> np.ndarray:
        model = EdwardsAnderson(cubic(4), samples=samples, couplings=couplings, seed=1)
        engine = create_engine(model, replicas, Dynamics(seed=5), threads=threads)
        engine.set_beta(0.8)
        engine.sweep(30)
        return engine.counts().energy

    reference = energies(300, 1)
    np.testing.assert_array_equal(energies(300, 4), reference)
    np.testing.assert_array_equal(energies(100, 2, samples=1), reference[:1, :100])


@pytest.mark.parametrize("field", [0.0, 0.5])
def test_threads_that_share_a_block_change_nothing(field: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed_engine, "SPLIT_SITES", 1)
    states = []
    for threads in (1, 3, 7):
        model = EdwardsAnderson(cubic(9, 8, 10), seed=1, field=field)
        engine = create_engine(model, 100, Dynamics(), "cpu", threads)
        engine.set_beta(0.7)
        engine.sweep(4)
        states.append(engine.snapshot()["spins"])
    np.testing.assert_array_equal(states[0], states[1])
    np.testing.assert_array_equal(states[0], states[2])


@pytest.mark.parametrize("field", [0.0, 0.5])
def test_threads_change_nothing_site_packed(field: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(site_engine, "SPLIT_GROUPS", 1)
    model = EdwardsAnderson(cubic(512, 6, 10), seed=1, field=field)
    engines = [create_engine(model, 2, Dynamics(), "cpu", threads) for threads in (1, 2, 6, 7)]
    for engine in engines:
        engine.set_beta(0.7)
        engine.sweep(4)
        np.testing.assert_array_equal(engine.snapshot()["spins"], engines[0].snapshot()["spins"])
        np.testing.assert_array_equal(engine.counts(), engines[0].counts())
    assert [engine.tasks for engine in engines] == [2, 2, 6, 6]


@pytest.mark.parametrize("couplings", ["pm-j", "gaussian"])
def test_every_replica_and_sample_has_a_stream_of_its_own(couplings: str) -> None:
    model = Ising(square(8), np.tile(EdwardsAnderson(square(8), couplings=couplings).couplings, (2, 1)))
    engine = create_engine(model, 260, Dynamics(start="up"))
    engine.set_beta(0.1)
    engine.sweep(5)
    states = {engine.spins(sample, replica).tobytes() for sample in (0, 1) for replica in range(260)}
    assert len(states) == 520


def test_numpy_integers_serve_as_integers() -> None:
    model = Ising(square(4))
    plain = anneal(model, [2.0, 1.0], sweeps=2, replicas=3, seed=5)
    numbers = {"sweeps": np.int64(2), "replicas": np.int32(3), "seed": np.uint64(5), "rng_rounds": np.int64(10)}
    typed = anneal(model, [2.0, 1.0], **numbers)  # type: ignore[arg-type]
    np.testing.assert_array_equal(plain.energy, typed.energy)
    assert plain.config == typed.config


@pytest.mark.parametrize("couplings", ["pm-j", "gaussian"])
def test_sweeps_add_up_and_seeds_differ(couplings: str) -> None:
    def energies(seed: int, *parts: int) -> np.ndarray:
        engine = create_engine(EdwardsAnderson(square(8), couplings=couplings, seed=1), 64, Dynamics(seed=seed))
        engine.set_beta(0.8)
        for count in parts:
            engine.sweep(count)
        return engine.counts().energy

    np.testing.assert_array_equal(energies(1, 7, 13), energies(1, 20))
    assert np.any(energies(1, 20) != energies(2, 20))


def overlaps(engine: Engine) -> np.ndarray:
    return engine.begin_measurement(False)().correlations.overlap


def check_measurement(m: LadderMeasurement, engine: Engine, state: oracle.State, spins: np.ndarray) -> None:
    """That all stands at its temperature, for an engine in ``state`` with ``spins`` (samples, sites, replicas)."""
    samples, copies, temperatures = m.energy.shape
    at = state.place.reshape(samples, copies, temperatures).argsort(axis=-1)
    holder = at + temperatures * np.arange(copies)[:, None]
    np.testing.assert_array_equal(m.holder, holder)
    counts = (np.take_along_axis(x, holder.reshape(samples, -1), axis=1).reshape(holder.shape) for x in engine.counts())
    np.testing.assert_array_equal(m.energy, next(counts) * np.float64(engine.model.quantum))
    np.testing.assert_array_equal(m.magnetization, next(counts))
    for name, expected in state._asdict().items():
        np.testing.assert_array_equal(getattr(m.exchange, name), expected, name)
    np.testing.assert_array_equal(m.correlations.overlap, oracle.overlaps(spins, state.place, copies))
    np.testing.assert_array_equal(m.spins(samples - 1, 0), spins[-1, :, 0])


def temper_both(
    device: str, model: Ising, beta: np.ndarray, copies: int, parts: list[tuple[int, int]], **options: object
) -> oracle.State:
    """Temper for all ``parts``, (rounds, sweeps), and compare with the oracle after each; the last state."""
    dynamics = Dynamics(seed=2**40 + 17, **options)  # type: ignore[arg-type]
    engine = create_engine(model, copies * beta.size, dynamics, device)
    spins, uniform = plainly(engine, dynamics)
    engine.set_ladder(beta, copies)
    state = oracle.begin(model.samples, copies, beta.size)
    done = round_ = 0
    for rounds, sweeps in parts:
        engine.temper(rounds, sweeps)
        exchange, measured = engine.begin_exchange(), engine.begin_measurement(False)
        for _ in range(rounds):
            betas = beta[state.place][:, None]
            oracle.sweep(
                model, spins, betas, dynamics.seed, sweeps, uniform, dynamics.zero_acceptance, done, dynamics.rng_rounds
            )
            done += sweeps
            oracle.exchange(model, spins, beta, copies, state, round_, dynamics.seed, dynamics.rng_rounds)
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


TEMPERED = {
    "cubic-samples": (lambda: EdwardsAnderson(cubic(4), samples=3, seed=1), ladder(0.8, 2.0, 5), 2),
    "cubic-shared-signs": (lambda: Ising(cubic(4)), ladder(3.0, 6.0, 4), 3),
    "full-block": (lambda: EdwardsAnderson(cubic(4, 6, 4), samples=2, seed=1), ladder(0.8, 2.0, 32), 4),
    "two-blocks": (lambda: EdwardsAnderson(cubic(4), samples=3, seed=1), ladder(0.8, 2.0, 40), 4),
    "hot": (lambda: EdwardsAnderson(cubic(4), samples=2, seed=1), ladder(1.0, 5.0, 6), 2),
    "infinite-temperature": (lambda: EdwardsAnderson(square(4), seed=1), np.array([0.8, 0.4, 0.0]), 2),
    "open-square": (lambda: EdwardsAnderson(square(5, 7, periodic=False), samples=2, seed=3), ladder(0.5, 2.0, 6), 3),
    "odd-degrees": (lambda: random_signs(ring_of_degree_five(20), 4), ladder(0.8, 2.5, 6), 3),
    "one-copy": (lambda: EdwardsAnderson(square(6), seed=3), ladder(0.5, 2.0, 7), 1),
    "field": (lambda: EdwardsAnderson(cubic(3, 4, 2), samples=2, seed=2, field=-0.7), ladder(0.8, 2.0, 5), 2),
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


@pytest.mark.parametrize("name", TEMPERED)
def test_tempering_equals_the_oracle(device: str, name: str) -> None:
    make, beta, copies = TEMPERED[name]
    state = temper_both(device, make(), beta, copies, [(1, 1), (4, 2), (3, 1)])
    assert 0 < state.accepts.sum() < state.attempts.sum()


@pytest.mark.parametrize("name", ["cubic-samples", "gaussian", "site-packed"])
def test_one_temperature_is_a_ladder_without_exchanges(device: str, name: str) -> None:
    make, beta, copies = TEMPERED[name]
    state = temper_both(device, make(), beta[:1], copies, [(1, 1), (3, 2)])
    assert state.attempts.shape == (len(state.trips), 0)
    assert not state.trips.any()


@pytest.mark.parametrize("rng_rounds", [7, 10])
@pytest.mark.parametrize("couplings", ["pm-j", "gaussian"])
def test_tempering_counts_round_trips(device: str, couplings: str, rng_rounds: int) -> None:
    model = EdwardsAnderson(square(4), samples=2, couplings=couplings, seed=1)
    state = temper_both(device, model, ladder(0.8, 2.0, 3), 4, [(40, 1), (25, 2)], rng_rounds=rng_rounds)
    assert state.trips.min() > 0


@pytest.mark.gpu
@pytest.mark.parametrize("model", [lambda: EdwardsAnderson(cubic(26), seed=1), lambda: Ising(square(131, 129))])
def test_tempering_from_global_memory(model: Callable[[], Ising]) -> None:
    temper_both("cuda", model(), ladder(2.0, 2.2, 3), 2, [(2, 1), (3, 2)])


@pytest.mark.gpu
@pytest.mark.parametrize("name", ["cubic-samples", "cubic-shared-signs", "hot", "open-square", "field", "graph"])
def test_tempering_by_a_kernel_for_each_step(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from spinsim.engine.replica_packed import cuda_tempering

    monkeypatch.setattr(cuda_tempering, "HELD_BYTES", 2**30)
    make, beta, copies = TEMPERED[name]
    temper_both("cuda", make(), beta, copies, [(3, 1), (2, 2)])


@pytest.mark.gpu
@pytest.mark.parametrize("name", [name for name in TEMPERED if TEMPERED[name][0]().magnitude])
def test_tempering_of_small_lattices_from_global_memory(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from spinsim.engine.replica_packed import cuda_lattices

    monkeypatch.setattr(cuda_lattices, "shared_threads", lambda *_: 0)
    make, beta, copies = TEMPERED[name]
    temper_both("cuda", make(), beta, copies, [(3, 1), (2, 2)])


@pytest.mark.gpu
@pytest.mark.parametrize("copies", [2, 3])
def test_devices_agree_after_a_thousand_rounds(copies: int) -> None:
    model = EdwardsAnderson(cubic(6), samples=3, seed=1)
    engines = [create_engine(model, copies * 20, Dynamics(), device) for device in ("cpu", "cuda")]
    for engine in engines:
        engine.set_ladder(ladder(0.5, 2.0, 20), copies)
        engine.temper(1000, 1)
    for one, other in zip(*(engine.begin_exchange()() for engine in engines), strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(*(overlaps(engine) for engine in engines))
    np.testing.assert_array_equal(*(configurations(engine) for engine in engines))


SPLIT = {
    "packed": lambda: EdwardsAnderson(cubic(4), samples=2, seed=1),
    "site": lambda: Ising(square(256, 2)),
    "general": lambda: EdwardsAnderson(square(4), couplings="gaussian", seed=1),
}


@pytest.mark.parametrize("name", SPLIT)
def test_tempering_in_parts_changes_nothing(device: str, name: str) -> None:
    beta = ladder(1.0, 2.4, 4)
    whole, parts = (create_engine(SPLIT[name](), 8, Dynamics(), device) for _ in range(2))
    for engine in (whole, parts):
        engine.set_ladder(beta, 2)
    whole.temper(6, 2)
    parts.temper(2, 2)
    parts.temper(0, 2)
    early = parts.begin_exchange()  # fetched late
    begun = parts.begin_measurement(False)
    parts.temper(4, 2)
    for one, other in zip(whole.begin_exchange()(), parts.begin_exchange()(), strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(overlaps(whole), overlaps(parts))
    np.testing.assert_array_equal(configurations(whole), configurations(parts))
    assert (early().attempts.sum(axis=1) == 2 * (2 + 1)).all()
    assert begun().correlations.overlap.shape == (whole.model.samples, 1, 4)


def flat(m: LadderMeasurement) -> list[np.ndarray]:
    spins = [m.spins(k, r) for k in range(len(m.energy)) for r in range(m.energy[0].size)]
    return [m.energy, m.magnetization, m.holder, *m.exchange, *m.correlations, *spins]


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("name", SPLIT)
def test_measurements_in_succession_are_those_of_single_ones(device: str, name: str, full: bool) -> None:
    one, other = (create_engine(SPLIT[name](), 9, Dynamics(), where) for where in (device, "cpu"))
    for engine in (one, other):
        engine.set_ladder(ladder(1.0, 2.4, 3), 3)
        engine.temper(1, 1)
    asked = [*one.temper_measured(3, 2, 1, full), *one.temper_measured(2, 1, 2, full)]
    one.temper(3, 1)  # what was asked for is not disturbed
    for k, begun in enumerate(asked):
        other.temper(2 if k < 3 else 1, 1 if k < 3 else 2)
        for found, expected in zip(flat(begun()), flat(other.begin_measurement(full)()), strict=True):
            assert found.dtype == expected.dtype
            np.testing.assert_array_equal(found, expected)
    other.temper(3, 1)
    np.testing.assert_array_equal(one.counts(), other.counts())
    np.testing.assert_array_equal(configurations(one), configurations(other))


@pytest.mark.parametrize("name", SPLIT)
def test_a_ladder_and_given_temperatures_take_turns(device: str, name: str) -> None:
    beta = ladder(1.0, 2.4, 4)
    engines = [create_engine(SPLIT[name](), 8, Dynamics(), where) for where in ("cpu", device)]
    for engine in engines:
        with pytest.raises(InputError, match="no ladder of temperatures is set: call set_ladder first"):
            engine.temper(1, 1)
        engine.set_beta(0.4)
        engine.sweep(2)
        engine.set_ladder(beta, 2)
        engine.temper(3, 1)
        engine.sweep(2)  # at the temperatures of their places
        engine.set_beta(np.tile(beta, 2))
        engine.sweep(2)
        for ask in (engine.begin_exchange, engine.begin_measurement):
            with pytest.raises(InputError, match="no ladder"):
                ask()
        engine.set_ladder(beta[:2], 4)
        engine.temper(2, 1)
    for one, other in zip(*(engine.begin_exchange()() for engine in engines), strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(*(configurations(engine) for engine in engines))
