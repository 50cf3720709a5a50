"""Placing temperatures: equal exchange rates, the same ladder everywhere, its place in the file."""

from __future__ import annotations

import signal
import time

import h5py
import numpy as np
import pytest
from harness import contents, finish, run, spinsim
from scipy import special

import spinsim as ss
from spinsim import rng
from spinsim.engine import Dynamics
from spinsim.sampling import Range, place
from spinsim.sampling.placement import ITERATIONS, MOST_SAMPLES, RATE, _distance, _erfc, exchange_rates, read_range

COMMAND = (
    "temper --lattice cubic --size 4 --couplings pm-j --samples 3 --temperatures auto:0.6:2.4 --thermalize 20 --seed 5"
)
MODELS = {
    "2D": (lambda: ss.Ising(ss.square(8)), "auto:1.5:4"),
    "2D, ten": (lambda: ss.Ising(ss.square(8)), "auto:1.5:4:10"),
    "pm-j": (lambda: ss.EdwardsAnderson(ss.cubic(4), samples=20, seed=2), "auto:0.5:2.5"),
    "gaussian": (lambda: ss.EdwardsAnderson(ss.square(4), samples=2, couplings="gaussian"), "auto:0.2:2:6"),
}
UNLIKE = ("2D", "2D, ten", "pm-j")  # of unlike rates on a geometric ladder


@pytest.mark.parametrize(("make", "text"), [MODELS[name] for name in UNLIKE], ids=UNLIKE)
def test_all_neighbours_exchange_equally_often(device: str, make, text: str) -> None:
    result = ss.temper(make(), text, 8000, 1000, measure_every=1000, correlations=False, device=device)
    rates, ladder = result.swap_rate, result.temperature
    wanted = read_range(text)
    assert (ladder[0], ladder[-1]) == (wanted.low, wanted.high)
    assert rates.max() / rates.min() < 1.35
    if wanted.count is None:
        assert RATE - 0.05 < rates.min() < RATE + 0.15
    else:
        assert len(ladder) == wanted.count
    geometric = ss.sampling.temperature_schedule(*ladder[[0, -1]], len(ladder), "geometric")
    before = exchange_spread(make(), geometric)
    assert rates.max() / rates.min() < 0.8 * before


def exchange_spread(model: ss.Ising, ladder: np.ndarray) -> float:
    """Largest over smallest exchange rate of a ladder."""
    rates = ss.temper(model, ladder, 4000, 1000, measure_every=1000, correlations=False).swap_rate
    return float(rates.max() / rates.min())


@pytest.mark.parametrize(("make", "text"), MODELS.values(), ids=MODELS)
def test_the_ladder_does_not_depend_on_threads(make, text: str) -> None:
    one, two = (place(make(), read_range(text), Dynamics(seed=3), "cpu", threads) for threads in (1, 2))
    for a, b in zip((one.ladder, *one.history), (two.ladder, *two.history), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.gpu
@pytest.mark.parametrize(("make", "text"), MODELS.values(), ids=MODELS)
def test_the_ladder_is_the_same_on_a_gpu(make, text: str) -> None:
    cpu, cuda = (place(make(), read_range(text), Dynamics(seed=3), device) for device in ("cpu", "cuda"))
    for a, b in zip((cpu.ladder, *cpu.history), (cuda.ladder, *cuda.history), strict=True):
        np.testing.assert_array_equal(a, b)


def test_the_same_ladder_from_flags_toml_and_python(do, tmp_path) -> None:
    flags = ss.load(do(f"{COMMAND} --sweeps 100 --threads 1"))
    (tmp_path / "c.toml").write_text(
        "[model]\nlattice = 'cubic'\nsize = 4\ncouplings = 'pm-j'\nsamples = 3\n[run]\nseed = 5\nthreads = 2\n"
        "[temper]\ntemperatures = 'auto:0.6:2.4'\nthermalize = 20\nsweeps = 100\n"
    )
    toml = ss.load(do(f"temper --config {tmp_path / 'c.toml'}", "b"))
    model = ss.EdwardsAnderson(ss.cubic(4), samples=3)
    python = ss.temper(model, "auto:0.6:2.4", sweeps=100, thermalize=20, seed=5)
    saved = ss.load(python.save(tmp_path / "saved.h5"))
    given = ss.temper(model, flags.temperature, sweeps=100, thermalize=20, seed=5)
    assert flags.attributes["config_sha256"] == toml.attributes["config_sha256"]
    assert given.placement is None
    for other in (toml, python, saved, given):  # random numbers of the run itself are those of a given ladder
        np.testing.assert_array_equal(other.temperature, flags.temperature)
        np.testing.assert_array_equal(other.energy, flags.energy)
    for other in (toml, python, saved):
        assert flags.placement is not None
        assert other.placement is not None
        for a, b in zip(other.placement, flags.placement, strict=True):
            np.testing.assert_array_equal(a, b)


def test_the_file_holds_the_pre_run(do, capsys, monkeypatch) -> None:
    path = do(f"{COMMAND} --sweeps 100")
    with h5py.File(path) as file:
        ladders, rates = file["placement/temperature"], file["placement/swap_rate"]
        assert ladders.dims[0][0].name == "/iteration"
        assert ladders.attrs["units"] == "coupling unit / k_B"
        assert len(ladders) == len(ITERATIONS) + 1
        for ladder, rate in zip(ladders[...], rates[...], strict=True):
            assert np.isfinite(ladder).sum() == np.isfinite(rate).sum() + 1
            assert (ladder[0], np.nanmax(ladder)) == (0.6, 2.4)
    shown = run(capsys, monkeypatch, "show", str(path)).out
    assert "placed; exchanges in the pre-run" in shown
    assert "auto:0.6:2.4" in shown


def test_the_pre_run_is_never_repeated(do, tmp_path, monkeypatch, capsys) -> None:
    """A run cut short and one made longer take their temperatures from their files."""
    whole = do(f"{COMMAND} --sweeps 200", "whole")
    part = do(f"{COMMAND} --sweeps 100", "part")

    def fail(*arguments: object) -> None:
        raise AssertionError

    monkeypatch.setattr("spinsim.jobs.ladder.run.place", fail)
    assert run(capsys, monkeypatch, "resume", part, "--sweeps", 200, "--quiet").status == 0
    own = ("command", "config", "history")
    assert contents(part, *own) == contents(whole, *own)


@pytest.mark.system
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL here")
def test_a_killed_run_keeps_its_ladder(do, tmp_path) -> None:
    line = f"{COMMAND} --sweeps 20000 --quiet --checkpoint-every 0.1"
    whole = do(line, "whole")
    path = tmp_path / "part.h5"
    process = spinsim(tmp_path, *line.split(), "--out", path.name)
    while not path.exists():
        assert process.poll() is None
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    outcome = finish(spinsim(tmp_path, *line.split(), "--out", path.name))
    assert outcome.status == 0, outcome
    assert contents(path, "command", "config") == contents(whole, "command", "config")


def test_an_interrupted_pre_run_leaves_nothing(tmp_path, capsys, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("spinsim.run.plan.Saving.asked_to_stop", True, raising=False)
    monkeypatch.setattr("spinsim.run.plan.Saving.__init__", lambda self, every: None)
    assert run(capsys, monkeypatch, *COMMAND.split()).status == 130
    assert not list(tmp_path.iterdir())


def test_many_samples_are_placed_by_the_first_ones() -> None:
    many = ss.EdwardsAnderson(ss.square(6), samples=MOST_SAMPLES + 5, seed=1)
    few = ss.EdwardsAnderson(ss.square(6), samples=MOST_SAMPLES, seed=1)
    one, other = (place(model, Range(0.6, 2.0), Dynamics(), "cpu") for model in (many, few))
    np.testing.assert_array_equal(one.ladder, other.ladder)


def test_too_many_temperatures_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spinsim.sampling.placement.MOST_TEMPERATURES", 4)
    with pytest.raises(ss.InputError, match=r"auto:1.5:4 would be about \d, more than 4: .* or give auto:1.5:4:COUNT"):
        place(ss.Ising(ss.square(8)), Range(1.5, 4.0), Dynamics(), "cpu")


def test_exchange_rates_are_the_mean_over_all_pairs_of_a_short_series() -> None:
    """Shifted by each of its eight steps, a series of eight is paired with itself in every way."""
    energy = np.random.default_rng(3).integers(-20, 0, (8, 2, 3, 4)).astype(np.float64)
    ladder = np.array([0.5, 0.8, 1.4, 3.0])
    found = exchange_rates(-np.diff(1 / ladder)[:, None], energy[..., None])
    for t, step in enumerate(-np.diff(1 / ladder)):
        pairs = [
            np.minimum(1, np.exp(-step * np.subtract.outer(energy[:, k, :, t + 1], energy[:, k, :, t]))).mean()
            for k in range(2)
        ]
        assert found[t] == pytest.approx(np.mean(pairs), abs=1e-9)


def test_distances_invert_the_complementary_error_function() -> None:
    x = np.linspace(0, 4, 50)
    np.testing.assert_allclose([_erfc(value) for value in x], special.erfc(x), atol=2e-7)
    for rate in (0.02, 0.3, 0.9, 0.999):
        assert _erfc(_distance(rate) / 2) == pytest.approx(rate, abs=1e-9)
    assert _distance(1.0) == 0


def test_seeds_of_pre_runs_are_their_own() -> None:
    seeds = [rng.derived_seed(seed, number) for seed in (0, 1, 2**64 - 1) for number in range(5)]
    assert len({*seeds, 0, 1, 2**64 - 1}) == 18
    words = rng.draw(7, rng.Stream.PRE_RUN, group=2)[:2, ...].tolist()
    assert rng.derived_seed(7, 2) == words[1] << 32 | words[0]
