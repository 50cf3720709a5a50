"""Correlations in time of both parities and the gaps of quantum runs, against transfer matrices."""

from __future__ import annotations

import re
import sys
from functools import cache

import numpy as np
import pytest
from levels import GroundState

import spinsim as ss
from spinsim.analysis.gaps import LEAST, PARITIES, correlation_in_time, decays, gaps_by_parity
from spinsim.analysis.runs import sample_of
from spinsim.analysis.summary import summarize
from spinsim.jobs.quantum.figures import drawn_fit
from spinsim.jobs.quantum.report import in_time_lines

LADDER = [0.29, 0.27, 0.25]
SAVED = {"even_correlations": True, "save_configurations": 1}


def rule_couplings(side: int) -> np.ndarray:
    """The signs of the bond rule of docs/theory/quantum.md."""
    return np.array([1 - 2 * (int(b * 2654435761 % 2**32).bit_count() % 2) for b in range(2 * side * side)], np.int8)


@cache
def ground_state(space: ss.Ising, k: float, sample: int) -> GroundState:
    """The exact one, which takes seconds for 16 sites and serves several tests."""
    return GroundState(space, k, sample)


def record(row: str) -> None:
    """Write what was measured to standard output, which pytest shows with -s: numbers for docs/theory/quantum.md."""
    sys.stdout.write(row + "\n")


def check_averages(space: ss.Ising, result: ss.QuantumResult, sample: int, most_error: float) -> None:
    """Compare energies, overlaps and C(t) of both parities at the largest k with the ground state's."""
    one, exact = sample_of(result, sample), ground_state(space, float(result.k[0]), sample)
    found = summarize(one).estimates
    expected = {
        "space_energy_per_site": float(exact.energy @ exact.weight),
        "slice_overlap_squared": exact.overlap_power(2),
        "slice_overlap_fourth": exact.overlap_power(4),
    }
    rows = [(name, found[name].value[0], found[name].error[0], value) for name, value in expected.items()]
    for parity, operators in (("odd", exact.spins), ("even", exact.products)):
        curve = correlation_in_time(one, parity)
        values = exact.correlations(operators, int(curve.time[-1]))[curve.time - 1]
        names = [f"{parity} C({t})" for t in curve.time]
        rows += list(zip(names, curve.value[0], curve.error[0], values, strict=True))
    scores = [(value - wanted) / error for _, value, error, wanted in rows]
    told = [
        f"sample {sample} {name}: {value:.6f} +- {error:.6f}, exact {wanted:.6f}, z = {score:.2f}"
        for (name, value, error, wanted), score in zip(rows, scores, strict=True)
    ]
    record("\n".join(told))
    assert all(abs(score) <= 4 for score in scores), "\n".join(told)
    assert found["space_energy_per_site"].error[0] < most_error


def check_gaps(space: ss.Ising, result: ss.QuantumResult, most_error: dict[str, float]) -> None:
    """Compare both gaps of every sample at the largest k with those of the transfer matrix."""
    wrong = []
    for parity in PARITIES:
        found = gaps_by_parity(result)[parity]
        assert (found.operators[:, 0] > 1).all()
        for sample in range(space.samples):
            exact = ground_state(space, float(result.k[0]), sample).gap(parity)
            if found.is_hot[sample, 0]:
                assert ground_state(space, float(result.k[0]), sample).gap("odd") * result.slices < LEAST
                continue
            gap, error = found.gap[sample, 0], found.error[sample, 0]
            window = f"{found.first[sample, 0]} to {found.last[sample, 0]}, chi^2 {found.chi_squared[sample, 0]:.1f}"
            score = (gap - exact) / error
            row = f"sample {sample} {parity}: {gap:.5f} +- {error:.5f}, exact {exact:.5f}, z = {score:.2f}, {window}"
            record(row)
            wrong += [row] * (not (abs(score) <= 4 and error < most_error[parity]))
    assert not wrong, "\n".join(wrong)


def test_the_numbers_that_two_programs_gave_are_the_ground_states() -> None:
    exact = GroundState(ss.Ising(ss.square(4), couplings=rule_couplings(4)), 0.29)
    correlations = exact.correlations(exact.spins, 4)
    found = [
        exact.energy @ exact.weight,
        correlations[0],
        correlations[3],
        exact.overlap_power(2),
        exact.overlap_power(4),
    ]
    np.testing.assert_allclose(
        found, [-0.679890460, 0.406361468, 0.07169552, 0.109588186, 0.031760089], rtol=0, atol=2e-9
    )
    of_levels = [13.333753945 - 12.961518049, 13.333753945 - 12.331355153]
    np.testing.assert_allclose([exact.gap(parity) for parity in PARITIES], of_levels, rtol=0, atol=2e-9)


@pytest.mark.parametrize("couplings", ["pm-j", "gaussian"])
def test_small_spaces(couplings: str) -> None:
    space = ss.EdwardsAnderson(ss.square(2, 3), samples=2, seed=5, couplings=couplings)
    times = {"sweeps": 4000, "thermalize": 200, "measure_every": 5}
    result = ss.quantum(space, [0.4, 0.36], 64, replicas=8, seed=2, **times, **SAVED)
    for sample in range(space.samples):
        check_averages(space, result, sample, 5e-3)
    check_gaps(space, result, {"odd": 0.02, "even": 0.1})


def levels_of_ring(sites: int, gamma: float) -> dict[str, float]:
    """Gaps of both parities of a ring of quantum spins, by its Hamiltonian."""
    states = np.arange(2**sites)
    spins = 1 - 2 * (states >> np.arange(sites)[:, None] & 1)
    hamiltonian = np.diag(-(spins * np.roll(spins, 1, axis=0)).sum(axis=0).astype(float))
    for site in range(sites):
        hamiltonian[states, states ^ 2**site] -= gamma
    lowest, levels = np.linalg.eigvalsh(hamiltonian)[0], {}
    for parity, sign, level in (("odd", -1, 0), ("even", 1, 1)):
        of_parity = (np.eye(len(states)) + sign * np.eye(len(states))[::-1]) / 2  # other states are put far above
        projected = of_parity @ hamiltonian @ of_parity + 100 * (np.eye(len(states)) - of_parity)
        levels[parity] = float(np.linalg.eigvalsh(projected)[level] - lowest)
    return levels


def test_gaps_of_the_general_form() -> None:
    """Gap / k is the difference of energies of the quantum model, here of a ring of 6 by its Hamiltonian."""
    times = {"sweeps": 3000, "thermalize": 300, "measure_every": 5}
    result = ss.quantum(ss.Ising(ss.chain(6)), gamma=[1.5, 2.0], beta=8.0, slices=64, replicas=6, **times, **SAVED)
    for place, gamma in enumerate(result.gamma):
        for parity, exact in levels_of_ring(6, float(gamma)).items():
            found = gaps_by_parity(result)[parity]
            gap, error = found.gap[0, place] / result.k[place], found.error[0, place] / result.k[place]
            assert abs(gap - exact) <= 4 * error < 0.1 * exact, (parity, gamma, gap, error, exact)
            assert np.isnan(found.bound[0, place])


def test_gaps_that_a_temperature_hides_are_bounds() -> None:
    """beta times the gap is 1 at Gamma = 1: the fit lay far above the exact gap, by many errors."""
    times = {"sweeps": 2000, "thermalize": 300, "measure_every": 5}
    result = ss.quantum(ss.Ising(ss.chain(6)), gamma=[1.0, 3.0], beta=4.0, slices=64, replicas=6, **times, **SAVED)
    assert levels_of_ring(6, 1.0)["odd"] * 4 < 1.1
    assert levels_of_ring(6, 3.0)["odd"] * 4 > LEAST
    odd, even = gaps_by_parity(result).values()
    assert np.isnan([odd.gap[0, 0], odd.error[0, 0], even.gap[0, 0], even.bound[0, 0]]).all()
    assert odd.bound[0, 0] == LEAST / 64
    for parity, found in zip(PARITIES, (odd, even), strict=True):
        assert found.is_hot.tolist() == [[True, False]]
        exact = levels_of_ring(6, 3.0)[parity] * 4 / 64
        assert abs(found.gap[0, 1] - exact) <= 4 * found.error[0, 1]
    table = ss.table(result, by="gap")
    assert np.isfinite(table["energy_gap"]).tolist() == [False, True]
    assert table["energy_gap_bound"][0] == LEAST / 4
    told = in_time_lines(result)
    assert "energy_gap operators levels" in " ".join(told[1].split())
    assert "gap / k" not in told[1]
    assert re.match(r" +1 +odd +<0\.125 +<2 +6 +- ", told[2])
    assert re.match(r" +1 +even +- +- +15 +- ", told[4])
    said = " ".join(" ".join(told).split())
    assert re.search(
        r"length in time: beta is \S+ to \S+ inverse gaps, and below 8 in 1 of 2 points, where excited", said
    )
    assert "left out where no odd gap above 8 / beta is known" in said


def test_gaps_from_averages_are_upper_bounds() -> None:
    times = {"sweeps": 4000, "thermalize": 200, "measure_every": 5, "even_correlations": True, "seed": 3}
    result = ss.quantum(ss.Ising(ss.chain(4)), k=[0.4], slices=64, replicas=8, **times)
    told = in_time_lines(result)
    assert "gap / k" in told[1]
    for parity, line in zip(PARITIES, told[2:4], strict=True):
        found, exact = gaps_by_parity(result)[parity], ground_state(ss.Ising(ss.chain(4)), 0.4, 0).gap(parity)
        assert found.bound == found.gap
        assert found.gap[0, 0] > exact - 4 * found.error[0, 0]
        assert line.split()[2].startswith("<0.") or line.split()[2].startswith("<1.")
        assert line.split()[4] == "average"
        of = decays(result, parity)[0]
        window = slice(of.first - 1, of.last)
        drawn = drawn_fit(of, result.slices)
        assert np.abs((drawn - of.value[window]) / of.error[window]).max() < 4
        assert bool(of.second_amplitude) == (found.levels[0, 0] == 2)


@pytest.mark.parametrize(
    ("space", "replicas", "operators"),
    [(ss.chain(5), 2, (5, 10)), (ss.chain(20), 3, (20, 20)), (ss.chain(129), 2, (1, 1)), (ss.chain(5), 1, (5, None))],
)
def test_operators_that_are_combined(space: ss.Lattice, replicas: int, operators: tuple[int, int | None]) -> None:
    """Products of all pairs of few sites, of neighbours of more; averages of many. Even parity takes two copies."""
    times = {"sweeps": 200, "thermalize": 0, "measure_every": 1}
    result = ss.quantum(ss.Ising(space), 0.5, 4, replicas=replicas, **times, **SAVED)
    for parity, number in zip(PARITIES, operators, strict=True):
        if number is None:
            with pytest.raises(ss.InputError, match="has no products of neighbours of two copies: run it again with"):
                decays(result, parity)
        else:
            assert gaps_by_parity(result)[parity].operators.tolist() == [[number]]


def test_a_space_that_never_changes_has_no_gap() -> None:
    times = {"sweeps": 200, "thermalize": 0, "measure_every": 1, "start": "up"}
    result = ss.quantum(ss.Ising(ss.chain(4)), 3.0, 4, seed=1, **times, **SAVED)
    assert (result.correlation_in_time == result.model.sites).all()
    for parity in PARITIES:
        found = gaps_by_parity(result)[parity]
        assert np.isnan(found.gap).all()
        assert (found.levels == 0).all()


def test_combinations_are_the_same_from_files(tmp_path) -> None:
    kept = ss.quantum(ss.Ising(ss.chain(3)), [0.5, 0.6], 8, sweeps=400, thermalize=10, measure_every=2, **SAVED)
    for parity in PARITIES:
        one, other = gaps_by_parity(kept)[parity], gaps_by_parity(ss.load(kept.save(tmp_path / parity)))[parity]
        for name, numbers in vars(one).items():
            np.testing.assert_array_equal(numbers, getattr(other, name), err_msg=name)


@pytest.mark.slow
def test_numbers_of_two_programs() -> None:
    space = ss.Ising(ss.square(4), couplings=rule_couplings(4))
    result = ss.quantum(space, LADDER, 64, sweeps=60_000, thermalize=1000, replicas=21, seed=4, **SAVED)
    check_averages(space, result, 0, 2e-4)
    check_gaps(space, result, {"odd": 2e-3, "even": 2e-2})


@pytest.mark.slow
@pytest.mark.parametrize(("couplings", "samples"), [("pm-j", 3), ("gaussian", 2)])
def test_more_samples(couplings: str, samples: int) -> None:
    space = ss.EdwardsAnderson(ss.square(4), samples=samples, seed=31, couplings=couplings)
    result = ss.quantum(space, LADDER, 64, sweeps=60_000, thermalize=1000, replicas=21, seed=6, even_correlations=True)
    for sample in range(samples):
        check_averages(space, result, sample, 2e-4)


@pytest.mark.slow
def test_both_gaps_of_ten_samples() -> None:
    space = ss.EdwardsAnderson(ss.square(4), samples=10, seed=15)
    result = ss.quantum(space, LADDER, 64, sweeps=20_000, thermalize=1000, replicas=21, seed=15, **SAVED)
    check_gaps(space, result, {"odd": 5e-3, "even": 3e-2})
