"""The critical field of the clean square lattice from crossings of sizes up to 16, by the functions of the example."""

from __future__ import annotations

import runpy

import pytest
from places import ROOT

SIDES, STEPS = [4, 8, 16], [8, 12, 16]


@pytest.mark.slow
def test_critical_field_of_the_square_lattice() -> None:
    """Half an hour on two cores, a minute on a GPU, which is taken where there is one.

    At the finest step correlations at the transition last for a thousand sweeps and more.
    """
    example = runpy.run_path(str(ROOT / "examples/critical_field.py"), run_name="critical_field")
    runs = example["simulate"](SIDES, STEPS, samples=10, sweeps=8000, every=10, thermalize=3000)
    limits, critical = example["find_limits"](runs, SIDES, STEPS), example["CRITICAL"]
    for sizes, most in (((4, 8), 0.02), ((8, 16), 0.006)):
        for name in ("correlation_length_over_L", "correlation_time_over_slices"):
            found = limits[name, *sizes]
            assert found.error < most
            assert abs(found.value - critical) < 4 * found.error, (name, sizes, found)
            assert found.chi2 < 11  # one degree of freedom: a probability of 0.001
        # Cumulants of slices cross below the field, so that the field lies between the two kinds of crossings.
        assert limits["slice_binder_cumulant", *sizes].value < critical
    # They come nearer with the size.
    assert limits["slice_binder_cumulant", 4, 8].value < limits["slice_binder_cumulant", 8, 16].value
