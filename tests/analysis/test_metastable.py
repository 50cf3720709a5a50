"""Runs that stay in one of several states, and errors that rest on rare events: weak fields, kept signs, stripes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest
from by_series import equilibration
from made_up import tempered, with_config
from same import added_up, word

import spinsim as ss
from spinsim.analysis.autocorrelation import FEWEST_CARRIERS, carriers_of, integrated_time
from spinsim.analysis.equilibration import FALSE_ALARMS, beyond_field
from spinsim.analysis.runs import sample_of
from spinsim.analysis.summary import Summary, summarize

EXCLUDED = "metastable states cannot be excluded"
FERROMAGNET = ss.Ising(ss.square(12))


def both(run: ss.TemperResult) -> Summary:
    """Summary of a run, once its series and its sums have given one verdict."""
    found = summarize(run)
    assert summarize(added_up(run)).verdict == found.verdict
    return found


@pytest.mark.parametrize("copies", [1, 2])
@pytest.mark.parametrize("seed", [3, 4])
def test_a_sign_that_a_weak_field_cannot_hold(seed: int, copies: int) -> None:
    """Of a 4 x 4 ferromagnet, whose <m> is 0.259: these runs have +0.997 and -0.997."""
    model = ss.Ising(ss.square(4), 1.0, 0.02)
    found = both(ss.temper(model, [1.2], sweeps=8000, replicas=copies, seed=seed))
    assert found.verdict.startswith("not in equilibrium")
    assert any("m at the lowest temperature is beyond what the field allows" in one for one in found.problems)


def test_copies_of_opposite_sign_disagree_in_m() -> None:
    run = tempered(ss.Ising(ss.square(4), 1.0, 0.02), ladder=np.array([1.2]))
    run.magnetization[:] = np.where(np.random.default_rng(1).random(run.magnetization.shape) < 0.9, 16, 14)
    run.magnetization[:, :, 1] *= -1
    assert "the copies disagree in m at the lowest temperature" in both(run).problems


@pytest.mark.parametrize("field", [-0.3, 0.02, 2.0])
@pytest.mark.parametrize("couplings", ["pm-j", "gaussian"])
def test_bounds_of_the_magnetisation_in_a_field(couplings: str, field: float) -> None:
    """Exact averages of glasses lie within them; those of one sign alone, or of the reversed states, do not."""
    glass = ss.EdwardsAnderson(ss.square(3), samples=1, seed=2, couplings=couplings)
    model = ss.Ising(glass.graph, glass.couplings[0], field)
    spins = np.where(np.arange(512)[:, None] >> np.arange(9) & 1, 1, -1).astype(np.int8)
    m, energy = spins.mean(axis=1), model.energy(spins.T[None])[0]
    for temperature in (0.5, 2.0):
        weight = np.exp(-(energy - energy.min()) / temperature)
        weight /= weight.sum()
        mean, square, strength = m @ weight * np.sign(field), m**2 @ weight, abs(field) * 9 / temperature
        assert square * np.tanh(strength) <= mean + 1e-12
        assert mean <= np.sqrt(square) * np.tanh(strength * np.sqrt(square)) + 1e-12
        run = tempered(model, 1, 1000, np.array([temperature]))
        rows = np.random.default_rng(1).choice(512, 1000, p=weight)
        series = np.rint(9 * m[rows]).astype(np.int64)[:, None, None, None]
        assert not beyond_field(replace(run, magnetization=series)).any()
        one_sign = abs(series) if field == 0.02 else -series
        assert beyond_field(replace(run, magnetization=one_sign)).all()


def test_ladders_in_a_field_are_judged_by_m_and_q() -> None:
    run = ss.temper(ss.Ising(ss.square(4), 1.0, 0.1), np.geomspace(1.8, 4, 6), sweeps=20000, seed=1)
    found = both(run)
    assert found.verdict == "in equilibrium, as far as energy, q^2, q_link, m and q at the lowest temperature show"


def of_magnetization(model: ss.Ising, mean: float, spread: float, moves: str | None = None) -> ss.TemperResult:
    """Made-up run of one copy at one temperature, whose m is normal."""
    run = tempered(model, 1, ladder=np.array([0.8]))
    m = np.random.default_rng(1).normal(mean, spread, run.magnetization.shape)
    magnetization = np.rint(m * model.sites / 2).astype(np.int64) * 2
    return with_config(run, {"temper": {"moves": moves}}, magnetization=magnetization)


@pytest.mark.parametrize("mean", [0.125, 0.97, -0.97])
def test_a_sign_that_is_kept_at_one_temperature(mean: float) -> None:
    """Ordered, and striped."""
    expected = f"undecided: m stays away from 0, and at one temperature without cluster moves {EXCLUDED}"
    assert both(of_magnetization(FERROMAGNET, mean, 0.02)).verdict == expected
    assert both(of_magnetization(FERROMAGNET, mean, 0.02, "houdayer:10")).verdict == expected
    with_clusters = both(of_magnetization(FERROMAGNET, mean, 0.02, "houdayer:10,wolff:10"))
    assert with_clusters.verdict == "in equilibrium, as far as energy and m^2 at the lowest temperature show"


def test_order_parameters_that_keep_their_signs_are_named() -> None:
    antiferromagnets = ss.Ising(ss.square(4), -np.ones((4, 32)))
    run = ss.temper(antiferromagnets, [0.8], sweeps=4000, thermalize=400, seed=1)
    expected = f"m_s or q of 4 of 4 samples stays away from 0, and at one temperature without cluster moves {EXCLUDED}"
    assert expected in both(run).doubts


FIELDS = {
    "random fields": ss.Ising(ss.square(6), 0.1, 2 * np.random.default_rng(1).normal(size=36)),
    "one other field": ss.Ising(ss.square(6), 0.1, np.append(np.ones(35), 1.5)),
    "QUBO": ss.Ising.from_qubo(np.diag(np.linspace(1, 2, 10)) + np.triu(np.full((10, 10), 0.1), 1)),
}


@pytest.mark.parametrize("kind", FIELDS)
def test_fields_that_are_not_uniform_hold_a_sign(kind: str) -> None:
    """Weak bonds at T = 1, where nothing is slow."""
    assert FIELDS[kind].uniform_field is None
    found = both(ss.temper(FIELDS[kind], [1.0], sweeps=20000, seed=1))
    assert found.verdict.startswith("in equilibrium")
    assert found.verdict.endswith(EXCLUDED)


def test_a_sign_that_changes_at_one_temperature() -> None:
    found = both(of_magnetization(FERROMAGNET, 0.0, 0.1)).verdict
    assert found.startswith("in equilibrium, as far as energy and m^2")
    assert found.endswith(f"show; at one temperature without cluster moves {EXCLUDED}")


def test_stripes_are_not_in_equilibrium() -> None:
    """Ferromagnets that were quenched from random spins: of sixteen some keep stripes."""
    model = ss.Ising(ss.square(32), np.ones((16, 2048)))
    run = ss.temper(model, [0.4], sweeps=1000, thermalize=1000, replicas=1, seed=24)
    striped = np.abs(run.magnetization[-1, :, 0, 0]) < 900
    assert striped.any()
    for sample in np.flatnonzero(striped):
        alone = sample_of(run, int(sample))  # whose sums have no blocks of time, as those of a run of one sample do
        for one in (alone, added_up(alone)):
            assert word(summarize(one)) != "in equilibrium"


def rare(events: float, runs: int, seed: int, length: int = 1000) -> npt.NDArray[np.float64]:
    """Series that are 1 at so many measurements on average, and else 0."""
    return (np.random.default_rng(seed).random((length, runs)) < events / length).astype(np.float64)


def test_how_many_stretches_carry_a_variance() -> None:
    for events in (1, 2, 4, 5, 8):
        series = np.zeros(64)
        series[::8][:events] = 3
        assert events <= carriers_of(series) < 1.4 * events
        assert integrated_time(np.repeat(series, 10)).few == (events < FEWEST_CARRIERS)
    normal = carriers_of(np.random.default_rng(1).normal(size=(64, 1000)))
    assert normal.mean() == pytest.approx(64 / 3, rel=0.1)
    assert normal.min() > FEWEST_CARRIERS


@pytest.mark.parametrize("events", [2, 5, 10, 20, 40])
def test_errors_of_rare_events_hold(events: float) -> None:
    """Errors of 400 series, with those that are not trusted left out."""
    time = integrated_time(rare(events, 400, seed=int(events)))
    scores = ((time.mean - events / 1000) / time.mean_error)[time.trusted]
    assert len(scores) < 20 or np.sqrt((scores**2).mean()) < 1.3
    assert events < 20 or time.trusted.mean() > 0.95


@pytest.mark.parametrize("events", [6, 10, 15, 30])
def test_rare_events_are_no_drift(events: float) -> None:
    runs = 400
    words = [equilibration(one).verdict.split(":")[0] for one in rare(events, runs, seed=int(events)).T]
    assert words.count("not equilibrated") / runs <= FALSE_ALARMS + 4 * np.sqrt(FALSE_ALARMS * 0.95 / runs)
    assert events < 30 or words.count("undecided") < 0.1 * runs
