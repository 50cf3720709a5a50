"""Extrapolation of runs that differ only in their slices to infinitely many: Delta tau = beta / slices goes to 0.

Averages of the Suzuki-Trotter form differ from those of the quantum model by an even function of Delta tau: a + b
Delta tau^2 to the leading order, with a term c Delta tau^4 to the next. Source: R. M. Fye, Phys. Rev. B 33, 6271
(1986). If chi^2 of one sample exceeds its degrees of freedom, for example by terms of higher order, errors are
multiplied by the square root of their ratio.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np
from scipy.special import chdtrc, fdtrc

from spinsim.analysis.runs import Array, Axis, model_of_samples, samples_in
from spinsim.analysis.summary import Estimate, estimates, resampled
from spinsim.analysis.tables import Columns
from spinsim.errors import InputError
from spinsim.inputs.arguments import public
from spinsim.inputs.texts import Described, count, enumerated
from spinsim.jobs.quantum.run import QuantumResult
from spinsim.model.ising import Ising
from spinsim.model.trotter import first_slice
from spinsim.result import Run, load_as

LAWS: Final = {2: "a + b Delta tau^2", 4: "a + b Delta tau^2 + c Delta tau^4"}
"""Laws by the highest power of Delta tau. They have as many coefficients as half of it, and one more."""
FALSE_ALARMS: Final = 0.01  # probability that at least one fit rejects the law although it holds
OF_SLICES: Final = ("correlation_in_time_1", "link_overlap", "spin_glass_susceptibility")
"""Averages over slices without a meaning in the quantum model: they count its slices, or bonds in time."""
_RESAMPLES: Final = 500
_NAMED: Final = 3  # largest number of columns named in a sentence
_ALIKE: Final = 1e-10  # an eigenvalue of the runs' correlations below which some runs count as linearly dependent
_ROUNDING: Final = 1e-5  # relative tolerance for couplings that are stored as multiples of different quanta


class AtStep(NamedTuple):
    """Averages of one run, which has one step Delta tau."""

    axis: Axis  # axis of the ladder
    slices: int  # number of slices in time
    gamma: Array  # transverse field at each point, (points,)
    beta: Array  # inverse temperature at each point, (points,)
    space: Ising  # the model in space
    estimates: Mapping[str, Estimate]  # its averages by name
    resampled: Mapping[str, Array] | None
    """For several samples, bootstrap rows (1 + resamples, points) of each average: runs of one model draw the same
    samples. None for one sample, whose runs are independent."""


class Extrapolated(NamedTuple):
    """An average extrapolated to Delta tau = 0, arrays of shape (points,); NaN if a run has no trusted error.

    Attributes:
        value: Value at Delta tau = 0.
        error: Standard error of ``value``. For one sample, this error and that of the slope are multiplied by
            sqrt(chi^2 / freedom) if that is above 1.
        slope: b of a + b Delta tau^2, or of a + b Delta tau^2 + c Delta tau^4.
        slope_error: Standard error of ``slope``.
        chi_squared: chi^2 of the fit; degrees of freedom are the number of runs minus that of coefficients.
        probability: Probability of a chi^2 at least as large; NaN without degrees of freedom.
    """

    value: Array
    error: Array
    slope: Array
    slope_error: Array
    chi_squared: Array
    probability: Array


@public
@dataclass(frozen=True, repr=False)
class Extrapolation(Described):
    """Averages of several runs at Delta tau = 0.

    Attributes:
        axis: The values of k, Gamma or beta at which the averages are given.
        slices: Numbers of slices of the runs, in rising order.
        gamma: Transverse field at each point, (points,).
        beta: Inverse temperature at each point, (points,).
        estimates: Extrapolated averages by name.
        order: Highest power of Delta tau in the law, 2 or 4.
    """

    axis: Axis
    slices: tuple[int, ...]
    gamma: Array
    beta: Array
    estimates: Mapping[str, Extrapolated]
    order: int = 2

    @property
    def _summary(self) -> dict[str, str]:
        return {
            "points": f"{len(self.axis.values)} {self.axis.name} from {self.axis.values.min():g} to "
            f"{self.axis.values.max():g}",
            "slices": f"{enumerated(self.slices, 'and')} slices",
            "averages": count(len(self.estimates), "average"),
            "verdict": self.verdict,
        }

    @cached_property
    def failing(self) -> list[str]:
        """Names of the averages whose chi^2 rejects the law at some point."""
        known = {name: e.probability[np.isfinite(e.probability)] for name, e in self.estimates.items()}
        tests = sum(map(len, known.values()))
        return [name for name, probabilities in known.items() if (probabilities < FALSE_ALARMS / max(1, tests)).any()]

    @property
    def verdict(self) -> str:
        """Verdict in words on how well averages follow the law."""
        if len(self.slices) == coefficients(self.order):
            runs, one = ("two runs draw a line", "third") if self.order == 2 else ("three runs draw a curve", "fourth")
            return f"{runs} and cannot test the law: give a {one} one with other slices"
        tested = sum(int(np.isfinite(e.probability).sum()) for e in self.estimates.values())
        if not tested and any(np.isfinite(e.error).any() for e in self.estimates.values()):
            return (
                "the law could not be tested: so few samples do not tell what the runs have in common, take more of "
                f"them than the {len(self.slices)} runs"
            )
        if not tested:
            return "the law could not be tested: no average has an error in all runs"
        if self.failing:
            first, more = self.failing[:_NAMED], len(self.failing) - _NAMED
            others = f" and {more} more of {len(self.estimates)} columns" if more > 0 else ""
            return (
                f"the law does not hold for {', '.join(first)}{others}: give more slices, or leave out the run with "
                f"{self.slices[0]}"
            )
        least = min(float(np.nanmin(e.probability, initial=1.0)) for e in self.estimates.values())
        return f"the law holds as far as chi^2 shows, whose probability is {least:.2g} in the worst of {tested} fits"

    def columns(self) -> Columns:
        """Return all values as columns of a table, with one row for each point."""
        columns: Columns = {self.axis.name: self.axis.values, "gamma": self.gamma, "beta": self.beta}
        for name, e in self.estimates.items():
            columns |= {name if part == "value" else f"{name}_{part}": getattr(e, part) for part in e._fields}
        return columns


@public
def extrapolate(runs: Iterable[Run], *, order: int = 2) -> Extrapolation:
    """Extrapolate averages of a quantum model to infinitely many slices.

    Fits a + b Delta tau^2, or a + b Delta tau^2 + c Delta tau^4, to every average at every point of the ladder. For one
    sample, errors and chi^2 treat the runs as independent. Several samples are the same in all runs, so errors and
    chi^2 use the covariance of the runs over samples. With at most as many samples as runs this covariance has no
    inverse: then each run keeps its own error, and there is no chi^2.

    Args:
        runs: Two or more results or files of the general form, of one model at the same gamma and beta; three or more
            for order 4.
        order: Highest power of Delta tau, 2 or 4.

    Returns:
        The values of all columns at Delta tau = 0 with errors, and a verdict on the law.

    Raises:
        InputError: for too few runs, runs that differ in more than their slices, equal slices and other orders.
    """
    results = [load_as(QuantumResult, run) for run in runs]
    for result in results:
        if not result.points.is_general:
            raise InputError(
                f"the run of {result.model.name} is of the isotropic form, whose step in time sets gamma: give runs "
                "with gamma and beta"
            )
    steps = [at_step(result, estimates(result)) for result in results]
    if order not in LAWS:
        raise InputError(f"order {order} is no power of the law: give 2 or 4")
    fewest = coefficients(order)
    if len(steps) < fewest:
        many = "two" if fewest == 2 else "three"
        raise InputError(f"{count(len(steps), 'run')} cannot be extrapolated: give {many} or more with other slices")
    for step in steps[1:]:
        if not _differ_in_slices(step, steps[0]):
            raise InputError("the runs differ in more than their slices: give runs of one model, gamma and beta")
    if len({step.slices for step in steps}) < len(steps):
        raise InputError("two runs have equal slices: give one run for each number of slices")
    return extrapolated(steps, order)


def coefficients(order: int) -> int:
    """Number of coefficients of a law."""
    return order // 2 + 1


def at_step(result: QuantumResult, averages: Mapping[str, Estimate]) -> AtStep:
    rows = resampled(result, _RESAMPLES, seed=0) if samples_in(result) > 1 else None
    return AtStep(
        result.axis, result.slices, result.gamma, result.beta, first_slice(model_of_samples(result)), averages, rows
    )


def groups(steps: Sequence[AtStep]) -> list[list[AtStep]]:
    """Return groups of runs that differ only in their slices; each has at least two numbers of slices."""
    alike: list[list[AtStep]] = []
    for step in steps:
        own = next((group for group in alike if _differ_in_slices(step, group[0])), None)
        if own is None:
            alike.append([step])
        else:
            own.append(step)
    return [group for group in alike if len({step.slices for step in group}) > 1]


def _differ_in_slices(one: AtStep, other: AtStep) -> bool:
    """True if two runs have the same model at the same points; couplings may differ slightly by rounding."""
    a, b = one.space, other.space
    points = ((one.gamma, other.gamma), (one.beta, other.beta), (a.graph.edges, b.graph.edges))
    if one.axis.name != other.axis.name or a.samples != b.samples or a.sites != b.sites:
        return False
    rows = ((a.couplings, b.couplings), (a.fields, b.fields))
    return all(np.array_equal(*pair) for pair in points) and all(np.allclose(*pair, _ROUNDING, 0) for pair in rows)


def extrapolated(steps: Sequence[AtStep], order: int = 2) -> Extrapolation:
    steps = sorted(steps, key=lambda step: step.slices)
    names = [name for name in steps[0].estimates if all(name in step.estimates for step in steps)]
    fits = {name: _extrapolated(steps, name, order) for name in names if name not in OF_SLICES}
    one = steps[0]
    return Extrapolation(one.axis, tuple(step.slices for step in steps), one.gamma, one.beta, fits, order)


def _extrapolated(steps: Sequence[AtStep], name: str, order: int) -> Extrapolated:
    each = [step.estimates[name] for step in steps]
    trusted = np.logical_and.reduce([e.trusted for e in each])
    rows = [step.resampled[name] for step in steps if step.resampled is not None]
    fits = []
    for p, beta in enumerate(steps[0].beta):
        squares = np.array([(beta / step.slices) ** 2 for step in steps])
        values = np.array([e.value[p] for e in each])
        together = np.array([row[1:, p] for row in rows])
        if rows and not np.isfinite(together).all():
            trusted[p] = False
        covariance = np.cov(together) if rows else np.diag([e.error[p] ** 2 for e in each])
        fits.append(_fit(squares, values, covariance, steps[0].space.samples, order) if trusted[p] else _NOTHING)
    return Extrapolated(*np.array(fits).T)


_NOTHING: Final = (np.nan,) * len(Extrapolated._fields)


def _fit(squares: Array, values: Array, covariance: Array, samples: int, order: int) -> tuple[float, ...]:
    """Return ``Extrapolated`` at one point: the law through the values by generalised least squares."""
    scale = np.sqrt(np.diag(covariance))
    freedom = len(values) - coefficients(order)
    too_few = 1 < samples <= len(values)  # too few samples: their covariance has no inverse
    if too_few or np.linalg.matrix_rank(covariance / np.outer(scale, scale), _ALIKE) < len(values):
        covariance = np.diag(scale**2)
        freedom = 0
    inverse = np.linalg.inv(covariance)
    law = np.vander(squares, coefficients(order), increasing=True)
    spread = np.linalg.inv(law.T @ inverse @ law)
    parameters = spread @ law.T @ inverse @ values
    rest = values - law @ parameters
    score = float(rest @ inverse @ rest)
    # most of the error is common to all runs, and the scatter about the line contains no trace of it
    wider = score / freedom if freedom and samples == 1 else 1.0
    error = np.sqrt(np.diag(spread) * max(1.0, wider))
    probability = np.nan
    if freedom and samples == 1:
        probability = float(chdtrc(freedom, score))
    elif samples > freedom > 0:  # covariance estimated from the samples: Hotelling's distribution
        probability = float(fdtrc(freedom, samples - freedom, score * (samples - freedom) / (freedom * (samples - 1))))
    return float(parameters[0]), float(error[0]), float(parameters[1]), float(error[1]), score, probability
