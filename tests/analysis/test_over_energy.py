"""Reweighting by sums over energy, against reweighting of the full series."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from enumeration import Thermal, exact_summary
from exact import assert_agree
from same import added_up

import spinsim as ss
from spinsim.analysis import reweighted as analysis
from spinsim.analysis.reweighted import Reweighting, can_reweight, reweighted
from spinsim.analysis.runs import COPY_SERIES, PAIR_SERIES, sample_of
from spinsim.engine.measuring import energies as over_energy

LADDER = np.geomspace(1.8, 4.0, 4)
TARGETS = np.array([1.8, 2.1, 2.9, 3.7])
EXACT = {
    "one sample": (lambda: ss.Ising(ss.square(4)), 2),
    "one copy": (lambda: ss.Ising(ss.square(4)), 1),
    "glass": (lambda: ss.EdwardsAnderson(ss.cubic(4), samples=6, seed=1), 3),
    "odd degrees": (lambda: ss.EdwardsAnderson(ss.square(3, periodic=False), samples=3, seed=1), 2),
    "of size 0.75": (lambda: ss.Ising(ss.square(4), 0.75), 2),
}
BINNED = {
    "field": (lambda: ss.Ising(ss.square(4), field=0.3), 4),
    "gaussian": (lambda: ss.EdwardsAnderson(ss.cubic(4), samples=8, seed=2, couplings="gaussian"), 2),
    "glass in a field": (lambda: ss.EdwardsAnderson(ss.cubic(4), samples=4, seed=2, field=0.5), 4),
}


def both(kind: str) -> tuple[Reweighting, Reweighting]:
    """By the series, and by what has been added up, of a run without rows."""
    model, copies = (EXACT | BINNED)[kind]
    full = ss.temper(model(), LADDER, sweeps=1600, thermalize=100, measure_every=1, replicas=copies, seed=3)
    return reweighted(full, TARGETS), reweighted(without_rows(added_up(full)), TARGETS)


def without_rows(result: ss.TemperResult) -> ss.TemperResult:
    names = (*COPY_SERIES, *PAIR_SERIES)
    return replace(result, sweep=result.sweep[:0], **{name: getattr(result, name)[:0] for name in names})


@pytest.mark.parametrize("kind", EXACT)
def test_exact_energies_lose_nothing(kind: str) -> None:
    one, other = both(kind)
    assert list(one.estimates) == list(other.estimates)
    assert one.notes == other.notes
    np.testing.assert_allclose(other.effective, one.effective, 1e-9)
    for name, expected in one.estimates.items():
        found = other.estimates[name]
        np.testing.assert_allclose(found.value, expected.value, 1e-9, 1e-10, err_msg=name)
        if kind in ("one sample", "one copy", "of size 0.75"):  # errors of which come from blocks of time
            np.testing.assert_allclose(found.error, expected.error, 0.4, err_msg=name)
        else:
            np.testing.assert_allclose(found.error, expected.error, 1e-6, err_msg=name)
            np.testing.assert_array_equal(found.trusted, expected.trusted, name)


def farthest(one: Reweighting, other: Reweighting) -> float:
    """In units of the errors."""
    return max(
        np.abs((other.estimates[name].value - expected.value) / expected.error).max()
        for name, expected in one.estimates.items()
    )


@pytest.mark.parametrize("kind", BINNED)
def test_bins_are_negligible_against_the_errors(kind: str) -> None:
    """Those of all columns, of few measurements for so many samples."""
    assert farthest(*both(kind)) < 0.03


@pytest.mark.parametrize(("bins", "most"), [(32, 1e-6), (16, 0.2), (8, 1.0)])
def test_coarse_bins(bins: int, most: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bins of one level, of two and of four: the latter as wide as the energies of one temperature are spread."""
    monkeypatch.setattr(over_energy, "MOST_BINS", bins)
    full = ss.temper(EXACT["glass"][0](), LADDER, sweeps=1600, thermalize=100, measure_every=1, replicas=3, seed=3)
    run = added_up(full)
    assert can_reweight(run.reduced) == (bins > 16)
    monkeypatch.setattr(analysis, "_WIDEST", 9.0)
    assert farthest(reweighted(full, TARGETS), reweighted(run, TARGETS)) < most


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


def test_one_sample_of_several_rests_on_rows() -> None:
    """Its errors come from time, and sums over energy of several samples have no stretches of it."""
    full = ss.temper(ss.EdwardsAnderson(ss.square(4), samples=3), LADDER, sweeps=800, thermalize=50, replicas=2)
    one, other = (reweighted(sample_of(run, 1), TARGETS) for run in (full, added_up(full)))
    for name, expected in one.estimates.items():
        np.testing.assert_array_equal(other.estimates[name].value, expected.value)
