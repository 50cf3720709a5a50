"""Tempering runs: their files, their commands, their analysis."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
import xarray
from exact import assert_agree
from frames import LADDER
from harness import at_row, contents, interrupt, run

import spinsim as ss
from spinsim.analysis.summary import summarize
from spinsim.jobs.temper.run import TemperResult
from spinsim.model.ising import Ising
from spinsim.observables.table import correlation_length

COMMAND = (
    "temper --lattice cubic --size 4 --couplings pm-j --samples 3 --temperatures 0.8:2.5:6g --sweeps 120 "
    "--thermalize 20 --magnetization-modes"
)


def same(one: TemperResult, other: TemperResult) -> bool:
    names = ("temperature", "sweep", "energy", "magnetization", "staggered_magnetization", "overlap", "link_overlap",
             "overlap_mode", "magnetization_mode", "permutation", "attempts", "round_trips")  # fmt: skip
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in names)


def test_the_file_holds_what_python_returns(do, tmp_path) -> None:
    model = ss.EdwardsAnderson(ss.cubic(4), samples=3)
    ladder = ss.sampling.temperature_schedule(0.8, 2.5, 6, "geometric")
    result = ss.temper(model, ladder, sweeps=120, thermalize=20, magnetization_modes=True)
    written = ss.load(do(COMMAND))
    assert same(result, written)
    assert written.finished
    assert same(ss.load(result.save(tmp_path / "saved.h5")), result)
    assert result.best_energy is not None
    assert result.best_spins is not None
    met = np.empty(result.best_energy.shape)  # the lowest energy of each replica, from the series
    energy, replica = (x.reshape(-1, 3, 12) for x in (result.energy, result.permutation))
    np.put_along_axis(met, replica[0], energy[0], axis=1)
    for row, held in zip(energy, replica, strict=True):
        at = np.empty_like(met)
        np.put_along_axis(at, held, row, axis=1)
        np.minimum(met, at, out=met)
    np.testing.assert_array_equal(result.best_energy, met)
    np.testing.assert_array_equal(model.energy(result.best_spins), met.min(axis=1))
    assert result.dataset()["overlap"].dims == ("step", "sample", "copy_pair", "temperature")
    with xarray.open_dataset(do(COMMAND), group="measurements", engine="h5netcdf") as dataset:
        assert dataset["energy"].dims == ("step", "sample", "copy", "temperature")
        np.testing.assert_array_equal(dataset["temperature"], ladder)
        assert dataset["overlap_mode"].dims == ("step", "sample", "copy_pair", "temperature", "axis")
        assert dataset["magnetization_mode"].dims == ("step", "sample", "copy", "temperature", "axis")


@pytest.mark.parametrize(
    ("flags", "there"),
    [
        ("", {"overlap", "link_overlap", "overlap_mode", "magnetization_mode"}),
        pytest.param("--replicas 1", {"magnetization_mode"}, marks=pytest.mark.slow),
        pytest.param("--no-correlations", {"overlap"}, marks=pytest.mark.slow),
        ("--no-correlations --replicas 1", set()),
    ],
)
def test_what_is_measured_can_be_chosen(do, tmp_path, capsys, monkeypatch, flags: str, there: set[str]) -> None:
    path = do(f"temper --size 4 --temperatures 2:3:3g --sweeps 160 --thermalize 0 {flags}")
    read = ss.load(path)
    assert same(ss.load(read.save(tmp_path / "saved.h5")), read)
    with xarray.open_dataset(path, group="measurements", engine="h5netcdf") as dataset:
        assert set(dataset.data_vars) == there | {"energy", "magnetization", "staggered_magnetization"}
        xarray.testing.assert_identical(read.dataset(), dataset.load())
    run(capsys, monkeypatch, "analyze", str(path))
    with xarray.open_dataset(path, group="summary", engine="h5netcdf") as dataset:
        assert ("link_overlap" in dataset) == ("link_overlap" in there)
        assert ("correlation_length_over_L" in dataset) == ("magnetization_mode" in there)
        assert ("overlap_correlation_length_over_L" in dataset) == ("overlap_mode" in there)
    do(f"resume {path} --sweeps 320")
    assert len(ss.load(path).energy) == 32


def test_correlations_do_not_change_the_run() -> None:
    model = ss.EdwardsAnderson(ss.square(4), samples=2)
    one, other = (ss.temper(model, LADDER, 100, 0, correlations=switch) for switch in (True, False))
    np.testing.assert_array_equal(one.energy, other.energy)
    np.testing.assert_array_equal(one.overlap, other.overlap)
    assert one.attributes["config_sha256"] != other.attributes["config_sha256"]
    assert one.has_correlations
    assert not other.has_correlations


def test_correlations_in_a_configuration_file(do, tmp_path) -> None:
    (tmp_path / "run.toml").write_text("[temper]\ncorrelations = false\nsweeps = 100\n")
    config = f"temper --config {tmp_path / 'run.toml'} --size 4 --temperatures 2:3:3g --thermalize 0"
    assert not ss.load(do(config)).has_correlations
    assert ss.load(do(config + " --correlations", "b")).has_correlations


def test_a_graph_has_link_overlaps_and_no_modes() -> None:
    model = Ising(ss.Graph(4, [[0, 1], [1, 2], [2, 3], [0, 2]]), [1, -1, 1, 1])
    result = ss.temper(model, [1.0, 2.0], sweeps=400, thermalize=0)
    assert result.link_overlap.shape == result.overlap.shape
    assert result.overlap_mode.shape[-1] == result.magnetization_mode.shape[-1] == 0
    found = summarize(result).estimates
    assert "link_overlap" in found
    assert "correlation_length_over_L" not in found


def test_an_interrupted_run_is_completed_by_its_command(do, monkeypatch) -> None:
    whole = do(COMMAND, "whole")
    with monkeypatch.context() as patch:
        patch.setattr("spinsim.engine.cpu.AT_ONCE", 1)
        at_row(patch, 5, interrupt)
        part = do(f"{COMMAND} --checkpoint-every 0", "part", status=130)
    assert len(ss.load(part).energy) in (4, 5)
    do(COMMAND, "part")
    assert contents(part, "command", "config") == contents(whole, "command", "config")


def test_show_and_json(do, capsys, monkeypatch) -> None:
    path = do(COMMAND)
    shown = run(capsys, monkeypatch, "show", str(path)).out
    assert re.search(r"Progress       (\d+) of \1 sweeps, begun", shown)
    assert "<q^2>" in shown
    facts = json.loads(run(capsys, monkeypatch, "show", str(path), "--json").out)
    assert facts["planned_steps"] == 12
    again = json.loads(run(capsys, monkeypatch, *COMMAND.split(), "--json").out)
    assert again["swap_rate"] == ss.load(path).swap_rate.tolist()


def test_analyze_agrees_with_the_exact_averages(do, capsys, monkeypatch) -> None:
    """Cumulants and specific heat of one sample, with errors from its own series."""
    path = do("temper --lattice square --size 4 --temperatures 1.5:4:4g --replicas 4 --sweeps 20000 --thermalize 200")
    found = json.loads(run(capsys, monkeypatch, "analyze", str(path), "--json").out)
    model = ss.Ising(ss.square(4))
    spins = (2 * (np.arange(2**16) >> np.arange(16)[:, None] & 1) - 1).astype(np.int8)
    energy, m = model.energy(spins[None])[0], spins.sum(axis=0, dtype=np.int64) / 16
    mode = np.abs(np.tile(np.exp(np.pi / 2 * 1j * np.arange(4)), 4) @ spins) ** 2 / 16**2  # along x
    rows = []
    for k, temperature in enumerate(found["temperature"]):
        weight = np.exp(-(energy - energy.min()) / temperature)
        weight /= weight.sum()
        variance = weight @ energy**2 - (weight @ energy) ** 2
        exact = {
            "energy_per_site": weight @ energy / 16,
            "specific_heat": variance / 16 / temperature**2,
            "abs_magnetization": weight @ np.abs(m),
            "binder_cumulant": 1 - weight @ m**4 / (3 * (weight @ m**2) ** 2),
            "correlation_length_over_L": correlation_length(weight @ m**2, weight @ mode, np.sqrt(2)) / 4,
        }
        for name, value in exact.items():
            rows.append((f"{name}, T = {temperature:.3f}", found[name][k], found[f"{name}_error"][k], float(value)))
    assert_agree(rows)
    with xarray.open_dataset(path, group="summary", engine="h5netcdf") as dataset:
        np.testing.assert_array_equal(dataset["binder_cumulant"], found["binder_cumulant"])
        assert dataset["energy_per_site_tau"].attrs["units"] == "sweeps"


def test_errors_of_a_short_series_cover_the_truth() -> None:
    """One sample, series of 150 autocorrelation times: as many z-scores within 1 as there should be."""
    random, tau, steps, runs = np.random.default_rng(4), 10, 1500, 300
    rho = (2 * tau - 1) / (2 * tau + 1)
    within = []
    model = Ising(ss.square(4))
    noise = random.normal(size=(runs, steps + 200, 2))
    series = np.zeros_like(noise)
    for t in range(1, steps + 200):
        series[:, t] = rho * series[:, t - 1] + np.sqrt(1 - rho**2) * noise[:, t]
    for one in series:
        energy = np.repeat(one[200:, None, None, :1], 2, axis=-1)
        made = TemperResult(
            model=model, temperature=np.array([1.0, 2.0]), sweep=np.arange(1, steps + 1), energy=16 * energy,
            magnetization=energy.astype(np.int64), overlap=np.empty((steps, 1, 0, 2), np.int64),
            permutation=random.permuted(np.tile([[[0, 1]]], (steps, 1, 1, 1)), axis=-1),
            attempts=np.ones((1, 1), np.int64), accepts=np.ones((1, 1), np.int64),
            round_trips=np.ones((1, 2), np.int64),
        )  # fmt: skip
        found = summarize(made).estimates["energy_per_site"]
        if found.trusted[0]:
            within.append(abs(found.value[0]) < found.error[0])
    assert len(within) > runs / 3
    assert 0.58 < np.mean(within) < 0.78


def test_analyze_gives_no_error_that_cannot_be_trusted(do, capsys, monkeypatch) -> None:
    """A frozen run: at the lowest temperature nothing moves."""
    path = do("temper --size 4 --temperatures 0.1:0.2:2g --start up --sweeps 2000 --thermalize 0")
    shown = run(capsys, monkeypatch, "analyze", str(path)).out
    assert "(?): a value without an error. One sample has errors if its run spans 64" in shown
    assert json.loads(run(capsys, monkeypatch, "analyze", str(path), "--json").out)["energy_per_site_error"][0] is None


def test_analyze_refuses_what_it_cannot_analyse(do, capsys, monkeypatch) -> None:
    annealed = do("anneal --size 4 --steps 3 --sweeps 2 --replicas 4", "b")
    assert "give the file of a temper run" in run(capsys, monkeypatch, "analyze", str(annealed)).err
    short = do("temper --size 4 --temperatures 1:2:2g --sweeps 100 --thermalize 0", "c")
    assert "too few to analyse" in run(capsys, monkeypatch, "analyze", str(short)).err


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        ("--temperatures 2:1:4g", "do not rise"),
        ("--temperatures 1:x:4", "cannot be read"),
        ("--temperatures 1,1,2", "do not rise"),
        ("--temperatures 1:2:4g --measure-every 7 --sweeps 100", "not a multiple"),
        ("--temperatures 1:2:4g --thermalize 15 --swap-every 10", "not a multiple"),
        ("--temperatures 1:2:4g --replicas 0", "out of range"),
        ("--temperatures=-1:2:4", "not all above 0"),
    ],
)
def test_bad_ladders_and_times(capsys, monkeypatch, tmp_path, flags: str, told: str) -> None:
    monkeypatch.chdir(tmp_path)
    outcome = run(capsys, monkeypatch, "temper", *flags.split())
    assert outcome.status == 2
    assert told in outcome.err
    assert not list(tmp_path.iterdir())
