"""Errors from blocks: as large as averages scatter, or not given."""

from __future__ import annotations

import numpy as np
import pytest
from processes import ar1

import spinsim as ss
from spinsim.analysis.autocorrelation import integrated_time
from spinsim.analysis.chains import LADDERS, SHORTEST, chain_of

RUNS, MANY = 160, 640  # the mean square of so many deviations is known to 11 %, and to 6 %


def scores(series: np.ndarray, exact: float = 0.0, walk: float = 0.0) -> tuple[np.ndarray, float]:
    """Deviations over errors of the trusted ones of chains (steps, runs), and the share of these."""
    time = chain_of(series[..., None], np.full(series.shape[1], walk)).time
    score = (time.mean - exact) / time.mean_error
    return score[time.trusted], float(time.trusted.mean())


@pytest.mark.parametrize(("rho", "length"), [(0.0, 80), (0.0, 1000), (0.5, 500), (0.8, 1000), (0.8, 5000)])
def test_errors_of_known_chains(rho: float, length: int) -> None:
    """1,000 of them: one error covers 68 %, and squares of deviations have a mean of 1."""
    found, trusted = scores(ar1(rho, (length, 1000), seed=length))
    assert trusted > 0.75
    assert 0.64 <= np.mean(np.abs(found) < 1) <= 0.72
    assert 0.9 <= np.sqrt(np.mean(found**2)) <= 1.1


def test_chains_that_are_short_have_no_error() -> None:
    """Of 20 tau, and of fewer walks along a ladder than are needed, whatever the chain itself looks like."""
    assert scores(ar1(0.8, (90, 500), seed=1))[1] < 0.02
    fast = ar1(0.0, (1000, 50), seed=2)
    assert scores(fast, walk=1000 / LADDERS / 1.5)[1] > 0.95  # blocks are not divided
    assert scores(fast, walk=1000 / LADDERS * 1.1)[1] == 0
    assert SHORTEST == 64


def test_long_windows_decide() -> None:
    """A fast chain with 3 % of a slow one, whose tau is 0.97 x 0.929 + 0.03 x 19.5."""
    tau = 0.97 * 1.3 / 0.7 / 2 + 0.03 * 1.95 / 0.05 / 2
    series = np.sqrt(0.97) * ar1(0.3, (500_000, 8), seed=3) + np.sqrt(0.03) * ar1(0.95, (500_000, 8), seed=4)
    for found in (integrated_time(series), chain_of(series[..., None], np.zeros(8)).time):
        assert np.abs((found.tau - tau) / found.error).max() < 4
        assert abs(found.tau.mean() / tau - 1) < 0.05
        assert found.trusted.all()


def identical(
    model: ss.Ising, ladder: list[float], copies: int, sweeps: int, runs: int = RUNS, **how
) -> dict[str, np.ndarray]:
    """Deviations over errors of each of so many samples that are the same, from their mean, by column."""
    couplings = np.repeat(model.couplings[:1], runs, axis=0)
    fields = np.repeat(model.fields[:1], runs, axis=0) if model.fields.any() else 0.0
    repeated = ss.Ising(model.graph, couplings, fields)
    run = ss.temper(repeated, ladder, sweeps, thermalize=1000, measure_every=5, replicas=copies, seed=7, **how)
    table, found = ss.table(run, by="sample"), {}
    for name in ("energy_per_site", "magnetization_squared", "overlap_squared", "specific_heat", "binder_cumulant"):
        if name in table:
            value, error = (table[one].to_numpy().reshape(runs, -1) for one in (name, f"{name}_error"))
            found[name] = (value - value.mean(axis=0)) / error * np.sqrt(runs / (runs - 1))
    return found


MODELS = {
    "ferromagnet": (lambda: ss.Ising(ss.square(8)), [2.2, 2.6, 3.5]),
    "pm-j": (lambda: ss.EdwardsAnderson(ss.square(6), samples=1, seed=3), [0.8, 1.2, 2.0]),
    "gaussian": (lambda: ss.EdwardsAnderson(ss.square(6), samples=1, seed=3, couplings="gaussian"), [0.8, 1.2, 2.0]),
}


def check(found: dict[str, np.ndarray]) -> None:
    """Root mean squares are 0.9 to 1.1, and one error covers 68 % as far as so many runs tell."""
    table, wrong = [], []
    for name, score in found.items():
        square = np.nanmean(score**2)
        covered = np.mean(np.abs(score[np.isfinite(score)]) < 1)
        table.append(
            f"{name:24} rms {np.sqrt(square):.3f}, covered {covered:.3f}, given {np.isfinite(score).mean():.2f}"
        )
        is_wrong = abs(covered - 0.68) > 3 * np.sqrt(0.68 * 0.32 / len(score))
        wrong += [name] if is_wrong or not 0.9 <= np.sqrt(square) <= 1.1 else []
    assert not wrong, "\n".join(table)


def test_copies_that_exchange_clusters_need_no_rule() -> None:
    """Dimers in a field: a move conserves the sum over copies, whose average is printed."""
    model = ss.Ising(ss.Graph(40, np.arange(40).reshape(20, 2)), 1.0, 0.125)
    check(identical(model, [0.5], 8, 5000, houdayer="1"))


@pytest.mark.slow
@pytest.mark.parametrize("more", [{}, {"houdayer": "5"}])
@pytest.mark.parametrize("copies", [2, 8])
@pytest.mark.parametrize("kind", MODELS)
def test_errors_of_one_sample(kind: str, copies: int, more: dict[str, str]) -> None:
    model, ladder = MODELS[kind]
    check(identical(model(), ladder, copies, 3000, MANY, **more))


@pytest.mark.slow
@pytest.mark.parametrize("copies", [2, 8])
@pytest.mark.parametrize(("side", "sweeps"), [(6, 20_000), (8, 32_000)])
def test_errors_of_one_cold_glass(side: int, sweeps: int, copies: int) -> None:
    """24 seeds each in four samples: deviations from the mean of the seeds, where an error is given."""
    squares = []
    for sample in range(4):
        model = ss.EdwardsAnderson(ss.cubic(side), samples=1, seed=sample)
        how = {"thermalize": 2000, "measure_every": 10, "replicas": copies, "series": "none"}
        runs = [ss.temper(model, np.linspace(0.7, 1.8, 14), sweeps, seed=k, **how) for k in range(1, 25)]
        tables = [ss.table(run) for run in runs]
        for name in ("energy_per_site", "overlap_squared"):
            value, error = (np.array([one[part][:3] for one in tables]) for part in (name, f"{name}_error"))
            squares.append((value - value.mean(axis=0)) ** 2 / error**2 * 24 / 23)
    given = np.isfinite(squares)
    print(f"\nL = {side}, {copies} copies: rms {np.sqrt(np.nanmean(squares)):.3f}, given {given.mean():.2f}")  # noqa: T201
    assert not given.any() or 0.85 <= np.sqrt(np.nanmean(squares)) <= 1.15
