"""Fortuin-Kasteleyn clusters of single large lattices: every path equals the oracle, the energy at T_c is Onsager's."""

from __future__ import annotations

import lattice_oracle as oracle
import numpy as np
import numpy.typing as npt
import pytest

import spinsim as ss
from spinsim.engine.moves.move import Batch, Moment
from spinsim.packing import Packing

MODELS = {
    "square": lambda: ss.Ising(ss.square(256, 34)),
    "narrow square": lambda: ss.Ising(ss.square(512, 2)),
    "cubic": lambda: ss.EdwardsAnderson(ss.cubic(256, 10, 2), seed=3),
    "deep cubic": lambda: ss.Ising(ss.cubic(256, 2, 10)),
    "two samples": lambda: ss.EdwardsAnderson(ss.square(256, 6), samples=2, seed=3),
    "in a field": lambda: ss.EdwardsAnderson(ss.square(256, 4), seed=3, field=1.0),
    "against a field": lambda: ss.Ising(ss.cubic(256, 2, 2), -1.0, field=-0.5),
}
MOVES = {move.name: move for move in (ss.SwendsenWang(), ss.Wolff(), ss.SeededClusters())}
LADDER = np.array([0.44, 0.2])
COPIES = 2


def configurations(engine: ss.engine.Engine) -> npt.NDArray[np.int8]:
    samples, replicas = range(engine.model.samples), range(engine.replicas)
    return np.stack([[engine.spins(k, r) for r in replicas] for k in samples])


@pytest.mark.parametrize("name", MODELS)
def test_same_as_oracle(name: str, device: str) -> None:
    model, moves = MODELS[name](), MOVES.values()
    engine = ss.create_engine(model, len(LADDER) * COPIES, ss.Dynamics(seed=3), device)
    assert engine.packing is Packing.SITE
    engine.set_ladder(LADDER, COPIES)
    for time, move in enumerate(moves):
        engine.temper(2, 1)
        before, place = configurations(engine), engine.begin_exchange()().place
        engine.apply(move, Moment(LADDER, time, 77))
        after, beta = configurations(engine), LADDER[place]
        for k in range(model.samples):
            expected = oracle.move(before[k], beta[k], model, move.name, 77, k, time)
            np.testing.assert_array_equal(after[k], expected)
        assert (after != before).any()
        batch = Batch(before, model, place, Moment(LADDER, time, 77))
        move.apply(batch)
        np.testing.assert_array_equal(batch.spins, after)
