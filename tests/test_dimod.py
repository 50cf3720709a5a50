"""The sampler of dimod: dimod's own tests of samplers, its arguments, and what it refuses."""

from __future__ import annotations

import subprocess
import sys
import unittest

import dimod
import dimod.testing
import numpy as np
import pytest
from hypothesis import given, settings
from problems import bqms

import spinsim as ss
from spinsim.dimod import SpinsimSampler


@dimod.testing.load_sampler_bqm_tests(SpinsimSampler)
class TestDimodSuite(unittest.TestCase):
    """The 32 cases of dimod.testing."""


def chain(sites: int = 12) -> dimod.BQM:
    rng = np.random.default_rng(1)
    return dimod.BQM.from_ising({}, {(f"v{i}", f"v{i + 1}"): rng.choice([-1, 1]) for i in range(sites - 1)})


def test_it_is_a_sampler_with_the_arguments_of_others() -> None:
    dimod.testing.assert_sampler_api(SpinsimSampler())
    bqm = chain()
    schedules = (
        {"num_sweeps": 200},
        {"beta_range": (0.1, 5), "num_sweeps": 100, "num_sweeps_per_beta": 10},
        {"beta_schedule_type": "linear"},
        {"beta_schedule": [0.5, 1, 2, 4], "num_sweeps_per_beta": 50},
    )
    for schedule in schedules:
        found = SpinsimSampler().sample(bqm, num_reads=16, seed=3, **schedule)
        assert found.first.energy == -11
        assert list(found.variables) == list(bqm.variables)
        assert len(found) == 16
    assert found.info["beta_schedule_type"] == "custom"
    assert found.info["beta_range"] == [0.5, 4]
    with pytest.warns(Warning, match="chain_strength"):
        SpinsimSampler().sample(bqm, num_sweeps=2, chain_strength=2)


@settings(max_examples=8, deadline=None)
@given(bqms())
def test_samples_have_the_energies_of_the_model(bqm: dimod.BQM) -> None:
    found = SpinsimSampler().sample(bqm, num_reads=3, num_sweeps=20, seed=1)
    assert found.vartype is bqm.vartype
    assert found.record.energy.tolist() == bqm.energies((found.record.sample, list(found.variables))).tolist()
    model = ss.Ising.from_bqm(bqm)
    states = found.record.sample if bqm.vartype is dimod.SPIN else 2 * found.record.sample.astype(int) - 1
    size = 1 + sum(map(abs, [*bqm.linear.values(), *bqm.quadratic.values(), bqm.offset]))
    np.testing.assert_allclose(model.energy(states.T[None])[0] + model.offset, found.record.energy, atol=1e-9 * size)


def test_a_seed_says_everything() -> None:
    bqm = dimod.generators.gnm_random_bqm(20, 60, "BINARY", random_state=2)
    warm = {"num_reads": 4, "num_sweeps": 3, "beta_range": (0.5, 0.5), "answer": "last"}
    first, same, other, drawn = (SpinsimSampler().sample(bqm, seed=seed, **warm) for seed in (5, 5, 6, None))
    assert (first.record.sample == same.record.sample).all()
    assert (first.record.sample != other.record.sample).any()
    again = SpinsimSampler().sample(bqm, seed=drawn.info["seed"], **warm)
    assert (again.record.sample == drawn.record.sample).all()


def test_initial_states_are_begun_with() -> None:
    bqm = chain(4)
    state = {"v0": 1, "v1": -1, "v2": 1, "v3": -1}
    none = SpinsimSampler().sample(bqm, initial_states=state, num_sweeps=0)
    assert dict(none.first.sample) == state
    tiled = SpinsimSampler().sample(
        bqm, num_reads=3, initial_states=[state], initial_states_generator="tile", num_sweeps=0
    )
    assert [dict(sample) for sample in tiled.samples()] == [state] * 3
    zero_one = {name: (1 + value) // 2 for name, value in state.items()}
    mixed = SpinsimSampler().sample(bqm, num_reads=2, initial_states=zero_one, num_sweeps=0, seed=1)
    assert (mixed.record.sample[0] == list(state.values())).all()
    with pytest.raises(ss.InputError, match="initial_states cannot be used"):
        SpinsimSampler().sample(bqm, num_reads=2, initial_states=state, initial_states_generator="none")
    with pytest.raises(ss.InputError, match="mismatch between variables"):
        SpinsimSampler().sample(bqm, initial_states={"v0": 1})


def test_runs_end_early() -> None:
    asked = iter([False, False, True])
    found = SpinsimSampler().sample(chain(), num_reads=2, interrupt_function=lambda: next(asked))
    assert found.info["interrupted"]
    assert len(found) == 2
    found = SpinsimSampler().sample(chain(), num_sweeps=10**9, time_limit=0.05)
    assert found.info["shortened"]
    assert not found.info["interrupted"]
    assert 0 < found.info["num_sweeps"] < 10**9
    assert found.info["seconds"] < 20


def test_a_time_limit_squeezes_the_schedule() -> None:
    bqm = dimod.BQM.from_ising({0: 0.5}, {(0, 1): -1.0, (1, 2): 2.0})
    found = SpinsimSampler(threads=1).sample(bqm, num_reads=8, num_sweeps=10**8, time_limit=0.05)
    assert found.record.energy.tolist() == [-3.5] * 8
    none = SpinsimSampler(threads=1).sample(chain(40), num_reads=40, num_sweeps=10**8, time_limit=0, seed=1)
    assert none.info["shortened"]
    assert none.record.energy.mean() < -20  # one sweep at the last temperature, of an exact -39
    whole, same = (
        SpinsimSampler(threads=1).sample(chain(), num_reads=4, num_sweeps=50, time_limit=limit, seed=2)
        for limit in (100, None)
    )
    assert (whole.record.sample == same.record.sample).all()
    assert not whole.info["shortened"]
    assert whole.info["num_sweeps"] == same.info["num_sweeps"] == 50


def test_many_problems_are_sampled_as_one_by_one() -> None:
    problems = [
        dimod.generators.gnm_random_bqm(12, 30, kind, random_state=k) for k in range(3) for kind in ("SPIN", "BINARY")
    ]
    last = 2**64 - 2
    arguments = {"num_reads": 3, "num_sweeps": 20, "beta_range": (0.1, 3)}
    many = SpinsimSampler(threads=2).sample_many(problems, seed=last, **arguments)
    for k, (bqm, found) in enumerate(zip(problems, many, strict=True)):
        one = SpinsimSampler().sample(bqm, seed=(last + k) % 2**64, **arguments)
        assert (found.record.sample == one.record.sample).all()
        assert found.variables == one.variables
        assert found.info["seed"] == (last + k) % 2**64
    assert SpinsimSampler().sample_many([]) == []
    drawn = SpinsimSampler().sample_many(problems[:2], num_sweeps=1)
    assert drawn[1].info["seed"] == (drawn[0].info["seed"] + 1) % 2**64
    with pytest.raises(ss.InputError, match="problem 1 of the list: an object of type int"):
        SpinsimSampler().sample_many([problems[0], 5])


TERMS = {
    "degree": (({}, {("a", "b", "c"): 1}), {("a", "b", "c"): 1}, "is of degree 3, but only pairs are taken: reduce it"),
    "no pair": (({}, {5: 1}), {5: 1}, "key 5 is no pair"),
    "text": (({}, {("a", "b"): "x"}), {("a", "b"): "x"}, r"the value of \('a', 'b'\) is 'x': give a finite number"),
    "nan": (({}, {("a", "b"): np.nan}), {("a", "b"): np.nan}, r"the value of \('a', 'b'\) is nan"),
    "too long": (({}, {("a", "b"): 2**53 + 1}), {("a", "b"): 2**53 + 1}, "is 9007199254740993, which is a whole"),
}


@pytest.mark.parametrize(("ising", "qubo", "words"), TERMS.values(), ids=TERMS)
def test_terms_that_make_no_sense_are_refused(ising: tuple, qubo: dict, words: str) -> None:
    for call, terms in ((SpinsimSampler().sample_ising, ising), (SpinsimSampler().sample_qubo, (qubo,))):
        with pytest.raises(ss.InputError, match=words):
            call(*terms)
    with pytest.raises(ss.InputError, match="the bias of 'a' is 'x'"):
        SpinsimSampler().sample_ising({"a": "x"}, {})


REFUSALS = {
    "reads": ({"num_reads": 0}, "num_reads 0 is out of range"),
    "reads of a word": ({"num_reads": "many"}, "num_reads = 'many' has the wrong type: give a whole number"),
    "sweeps": ({"num_sweeps": -1}, "num_sweeps -1 is out of range"),
    "fraction": ({"num_sweeps": 2.5}, "num_sweeps = 2.5 has the wrong type"),
    "multiple": ({"num_sweeps": 7, "num_sweeps_per_beta": 2}, "is no multiple of num_sweeps_per_beta 2"),
    "range": ({"beta_range": [1]}, "beta_range has 1 numbers"),
    "falling": ({"beta_range": [5, 1]}, "beta_range falls from 5 to 1, which heats the reads"),
    "zero": ({"beta_range": [0, 1]}, "beta_range begins at 0, where no geometric row does"),
    "nan": ({"beta_range": [1, float("nan")]}, "beta_range holds nan"),
    "words": ({"beta_schedule": "cold"}, "beta_schedule = 'cold' has the wrong type"),
    "type": ({"beta_schedule_type": "log"}, "beta_schedule_type 'log' is unknown"),
    "both": ({"beta_schedule": [1], "beta_schedule_type": "linear"}, "goes with the type custom"),
    "custom": ({"beta_schedule_type": "custom"}, "said by beta_schedule alone"),
    "length": ({"beta_schedule": [1, 2], "num_sweeps": 3}, "num_sweeps 3 does not fit 2"),
    "seed of a kind": ({"seed": True}, "seed = True has the wrong type"),
    "extremes": (
        {"beta_range": (1e-300, 1e300)},
        r"holds 1e\+300: inverse temperatures are from 0 to",
    ),
    "seed": ({"seed": -1}, "seed -1 is out of range"),
    "seed of a word": ({"seed": "x"}, "seed = 'x' has the wrong type"),
    "function": ({"interrupt_function": 3}, "interrupt_function = 3 has the wrong type: give a function"),
    "time": ({"time_limit": -1}, "time_limit -1 is no time"),
    "generator": ({"initial_states_generator": "new"}, "initial_states cannot be used"),
}


@pytest.mark.parametrize(("arguments", "words"), REFUSALS.values(), ids=REFUSALS)
def test_arguments_that_make_no_sense_are_refused(arguments: dict, words: str) -> None:
    with pytest.raises(ss.InputError, match=words):
        SpinsimSampler().sample(chain(3), **arguments)


def test_reads_end_in_local_minima_unless_asked_not_to() -> None:
    bqm = dimod.generators.gnm_random_bqm(60, 300, "SPIN", random_state=3)
    low, met, last = (
        SpinsimSampler().sample(bqm, num_reads=50, num_sweeps=8, seed=1, **arguments)
        for arguments in ({}, {"descend": False}, {"answer": "last"})
    )
    assert (low.record.energy <= met.record.energy).all()
    assert (low.record.energy < met.record.energy).any()
    assert (met.record.energy <= last.record.energy + 1e-9).all()
    for read, energy in zip(low.record.sample, low.record.energy, strict=True):
        turned = np.where(np.eye(60, dtype=bool), -read, read)
        assert (bqm.energies((turned, low.variables)) >= energy - 1e-9).all()


def test_higher_terms_are_refused() -> None:
    with pytest.raises(ss.InputError, match="reduce it to pairs"):
        SpinsimSampler().sample(dimod.BinaryPolynomial({"abc": 1}, "SPIN"))


def test_without_dimod_the_module_is_there_and_the_sampler_says_what_is_missing() -> None:
    code = (
        "import sys; sys.modules['dimod'] = None\n"
        "from spinsim.dimod import SpinsimSampler\n"
        "import spinsim as ss\n"
        "try: SpinsimSampler()\n"
        "except ss.InputError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "dimod is missing: install spinsim-ising[dimod] to use its models\n"


@pytest.mark.parametrize("values", [(-1, 1), (-1.5, 1)], ids=["packed", "unpacked"])
def test_reads_have_the_same_bits_on_every_device(device: str, values: tuple[float, float]) -> None:
    rng, graph = np.random.default_rng(4), [(i, (i + step) % 20) for i in range(20) for step in (1, 7)]
    bqm = dimod.BQM.from_ising({}, {pair: rng.choice(values) for pair in graph})
    found, same = (
        SpinsimSampler(device=where, threads=1).sample(bqm, num_reads=130, num_sweeps=4, seed=9)
        for where in (device, "cpu")
    )
    assert (found.record.sample == same.record.sample).all()
    model = ss.Ising.from_bqm(bqm)
    for options in ({}, {"field": [0.5, 0.25, 0.125]}):
        one, other = (
            ss.anneal(model, [3.0, 1.0, 0.5], sweeps=1, replicas=130, best_states=True, device=where, **options)
            for where in (device, "cpu")
        )
        assert (one.best_states == other.best_states).all()
        spins = one.best.replica_values.T[None]
        assert (model.energy(spins) == one.best_energy).all()


def test_sweeps_at_each_inverse_temperature_alone() -> None:
    assert len(SpinsimSampler().sample(chain(), num_sweeps_per_beta=3, seed=1)) == 1


def test_a_model_without_variables_is_sampled_like_others() -> None:
    found = SpinsimSampler().sample(dimod.BQM("SPIN"), num_reads=3, seed=5)
    assert (len(found), found.info["seed"], found.info["beta_range"]) == (3, 5, [1.0, 1.0])
    for wrong in ({"beta_range": ["x"]}, {"num_sweeps": -1}, {"seed": "z"}):
        with pytest.raises(ss.InputError):
            SpinsimSampler().sample(dimod.BQM("SPIN"), **wrong)
