"""Runs out of equilibrium: protocols, what is measured on the way, stops, and figures."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from harness import at_row, contents, interrupt, one_sentence, run

import spinsim as ss
from spinsim.acceptance import acceptance, inverse
from spinsim.analysis.aging import coherence_lengths, mean_of
from spinsim.sampling.evolving import Leg, read_protocol, read_schedule

GLASS = ss.EdwardsAnderson(ss.square(4, 6), samples=3, seed=5)
PROTOCOL = "T=0.8 for 12; T=0.5 h=0.25 for 6; T=0.5:0 for 4; T=0 h=0 for 5"
LINE = (
    "evolve --size 4x6 --couplings pm-j --samples 3 --replicas 5 --waiting 3,10 --times 1,3 --seed 4 --quiet "
    "--checkpoint-every 0 --device cpu --protocol"
)


def evolved(**given: Any) -> ss.EvolveResult:
    how: dict[str, Any] = {"protocol": PROTOCOL, "waiting": [3, 10], "times": [1, 3], "replicas": 5, "seed": 4}
    return ss.evolve(GLASS, **how | {"device": "cpu", "threads": 1} | given)


@pytest.fixture(scope="module")
def result() -> ss.EvolveResult:
    return evolved()


def test_a_protocol_is_stages_of_constant_conditions_and_ramps() -> None:
    legs = read_protocol("T=2 for 10; T=2:1 h=0:0.5 for 1e1;T=0 for 3;")
    ramp = [Leg(11 + k, 2 - k / 9, k / 18, k == 9) for k in range(10)]
    assert legs[0] == Leg(10, 2, 0)
    np.testing.assert_allclose(legs[1:11], ramp, rtol=1e-14)
    assert legs[11] == Leg(23, 0, 0.5)  # the field stays
    long = read_protocol("T=3:1 for 2500")
    assert (len(long), long[-1].stop, long[0].temperature, long[-1].temperature) == (1000, 2500, 3, 1)
    assert {b.stop - a.stop for a, b in pairwise(long)} == {2, 3}


def test_measurements_are_at_even_times_after_each_origin() -> None:
    times = read_schedule("T=1 for 1000; T=2 for 500", "20", None).measured
    assert {0, 2, 4, 20, 22, 24, 120, 1000, 1002, 1100, 1500} <= set(times.tolist())
    assert times.max() == 1500
    assert not (times % 2).any()


@pytest.mark.parametrize(
    ("protocol", "words"),
    [
        *(
            (text, "cannot be read: write such as")
            for text in (
                "T=1",
                "h=1 for 4",
                "T=1 B=2 for 4",
                "T=x for 4",
                "T=1 T=2 for 4",
                "T=1 for 2.5",
                "T=1 for inf",
                "T=1 h=inf for 4",
                "T=1 for 0",
                "T=1 for -2",
                "T=nan for 2",
            )
        ),
        ("T=-1 for 4", "temperature -1 is not allowed: give 0 or a positive"),
        ("", "has no stage"),
        ("T=1 for 9; T=1e30 for 9", "too high to mix"),
    ],
)
def test_bad_protocols_are_refused(protocol: str, words: str) -> None:
    with pytest.raises(ss.InputError, match=words):
        evolved(protocol=protocol, waiting=None)


def test_no_flip_costs_energy_at_zero_temperature() -> None:
    for quantum in (1.0, 2.0**-40, 1e-80):
        always, threshold = acceptance(np.array([-1, 0, 1]), float(inverse(0, quantum)) * quantum, 0.75)
        assert always.tolist() == [True, False, False]
        assert threshold.tolist() == [0, 3 * 2**62, 0]
    frozen = ss.evolve(GLASS, "T=0 for 30", times=np.arange(30), replicas=20, device="cpu")
    assert (np.diff(frozen.energy, axis=0) <= 0).all()


def test_a_run_is_that_of_a_simulation_to_the_bit(result: ss.EvolveResult) -> None:
    """Energies, C(t, t_w) and C4(r) as a loop over plain spins finds them."""
    loop = ss.Simulation(GLASS, 0.8, replicas=5, seed=4, device="cpu")
    legs, before = (read_protocol(PROTOCOL)), dict[int, Any]()
    for k, sweep in enumerate(result.sweep.tolist()):
        while loop.sweeps < sweep:
            leg = next(one for one in legs if one.stop > loop.sweeps)
            loop.field, loop.temperature = leg.field, leg.temperature
            loop.sweep(1)
        spins = loop.spins().astype(int)
        np.testing.assert_array_equal(result.energy[k], loop.energy)
        np.testing.assert_array_equal(result.magnetization[k], spins.sum(axis=2))
        for number, waiting in enumerate((3, 10)):
            if sweep == waiting:
                before[number] = spins
            expected = (spins * before[number]).mean(axis=2) if number in before else np.full((3, 5), np.nan)
            np.testing.assert_allclose(result.correlation[k, ..., number], expected, rtol=0, atol=1e-15)
        q = (spins * np.roll(spins, -1, axis=1)).reshape(3, 5, 6, 4)  # the longest axis is that of y
        c4 = [(q * np.roll(q, -r, axis=2)).mean(axis=(1, 2, 3)) for r in range(4)]
        np.testing.assert_allclose(result.overlap_correlation[k, :, 0], np.transpose(c4), rtol=0, atol=1e-14)
    assert result.field.tolist() == [next(x.field for x in legs if x.stop >= s) for s in result.sweep]
    assert result.sweep[-1] == 27


@pytest.mark.parametrize("name", ["waiting", "times"])
def test_times_beyond_the_protocol_are_refused(name: str) -> None:
    with pytest.raises(ss.InputError, match=rf"{name} 9 is beyond the 8 sweeps of the protocol: give a smaller"):
        ss.evolve(ss.Ising(ss.square(4)), "T=2 for 8", **{name: [4, 9]})


def test_a_single_sample_has_independent_groups_of_replicas() -> None:
    run = ss.evolve(ss.Ising(ss.square(4)), "T=2 for 8", times=[4], replicas=70, device="cpu", threads=1)
    assert run.overlap_correlation.shape == (3, 1, 16, 3)
    assert np.isfinite(run.coherence_lengths[0].error[1:]).all()
    alone = ss.evolve(ss.Ising(ss.square(4)), "T=2 for 8", replicas=1, device="cpu", threads=1)
    with pytest.raises(ss.InputError, match=r"has no C4\(r\): give replicas 2"):
        _ = alone.coherence_lengths
    assert np.isnan(mean_of(alone.energy).error).all()


def test_coherence_lengths_of_known_correlations() -> None:
    """Of exp(-r / xi) the integrals are k! xi^(k + 1), so that xi_12 = 2 xi and xi_23 = 3 xi."""
    r, noise = np.arange(200), 1 + 1e-3 * np.array([-1, 0, 1, 0])
    c4 = np.exp(-r / 6.0) * noise[:, None, None]
    found = coherence_lengths(c4[None])
    assert found[0].value[0] == pytest.approx(12, rel=3e-3)
    assert found[1].value[0] == pytest.approx(18, rel=3e-3)
    assert found[0].error[0] == pytest.approx(0, abs=1e-12)  # a common factor has no effect


@pytest.mark.parametrize(("a", "b"), [(0.4, 1.5), (0.0, 1.0), (0.0, 2.0), (0.8, 1.2)])
def test_lengths_of_noisy_correlations_have_the_tail(a: float, b: float) -> None:
    """C4(r) = r^-a exp(-(r / 6)^b) lost in noise beyond r = 12 to 18; sums that end there are 2 to 29 % too small."""
    r, rng = np.arange(40), np.random.default_rng(3)
    c4 = np.maximum(r, 1.0) ** -a * np.exp(-((r / 6) ** b))
    noise = 0.03 * rng.normal(size=(200, 64, 1, len(r)))  # measurements of 64 samples, with errors of 0.004
    found = coherence_lengths(c4 + noise)
    for k, xi in enumerate(found, 1):
        exact = (r ** (k + 1) * c4).sum() / (r**k * c4).sum()
        assert xi.value.mean() == pytest.approx(exact, rel=0.02 if (a, b) == (0.4, 1.5) else 0.08)
        assert 0.7 < xi.value.std() / np.sqrt((xi.error**2).mean()) < 1.4
    if (a, b) == (0.4, 1.5):  # without noise, up to the cut of a single distance
        exact = (r**2 * c4).sum() / (r * c4).sum()
        cut = c4 + np.where(r > 10, 1.0, 1e-6) * np.array([-1, 2, -1, 0])[:, None, None]
        assert coherence_lengths(cut[None])[0].value[0] == pytest.approx(exact, rel=1e-4)


def test_a_run_that_stops_ends_as_one_that_does_not(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, result: ss.EvolveResult
) -> None:
    monkeypatch.chdir(tmp_path)
    words = [*LINE.split(), PROTOCOL, "--disorder-seed", "5"]
    assert run(capsys, monkeypatch, *words, "--out", "whole.h5").status == 0
    at_row(monkeypatch, 9, interrupt)
    assert run(capsys, monkeypatch, *words, "--out", "cut.h5").status == 130
    assert 0 < len(ss.load("cut.h5").sweep) < len(result.sweep)
    assert "of 17 steps" in run(capsys, monkeypatch, "show", "cut.h5").out
    assert run(capsys, monkeypatch, "resume", "cut.h5", "--quiet").status == 0
    own = ("command", "config", "history")
    assert contents(tmp_path / "whole.h5", *own) == contents(tmp_path / "cut.h5", *own)
    whole = ss.load("whole.h5")
    for name in ("sweep", "energy", "correlation", "overlap_correlation", "best_spins"):
        np.testing.assert_array_equal(getattr(whole, name), getattr(result, name))
    shown = json.loads(run(capsys, monkeypatch, "show", "whole.h5", "--json").out)
    assert shown["averages"]["sweep"] == result.sweep.tolist()
    assert run(capsys, monkeypatch, "plot", "whole.h5", "--out", "a/").status == 0
    assert sorted(path.name for path in Path("a").glob("*.pdf")) == [
        f"whole-{name}.pdf" for name in ("correlation", "length", "protocol")
    ]
    one_sentence(run(capsys, monkeypatch, "analyze", "whole.h5"), "an evolve run, whose series are not in equilibrium")


def test_other_dynamics_go_on_after_a_stop_too(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    words = [*LINE.split(), PROTOCOL, "--disorder-seed", "5", "--dynamics", "heat-bath"]
    at_row(monkeypatch, 9, interrupt)
    assert run(capsys, monkeypatch, *words, "--out", "cut.h5").status == 130
    assert run(capsys, monkeypatch, "resume", "cut.h5", "--quiet").status == 0
    whole, cut = evolved(dynamics="heat-bath"), ss.load("cut.h5")
    for name in ("sweep", "energy", "correlation", "overlap_correlation", "best_spins"):
        np.testing.assert_array_equal(getattr(whole, name), getattr(cut, name))


def test_equal_seeds_give_the_response_to_a_field() -> None:
    """Runs are the same up to the field, and differ by the response afterwards."""
    model = ss.EdwardsAnderson(ss.square(8), samples=2, seed=1)
    without, switched_on = (
        ss.evolve(model, ["T=1 for 8", f"T=1{field} for 4"], replicas=32, device="cpu") for field in ("", " h=0.1")
    )
    before = without.sweep <= 8
    np.testing.assert_array_equal(without.magnetization[before], switched_on.magnetization[before])
    later = (switched_on.magnetization - without.magnetization)[~before]
    chi = switched_on.response(without)
    assert np.isnan(chi.value[before]).all()
    np.testing.assert_allclose(chi.value[~before], later.mean(axis=(1, 2)) / (0.1 * model.sites), rtol=1e-12)
    assert ((chi.value[~before] > 0.2) & (chi.value[~before] < 1)).all()  # chi is below 1 / T
    with pytest.raises(ss.InputError, match="were not measured at the same times: give protocols that differ in h"):
        switched_on.response(ss.evolve(model, "T=1 for 8", replicas=32, device="cpu"))


def test_own_observables_saved_spins_and_tables() -> None:
    run = evolved(measure={"m": lambda batch: batch.spins.sum(axis=-1)}, save_configurations=2, start="up")
    np.testing.assert_array_equal(run.measured["m"], run.magnetization)
    assert run.magnetization[0, 0, 0] == 24
    again = ss.recount(run)
    np.testing.assert_array_equal(again.energy, run.energy[1::2])
    table = ss.table(run)
    assert {"sweep", "energy_per_site", "xi_12_error", "correlation_10"} <= set(table.columns)
    assert len(table) == len(run.sweep)


def test_runs_are_pooled() -> None:
    runs = [ss.evolve(ss.Ising(ss.square(4)), "T=2 for 4", replicas=8, seed=k, device="cpu") for k in (1, 2)]
    both = ss.pool(runs)
    np.testing.assert_array_equal(both.energy, np.concatenate([one.energy for one in runs], axis=2))
    assert both.overlap_correlation.shape[2] == 8
