"""Runs that keep some of their rows and sums over all measurements: the same sums however they come to be."""

from __future__ import annotations

import json
from pathlib import Path

import h5py
import numpy as np
import pytest
from harness import run
from several import on_cpus

import spinsim as ss
from spinsim.analysis.reweighted import reweighted
from spinsim.engine.measuring import reduction as reducing
from spinsim.errors import InputError

MODEL = ss.EdwardsAnderson(ss.cubic(4), samples=2, seed=3)
HOW = {"temperatures": "0.9:2:4", "thermalize": 20, "measure_every": 2, "seed": 9}
FEW = {**HOW, "series_limit": 0.02}


def sums(result) -> dict[str, np.ndarray]:
    return dict(result.reduced.arrays)


def same(one, other) -> None:
    """That two runs have the same rows, sums and lowest states."""
    assert one.reduced.stride == other.reduced.stride
    for name, array in sums(one).items():
        if name in sums(other):  # runs in memory have those of checkpoints too
            assert np.array_equal(array, sums(other)[name]), name
    for name in ("sweep", "energy", "overlap", "permutation", "accepts", "round_trips", "best_energy", "best_spins"):
        assert np.array_equal(getattr(one, name), getattr(other, name)), name


@pytest.fixture(scope="module")
def whole():
    """A run that keeps all rows."""
    return ss.temper(MODEL, sweeps=800, **HOW)


@pytest.fixture(scope="module")
def reduced():
    """The same run, of which few rows are kept."""
    return ss.temper(MODEL, sweeps=800, **FEW)


def test_a_run_that_fits_keeps_all_rows_beside_its_sums(whole, reduced) -> None:
    assert whole.reduced.stride == 1
    assert len(whole.sweep) == 400
    for name, array in sums(reduced).items():
        assert np.array_equal(array, sums(whole)[name]), name


def test_rows_are_every_so_many_th_and_sums_are_over_all(whole, reduced) -> None:
    stride = reduced.reduced.stride
    assert stride > 1
    assert stride & (stride - 1) == 0
    for name in ("sweep", "energy", "magnetization", "overlap", "overlap_mode", "link_overlap", "permutation"):
        assert np.array_equal(getattr(reduced, name), getattr(whole, name)[stride - 1 :: stride]), name
    for name in ("attempts", "accepts", "round_trips", "best_energy", "best_spins"):
        assert np.array_equal(getattr(reduced, name), getattr(whole, name)), name
    names = [term.name for term in reduced.reduced.reduced.terms]
    found = dict(zip(names, sums(reduced)["block_sums"].sum(axis=1) / 400, strict=True))
    sites = MODEL.sites
    np.testing.assert_allclose(found["energy"], whole.energy.mean(axis=0).sum(axis=1) / sites, rtol=1e-13)
    np.testing.assert_allclose(found["q^4"], ((whole.overlap / sites) ** 4).mean(axis=0).sum(axis=1), rtol=1e-12)
    np.testing.assert_allclose(found["q_link"], whole.link_overlap.mean(axis=0).sum(axis=1) / MODEL.bonds, rtol=1e-12)
    histogram = sums(reduced)["overlap_histogram"]
    counted = [
        [np.bincount((whole.overlap[:, k, 0, t] + sites) // 2, minlength=sites + 1) for t in range(4)] for k in (0, 1)
    ]
    assert np.array_equal(histogram, counted)


def test_no_rows_and_some_series(whole, reduced) -> None:
    none = ss.temper(MODEL, sweeps=800, series="none", **HOW)
    assert len(none.sweep) == 0
    some = ss.temper(MODEL, sweeps=800, series="overlap", **HOW)
    assert np.array_equal(some.overlap, whole.overlap)
    assert np.array_equal(some.energy, whole.energy)
    for other in (none, some):
        for name, array in sums(reduced).items():
            assert np.array_equal(array, sums(other)[name]), name
    with pytest.raises(InputError, match="'overlaps' is none of this run"):
        ss.temper(MODEL, sweeps=800, series="overlaps", **HOW)
    with pytest.raises(InputError, match="keeps no rows for save_configurations"):
        ss.temper(MODEL, sweeps=800, series="none", save_configurations=4, **HOW)


def test_sums_do_not_depend_on_threads_and_devices(reduced, monkeypatch) -> None:
    same(ss.temper(MODEL, sweeps=800, threads=1, **FEW), reduced)
    on_cpus(monkeypatch, 2)
    same(ss.temper(MODEL, sweeps=800, **FEW), reduced)


@pytest.mark.parametrize("stop", [3, 9, 20])
def test_an_interrupted_run_has_the_same_sums(reduced, tmp_path: Path, monkeypatch, stop: int) -> None:
    monkeypatch.setattr("spinsim.engine.cpu.AT_ONCE", 16)  # so that a short run tells of its updates often enough
    calls, path = 0, tmp_path / "a.h5"

    def interrupt(updates: int) -> None:
        nonlocal calls
        calls += updates > 0
        if calls == stop:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ss.temper(MODEL, sweeps=800, out=path, checkpoint_every=0.05, on_updates=interrupt, **FEW)
    unfinished = ss.load(path)
    assert not unfinished.finished
    assert unfinished.reduced is None or unfinished.reduced.measurements <= 400
    same(ss.resume(path), reduced)


@pytest.mark.parametrize("first", [200, 440, 800])
def test_a_longer_run_has_the_sums_and_rows_of_one_that_was_as_long_from_the_start(tmp_path: Path, first: int) -> None:
    path, how = tmp_path / "a.h5", {**FEW, "series_limit": 0.005}
    ss.temper(MODEL, sweeps=first, out=path, **how)
    same(ss.resume(path, sweeps=1600), ss.temper(MODEL, sweeps=1600, **how))


def test_saved_configurations_stay_when_rows_become_fewer(tmp_path: Path) -> None:
    path, how = tmp_path / "a.h5", {**FEW, "series_limit": 0.005, "save_configurations": 32}
    ss.temper(MODEL, sweeps=400, out=path, **how)
    longer, whole = ss.resume(path, sweeps=1600), ss.temper(MODEL, sweeps=1600, out=tmp_path / "b.h5", **how)
    same(longer, whole)
    assert whole.reduced.stride <= 32
    with h5py.File(path) as one, h5py.File(tmp_path / "b.h5") as other:
        for name in ("measurement", "sweep", "spins"):
            assert len(one["configurations"][name]) == 25
            assert np.array_equal(one["configurations"][name], other["configurations"][name]), name


def test_files_of_results_are_whole(reduced, tmp_path: Path, capsys, monkeypatch) -> None:
    path = reduced.save(tmp_path / "saved.h5")
    assert run(capsys, monkeypatch, "check", path).status == 0
    same(ss.load(path), reduced)


def test_a_quantum_run(tmp_path: Path) -> None:
    model = ss.EdwardsAnderson(ss.square(4), samples=2, seed=5)
    how = {"k": [0.25, 0.29], "slices": 8, "sweeps": 800, "thermalize": 20, "even_correlations": True, "seed": 4}
    whole, few = ss.quantum(model, **how), ss.quantum(model, series_limit=0.01, local_susceptibility=True, **how)
    stride = few.reduced.stride
    assert np.array_equal(few.action, whole.action[stride - 1 :: stride])
    names = [term.name for term in few.reduced.reduced.terms]
    means = sums(few)["block_sums"].sum(axis=1) / few.reduced.measurements
    found, sites = dict(zip(names, means, strict=True)), whole.model.sites
    in_time, per_site = whole.in_time, whole.correlation_in_time.mean(axis=0).sum(axis=1) / sites
    for k in range(len(whole.time)):
        np.testing.assert_allclose(found[f"C({k})"], per_site[..., k], rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(found["H"], in_time.energy.mean(axis=0).sum(axis=1), rtol=1e-12)
    np.testing.assert_allclose(found["H^2"], (in_time.energy**2).mean(axis=0).sum(axis=1), rtol=1e-12)
    fourth = whole.slice_overlap_fourth / (8 * 16**4)
    np.testing.assert_allclose(found["q_eq^4"], fourth.mean(axis=0).sum(axis=1), rtol=1e-12)
    even = in_time.even
    np.testing.assert_allclose(found["q_link in space"], even.link_overlap.mean(axis=0).sum(axis=1), rtol=1e-12)
    np.testing.assert_allclose(
        found["even C(1)"], even.correlation[..., 1].mean(axis=0).sum(axis=1), rtol=1e-12, atol=1e-14
    )
    assert few.local_measurements.tolist() == [80, 80]
    assert np.array_equal(ss.load(few.save(tmp_path / "q.h5")).reduced.arrays["block_sums"], sums(few)["block_sums"])


def test_a_dry_run_says_how_long_and_how_large_and_writes_nothing(tmp_path: Path, capsys, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    said = run(
        capsys, monkeypatch, "temper", "--lattice", "cubic", "--size", 4, "--couplings", "pm-j", "--samples", 2,
        "--temperatures", "0.9:2:4", "--sweeps", 10**9, "--dry-run",
    )  # fmt: skip
    assert said.status == 0, said
    lines = {line.split()[0]: line for line in said.out.splitlines() if line}
    assert "about" in lines["Time"]
    assert any(unit in lines["Time"] for unit in ("days", " h ", " min "))  # by how fast this machine is
    assert "rows of 100000000 measurements, and sums over all of them" in lines["File"]
    assert list(tmp_path.iterdir()) == []
    assert run(capsys, monkeypatch, "transfer", "--width", 4, "--dry-run").status == 2


def test_a_dry_run_takes_no_memory_for_its_rows(tmp_path: Path, capsys, monkeypatch) -> None:
    """Of series that no memory holds, of a run that ends before it is timed, and of one that writes a solution."""
    monkeypatch.chdir(tmp_path)
    model = "--lattice", "cubic", "--size", 4, "--couplings", "pm-j", "--samples", 2
    long = "temper", *model, "--temperatures", "0.9:2:4", "--sweeps", 10**12, "--measure-every", 1
    said = run(capsys, monkeypatch, *long, "--series-limit", 10**15, "--dry-run", "--json")
    assert said.status == 0, said
    assert json.loads(said.out)["file_bytes"] > 1e14
    assert json.loads(said.out)["seconds"] > 1e4
    short = "anneal", *model, "--steps", 10, "--replicas", 2, "--out", "a.h5", "--dry-run", "--json"
    said = run(capsys, monkeypatch, *short)
    assert said.status == 0, said
    assert json.loads(said.out)["file_bytes"] > 0
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("target", [-110, -190])
def test_a_dry_run_of_a_search_ends_though_nobody_knows_how_long_the_search_takes(capsys, monkeypatch, target) -> None:
    model = "--lattice", "cubic", "--size", 4, "--couplings", "pm-j", "--samples", 2, "--target", target
    for command in (("anneal",), ("temper", "--temperatures", "0.9:2:4")):
        said = run(capsys, monkeypatch, *command, *model, "--dry-run", "--json")
        assert said.status == 0, said
        assert target == -110 or json.loads(said.out)["seconds"] is None


def test_a_run_without_limit_goes_on_to_keep_all_rows(tmp_path: Path) -> None:
    path, how = tmp_path / "old.h5", HOW | {"series_limit": None}
    ss.temper(MODEL, sweeps=100, out=path, **how)
    longer = ss.resume(path, sweeps=1000)
    same(longer, ss.temper(MODEL, sweeps=1000, **how))
    assert longer.reduced.stride == 1


KEPT = {"some": {"series": "overlap"}, "few": {"series_limit": 0.005}, "none": {"series": "none"}}


@pytest.mark.parametrize("kept", ["some", "none"])
def test_reweighting_refuses_a_run_without_sums_over_energy(tmp_path: Path, capsys, monkeypatch, kept: str) -> None:
    """Runs have no room for them, as those of earlier versions had none."""
    monkeypatch.setattr(reducing, "_ENERGY_BYTES", 0)
    monkeypatch.setattr(reducing, "_OF_OTHERS", 2**40)
    ss.temper(MODEL, sweeps=800, out=tmp_path / "a.h5", **(HOW | KEPT[kept]))
    refused = run(capsys, monkeypatch, "analyze", tmp_path / "a.h5", "--reweight", 1.2)
    assert refused.status == 2
    assert "has no sums over energy" in refused.err, refused


@pytest.mark.parametrize("kept", KEPT)
def test_reweighting_takes_no_series_where_there_are_sums_over_energy(whole, tmp_path: Path, kept: str) -> None:
    ss.temper(MODEL, sweeps=800, out=tmp_path / "a.h5", **(HOW | KEPT[kept]))
    one, other = reweighted(whole, [1.2]), reweighted(ss.load(tmp_path / "a.h5"), [1.2])
    for name, expected in one.estimates.items():
        np.testing.assert_allclose(other.estimates[name].value, expected.value, 1e-9, err_msg=name)
        np.testing.assert_allclose(other.estimates[name].error, expected.error, 1e-6, err_msg=name)


@pytest.mark.parametrize(("limit", "keeps_rows"), [(0.001, False), (0.02, True)])
def test_no_row_is_kept_where_one_takes_more_than_its_part_of_the_limit(limit: float, keeps_rows: bool) -> None:
    """A quarter of the limit is for rows, of which one takes some 500 bytes; sums are over all measurements."""
    found = ss.temper(MODEL, sweeps=800, **{**HOW, "series_limit": limit})
    assert (len(found.sweep) > 0) == keeps_rows
    assert found.reduced.measurements == 400


def test_show_has_the_averages_of_a_quantum_run_that_has_kept_few_rows(tmp_path: Path, capsys, monkeypatch) -> None:
    how = {"k": [0.25, 0.29], "slices": 8, "sweeps": 800, "thermalize": 20, "series": "none"}
    ss.quantum(ss.EdwardsAnderson(ss.square(4), samples=2), out=tmp_path / "q.h5", **how)
    shown = run(capsys, monkeypatch, "show", tmp_path / "q.h5").out
    assert "left out" not in shown.replace("gaps are left out", "")
    assert "Verdict" in shown


@pytest.mark.parametrize("series", ["overlap", "correlation_in_time", "none"])
def test_a_quantum_run_with_some_series_is_read_saved_and_made_longer(tmp_path: Path, series: str) -> None:
    model = ss.EdwardsAnderson(ss.square(4), samples=2, seed=5)
    how = {"k": [0.25, 0.29], "slices": 8, "thermalize": 20, "even_correlations": True, "series": series}
    whole = ss.quantum(model, sweeps=800, **how)
    ss.quantum(model, sweeps=400, out=tmp_path / "q.h5", **how)
    longer = ss.resume(tmp_path / "q.h5", sweeps=800)
    for one in (longer, ss.load(longer.save(tmp_path / "copy.h5"))):
        assert np.array_equal(one.reduced.arrays["block_sums"], whole.reduced.arrays["block_sums"])
        assert np.array_equal(one.overlap, whole.overlap)
        assert np.array_equal(one.energy, whole.energy)


@pytest.mark.parametrize("series", ["energy", "overlap", "magnetization,overlap_mode"])
def test_a_copy_of_a_run_with_some_series_has_room_for_all_averages(tmp_path, capsys, monkeypatch, series) -> None:
    path = ss.temper(MODEL, sweeps=800, series=series, **HOW).save(tmp_path / "a.h5")
    assert run(capsys, monkeypatch, "check", path).status == 0
    analyzed = run(capsys, monkeypatch, "analyze", path)
    assert analyzed.status == 0
    assert "older version" not in analyzed.out


def test_own_observables_of_few_rows_are_averages_of_all_measurements(tmp_path: Path, capsys, monkeypatch) -> None:
    path = tmp_path / "a.h5"
    ss.temper(MODEL, sweeps=800, measure={"square": lambda batch: batch.spins.mean(axis=-1) ** 2}, out=path, **FEW)
    analyzed = run(capsys, monkeypatch, "analyze", path)
    assert analyzed.status == 0, analyzed
    columns = ss.table(path)
    assert np.allclose(columns["square"], columns["magnetization_squared"])
