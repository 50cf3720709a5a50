"""What runs say from measurements that were added up as they were made, against what their full series say."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest
from by_series import copies_disagree, equilibration
from processes import ar1, rho_of
from same import added_up, energies_alone, word

import spinsim as ss
from spinsim.analysis.autocorrelation import integrated_time
from spinsim.analysis.equilibration import approach, compare_copies, walks
from spinsim.analysis.gaps import correlation_in_time, gaps
from spinsim.analysis.overlaps import bins_for, overlap_distribution
from spinsim.analysis.reduced import FollowedSeries, FollowedTerm
from spinsim.analysis.reweighted import reweighted
from spinsim.analysis.runs import sample_of, samples_of
from spinsim.analysis.sizes import compare_sizes
from spinsim.analysis.sources import SeriesSource, facts_of, measurements_of, reduced_of
from spinsim.analysis.summary import resampled, summarize
from spinsim.analysis.tables import estimate_columns
from spinsim.engine.cpu import CpuEngine
from spinsim.engine.measuring.cpu_reduction import HostReduction
from spinsim.jobs import job_of

LADDER = np.geomspace(1.8, 4.0, 4)
STEPS = 3200  # 32 stretches of 100; reduced to 50 blocks of 64
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
_CORRECTED = {"specific_heat", "susceptibility_abs", "action_heat", "quantum_specific_heat"}
"""Of one copy they are corrected by the autocorrelation time, which differs a little."""


def tempered(kind: str) -> ss.TemperResult:
    model, copies = TEMPERED[kind]
    return ss.temper(model(), LADDER, sweeps=STEPS, thermalize=100, measure_every=1, replicas=copies, seed=3)


def quantum(kind: str) -> ss.QuantumResult:
    samples, copies, points, even = QUANTUM[kind]
    model = ss.EdwardsAnderson(ss.square(3), samples=samples, seed=1)
    length = {"sweeps": STEPS, "thermalize": 100, "measure_every": 1, "replicas": copies, "seed": 3}
    return ss.quantum(model, slices=8, even_correlations=even, **points, **length)


@pytest.fixture(scope="module", params=[*TEMPERED, *QUANTUM])
def both(request):
    """A run, and the same with what it has added up."""
    run = (tempered if request.param in TEMPERED else quantum)(request.param)
    return run, added_up(run)


def test_averages_are_those_of_the_series(both):
    full, reduced = both
    one, other = summarize(full), summarize(reduced)
    assert list(one.estimates) == list(other.estimates)
    assert one.notes == other.notes or full.model.samples > 1  # which may say of short samples
    for name, expected in one.estimates.items():
        found = other.estimates[name]
        corrected = name in _CORRECTED and full.energy.shape[2] == 1
        np.testing.assert_allclose(found.value, expected.value, 1e-3 if corrected else 1e-12, 2e-12, err_msg=name)
        if full.model.samples > 1:
            np.testing.assert_allclose(found.error, expected.error, 2e-2 if corrected else 1e-6, err_msg=name)
        np.testing.assert_array_equal(found.trusted, expected.trusted, name)


def test_errors_and_times_are_close(both):
    full, reduced = both
    one, other = summarize(full).estimates, summarize(reduced).estimates
    errors, times = (
        np.concatenate([getattr(other[name], part) / getattr(one[name], part) for name in one if name != "chi"])
        for part in ("error", "tau")
    )
    errors, times = errors[np.isfinite(errors)], times[np.isfinite(times)]
    assert abs(np.median(errors) - 1) < 0.06
    assert abs(np.median(times) - 1) < 0.06
    assert np.mean(np.abs(errors - 1) < 0.2) > 0.85
    assert np.mean(np.abs(times - 1) < 0.3) > 0.9


def test_verdicts_agree(both):
    full, reduced = both
    assert word(summarize(full)) == word(summarize(reduced))
    one, other = walks(full), walks(reduced)
    np.testing.assert_allclose(other.tau, one.tau, 0.3, 0.2)
    assert abs(np.median(other.tau) / np.median(one.tau) - 1) < 0.2
    assert measurements_of(reduced) == STEPS


def test_facts_are_those_of_the_run(both):
    full, reduced = both
    assert summarize(full).notes[:1] == summarize(reduced).notes[:1]
    one, other = facts_of(full), facts_of(reduced)
    assert (one.copies, one.in_time) == (other.copies, other.in_time)


def series_of(run, rows: slice) -> dict[str, np.ndarray]:
    """Some rows of the series of a run."""
    there = {field.name: getattr(run, field.name) for field in fields(run)}
    return {name: x[rows] for name, x in there.items() if isinstance(x, np.ndarray) and len(x) == STEPS}


def test_nothing_but_the_sums_counts(both):
    """Series that are left beside the sums may be of any length and say anything."""
    _, reduced = both
    thinned = replace(reduced, **series_of(reduced, slice(None, None, 8)))
    found, expected = summarize(thinned), summarize(reduced)
    assert found.verdict == expected.verdict
    for name, estimate in expected.estimates.items():
        np.testing.assert_array_equal(found.estimates[name].error, estimate.error)
        np.testing.assert_array_equal(found.estimates[name].tau, estimate.tau)


def test_samples_are_cut_and_resampled(both):
    full, reduced = both
    samples = full.model.samples
    one, other = (resampled(run, 20, 1) for run in both)
    for name, curves in one.items():
        corrected = name in _CORRECTED and full.energy.shape[2] == 1
        if samples > 1:
            np.testing.assert_allclose(other[name], curves, 1e-2 if corrected else 1e-7, 1e-9, err_msg=name)
        else:
            np.testing.assert_allclose(other[name][0], curves[0], 1e-3 if corrected else 1e-11, 1e-11, err_msg=name)
    last = samples - 1
    alone, expected = summarize(sample_of(reduced, last)), summarize(sample_of(full, last))
    for name, estimate in expected.estimates.items():
        corrected = name in _CORRECTED and full.energy.shape[2] == 1
        np.testing.assert_allclose(
            alone.estimates[name].value, estimate.value, 3e-3 if corrected else 1e-11, 1e-11, err_msg=name
        )
    if samples > 2:
        some = samples_of(reduced, slice(1, 3))
        assert len(some.reduced.arrays["measurements"]) == 2
        assert estimate_columns(summarize(some).estimates).keys() == estimate_columns(expected.estimates).keys()


@pytest.mark.parametrize("kind", ["field", "glass", "isotropic", "general"])
def test_series_give_the_bits_of_the_run(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Measurements as the engine makes them, reduced one after the other, against those that series hold."""
    seen = []
    begin = CpuEngine.begin_measurement

    def watched(engine, *asked):
        ready = begin(engine, *asked)

        def collect():
            seen.append(ready())
            return seen[-1]

        return collect

    monkeypatch.setattr(CpuEngine, "begin_measurement", watched)
    monkeypatch.setattr("spinsim.engine.cpu.AT_ONCE", 1)  # so that each is asked for by this function
    run = (tempered if kind in TEMPERED else quantum)(kind)
    found = SeriesSource(run).run
    reduction = HostReduction(found.reduced)
    assert len(seen) == STEPS
    for measurement in seen:
        reduction.add_numbers(measurement)
    for name, array in reduction.state().items():
        np.testing.assert_array_equal(found.arrays[name], array, name)
        assert found.arrays[name].dtype == array.dtype
    assert found.measure_every == 1


@pytest.mark.parametrize("samples", [15, 20])
@pytest.mark.parametrize("tau", [0.5, 2, 10, 50])
def test_times_of_known_processes(tau: float, samples: int) -> None:
    """Hundreds of series of 200 tau or more, of copies one by one and of their sum: as right as the error says."""
    length = max(1000, int(200 * tau))
    series = ar1(rho_of(tau), (length, samples, 2, 10), seed=int(10 * tau) + samples)
    found = energies_alone(series).time("energy")
    total = length * (2 if samples < 16 else 1)
    error = found.error / found.tau * tau  # of a time that is not too small by chance
    deviation = (found.tau - tau) / error
    assert np.abs(deviation).max() <= 4
    assert 0.7 < deviation.std() < 1.15
    assert abs(found.tau.mean() / tau - 1) < 2 * 6 * tau / total + 4 * (error / tau).mean() / np.sqrt(found.tau.size)
    assert found.trusted.mean() > 0.97
    mean_error = np.sqrt(2 * tau / (2 * length))
    assert abs(np.median(found.mean_error) / mean_error - 1) < 0.06
    spread = series.mean(axis=(0, 2)).std() / mean_error
    assert 0.85 < spread < 1.15


def test_short_runs_are_judged_as_their_series() -> None:
    """Of no more measurements than blocks everything that needs no fine times is the same."""
    series = ar1(0.5, (60, 1, 1, 3), seed=4)
    run = energies_alone(series)
    for place in range(3):
        one, other = FollowedSeries(series[..., place]), FollowedTerm(run, "energy", place)
        np.testing.assert_array_equal(other.start, one.start)
        np.testing.assert_allclose(other.means, one.means)
        late, expected = other.late_time(), one.late_time()
        np.testing.assert_allclose(late.mean_error, expected.mean_error, 0.2)
        np.testing.assert_allclose(equilibration(series[:, 0, 0, place]).mean, other.means.mean(axis=1))


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
    assert (found == expected).mean() > 0.95


@pytest.mark.parametrize(("length", "is_long"), [(30, False), (400, True)])
def test_copies_of_one_event_must_be_long_too(length: int, is_long: bool) -> None:
    """An event of three measurements, of which series and sums say the same."""
    series = np.zeros((length, 1, 2, 1))
    series[12:15, 0, 0] = 1
    series[:, :, 1] = 5
    one, other = FollowedSeries(series[..., 0]), FollowedTerm(energies_alone(series), "energy", 0)
    assert integrated_time(series - series.mean(axis=0), chain_axis=2).few.all()
    for followed in (one, other):
        assert followed.of_copies().is_trusted.tolist() == [is_long]
        assert compare_copies(followed).tolist() == [is_long]


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


def test_bins_and_links() -> None:
    full = tempered("gaussian")
    reduced = added_up(full)
    one, other = approach(full), approach(reduced)
    bins = len(other.start)
    assert list(one.mean) == list(other.mean)
    np.testing.assert_array_equal(other.stop, one.stop[-bins:])
    np.testing.assert_array_equal(other.last_sweep, one.last_sweep[-bins:])
    for name, mean in other.mean.items():
        np.testing.assert_allclose(mean[-3:], one.mean[name][-3:], atol=0.3 * one.error[name][-3:].max())
        np.testing.assert_allclose(other.error[name][-1], one.error[name][-1], 0.1)
    words = summarize(full).notes[-1].split(" standard")[0], summarize(reduced).notes[-1].split(" standard")[0]
    assert words[0] == words[1]


@pytest.mark.parametrize("symmetrize", [False, True])
def test_overlaps_of_samples(symmetrize: bool) -> None:
    full = tempered("glass")
    reduced = added_up(full)
    for bins in (10, 50):
        one, other = (overlap_distribution(run, bins, symmetrize) for run in (full, reduced))
        for name, values in vars(one).items():
            np.testing.assert_allclose(vars(other)[name], values, 1e-12, 1e-14, err_msg=name)
    for place in range(len(LADDER)):
        assert abs(bins_for(full, place) - bins_for(reduced, place)) <= 2


def test_overlaps_of_large_lattices_share_cells() -> None:
    """Of 513 values in 256 cells: densities add up, and moments are those of the series to the width of a cell."""
    full = ss.temper(ss.Ising(ss.cubic(8)), [5.0], sweeps=400, thermalize=50, measure_every=1, replicas=2, seed=1)
    reduced = added_up(full)
    for symmetrize in (False, True):
        found = overlap_distribution(reduced, 64, symmetrize)
        np.testing.assert_allclose((found.density * found.width).sum(axis=1), 1)
        second = (found.density * found.width * found.q**2).sum(axis=1)
        np.testing.assert_allclose(second, ((full.overlap / 512.0) ** 2).mean(), 0.1)
    assert abs(bins_for(reduced, 0) / bins_for(full, 0) - 1) < 0.3


def test_overlaps_of_one_sample() -> None:
    """Errors of several runs of one sample against their spread: a bound, not far from it."""
    runs = [
        ss.temper(ss.Ising(ss.square(4)), [3.0], sweeps=2000, thermalize=100, measure_every=1, replicas=2, seed=k)
        for k in range(24)
    ]
    found = [overlap_distribution(added_up(run), 9, symmetrize=True) for run in runs]
    spread = np.std([one.density[0] for one in found], axis=0, ddof=1)
    error = np.sqrt(np.mean([one.error[0] ** 2 for one in found], axis=0))
    assert found[0].trusted.all()
    assert 0.75 < np.median(error / spread) < 2.2
    assert (error / spread).min() > 0.6


@pytest.mark.parametrize("kind", ["isotropic", "general"])
def test_correlations_in_time(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of gaps the fits themselves, though these runs are so hot that they are bounds."""
    monkeypatch.setattr("spinsim.analysis.gaps.LEAST", 0.0)
    full = quantum(kind)
    reduced = added_up(full)
    for parity in ("odd", "even")[: 1 + QUANTUM[kind][3]]:
        one, other = correlation_in_time(full, parity), correlation_in_time(reduced, parity)
        np.testing.assert_allclose(other.value, one.value, 1e-11, 1e-12)
        np.testing.assert_allclose(other.error, one.error, 0.35)
        a, b = gaps(full, parity), gaps(reduced, parity)
        there = np.isfinite(a.gap) & np.isfinite(b.gap)
        assert there.sum() >= 0.5 * np.isfinite(a.gap).sum()
        assert np.abs((a.gap - b.gap)[there] / a.error[there]).max() < 2.5
    with pytest.raises(ss.InputError, match="no products of neighbours"):
        correlation_in_time(added_up(quantum("isotropic")), "even")


def test_sizes_cross_where_they_did() -> None:
    runs = [
        ss.temper(ss.Ising(ss.square(side)), np.linspace(2.0, 2.6, 5), 3200, thermalize=100, measure_every=1, seed=2)
        for side in (4, 6)
    ]
    one, other = compare_sizes(runs), compare_sizes([added_up(run) for run in runs])
    assert [found.name for found in one] == [found.name for found in other]
    for a, b in zip(one, other, strict=True):
        np.testing.assert_allclose(b.crossings[0].crossing.value, a.crossings[0].crossing.value, 1e-9)
        np.testing.assert_allclose(b.crossings[0].crossing.error, a.crossings[0].crossing.error, 0.25)


def test_own_observables_and_old_runs_that_are_reweighted_rest_on_series() -> None:
    full = ss.temper(
        ss.Ising(ss.square(4)), LADDER, sweeps=STEPS, thermalize=100, measure_every=1, replicas=2, seed=3,
        measure={"m2": lambda batch: batch.spins.mean(axis=-1) ** 2},
    )  # fmt: skip
    kept = {"measured": {"m2": full.measured["m2"][3::4]}}
    rows = series_of(full, slice(3, None, 4)) | kept
    thinned, old = (
        replace(full, reduced=reduced_of(full, SeriesSource(full).facts, by_energy), **rows)
        for by_energy in (True, False)
    )
    found = reweighted(old, [2.0, 3.0])
    assert f"Of {STEPS} measurements this rests on {STEPS // 4}, whose series the run has kept." in found.notes
    expected = reweighted(replace(thinned, reduced=None), [2.0, 3.0])
    for name, estimate in expected.estimates.items():
        np.testing.assert_array_equal(found.estimates[name].value, estimate.value)
    assert not any("rests on" in note for note in reweighted(thinned, [2.0]).notes)
    own, all_of_it = summarize(thinned).estimates["m2"], summarize(full).estimates["m2"]
    np.testing.assert_allclose(own.value, kept["measured"]["m2"].mean(axis=(0, 1, 2)))
    np.testing.assert_allclose(own.tau, np.maximum(all_of_it.tau, 2.0), 0.3)
    assert list(summarize(thinned).estimates) == list(summarize(full).estimates)
    assert resampled(thinned, 5, 1).keys() == resampled(full, 5, 1).keys()


@pytest.mark.parametrize("by", ["temperature", "sample", "overlap", "bin"])
def test_tables(by: str) -> None:
    full = tempered("glass")
    one, other = (job_of("temper").columns(run, by) for run in (full, added_up(full)))
    assert one.keys() == other.keys()
    for name, column in one.items():
        if by != "bin":
            assert len(other[name]) == len(column)
            if not name.endswith(("_error", "_tau", "_trusted")):
                np.testing.assert_allclose(other[name], column, 1e-10, 1e-12, err_msg=name)


def test_times_of_series_are_met() -> None:
    """Of the same series both estimators are close, as their windows are."""
    series = ar1(rho_of(5), (5000, 15, 1, 4), seed=9)
    one, other = integrated_time(series, chain_axis=2), energies_alone(series).time("energy")
    np.testing.assert_allclose(other.mean, one.mean, 1e-9, 1e-12)
    assert np.abs(other.tau / one.tau - 1).max() < 0.4
    assert np.abs(np.median(other.tau / one.tau) - 1) < 0.03
    assert (other.trusted == one.trusted).all()


def test_overlaps_that_no_configuration_has_are_refused() -> None:
    """A damaged file may hold them, and they would be counted outside of their histogram."""
    run = ss.temper(ss.Ising(ss.square(4)), [1.0, 2.0], sweeps=40, thermalize=0, measure_every=1, replicas=2)
    overlap = run.overlap.copy()
    overlap[3] = 18
    with pytest.raises(ss.InputError, match="overlap is beyond 16"):
        summarize(replace(run, overlap=overlap))
