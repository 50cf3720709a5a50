"""Walks of replicas along the ladder: the times of each sample, and how long a run must be against them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from spinsim.analysis.runs import Array, Bools, Integers, Tempered, check_length
from spinsim.analysis.statistics import statistics_of
from spinsim.errors import InputError
from spinsim.inputs.arguments import public

SPAN: Final = 10  # autocorrelation times that the walks of each sample must span
SPAN_OF_FEW: Final = 20  # likewise for fewer than ``FEW_SAMPLES``, for which the test of drifts is weak
FEW_SAMPLES: Final = 10  # samples below which errors over samples are known to no better than a quarter
ROUND_TRIPS: Final = 2  # round trips that the replicas of each sample must have made on average


@public
@dataclass(frozen=True)
class Equilibrium:
    """Lengths of runs against the autocorrelation times of replicas' walks along the ladder, in each sample.

    Of pooled runs, each sample of each run is one here.

    Attributes:
        sweeps: Measured sweeps, (samples,).
        tau_exp: Exponential autocorrelation time of a replica's place, in sweeps, (samples,).
        tau_exp_error: Its standard error; NaN where noise hides the decay, or where it is shorter than the blocks of
            measurements that a run keeps. ``tau_exp`` is then ``tau_int``.
        tau_int: Integrated autocorrelation time of the same, in sweeps, (samples,).
        round_trips: Mean number of round trips of a replica, (samples,); NaN before the first checkpoint.
        needed: Number of autocorrelation times that the run of a sample must span.
    """

    sweeps: Integers
    tau_exp: Array
    tau_exp_error: Array
    tau_int: Array
    round_trips: Array
    needed: int

    @property
    def span(self) -> Array:
        """Length of the run of each sample in units of the longer one of tau_exp and tau_int, (samples,)."""
        return np.asarray(self.sweeps / np.maximum(self.tau_exp, self.tau_int))

    @property
    def is_slow(self) -> Bools:
        """True for samples whose runs span too little, or whose replicas made fewer than 2 round trips, (samples,)."""
        return np.asarray((self.span < self.needed) | (self.round_trips < ROUND_TRIPS))

    @property
    def slow(self) -> Integers:
        """Numbers of these samples, from 0."""
        return np.flatnonzero(self.is_slow)


def walks(result: Tempered) -> Equilibrium | None:
    """Return what ``LadderResult.equilibrium`` describes; None for a single place of the ladder."""
    if len(result.temperature) < 2:
        return None
    statistics = statistics_of(result)
    steps, tau, decay = statistics.walk_times()
    tau_exp, error = decay.T * statistics.every
    tau_int = tau * statistics.every
    tau_exp = np.where(np.isnan(tau_exp), tau_int, tau_exp)
    trips = result.round_trips.mean(axis=1) if result.attempts.any() else np.full(len(tau), np.nan)
    needed = SPAN_OF_FEW if (result.model.whole or result.model).samples < FEW_SAMPLES else SPAN
    return Equilibrium(steps * statistics.every, tau_exp, error, tau_int, trips, needed)


def equilibrium(result: Tempered) -> Equilibrium:
    check_length(statistics_of(result).measurements)
    walked = walks(result)
    if walked is None:
        raise InputError(
            f"the run of {result.model.name} has a single {result.axis.name}, so that no replica walks: give a ladder"
        )
    return walked
