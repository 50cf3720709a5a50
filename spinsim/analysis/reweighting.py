"""Averages at temperatures near those that were simulated, from stored energies.

beta = 1/T in the inverse of the energies' unit; energies are totals, not per site. All weights are formed from
logarithms whose largest is 0, so that nothing overflows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp

from spinsim.analysis.autocorrelation import integrated_time
from spinsim.analysis.checks import finite_array, real_array
from spinsim.errors import InputError

Array = npt.NDArray[np.float64]

FEWEST: Final = 100  # effective samples in units of tau


@dataclass(frozen=True)
class Reweighted:
    """An observable at other temperatures; arrays of the shape of ``new_beta``.

    Attributes:
        mean: Reweighted average.
        error: Its standard error. Where few effective samples are left it is too small, as the mean is then off.
        effective_samples: Kish's (sum of w)^2 / (sum of w^2), at most the number of measurements; few where the
            histograms hardly overlap.
        trusted: Whether tau behind the error is trusted and there are 100 tau effective samples or more. Refuse others.
    """

    mean: Array
    error: Array
    effective_samples: Array
    trusted: npt.NDArray[np.bool_]


def weights(energy: npt.ArrayLike, beta: float, new_beta: float) -> Array:
    """Weights exp(-(beta' - beta) E) of measurements made at beta, scaled to mean 1; the energies' shape.

    An average at beta' is the mean of w A. For functions of several such means hand w A and w B together to
    ``jackknife``, with mean(w A) / mean(w) in the function, as a bin's weights do not have mean 1.

    Source: A. M. Ferrenberg, R. H. Swendsen, Phys. Rev. Lett. 61, 2635 (1988).

    Raises:
        InputError: for values that are not finite.
    """
    values = finite_array(energy, "energy", least=1)
    if not np.isfinite([beta, new_beta]).all():
        raise InputError(f"beta {beta} or {new_beta} is not finite: give finite inverse temperatures")
    return _normalised((beta - new_beta) * (values - values.mean()))


def reweight(energy: npt.ArrayLike, observable: npt.ArrayLike, beta: float, new_beta: npt.ArrayLike) -> Reweighted:
    """Single-histogram reweighting of an observable from beta to nearby inverse temperatures.

    The error is that of the series w (A - mean'), the mean's linearised fluctuation, with its own autocorrelation time.

    Source: A. M. Ferrenberg, R. H. Swendsen, Phys. Rev. Lett. 61, 2635 (1988); effective samples L. Kish, Survey
    Sampling (Wiley, 1965); errors U. Wolff, Comput. Phys. Commun. 156, 143 (2004).

    Args:
        energy: Total energies measured at ``beta``, in order of time, of shape (n,) or (n, chains).
        observable: What was measured with them, of the same shape.
        beta: Inverse temperature of the measurements.
        new_beta: Inverse temperatures to reweight to, any shape.

    Raises:
        InputError: for shapes that differ or have more than two axes, fewer than 2 measurements, and values that are
            not finite.
    """
    energies, values = finite_array(energy, "energy"), finite_array(observable, "observable")
    if energies.shape != values.shape or energies.ndim > 2:
        raise InputError(
            f"energy has shape {energies.shape} and observable {values.shape}: give both the same, (n,) or (n, chains)"
        )
    targets = real_array(new_beta, "new_beta")
    chain_axis = 1 if energies.ndim == 2 else None
    mean, error, effective, trusted = [], [], [], []
    for target in targets.flat:
        weight = weights(energies, beta, float(target))
        average = float((weight * values).mean())
        time = integrated_time(weight * (values - average), chain_axis)
        mean.append(average)
        error.append(float(time.mean_error))
        effective.append(_kish(weight))
        trusted.append(bool(time.trusted and effective[-1] >= FEWEST * time.tau))
    return Reweighted(*(np.array(column).reshape(targets.shape) for column in (mean, error, effective, trusted)))


def multi_histogram(
    energy: Sequence[npt.ArrayLike], observable: Sequence[npt.ArrayLike], beta: npt.ArrayLike, new_beta: npt.ArrayLike
) -> Reweighted:
    """Multi-histogram reweighting of an observable measured at several temperatures (needs ``spinsim[pymbar]``).

    Each series is first thinned to one measurement in ceil(2 tau), with the longer tau of energy and observable. The
    error is that of independent data times sqrt(2 tau'), where tau' is what is left of tau, averaged over the series.

    Source: M. R. Shirts, J. D. Chodera, J. Chem. Phys. 129, 124105 (2008), the limit of vanishing bin width of
    A. M. Ferrenberg, R. H. Swendsen, Phys. Rev. Lett. 63, 1195 (1989).

    Args:
        energy: For each temperature its total energies in order of time, of shape (n,); lengths may differ.
        observable: What was measured with them, of the same shapes.
        beta: Inverse temperatures of the measurements, of shape (temperatures,).
        new_beta: Inverse temperatures to reweight to, any shape.

    Returns:
        Means whose effective samples count thinned measurements; trusted where every tau is and where there are at
        least 50 of them, as thinned measurements have tau 1/2.

    Raises:
        InputError: where pymbar is not installed, for shapes that do not fit together, and values that are not finite.
    """
    try:
        from pymbar import MBAR
    except ImportError as missing:
        raise InputError("multi-histogram reweighting needs pymbar: install spinsim[pymbar]") from missing
    betas = finite_array(beta, "beta", least=1)
    if betas.shape != (len(energy),) or len(energy) != len(observable):
        raise InputError(
            f"{len(energy)} series of energies, {len(observable)} of the observable and beta of shape {betas.shape}: "
            "give one series of both for each beta"
        )
    thinned, left, trusted = zip(*map(_thin, energy, observable), strict=True)
    energies, values = np.concatenate(thinned, axis=1)
    energies = energies - energies.mean()
    counts = np.array([series.shape[1] for series in thinned])
    targets = finite_array(np.atleast_1d(new_beta), "new_beta", least=1)
    solved = MBAR(np.outer(betas, energies), counts, solver_protocol="robust")
    with np.errstate(divide="ignore"):  # pymbar takes the logarithm of the observable less its least value
        found = solved.compute_expectations(values, np.outer(targets.ravel(), energies))
    mixture = logsumexp(np.log(counts)[:, None] + solved.f_k[:, None] - np.outer(betas, energies), axis=0)
    kish = [_kish(_normalised(-target * energies - mixture)) for target in targets.flat]
    shape = np.shape(new_beta)
    effective = np.reshape(kish, shape)
    correlated = np.sqrt(2 * np.mean(left))
    mean, error = (np.asarray(found[name], dtype=np.float64).reshape(shape) for name in ("mu", "sigma"))
    return Reweighted(mean, error * correlated, effective, np.asarray(all(trusted) & (effective >= FEWEST / 2)))


def _normalised(logarithms: Array) -> Array:
    """Exponentials of the logarithms, scaled to mean 1."""
    weight = np.exp(logarithms - logarithms.max())
    return np.asarray(weight / weight.mean())


def _kish(weight: Array) -> float:
    """Effective samples of weights of mean 1."""
    return float(weight.size / (weight**2).mean())


def _thin(energy: npt.ArrayLike, observable: npt.ArrayLike) -> tuple[Array, float, bool]:
    """Energies and observable (2, thinned), one in ceil(2 tau); the tau left, at least 1/2; whether tau is trusted."""
    energies, values = finite_array(energy, "energy"), finite_array(observable, "observable")
    if energies.ndim > 1 or energies.shape != values.shape:
        raise InputError(f"energy has shape {energies.shape} and observable {values.shape}: give both the same (n,)")
    series = np.stack([energies, values])
    time = integrated_time(series.T)
    thinned = series[:, :: int(np.ceil(2 * time.tau.max()))]
    left = float(integrated_time(thinned.T).tau.max()) if thinned.shape[1] > 1 else 0.5
    return thinned, max(left, 0.5), bool(time.trusted.all())
