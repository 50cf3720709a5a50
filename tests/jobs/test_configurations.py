"""Saved configurations: those that were measured, in every packing, in files and in memory, and counted again."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import h5py
import numpy as np
import pytest
import xarray
from harness import contents, one_sentence, run

import spinsim as ss
from spinsim import packing
from spinsim.analysis.summary import summarize
from spinsim.engine import Dynamics, create_engine
from spinsim.engine.measuring.correlations import WITHOUT_TIMES
from spinsim.jobs.anneal.settings import Anneal
from spinsim.jobs.ladder.result import Temperatures, contents_of_run
from spinsim.jobs.temper.settings import Temper
from spinsim.observables.quantities import Choice
from spinsim.packing import of_replica_packed, packed_spins, unpacked_spins
from spinsim.saved import with_configurations
from spinsim.settings.config import build_config
from spinsim.store.contents import room_of

MODELS = {
    "replica-packed": lambda: ss.EdwardsAnderson(ss.cubic(3), samples=2, seed=1),
    "site-packed": lambda: ss.EdwardsAnderson(ss.square(256, 2), seed=1),
    "unpacked": lambda: ss.EdwardsAnderson(ss.square(5), samples=2, couplings="gaussian", seed=1),
}
LADDER = [0.9, 1.3, 2.0]
TEMPER: dict[str, Any] = {"sweeps": 100, "thermalize": 6, "measure_every": 5, "seed": 3, "save_configurations": 3}
ANNEAL: dict[str, Any] = {"sweeps": 4, "replicas": 5, "seed": 3, "save_configurations": 2}
COUNTED = ("energy", "magnetization", "overlap", "link_overlap", "overlap_mode", "magnetization_mode")
COUNTED += ("staggered_magnetization",)
COMMAND = "temper --size 6 --couplings pm-j --samples 2 --temperatures 0.8:2:3 --thermalize 10 --sweeps 120 "
COMMAND += "--measure-every 2 --save-configurations 3"


@pytest.fixture(scope="module", params=MODELS)
def tempered(request, tmp_path_factory):
    """A tempering run of each packing, in a file."""
    path = tmp_path_factory.mktemp("run") / "a.h5"
    result = ss.temper(MODELS[request.param](), LADDER, **TEMPER, out=path)
    assert request.param in result.attributes["engine"]
    return path, result


def test_bits_and_spins() -> None:
    """The contents, stated bit by bit."""
    spins = np.random.default_rng(1).choice(np.array([-1, 1], np.int8), (3, 2, 13))
    bits = packed_spins(spins)
    assert bits.shape == (3, 2, 2)
    for site in range(13):
        np.testing.assert_array_equal(bits[..., site // 8] >> np.uint8(site % 8) & 1, spins[..., site] > 0)
    assert not (bits[..., 1] >> 5).any()
    np.testing.assert_array_equal(unpacked_spins(bits, 13), spins)
    many = np.random.default_rng(2).choice(np.array([-1, 1], np.int8), (1, 13, 150))
    np.testing.assert_array_equal(of_replica_packed(packing.pack(many)[0], 150), packed_spins(many[0].T))


def test_they_are_those_of_the_engine_by_temperature(tempered) -> None:
    """An engine that does the same sweeps holds them, each at the replica that the permutation names."""
    path, result = tempered
    saved, model = ss.configurations(path), result.model
    spins = saved[:].reshape(*saved.shape, model.sites)
    engine = create_engine(model, 6, Dynamics(seed=3), "cpu")
    engine.set_ladder(1 / result.temperature, 2)
    engine.temper(6, 1)
    for row in range(6):
        engine.temper(15, 1)
        for sample, copy, k in np.ndindex(spins.shape[1:4]):
            replica = result.permutation[3 * row + 2, sample, copy, k]
            np.testing.assert_array_equal(spins[row, sample, copy, k], engine.spins(sample, int(replica)))
    assert (result.permutation[2::3] != np.arange(6).reshape(2, 3)).any()


def test_labels_and_ways_to_choose(tempered) -> None:
    path, result = tempered
    saved = ss.configurations(path)
    assert len(saved) == 36 * result.model.samples
    assert saved.shape == (6, result.model.samples, 2, 3)
    every, labels = saved[:], saved.labels
    np.testing.assert_array_equal(every.sum(axis=1, dtype=int), result.magnetization[2::3].ravel())
    assert every.dtype == np.int8
    assert {tuple(row) for row in np.column_stack([labels["step"], labels["sweep"], labels["measurement"]])} == {
        (k, 15 * (k + 1), 3 * k + 2) for k in range(6)
    }
    grid = np.meshgrid(np.arange(6), np.arange(result.model.samples), [0, 1], LADDER, indexing="ij")
    for found, expected in zip((labels["step"], saved.sample, saved.copy, saved.temperature), grid, strict=True):
        np.testing.assert_array_equal(found, expected.ravel())
    np.testing.assert_array_equal(saved.parity, np.where((every < 0).sum(axis=1) % 2, -1, 1))
    np.testing.assert_array_equal(labels["parity"], saved.parity)
    cold = saved.temperature < 1
    np.testing.assert_array_equal(saved[cold], every[cold])
    np.testing.assert_array_equal(saved[[5, 0, -1]], every[[5, 0, -1]])
    np.testing.assert_array_equal(saved[20:3:-4], every[20:3:-4])
    np.testing.assert_array_equal(saved[-2], every[-2])
    np.testing.assert_array_equal(list(saved), every)
    np.testing.assert_array_equal(saved.row(4), every.reshape(*saved.shape, -1)[4])
    with pytest.raises(IndexError):
        saved[len(saved)]
    with pytest.raises(ss.InputError, match="have no k: they have measurement, sweep, step, sample"):
        saved.label("k")


def test_a_run_in_memory_keeps_them_and_pieces_are_small(tempered, monkeypatch) -> None:
    path, result = tempered
    whole = ss.configurations(path)[:]
    saved = ss.temper(result.model, LADDER, **TEMPER).configurations
    monkeypatch.setattr("spinsim.saved._PIECE_BYTES", 1)
    monkeypatch.setattr("spinsim.saved._BATCH_BYTES", 1)
    np.testing.assert_array_equal(saved[::-1], whole[::-1])
    np.testing.assert_array_equal(list(saved), whole)
    np.testing.assert_array_equal(saved.parity, np.prod(whole, axis=1))


def test_they_are_saved_with_a_result(tmp_path) -> None:
    model, path = MODELS["unpacked"](), tmp_path / "a.h5"
    ss.temper(model, LADDER, **TEMPER, out=path)
    ss.temper(model, LADDER, **TEMPER).save(tmp_path / "b.h5")
    ss.load(path).save(tmp_path / "c.h5")
    np.testing.assert_array_equal(ss.configurations(tmp_path / "b.h5")[:], ss.configurations(path)[:])
    one, other = (contents(each, "command", "config", "config_sha256") for each in (path, tmp_path / "c.h5"))
    names = {name for name in one if name.startswith("/configurations")}
    assert {name: one[name] for name in names} == {name: other[name] for name in names}


@pytest.mark.parametrize("name", MODELS)
def test_what_is_counted_again_is_what_was_recorded(device, name) -> None:
    """On each device, in memory; the spins that a GPU saves are those of the CPU."""
    result = ss.temper(MODELS[name](), LADDER, **TEMPER, device=device)
    if device != "cpu":
        other = ss.temper(MODELS[name](), LADDER, **TEMPER, device="cpu")
        np.testing.assert_array_equal(result.configurations[:], other.configurations[:])
    again = ss.recount(result, device=device)
    for series in (*COUNTED, "sweep", "permutation"):
        np.testing.assert_array_equal(getattr(again, series), getattr(result, series)[2::3], strict=True)
    assert again.configurations is None


def test_quantum_runs_save_space_and_time(device, do, capsys, monkeypatch, tmp_path) -> None:
    model = ss.EdwardsAnderson(ss.chain(4), samples=2, seed=3)
    how = {
        "slices": 6,
        "sweeps": 60,
        "thermalize": 8,
        "measure_every": 2,
        "save_configurations": 5,
        "replicas": 3,
        "even_correlations": True,
    }
    monkeypatch.chdir(tmp_path)
    result = ss.quantum(model, [0.6, 0.4], **how, device=device, out="a.h5")
    saved, again = ss.configurations("a.h5"), ss.recount("a.h5", device=device)
    assert list(saved.axes) == ["step", "sample", "copy", "k"]
    np.testing.assert_array_equal(saved[:], ss.quantum(model, [0.6, 0.4], **how).configurations[:])
    np.testing.assert_array_equal(saved[:].sum(axis=1, dtype=int), result.magnetization[4::5].ravel())
    assert set(saved.label("k")) == {0.6, 0.4}
    with pytest.raises(ss.InputError, match="have no temperature: they have measurement, sweep, step"):
        _ = saved.temperature
    for name, series in vars(result).items():
        if isinstance(series, np.ndarray) and series.shape[:1] == (30,):
            np.testing.assert_array_equal(getattr(again, name), series[4::5], strict=True)
    assert len(again.action) == 6
    line = "quantum --size 4 --couplings pm-j --slices 4 --k 0.5,0.4 --sweeps 400 --thermalize 20 --measure-every 5"
    path = do(f"{line} --save-configurations 2 --device cpu")
    assert run(capsys, monkeypatch, "check", path).out.endswith("whole, finished: 80 rows\n")
    assert "Saved          40 configurations of each replica" in run(capsys, monkeypatch, "show", path).out
    told = run(capsys, monkeypatch, "analyze", path, "--from-configurations", "--device", "cpu")
    assert (told.status, "counted again from saved spins" in told.out) == (0, True), told


@pytest.mark.parametrize("field", [None, [0.5, 0.25, 0.25, 0, -0.5]])
@pytest.mark.parametrize("name", MODELS)
def test_anneals_save_what_stands_at_the_end_of_steps(device, name, field, tmp_path) -> None:
    kept = ss.anneal(MODELS[name](), [3.0, 2.0, 1.5, 1.0, 0.5], **ANNEAL, field=field, device=device)
    result = ss.load(kept.save(tmp_path / "a.h5"))
    saved = ss.configurations(result)
    assert list(saved.axes) == ["step", "sample", "replica"]
    assert set(zip(saved.temperature, saved.sweep, strict=True)) == {(2.0, 8), (1.0, 16)}
    np.testing.assert_array_equal(saved.copy, np.tile(np.arange(5), len(saved) // 5))
    np.testing.assert_array_equal(saved[:], kept.configurations[:])
    assert ("field" in saved.labels) == (field is not None)
    again = ss.recount(result, device=device)
    for series in ("temperature", "energy", "magnetization", "staggered_magnetization", "field"):
        if getattr(result, series) is not None:
            np.testing.assert_array_equal(getattr(again, series), getattr(result, series)[1::2], strict=True)


def test_analyze_prints_the_tables_of_the_restricted_series(do, capsys, monkeypatch, tmp_path) -> None:
    path = do(COMMAND)
    before = path.read_bytes()
    table = run(capsys, monkeypatch, "analyze", path, "--from-configurations", "--json", "--device", "cpu")
    assert table.status == 0, table
    result = ss.load(path)
    series = {name: getattr(result, name)[2::3] for name in (*COUNTED, "sweep", "permutation")}
    found = summarize(replace(result, **series, reduced=None)).estimates
    numbers = json.loads(table.out)
    shown = numbers.get("observables", numbers)
    for name, estimate in found.items():
        np.testing.assert_array_equal(np.array(shown[name], float), estimate.value)
    assert path.read_bytes() == before
    csv = tmp_path / "a.csv"
    told = run(capsys, monkeypatch, "analyze", path, "--from-configurations", "--all", "--csv", csv)
    assert "the file's /summary stays as it is" in " ".join(told.out.split())
    assert len(csv.read_text().splitlines()) == 4
    reweighted = run(capsys, monkeypatch, "analyze", path, "--from-configurations", "--reweight", "1.0,1.5")
    assert reweighted.status == 0, reweighted


def test_show_check_and_xarray(do, capsys, monkeypatch) -> None:
    path = do(COMMAND)
    assert (
        "Saved          20 configurations of each replica, one at every 3 measurements, 240 in all"
        in run(capsys, monkeypatch, "show", path).out.splitlines()
    )
    assert json.loads(run(capsys, monkeypatch, "show", path, "--json").out)["configurations"] == 240
    assert run(capsys, monkeypatch, "check", path).out.endswith("whole, finished: 60 rows\n")
    with xarray.open_dataset(path, group="configurations", engine="h5netcdf") as data:
        assert data.spins.dims == ("step", "sample", "copy", "temperature", "byte")
        assert data.sweep.values.tolist() == list(range(6, 121, 6))
        assert {"measurement", "sweep", "temperature"} <= set(data.coords)
        assert data.spins.attrs["long_name"].startswith("spins, a bit each: bit b of byte k is site 8 k + b")
        assert (data.attrs["every"], data.attrs["sites"]) == (3, 36)


def test_files_without_them_are_as_before(do, capsys, monkeypatch) -> None:
    path = do("anneal --size 4 --steps 3 --sweeps 2 --replicas 4")
    with h5py.File(path) as file:
        assert "configurations" not in file
    assert "Saved " not in run(capsys, monkeypatch, "show", path).out
    assert ss.load(path).configurations is None
    for call in (ss.configurations, ss.recount):
        with pytest.raises(ss.InputError, match="saved no configurations: run it again with save_configurations=1"):
            call(path)


@pytest.mark.parametrize("job", [Anneal, Temper])
def test_they_count_in_the_identity_of_a_run_where_there_are_any(job) -> None:
    """A file has room for them or has not: the same command with another number is another run."""
    usual, saving = (build_config(job, {"run": {"save_configurations": every}}) for every in (0, 5))
    assert usual.sha256(None) == job().sha256(None)
    assert saving.sha256(None) != usual.sha256(None)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("temper --sweeps 100 --save-configurations 11", "save_configurations 11 is more than the 10 measurements"),
        ("anneal --steps 5 --save-configurations 6", "save_configurations 6 is more than the 5 measurements"),
        ("anneal --save-configurations=-1", "save_configurations -1 is out of range: give a whole number from 0"),
        ("transfer --save-configurations 1", "No such option: --save-configurations"),
        ("analyze {} --from-configurations", "saved no configurations: run it again"),
        ("analyze {} --device cpu", "--device cpu is where --from-configurations counts"),
    ],
)
def test_refusals(do, capsys, monkeypatch, tmp_path, line, words) -> None:
    monkeypatch.chdir(tmp_path)
    path = do("temper --size 4 --temperatures 1,2 --sweeps 200 --thermalize 10") if "{}" in line else Path()
    before = sorted(tmp_path.rglob("*"))
    one_sentence(run(capsys, monkeypatch, *line.format(path).split()), words)
    assert sorted(tmp_path.rglob("*")) == before


def test_they_need_room_on_the_disk_and_in_memory(do, capsys, monkeypatch) -> None:
    """2,000 of 6 replicas of 1,024 sites take 1.5 MiB."""
    line = "temper --temperatures 1,2,3 --sweeps 2000 --thermalize 0 --measure-every 1"
    monkeypatch.setattr("shutil.disk_usage", lambda folder: SimpleNamespace(free=2**20))
    needed = []
    for every in ("0", "1"):
        refused = run(capsys, monkeypatch, *line.split(), "--save-configurations", every)
        one_sentence(refused, "1.0 MiB are free", "save fewer configurations")
        needed.append(float(re.search(r"needs ([\d.]+) MiB", " ".join(refused.err.split()))[1]))
    assert 1.4 < needed[1] - needed[0] < 1.8
    model = ss.Ising(ss.square(4))
    contents = contents_of_run(model, Choice(2, WITHOUT_TIMES, True), Temperatures(np.array(LADDER)))
    sizes = [room_of(with_configurations(contents, every, 16), 100) for every in (0, 7)]
    assert sizes[1] - sizes[0] == 14 * (2 * 8 + 6 * 2)
