"""Reweighting by sums over energy: bins of one level lose nothing, and wide ones are refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from enumeration import Thermal, exact_summary
from exact import assert_agree
from same import added_up

import spinsim as ss
from spinsim.analysis import reweighted as analysis
from spinsim.analysis.reweighted import Reweighting, check_width, reweighted
from spinsim.analysis.runs import COPY_SERIES, PAIR_SERIES, sample_of
from spinsim.engine.measuring import reduction as over_energy

LADDER = np.geomspace(1.8, 4.0, 4)
TARGETS = np.array([1.8, 2.1, 2.9, 3.7])


def glass(couplings: str = "pm-j", **how) -> ss.TemperResult:
    model = ss.EdwardsAnderson(ss.cubic(4), samples=6, seed=1, couplings=couplings)
    return ss.temper(model, LADDER, sweeps=1600, thermalize=100, measure_every=1, replicas=3, seed=3, **how)


def without_rows(result: ss.TemperResult) -> ss.TemperResult:
    names = (*COPY_SERIES, *PAIR_SERIES)
    return replace(result, sweep=result.sweep[:0], **{name: getattr(result, name)[:0] for name in names})


def farthest(one: Reweighting, other: Reweighting) -> float:
    """In units of the errors."""
    return max(
        np.abs((other.estimates[name].value - expected.value) / expected.error).max()
        for name, expected in one.estimates.items()
    )


def test_series_beside_the_sums_do_not_count() -> None:
    run = glass()
    expected = reweighted(run, TARGETS)
    for other in (without_rows(run), glass(series="none"), replace(run, reduced=None)):
        found = reweighted(other, TARGETS)
        assert found.notes == expected.notes
        for name, estimate in expected.estimates.items():
            for part in ("value", "error", "tau", "trusted"):
                one, another = getattr(found.estimates[name], part), getattr(estimate, part)
                np.testing.assert_array_equal(one, another, f"{part} of {name}")


@pytest.mark.parametrize("couplings", ["pm-j", "gaussian"])
@pytest.mark.parametrize(("bins", "most"), [(32, 1e-6), (16, 0.2), (8, 1.0)])
def test_coarse_bins(couplings: str, bins: int, most: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bins of one level, of two and of four: the latter as wide as the energies of one temperature are spread."""
    full = glass(couplings)
    expected = reweighted(full, TARGETS)
    monkeypatch.setattr(over_energy, "MOST_BINS", bins)
    monkeypatch.setattr(over_energy, "_MOST_FINE", 2 * bins)
    run = added_up(replace(full, reduced=None))
    if bins == 8:
        with pytest.raises(ss.InputError, match="wide against the fluctuations"):
            check_width(run.reduced, run.reduced.samples)
    monkeypatch.setattr(analysis, "_WIDEST", 9.0)
    assert farthest(expected, reweighted(run, TARGETS)) < (most if couplings == "pm-j" else max(most, 0.2))


def test_a_run_without_rows_agrees_with_enumeration() -> None:
    model = ss.Ising(ss.square(3))
    run = ss.temper(
        model, LADDER, sweeps=3000, thermalize=100, replicas=2, measure_every=3, seed=4, series="none"
    )  # fmt: skip
    found, rows = reweighted(run, [2.0, 3.0]), []
    for k, temperature in enumerate((2.0, 3.0)):
        exact = exact_summary([Thermal(model, temperature)])
        rows += [
            (f"{name} at T = {temperature}", estimate.value[k], estimate.error[k], exact[name])
            for name, estimate in found.estimates.items()
            if name in exact
        ]
    assert len(rows) > 20
    assert_agree(rows)


def test_one_sample_of_several_is_not_reweighted() -> None:
    """Its errors come from time, and sums over energy of several samples have no stretches of it."""
    run = ss.temper(ss.EdwardsAnderson(ss.square(4), samples=3), LADDER, sweeps=800, thermalize=50, replicas=2)
    with pytest.raises(ss.InputError, match="one of several samples"):
        reweighted(sample_of(run, 1), TARGETS)
