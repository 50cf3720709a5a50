"""Disorder samples one by one: tables, CSV files and the headline of an anneal."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest
from harness import one_sentence, run
from made_up import tempered

import spinsim as ss
from spinsim.analysis.overlaps import overlap_distribution
from spinsim.analysis.runs import lowest, sample_of
from spinsim.analysis.summary import summarize
from spinsim.analysis.tables import with_error

MODEL = ss.EdwardsAnderson(ss.cubic(4), samples=3, seed=1)


@pytest.fixture(scope="module")
def tempering() -> ss.TemperResult:
    return ss.temper(MODEL, [1.0, 1.4, 2.0], sweeps=400, thermalize=50)


def test_a_sample_of_a_run_is_the_run_of_that_sample() -> None:
    """A replica's trajectory does not depend on other samples: a model of one sample alone gives the first one's."""
    alone = ss.Ising(ss.cubic(4), MODEL.couplings[0])
    for whole, one in (
        [ss.temper(each, [1.0, 2.0], 40, 10, magnetization_modes=True) for each in (MODEL, alone)],
        [ss.anneal(each, [2.0, 1.0], replicas=4) for each in (MODEL, alone)],
    ):
        part = sample_of(whole, 0)
        assert part.model.content_sha256() == one.model.content_sha256()
        for name, value in vars(one).items():
            if isinstance(value, np.ndarray):
                np.testing.assert_array_equal(getattr(part, name), value, err_msg=name)


def test_a_table_by_sample(tempering) -> None:
    table = ss.table(tempering, by="sample")
    assert table["sample"].tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    for k in range(3):
        rows, found = table[table["sample"] == k], summarize(sample_of(tempering, k))
        np.testing.assert_array_equal(rows["temperature"], tempering.temperature)
        for name, estimate in found.estimates.items():
            np.testing.assert_array_equal(rows[name], estimate.value)
            np.testing.assert_array_equal(rows[f"{name}_tau"], estimate.tau)
        np.testing.assert_array_equal(rows["lowest_energy_per_site"], tempering.best_energy[k].min() / 64)
    q2 = table.groupby("temperature")["spin_glass_susceptibility"].mean()
    np.testing.assert_allclose(q2, summarize(tempering).estimates["spin_glass_susceptibility"].value)


def test_a_table_by_overlap(tempering) -> None:
    table = ss.table(tempering, by="overlap")
    mean = table.groupby(["temperature", "q"])["probability_density"].mean().to_numpy().reshape(3, -1)
    np.testing.assert_allclose(mean, overlap_distribution(tempering).density, atol=1e-12)
    with pytest.raises(ss.InputError, match="by 'sweep' of this run: choose temperature, sample, overlap or bin"):
        ss.table(tempering, by="sweep")


def test_a_table_of_an_anneal_by_sample() -> None:
    result = ss.anneal(MODEL, [2.0, 1.0], replicas=8)
    table = ss.table(result, by="sample")
    assert table["sample"].tolist() == [0, 0, 1, 1, 2, 2]
    np.testing.assert_allclose(table["energy_per_site"], result.energy.mean(axis=2).T.ravel() / 64)
    np.testing.assert_array_equal(table["hits"][::2], (result.best_energy.min(axis=1) == result.best_energy.T).sum(0))
    with pytest.raises(ss.InputError, match="choose temperature or sample"):
        ss.table(result, by="overlap")


def test_analyze_writes_a_row_for_each_sample(tempering, tmp_path, capsys, monkeypatch) -> None:
    file, out = tempering.save(tmp_path / "run.h5"), tmp_path / "out.csv"
    for by in ("sample", "overlap"):
        assert run(capsys, monkeypatch, "analyze", file, "--csv", out, "--by", by, "--overwrite").status == 0
        with out.open(newline="") as text:
            head, *rows = csv.reader(text)
        table = ss.table(tempering, by=by)
        assert head == list(table.columns)
        assert len(rows) == len(table)
        assert [float(row[2]) for row in rows] == table[head[2]].tolist()
    one_sentence(run(capsys, monkeypatch, "analyze", file, "--by", "sample"), "--by", "--csv")
    one_sentence(run(capsys, monkeypatch, "analyze", file, "--csv", out, "--by", "day", "--overwrite"), "'day'")


def test_the_headline_of_several_samples_is_their_mean(do, capsys, monkeypatch) -> None:
    """-1.75 +- 0.01 over the samples, not the lowest energy of the easiest one."""
    line = "anneal --lattice cubic --size 4 --couplings pm-j --samples 4 --steps 20 --replicas 16"
    path = do(line)
    found = lowest(MODEL, best := ss.load(path).best_energy)
    np.testing.assert_array_equal(found.hits, [(row == row.min()).sum() for row in best])
    assert found.mean == best.min(axis=1).mean() / 64
    shown = run(capsys, monkeypatch, "show", path).out
    assert f"Lowest energy  {with_error(found.mean, found.error)} per site, mean over 4 samples" in shown
    mean, ends = f"{found.hits.mean():.3g} of 16 replicas", f"({found.hits.min()} to {found.hits.max()})"
    assert f"Hits           {mean} met the lowest energy of their sample, on average {ends}" in shown
    facts = json.loads(run(capsys, monkeypatch, *line.split(), "--json").out)
    assert facts["mean_lowest_energy_per_site"] == found.mean
    assert facts["hits_of_sample"] == found.hits.tolist()


def test_made_up_runs_without_lowest_states_have_none() -> None:
    table = ss.table(tempered(MODEL, steps=32), by="sample")
    assert np.isnan(table["lowest_energy_per_site"]).all()
