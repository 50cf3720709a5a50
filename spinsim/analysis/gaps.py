"""Correlations in time of runs of space and time, and the gaps that follow from their decay.

C(t) of an operator that changes the parity, such as a spin, is a sum over the levels of odd parity. If beta times the
gap is large, each level contributes c cosh(gap (slices / 2 - t)), gap = ln(lambda_0 / lambda) in units of 1 / step in
time. For an operator that keeps the parity, such as the product of two spins, C(t) less the square of its average is a
sum over the levels of even parity above the ground state. All c are positive, so that fits over too early times lie
above the lowest gap, never below.

At a temperature above 0, transitions between excited states contribute to C(t), in proportion to exp(- beta gap) of the
lowest gap, which is odd. Fits then lie far above this gap, while even gaps may come out a quarter too low. In exact
spectra of rings of 6 and 7 (uniform, +-J and Gaussian couplings, Gamma from 0.4 to 3) the remaining relative error at
beta gap = 8 is 0.0001 for odd gaps and 0.003 for even ones; for even gaps it is 0.02 at 6 and 0.2 at 3.

Where configurations were saved and space is small, gaps come from the operator that shows the lowest level of a parity
best, else from the averages over sites, or bonds, that every run measures.

The spins s_x of a small space, or products of two of them less their averages, are operators O_a of one parity, whose
correlations C_ab(t), the averages over slices of O_a(tau) O_b(tau + t), are sums over the levels of that parity. Close
levels, which C(t) of a single operator cannot resolve, are separate eigenvectors of this matrix. The combination v with
the largest lambda in C(1) v = lambda C(0) v couples least to all levels but the lowest, and the remaining contribution
of levels that the operators span decays with t. Each half of a run is measured with the combination from the other
half: noise mistaken for a signal in one half is independent of the other, so that C(t) is unbiased.

Sources: C. Michael, Nucl. Phys. B 259, 58 (1985); M. Luescher, U. Wolff, Nucl. Phys. B 339, 222 (1990); B. Blossier,
M. Della Morte, G. von Hippel, T. Mendes, R. Sommer, JHEP 04 (2009) 094.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.fft import irfft, rfft
from scipy.linalg import eigh

from spinsim.analysis.autocorrelation import integrated_time
from spinsim.analysis.cosh_fits import Fits, fit_all
from spinsim.analysis.jackknife import bin_means, standard_error, too_small
from spinsim.analysis.run_sums import IndependentRuns
from spinsim.analysis.runs import Array, Bools, Integers, InTime, Tempered, samples_in
from spinsim.analysis.statistics import measurements_of, statistics_of
from spinsim.errors import InputError, argument
from spinsim.model.graph import Graph
from spinsim.observables.moments import correlation_name
from spinsim.packing import Bits, unpacked_spins
from spinsim.saved import Configurations

LEAST: Final = 8.0  # beta times the odd gap below which excited states take part in C(t)
PARITIES: Final = ("odd", "even")  # parities of the levels whose gaps are found
MOST_OPERATORS: Final = 128  # most operators of a matrix: more take long, and need ever longer runs against noise
_MOST_LATER: Final = 16
_TRAINED: Final = 2**13  # most configurations of a half from which a combination is found
_TOGETHER: Final = 2**16  # slices whose operators are in memory at a time; their sums are exact in float32
_DEPENDENT: Final = 1e-6  # share of the largest eigenvalue of C(0): combinations below hardly change, and are left out
BINS: Final = 48  # stretches of time that each copy's series is cut into
FEWEST_STEPS: Final = 4 * BINS


@dataclass(frozen=True)
class Gaps(Fits):
    """Gap of one parity for each sample at each place of the ladder, (samples, places); NaN where there is none.

    Excited states contribute to C(t) where the odd gap is below ``LEAST`` / beta, which is then its bound; they may
    contribute where no odd gap is found. Even gaps are left out in both cases. For averages over sites or bonds, the
    fitted value is an upper bound of the gap.
    """

    operators: Integers  # number of operators in the combination; 1 for the average over sites or bonds
    is_hot: Bools  # true where excited states contribute, or may
    bound: Array  # upper bound of the gap; NaN where there is none


class Decay(NamedTuple):
    """Data that a gap was fitted to, of one sample at one place of the ladder, and the fit."""

    time: Integers  # in slices, (times,)
    value: Array  # C(t), likewise
    error: Array  # its standard error, from stretches
    first: int = 0  # first time of the window that was fitted; 0 where there is none
    last: int = 0  # last time of the window
    gap: float = np.nan
    amplitude: float = np.nan  # c cosh(...) at ``first``
    second_gap: float = 0.0  # of a second level, if the fit has one
    second_amplitude: float = 0.0
    operators: int = 1  # as in ``Gaps``


class _Correlated(NamedTuple):
    """C(t) of samples at places of the ladder, as data of fits."""

    times: Integers  # in slices, (times,)
    mean: Array  # (samples, places, times)
    covariance: Array  # of its errors, (samples, places, times, times)
    entries: int  # stretches of copies from which mean and covariance come
    most_levels: int  # most levels of a fit
    operators: int  # number of operators combined in C(t); 1 for averages


@dataclass(frozen=True)
class InTimeCurve:
    """C(t) with its errors."""

    time: Integers  # in slices, (times,)
    value: Array  # averaged over time, copies and disorder, (temperatures, times)
    error: Array  # standard error: from the scatter of samples or, for one sample, the autocorrelation of its series
    trusted: Bools  # true where the error can be trusted, see ``Estimate``


def has_leading(result: Tempered, parity: str) -> bool:
    """Return True if enough configurations of a small space were saved; even parity needs two copies."""
    saved: Configurations | None = getattr(result, "configurations", None)
    if result.disorder is not None:
        return False  # several runs of one sample are joined in sums alone
    if saved is None or saved.shape[0] < FEWEST_STEPS or (parity == "even" and saved.shape[2] < 2):
        return False
    return _operators(result.model.graph, parity) is not None


def _operators(graph: Graph, parity: str) -> Integers | None:
    """Return the rows of ``world_lines`` that each operator multiplies, (operators, 1 or 2); None for too many."""
    sites = graph.sites // graph.slices
    if parity == "odd":
        return np.arange(sites)[:, None] if sites <= MOST_OPERATORS else None
    pairs = np.stack(np.triu_indices(sites, 1), axis=1)
    chosen = pairs if len(pairs) <= MOST_OPERATORS else np.unique(np.sort(graph.bonds_in_space(), axis=1), axis=0)
    return chosen.astype(np.int64) if 0 < len(chosen) <= MOST_OPERATORS else None


def _leading(bits: Bits, lines: Integers, operators: Integers, times: Integers, even: bool) -> Array:
    """Return C(t) of configurations (rows, copies, bytes), (rows, copies, times); even parity averages over copies."""
    middle = len(bits) // 2
    halves = bits[:middle], bits[middle:]
    of_other = [_trained(half, lines, operators, even) for half in halves[::-1]]
    parts = [_measured(half, *by, lines, operators, times) for half, by in zip(halves, of_other, strict=True)]
    correlation, mean = (np.concatenate([part[k] for part in parts]) for k in range(2))
    if even:  # the mean's square from all pairs of copies, which are independent
        others = (mean.sum(axis=1, keepdims=True) - mean) / (mean.shape[1] - 1)
        correlation = (correlation - (mean * others)[..., None]).mean(axis=1, keepdims=True)
    return np.asarray(correlation)


def _spins(bits: Bits, lines: Integers) -> Iterator[tuple[slice, npt.NDArray[np.int8]]]:
    """Yield spins (configurations, sites of space, slices) of configurations (configurations, bytes) in parts."""
    together = max(1, _TOGETHER // lines.shape[1])
    for first in range(0, len(bits), together):
        chosen = slice(first, first + together)
        yield chosen, unpacked_spins(bits[chosen], lines.size)[:, lines]


def _trained(bits: Bits, lines: Integers, operators: Integers, even: bool) -> tuple[Array, float]:
    """Return the weights of the operators from half of a run, and the average to subtract from their weighted sum."""
    flat = bits.reshape(-1, bits.shape[-1])
    chosen = flat[:: max(1, -(-len(flat) // _TRAINED))]
    many, slices = len(operators), lines.shape[1]
    now, later, total = np.zeros((many, many)), np.zeros((many, many)), np.zeros(many)
    for _, spins in _spins(chosen, lines):
        by_site: Any = np.ascontiguousarray(spins.swapaxes(0, 1), np.float32)
        values = by_site[operators[:, 0]]
        if operators.shape[1] == 2:
            values *= by_site[operators[:, 1]]
        at, after = values.reshape(many, -1), np.roll(values, -1, axis=2).reshape(many, -1)
        now += at @ at.T
        later += at @ after.T
        total += at.sum(axis=1)
    count = len(chosen) * slices
    averages = total / count if even else np.zeros(many)
    square = np.outer(averages, averages)
    now, later = now / count - square, (later + later.T) / (2 * count) - square
    sizes, directions = eigh(now)
    there = sizes > _DEPENDENT * sizes[-1]
    if not there.any():  # nothing has changed in this half
        return np.zeros(many), 0.0
    basis = directions[:, there] / np.sqrt(sizes[there])
    weights = basis @ eigh(basis.T @ later @ basis)[1][:, -1]
    return weights, float(weights @ averages)


def _measured(
    bits: Bits, weights: Array, constant: float, lines: Integers, operators: Integers, times: Integers
) -> tuple[Array, Array]:
    """Return C(t) (rows, copies, times) of a combination in the other half, and its mean (rows, copies)."""
    flat = bits.reshape(-1, bits.shape[-1])
    form = np.zeros((len(lines), len(lines)))
    form[operators[:, 0], operators[:, -1]] = weights
    correlation, mean = np.empty((len(flat), len(times))), np.empty(len(flat))
    for chosen, spins in _spins(flat, lines):
        of_space = spins.swapaxes(1, 2).astype(np.float64)
        if operators.shape[1] == 1:
            one = of_space @ form.diagonal() - constant
        else:
            one = (of_space @ form * of_space).sum(axis=2) - constant
        mean[chosen], waves = one.mean(axis=1), rfft(one, axis=1)  # averages of o(tau) o(tau + t) around the ring
        correlation[chosen] = (irfft(waves.real**2 + waves.imag**2, one.shape[1], axis=1) / one.shape[1])[:, times]
    return correlation.reshape(*bits.shape[:2], -1), mean.reshape(bits.shape[:2])


def has_even(result: Tempered) -> bool:
    return has_connected(result) or has_leading(result, "even")


def has_connected(result: Tempered) -> bool:
    if result.reduced is not None:
        return {correlation_name(0, even=True), "q_link in space"} <= result.reduced.names.keys()
    even = None if result.in_time is None else result.in_time.even
    return even is not None and even.link_overlap.shape[2] > 0


def correlation_in_time(result: Tempered, parity: str = "odd") -> InTimeCurve:
    """Return C(t) at each place of the ladder: of spins, or the connected one of products of neighbours in space."""
    terms = _terms(result, parity, 16)
    times, of_samples = terms.times, terms.mean
    error = np.sqrt(np.diagonal(terms.covariance[0], axis1=1, axis2=2)) * terms.wider[0, :, None]
    trusted = np.broadcast_to(terms.trusted[0, :, None], error.shape) & (error > 0)
    if len(of_samples) > 1:
        error = standard_error(of_samples)
        trusted = np.isfinite(error) & (error > 0)
    return InTimeCurve(times, of_samples.mean(axis=0), error, trusted)


def gaps_by_parity(result: Tempered) -> dict[str, Gaps]:
    """Fit levels c cosh(gap (slices / 2 - t)) to C(t) of each sample at each place of the ladder.

    C(t) of the operator that shows the lowest level best is fitted with one level. C(t) of spins or products of
    neighbours is fitted with two levels where they can be resolved; the lower gap is given. Levels too close to be
    resolved raise the gap, which the error does not include. The fit uses the covariance of the times, from stretches
    of the series, widened where stretches are short against the autocorrelation time. Its window ends before the first
    time at which C(t) is not four errors above 0. It begins one time after the first from which on the fit is good,
    with a probability of chi^2 of 0.1 or more, and has at most twelve times.

    Where beta times the odd gap is below ``LEAST``, or no odd gap is known, there is no gap of either parity.
    """
    odd = _fitted(result, "odd")
    return {"odd": odd, "even": _fitted(result, "even", odd)} if has_even(result) else {"odd": odd}


def _fitted(result: Tempered, parity: str, odd: Gaps | None = None) -> Gaps:
    """Return the gaps of a parity; even parity needs the gaps of odd parity, ``odd``."""
    correlated = _correlated(result, parity, range(samples_in(result)))
    slices, shape = result.model.graph.slices, correlated.mean.shape[:2]
    of_places = {name: values.reshape(shape) for name, values in vars(_fits(correlated, slices)).items()}
    gap, bound = of_places["gap"], np.full(shape, np.nan)
    if correlated.operators == 1:
        bound[...] = gap
    if odd is None:
        is_hot = gap * slices < LEAST
        bound[is_hot] = LEAST / slices
    else:
        is_hot = ~np.isfinite(odd.gap)
        bound[is_hot] = np.nan
    for name in ("gap", "error"):
        of_places[name] = np.where(is_hot, np.nan, of_places[name])
    return Gaps(**of_places, operators=np.full(shape, correlated.operators), is_hot=is_hot, bound=bound)


def decays(result: Tempered, parity: str) -> list[Decay]:
    correlated = _correlated(result, parity, [0])
    fits = _fits(correlated, result.model.graph.slices)
    error = np.sqrt(np.diagonal(correlated.covariance[0], axis1=1, axis2=2))
    levels = fits.gap, fits.amplitude, fits.second_gap, fits.second_amplitude
    windows = zip(fits.first.tolist(), fits.last.tolist(), *levels, strict=True)
    each = zip(correlated.mean[0], error, windows, strict=True)
    return [Decay._make((correlated.times, value, of, *window, correlated.operators)) for value, of, window in each]


def _fits(correlated: _Correlated, slices: int) -> Fits:
    times = len(correlated.times)
    mean, covariance = correlated.mean.reshape(-1, times), correlated.covariance.reshape(-1, times, times)
    return fit_all(mean, covariance, correlated.entries, correlated.times, slices, correlated.most_levels)


def _correlated(result: Tempered, parity: str, samples: Iterable[int]) -> _Correlated:
    if result.model.fields.any():
        raise InputError(
            f"{result.model.name} is in a field, where parity is broken and C(t) does not vanish: leave the field out "
            "for gaps of each parity"
        )
    if has_leading(result, parity):
        return _of_leading(result, parity, samples)
    return _of_terms(result, parity, samples)


def _of_leading(result: Tempered, parity: str, samples: Iterable[int]) -> _Correlated:
    """Return C(t) of the operators that show the lowest level best."""
    saved, graph = result.configurations, result.model.graph
    operators = _operators(graph, parity)
    assert saved is not None and operators is not None  # noqa: S101, PT018  (as has_leading says)
    lines, times = graph.world_lines().astype(np.int64), np.arange(1, min(_MOST_LATER, graph.slices // 2) + 1)

    def of(bits: Bits) -> Array:
        return _leading(bits, lines, operators, times, parity == "even")

    each = [[of(bits[:, :, p]) for p in range(bits.shape[2])] for bits in map(saved.of_sample, samples)]
    return _Correlated(times, *_means_of(each), most_levels=1, operators=len(operators))


def _means_of(series: list[list[Array]]) -> tuple[Array, Array, int]:
    """C(t), its covariance and the number of stretches, for series (steps, copies, times) by sample and place."""
    each = []
    for of in (of for of_sample in series for of in of_sample):
        entries = bin_means(of, BINS).reshape(-1, of.shape[-1])
        covariance = np.cov(entries.T).reshape(of.shape[-1], -1) / len(entries)
        wider = too_small(np.sqrt(np.diag(covariance)), integrated_time(of, chain_axis=1).mean_error)
        each.append((entries.mean(axis=0), covariance * float(wider.max()) ** 2))
    shape = len(series), len(series[0])
    mean, errors = (np.array(parts).reshape(*shape, *parts[0].shape) for parts in zip(*each, strict=True))
    return mean, errors, len(entries)


def _in_time(result: Tempered, parity: str, least: int) -> InTime:
    """Return the measurements in time of a run, if it is long enough and has this parity."""
    measured, count = result.in_time, measurements_of(result)
    if measured is None:
        raise InputError(f"the run of {result.model.name} has no slices in time: give the file of a quantum run")
    if count < least:
        raise InputError(f"{count} measurements are too few: give at least {least}")
    if parity == "even" and not has_connected(result):
        raise InputError(
            f"the run of {result.model.name} has no products of neighbours of two copies: run it again with "
            f"{argument('even_correlations', True)} and two replicas or more"
        )
    return measured


class _Terms(NamedTuple):
    """C(t) averaged over copies."""

    times: Integers  # in slices, (times,)
    mean: Array  # over the whole run, (samples, temperatures, times)
    covariance: Array  # of these averages, from full blocks, (samples, temperatures, times, times)
    blocks: int  # number of full blocks, the smallest of pooled runs
    wider: Array  # factor that widens errors from blocks, (samples, temperatures)
    trusted: Bools  # true where autocorrelation times are known, likewise


def _terms(result: Tempered, parity: str, least: int) -> _Terms:
    """Return C(t) averaged over copies, with its covariance from blocks, and autocorrelation times that judge these."""
    times, statistics = _in_time(result, parity, least).times, statistics_of(result)
    *found, blocks = zip(
        *(_terms_of(part.runs, len(times), parity == "even") for part in statistics.parts), strict=True
    )
    order = np.argsort(np.concatenate([part.samples for part in statistics.parts]))
    mean, covariance, wider, trusted = (np.concatenate(each)[order] for each in found)
    return _Terms(times, mean, covariance, min(blocks), wider, trusted)


def _terms_of(runs: IndependentRuns, times: int, even: bool) -> tuple[Array, Array, Array, Bools, int]:
    """Averages, covariance, factors that widen errors, marks of known times, and number of blocks, as in ``_Terms``."""
    names = [correlation_name(k, even) for k in range(times)]
    mean, blocks = (np.stack([find(name) for name in names], axis=-1) for find in (runs.mean, runs.block_means))
    if even:
        mean -= runs.mean("q_link in space")[..., None]
        blocks -= runs.block_means("q_link in space")[..., None]
    followed = ("e_s", "q_link") if even else (correlation_name(0), "m^2")
    known = [(runs.time(name), runs.block_means(name)) for name in followed if name in runs.first.names]
    wider = np.max([too_small(standard_error(parts), time.mean_error) for time, parts in known], axis=0)
    centred, count = np.moveaxis(blocks - blocks.mean(axis=0), 0, -1), len(blocks)  # (samples, temperatures, times, .)
    covariance = centred @ centred.swapaxes(-1, -2) / (count * (count - 1))
    return mean, covariance, wider, np.logical_and.reduce([time.trusted for time, _ in known]), count


def _of_terms(result: Tempered, parity: str, samples: Iterable[int]) -> _Correlated:
    """Return C(t) of averages over sites or bonds."""
    terms, chosen = _terms(result, parity, FEWEST_STEPS), list(samples)
    covariance = terms.covariance[chosen] * terms.wider[chosen, :, None, None] ** 2
    return _Correlated(terms.times, terms.mean[chosen], covariance, terms.blocks, most_levels=2, operators=1)
