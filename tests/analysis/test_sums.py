"""What runs say from the sums over their measurements, which alone count."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest
from by_series import copies_disagree, equilibration
from processes import ar1, rho_of
from same import energies_alone, word

import spinsim as ss
from spinsim.analysis.equilibration import approach, compare_copies
from spinsim.analysis.gaps import correlation_in_time, gaps_by_parity
from spinsim.analysis.overlaps import bins_for, overlap_distribution
from spinsim.analysis.run_sums import FollowedSeries, FollowedTerm
from spinsim.analysis.runs import sample_of, samples_of
from spinsim.analysis.statistics import choice_of, measurements_of, sums_of
from spinsim.analysis.summary import resampled, summarize
from spinsim.analysis.tables import estimate_columns
from spinsim.analysis.walks import walks
from spinsim.engine.cpu import CpuEngine
from spinsim.jobs import job_of

LADDER = np.geomspace(1.8, 4.0, 4)
STEPS = 3200  # 50 blocks of 64
TEMPERED = {
    "ferromagnet": (lambda: ss.Ising(ss.square(4)), 2),
    "one copy": (lambda: ss.Ising(ss.square(4)), 1),
    "field": (lambda: ss.Ising(ss.square(4), field=0.3), 4),
    "glass": (lambda: ss.EdwardsAnderson(ss.cubic(3), samples=6, seed=1), 3),
    "many samples": (lambda: ss.EdwardsAnderson(ss.cubic(2), samples=20, seed=1), 2),
    "gaussian": (lambda: ss.EdwardsAnderson(ss.cubic(2), samples=18, seed=2, couplings="gaussian"), 2),
}
QUANTUM = {
    "isotropic": (1, 2, {"k": [0.5, 0.4, 0.35]}, False),
    "general": (6, 2, {"gamma": [1.0, 1.5, 2.0], "beta": 3.0}, True),
    "many": (18, 1, {"gamma": 1.5, "beta": [1.0, 2.0, 3.0]}, False),
}


def made(kind: str, **how):
    length = {"sweeps": STEPS, "thermalize": 100, "measure_every": 1, "seed": 3} | how
    if kind in TEMPERED:
        model, copies = TEMPERED[kind]
        return ss.temper(model(), LADDER, replicas=copies, **length)
    samples, copies, points, even = QUANTUM[kind]
    model = ss.EdwardsAnderson(ss.square(3), samples=samples, seed=1)
    return ss.quantum(model, slices=8, even_correlations=even, replicas=copies, **points, **length)


@pytest.fixture(scope="module", params=[*TEMPERED, *QUANTUM])
def run(request):
    return made(request.param)


def assert_alike(one, other) -> None:
    """That two runs have the same averages, errors, times, trust and verdict."""
    found, expected = summarize(one), summarize(other)
    assert found.verdict == expected.verdict
    assert found.notes == expected.notes
    assert list(found.estimates) == list(expected.estimates)
    for name, estimate in expected.estimates.items():
        for part, values in vars(estimate).items():
            np.testing.assert_array_equal(getattr(found.estimates[name], part), values, f"{part} of {name}")


def test_averages_are_means_over_all_rows(run) -> None:
    found, sites = summarize(run).estimates, run.model.sites
    expected = {"magnetization_squared": ((run.magnetization / sites) ** 2).mean(axis=(0, 1, 2))}
    if run.in_time is None:
        expected["energy_per_site"] = run.energy.mean(axis=(0, 1, 2)) / sites
    if run.overlap.size:
        expected["overlap_squared"] = ((run.overlap / sites) ** 2).mean(axis=(0, 1, 2))
        expected["link_overlap"] = run.link_overlap.mean(axis=(0, 1, 2)) / run.model.bonds
    for name, values in expected.items():
        if name in found:
            np.testing.assert_allclose(found[name].value, values, 1e-12)
    assert measurements_of(run) == STEPS


def test_nothing_but_the_sums_counts(run) -> None:
    """Rows beside the sums may be of any number, and sums of all rows are those of the run."""
    there = {field.name: getattr(run, field.name) for field in fields(run)}
    thinned = {name: x[::8] for name, x in there.items() if isinstance(x, np.ndarray) and len(x) == STEPS}
    for other in (replace(run, **thinned), replace(run, reduced=None)):
        assert_alike(other, run)
        one, another = walks(other), walks(run)
        np.testing.assert_array_equal(one.tau_int, another.tau_int)
        assert choice_of(other) == choice_of(run)


def test_samples_are_cut_and_resampled(run) -> None:
    """A sample alone says what the sums of its rows say, however many samples the run has."""
    last, rows = run.model.samples - 1, replace(run, reduced=None)
    alone, expected = (summarize(sample_of(one, last)).estimates for one in (run, rows))
    for name, estimate in expected.items():
        for part, values in vars(estimate).items():
            np.testing.assert_allclose(getattr(alone[name], part), values, 1e-9, 1e-12, err_msg=name)
    for name, curves in resampled(run, 20, 1).items():
        np.testing.assert_allclose(curves[0], summarize(run).estimates[name].value, 1e-9, err_msg=name)
    if run.model.samples > 2:
        some = samples_of(run, slice(1, 3))
        assert len(some.reduced.arrays["measurements"]) == 2
        assert estimate_columns(summarize(some).estimates).keys() == estimate_columns(expected).keys()


@pytest.mark.parametrize("by", ["temperature", "sample", "overlap", "bin"])
def test_tables(by: str) -> None:
    full = made("glass")
    expected = job_of("temper").report.columns(full, by)
    for other in (made("glass", series="none"), replace(full, reduced=None)):
        found = job_of("temper").report.columns(other, by)
        assert found.keys() == expected.keys()
        for name, column in expected.items():
            np.testing.assert_array_equal(found[name], column, name)


@pytest.mark.parametrize("kind", ["field", "glass", "isotropic", "general"])
def test_series_give_the_bits_of_the_run(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spinsim.engine.cpu.AT_ONCE", 1)
    asked, begin = [], CpuEngine.begin_measurement
    monkeypatch.setattr(CpuEngine, "begin_measurement", lambda *how: asked.append(1) or begin(*how))
    run = made(kind)
    assert len(asked) == STEPS
    found = sums_of(replace(run, reduced=None), by_energy=True)
    assert found.measure_every == 1
    for name, array in run.reduced.arrays.items():
        np.testing.assert_array_equal(found.arrays[name], array, name)
        assert found.arrays[name].dtype == array.dtype


@pytest.mark.parametrize("samples", [15, 20])
@pytest.mark.parametrize("tau", [0.5, 2, 10, 50])
def test_times_of_known_processes(tau: float, samples: int) -> None:
    """Hundreds of series of 400 tau or more, of the mean over two copies: as right as the error says."""
    length = max(2000, int(400 * tau))
    series = ar1(rho_of(tau), (length, samples, 2, 10), seed=int(10 * tau) + samples)
    run = energies_alone(series)
    run._chains["energy"] = replace(run.chain("energy"), walk=np.zeros(samples))  # places are no ladder here
    found = run.time("energy")
    error = np.maximum(found.error, found.error / found.tau * tau)  # of a time that is not too small by chance
    deviation = (found.tau - tau) / error
    assert np.abs(deviation).max() <= 4
    assert deviation.std() < 1.15  # errors of windows of levels are on the safe side
    assert abs(found.tau.mean() / tau - 1) < 0.06 + 4 * (error / tau).mean() / np.sqrt(found.tau.size)
    assert found.trusted.mean() > 0.97
    mean_error = np.sqrt(2 * tau / (2 * length))
    assert abs(np.sqrt(np.mean(found.mean_error**2)) / mean_error - 1) < 0.1
    spread = series.mean(axis=(0, 2)).std() / mean_error
    assert 0.85 < spread < 1.15


def test_short_runs_are_judged_as_their_series() -> None:
    """Of no more measurements than blocks everything that needs no fine times is the same."""
    series = ar1(0.5, (60, 1, 1, 3), seed=4)
    run = energies_alone(series)
    for place in range(3):
        one, other = FollowedSeries(series[..., place]), FollowedTerm(run, "energy", place)
        np.testing.assert_array_equal(other.bins.start, one.bins.start)
        np.testing.assert_allclose(other.bins.means, one.bins.means)
        late, expected = other.late_time(), one.late_time()
        np.testing.assert_allclose(late.mean_error, expected.mean_error, 0.2)
        np.testing.assert_allclose(equilibration(series[:, 0, 0, place]).mean, other.bins.means.mean(axis=1))


@pytest.mark.parametrize("samples", [15, 30])
@pytest.mark.parametrize("tau", [1, 7])
def test_copies_that_disagree(tau: int, samples: int) -> None:
    series = ar1(rho_of(tau), (1000, samples, 2, 10), seed=tau)
    series[:, : samples // 2] += 2 * np.arange(2)[:, None]
    run, places = energies_alone(series), range(10)
    expected = np.array([copies_disagree(series[..., place], 0.05 * samples) for place in places])
    found = np.array([compare_copies(FollowedTerm(run, "energy", place), 0.05 * samples) for place in places])
    assert found[:, : samples // 2].mean() > 0.9
    assert found[:, samples // 2 :].mean() <= 0.05 + 4 * np.sqrt(0.05 * 0.95 / (5 * samples))
    assert (found == expected).mean() > 0.9


def test_what_does_not_move() -> None:
    series = ar1(0.5, (1000, 4, 2, 1), seed=1)
    series[:, 0] = 0.1
    series[:, 1] = np.array([0.1, 0.3])[:, None]
    series[:, 2, 1] = 9
    run = energies_alone(series)
    np.testing.assert_array_equal(compare_copies(FollowedTerm(run, "energy", 0)), [False, True, True, False])
    found = run.time("energy")
    assert (found.tau[0], found.trusted[0]) == (0.5, False)
    assert np.isnan(found.mean_error[0])


def test_bins_hold_whole_blocks() -> None:
    run = made("gaussian")
    found = approach(run)
    np.testing.assert_array_equal(found.stop[-3:], [STEPS // 4, STEPS // 2, STEPS])
    energy = run.energy[STEPS // 2 :].mean(axis=(0, 1, 2)) / run.model.sites
    np.testing.assert_allclose(found.mean["energy_per_site"][-1], energy, 1e-10)


@pytest.mark.parametrize("symmetrize", [False, True])
def test_overlaps_of_samples(symmetrize: bool) -> None:
    """Against the series themselves, each of whose values has a cell."""
    run = made("glass")
    sites = run.model.sites
    found = overlap_distribution(run, sites + 1, symmetrize)
    values = np.arange(-sites, sites + 1, 2)
    share = np.array([(run.overlap == value).mean(axis=(0, 2)) for value in values])  # (values, samples, places)
    share = (share + share[::-1]) / 2 if symmetrize else share
    np.testing.assert_allclose(found.density * found.width, share.mean(axis=1).T, 1e-12, 1e-14)
    error = share.std(axis=1, ddof=1).T / np.sqrt(run.model.samples)
    np.testing.assert_allclose(found.error * found.width, error, 1e-12, 1e-14)
    assert 16 <= bins_for(run, 0) <= sites + 1


def test_overlaps_of_large_lattices_share_cells() -> None:
    """Of 513 values in 256 cells: densities add up, and moments are those of the series to the width of a cell."""
    run = ss.temper(ss.Ising(ss.cubic(8)), [5.0], sweeps=400, thermalize=50, measure_every=1, replicas=2, seed=1)
    for symmetrize in (False, True):
        found = overlap_distribution(run, 64, symmetrize)
        np.testing.assert_allclose((found.density * found.width).sum(axis=1), 1)
        second = (found.density * found.width * found.q**2).sum(axis=1)
        np.testing.assert_allclose(second, ((run.overlap / 512.0) ** 2).mean(), 0.1)


def test_overlaps_of_one_sample() -> None:
    """Errors of several runs of one sample against their spread: a bound, not far from it."""
    runs = [
        ss.temper(ss.Ising(ss.square(4)), [3.0], sweeps=2000, thermalize=100, measure_every=1, replicas=2, seed=k)
        for k in range(24)
    ]
    found = [overlap_distribution(run, 9, symmetrize=True) for run in runs]
    spread = np.std([one.density[0] for one in found], axis=0, ddof=1)
    error = np.sqrt(np.mean([one.error[0] ** 2 for one in found], axis=0))
    assert found[0].trusted.all()
    assert 0.75 < np.median(error / spread) < 2.2
    assert (error / spread).min() > 0.6


@pytest.mark.parametrize("kind", ["isotropic", "general"])
def test_correlations_in_time(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of gaps the fits themselves, though these runs are so hot that they are bounds."""
    monkeypatch.setattr("spinsim.analysis.gaps.LEAST", 0.0)
    run = made(kind)
    found = correlation_in_time(run)
    np.testing.assert_allclose(found.value, run.in_time.correlation.mean(axis=(0, 1, 2)), 1e-11, 1e-12)
    assert np.isfinite(gaps_by_parity(run)["odd"].gap).any()
    if kind == "isotropic":
        with pytest.raises(ss.InputError, match="no products of neighbours"):
            correlation_in_time(run, "even")


def test_own_observables_rest_on_all_rows_that_are_kept() -> None:
    """Of 3,200 rows and of 50, which are no multiple of 32: all count."""
    own = {"measure": {"e": lambda batch: batch.spins.sum(axis=-1) ** 2}}
    for sweeps in (STEPS, 50):
        run = made("ferromagnet", sweeps=sweeps, **own)
        found, sites = summarize(run).estimates, run.model.sites
        np.testing.assert_allclose(found["e"].value, run.measured["e"].mean(axis=(0, 1, 2)), 1e-12)
        one, other = found["e"], found["magnetization_squared"]
        np.testing.assert_allclose(one.value / sites**2, other.value, 1e-12)
        np.testing.assert_allclose(one.error / sites**2, other.error, 1e-6)
        np.testing.assert_allclose(one.tau, other.tau, 1e-6)
        np.testing.assert_array_equal(one.trusted, other.trusted)


def test_overlaps_that_no_configuration_has_are_refused() -> None:
    """A damaged file may hold them, and they would be counted outside of their histogram."""
    run = ss.temper(ss.Ising(ss.square(4)), [1.0, 2.0], sweeps=40, thermalize=0, measure_every=1, replicas=2)
    overlap = run.overlap.copy()
    overlap[3] = 18
    with pytest.raises(ss.InputError, match="overlap is beyond 16"):
        summarize(replace(run, overlap=overlap, reduced=None))


def test_verdicts_are_those_of_runs_of_that_length() -> None:
    assert word(summarize(made("ferromagnet"))) == "in equilibrium"


def test_a_result_with_sums_is_summarised_once() -> None:
    run = made("glass")
    assert summarize(run) is summarize(run)
    assert resampled(run, 10, seed=1) is resampled(run, 10, seed=1)
    assert not np.array_equal(*(resampled(run, 10, seed)["overlap_squared"][1:] for seed in (1, 2)))
    other = samples_of(run, slice(0, 4))
    assert summarize(other) is not summarize(run)
    without = replace(run, reduced=None)
    assert summarize(without) is not summarize(without)
