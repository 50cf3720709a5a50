"""Runs that differ in seeds and disorder alone are one run of all their samples."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from harness import run

import spinsim as ss
from spinsim.analysis.runs import sample_of
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


def test_clean_models_of_other_seeds_are_samples(tmp_path: Path) -> None:
    runs = [ss.temper(ss.Ising(ss.square(4)), "2:3:3", seed=k, **HOW) for k in range(4)]
    pooled = ss.pool(runs)
    assert pooled.model.samples == 4
    assert pooled.model.one_coupling
    assert len(ss.pool(runs[:1]).energy) == len(runs[0].energy)


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
    assert (told.status, "go on with each of their own files" in told.err) == (2, True)
    told = run(capsys, monkeypatch, "merge", "4-0.h5", "--out", "one.h5")
    assert (told.status, "alone is one run already" in told.err) == (2, True)


def test_a_ladder_is_taken_from_a_file(tmp_path: Path) -> None:
    first = ss.temper(ss.EdwardsAnderson(ss.square(4), seed=1), "auto:1:2:4", out=tmp_path / "first.h5", **HOW)
    second = ss.temper(ss.EdwardsAnderson(ss.square(4), seed=2), str(tmp_path / "first.h5"), **HOW)
    assert np.array_equal(second.temperature, first.temperature)
    assert ss.pool([first, second]).model.samples == 2
    with pytest.raises(ss.InputError, match=r"first\.h5' is no quantum run with a ladder of k"):
        ss.quantum(ss.Ising(ss.square(4)), k=str(tmp_path / "first.h5"), slices=4, **HOW)
