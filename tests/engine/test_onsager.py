"""Exact curves of the square ferromagnet."""

from __future__ import annotations

import numpy as np
import pytest

import spinsim as ss
from spinsim.analysis import onsager


def test_onsager_energy_and_magnetization():
    t_c = onsager.CRITICAL_TEMPERATURE
    assert onsager.energy([t_c])[0] == pytest.approx(-np.sqrt(2), abs=1e-14)
    np.testing.assert_allclose(onsager.energy([2, 2.5]), [-1.74556457531, -1.10607920375], atol=1e-11)
    np.testing.assert_allclose(onsager.energy([1e-3, 1e4]), [-2, -2e-4], rtol=1e-6)
    assert onsager.magnetization([2])[0] == pytest.approx(0.911319378, abs=1e-9)
    np.testing.assert_array_equal(onsager.magnetization([1e-3, t_c, t_c + 1e-12, 5]), [1, 0, 0, 0])


def test_onsager_specific_heat_is_the_derivative_of_the_energy():
    temperature = np.array([0.8, 1.5, 2, 2.2, 2.26, 2.28, 2.5, 4, 10])
    step = 1e-4
    up, down = onsager.energy(temperature + step), onsager.energy(temperature - step)
    np.testing.assert_allclose(onsager.specific_heat(temperature), (up - down) / (2 * step), rtol=2e-5)


def test_onsager_specific_heat_diverges_alike_on_both_sides():
    t_c = onsager.CRITICAL_TEMPERATURE
    below, at, above = onsager.specific_heat([t_c - 1e-9, t_c, t_c + 1e-9])
    assert at == np.inf
    assert below == pytest.approx(above, rel=1e-6)


def test_onsager_refuses_bad_temperatures():
    for curve in (onsager.energy, onsager.specific_heat, onsager.magnetization):
        with pytest.raises(ss.InputError, match="temperature 0 is not allowed"):
            curve([2.0, 0.0])


def test_numbers_for_numbers() -> None:
    for curve in (onsager.energy, onsager.specific_heat, onsager.magnetization):
        one = curve(2.0)
        assert np.ndim(one) == 0
        assert isinstance(one, float)
        assert one == curve([2.0])[0] == curve(np.array([2.0]))[0]
