"""Replica-packed updates of graphs whose degrees differ much, bit for bit."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from engines import PACKED, hubs, random_graph, random_signs, run_both, temper_both

from spinsim.engine import Dynamics, choose_packing, create_engine
from spinsim.engine.moves.metropolis.classes import MAX_DEGREE, MAX_DEGREE_IN_FIELD, cheap_bits
from spinsim.engine.moves.metropolis.replica_packed.batches import Costs
from spinsim.engine.moves.metropolis.replica_packed.cpu import COSTS
from spinsim.engine.moves.metropolis.replica_packed.update import MOST_UNITS, ReplicaPlan
from spinsim.jobs.anneal.run import anneal
from spinsim.model.disorder import EdwardsAnderson
from spinsim.model.graph import Graph
from spinsim.model.ising import Ising
from spinsim.model.lattice import square
from spinsim.packing import Packing
from spinsim.sampling import InField

STAR = Graph(MAX_DEGREE + 1, np.column_stack([np.zeros(MAX_DEGREE, int), np.arange(1, MAX_DEGREE + 1)]))
DENSE = random_signs(random_graph(20, 600, 1), 1)


@pytest.mark.parametrize("temperature", [0.5, 6.0, 20.0, np.inf])
def test_every_number_of_cheap_classes(device: str, temperature: float) -> None:
    run_both(device, DENSE, 70, 1 / temperature, (1, 2))


@pytest.mark.parametrize("options", [{}, {"zero_acceptance": 1.0, "rng_rounds": 7}])
def test_replicas_at_different_temperatures(device: str, options: dict[str, object]) -> None:
    beta = np.append(np.geomspace(0.005, 3.0, 129), 0.0)
    run_both(device, PACKED["random-graph-hubs-samples"](), 130, beta, (1, 2), **options)


def test_the_largest_degree(device: str) -> None:
    run_both(device, Ising(STAR, -1.0), 40, 0.05, (1, 2))


@pytest.mark.gpu
def test_from_global_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    from spinsim.engine.moves.metropolis.replica_packed import cuda_lattices as cuda_degrees

    monkeypatch.setattr(cuda_degrees, "shared_memory", lambda device: 0)
    run_both("cuda", PACKED["random-graph-hubs-samples"](), 130, 0.1, (1, 2))


def test_a_ladder(device: str) -> None:
    temper_both(device, random_signs(hubs(40, 260, 3.0, 3), 2), 1 / np.linspace(1.0, 9.0, 5), 2, [(2, 1), (1, 2)])


def test_what_is_packed() -> None:
    assert STAR.degrees().max() == MAX_DEGREE
    assert choose_packing(Ising(STAR)) is Packing.REPLICA
    assert choose_packing(Ising(STAR, 1.0, 0.5)) is Packing.UNPACKED
    more = Graph(STAR.sites, np.append(STAR.edges, [[0, 1]], axis=0))
    assert choose_packing(Ising(more)) is Packing.UNPACKED
    few = Graph(40, STAR.edges[:MAX_DEGREE_IN_FIELD])
    assert choose_packing(Ising(few, 1.0, 0.5)) is Packing.REPLICA


def test_couplings_of_few_units_are_packed() -> None:
    model = PACKED["random-units-samples"]()
    unit, weights = model.weights
    assert unit * model.quantum == 1
    np.testing.assert_array_equal(weights, np.abs(model.couplings[1]))
    assert choose_packing(model) is Packing.REPLICA
    assert choose_packing(model.in_field(0.25)) is Packing.UNPACKED
    alone = model.of_samples(0, 1)
    np.testing.assert_array_equal(alone.weights[1], weights)

    def pair(*couplings: float) -> Packing:
        return choose_packing(Ising(Graph(3, np.array([[0, 1], [0, 2]])), np.array(couplings)))

    assert pair(MOST_UNITS - 1, -1) is Packing.REPLICA
    assert pair(0.125 * (MOST_UNITS - 1), 0.125) is Packing.REPLICA
    assert pair(MOST_UNITS, 1) is Packing.UNPACKED
    assert pair(0, 2) is Packing.UNPACKED
    assert (
        choose_packing(Ising(Graph(3, np.array([[0, 1], [0, 2]])), np.array([[1.0, 2.0], [1.0, 1.0]])))
        is Packing.UNPACKED
    )
    assert choose_packing(EdwardsAnderson(square(4), couplings_along=(1, 0.5))) is Packing.ANISOTROPIC
    assert choose_packing(Ising(square(4), np.arange(32) % 2 + 1.0)) is Packing.UNPACKED


def test_a_ladder_of_couplings_of_few_units(device: str) -> None:
    temper_both(device, PACKED["random-units"](), 1 / np.linspace(0.5, 4.0, 5), 2, [(2, 1), (1, 2)])


def test_fields_of_few_units_are_packed() -> None:
    model = PACKED["random-units-fields-samples"]()
    unit, weights, fields = model.units
    assert unit * model.quantum == 1
    np.testing.assert_array_equal(weights, np.abs(model.couplings[1]))
    np.testing.assert_array_equal(fields, np.abs(model.fields[1]))
    assert choose_packing(model) is choose_packing(model.of_samples(1, 2)) is Packing.REPLICA

    def pair(field: float, *fields: float, couplings: float = 1.0) -> Packing:
        of_sites = np.array([[field], *([other] for other in fields)]) * [1, 0]
        return choose_packing(Ising(Graph(2, np.array([[0, 1]])), couplings, of_sites))

    assert choose_packing(Ising(Graph(201, STAR.edges[:200]), 1.0, 55.0 * np.eye(1, 201))) is Packing.REPLICA
    assert choose_packing(Ising(Graph(201, STAR.edges[:200]), 1.0, 56.0 * np.eye(1, 201))) is Packing.UNPACKED
    assert pair(MOST_UNITS - 1.0) is pair(-0.5 * (MOST_UNITS - 2)) is pair(1, -1) is Packing.REPLICA
    assert pair(MOST_UNITS) is pair(0.3) is pair(1, 2) is pair(1, couplings=0) is Packing.UNPACKED
    assert choose_packing(Ising(square(4), 1.0, np.arange(16) % 2)) is Packing.UNPACKED
    hub = Graph(40, STAR.edges[:39])
    assert choose_packing(Ising(hub, 1.0, -2.0)) is Packing.REPLICA
    assert choose_packing(Ising(hub, 1.0, 0.3)) is Packing.UNPACKED


def test_a_uniform_field_moves_alike_in_the_class_and_as_bonds() -> None:
    model = Ising(random_graph(30, 130, 2), -1.0, 0.5)
    plans = [ReplicaPlan(model, 3, Dynamics(), 64, COSTS, in_class=always) for always in (False, True)]
    assert [plan.has_field for plan in plans] == [False, True]
    run_both("cpu", model, 130, 0.4, (1, 2))


def test_a_ladder_in_fields_of_few_units(device: str) -> None:
    model = PACKED["random-units-fields-samples"]()
    temper_both(device, model, 1 / np.linspace(1.0, 8.0, 5), 2, [(2, 1), (1, 2)])


@pytest.mark.parametrize("own", [0, 2])
def test_a_field_that_changes(own: int) -> None:
    model = Ising(Graph(40, STAR.edges[:39]), -1.0, own * np.eye(1, 40))
    result = anneal(model, [2.0, 1.0, 0.5], sweeps=3, replicas=5, field=[0, 1, 0], device="cpu")
    spins = result.best_spins[0].astype(np.int64)
    assert result.best_energy.min() == (spins[0] * spins[1:]).sum() - own * spins[0]
    make = partial(create_engine, replicas=2, dynamics=Dynamics(), device="cpu")
    engine, packings = InField(make(model), make), []
    for field in (0, 1, 0):
        engine.set_field(field)
        packings.append(engine.packing)
    assert packings == [Packing.REPLICA, Packing.UNPACKED, Packing.REPLICA]


def test_a_field_that_cancels_that_of_the_model_leaves_couplings_of_few_units() -> None:
    graph = random_graph(20, 40, 1)
    model = Ising(graph, np.random.default_rng(1).integers(1, 4, graph.bonds).astype(float), field=-1.0)
    make = partial(create_engine, replicas=2, dynamics=Dynamics(), device="cpu")
    engine, packings = InField(make(model), make), []
    for field in (0.5, 1.0):
        engine.set_field(field)
        packings.append(engine.packing)
    assert packings == [Packing.UNPACKED, Packing.REPLICA]


@pytest.mark.parametrize("costs", [COSTS, Costs(width=1, batch=0, site=1, bond=100)])
def test_batches_of_sites_of_like_degree(costs: Costs) -> None:
    model = PACKED["random-graph-hubs"]()
    batches = ReplicaPlan(model, 1, Dynamics(), 64, costs).batches
    degree = model.graph.degrees()[batches.order]
    assert sorted(batches.order) == list(range(model.sites))
    for b, slots in enumerate(batches.slots):
        mine = degree[batches.first[b] : batches.first[b + 1]]
        assert mine.max() == slots
        assert not np.any((mine - slots) % 2)
        if costs.bond == 100:  # nothing but bonds counts
            assert mine.min() == slots


def test_cheap_classes_hold_all_that_has_bits_in_the_planes() -> None:
    plan = ReplicaPlan(DENSE, 1, Dynamics(), 64)
    for temperature, bits in ((0.5, 2), (3.0, 3), (6.0, 4), (1e9, plan.classes.bits)):
        limits = plan.limits(np.array([1 / temperature]))
        assert cheap_bits(limits) == bits
        assert not limits.thresholds[:, : -(1 << bits)].max(initial=0) >> np.uint64(64 - 9)
