"""Correlations in space against sums over all pairs of sites, enumeration, and averages of the run itself."""

from __future__ import annotations

import json
from itertools import combinations, product

import numpy as np
import pytest
from enumeration import Thermal
from harness import run
from scipy.signal import lfilter

import spinsim as ss
from spinsim.analysis.space.entries import averaged
from spinsim.errors import InputError

SHORT = {"thermalize": 100, "measure_every": 2, "device": "cpu", "threads": 1, "seed": 3}


def tempered(model, temperatures=(1.0, 1.6, 2.4), sweeps=600, **given):
    return ss.temper(model, temperatures, sweeps, save_configurations=1, **SHORT | given)


def direct(fields, shape):
    """Mean power at axis momenta and diagonals, and correlation by distance, by sums over pairs of sites."""
    x = np.array(list(product(*map(range, shape[::-1]))))[:, ::-1]  # (sites, axes), x fastest
    longest = [axis for axis, side in enumerate(shape) if side == max(shape)]
    side, sites = max(shape), len(x)
    both = np.mean([np.outer(f, f) for f in fields], axis=0)

    def power(k):
        return (both * np.cos(2 * np.pi * ((x[:, None] - x) / shape) @ k)).sum() / sites

    def correlation(axis, r):
        moved = x.copy()
        moved[:, axis] = (moved[:, axis] + r) % side
        other = moved @ np.cumprod([1, *shape[:-1]])
        return both[np.arange(sites), other].mean()

    units, numbers = np.eye(len(shape)), range(side // 2 + 1)
    along = [np.mean([power(n * units[axis]) for axis in longest]) for n in numbers]
    pairs = [power(units[a] + sign * units[b]) for a, b in combinations(longest, 2) for sign in (1, -1)]
    return along, [np.mean([correlation(axis, r) for axis in longest]) for r in numbers], np.mean(pairs or [np.nan])


@pytest.mark.parametrize("lattice", [ss.chain(6), ss.square(4), ss.square(3, 5), ss.cubic(4, 4, 3)])
def test_sums_over_all_pairs_of_sites(lattice) -> None:
    result = tempered(ss.EdwardsAnderson(lattice, samples=2, seed=1), sweeps=8, replicas=3)
    found, saved = ss.space(result), result.configurations
    for t in range(3):
        spins = np.concatenate([saved.row(k)[:, :, t].astype(int) for k in range(4)])  # (rows and samples, copies, s)
        s, c, _ = direct(spins.reshape(-1, lattice.sites), lattice.shape)
        q = [one[a] * one[b] for one in spins for a, b in combinations(range(3), 2)]
        chi, c4, diagonal = direct(q, lattice.shape)
        for estimate, exact in [("structure_factor", s), ("correlation", c), ("overlap_susceptibility", chi),
                                ("overlap_correlation", c4), ("ratio", chi[1] / diagonal)]:  # fmt: skip
            if np.isfinite(exact).all():
                assert np.allclose(found[estimate].value[t], exact), estimate
            else:
                assert estimate not in found.estimates


@pytest.mark.parametrize("field", [0.0, 0.4])
def test_sums_over_the_pairs_of_each_quantile(field) -> None:
    """Each pair, in a field each four copies, counts as the mean of its bin, as often as there are quantiles."""
    lattice, bins, quantiles = ss.square(4), 14, 3
    result = tempered(
        ss.EdwardsAnderson(lattice, samples=2, seed=1, field=field), sweeps=12, replicas=4 if field else 3
    )
    found, saved = ss.space(result, quantiles, bins), result.configurations
    for t in range(3):
        groups = []
        for one in np.concatenate([saved.row(k)[:, :, t].astype(int) for k in range(saved.shape[0])]):
            q = {pair: one[pair[0]] * one[pair[1]] for pair in combinations(range(len(one)), 2)}
            if field:
                (a, b, c, d), x = one, (np.median([each.mean() for each in q.values()]) + 1) / 2
                ways = (a - b) * (c - d), (a - c) * (b - d), (a - d) * (b - c)
                groups.append((x, direct([way / 2 for way in ways], lattice.shape)[:2]))
            else:
                groups += [(abs(each.mean()), direct([each], lattice.shape)[:2]) for each in q.values()]
        place = np.array([min(int(x * bins), bins - 1) for x, _ in groups])
        values = np.array([value for _, value in groups])
        means = np.array([values[place == k].mean(axis=0) for k in place])
        exact = means[np.argsort(place)].repeat(quantiles, axis=0).reshape(quantiles, len(groups), 2, 3).mean(axis=1)
        assert len(set(place)) > 2
        assert np.allclose(found["conditioned_susceptibility"].value[t], exact[:, 0])
        assert np.allclose(found["conditioned_correlation"].value[t], exact[:, 1])
    assert np.allclose(found["conditioned_correlation"].value.mean(axis=1), found["overlap_correlation"].value)


def test_errors_in_quantiles_cover_samples() -> None:
    """The value of many samples lies within errors of few: their deviations have the size that errors say."""

    def conditioned(samples, seed):
        model = ss.EdwardsAnderson(ss.square(4), samples=samples, seed=seed)
        return ss.space(tempered(model, (1.2,), sweeps=40, measure_every=4), 2, 8)["conditioned_correlation"]

    whole, found = conditioned(1000, 0).value[0, :, 1:], [conditioned(16, seed) for seed in range(1, 21)]
    deviations = np.array([(one.value[0, :, 1:] - whole) / one.error[0, :, 1:] for one in found])
    assert 0.6 < np.mean(deviations**2) < 1.6


def test_zero_momentum_and_length_are_those_of_the_averages() -> None:
    result = tempered(ss.EdwardsAnderson(ss.cubic(4), samples=8, seed=2), sweeps=200, magnetization_modes=True)
    found, table = ss.space(result), ss.table(result)
    at_zero = found["overlap_susceptibility"].value[:, 0]
    assert np.allclose(at_zero, table["spin_glass_susceptibility"])
    assert np.allclose(found["overlap_susceptibility"].error[:, 0], table["spin_glass_susceptibility_error"])
    known = np.isfinite(found["overlap_length"].value)
    lengths = [(found["overlap_length"], "overlap_correlation_length"), (found["length"], "correlation_length")]
    for estimate, name in lengths:
        over = table[f"{name}_over_L"] * 4
        assert np.allclose(estimate.value, over, equal_nan=True)
        assert np.allclose(estimate.error[known], table[f"{name}_over_L_error"][known] * 4, rtol=1e-9)


def in_field(samples: list[Thermal], shape) -> tuple[np.ndarray, np.ndarray]:
    squares = [(one.of_sites - np.outer(one.of_site, one.of_site)) ** 2 for one in samples]
    values = np.linalg.cholesky(np.mean(squares, axis=0) + 1e-13 * np.eye(len(squares[0]))).T
    along, by_distance, _ = direct(values, shape)
    sites = len(squares[0])
    return sites * np.array(along), sites * np.array(by_distance)


def test_replicon_by_enumeration() -> None:
    """The mean of the outer products of the columns of a root is the matrix over the number of sites."""
    model = ss.EdwardsAnderson(ss.square(3), samples=4, seed=5, field=0.4)
    result = tempered(model, (1.2, 2.0), 6000, replicas=4, measure_every=4)
    found = ss.space(result)
    assert "length" not in found.estimates
    rows = result.configurations
    for t, temperature in enumerate((1.2, 2.0)):
        exact = [Thermal(model, temperature, sample) for sample in range(4)]
        chi, g = in_field(exact, (3, 3))
        # errors within samples, from blocks of time of each of them
        errors = errors_in_time(rows, t)
        assert np.all(np.abs(found["overlap_susceptibility"].value[t] - chi) <= 4 * errors), (found, chi, errors)
        assert abs(found["overlap_correlation"].value[t, 0] - g[0]) <= 4 * errors[0]


def errors_in_time(saved, t):
    """Errors of chi_R(k) of all samples together, from 50 blocks of time."""
    rows = [saved.row(k)[:, :, t].astype(int) for k in range(saved.shape[0])]
    parts = []
    for block in np.array_split(np.array(rows), 50):
        one = [((s[0] - s[1]) * (s[2] - s[3]) // 2).reshape(3, 3) for step in block for s in step]
        power = np.abs(np.fft.fft2(one)) ** 2 / 9
        parts.append([power[:, 0, 0].mean(), power[:, 0, 1].mean()])
    return np.std(parts, axis=0, ddof=1) / np.sqrt(50)


def test_errors_of_one_sample_cover_chains() -> None:
    """Estimates of an AR(1) series with a known mean: deviations over errors have a mean square near 1."""
    rng = np.random.default_rng(7)
    deviations = []
    result = tempered(ss.EdwardsAnderson(ss.square(4), seed=1), [1.5], sweeps=40)
    for _ in range(60):
        x = lfilter([1], [1, -0.7], rng.normal(size=(2048, 2)), axis=0) + np.array([3.0, 2.0])
        rows = ([{"x": one[None]}] for one in x)
        found = averaged(result, rows, ("x",), 2048, 1.0).estimate(lambda x: x[:, 0] / x[:, 1], "x")
        deviations.append(float((found.value - found.bias - 1.5)[0] / found.error[0]))
    assert 0.6 < np.mean(np.square(deviations)) < 1.6


def test_command_table_and_figure(tmp_path, capsys, monkeypatch) -> None:
    path = tmp_path / "glass.h5"
    tempered(ss.EdwardsAnderson(ss.square(4), samples=4, seed=1), sweeps=60, out=path)
    found = ss.space(path)
    numbers = json.loads(run(capsys, monkeypatch, "analyze", "--what", "space", path, "--json").out)
    assert np.allclose(numbers["overlap_correlation"], found["overlap_correlation"].value)
    assert np.allclose(numbers["ratio_error"], found["ratio"].error)
    assert "R_12" in run(capsys, monkeypatch, "analyze", "--what", "space", path).out
    run(capsys, monkeypatch, "plot", "--what", "space", path, "--out", tmp_path / "c.svg")
    assert "correlations in space" in (tmp_path / "c.txt").read_text()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: ss.temper(ss.Ising(ss.square(4)), [2.0], 20, device="cpu"), "saved no configurations"),
        (lambda: tempered(ss.Ising(ss.square(4, periodic=False)), [2.0], 20), "periodic lattice"),
        (lambda: ss.anneal(ss.Ising(ss.square(4)), steps=4, sweeps=1, replicas=2, device="cpu", save_configurations=1),
         "run of temper"),
    ],
)  # fmt: skip
def test_refusals(make, words) -> None:
    with pytest.raises(InputError, match=words):
        ss.space(make())
    with pytest.raises(InputError, match="no 0 quantiles"):
        ss.space(make(), 0)


def test_pooled_runs_and_short_ones() -> None:
    """Runs of different samples are samples, runs of one sample are independent entries, few rows have no error."""
    many = [tempered(ss.EdwardsAnderson(ss.square(4), seed=k), sweeps=40) for k in range(4)]
    same = [tempered(ss.EdwardsAnderson(ss.square(4), seed=1), sweeps=40, seed=k) for k in range(4)]
    for runs in (many, same):
        each = np.array([ss.space(one)["overlap_susceptibility"].value for one in runs])
        found = ss.space(ss.pool(runs))["overlap_susceptibility"]
        assert np.allclose(found.value, each.mean(axis=0))
        assert np.allclose(found.error, each.std(axis=0, ddof=1) / 2)
    short = ss.space(tempered(ss.EdwardsAnderson(ss.square(4), seed=1), sweeps=8))
    assert np.isnan(short["overlap_susceptibility"].error).all()


@pytest.mark.slow
def test_errors_of_one_sample_cover_runs() -> None:
    """Deviations from the mean of many seeds over errors have a mean square near 1, of functions of averages too."""
    model, found = ss.EdwardsAnderson(ss.square(4), seed=4), {}
    for seed in range(60):
        result = tempered(model, (0.8, 1.2, 1.8, 2.6), 3000, seed=seed)
        estimates = ss.space(result).estimates | {"chaos": ss.chaos(result)["parameter"]}
        for name in ("structure_factor", "overlap_susceptibility", "overlap_length", "ratio", "chaos"):
            found.setdefault(name, []).append([estimates[name].value, estimates[name].error])
    for name, each in found.items():
        value, error = np.array(each).swapaxes(0, 1)
        with np.errstate(invalid="ignore"):
            score = np.nanmean(((value - value.mean(axis=0)) / error) ** 2)
        assert 0.7 < score < 1.5, (name, score)
