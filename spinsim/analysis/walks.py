"""Walks of replicas along the ladder: the times of each sample, and how long a run must be against them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from spinsim.analysis.runs import Array, Bools, Integers, Tempered, check_length
from spinsim.analysis.statistics import statistics_of
from spinsim.errors import InputError

SPAN: Final = 10  # autocorrelation times that the walks of each sample must span
SPAN_OF_FEW: Final = 20  # likewise for fewer than ``FEW_SAMPLES``, for which the test of drifts is weak
FEW_SAMPLES: Final = 10  # samples below which errors over samples are known to no better than a quarter
ROUND_TRIPS: Final = 2  # round trips that the replicas of each sample must have made on average


class Walks(NamedTuple):
    """Walks along the ladder in each sample, times in measurements."""

    steps: Integers  # measurements, (samples,)
    tau: Array  # integrated autocorrelation time of a replica's place, (samples,)
    tau_exp: Array  # exponential one, likewise; tau where noise hides it
    tau_exp_error: Array  # its standard error, likewise; NaN where noise hides it
    round_trips: Array | None  # mean over the replicas, likewise; None where they could not be counted yet

    @property
    def span(self) -> Array:
        """Length of each sample's run in autocorrelation times of its walk, the longer of both, (samples,)."""
        return self.steps / np.maximum(self.tau, self.tau_exp)

    @property
    def least(self) -> int:
        return SPAN_OF_FEW if len(self.tau) < FEW_SAMPLES else SPAN

    @property
    def short(self) -> Bools:
        few = False if self.round_trips is None else self.round_trips < ROUND_TRIPS
        return np.asarray((self.span < self.least) | few)


def walks(result: Tempered) -> Walks | None:
    """Return the walks of a run; None for a single place of the ladder."""
    if len(result.temperature) < 2:
        return None
    trips = result.round_trips.mean(axis=1) if result.attempts.any() else None
    steps, tau, decay = statistics_of(result).walk_times()
    tau_exp, error = decay.T
    return Walks(steps, tau, np.where(np.isnan(tau_exp), tau, tau_exp), error, trips)


@dataclass(frozen=True)
class Equilibrium:
    """Length of each sample's run against the autocorrelation times of its replicas' walk along the ladder.

    Samples are numbered from 0; of pooled runs, each sample of each run is one. Times are in sweeps.
    """

    sweeps: Integers  # measured sweeps, (samples,)
    tau_exp: Array  # exponential autocorrelation time of a replica's place, likewise
    tau_exp_error: Array
    """Its standard error, likewise; NaN where noise hides the decay, as where tau_exp is short against the blocks of
    measurements that a run keeps. tau_exp is then tau_int."""
    tau_int: Array  # integrated autocorrelation time of the same, likewise
    round_trips: Array  # mean number of round trips of a replica, likewise; NaN where none could be counted yet
    needed: int  # autocorrelation times that a run must span, N
    slow: Integers  # numbers of the samples whose runs span fewer, or have fewer than two round trips a replica

    @property
    def span(self) -> Array:
        """Sweeps over the longer one of tau_exp and tau_int, (samples,)."""
        return np.asarray(self.sweeps / np.maximum(self.tau_exp, self.tau_int))


def equilibrium(result: Tempered) -> Equilibrium:
    """Return the autocorrelation times of each sample's walk; see ``LadderResult.equilibrium``."""
    check_length(statistics_of(result).measurements)
    walked = walks(result)
    if walked is None:
        raise InputError(
            f"the run of {result.model.name} has a single {result.axis.name}, so that no replica walks: give a ladder"
        )
    every = statistics_of(result).every
    trips = np.full(len(walked.tau), np.nan) if walked.round_trips is None else walked.round_trips
    times = (walked.tau_exp * every, walked.tau_exp_error * every, walked.tau * every)
    return Equilibrium(walked.steps * every, *times, trips, walked.least, np.flatnonzero(walked.short))
