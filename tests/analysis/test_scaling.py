"""Collapses and quotients: exponents of made-up data come back, with errors that are calibrated."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from harness import run

import spinsim as ss
from spinsim.analysis.scaling import Points, fit_collapse

CRITICAL, NU, POWER = 1.1, 1.5, 1.75
SIDES = 8, 12, 16, 24


def made(seed: int, power: float, noise: float = 1e-3) -> list[Points]:
    """Points of four sizes on one curve, with errors that are correlated along the ladder."""
    random, points = np.random.default_rng(seed), []
    x = np.linspace(0.9, 1.3, 9)
    correlation = 0.7 ** np.abs(np.subtract.outer(np.arange(9), np.arange(9)))
    for side in SIDES:
        u = (x - CRITICAL) * side ** (1 / NU)
        y = side**power * (0.6 - 0.3 * u + 0.05 * u**2 + 0.02 * u**3)
        covariance = (noise * side**power) ** 2 * correlation
        points.append(Points(side, x, random.multivariate_normal(y, covariance), covariance, np.inf))
    return points


@pytest.mark.parametrize("power", [0.0, POWER])
@pytest.mark.parametrize("seeds", [40, pytest.param(200, marks=pytest.mark.slow)])
def test_errors_of_collapses_are_calibrated(power: float, seeds: int) -> None:
    held = None if power else 0.0
    found = [fit_collapse(made(seed, power), degree=3, power=held, near=CRITICAL) for seed in range(seeds)]
    scores = {
        "critical": [(one.critical - CRITICAL) / one.critical_error for one in found],
        "nu": [(one.nu - NU) / one.nu_error for one in found],
    }
    if power:
        scores["power"] = [(one.power - power) / one.power_error for one in found]
    for name, score in scores.items():
        spread = np.sqrt(np.mean(np.square(score)))
        assert abs(np.mean(score)) * np.sqrt(seeds) <= 4, name
        assert abs(spread - 1) <= max(0.15, 4 / np.sqrt(2 * seeds)), (name, spread)
    assert 0.3 < np.mean([one.probability for one in found]) < 0.7
    assert all(one.freedom == 36 - 4 - (3 if power else 2) for one in found)


def test_sizes_lie_on_one_curve_when_scaled() -> None:
    found = fit_collapse(made(1, POWER), degree=3, power=None)
    for points in found.points:
        u, y, error = found.scaled(points)
        assert np.all(np.abs(y - np.polynomial.polynomial.polyval(u, found.coefficients)) < 5 * error)


def test_a_covariance_that_was_estimated_widens_errors() -> None:
    points = made(2, 0.0)
    known = fit_collapse(points, degree=3)
    few = fit_collapse([one._replace(entries=40.0) for one in points], degree=3)
    assert few.nu_error == pytest.approx(known.nu_error / np.sqrt(1 - 10 / 39), rel=1e-3)
    assert few.chi2 < known.chi2


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda points: points[:1], "a collapse needs two sizes or more"),
        (
            lambda points: [one._replace(entries=9.0) for one in points],
            "L = 8 has 9 points, too many for the covariance of 9",
        ),
        (lambda points: [one._replace(covariance=0 * one.covariance) for one in points], "an error of 0"),
        (
            lambda points: [Points(one.side, one.x[:2], one.y[:2], one.covariance[:2, :2], 500) for one in points[:3]],
            "6 points are too few for a polynomial of degree 4",
        ),
    ],
)
def test_points_that_cannot_collapse(change, words: str) -> None:
    with pytest.raises(ss.InputError, match=words):
        fit_collapse(change(made(3, 0.0)))


@pytest.fixture(scope="module")
def squares() -> list[ss.TemperResult]:
    return [
        ss.temper(ss.Ising(ss.square(side)), "2.2:2.36:8", 8000, 800, replicas=8, seed=side, clusters="sw")
        for side in (6, 8, 12)
    ]


def test_the_square_ferromagnet_has_its_exponents(squares) -> None:
    """T_c, nu = 1 and gamma / nu = 7 / 4, but for corrections of sizes as small as these."""
    exact = ss.onsager.CRITICAL_TEMPERATURE
    found = ss.collapse(squares, "susceptibility", near=2.27)
    assert abs(found.critical - exact) < 4 * found.critical_error + 0.02
    assert abs(found.power - 1.75) < 4 * found.power_error + 0.03
    of_length = ss.collapse(squares, near=2.27)
    assert (of_length.name, of_length.power, of_length.power_error) == ("correlation_length_over_L", 0, 0)
    assert abs(of_length.critical - exact) < 4 * of_length.critical_error + 0.02
    assert abs(of_length.nu - 1) < 4 * of_length.nu_error + 0.05
    assert ss.collapse(squares, near=2.27, smallest=8).smallest == 8
    with pytest.raises(ss.InputError, match="the runs have no average 'binder'"):
        ss.collapse(squares, "binder")
    with pytest.raises(ss.InputError, match="points in the window"):
        ss.collapse(squares, window=(3, 4))


def test_quotients_of_the_square_ferromagnet(squares) -> None:
    both = ss.quotients(squares, near=2.27)
    assert [one.sides for one in both] == [(6, 8), (8, 12)]
    for one in both:
        assert abs(one.crossing - ss.onsager.CRITICAL_TEMPERATURE) < 4 * one.crossing_error + 0.02
        assert abs(one.eta - 0.25) < 4 * one.power_errors["susceptibility"] + 0.03
        assert abs(one.nu - 1) < 4 * one.nu_error + 0.05
    with pytest.raises(ss.InputError, match="the runs have no average 'chi'"):
        ss.quotients(squares, "chi")


def test_the_command_prints_collapses_and_quotients(squares, tmp_path, capsys, monkeypatch) -> None:
    files = [str(result.save(tmp_path / f"{result.model.sites}.h5")) for result in squares]
    shown = run(capsys, monkeypatch, "analyze", "--scaling", *files).out
    assert shown.startswith("Finite-size scaling of 3 sizes")
    for line in ("U_m  .* 6 ", "U_m  .* 8 ", "xi_m/L  .* 8 ", "chi  .* 6 ", "L = 6, 8 ", "L = 8, 12 "):
        assert re.search(line.replace("  .*", " +.*"), shown), line
    assert max(map(len, shown.splitlines())) <= 80
    known = json.loads(run(capsys, monkeypatch, "analyze", "--scaling", "--json", *files).out)
    found = ss.collapse(squares, "binder_cumulant")
    assert known["collapses"][0]["nu"] == pytest.approx(found.nu)
    assert known["quotients"][1]["sides"] == [8, 12]
    refused = run(capsys, monkeypatch, "analyze", "--scaling", "--csv", "a.csv", *files).err
    assert "leave out --csv and --reweight" in refused
