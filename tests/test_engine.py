"""The kernels of every device against the oracle, bit for bit."""

from __future__ import annotations

import numpy as np
import oracle
import pytest

from spinsim.engine import Dynamics, create_engine
from spinsim.engine.cpu import packed_engine
from spinsim.engine.cpu.packed_engine import PackedEngine
from spinsim.model.disorder import EdwardsAnderson
from spinsim.model.graph import Graph
from spinsim.model.ising import Ising
from spinsim.model.lattice import Lattice, chain, cubic, square
from spinsim.packing import Packing, lane_masks
from spinsim.run import anneal


def random_graph(sites: int, bonds: int, seed: int) -> Graph:
    generator = np.random.default_rng(seed)
    ends = generator.integers(0, sites, (bonds, 2)).astype(np.int32)
    return Graph(sites, ends[ends[:, 0] != ends[:, 1]])


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
    "one-by-many": lambda: Ising(Lattice((1, 6, 3))),
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


def run_both(
    device: str, model: Ising, replicas: int, beta: float | np.ndarray, sweeps: tuple[int, ...], **options: object
) -> None:
    dynamics = Dynamics(seed=2**40 + 17, **options)  # type: ignore[arg-type]
    engine = create_engine(model, replicas, dynamics, device)
    packed = engine.packing is Packing.REPLICA
    uniform = oracle.uniform_packed if packed else oracle.uniform_general
    expected = oracle.start(model, replicas, dynamics.seed, dynamics.rng_rounds)
    engine.set_beta(beta)
    done = 0
    for count in sweeps:
        engine.sweep(count)
        oracle.sweep(
            model, expected, beta, dynamics.seed, count, uniform, dynamics.zero_acceptance, done, dynamics.rng_rounds
        )
        done += count
        got = np.stack([np.stack([engine.spins(k, r) for r in range(replicas)], axis=-1) for k in range(model.samples)])
        np.testing.assert_array_equal(got, expected)
        counts = engine.counts()
        np.testing.assert_array_equal(counts.energy * model.quantum, model.energy(expected))
        np.testing.assert_array_equal(counts.magnetization, expected.sum(axis=1, dtype=np.int64))


@pytest.mark.parametrize("name", PACKED)
def test_packed_kernels_equal_the_oracle(device: str, name: str) -> None:
    model = PACKED[name]()
    run_both(device, model, 130, 0.6, (1, 9))
    assert create_engine(model, 1, Dynamics()).packing is Packing.REPLICA


@pytest.mark.gpu
@pytest.mark.parametrize("name", PACKED)
def test_packed_kernels_from_global_memory(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from spinsim.engine.cuda import packed_engine as cuda_engine

    monkeypatch.setattr(cuda_engine, "shared_memory", lambda device: 0)
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


@pytest.mark.parametrize("couplings", ["pm-j", "gaussian"])
def test_a_temperature_for_each_replica(device: str, couplings: str) -> None:
    beta = np.linspace(0.0, 3.0, 150)  # the first lane is at infinite temperature: probability 1 has no threshold
    run_both(device, EdwardsAnderson(cubic(4), couplings=couplings, seed=1), 150, beta, (1, 20))


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
    engine = PackedEngine(EdwardsAnderson(cubic(4), seed=1, field=field), 70, Dynamics())
    engine.set_beta(0.5)
    engine.sweep(20)
    assert not np.any(engine.state & ~lane_masks(70)[None, :, None, :])


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
        engine = PackedEngine(EdwardsAnderson(cubic(9, 8, 10), seed=1, field=field), 100, Dynamics(), threads)
        engine.set_beta(0.7)
        engine.sweep(4)
        states.append(engine.state)
    np.testing.assert_array_equal(states[0], states[1])
    np.testing.assert_array_equal(states[0], states[2])


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
