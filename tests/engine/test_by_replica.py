"""Annealing replica by replica: the bits of the engines, whatever the model, the replicas and the schedule."""

from __future__ import annotations

import numpy as np
import pytest

import spinsim as ss
from spinsim.engine import Dynamics, create_engine
from spinsim.engine.moves.metropolis.by_replica import Annealer, suits
from spinsim.sampling.measure import BestOfEach, measure
from spinsim.sampling.schedules import EngineReads, Schedule, anneal_reads


def random_model(kind: str, sites: int = 17) -> ss.Ising:
    rng = np.random.default_rng(7)
    pairs = np.array([(i, j) for i in range(sites) for j in range(i)])
    few = pairs[rng.random(len(pairs)) < 0.3]
    signs, reals = rng.choice([-1, 1], len(pairs)), rng.normal(size=len(pairs))
    return {
        "sparse": lambda: ss.Ising(ss.Graph(sites, few), signs[: len(few)]),
        "many bonds": lambda: ss.Ising(ss.Graph(sites, pairs), signs),
        "several sizes": lambda: ss.Ising(
            ss.Graph(sites, few), rng.choice([-2, 1, 3], len(few)), rng.integers(-2, 3, sites)
        ),
        "field in the class": lambda: ss.Ising(ss.Graph(sites, few), signs[: len(few)], 0.3),
        "a tenth": lambda: ss.Ising(ss.Graph(sites, few), 0.1 * signs[: len(few)]),
        "real": lambda: ss.Ising(ss.Graph(sites, few), reals[: len(few)], rng.normal(size=sites)),
        "real and dense": lambda: ss.Ising(ss.Graph(sites, pairs), reals),
        "wide integers": lambda: ss.Ising(ss.Graph(sites, pairs), 1000 * signs + np.arange(len(pairs))),
        "parallel bonds": lambda: ss.Ising(ss.Graph(4, [(0, 1), (1, 0), (2, 1), (1, 2)]), [1, 2, -1.5, 0.25]),
        "no bonds": lambda: ss.Ising(ss.Graph(3)),
    }[kind]()


KINDS = ("sparse", "many bonds", "several sizes", "field in the class", "a tenth", "real", "real and dense",
         "wide integers", "parallel bonds", "no bonds")  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_replicas_have_the_bits_of_an_engine(kind: str) -> None:
    model = random_model(kind)
    betas = np.array([0.0, 1e-9, 0.05, 0.3, 0.7, 1.5, 4.0, 30.0, 1e9, 1e150]) / (model.energy_scale or 1.0)
    sweeps, looks = np.array([1, 2, 3, 6, 4, 5, 4, 3, 1, 2]), np.array([0, 1, 0, 1, 1, 0, 1, 0, 0, 1], bool)
    for replicas, options in ((1, {}), (20, {"rng_rounds": 7}), (130, {"zero_acceptance": 0.4}), (70, {"start": "up"})):
        dynamics = Dynamics(2**40 + replicas, **options)
        one_by_one, engine = Annealer(model, replicas, dynamics, 2), create_engine(model, replicas, dynamics, "cpu", 1)
        one_by_one.anneal(betas[:4], sweeps[:4], looks[:4])
        one_by_one.anneal(betas[4:], sweeps[4:], looks[4:])
        best = BestOfEach(engine)
        for beta, count, marked in zip(betas, sweeps, looks, strict=True):
            engine.set_beta(beta)
            engine.sweep(int(count))
            if marked:
                best.update(measure(engine).energy, engine)
        np.testing.assert_array_equal(one_by_one.states(), best.spins(0))
        np.testing.assert_array_equal(one_by_one.present(), [engine.spins(0, r) for r in range(replicas)])


def test_undecided_lanes_of_a_column_are_told_apart() -> None:
    model = ss.Ising(ss.Graph(2, [(0, 1)]))
    dynamics = Dynamics(5)
    one_by_one, engine = Annealer(model, 128, dynamics, 1), create_engine(model, 128, dynamics, "cpu", 1)
    engine.set_beta(0.4)
    engine.sweep(3000)
    one_by_one.anneal(np.array([0.4]), np.array([3000]), np.array([True]))
    np.testing.assert_array_equal(one_by_one.states(), [engine.spins(0, r) for r in range(128)])


def test_the_form_is_that_which_takes_less_time() -> None:
    small, large = random_model("real"), ss.Ising(ss.Graph(2000, [(i, (i + 1) % 2000) for i in range(2000)]))
    assert suits(small, 20, 1)
    assert not suits(large, 1000, 1)
    assert not suits(ss.EdwardsAnderson(ss.cubic(4), samples=2), 1, 1)


@pytest.mark.parametrize("kind", ["sparse", "real"])
def test_schedules_of_both_forms_give_equal_states(kind: str) -> None:
    model = random_model(kind)
    schedule = Schedule(np.geomspace(0.1, 5, 50), np.full(50, 3))
    found = []
    for reads in (Annealer(model, 5, Dynamics(3), 1), EngineReads(create_engine(model, 5, Dynamics(3), "cpu", 1))):
        assert anneal_reads(reads, schedule, None, np.inf) == (150, False)
        found.append(reads.states())
    np.testing.assert_array_equal(*found)


def test_squeezed_schedules_take_sweeps_from_all_of_it() -> None:
    schedule = Schedule(np.arange(1.0, 11.0), np.full(10, 100))
    following, (betas, sweeps, looks) = schedule.squeezed(200, 16, 8)
    assert following == 600
    assert betas.tolist() == [3, 4, 5, 6]
    assert sweeps.tolist() == [2, 2, 2, 2]
    assert looks.tolist() == [False, False, False, True]
    assert schedule.squeezed(600, 1, 1)[1][0].tolist() == [10]
    betas, sweeps, looks = schedule.between(150, 420)
    assert betas.tolist() == [2, 3, 4, 5]
    assert sweeps.tolist() == [50, 100, 100, 20]
    assert looks.tolist() == [True, True, True, False]
