"""Collapses and quotients: exponents of made-up data come back, with errors that are calibrated."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NamedTuple, cast

import numpy as np
import pytest
from harness import run

import spinsim as ss
from spinsim.analysis.scaling.collapse import fit_collapse
from spinsim.analysis.scaling.curves import Points, Size, side_of
from spinsim.analysis.scaling.peaks import peak_of

CRITICAL, NU, POWER = 1.1, 1.5, 1.75
SIDES = 8, 12, 16, 24
OMEGA = 1.1


def made(seed: int, power: float, noise: float = 1e-3, corrections: float = 0.0) -> list[Points]:
    """Points of four sizes on one curve, with errors that are correlated along the ladder."""
    random, points = np.random.default_rng(seed), []
    x = np.linspace(0.9, 1.3, 9)
    correlation = 0.7 ** np.abs(np.subtract.outer(np.arange(9), np.arange(9)))
    for side in SIDES:
        u = (x - CRITICAL) * side ** (1 / NU)
        y = side**power * (0.6 - 0.3 * u + 0.05 * u**2 + 0.02 * u**3 + corrections * side**-OMEGA * (1 + u))
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
        calibrated(score, name)
    assert 0.3 < np.mean([one.probability for one in found]) < 0.7
    assert all(one.freedom == 36 - 4 - (3 if power else 2) for one in found)


def calibrated(scores: list[float], name: str) -> None:
    """Scores of a number of seeds have mean 0 and spread 1."""
    seeds, spread = len(scores), np.sqrt(np.mean(np.square(scores)))
    assert abs(np.mean(scores)) * np.sqrt(seeds) <= 4, name
    assert abs(spread - 1) <= max(0.15, 4 / np.sqrt(2 * seeds)), (name, spread)


@pytest.mark.parametrize("seeds", [20, pytest.param(200, marks=pytest.mark.slow)])
def test_corrections_to_scaling_are_found_or_held(seeds: int) -> None:
    points = [made(seed, 0.0, 1e-4, corrections=0.5) for seed in range(seeds)]
    fitted = [fit_collapse(one, degree=3, near=CRITICAL, omega="fit") for one in points]
    held = [fit_collapse(one, degree=3, near=CRITICAL, omega=OMEGA) for one in points]
    calibrated([(one.omega - OMEGA) / one.omega_error for one in fitted], "omega")
    for name, found in (("fitted", fitted), ("held", held)):
        calibrated([(one.critical - CRITICAL) / one.critical_error for one in found], f"critical, {name}")
        calibrated([(one.nu - NU) / one.nu_error for one in found], f"nu, {name}")
    assert {one.omega_error for one in held} == {0.0}
    assert held[0].critical_error < fitted[0].critical_error
    assert fit_collapse(points[0], degree=3, near=CRITICAL).probability < 1e-6
    for one in fitted[0].points:
        u, y, error = fitted[0].scaled(one)
        assert np.all(np.abs(y - np.polynomial.polynomial.polyval(u, fitted[0].coefficients)) < 5 * error)


class OfSize(NamedTuple):
    side: float
    resampled: dict[str, np.ndarray]


def values(seed: int, function: Callable[[float], float], error: float) -> list[OfSize]:
    """Values of five pairs of sizes; neighbours share a size and half of their noise."""
    random = np.random.default_rng(seed)
    noise, again = random.normal(size=6), random.normal(size=(6, 4000))
    return [
        OfSize(side, {"nu": function(side) + error * np.append(noise[k] + noise[k + 1], (again[k] + again[k + 1]))})
        for k, side in enumerate((4.0, 6.0, 8.0, 12.0, 16.0))
    ]


@pytest.mark.parametrize("seeds", [100, pytest.param(400, marks=pytest.mark.slow)])
def test_limits_of_infinite_size_and_powers_are_calibrated(seeds: int) -> None:
    of_limit = [values(seed, lambda side: 1.5 + 2 * side**-OMEGA, 1e-3) for seed in range(seeds)]
    for exponent in (None, OMEGA):
        found = [ss.infinite_size(one, "nu", exponent) for one in of_limit]
        calibrated([(one.value - 1.5) / one.error for one in found], f"limit, {exponent}")
        assert found[0].freedom == (2 if exponent is None else 3)
        assert 0.3 < np.mean([one.probability for one in found]) < 0.7
    of_power = [values(seed, lambda side: 3 * side**1.75, 1e-2) for seed in range(seeds)]
    found = [ss.power_of_size(one, "nu") for one in of_power]
    calibrated([(one.value - 1.75) / one.error for one in found], "power")
    assert found[0].amplitude == pytest.approx(3, rel=0.02)
    assert ss.power_of_size(of_power[0], "nu", smallest=8).sides.tolist() == [8, 12, 16]


def test_limits_that_cannot_be_found() -> None:
    found = values(1, lambda side: side, 0.1)
    for call, words in (
        (lambda: ss.infinite_size(found[:2], "nu"), "2 values of different sizes are too few, 3"),
        (lambda: ss.infinite_size(found, "eta"), "there is no 'eta' in what was found"),
        (lambda: ss.infinite_size(found, "nu", -1.0), "exponent -1.0 is no correction"),
        (lambda: ss.infinite_size([*found[:3], OfSize(20, {"nu": np.full(4001, np.nan)})], "nu"), "L = 20 has no nu"),
        (lambda: ss.power_of_size(values(1, lambda side: -side, 0.1), "nu"), "not positive"),
    ):
        with pytest.raises(ss.InputError, match=words):
            call()


@pytest.mark.parametrize("seeds", [40, pytest.param(200, marks=pytest.mark.slow)])
def test_peaks_and_largest_slopes_are_calibrated(seeds: int) -> None:
    """A peak at 1.1 and a curve that is steepest there, polynomials with noise that is correlated along the ladder."""
    x, deviation = np.linspace(0.8, 1.4, 13), 5e-3
    root = np.linalg.cholesky(deviation**2 * 0.5 ** np.abs(np.subtract.outer(np.arange(13), np.arange(13))))
    t = x - 1.1
    curves = {"peak": 1 - 12 * t**2 + 60 * t**4, "step": 2 * t - 6 * t**3 + 8 * t**4}
    scores: dict[str, list[float]] = {}
    for seed in range(seeds):
        random = np.random.default_rng(seed)
        rows = {name: y + (random.normal(size=(1, 13)) @ root.T) for name, y in curves.items()}
        rows = {name: np.vstack([y, y + random.normal(size=(300, 13)) @ root.T]) for name, y in rows.items()}
        size = Size(8.0, x, rows, dict.fromkeys(rows, 1000), None, "T")
        for name, slope in (("peak", False), ("step", True)):
            one = peak_of(size, name, slope, window=(0.85, 1.35), degree=4)
            scores.setdefault(f"{name} place", []).append((one.place - 1.1) / one.place_error)
            height = 2.0 if slope else 1.0
            scores.setdefault(f"{name} height", []).append((one.height - height) / one.height_error)
    for name, of in scores.items():
        calibrated(of, name)


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


@pytest.mark.parametrize("lattice", [ss.square(12), ss.cubic(4), ss.cubic(10), ss.hypercubic(6, 6, 6, 6)])
def test_no_size_is_below_its_own_side(lattice: ss.Lattice) -> None:
    assert side_of(cast("Any", SimpleNamespace(model=ss.Ising(lattice)))) == lattice.shape[0]


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
    assert "leave out --csv, --reweight" in refused


def test_figures_of_scaling_say_what_was_fitted(squares) -> None:
    figures = ss.plot(squares, ["collapse", "estimates"])
    collapse, estimates = figures["collapse"], figures["estimates"]
    assert len(collapse.axes) == 3
    assert re.search(r"T_\\mathrm\{c\} = 2\.\d+\(\d+\).*probability", collapse.caption)
    assert [ax.get_ylabel() for ax in estimates.axes][:3] == [r"$T$ of equal $\xi/L$", r"$\nu$", r"$\eta$"]
    assert "inverse size" in estimates.caption
    assert set(ss.plot(squares)) == {"crossings", "thermodynamics"}  # scaling is drawn where it is asked for


@pytest.fixture(scope="module")
def mixed() -> list[ss.TemperResult]:
    """Glasses of two sizes with several shares of positive bonds."""
    return [
        ss.temper(
            ss.EdwardsAnderson(ss.square(side), samples=64, seed=k, bond_fraction=share), [0.8, 1.1, 1.4], 400, 100,
            magnetization_modes=True,
        )
        for side in (4, 6) for k, share in enumerate((0.86, 0.89, 0.92))
    ]  # fmt: skip


def test_sizes_along_the_nishimori_line(mixed, tmp_path, capsys, monkeypatch) -> None:
    """There <E> per bond is -(2 p - 1) and [<m^2>] = [<q^2>]: H. Nishimori, Prog. Theor. Phys. 66, 1169 (1981)."""
    sizes = ss.sizes_along(mixed)
    assert [(one.side, one.symbol, one.x.tolist()) for one in sizes] == [(k, "p", [0.86, 0.89, 0.92]) for k in (4, 6)]
    for size in sizes:
        for name, exact in (("energy_per_site", -2 * (2 * size.x - 1)), ("magnetization_squared", None)):
            rows = size.rows[name] - (size.rows["overlap_squared"] if exact is None else exact)
            assert np.all(np.abs(rows[0]) < 4 * rows[1:].std(axis=0)), name
    found = ss.collapse(sizes, "binder_cumulant", degree=2)
    assert len(found.points) == 2
    assert ss.quotients(sizes, degree=1, observable="magnetization")[0].sides == (4, 6)
    at_one, of_function = (ss.sizes_along(mixed, at=at) for at in (1.1, lambda p: 1.1))
    np.testing.assert_array_equal(at_one[0].rows["link_overlap"], of_function[0].rows["link_overlap"])
    samples = ss.sizes_along(mixed, lambda run: run.config["model"]["bond_fraction"] + 1, at=1.1, symbol="s")
    assert (samples[0].symbol, samples[0].x[0]) == ("s", pytest.approx(1.86))
    files = [str(run_.save(tmp_path / f"{k}.h5")) for k, run_ in enumerate(mixed)]
    shown = run(capsys, monkeypatch, "analyze", "--scaling", "--along", "bond_fraction", *files)
    assert "points are too few" in shown.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("colour",), "has no number 'colour': give a setting, or a function"),
        (("bond_fraction", "warm"), "'warm' is no temperature: give a number, or nishimori"),
        (("bond_fraction", 2.0), "the ladder of L = 4 from 0.8 to 1.4 lacks T = 2"),
        (("field", 1.0), "two runs of L = 4 have equal h: pool them first"),
        (("field",), "the Nishimori line has no temperature at p = 0"),
    ],
)
def test_sizes_that_lie_along_nothing(mixed, arguments: tuple, words: str) -> None:
    with pytest.raises(ss.InputError, match=words):
        ss.sizes_along(mixed, *arguments)


def test_flags_of_scaling_that_do_nothing_alone(capsys, monkeypatch) -> None:
    for flags, words in (
        (("--along", "field"), "--along and --at are for finite-size scaling: add --scaling"),
        (("--scaling", "--at", "1.0"), "--at 1.0 is the temperature of --along"),
    ):
        assert words in run(capsys, monkeypatch, "analyze", "nowhere.h5", *flags).err
