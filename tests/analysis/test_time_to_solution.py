"""Success probability and time to solution, against closed forms and simulated anneals."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import beta

from spinsim.analysis.time_to_solution import (
    CONFIDENCE,
    Estimate,
    in_words,
    repetitions,
    side_by_side,
    success_probability,
    time_to_solution,
)
from spinsim.errors import InputError


@pytest.mark.parametrize(("hits", "trials"), [(1, 7), (3, 8), (40, 50)])
def test_jeffreys_interval_has_the_quantiles_of_its_beta_distribution(hits: int, trials: int) -> None:
    found = success_probability(hits, trials)
    assert found.value == hits / trials
    law = beta(hits + 0.5, trials - hits + 0.5)
    assert law.cdf(found.high) - law.cdf(found.low) == pytest.approx(CONFIDENCE)
    assert law.cdf(found.low) == pytest.approx((1 - CONFIDENCE) / 2)


def test_the_interval_of_many_trials_is_the_normal_standard_error() -> None:
    found = success_probability(30_000, 100_000)
    error = math.sqrt(0.3 * 0.7 / 100_000)
    assert found.high - found.value == pytest.approx(error, rel=0.01)
    assert found.value - found.low == pytest.approx(error, rel=0.01)


def test_the_interval_holds_the_truth_about_as_often_as_it_says() -> None:
    """Averaged over true probabilities, the share of all outcomes whose interval covers the truth, by enumeration."""
    trials, truths = 20, np.linspace(0.02, 0.98, 97)
    of_each = [success_probability(hits, trials) for hits in range(trials + 1)]
    shares = []
    for p in truths:
        weights = [math.comb(trials, k) * p**k * (1 - p) ** (trials - k) for k in range(trials + 1)]
        shares.append(sum(w for w, e in zip(weights, of_each, strict=True) if e.low <= p <= e.high))
    assert abs(np.mean(shares) - CONFIDENCE) < 0.01


def test_without_a_hit_or_a_failure_one_end_is_the_edge() -> None:
    none, every = success_probability(0, 10), success_probability(10, 10)
    assert none[:2] == (0.0, 0.0)
    assert 0 < none.high < 0.2
    assert (every.value, every.high) == (1.0, 1.0)
    assert 0.8 < every.low < 1


def test_replicas_side_by_side() -> None:
    found = side_by_side(Estimate(0.5, 0.0, 1.0), 3)
    assert found == pytest.approx((1 - 0.5**3, 0.0, 1.0))
    assert side_by_side(Estimate(1e-9, 0, 0), 128).value == pytest.approx(128e-9, rel=1e-6)


def test_time_to_solution_in_closed_form() -> None:
    """p = 0.9 needs two anneals for 99 %, p = 1 - 0.01^(1/5) five; the ends come from the ends of p."""
    assert repetitions(0.9) == pytest.approx(2)
    found = time_to_solution(2.0, Estimate(1 - 0.01**0.2, 1 - 0.01**0.1, 0.9))
    assert found == pytest.approx((10.0, 4.0, 20.0))
    assert time_to_solution(2.0, Estimate(0.9, 0.9, 0.9), wanted=0.999).value == pytest.approx(6)


def test_certain_success_takes_one_anneal_and_no_success_gives_a_bound() -> None:
    assert time_to_solution(3.0, Estimate(1.0, 0.995, 1.0)) == (3.0, 3.0, 3.0)
    none = time_to_solution(3.0, success_probability(0, 10))
    assert math.isinf(none.value)
    assert math.isinf(none.high)
    assert none.low > 3.0
    assert in_words(none, lambda seconds: f"{seconds:.0f} s").startswith("> ")
    assert in_words(Estimate(2.0, 1.0, math.inf), "{:.0f}".format) == "2 [1, unknown]"


def test_the_error_of_the_time_counts_too() -> None:
    times = [1.0, 2.0, 3.0]
    found = time_to_solution(times, Estimate(0.9, 0.9, 0.9))
    error = 2 * np.std(times, ddof=1) / math.sqrt(3)
    assert found == pytest.approx((4.0, 4 - error, 4 + error))


def test_anneals_drawn_at_random_are_done_in_that_time_with_99_percent() -> None:
    """Geometric waiting times: the share that need no more than TTS / t anneals is 99 % to the next whole number."""
    p = 0.2
    waits = np.random.default_rng(1).geometric(p, 100_000)
    number = math.ceil(repetitions(p))
    share = np.mean(waits <= number)
    exact = 1 - (1 - p) ** number
    assert 0.99 <= exact < 0.993
    assert abs(share - exact) < 4 * math.sqrt(exact * (1 - exact) / len(waits))


@pytest.mark.parametrize(
    "bad",
    [
        lambda: success_probability(3, 2),
        lambda: success_probability(0, 0),
        lambda: success_probability(1, 2, 1.0),
        lambda: side_by_side(Estimate(0.1, 0, 1), 0),
        lambda: time_to_solution([], Estimate(0.1, 0, 1)),
        lambda: time_to_solution(-1.0, Estimate(0.1, 0, 1)),
        lambda: time_to_solution(1.0, Estimate(0.1, 0, 1), 1.0),
    ],
)
def test_nonsense_is_refused(bad) -> None:
    with pytest.raises(InputError):
        bad()
