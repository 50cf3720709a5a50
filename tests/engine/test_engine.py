"""The kernels of every device against the oracle, bit for bit."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from engines import (
    ANY_ROWS,
    GENERAL,
    PACKED,
    SITE,
    check_counts,
    configurations,
    random_graph,
    random_signs,
    ring_of_degree_five,
    run_both,
)

from spinsim.engine import Dynamics, check_run, choose_packing, create_engine
from spinsim.engine.layouts.replica_packed_cuda import place_of
from spinsim.engine.measuring.sums import Counts
from spinsim.engine.moves.metropolis import cuda_spread
from spinsim.engine.moves.metropolis.replica_packed import cpu as packed_engine
from spinsim.engine.moves.metropolis.replica_packed.cuda_lattices import (
    PLACE,
    PLACE_BITS,
    bond_groups,
    is_shared_faster,
    shared_threads,
    site_records,
)
from spinsim.engine.moves.metropolis.replica_packed.update import ReplicaPlan
from spinsim.engine.moves.metropolis.site_packed import cpu as site_engine
from spinsim.engine.moves.metropolis.site_packed import cuda as cuda_site
from spinsim.engine.moves.metropolis.site_packed import cuda_words
from spinsim.errors import InputError
from spinsim.jobs.anneal.run import anneal
from spinsim.model.disorder import EdwardsAnderson
from spinsim.model.graph import Graph
from spinsim.model.ising import Ising
from spinsim.model.lattice import Lattice, chain, cubic, square
from spinsim.packing import Packing, lane_masks


@pytest.mark.parametrize("name", PACKED)
def test_packed_kernels_equal_the_oracle(device: str, name: str) -> None:
    model = PACKED[name]()
    run_both(device, model, 130, 0.6, (1, 9))
    assert create_engine(model, 2, Dynamics()).packing is Packing.REPLICA


IN_FIELD = {
    "cubic": lambda: EdwardsAnderson(cubic(4), samples=2, seed=2, field=0.5),
    "square": lambda: EdwardsAnderson(square(6), seed=2, field=-1.9),
    "strong": lambda: EdwardsAnderson(cubic(4), seed=2, field=2.0),
    "open": lambda: EdwardsAnderson(cubic(3, 4, 4, periodic=False), seed=2, field=-0.25),
    "odd degrees": lambda: Ising(ring_of_degree_five(20), -1.0, 0.9),
    "odd degrees, strong": lambda: Ising(ring_of_degree_five(20), -1.0, 1.5),
}


@pytest.mark.parametrize("where", ["spread", "shared", "global"])
@pytest.mark.parametrize("coldest", [0.0, 0.3, 0.7])
@pytest.mark.parametrize("name", IN_FIELD)
def test_kinds_of_classes_in_a_field_equal_the_oracle(
    device: str, name: str, coldest: float, where: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Replicas of different temperatures from infinity, 1 / 0.3 or 1 / 0.7 on down."""
    if device == "cpu" and where != "spread":
        pytest.skip("a way of a GPU")
    if where != "spread":
        request.getfixturevalue("not_spread")
    if where == "global":
        cuda_lattices = "spinsim.engine.moves.metropolis.replica_packed.cuda_lattices"
        monkeypatch.setattr(f"{cuda_lattices}.shared_memory", lambda device: 0)
    run_both(device, IN_FIELD[name](), 130, np.linspace(coldest, coldest + 0.8, 130), (1, 4))


@pytest.mark.parametrize("name", SITE)
def test_site_packed_kernels_equal_the_oracle(device: str, name: str) -> None:
    make, replicas = SITE[name]
    model = make()
    run_both(device, model, replicas, 0.6, (1, 9))
    assert choose_packing(model) is Packing.SITE


@pytest.mark.parametrize("name", SITE)
def test_lattices_that_a_gpu_has_in_global_memory(device: str, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    if device == "cpu":
        pytest.skip("a way of a GPU")
    monkeypatch.setattr(cuda_site, "fits_block", lambda *sizes: False)
    monkeypatch.setattr(cuda_site, "fits_gpu", lambda *sizes: False)
    test_site_packed_kernels_equal_the_oracle(device, name)


@pytest.mark.parametrize("name", ANY_ROWS)
def test_rows_that_begin_within_words(any_rows: None, device: str, name: str) -> None:
    model = ANY_ROWS[name]()
    run_both(device, model, 3, np.array([0.2, 0.5, 1.0]), (1, 2))
    assert choose_packing(model, 3) is Packing.SITE


@pytest.mark.parametrize("way", ["rows", "words", "spread"])
@pytest.mark.parametrize("name", ANY_ROWS)
def test_rows_in_memory_of_all_kinds(
    any_rows: None, emulated: None, monkeypatch: pytest.MonkeyPatch, way: str, name: str
) -> None:
    monkeypatch.setattr(cuda_site, "fits_block", lambda *sizes: way == "words")
    monkeypatch.setattr(cuda_site, "fits_gpu", lambda *sizes: way == "spread")
    for module in (cuda_spread, cuda_words):
        monkeypatch.setattr(module, "SPREAD_THREADS", 32)  # of several blocks
    run_both("cuda", ANY_ROWS[name](), 3, np.array([0.2, 0.5, 1.0]), (1, 3))


def test_windows_of_many_layers(any_rows: None) -> None:
    """On a CPU more words of a colour than a window has room for."""
    for model in (EdwardsAnderson(square(254, 300), seed=3), Ising(cubic(150, 90, 4), field=-1.0)):
        run_both("cpu", model, 1, 0.6, (2,))


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
    np.testing.assert_array_equal(batches.order[place_of(batches.order)], np.arange(model.sites))
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
    place = place_of(ReplicaPlan(model, 1, Dynamics(), 2**62).batches.order)
    ends = np.sort(place[model.graph.edges].astype(np.int64), axis=1)
    for row, negative in zip(bond_groups(ends, model.negative_bonds()), model.negative_bonds(), strict=True):
        fields = row[:, None] >> np.arange(0, 60, PLACE_BITS, dtype=np.uint64) & np.uint64(2**PLACE_BITS - 1)
        signs = row[:, None] >> np.arange(60, 63, dtype=np.uint64) & np.uint64(1)
        found = np.stack(np.broadcast_arrays(fields[:, :1], fields[:, 1:], signs), axis=-1).reshape(-1, 3)
        found = found[found[:, 0] != found[:, 1]]  # what is missing is a bond with itself
        assert sorted(found.tolist()) == sorted(np.column_stack([ends, negative]).tolist())


@pytest.mark.parametrize(
    ("side", "samples", "in_shared"),
    [(8, 1, True), (8, 64, True), (12, 1, False), (12, 64, False), (16, 1, False), (16, 64, False), (16, 128, True),
     (16, 140, False), (16, 1024, True), (20, 64, False), (20, 132, True), (24, 128, False), (24, 256, False)],
)  # fmt: skip
def test_few_lattices_are_shared_by_thread_blocks(side: int, samples: int, in_shared: bool) -> None:
    """As was measured on a GPU of 132 multiprocessors with 227 KiB of shared memory each."""
    plan = ReplicaPlan(EdwardsAnderson(cubic(side), samples=samples), 128, Dynamics(), 2**62)
    assert is_shared_faster(plan, 132, shared_threads(plan, 227 * 1024, 132)) == in_shared


@pytest.mark.gpu
@pytest.mark.parametrize("name", PACKED)
def test_packed_kernels_in_shared_memory(not_spread: None, name: str) -> None:
    run_both("cuda", PACKED[name](), 130, 0.6, (1, 9))


@pytest.mark.gpu
@pytest.mark.parametrize("name", PACKED)
def test_packed_kernels_from_global_memory(not_spread: None, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from spinsim.engine.moves.metropolis.replica_packed import cuda_lattices

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


def check_same_counts(found: Counts, expected: Counts) -> None:
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("name", COUNTED)
def test_counts(device: str, name: str) -> None:
    make, replicas = COUNTED[name]
    check_counts(create_engine(make(), replicas, Dynamics(), device))
    check_counts(create_engine(make(), replicas, Dynamics(start="up"), device))  # the largest count of up spins


@pytest.mark.gpu
@pytest.mark.parametrize("name", COUNTED)
def test_counts_by_the_fewest_blocks(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from spinsim.engine.moves.metropolis import unpacked_cuda as cuda_general

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
        check_same_counts(fetched[k], counts)
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


COLUMN = range(5, 128, 32)  # replicas that share a call of random bits


@pytest.mark.parametrize(("couplings", "is_packed"), [("pm-j", True), ("gaussian", False)])
def test_other_temperatures_reach_later_replicas_of_a_column(couplings: str, is_packed: bool) -> None:
    """As docs/theory/update.md says of packed words; in unpacked ones they reach no other replica."""

    def spins(beta: np.ndarray) -> np.ndarray:
        engine = create_engine(EdwardsAnderson(cubic(4), couplings=couplings, seed=1), 128, Dynamics(seed=7), "cpu", 1)
        engine.set_beta(beta)
        engine.sweep(100)
        return configurations(engine)

    reference = spins(np.full(128, 0.5))
    for changed in COLUMN:
        differs = (spins(np.where(np.arange(128) == changed, 0.9, 0.5)) != reference).any(axis=(0, 1))
        later = [replica for replica in COLUMN if replica > changed] if is_packed else []
        assert np.flatnonzero(differs).tolist() == [changed, *later]


def test_replicas_of_a_column_are_independent() -> None:
    """Covariances of their energies over the samples, which are all the same ferromagnet, are zero."""
    samples, times = 2000, 8
    model = Ising(square(4), np.ones((samples, square(4).bonds)))
    engine = create_engine(model, 128, Dynamics(seed=25), "cpu", 1)
    engine.set_beta(np.tile([0.3, 0.44], 64))
    z = []
    for _ in range(times):
        engine.sweep(5)
        energy = engine.counts().energy
        standard = ((energy - energy.mean(axis=0)) / energy.std(axis=0)).reshape(samples, 4, 32)
        z += [(standard[:, i] * standard[:, j]).mean(axis=0) * np.sqrt(samples) for i in range(4) for j in range(i)]
    scores = np.concatenate(z)
    assert abs((scores**2).mean() - 1) * np.sqrt(scores.size / 2) <= 4
    assert abs(scores.mean()) * np.sqrt(scores.size) <= 4


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
        check_same_counts(engine.counts(), engines[0].counts())
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
