"""Configurations that take the place of others, and populations, on every device against the oracle."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import numpy.typing as npt
import oracle
import pytest
from engines import DENSE, GENERAL, GENERAL_TERMS, PACKED, SITE, TERMS, configurations, of_terms, plainly
from several import on_cpus

import spinsim as ss
from spinsim.acceptance import natural_log
from spinsim.engine import Dynamics, create_engine
from spinsim.engine.moves.resample import choose_parents
from spinsim.model.ising import Ising
from spinsim.sampling import Population, annealing
from spinsim.sampling import population as populations

MODELS = {
    "packed": (PACKED["cubic-samples"], 300),
    "degrees": (PACKED["random-graph-hubs-samples"], 140),
    "site-packed": (SITE["square-signs-samples"][0], 6),
    "unpacked": (GENERAL["gaussian-samples-field"], 140),
    "dense": (DENSE["samples-field"], 40),
    "terms": (TERMS["cubic-field"][0], 140),
    "general-terms": (GENERAL_TERMS["gaussian"][0], 70),
}
"""Models and replicas of each update, in two blocks where replicas are in words."""
SEED = 2**40 + 17


def check(device: str, model: Ising, replicas: int) -> None:
    """That two populations cool as those of the oracle do."""
    dynamics = Dynamics(seed=SEED)
    engine = create_engine(model, replicas, dynamics, device)
    spins, uniform = plainly(engine, dynamics)
    temperatures = np.array([4.0, 2.0, 1.6]) * (model.energy_scale or 1) / 3
    population, family = Population(engine, 2, SEED), np.tile(np.arange(replicas), (model.samples, 1))
    log_z, before, moved = np.full((model.samples, 2), model.sites * np.log(2)), 0.0, 0
    for frame in annealing(engine, temperatures, 1, population=population):
        beta = 1 / temperatures[frame.step]
        energy = oracle.energy(model, spins) * model.quantum
        parent, change, copied = oracle.resample((before - beta) * energy, family, 2, frame.step, SEED)
        spins, family = np.take_along_axis(spins, parent[:, None], 2), np.take_along_axis(family, parent, 1)
        values, in_pairs = of_terms(engine, beta)
        oracle.sweep(
            model, spins, values, SEED, 1, uniform, dynamics.zero_acceptance, frame.step, dynamics.rng_rounds, in_pairs
        )
        np.testing.assert_array_equal(configurations(engine), spins)
        np.testing.assert_array_equal(population.family, family)
        np.testing.assert_array_equal(population.parents, copied)
        log_z += change
        np.testing.assert_allclose(population.log_partition, log_z, rtol=1e-12)
        before, moved = beta, moved + (parent != np.arange(replicas)).sum()
    assert moved


@pytest.mark.parametrize("name", MODELS)
def test_populations_equal_the_oracle(device: str, name: str) -> None:
    make, replicas = MODELS[name]
    check(device, make(), replicas)


@pytest.mark.system
@pytest.mark.usefixtures("emulated")
@pytest.mark.parametrize("name", ["packed", "site-packed", "unpacked"])
def test_populations_on_a_gpu(name: str) -> None:
    make, replicas = MODELS[name]
    check("cuda", make(), replicas)


def test_dense_fields_are_copied() -> None:
    """Those that an engine keeps are those that it would compute."""
    model = DENSE["samples-field"]()
    one, other = (create_engine(model, 70, Dynamics(seed=3), "cpu", threads=1) for _ in range(2))
    for engine in (one, other):
        engine.set_beta(0.5 / model.energy_scale)
        engine.sweep(2)
    parent = np.tile(np.where(np.arange(70) % 3, np.arange(70) // 3 * 3, np.arange(70)), (model.samples, 1))
    one.copy_from(parent)
    other.copy_from(parent)
    other.restore(other.snapshot())  # forgets its fields
    for engine in (one, other):
        engine.sweep(2)
    np.testing.assert_array_equal(one.snapshot()["spins"], other.snapshot()["spins"])
    np.testing.assert_array_equal(one.counts().energy, other.counts().energy)


@pytest.mark.parametrize("name", ["packed", "site-packed", "unpacked", "terms"])
def test_several_devices_have_the_bits_of_one(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of fewer samples than devices replicas are shared out, whose parents may be anywhere."""
    make, replicas = MODELS[name]
    states = []
    for devices in (1, 3, 5):
        with monkeypatch.context() as patch:
            on_cpus(patch, devices)
            engine = create_engine(make(), replicas, Dynamics(seed=3), "cpu", slabs=False)
            assert (engine.devices > 1) == (devices > 1)
            population = Population(engine, 1, 3)
            for _ in annealing(engine, np.array([4.0, 2.0]) * engine.model.energy_scale / 3, 1, population=population):
                pass
            states.append(engine.snapshot() | population.state())
    for state in states[1:]:
        for key, value in states[0].items():
            np.testing.assert_array_equal(state[key], value, key)


def test_slabs_are_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    from spinsim.engine.split import slabs
    from spinsim.parallel.group import Seat
    from spinsim.parallel.session import Here, InThread

    model, parent = SITE["square-256x6"][0](), np.array([[0, 0]])
    whole = create_engine(model, 2, Dynamics(seed=3), "cpu")
    cut = slabs.in_slabs([Seat(Here(), None), Seat(InThread(), None)], model, 2, Dynamics(seed=3), 1)
    for engine in (whole, cut):
        engine.set_beta(0.4)
        engine.sweep(1)
        engine.copy_from(parent)
        engine.sweep(1)
    np.testing.assert_array_equal(cut.snapshot()["spins"], whole.snapshot()["spins"])


def copies_of(weight: npt.NDArray[np.float64], uniform: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """How often each replica of populations is copied, (populations, replicas), each its own family."""
    parts, size = weight.shape
    family, parent = np.tile(np.arange(size, dtype=np.int32), (parts, 1)), np.empty(weight.shape, np.int64)
    total, copied = np.empty(parts), np.empty(parts, np.int64)
    choose_parents(np.log(weight), family, uniform, 1, parent, total, copied)
    found = np.stack([np.bincount(mine, minlength=size) for mine in parent])
    np.testing.assert_array_equal((found > 0).sum(axis=1), copied)
    np.testing.assert_allclose(total, weight.sum(axis=1), rtol=1e-12)
    assert (np.take_along_axis(parent, parent, 1) == parent).all()  # parents keep their places
    return found


def test_copies_have_the_means_that_weights_say() -> None:
    """Whatever the order of replicas; each is that mean, rounded up or down."""
    generator = np.random.default_rng(1)
    weight = generator.exponential(size=(1, 12)) ** 2
    expected = 12 * weight[0] / weight.sum()
    draws = 4000
    copies = copies_of(np.repeat(weight / weight.max(), draws, axis=0), generator.random(draws))
    assert (copies.sum(axis=1) == 12).all()
    assert ((copies == np.floor(expected)) | (copies == np.ceil(expected))).all()
    deviation = np.sqrt((expected % 1) * (1 - expected % 1) / draws)
    assert (abs(copies.mean(axis=0) - expected) <= 4 * deviation).all()


def test_uniforms_of_populations() -> None:
    """Every step, sample and population has one of its own, and they are uniform."""
    engine = create_engine(ss.EdwardsAnderson(ss.chain(4), samples=50, seed=1), 40, Dynamics(), "cpu")
    population = Population(engine, 20, seed=5)
    found = np.concatenate([population._uniform(step) for step in range(10)])
    assert len(set(found.tolist())) == found.size == 10_000
    assert (found > 0).all()
    assert (found < 1).all()
    for power in (1, 2):
        mean, variance = 1 / (power + 1), 1 / (2 * power + 1) - 1 / (power + 1) ** 2
        assert abs((found**power).mean() - mean) <= 4 * np.sqrt(variance / found.size)


def test_equal_weights_move_nothing() -> None:
    copies = copies_of(np.ones((3, 2**21)), np.array([2.0**-32, 0.3, 1 - 2.0**-32]))
    assert (copies == 1).all()


def test_one_replica_with_all_weight() -> None:
    weight = np.full((2, 50), 1e-300)
    weight[0, 49] = weight[1, 0] = 1
    copies = copies_of(weight, np.array([2.0**-32, 0.9]))
    assert copies[0, 49] == copies[1, 0] == 50


def test_logarithms_are_exact_to_the_last_bits() -> None:
    x = np.concatenate([np.random.default_rng(1).random(1000), 2.0 ** np.arange(-300.0, 300), [1.0, 1 - 2.0**-53, 3.0]])
    found = natural_log(x)
    np.testing.assert_allclose(found, np.log(x), rtol=4 * 2.0**-53, atol=0)
    assert found[-3] == 0
    assert Fraction(1, 3) < natural_log(np.array([1.5]))[0] < Fraction(1, 2)


def test_temperatures_begin_at_infinity() -> None:
    model = ss.EdwardsAnderson(ss.cubic(4), seed=1)
    temperatures = populations.temperatures_from_infinity(model, 0.2, 100)
    assert temperatures[-1] == 0.2
    beta, shift = 1 / temperatures, np.sqrt(2) / model.energy_scale
    grown = (np.append(0, beta) + shift)[1:] / (np.append(0, beta) + shift)[:-1]
    np.testing.assert_allclose(grown, (1 + 5 / shift) ** 0.01, rtol=1e-12)
    assert populations.temperatures_from_infinity(model, 0.7, 1).tolist() == [0.7]


def test_uneven_populations_are_refused() -> None:
    engine = create_engine(ss.Ising(ss.chain(4)), 10, Dynamics(), "cpu")
    with pytest.raises(ss.InputError, match="10 replicas make no 3 populations of equal size"):
        Population(engine, 3)
