"""Questions that statistics ask of a run on a ladder, which its series or its reduced measurements answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from spinsim.analysis.autocorrelation import IntegratedTime
from spinsim.analysis.followed import Followed
from spinsim.analysis.from_reduced import ReducedSource
from spinsim.analysis.from_series import SeriesSource, own_records
from spinsim.analysis.runs import FEWEST_STEPS, Integers, Tempered
from spinsim.observables import Facts, Observable

Array = npt.NDArray[np.float64]


class Source(Protocol):
    """Answers to these questions: ``SeriesSource`` or ``ReducedSource``."""

    @property
    def facts(self) -> Facts: ...  # what decides which observables the run has

    @property
    def records(self) -> tuple[Observable, ...]: ...  # observables whose averages it has

    @property
    def measurements(self) -> int: ...  # how many were made

    @property
    def every(self) -> int: ...  # sweeps between two of them

    def sweep_of(self, rows: Integers) -> Integers:
        """Return the sweeps done at measurements."""

    def time(self, name: str) -> IntegratedTime:
        """Return the autocorrelation time of a moment over the whole run, (samples, temperatures)."""

    def widening(self, name: str, time: IntegratedTime) -> Array:
        """Return the factor to the errors of one sample by stretches of time that are short against it."""

    def entries(self, names: Sequence[str]) -> Array:
        """Return averages in each sample or, of one, in stretches of time, (entries, moments, temperatures)."""

    def bins(self) -> tuple[Integers, Integers]:
        """Return the first measurements of the logarithmic bins, and the measurements after their last ones."""

    def late_means(self, name: str) -> Array:
        """Return averages of a moment over the last bin, (samples, temperatures)."""

    def followed(self, name: str) -> Sequence[Followed]:
        """Return a moment at each place of the ladder over the time of the run."""

    def coldest(self, name: str) -> Followed:
        """Return a moment by which a run is judged, at the coldest place of the ladder."""

    def walk_times(self) -> tuple[int, Array]:
        """Return how many measurements there are, and autocorrelation times of the places of replicas, (samples,)."""


def source_of(result: Tempered) -> Source:
    """Return what statistics of a run come from: what it has added up as it went, if it did, else its series."""
    return SeriesSource(result) if result.reduced is None else ReducedSource(result.model, result.reduced)


def facts_of(result: Tempered) -> Facts:
    """Return what decides which observables a run has."""
    return source_of(result).facts


def observables_of(result: Tempered) -> tuple[Observable, ...]:
    """Return the observables of a run, the user's own behind all others where their series are long enough."""
    return source_of(result).records + (own_records(result) if len(result.sweep) >= FEWEST_STEPS else ())


def measurements_of(result: Tempered) -> int:
    """Return how many measurements a run has made, of which its series may hold fewer."""
    return source_of(result).measurements
