"""Seeded nonsense for the sampler of dimod: it samples with the right energies, or refuses in one sentence, soon."""

from __future__ import annotations

import re
import warnings
from random import Random
from typing import Any

import dimod
import numpy as np
import pytest
from attacks import time_limit

import spinsim as ss
from spinsim.dimod import SpinsimSampler

STRANGE = [None, "", "geometric", "x", -1, 0, 1, 2.5, 1e-320, 1e400, float("nan"), 10**30, True, 1j, [], (), {}, b"1"]
STRANGE += [[1, 2], [0.1, 5], ["a"], [[1], [2, 3]], [1, float("inf")], object(), np.float32(3), np.array([2, 0.5])]
SENSIBLE = {
    "num_reads": (1, 3, 70),
    "num_sweeps": (0, 4, 10),
    "num_sweeps_per_beta": (1, 2),
    "beta_range": ((0.1, 4), [2, 2], (1e-9, 1e9)),
    "beta_schedule": ([0.1, 1, 3], np.geomspace(0.01, 10, 5)),
    "beta_schedule_type": ("linear", "geometric", "custom"),
    "initial_states": ({"a": 1, "b": -1}, [[1, 1]], "states"),
    "initial_states_generator": ("none", "tile", "random"),
    "seed": (1, 2**64 - 1),
    "interrupt_function": (lambda: False, lambda: True),
    "time_limit": (0, 0.01, 100),
    "answer": (42,),
}


def problem(rng: Random) -> Any:
    """A model of dimod, in one case of ten something else."""
    if rng.random() < 0.1:
        return rng.choice((*STRANGE, dimod.CQM(), dimod.QM(), dimod.BinaryPolynomial({"abc": 1}, "SPIN")))
    kind = rng.choice((dimod.DictBQM, dimod.Float32BQM, dimod.Float64BQM))
    names = rng.choice((("a", "b"), ("a", "b", ("c", 1), 0), (), (frozenset(),)))
    bqm = kind(rng.choice(("SPIN", "BINARY")))

    def value() -> float:
        return rng.choice((np.nan, 1e200, 1e308)) if rng.random() < 0.03 else rng.choice((0, 1, -2.5, 1e-3, 7))

    for name in names:
        bqm.add_variable(name, value())
    for first in names:
        for second in names:
            if first != second and rng.random() < 0.5:
                bqm.add_quadratic(first, second, value())
    bqm.offset = value()
    return bqm


def attack(seeds: range) -> tuple[int, int]:
    """How many calls gave samples, and how many were refused."""
    outcomes = [0, 0]
    for seed in seeds:
        rng = Random(seed)
        bqm = problem(rng)
        chosen = rng.sample(list(SENSIBLE), rng.randrange(5))
        given = {name: rng.choice(SENSIBLE[name] if rng.random() < 0.75 else STRANGE) for name in chosen}
        sentence, found = "", None
        try:
            with time_limit(20), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = SpinsimSampler(device="cpu").sample(bqm, **{"num_sweeps": 8} | given)
        except ss.InputError as error:
            sentence = str(error)
        if found is None:
            outcomes[1] += 1
            plain = re.sub(r"'[^']*'|\"[^\"]*\"|\([^)]*\)", "", sentence)  # quoted words may have dots
            assert sentence.isprintable(), (seed, given)
            assert not re.search(r"\.( |$)", plain), (seed, sentence)
            continue
        outcomes[0] += 1
        assert set(found.variables) == set(bqm.variables), seed
        assert found.vartype is bqm.vartype, seed
        if len(bqm.variables):
            again = bqm.energies((found.record.sample, list(found.variables)))
            np.testing.assert_array_equal(found.record.energy, again)
    return outcomes[0], outcomes[1]


@pytest.mark.system
def test_the_sampler_samples_or_refuses():
    assert min(attack(range(300))) > 50


@pytest.mark.slow
def test_the_sampler_samples_or_refuses_ten_thousand_times():
    assert min(attack(range(10_000, 20_000))) > 1000
