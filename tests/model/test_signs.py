"""Couplings of one size, +1 or -1 as int8: what is known of them without sums equals what sums give."""

import numpy as np
import pytest

import spinsim as ss
from spinsim.model.couplings import are_signs, common_quantum, mean_square, power_above


@pytest.mark.parametrize("samples", [1, 3])
@pytest.mark.parametrize("field", [0.0, 0.375, 3.0])
def test_signs_are_as_the_same_numbers_in_double_precision(samples: int, field: float) -> None:
    signs = np.random.default_rng(5).choice(np.array([-1, 1], np.int8), (samples, 41))
    fields = np.full((1, 20), field)
    assert are_signs(signs)
    assert common_quantum(signs, fields) == common_quantum(signs.astype(float), fields)
    for unit in (1.0, 2.0, 0.5):
        assert mean_square(signs, unit) == mean_square(signs.astype(float), unit)
    assert power_above(signs) == power_above(signs.astype(float))
    graph = ss.square(5, 4)
    one, other = (ss.Ising(graph, np.resize(c, (samples, graph.bonds)), field) for c in (signs, signs.astype(float)))
    assert (one.magnitude, one.quantum, one.energy_scale) == (other.magnitude, other.quantum, other.energy_scale)


@pytest.mark.parametrize("values", [[[0, 1]], [[2, 1]], [[-2, -1]], [[]]])
def test_other_numbers_are_no_signs(values: list[list[int]]) -> None:
    assert not are_signs(np.array(values, np.int8))


def test_doubles_are_no_signs() -> None:
    assert not are_signs(np.ones((1, 3)))
