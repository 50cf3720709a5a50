"""Parallel tempering: exact averages, the exchange itself, its files."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import partial

import numpy as np
import pytest
import xarray
from exact import assert_agree, enumerate_states
from harness import contents, run
from scipy import stats

import spinsim as ss
from spinsim import store
from spinsim.analysis.autocorrelation import integrated_time
from spinsim.analysis.summary import summarize
from spinsim.engine import Dynamics, Engine, create_engine
from spinsim.engine.ladder.ladder import holders
from spinsim.engine.protocols import LadderMeasurement
from spinsim.jobs.temper.result import TemperResult, load_temper
from spinsim.model.ising import Ising
from spinsim.observables.formulas import correlation_length

LADDER = np.geomspace(0.3, 3.0, 12)
NISHIMORI = 1 / np.arctanh(0.5)  # +-J with three of four bonds positive: E / N = -d / 2


def mean_and_error(series: np.ndarray) -> tuple[float, float]:
    """Of independent chains (steps, chains)."""
    found = integrated_time(series, chain_axis=1)
    return float(found.mean), float(found.mean_error)


@pytest.mark.parametrize("couplings", ["pm-j", "gaussian"])
def test_against_enumeration(device: str, couplings: str) -> None:
    """Energies, moments, modes and link overlaps of eight samples at twelve temperatures; the z-scores are normal."""
    model = ss.EdwardsAnderson(ss.square(4), samples=8, couplings=couplings, seed=21)
    result = ss.temper(
        model, LADDER, sweeps=12_000, thermalize=1000, replicas=4, measure_every=4, seed=3, device=device
    )
    m, q = result.magnetization / model.sites, result.overlap[:, :, [0, 5]] / model.sites  # pairs (0, 1) and (2, 3)
    mode = result.magnetization_mode[..., 0] / model.sites**2
    overlap_mode = result.overlap_mode[..., 1][:, :, [0, 5]] / model.sites**2
    links = result.link_overlap[:, :, [0, 5]] / model.bonds
    rows = []
    for k in range(model.samples):
        for t, temperature in enumerate(LADDER):
            exact = enumerate_states(model, temperature, k)
            for name, series, value in (
                ("E/N", result.energy[:, k, :, t] / model.sites, exact.energy),
                ("m^2", m[:, k, :, t] ** 2, exact.magnetization_squared),
                ("q^2", q[:, k, :, t] ** 2, exact.overlap_squared),
                ("|m(k)|^2", mode[:, k, :, t], exact.magnetization_mode),
                ("|q(k)|^2", overlap_mode[:, k, :, t], exact.overlap_mode),
                ("q_link", links[:, k, :, t], exact.link_overlap),
            ):
                rows.append((f"{couplings} {k}, T = {temperature:.3f}: {name}", *mean_and_error(series), value))
    scores = [(value - exact) / error for _, value, error, exact in rows if error > 1e-9]
    assert stats.kstest(scores, "norm").pvalue > 0.001
    assert_agree([row for row in rows if row[2] > 1e-9])
    assert len(scores) > 0.95 * len(rows)


def nishimori(lattice: ss.Lattice, samples: int, sweeps: int, device: str) -> tuple[float, float]:
    """Energy per site of the disorder average and its error."""
    model = ss.EdwardsAnderson(lattice, samples=samples, seed=5, bond_fraction=0.75)
    ladder = NISHIMORI * np.geomspace(1, 2, 8)
    result = ss.temper(model, ladder, sweeps, thermalize=sweeps // 2, device=device)
    energy = result.energy[..., 0].mean(axis=(0, 2)) / model.sites
    return float(energy.mean()), float(energy.std(ddof=1) / np.sqrt(samples))


def test_nishimori_line(device: str) -> None:
    assert_agree([("2D, L = 12", *nishimori(ss.square(12), 40, 1000, device), -1.0)], largest_error=0.02)


@pytest.mark.slow
@pytest.mark.parametrize(("lattice", "exact"), [(ss.square(12), -1.0), (ss.cubic(6), -1.5)], ids=["2D", "3D"])
def test_nishimori_line_of_many_samples(device: str, lattice: ss.Lattice, exact: float) -> None:
    assert_agree([(str(lattice), *nishimori(lattice, 200, 4000, device), exact)], largest_error=0.01)


def state(engine: Engine) -> list[np.ndarray]:
    spins = [engine.spins(k, r) for k in range(engine.model.samples) for r in range(engine.replicas)]
    return [*spins, *engine.begin_exchange()(), engine.begin_measurement(False)().correlations.overlap]


@pytest.mark.parametrize(
    "model",
    [
        ss.EdwardsAnderson(ss.cubic(4), samples=2, seed=1),
        ss.EdwardsAnderson(ss.square(5, 3, periodic=False), seed=1, field=0.3),
        ss.EdwardsAnderson(ss.square(4), couplings="gaussian", seed=1),
        ss.EdwardsAnderson(ss.square(256, 2), seed=1),
    ],
    ids=["pm-j", "field", "gaussian", "site-packed"],
)
def test_parts_make_the_whole(device: str, model: Ising) -> None:
    whole, parts = (create_engine(model, 9, Dynamics(seed=8), device) for _ in range(2))
    for engine in (whole, parts):
        engine.set_ladder(1 / np.array([0.9, 1.3, 2.0]), copies=3)
    whole.temper(7, 2)
    for rounds in (1, 4, 2):
        parts.temper(rounds, 2)
    for one, other in zip(state(whole), state(parts), strict=True):
        np.testing.assert_array_equal(one, other)


def check_frames(
    monkeypatch: pytest.MonkeyPatch, device: str, model: Ising, times: ss.sampling.Times, sweeps: list[int]
) -> None:
    """Frames are those of an engine asked one by one, whatever the sweeps of a portion, and after each pause."""
    from spinsim.sampling import portions

    ladder = np.array([0.9, 1.3, 2.0])

    def begin() -> Engine:
        return create_engine(model, 6, Dynamics(seed=8), device)

    slow = create_engine(model, 6, Dynamics(seed=8), "cpu")
    slow.set_ladder(1 / ladder, 2)
    slow.temper(times.thermalize // times.swap_every, times.swap_every)
    expected = []
    for _ in range(times.measurements):
        slow.temper(times.measure_every // times.swap_every, times.swap_every)
        expected.append(numbers(slow.begin_measurement()()))
    for portion in sweeps:
        monkeypatch.setitem(portions.UPDATES, device, portion * model.sites * model.samples * 6)
        found, pauses, engine = [], [], begin()
        answers = iter([False, True, False, True])
        for frame in ss.sampling.tempering(engine, ladder, times, 2, pause=partial(next, answers, False)):
            if frame is None:
                pauses.append((len(found), engine.snapshot()))
            else:
                assert (frame.step, frame.sweep) == (len(found), (len(found) + 1) * times.measure_every)
                found.append(numbers(frame))
        for first, saved in pauses:
            resumed = begin()
            frames = ss.sampling.tempering(resumed, ladder, times, 2)
            resumed.restore(saved)
            found[first:] = [numbers(frame) for frame in frames if frame is not None]
            np.testing.assert_equal(found, expected)
        np.testing.assert_equal(engine.snapshot(), slow.snapshot())


def numbers(m: ss.sampling.TemperFrame | LadderMeasurement) -> list[np.ndarray]:
    correlations = m.correlations if isinstance(m, LadderMeasurement) else (m.overlap, m.link_overlap)
    return [m.energy, m.magnetization, m.holder, *m.exchange, *correlations[:2], m.spins(0, 4)]


@pytest.mark.parametrize("couplings", ["pm-j", "gaussian"])
@pytest.mark.parametrize("times", [(0, 21, 3, 1), (6, 24, 6, 2)])
def test_portions_and_pauses_change_nothing(device: str, monkeypatch, couplings, times) -> None:
    model = ss.EdwardsAnderson(ss.square(4), samples=2, couplings=couplings, seed=1)
    check_frames(monkeypatch, device, model, ss.sampling.Times(*times), [4, 7, 1000])


def check_room(engine: Engine) -> None:
    with pytest.raises(ss.InputError, match=r"keeping the configurations of measurements under way needs .* are "):
        ss.sampling.tempering(engine, [0.9, 1.3, 2.0], ss.sampling.Times(100, 100), copies=2)
    assert engine.half_sweep == 0


@pytest.mark.parametrize("couplings", ["pm-j", "gaussian"])
def test_measurements_without_room_are_refused_before_the_first_sweep(monkeypatch, couplings: str) -> None:
    engine = create_engine(ss.EdwardsAnderson(ss.square(4), couplings=couplings), 6, Dynamics(), "cpu")
    monkeypatch.setattr("spinsim.memory.available_bytes", lambda: 3 * 16 * 6)
    check_room(engine)


def test_a_large_lattice_is_swept_in_parts_with_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    model = ss.EdwardsAnderson(ss.cubic(4), samples=2, seed=1)
    engines = []
    for split in (2**14, 1):
        monkeypatch.setattr("spinsim.engine.replica_packed.cpu.SPLIT_SITES", split)
        engine = create_engine(model, 10, Dynamics(seed=8), "cpu", threads=6)
        engine.set_ladder(1 / np.geomspace(0.8, 2.0, 5), copies=2)
        engine.temper(6, 2)
        engines.append(engine)
    for one, other in zip(*map(state, engines), strict=True):
        np.testing.assert_array_equal(one, other)


def test_unpacked_rounds_in_one_call_have_the_bits_of_rounds_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks of 32 replicas in the first engine, of 128 in the second, and a last one that is not full."""
    model = ss.EdwardsAnderson(ss.cubic(3), samples=2, couplings="gaussian", seed=1, field=0.2)
    engines = []
    for long_round, threads in ((0, 6), (2**60, 6), (0, 1)):
        monkeypatch.setattr("spinsim.engine.unpacked.cpu.LONG_ROUND", long_round)
        engine = create_engine(model, 135, Dynamics(seed=8), "cpu", threads=threads)
        engine.set_ladder(1 / np.geomspace(0.3, 2.0, 45), copies=3)
        engine.temper(3, 2)
        engine.temper(4, 1)
        engine.sweep(1)  # at the temperatures of the last exchange
        engines.append(engine)
    for others in engines[1:]:
        for one, other in zip(state(engines[0]), state(others), strict=True):
            np.testing.assert_array_equal(one, other)


def test_overlaps_and_observables_belong_to_their_temperatures(device: str) -> None:
    """What a frame says, from the configurations themselves."""
    model = ss.EdwardsAnderson(ss.square(6), samples=2, seed=4)
    engine = create_engine(model, 70 * 3, Dynamics(seed=2), device)  # copies lie across blocks of 128 replicas
    ladder = np.geomspace(0.6, 2.5, 70)
    *_, frame = ss.sampling.tempering(engine, ladder, ss.sampling.Times(20, 30, 10), copies=3)
    spins = np.stack([[engine.spins(k, r) for r in range(210)] for k in range(2)]).astype(np.int64)
    sorted_spins = np.take_along_axis(spins, frame.holder.reshape(2, -1, 1), axis=1).reshape(2, 3, 70, -1)
    np.testing.assert_array_equal(frame.magnetization, sorted_spins.sum(axis=-1))
    by_site = np.moveaxis(sorted_spins.reshape(2, 210, -1), 1, -1)
    np.testing.assert_array_equal(frame.energy.reshape(2, -1), model.energy(by_site.astype(np.int8)))
    pairs = [(0, 1), (0, 2), (1, 2)]
    overlaps = np.stack([(sorted_spins[:, a] * sorted_spins[:, b]).sum(axis=-1) for a, b in pairs], axis=1)
    np.testing.assert_array_equal(frame.overlap, overlaps)


def test_equal_energies_mix_uniformly(device: str) -> None:
    """Without couplings every exchange is accepted: each replica visits each temperature equally often."""
    model = Ising(ss.square(4), np.zeros(32))
    ladder = np.geomspace(1.0, 4.0, 6)
    result = ss.temper(model, ladder, sweeps=2400, thermalize=0, measure_every=1, device=device)
    visits = np.array([(result.permutation[:, 0] == r).sum(axis=(0, 1)) for r in range(12)])
    assert stats.chisquare(visits, axis=1).pvalue.min() > 0.01
    assert (result.attempts == result.accepts).all()
    assert (result.round_trips > 150).all()


def test_exchange_rates_are_those_of_the_energies() -> None:
    """Accepted exchanges of a pair: the mean of min(1, exp(dbeta dE)) over what was met."""
    model = ss.EdwardsAnderson(ss.square(4), seed=2)
    ladder = np.array([0.7, 1.0, 1.5])
    result = ss.temper(model, ladder, sweeps=40_000, thermalize=100, replicas=1, measure_every=1)
    energy = result.energy[:, 0, 0]
    step = -np.diff(1 / ladder)
    rate = np.minimum(1, np.exp(-step * np.diff(energy, axis=1)))
    rows = []
    for pair in range(2):
        mean, error = mean_and_error(rate[:, pair : pair + 1])
        rows.append((f"pair {pair}", float(result.swap_rate[pair]), 2 * error, mean))
    assert_agree(rows)


def test_every_replica_is_at_one_temperature() -> None:
    model = ss.EdwardsAnderson(ss.square(4), samples=3, seed=2)
    result = ss.temper(model, LADDER, sweeps=100, thermalize=0)
    found = np.sort(result.permutation, axis=-1) - np.arange(12)
    assert (found == np.array([0, 12])[:, None]).all()
    place = np.tile(np.arange(12, dtype=np.int32)[::-1], (3, 2))
    np.testing.assert_array_equal(holders(place, 2)[0, 1], np.arange(12)[::-1] + 12)


COMMAND = (
    "temper --lattice cubic --size 4 --couplings pm-j --samples 3 --temperatures 0.8:2.5:6g --sweeps 120 "
    "--thermalize 20"
)


def same(one: TemperResult, other: TemperResult) -> bool:
    names = ("temperature", "sweep", "energy", "magnetization", "overlap", "link_overlap", "overlap_mode",
             "magnetization_mode", "permutation", "attempts", "round_trips")  # fmt: skip
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in names)


def test_the_file_holds_what_python_returns(do, tmp_path) -> None:
    model = ss.EdwardsAnderson(ss.cubic(4), samples=3)
    ladder = ss.sampling.temperature_schedule(0.8, 2.5, 6, "geometric")
    result = ss.temper(model, ladder, sweeps=120, thermalize=20)
    written = load_temper(do(COMMAND))
    assert same(result, written)
    assert written.finished
    assert same(load_temper(result.save(tmp_path / "saved.h5")), result)
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
        ("--replicas 1", {"magnetization_mode"}),
        ("--no-correlations", {"overlap"}),
        ("--no-correlations --replicas 1", set()),
    ],
)
def test_what_is_measured_can_be_chosen(do, tmp_path, capsys, monkeypatch, flags: str, there: set[str]) -> None:
    path = do(f"temper --size 4 --temperatures 2:3:3g --sweeps 160 --thermalize 0 {flags}")
    read = load_temper(path)
    assert same(load_temper(read.save(tmp_path / "saved.h5")), read)
    with xarray.open_dataset(path, group="measurements", engine="h5netcdf") as dataset:
        assert set(dataset.data_vars) == there | {"energy", "magnetization"}
        xarray.testing.assert_identical(read.dataset(), dataset.load())
    run(capsys, monkeypatch, "analyze", str(path))
    with xarray.open_dataset(path, group="summary", engine="h5netcdf") as dataset:
        assert ("link_overlap" in dataset) == ("link_overlap" in there)
        assert ("correlation_length_over_L" in dataset) == ("magnetization_mode" in there)
        assert ("overlap_correlation_length_over_L" in dataset) == ("overlap_mode" in there)
    do(f"resume {path} --sweeps 320")
    assert len(load_temper(path).energy) == 32


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
    assert not load_temper(do(config)).has_correlations
    assert load_temper(do(config + " --correlations", "b")).has_correlations


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
    write = store.RunFile.write

    def stop(self, row) -> None:
        if row["step"] == 5:
            raise KeyboardInterrupt
        write(self, row)

    with monkeypatch.context() as patch:
        patch.setattr(store.RunFile, "write", stop)
        part = do(COMMAND, "part", status=130)
    assert len(load_temper(part).energy) == 5
    do(COMMAND, "part")
    assert contents(part, "command", "config") == contents(whole, "command", "config")


def test_show_and_json(do, capsys, monkeypatch) -> None:
    path = do(COMMAND)
    shown = run(capsys, monkeypatch, "show", str(path)).out
    assert "12 of 12 steps" in shown
    assert "<q^2>" in shown
    facts = json.loads(run(capsys, monkeypatch, "show", str(path), "--json").out)
    assert facts["planned_steps"] == 12
    again = json.loads(run(capsys, monkeypatch, *COMMAND.split(), "--json").out)
    assert again["swap_rate"] == load_temper(path).swap_rate.tolist()


def test_analyze_agrees_with_the_exact_averages(do, capsys, monkeypatch) -> None:
    """Cumulants and specific heat of one sample, with errors from its own series."""
    path = do("temper --lattice square --size 4 --temperatures 1.5:4:4g --replicas 4 --sweeps 40000 --thermalize 200")
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
    """One sample, series of 50 autocorrelation times: as many z-scores within 1 as there should be."""
    random, tau, steps, runs = np.random.default_rng(4), 10, 500, 300
    rho = (2 * tau - 1) / (2 * tau + 1)
    within = []
    model = Ising(ss.square(4))
    for _ in range(runs):
        noise = random.normal(size=(steps + 200, 2))
        series = np.zeros_like(noise)
        for t in range(1, len(noise)):
            series[t] = rho * series[t - 1] + np.sqrt(1 - rho**2) * noise[t]
        energy = np.repeat(series[200:, None, None, :1], 2, axis=-1)
        made = TemperResult(
            model=model, temperature=np.array([1.0, 2.0]), sweep=np.arange(1, steps + 1), energy=16 * energy,
            magnetization=energy.astype(np.int64), overlap=np.empty((steps, 1, 0, 2), np.int64),
            permutation=np.empty((steps, 1, 1, 2), np.int64), attempts=np.ones((1, 1), np.int64),
            accepts=np.ones((1, 1), np.int64), round_trips=np.ones((1, 2), np.int64),
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
    assert "(?): no error can be given, as the series spans fewer than 20 autocorrelation" in shown
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


GROW = """
import resource, sys
import numpy as np
from pathlib import Path
import spinsim as ss
from spinsim import store
from spinsim.jobs.temper.layout import temper_layout

model = ss.EdwardsAnderson(ss.cubic(8), samples=100)
layout = temper_layout(model, 2, np.geomspace(0.7, 2, 32))
store.create(Path("long.h5"), model, layout, 1_000_000, {"job": "temper", "config": "{}"})
row = {series.name: np.zeros(layout.shape(series), series.dtype) for series in layout.series}
room = []
with store.open_to_append(Path("long.h5")) as file:
    for step in range(int(sys.argv[1])):
        file.write(row | {"step": step})
        room.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
print(layout.row_bytes, Path("long.h5").stat().st_blocks * 512, room[len(room) // 2], room[-1])
"""


@pytest.mark.parametrize("rows", [600, pytest.param(20_000, marks=pytest.mark.slow)])
def test_rows_take_disk_and_no_memory(tmp_path, rows: int) -> None:
    """A million measurements of 32 temperatures x 100 samples are planned, some are written: 358 kB each."""
    pytest.importorskip("resource")
    done = subprocess.run(
        [sys.executable, "-c", GROW, str(rows)], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    row_bytes, disk, half, end = map(int, done.stdout.split())
    assert row_bytes == 358_424
    assert disk < rows * row_bytes + 2**24
    assert end - half < 2**14  # KiB
