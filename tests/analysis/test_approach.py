"""Averages over logarithmic bins at every temperature; energy against link overlap for Gaussian couplings."""

from __future__ import annotations

import csv
from dataclasses import replace

import numpy as np
import pytest
from by_series import equilibration, link_residual
from harness import run
from made_up import tempered

import spinsim as ss
from spinsim.analysis.equilibration import approach, link_agreement
from spinsim.analysis.summary import summarize
from spinsim.jobs.temper.run import TemperResult

LADDER = np.geomspace(0.8, 2.0, 4)


@pytest.fixture(scope="module")
def glass() -> TemperResult:
    model = ss.EdwardsAnderson(ss.cubic(3), samples=12, seed=5, couplings="gaussian")
    return ss.temper(model, LADDER, sweeps=800, thermalize=200, measure_every=2, seed=2)


@pytest.mark.parametrize("lattice", [ss.square(3), ss.square(4, 2), ss.square(3, periodic=False)])
def test_energy_and_link_overlap_of_gaussian_couplings_exactly(lattice):
    """[U] and [q_l] of 400 enumerated samples: what the residual averages is 0, though not for one sample."""
    model = ss.EdwardsAnderson(lattice, samples=400, seed=3, couplings="gaussian")
    bits = np.arange(2**model.sites) >> np.arange(model.sites)[:, None] & 1
    spins = (2 * bits - 1).astype(np.float64)
    links = spins[model.graph.edges[:, 0]] * spins[model.graph.edges[:, 1]]
    for temperature in (0.5, 2.0):
        energy = -model.couplings @ links
        weight = np.exp((energy.min(axis=1, keepdims=True) - energy) / temperature)
        weight /= weight.sum(axis=1, keepdims=True)
        link = ((weight @ links.T) ** 2).mean(axis=1)
        mean = (weight * energy).sum(axis=1) / model.sites
        residual = mean + model.bonds / model.sites * (1 - link) / temperature
        error = residual.std(ddof=1) / np.sqrt(model.samples)
        assert abs(residual.mean()) <= 4 * error
        assert error < 0.05 * abs(mean.mean())
        assert np.abs(residual).max() > 4 * error


def test_bins_are_those_of_the_single_check(glass):
    found = approach(glass)
    assert list(found.mean) == ["energy_per_site", "overlap_squared", "link_overlap", "link_residual"]
    np.testing.assert_array_equal(found.stop - found.start, [12, 13, 25, 50, 100, 200])  # a block has 8
    np.testing.assert_array_equal(found.last_sweep, 2 * found.stop)
    np.testing.assert_array_equal(found.first_sweep, 2 * (found.start + 1))
    for t in (0, 3):
        one = equilibration(((glass.overlap[..., t] / 27) ** 2).squeeze(2))
        mean, error = (values["overlap_squared"][-3:, t] for values in (found.mean, found.error))
        np.testing.assert_allclose(mean, one.mean[-3:], atol=0.3 * one.error[-3:].max())  # edges share a block
        np.testing.assert_allclose(error, one.error[-3:], 0.1)
        assert one.verdict.startswith(found.verdict["overlap_squared"][t])
    by_hand = glass.energy[200:].mean(axis=(0, 1, 2)) / 27
    by_hand += 3 * (1 - glass.link_overlap[200:].mean(axis=(0, 1, 2)) / 81) / LADDER
    np.testing.assert_allclose(found.mean["link_residual"][-1], by_hand)
    np.testing.assert_allclose(link_residual(glass)[200:].mean(axis=(0, 1)), by_hand)


def test_energy_and_link_overlap_agree_in_equilibrium(glass):
    found = link_agreement(glass)
    assert found.agrees
    assert np.abs(found.score).max() < 4
    notes = " ".join(summarize(glass).notes)
    assert "With Gaussian couplings energy and link overlap miss U = -(z/2) (1 - q_l) / T by" in notes


def test_energy_and_link_overlap_disagree_before():
    """In the first sweeps from a random start the energy is too high and the link overlap too low."""
    model = ss.EdwardsAnderson(ss.cubic(6), samples=24, seed=5, couplings="gaussian")
    result = ss.temper(model, LADDER, sweeps=16, thermalize=1, measure_every=1, seed=2)
    found = link_agreement(result)
    assert not found.agrees
    assert found.residual[0] > 0
    assert any(problem.startswith(found.words.split(", more")[0]) for problem in summarize(result).problems)


def test_what_cannot_be_compared(glass):
    assert link_agreement(tempered(ss.EdwardsAnderson(ss.cubic(4), samples=4, seed=1))) is None  # +-J
    model = glass.model
    for other in (
        ss.Ising(model.graph, model.couplings, 0.5, name=model.name),
        ss.Ising(model.graph, 2 * model.couplings, name=model.name),
        ss.Ising(model.graph, model.couplings, name="mine"),
    ):
        assert link_agreement(replace(glass, model=other)) is None
    few = ss.EdwardsAnderson(ss.cubic(3), samples=4, seed=5, couplings="gaussian")
    links = glass.link_overlap[:, :4]
    assert link_agreement(replace(glass, model=few, energy=glass.energy[:, :4], link_overlap=links)) is None
    one = ss.EdwardsAnderson(ss.cubic(3), samples=1, seed=5, couplings="gaussian")
    with pytest.raises(ss.InputError, match="7 measurements are too few"):
        approach(tempered(one, steps=7))


def test_analyze_writes_the_bins(glass, tmp_path, capsys, monkeypatch):
    file, out = glass.save(tmp_path / "run.h5"), tmp_path / "bins.csv"
    shown = run(capsys, monkeypatch, "analyze", file, "--csv", out, "--by", "bin")
    assert shown.status == 0
    found = approach(glass)
    with out.open(newline="") as text:
        rows = list(csv.DictReader(text))
    assert len(rows) == 4 * len(found.start)
    last = rows[len(found.start) - 1]
    assert float(last["temperature"]) == LADDER[0]
    assert (last["first_sweep"], last["last_sweep"], last["measurements"]) == ("402", "800", "200")
    assert float(last["link_residual"]) == found.mean["link_residual"][-1, 0]
    assert last["energy_per_site_verdict"] == found.verdict["energy_per_site"][0]
    assert "U = -(z/2)" in " ".join(shown.out.split())
    assert ss.table(glass, by="bin")["link_overlap"].tolist() == found.mean["link_overlap"].T.ravel().tolist()
