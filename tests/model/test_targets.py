"""Targets in a problem's own terms."""

from __future__ import annotations

import numpy as np
import pytest
from places import DATA

import spinsim as ss
from spinsim.errors import InputError
from spinsim.model.targets import check_targets, reached, value_of


def test_cuts_are_to_be_reached_or_exceeded() -> None:
    model = ss.read_instance(DATA / "G11.txt")
    energy = model.maxcut_weight - 2 * np.array([[563.0, 564.0, 565.0]])
    np.testing.assert_array_equal(value_of(model, energy), [[563, 564, 565]])
    np.testing.assert_array_equal(reached(model, energy, [564]), [[False, True, True]])


def test_energies_have_the_constant_of_the_problem() -> None:
    model = ss.Ising.from_qubo({(0, 0): -1.0, (1, 1): 1.0, (0, 1): 1.0}, offset=0.1)
    result = ss.anneal(model, steps=5, sweeps=5, replicas=4)
    reported = result.best.energy
    assert reported == pytest.approx(-0.9)
    assert reached(model, result.best_energy, [reported]).all()
    assert reached(model, result.best_energy, [np.nextafter(reported, -1)]).all()  # 0.1 is no multiple of the quantum
    assert not reached(model, result.best_energy, [reported - 1e-9]).any()


@pytest.mark.parametrize("kind", ["integer", "float"])
def test_targets_of_others_are_met(kind: str) -> None:
    # Sums of the same numbers in another order, whose last bits differ.
    rng = np.random.default_rng(3)
    draw = (lambda: int(rng.integers(-3, 4))) if kind == "integer" else (lambda: float(rng.normal()))
    for _ in range(20):
        biases = {(i, j): draw() for j in range(8) for i in range(j + 1)}
        offset = float(rng.normal() * 10)
        model = ss.Ising.from_qubo(biases, offset=offset)
        states = (np.arange(256)[:, None] >> np.arange(8)) & 1
        energy = sum((bias * states[:, i] * states[:, j] for (i, j), bias in biases.items()), np.full(256, offset))
        lowest = model.energy((2 * states.T - 1).astype(np.int8)[None]).min()
        assert reached(model, [[lowest]], [energy.min()]).all()
        assert not reached(model, [[lowest]], [energy.min() - 1e-6]).any()


def test_what_was_rounded_meets_the_target_of_its_own_values() -> None:
    matrix = np.triu(np.random.default_rng(3).normal(size=(12, 12)))
    model = ss.Ising.from_matrix(matrix, kind="qubo")
    result = ss.anneal(model, steps=20, sweeps=20, replicas=64)
    assert model.rounded
    exact = result.best.values @ matrix @ result.best.values
    assert reached(model, result.best_energy.min(axis=1, keepdims=True), [exact]).all()
    assert not reached(model, result.best_energy, [exact - 1e-9]).any()


@pytest.mark.parametrize(
    ("target", "words"), [([-33.0], "is less than any energy"), ([-1.0, -2.0, -3.0], "3 values"), ([-1.0] * 2, "")]
)
def test_targets_that_make_no_sense(target: list[float], words: str) -> None:
    model = ss.EdwardsAnderson(ss.square(4), samples=2, seed=1)
    if not words:
        np.testing.assert_array_equal(check_targets(model, target), target)
        return
    with pytest.raises(InputError, match=words):
        check_targets(model, target)
