"""Errors of correlated data by binning: rising bin lengths until the error no longer grows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from spinsim.inputs.checks import finite_array

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class LogarithmicBins:
    """Errors of the mean against bin length; arrays of shape (levels,), or (levels, ...) with the trailing shape."""

    length: npt.NDArray[np.int64]  # measurements in a bin: 1, 2, 4, ..
    bins: npt.NDArray[np.int64]  # how many bins there are; at least 2
    error: Array
    """Standard error of the mean as if the bins were independent. It rises with the bin length to a plateau, the true
    error; a series without a plateau is too short."""
    error_error: Array  # statistical error of ``error``

    @property
    def tau(self) -> Array:
        """Integrated autocorrelation time that each level's error stands for, (error / error of level 0)^2 / 2."""
        with np.errstate(invalid="ignore"):
            return np.asarray((self.error / self.error[0]) ** 2 / 2)


def logarithmic_bins(series: npt.ArrayLike) -> LogarithmicBins:
    """Error of the mean from bins of 1, 2, 4, ... measurements, down to 2 bins; an odd bin at the end is dropped.

    Source: H. Flyvbjerg, H. G. Petersen, J. Chem. Phys. 91, 461 (1989): error sqrt(c0 / (bins - 1)), where c0 is the
    variance of the bins, and its own relative error 1 / sqrt(2 (bins - 1)).

    Args:
        series: Measurements in order of time, of shape (n, ...); each trailing index is a series of its own.
    """
    values = finite_array(series, "series")
    values = values - values.mean(axis=0)
    counts, errors, errors_of_errors = [], [], []
    while len(values) >= 2:
        error = np.sqrt(values.var(axis=0) / (len(values) - 1))
        counts.append(len(values))
        errors.append(error)
        errors_of_errors.append(error / np.sqrt(2 * (len(values) - 1)))
        even = len(values) // 2 * 2
        values = (values[0:even:2] + values[1:even:2]) / 2
    return LogarithmicBins(2 ** np.arange(len(counts)), np.array(counts), np.array(errors), np.array(errors_of_errors))
