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


class Binned(Protocol):
    """Questions that show whether such a number drifts."""

    @property
    def start(self) -> Integers: ...  # first measurement of each logarithmic bin, the earliest first, (bins,)

    @property
    def stop(self) -> Integers: ...  # measurement after its last, likewise

    @property
    def means(self) -> Array: ...  # averages over the bins and over copies, (bins, samples)

    def late_time(self, least_window: npt.ArrayLike = 0) -> IntegratedTime:
        """Return the autocorrelation time of the average over copies in the last bin, (samples,)."""


class Followed(Binned, Protocol):
    """Further questions, by which copies are compared."""

    @property
    def copies(self) -> int: ...  # or pairs of copies, that it is measured of

    def time(self) -> IntegratedTime:
        """Return the autocorrelation time of copies over the whole run, (samples,)."""

    def of_copies(self, least_window: npt.ArrayLike = 0) -> OfCopies:
        """Return the averages of copies one by one."""


@dataclass(frozen=True)
class FollowedSeries:
    """The number from its series, (steps, samples, copies or pairs of copies)."""

    values: Array

    @property
    def copies(self) -> int:
        """Copies, or pairs of copies."""
        return int(self.values.shape[2])

    @cached_property
    def start(self) -> Integers:
        """First rows of the bins [n / 2^k, n / 2^(k - 1)), of which the first leaves row 0 out."""
        return bin_edges(len(self.values))[0]

    @cached_property
    def stop(self) -> Integers:
        """Rows after their last ones."""
        return bin_edges(len(self.values))[1]

    @cached_property
    def means(self) -> Array:
        """Averages over the bins."""
        return np.array([self._averaged[a:b].mean(axis=0) for a, b in zip(self.start, self.stop, strict=True)])

    @cached_property
    def _averaged(self) -> Array:
        return np.asarray(self.values.mean(axis=2))

    def late_time(self, least_window: npt.ArrayLike = 0) -> IntegratedTime:
        """Return the autocorrelation time over the last half, (samples,)."""
        return integrated_time(self._averaged[self.start[-1] :], least_window=least_window)

    def time(self) -> IntegratedTime:
        """Return that of copies, (samples,)."""
        return integrated_time(self.values, chain_axis=2)

    def of_copies(self, least_window: npt.ArrayLike = 0) -> OfCopies:
        """Return the averages of copies; their variance is that of all copies together, each about its average."""
        return _of_copies(self.values, least_window)[0]


def _of_copies(values: Array, least_window: npt.ArrayLike) -> tuple[OfCopies, IntegratedTime]:
    """Averages of copies of a series, and the autocorrelation time of all copies about their own averages."""
    length, _, copies = values.shape
    means = values.mean(axis=0)
    centred = values - means
    constant = values.max(axis=0) == values.min(axis=0)
    centred[:, constant] = 0  # rounding of means is no fluctuation
    time = integrated_time(centred, chain_axis=2, least_window=least_window)
    window = 2 * time.window + 1
    # each copy has lost its own average, integrated_time allows for one of all
    lost = (1 + window / length) / (1 + window / (length * copies))
    variance = time.mean_error**2 * copies * lost  # of the average of a copy
    return OfCopies(means, constant.all(axis=1), variance, length * copies / window, time.trusted), time


@dataclass(frozen=True)
class FollowedBlocks:
    """The number from its averages over blocks of equally many measurements: its series by a slower clock.

    A block is short against any autocorrelation time that a run could be too short for. Averages over it vary less than
    single measurements, so that their autocorrelation time is longer in the same ratio; times here are those of single
    measurements, in measurements.

    Attributes:
        averages: Followed as a series, (blocks, samples, copies or pairs of copies).
        length: Measurements of a block.
        ratio: Variance of averages over that of single measurements, (samples,).
    """

    averages: FollowedSeries
    length: int
    ratio: Array

    @property
    def copies(self) -> int:
        """Copies, or pairs of copies."""
        return self.averages.copies

    @property
    def start(self) -> Integers:
        """First measurements of the logarithmic bins, which begin with blocks."""
        return self.averages.start * self.length

    @property
    def stop(self) -> Integers:
        """Measurements after their last ones."""
        return self.averages.stop * self.length

    @property
    def means(self) -> Array:
        """Averages over the bins."""
        return self.averages.means

    def late_time(self, least_window: npt.ArrayLike = 0) -> IntegratedTime:
        """Return the autocorrelation time over the last half, (samples,)."""
        time = self.averages.late_time(np.asarray(least_window) / self.length)
        return self._in_measurements(time, int(self.averages.stop[-1] - self.averages.start[-1]))

    def time(self) -> IntegratedTime:
        """Return that of copies, (samples,)."""
        return self._in_measurements(self.averages.time(), len(self.averages.values))

    def of_copies(self, least_window: npt.ArrayLike = 0) -> OfCopies:
        """Return the averages of copies."""
        found, time = _of_copies(self.averages.values, np.asarray(least_window) / self.length)
        return found._replace(is_trusted=self._in_measurements(time, len(self.averages.values)).trusted)

    def _in_measurements(self, time: IntegratedTime, blocks: int) -> IntegratedTime:
        """Return a time over so many blocks as that of single measurements, trusted by the rule for these."""
        if self.length == 1:
            return time
        scale, window = self.length * self.ratio, ((2 * time.window + 1) * self.length - 1) // 2
        tau, error = time.tau * scale, time.error * scale
        is_long = blocks * self.length >= SHORTEST * (tau + error)
        trusted = is_long & (time.window < blocks - 1) & np.isfinite(time.mean_error)
        return replace(time, tau=tau, error=error, window=window, trusted=trusted)


def bin_edges(length: int) -> tuple[Integers, Integers]:
    """First rows of the logarithmic bins of a series, earliest bin first, and the rows after their last ones."""
    edges = np.array([length >> k for k in range(length.bit_length())][::-1])
    return edges[:-1], edges[1:]
