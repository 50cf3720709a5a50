"""A number at one place of the ladder over the time of a run, as tests of equilibrium look at it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from spinsim.analysis.autocorrelation import SHORTEST, IntegratedTime, integrated_time

Array = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


class OfCopies(NamedTuple):
    """Averages of copies over the whole run and how well they are known; arrays of (samples,) but for the first."""

    means: Array  # of each copy, (samples, copies)
    is_constant: npt.NDArray[np.bool_]  # true where no copy moves
    variance: Array  # of the average of a copy, from its fluctuations about that average
    freedom: Array  # degrees of freedom of the variance
    is_trusted: npt.NDArray[np.bool_]  # true where copies are long enough to know it


class Binned(NamedTuple):
    """A number in logarithmic bins of a run, of so many samples that their scatter is its error."""

    start: Integers  # first measurement of each bin, the earliest first, (bins,)
    stop: Integers  # measurement after its last, likewise
    means: Array  # averages over the bins, (bins, samples)

    def late_time(self, least_window: npt.ArrayLike = 0) -> IntegratedTime:
        raise NotImplementedError  # of many samples nobody asks


class Followed(Protocol):
    """Questions that show whether such a number drifts, and by which copies are compared."""

    @property
    def start(self) -> Integers: ...  # as of ``Binned``

    @property
    def stop(self) -> Integers: ...

    @property
    def means(self) -> Array: ...  # averages over the bins and over copies, (bins, samples)

    def late_time(self, least_window: npt.ArrayLike = 0) -> IntegratedTime:
        """Return the autocorrelation time of the average over copies in the last bin, (samples,)."""

    @property
    def copies(self) -> int: ...  # or pairs of copies, that it is measured of

    def time(self) -> IntegratedTime:
        """Return the autocorrelation time of copies over the whole run, (samples,)."""

    def of_copies(self, least_window: npt.ArrayLike = 0) -> OfCopies:
        """Return the averages of copies one by one."""


@dataclass(frozen=True)
class FollowedSeries(Followed):
    """The number from its series or, by a slower clock, from its averages over blocks of equally many measurements.

    A block is short against any autocorrelation time that a run could be too short for. Averages over it vary less than
    single measurements, so that their autocorrelation time is longer in the same ratio; times and rows here are those
    of single measurements.
    """

    values: Array  # measurements or averages over blocks, (steps, samples, copies or pairs of copies)
    length: int = 1  # measurements of a block
    ratio: Array | float = 1.0  # variance of averages over that of single measurements, (samples,)

    @property
    def copies(self) -> int:
        return int(self.values.shape[2])

    @property
    def start(self) -> Integers:
        """First rows of the bins [n / 2^k, n / 2^(k - 1)), of which the first leaves row 0 out."""
        return bin_edges(len(self.values))[0] * self.length

    @property
    def stop(self) -> Integers:
        return bin_edges(len(self.values))[1] * self.length

    @cached_property
    def means(self) -> Array:
        edges = zip(*bin_edges(len(self.values)), strict=True)
        return np.array([self._averaged[first:stop].mean(axis=0) for first, stop in edges])

    @cached_property
    def _averaged(self) -> Array:
        return np.asarray(self.values.mean(axis=2))

    def late_time(self, least_window: npt.ArrayLike = 0) -> IntegratedTime:
        late = self._averaged[bin_edges(len(self.values))[0][-1] :]
        return self._in_measurements(integrated_time(late, least_window=np.asarray(least_window) / self.length), late)

    def time(self) -> IntegratedTime:
        return self._in_measurements(integrated_time(self.values, chain_axis=2), self.values)

    def of_copies(self, least_window: npt.ArrayLike = 0) -> OfCopies:
        """Return the averages of copies; their variance is that of all copies together, each about its average."""
        length, _, copies = self.values.shape
        means = self.values.mean(axis=0)
        centred = self.values - means
        constant = self.values.max(axis=0) == self.values.min(axis=0)
        centred[:, constant] = 0  # rounding of means is no fluctuation
        time = integrated_time(centred, chain_axis=2, least_window=np.asarray(least_window) / self.length)
        window = 2 * time.window + 1
        # each copy has lost its own average, integrated_time allows for one of all
        lost = (1 + window / length) / (1 + window / (length * copies))
        variance = time.mean_error**2 * copies * lost  # of the average of a copy
        trusted = self._in_measurements(time, self.values).trusted
        return OfCopies(means, constant.all(axis=1), variance, length * copies / window, trusted)

    def _in_measurements(self, time: IntegratedTime, values: Array) -> IntegratedTime:
        """Return a time over averages of blocks as that of single measurements, trusted by the rule for these."""
        if self.length == 1:
            return time
        blocks, scale = len(values), self.length * self.ratio
        tau, error = time.tau * scale, time.error * scale
        is_long = blocks * self.length >= SHORTEST * (tau + error)
        trusted = is_long & (time.window < blocks - 1) & np.isfinite(time.mean_error)
        window = ((2 * time.window + 1) * self.length - 1) // 2
        return replace(time, tau=tau, error=error, window=window, trusted=trusted)


def bin_edges(length: int) -> tuple[Integers, Integers]:
    """First rows of the logarithmic bins of a series, earliest bin first, and the rows after their last ones."""
    edges = np.array([length >> k for k in range(length.bit_length())][::-1])
    return edges[:-1], edges[1:]
