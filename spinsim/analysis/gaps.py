"""Correlations in time of runs of space and time, and the gaps that follow from their decay.

C(t) of an operator that changes the parity, such as a spin, is a sum over the levels of odd parity: with slices many
gaps long each contributes c cosh(gap (slices / 2 - t)), gap = ln(lambda_0 / lambda) in units of 1 / step in time. For
an operator that keeps the parity, such as the product of two spins, it is a sum over the levels of even parity above
the ground state, once the square of its average is taken off. All c are positive, so that what is fitted over too
early times lies above the lowest gap, never below.

Where configurations were saved and space is small, gaps come from the operator that shows the lowest level best
(``leading.py``), else from the averages over sites, or bonds, that every run measures.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spinsim.analysis.autocorrelation import integrated_time
from spinsim.analysis.decay import FEWEST_STEPS, Fit, fit, mean_of
from spinsim.analysis.leading import has_leading, leading
from spinsim.analysis.runs import Tempered
from spinsim.errors import InputError, argument

Array = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

PARITIES = ("odd", "even")
"""Parities of the levels whose gaps are found."""


@dataclass(frozen=True)
class InTimeCurve:
    """C(t) with its errors.

    Attributes:
        time: In slices, (times,).
        value: Averaged over time, copies and disorder, (temperatures, times).
        error: Standard error: from sample to sample where there are several, else from the series' own correlation.
        trusted: Whether the error is one, as ``Estimate`` says.
    """

    time: Integers
    value: Array
    error: Array
    trusted: npt.NDArray[np.bool_]


class Gaps(NamedTuple):
    """The gap of one parity of each sample at each place of the ladder, (samples, places); NaN where none is.

    Attributes:
        gap: ln(lambda_0 / lambda), in units of 1 / step in time.
        error: Its standard error.
        levels: How many were fitted: 2, or 1 where a second one is not told apart; 0 where no fit is good.
        first: First time of the window that was fitted, in slices; 0 where there is none.
        last: Last time of it.
        chi_squared: Of the fit, with the correlation of the times.
        freedom: Degrees of freedom.
        probability: Of as large a chi^2, allowing for a covariance that is known from few stretches.
        operators: How many the operator was combined of; 1 for the average over sites or bonds.
    """

    gap: Array
    error: Array
    levels: Integers
    first: Integers
    last: Integers
    chi_squared: Array
    freedom: Integers
    probability: Array
    operators: Integers


class Decay(NamedTuple):
    """What a gap was fitted to, of one sample at one place of the ladder.

    Attributes:
        time: In slices, (times,).
        value: C(t), likewise.
        error: Its standard error, from stretches.
        fit: The fit.
    """

    time: Integers
    value: Array
    error: Array
    fit: Fit


def has_even(result: Tempered) -> bool:
    """Returns whether gaps of even parity can be found: two copies have products of neighbours or configurations."""
    return has_connected(result) or has_leading(result, "even")


def has_connected(result: Tempered) -> bool:
    """Returns whether products of neighbours of two copies were measured."""
    even = None if result.in_time is None else result.in_time.even
    return even is not None and even.link_overlap.shape[2] > 0


def correlation_in_time(result: Tempered, parity: str = "odd") -> InTimeCurve:
    """Returns C(t) at each place of the ladder: of spins, or the connected one of products of neighbours in space.

    Raises:
        InputError: for a run of space alone, without what is asked for, and for fewer than 16 measurements.
    """
    values, times = _series(result, parity, 16)
    samples, shape = values.shape[1], values.shape[3:]
    of_samples = values.mean(axis=(0, 2))
    if samples > 1:
        error = of_samples.std(axis=0, ddof=1) / np.sqrt(samples)
        return InTimeCurve(times, of_samples.mean(axis=0), error, np.isfinite(error) & (error > 0))
    flat = values[:, 0].reshape(*values.shape[:1], values.shape[2], -1)
    found = integrated_time(flat, chain_axis=1)
    return InTimeCurve(times, of_samples[0], found.mean_error.reshape(shape), found.trusted.reshape(shape))


def gaps(result: Tempered, parity: str = "odd", samples: Iterable[int] | None = None) -> Gaps:
    """Fit levels c cosh(gap (slices / 2 - t)) to C(t) of each sample at each place of the ladder.

    One level to C(t) of the operator that shows the lowest level best; else, to C(t) of spins or products of
    neighbours, two levels where they are told apart, of which the lower gap is given. Levels that lie closer than
    such a fit can tell raise the gap: the error does not hold that. The fit takes the covariance of the times, from
    stretches of the series and widened where these are short against the autocorrelation time. Its window ends before
    the first time at which C(t) is not four errors above 0; it begins one time behind the first from which on the fit
    is good, with a probability of chi^2 of 0.1 or more, and has twelve times at most.

    Args:
        result: The run.
        parity: Of the levels, ``odd`` or ``even``.
        samples: Which of its samples; all by default.

    Raises:
        InputError: for a run of space alone or in a field, which breaks parity, without what is asked for, and for too
            few measurements.
    """
    rows = decays(result, parity, range(result.model.samples) if samples is None else samples)
    columns = (np.array([[getattr(one.fit, name) for one in row] for row in rows]) for name in Gaps._fields)
    return Gaps(*columns)


def decays(result: Tempered, parity: str, samples: Iterable[int]) -> list[list[Decay]]:
    """Returns what gaps are fitted to, of each of some samples at each place of the ladder; as ``gaps`` otherwise."""
    if result.model.fields.any():
        raise InputError(
            f"{result.model.name} is in a field, where parity is broken and C(t) does not vanish: leave the field out "
            "for gaps of each parity"
        )
    find = _of_leading if has_leading(result, parity) else _of_averages
    return find(result, parity, samples)


def _of_leading(result: Tempered, parity: str, samples: Iterable[int]) -> list[list[Decay]]:
    """Returns the decays of the operators that show the lowest level best."""
    slices, found = result.model.graph.slices, leading(result, parity, samples)
    return [[_decay(one.series, one.times, slices, 1, one.operators) for one in row] for row in found]


def _of_averages(result: Tempered, parity: str, samples: Iterable[int]) -> list[list[Decay]]:
    """Returns the decays of averages over sites or bonds."""
    values, times = _series(result, parity, FEWEST_STEPS)
    slices, places = result.model.graph.slices, values.shape[3]
    return [[_decay(values[:, k, :, p], times, slices, 2, 1) for p in range(places)] for k in samples]


def _decay(series: Array, times: Integers, slices: int, most_levels: int, operators: int) -> Decay:
    """Returns the fit to a series (steps, copies, times), and what it was fitted to."""
    mean, covariance, entries = mean_of(series)
    found = fit(mean, covariance, entries, times, slices, most_levels)._replace(operators=operators)
    return Decay(times, mean, np.sqrt(np.diag(covariance)), found)


def _series(result: Tempered, parity: str, least: int) -> tuple[Array, Integers]:
    """Returns C(t) of every measurement, (steps, samples, copies, temperatures, times), and the times.

    That of products of neighbours is connected by products of two copies, which are independent: it is averaged over
    copies, as any pair of them is taken.
    """
    measured = result.in_time
    if measured is None:
        raise InputError(f"the run of {result.model.name} has no slices in time: give the file of a quantum run")
    if len(measured.correlation) < least:
        raise InputError(f"{len(measured.correlation)} measurements are too few: give at least {least}")
    if parity == "odd":
        return measured.correlation, measured.times
    if measured.even is None or not has_connected(result):
        raise InputError(
            f"the run of {result.model.name} has no products of neighbours of two copies: make it anew with "
            f"{argument('even_correlations', True)} and two replicas or more"
        )
    squared = measured.even.link_overlap.mean(axis=2, keepdims=True)
    return measured.even.correlation.mean(axis=2, keepdims=True) - squared[..., None], measured.times
