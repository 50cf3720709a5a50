"""Runs that differ in seeds, disorder and length alone are one run of all their samples."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from harness import run

import spinsim as ss
from spinsim.analysis.overlaps import overlap_distribution
from spinsim.analysis.reweighted import reweighted
from spinsim.analysis.runs import sample_of, samples_in
from spinsim.record import Record
from spinsim.result import result_of

SAMPLES = 24
HOW: dict[str, Any] = {"sweeps": 1000, "thermalize": 200, "device": "cpu"}


def cut(record: Record, sample: int) -> Record:
    """The record of one sample alone."""
    part = record.copy()
    for path, array in record.paths():
        if "sample" in array.axes:
            values = np.take(np.asarray(array.values), [sample], axis=array.axes.index("sample"))
            part.put(path, array._replace(values=values))
    return part


@pytest.mark.parametrize("kept", [{}, {"series": "none"}], ids=["series", "sums"])
def test_runs_of_one_sample_equal_one_run_of_all(kept: dict[str, Any]) -> None:
    whole = ss.temper(ss.EdwardsAnderson(ss.square(4), samples=SAMPLES, seed=3), "0.7:2:4", seed=1, **HOW, **kept)
    parts = [result_of("temper", cut(whole.record, k), sample_of(whole, k).model) for k in range(SAMPLES)]
    for k, part in enumerate(parts):
        part.record.attributes["config_sha256"] = f"of sample {k}"
    pooled = ss.pool(parts)
    assert pooled.model.samples == SAMPLES
    assert np.array_equal(pooled.model.couplings, whole.model.couplings)
    one, other = ss.table(whole), ss.table(pooled)
    assert list(one) == list(other)
    for name in one:
        a, b = one[name].to_numpy(float), other[name].to_numpy(float)
        assert np.allclose(a, b, rtol=0.01 if name.endswith(("_error", "_tau")) else 1e-12, equal_nan=True), name
    assert pooled.verdict == whole.verdict
    assert ss.table(pooled, "sample").equals(ss.table(whole, "sample"))


@pytest.mark.parametrize("job", ["anneal", "quantum"])
def test_other_jobs(job: str, tmp_path: Path) -> None:
    models = [ss.EdwardsAnderson(ss.square(4), seed=k) for k in range(3)]
    if job == "anneal":
        runs = [ss.anneal(m, [3.0, 1.0], sweeps=5, replicas=8, seed=k, device="cpu") for k, m in enumerate(models)]
    else:
        runs = [ss.quantum(m, k=[0.2, 0.3], slices=4, seed=k, **HOW) for k, m in enumerate(models)]
    pooled = ss.pool([run.save(tmp_path / f"{k}.h5") for k, run in enumerate(runs)])
    assert np.array_equal(pooled.best_energy, np.concatenate([run.best_energy for run in runs]))
    assert np.array_equal(pooled.energy, np.concatenate([run.energy for run in runs], axis=1))
    again = ss.load(pooled.save(tmp_path / "all.h5"))
    assert ss.table(again).equals(ss.table(pooled))
    assert [one["seed"] for one in json.loads(again.attributes["pooled"])] == [0, 1, 2]


def test_runs_of_a_clean_model_are_chains_of_one_sample(tmp_path: Path, capsys, monkeypatch) -> None:
    """Two runs of equal length have an error lower by about sqrt(2), and a file of them says the same."""
    how = {"thermalize": 200, "device": "cpu"}
    runs = [ss.temper(ss.Ising(ss.square(4)), "2:3:3", 8000, seed=k, **how) for k in range(2)]
    each, pooled = [ss.table(run) for run in runs], ss.pool(runs)
    table = ss.table(pooled)
    assert (pooled.disorder.tolist(), pooled.model.samples, samples_in(pooled)) == ([0, 0], 2, 1)
    assert pooled.model.one_coupling
    assert "1 sample in 2 runs" in str(pooled)
    for name in ("energy_per_site", "overlap_squared"):
        np.testing.assert_allclose(table[name], (each[0][name] + each[1][name]) / 2, rtol=1e-12)
        of_one = np.sqrt(sum(one[f"{name}_error"] ** 2 for one in each) / 2)
        np.testing.assert_allclose(table[f"{name}_error"] / of_one, np.sqrt(0.5), rtol=0.35)
    assert ss.table(ss.load(pooled.save(tmp_path / "all.h5"))).equals(table)
    said = run(capsys, monkeypatch, "show", str(tmp_path / "all.h5")).out
    replicas = int((pooled.best_energy == pooled.best_energy.min()).sum())
    assert f"(-2.000000 per site), met by {replicas} of 12 replicas" in said
    assert pooled.verdict.startswith("in equilibrium")
    assert set(ss.table(pooled, "sample")["sample"]) == {0}
    of_two, of_one = (overlap_distribution(run) for run in (pooled, runs[0]))
    known = of_two.trusted & of_one.trusted
    assert 0.6 < np.median(of_two.error[known] / of_one.error[known]) < 0.85
    one, two = (reweighted(run, [2.25]).estimates["energy_per_site"] for run in (runs[0], pooled))
    assert two.trusted.all()
    assert two.error[0] / one.error[0] == pytest.approx(np.sqrt(0.5), rel=0.35)
    assert len(ss.pool(runs[:1]).energy) == len(runs[0].energy)


def test_runs_too_short_for_an_error_have_one_together() -> None:
    space = ss.EdwardsAnderson(ss.square(4), seed=3)
    runs = [ss.quantum(space, gamma=[1.0, 1.5], beta=2.0, slices=4, seed=k, **HOW) for k in range(5)]
    assert np.isnan(ss.table(runs[0])["quantum_energy_per_site_error"]).all()
    assert np.isfinite(ss.table(ss.pool(runs))["quantum_energy_per_site_error"]).all()
    assert ss.extrapolate([ss.pool(runs), ss.quantum(space, gamma=[1.0, 1.5], beta=2.0, slices=6, **HOW)]).slices == (
        4,
        6,
    )


def test_samples_count_once_however_many_runs_they_have() -> None:
    """Of the first sample there are two runs, the second of which is longer; all others have one."""
    models = [ss.EdwardsAnderson(ss.square(4), seed=k) for k in (0, 0, 1, 2, 3, 4)]
    lengths = (1000, 3000, 1000, 1000, 2000, 1000)
    how = {"thermalize": 200, "device": "cpu"}
    runs = [ss.temper(m, "0.8:2:4", n, seed=k, **how) for k, (m, n) in enumerate(zip(models, lengths, strict=True))]
    pooled = ss.pool(runs)
    assert pooled.disorder.tolist() == [0, 0, 1, 2, 3, 4]
    assert len(pooled.energy) == 0  # rows of different lengths; all follows from sums
    each = [ss.table(run)["energy_per_site"].to_numpy() for run in runs]
    samples = np.array([(each[0] + 3 * each[1]) / 4, *each[2:]])
    table, energy = ss.table(pooled), ss.table(pooled, "sample")["energy_per_site"].to_numpy().reshape(5, 4)
    np.testing.assert_allclose(energy, samples, rtol=1e-12)
    np.testing.assert_allclose(table["energy_per_site"], samples.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(table["energy_per_site_error"], samples.std(axis=0, ddof=1) / np.sqrt(5), rtol=1e-9)
    assert pooled.verdict.split(":")[0].split(",")[0] in {"in equilibrium", "undecided"}
    assert len(ss.table(pooled, "bin"))
    densities = ss.table(pooled, "overlap").groupby(["sample", "temperature"])[["probability_density", "width"]]
    np.testing.assert_allclose(densities.apply(lambda rows: rows.prod(axis=1).sum()), 1.0)
    own = np.array(
        [
            reweighted(ss.pool(some), [1.5]).estimates["energy_per_site"].value
            for some in (runs[:2], *([r] for r in runs[2:]))
        ]
    )
    found = reweighted(pooled, [1.5]).estimates["energy_per_site"]
    np.testing.assert_allclose(found.value, own.mean(axis=0), rtol=1e-9)
    np.testing.assert_allclose(found.error, own.std(axis=0, ddof=1) / np.sqrt(5), rtol=1e-6)
    nested = ss.pool([ss.pool(runs[:3]), ss.pool(runs[3:])])
    assert ss.table(nested).equals(table)


def test_samples_that_are_alike_by_chance_stay_apart() -> None:
    """Of three bonds there are eight samples: another disorder seed draws anew, though the sample may be the same."""
    runs = [ss.temper(ss.EdwardsAnderson(ss.chain(3), seed=k), "1:2:2", seed=k, **HOW) for k in range(10)]
    assert len({run.model.couplings.tobytes() for run in runs}) < 10
    assert ss.pool(runs).disorder is None


def test_anneals_of_one_sample_are_more_replicas(tmp_path: Path) -> None:
    models = [ss.EdwardsAnderson(ss.square(6), seed=k) for k in (0, 1, 0, 1)]
    how = {"sweeps": 5, "replicas": 32, "device": "cpu", "best_states": True}
    runs = [ss.anneal(model, [3.0, 1.0], seed=k, **how) for k, model in enumerate(models)]
    pooled = ss.load(ss.pool(runs).save(tmp_path / "all.h5"))
    assert pooled.energy.shape == (2, 2, 64)
    assert pooled.config["run"]["replicas"] == 64
    np.testing.assert_array_equal(pooled.energy[:, 0], np.concatenate([runs[0].energy, runs[2].energy], axis=2)[:, 0])
    lowest = [min(a.best_energy.min(), b.best_energy.min()) for a, b in zip(runs[:2], runs[2:], strict=True)]
    np.testing.assert_array_equal([solution.energy for solution in pooled.solutions], lowest)
    np.testing.assert_array_equal(pooled.model.energy(pooled.best_spins), lowest)
    one = ss.pool(runs[::2])
    np.testing.assert_allclose(ss.table(one)["energy_per_site_error"], one.energy[:, 0].std(axis=1, ddof=1) / 36 / 8)
    with pytest.raises(ss.InputError, match="were annealed in 1 to 2 runs"):
        ss.pool(runs[:3])
    of_populations = [
        ss.anneal(models[0], [3.0, 1.0], sweeps=5, replicas=40, populations=2, seed=k, device="cpu") for k in (1, 2)
    ]
    both = ss.pool(of_populations)
    assert both.population_free_energy.shape == (2, 1, 4)
    assert both.family.max() >= 40
    each = [run.free_energy[-1, 0] for run in of_populations]
    assert min(each) <= both.free_energy[-1, 0] <= max(each)


def test_runs_that_are_no_pool_are_refused(tmp_path: Path) -> None:
    model = ss.EdwardsAnderson(ss.square(4), seed=1)
    run = ss.temper(model, "1:2:3", **HOW)
    others = {
        "their values of measurements/temperature differ": ss.temper(model, "1:2.5:3", **HOW),
        "their lattices or graphs differ": ss.temper(ss.EdwardsAnderson(ss.square(6), seed=1), "1:2:3", **HOW),
        "one is a temper run and the other an anneal run": ss.anneal(model, [2.0], sweeps=2, device="cpu"),
        "measure_every is 10 and 5": ss.temper(model, "1:2:3", measure_every=5, **HOW),
        "searches end when they are done": ss.temper(model, "1:2:3", target=100, time_limit=0.01, device="cpu"),
    }
    for words, other in others.items():
        with pytest.raises(ss.InputError, match=f"cannot be pooled, as {words}"):
            ss.pool([run, other])
    anneals = [ss.anneal(model, [2.0, 1.0], sweeps=n, seed=n, device="cpu") for n in (2, 3)]
    with pytest.raises(ss.InputError, match="cannot be pooled, as sweeps is 2 and 3"):
        ss.pool(anneals)
    with pytest.raises(ss.InputError, match="there are no runs to pool"):
        ss.pool([])
    with pytest.raises(ss.InputError, match="has the wrong type: give a list"):
        ss.pool(run)
    with pytest.raises(ss.InputError, match="is given twice"):
        ss.pool([run, run])


def test_commands_take_files_together(tmp_path: Path, capsys, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    how = "--lattice square --couplings pm-j --temperatures 0.6:2:4 --sweeps 400 --thermalize 100 --quiet"
    for size in (4, 6):
        for k in range(4):
            line = f"temper --size {size} --seed {k} --disorder-seed {k} --out {size}-{k}.h5 {how}"
            assert run(capsys, monkeypatch, *line.split()).status == 0
    files = [f"{size}-{k}.h5" for size in (4, 6) for k in range(4)]
    told = run(capsys, monkeypatch, "analyze", *files, "--json", "--csv", "all.csv")
    tables = json.loads(told.out)
    assert [table["file"] for table in tables] == [f"{size}-0.h5 and 3 more files, pooled" for size in (4, 6)]
    pooled = ss.table(ss.pool([f"4-{k}.h5" for k in range(4)]))
    assert np.allclose(tables[0]["energy_per_site"], pooled["energy_per_site"])
    assert len(Path("all.csv").read_text().splitlines()) == 9
    assert run(capsys, monkeypatch, "plot", *files, "--what", "crossings", "--near", "1", "--out", "c.png").status == 0
    assert run(capsys, monkeypatch, "plot", *files[:4], "--what", "overlap", "--out", "q.png").status == 0
    assert run(capsys, monkeypatch, "merge", *files[:4], "--out", "all.h5").out == "all.h5\n"
    assert "Pooled         4 runs" in run(capsys, monkeypatch, "show", "all.h5").out
    assert run(capsys, monkeypatch, "check", "all.h5").out.startswith("all.h5: whole, finished")
    told = run(capsys, monkeypatch, "resume", "all.h5", "--sweeps", "800")
    assert (told.status, "go on with their own files" in told.err) == (2, True)
    told = run(capsys, monkeypatch, "merge", "4-0.h5", "--out", "one.h5")
    assert (told.status, "alone is one run already" in told.err) == (2, True)


def test_lengths_that_differ_are_told(tmp_path: Path, capsys, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    how = "--size 4 --couplings pm-j --temperatures 0.8:2:4 --sweeps 400 --quiet"
    for k in (1, 2, 3):
        line = f"temper --seed {k} --disorder-seed {10 * k} --thermalize {100 * min(k, 2)} --out {k}.h5 {how}"
        assert run(capsys, monkeypatch, *line.split()).status == 0
    note = "The pooled runs differ in thermalize (100 and 200), which is allowed: each sample counts once, "
    for command in (
        "analyze 1.h5 2.h5",
        "merge 1.h5 2.h5 --out both.h5",
        "show both.h5",
        "plot 1.h5 2.h5 --what order",
    ):
        told = run(capsys, monkeypatch, *command.split())
        assert told.status == 0
        assert note in " ".join((told.out + told.err).split()), command
    assert run(capsys, monkeypatch, "merge", "2.h5", "3.h5", "--out", "same.h5").err == ""
    assert "pooled runs differ" not in run(capsys, monkeypatch, "analyze", "2.h5", "3.h5").out


def test_a_pooled_file_is_shown_as_the_pool_that_it_is(tmp_path: Path, capsys, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    runs = [
        ss.temper(ss.EdwardsAnderson(ss.square(4), seed=k), "1:2:3", seed=k, out=f"{k}.h5", **HOW) for k in range(7)
    ]
    whole = ss.pool(["0.h5", "1.h5"])
    whole.save("two.h5")
    shown = run(capsys, monkeypatch, "show", "two.h5").out.splitlines()
    rows = {line[:15].strip(): line[15:] for line in shown if line[:1] != " "}
    assert rows["Pooled"] == "2 runs: 0.h5 and 1.h5"
    assert rows["Seeds"] == "0 and 1, 0 and 1 of the disorder"
    assert rows["Progress"] == f"1000 sweeps each, begun {runs[0].attributes['created']}"
    assert rows["State"] == f"finished {max(run.attributes['finished'] for run in runs[:2])}"
    assert "Command" not in rows
    ss.pool([f"{k}.h5" for k in range(7)]).save("all.h5")
    assert "7 runs: 0.h5 to 6.h5" in run(capsys, monkeypatch, "show", "all.h5").out
    assert "Seeds          0 to 6, 0 to 6 of the disorder" in run(capsys, monkeypatch, "show", "all.h5").out
    assert ss.pool(runs[:2]).attributes["config_sha256"] == whole.attributes["config_sha256"]


def test_a_ladder_is_taken_from_a_file(tmp_path: Path) -> None:
    first = ss.temper(ss.EdwardsAnderson(ss.square(4), seed=1), "auto:1:2:4", out=tmp_path / "first.h5", **HOW)
    second = ss.temper(ss.EdwardsAnderson(ss.square(4), seed=2), str(tmp_path / "first.h5"), **HOW)
    assert np.array_equal(second.temperature, first.temperature)
    assert ss.pool([first, second]).model.samples == 2
    with pytest.raises(ss.InputError, match=r"first\.h5' is no quantum run with a ladder of k"):
        ss.quantum(ss.Ising(ss.square(4)), k=str(tmp_path / "first.h5"), slices=4, **HOW)
