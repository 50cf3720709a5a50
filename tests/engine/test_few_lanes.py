"""One to four replicas on a CPU draw for undecided sites alone, and have the spins that they have among many."""

from __future__ import annotations

import numpy as np
import pytest

import spinsim as ss
from spinsim.engine.moves.metropolis.steps import FEW
from spinsim.model.ising import Ising

FIELDLESS = {
    "chain": ss.Ising(ss.chain(70)),
    "square": ss.Ising(ss.square(9)),
    "glass": ss.EdwardsAnderson(ss.cubic(5), samples=2, seed=3),
    "open": ss.EdwardsAnderson(ss.cubic(5, periodic=False), samples=2, seed=4),
    "triangular": ss.Ising(ss.triangular(9), -1.0),
}


@pytest.mark.parametrize("temperature", [0.3, 2.3, 20.0])
@pytest.mark.parametrize("name", FIELDLESS)
def test_few_replicas_move_as_among_many(name: str, temperature: float) -> None:
    model = FIELDLESS[name]
    few, many = int(FEW), int(FEW) + 1
    of_many = _swept(model, many, temperature)
    for replicas in (1, few):
        np.testing.assert_array_equal(_swept(model, replicas, temperature), of_many[:, :replicas])


def test_copies_of_a_small_ladder_are_tempered_as_among_more() -> None:
    few, more = _tempered(copies=2), _tempered(copies=3)
    for name in ("energy", "magnetization", "permutation"):
        np.testing.assert_array_equal(getattr(few, name), getattr(more, name)[:, :, :2])
    assert np.count_nonzero(np.diff(few.permutation, axis=0)) > 50  # exchanges were made


def _swept(model: Ising, replicas: int, temperature: float) -> np.ndarray:
    simulation = ss.Simulation(model, temperature=temperature, replicas=replicas, seed=7, device="cpu")
    simulation.sweep(30)
    return np.asarray(simulation.spins())


def _tempered(copies: int) -> ss.TemperResult:
    model = FIELDLESS["glass"]
    how = {"sweeps": 300, "thermalize": 10, "measure_every": 3, "seed": 9, "device": "cpu"}
    return ss.temper(model, temperatures=[1.2, 1.5], replicas=copies, **how)
