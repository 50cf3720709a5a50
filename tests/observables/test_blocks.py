"""Magnetisations and overlaps of blocks against sums block by block and exact enumeration."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from exact import assert_agree

import spinsim as ss
from spinsim.errors import InputError
from spinsim.observables.batch import Batch
from spinsim.observables.blocks import block_magnetization, block_overlap

MEASURE = {"m_b": block_magnetization, "q_b": block_overlap}
AXES = ("sample", "copy", "temperature", "site")


def plain(values, shape):
    """Return averages of one configuration over blocks, (scales, 2), block by block; x is the first side."""
    grid, found, size = np.asarray(values, float).reshape(shape[::-1]), [], 1
    while not any(side % size for side in shape):
        blocks = [
            grid[tuple(slice(a, a + size) for a in corner)].mean()
            for corner in product(*(range(0, side, size) for side in grid.shape))
        ]
        found.append([np.mean(np.power(blocks, 2)), np.mean(np.power(blocks, 4))])
        size *= 2
    return np.array(found)


@pytest.mark.parametrize(("lattice", "scales"), [(ss.chain(6), 2), (ss.square(8, 12), 3), (ss.cubic(4, 3, 5), 1)])
def test_every_block(lattice, scales) -> None:
    model = ss.EdwardsAnderson(lattice, samples=2, seed=1)
    spins = np.random.default_rng(4).choice(np.array([-1, 1], np.int8), (2, 3, 2, lattice.sites))
    batch = Batch(spins, AXES, model, np)
    m, q = block_magnetization(batch), block_overlap(batch)
    assert m.shape == q.shape == (2, 3, 2, scales, 2)
    for k, c, t in product(range(2), range(3), range(2)):
        assert np.allclose(m[k, c, t], plain(spins[k, c, t], lattice.shape))
        assert np.allclose(q[k, c, t], plain(spins[k, c, t] * spins[k, (c + 1) % 3, t], lattice.shape))


def test_one_copy_has_no_overlaps() -> None:
    batch = Batch(np.ones((1, 1, 1, 4), np.int8), AXES, ss.Ising(ss.chain(4)), np)
    with pytest.raises(InputError, match="two copies"):
        block_overlap(batch)


def test_runs_agree_with_enumeration() -> None:
    model, ladder = ss.Ising(ss.chain(8)), np.array([1.2, 2.0, 3.0])
    found = ss.temper(model, ladder, 4000, thermalize=100, measure_every=4, replicas=20, measure=MEASURE, seed=5)
    states = np.array(list(product((-1, 1), repeat=8)))
    energy = -(states * np.roll(states, 1, axis=1)).sum(axis=1)
    of_states = np.array([plain(state, (8,)) for state in states])
    of_pairs = np.array([[plain(one * other, (8,)) for other in states[:128]] for one in states[:128]])
    for k, temperature in enumerate(ladder):
        weight = np.exp(-(energy - energy.min()) / temperature)
        weight /= weight.sum()
        half = weight[:128] * 2  # of a state and its flip: powers are even
        exact = {"m_b": np.tensordot(weight, of_states, 1), "q_b": np.einsum("s,t,stij->ij", half, half, of_pairs)}
        for name, value in exact.items():
            assert (found.measured[name][:, 0, :, k, 0] == 1).all()
            table = ss.table(found, name)
            table = table[(table.temperature == temperature) & table[f"{name}_trusted"]]
            where = table[f"{name}_axis_0"], table[f"{name}_axis_1"]
            assert len(table) >= 6
            rows = [
                (f"{name} of scale {scale}, power {power}", mean, error, value[scale, power])
                for scale, power, mean, error in zip(*where, table[name], table[f"{name}_error"], strict=True)
                if scale
            ]
            assert_agree(rows)
