"""Loops of one's own move as runs do, and say in one sentence what they refuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import spinsim as ss
from spinsim.engine.moves.move import Moment
from spinsim.observables.distances import overlap_correlation

MODEL = ss.EdwardsAnderson(ss.square(4, 6), samples=2, seed=5)


def test_a_simulation_has_the_bits_of_a_run_and_its_numbers() -> None:
    run = ss.anneal(MODEL, temperatures=[1.3, 0.9], sweeps=3, replicas=5, seed=4, best_states=True)
    own = ss.Simulation(MODEL, 1.3, replicas=5, seed=4)
    own.sweep(3)
    np.testing.assert_array_equal(own.energy, run.energy[0])
    own.temperature = 0.9
    own.sweep(1)
    own.sweep(2)
    np.testing.assert_array_equal(own.energy, run.energy[1])
    np.testing.assert_array_equal(own.magnetization, run.magnetization[1])
    np.testing.assert_array_equal(own.staggered_magnetization, run.staggered_magnetization[1])
    assert own.sweeps == 6
    spins = own.spins()
    assert spins.shape == (2, 5, 24)
    assert spins.dtype == np.int8
    np.testing.assert_array_equal(own.energy, MODEL.energy(spins.transpose(0, 2, 1)))
    np.testing.assert_array_equal(own.magnetization, spins.sum(axis=2, dtype=int))
    np.testing.assert_array_equal(spins[1, 3], own.engine.spins(1, 3))
    batch = own.batch()
    assert (batch.axes, batch.number, float(batch.beta)) == (("sample", "replica", "site"), 6, 1 / 0.9)
    correlation = overlap_correlation(batch)
    np.testing.assert_allclose(
        correlation[..., 0, 1].mean(),
        np.mean((q := (spins * np.roll(spins, -1, axis=1)).reshape(2, 5, 6, 4)) * np.roll(q, -1, axis=3)),
        atol=1e-15,
    )


def test_a_field_that_is_set_is_that_of_an_anneal() -> None:
    for model in (MODEL, ss.EdwardsAnderson(ss.square(4), couplings="gaussian", field=0.25, random_field=0.5, seed=2)):
        fields = [0.0, 0.5, -1.25, 0.0]
        run = ss.anneal(model, [1.5] * 4, field=fields, sweeps=3, replicas=5, seed=4)
        own = ss.Simulation(model, 1.5, replicas=5, seed=4)
        assert own.field == 0
        for step, field in enumerate(fields):
            own.field = field
            assert own.field == field
            own.sweep(3)
            np.testing.assert_array_equal(own.energy, run.energy[step])
            np.testing.assert_array_equal(own.magnetization, run.magnetization[step])
            np.testing.assert_array_equal(own.energy, own.model.energy(own.spins().transpose(0, 2, 1)))
        assert own.model is model
    own.temperature = np.linspace(1, 2, 5)
    own.field = 2.0
    assert "field 2, " in repr(own)
    np.testing.assert_array_equal(own.temperature, np.linspace(1, 2, 5))
    with pytest.raises(ss.InputError, match="too large for exact energies"):
        own.field = 1e300
    own.sweep()
    assert own.field == 2.0


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("temprature", "did you mean temperature"),
        ("Field", "did you mean field"),
        ("replicas", "replicas of a simulation cannot be set: set temperature or field"),
        ("model", "model of a simulation cannot be set"),
        ("sweeps", "sweeps of a simulation cannot be set"),
        ("energy", "energy of a simulation cannot be set"),
        ("spins", "replace spins by set_spins"),
    ],
)
def test_attributes_that_change_nothing_are_refused(name: str, words: str) -> None:
    own = ss.Simulation(MODEL, 1.0, replicas=1)
    with pytest.raises(ss.InputError, match=words):
        setattr(own, name, 1)
    assert own.replicas == 1


def test_overlaps_are_sums_over_sites() -> None:
    own = ss.Simulation(MODEL, 1.0, replicas=5)
    before = own.spins()
    assert (own.overlap(before) == MODEL.sites).all()
    own.sweep(4)
    np.testing.assert_array_equal(own.overlap(before), (own.spins().astype(int) * before).sum(axis=2))
    pairs = own.overlap()
    assert pairs.shape == (2, 2)
    assert pairs[1, 1] == np.dot(own.spins()[1, 2].astype(int), own.spins()[1, 3])


def test_temperatures_may_differ_between_replicas() -> None:
    model = ss.Ising(ss.square(16))
    own = ss.Simulation(model, [20.0] * 64 + [1.0] * 64, start="up")
    assert isinstance(own.temperature, np.ndarray)
    own.sweep(50)
    assert abs(own.energy[:, :64].mean() / model.sites) < 0.2
    assert own.energy[:, 64:].mean() / model.sites < -1.9
    own.temperature = 2.0
    assert own.temperature == 2.0


@pytest.mark.parametrize("model", [MODEL, ss.EdwardsAnderson(ss.square(4), 2, 3, couplings="gaussian")])
def test_given_spins_take_the_place_of_the_present_ones_and_random_numbers_go_on(model: ss.Ising) -> None:
    own, other = (ss.Simulation(model, 1.0, replicas=3, seed=2) for _ in range(2))
    for each in (own, other):
        each.sweep(2)
    own.set_spins(own.spins())
    for each in (own, other):
        each.sweep(2)
    np.testing.assert_array_equal(own.spins(), other.spins())
    own.set_spins(np.ones(model.sites))
    assert (own.magnetization == model.sites).all()


def test_a_simulation_shows_itself_in_a_line() -> None:
    own = ss.Simulation(MODEL, np.linspace(0.5, 2, 4), replicas=4, seed=None)
    assert own.seed != ss.Simulation(MODEL, 1.0, seed=None).seed
    wanted = f"Simulation({MODEL.name}, 2 samples, 4 replicas, T = 0.5 to 2, 0 sweeps, seed {own.seed}, "
    assert repr(own).startswith(wanted)
    public = (
        "apply batch energy engine field magnetization model overlap replicas seed set_spins spins "
        "staggered_magnetization sweep sweeps temperature"
    )
    assert {name for name in dir(own) if not name.startswith("_")} == set(public.split())


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"temperature": -1.0}, "temperature -1 is not allowed: give 0 or a positive finite number"),
        ({"temperature": np.inf}, "temperature inf is not allowed: give 0 or a positive finite number"),
        ({"temperature": [1.0, 2.0]}, "shape (2,): give one number, or one for each of 3 replicas"),
        ({"temperature": "hot"}, "temperature = 'hot' has the wrong type: give a number"),
        ({"replicas": 0}, "0 replicas cannot be simulated"),
        ({"start": "down"}, "start 'down' is unknown: choose random, up, or"),
        ({"start": [1, -1]}, "start has shape (2,)"),
        ({"model": ss.square(4)}, "a lattice is no model"),
        ({"seed": 1.5}, "seed = 1.5 has the wrong type: give a whole number"),
    ],
)
def test_what_no_simulation_can_be_is_refused(how: dict[str, Any], words: str) -> None:
    with pytest.raises(ss.InputError) as told:
        ss.Simulation(**{"model": MODEL, "temperature": 1.0, "replicas": 3} | how)
    assert words in str(told.value)


def test_what_no_simulation_can_do_is_refused() -> None:
    own = ss.Simulation(MODEL, 1.0, replicas=1)
    for call, words in (
        (lambda: own.sweep(-1), "sweeps -1 is below 0"),
        (lambda: own.sweep(1.5), "sweeps = 1.5 has the wrong type: give a whole number"),  # type: ignore[arg-type]
        (lambda: setattr(own, "field", "strong"), "field is 'strong': give a finite number"),
        (lambda: setattr(own, "field", np.inf), "field is inf: give a finite number"),
        (own.overlap, "one replica has no overlap"),
        (lambda: own.set_spins(np.zeros(24)), "spins holds 0.0: every spin must be"),
    ):
        with pytest.raises(ss.InputError) as told:
            call()
        assert words in str(told.value)


@pytest.mark.parametrize("move", [ss.SwendsenWang(), ss.Wolff()], ids=["swendsen-wang", "wolff"])
def test_moves_are_those_of_the_engine(move) -> None:
    """Their random numbers count the moves of a simulation; energies are measured anew."""
    simulation = ss.Simulation(ss.Ising(ss.square(8)), 2.0, replicas=3, seed=5, device="cpu")
    other = ss.Simulation(ss.Ising(ss.square(8)), 2.0, replicas=3, seed=5, device="cpu")
    for number in range(3):
        before = simulation.energy
        simulation.sweep(2)
        simulation.apply(move)
        other.sweep(2)
        other.engine.apply(move, Moment(0.5, number, seed=5))
        np.testing.assert_array_equal(simulation.spins(), other.spins())
        np.testing.assert_array_equal(simulation.energy, other.energy)
        assert not np.array_equal(simulation.energy, before)
    simulation.temperature = [1.0, 2.0, 3.0]
    with pytest.raises(ss.InputError, match="set one"):
        simulation.apply(move)
