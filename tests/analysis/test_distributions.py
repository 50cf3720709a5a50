"""Student's t and Fisher's F against SciPy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import fdtrc, ndtri, stdtr, stdtrit

from spinsim.analysis.distributions import fisher_tail, normal_limit, student_limit, student_tail


@pytest.mark.parametrize("freedom", [0.7, 1, 1.4, 2, 5.5, 9, 63, 1e3, 12345.6, 1e5])
def test_students_t(freedom: float) -> None:
    for probability in (0.4, 0.1, 0.05, 0.05 / 6, 0.05 / 60):
        limit = float(student_limit(freedom, probability))
        np.testing.assert_allclose(limit, stdtrit(freedom, 1 - probability), rtol=1e-12)
        np.testing.assert_allclose(student_tail(freedom, limit), stdtr(freedom, -limit), rtol=1e-11)
    assert student_tail(freedom, 0) == pytest.approx(0.5)


def test_fishers_f() -> None:
    second, ratio = np.meshgrid([0.5, 1.5, 3, 10, 77.7, 1e3, 1e5], [1e-3, 0.1, 0.5, 1, 1.5, 2, 4, 10])
    for first in (1, 2, 3, 7, 63):
        np.testing.assert_allclose(
            fisher_tail(first, second, ratio), fdtrc(first, second, ratio), rtol=1e-11, atol=1e-300
        )
    np.testing.assert_array_equal(fisher_tail(3, [np.nan, 4.0, 4.0], [1.0, np.inf, np.nan]), [np.nan, 0.0, np.nan])


def test_the_normal_distribution() -> None:
    for probability in (0.3, 0.01, 1e-6):
        assert normal_limit(probability) == pytest.approx(-ndtri(probability), rel=1e-13)
