"""Dynamic exponents of quantum transitions: from numbers of slices, times, and tails of local susceptibilities.

At a quantum critical point lengths in time grow as L^z. The Binder cumulant of the order parameter of space and time,
U(L, L_t) = u(L_t / L^z), is largest where both lengths match: short times and long times both break the order up. Of
glasses it is averaged over the samples, [1 - <q^4> / (3 <q^2>^2)]: the ratio of averages 1 - [<q^4>] / (3 [<q^2>]^2)
falls with L_t from few slices on, as few samples with small gaps dominate [<q^4>]. M. Guo, R. N. Bhatt, D. A. Huse,
Phys. Rev. Lett. 72, 4137 (1994); H. Rieger, A. P. Young, Phys. Rev. Lett. 72, 4141 (1994). With many slices the
correlation length in time itself grows as L^z: F. Cooper, B. Freedman, D. Preston, Nucl. Phys. B 210, 210 (1982).

Near the transition of a disordered model rare regions give local susceptibilities a tail, P(chi_local > x) ~
x^(-d / z'), with z' a dynamic exponent that varies with the field: H. Rieger, A. P. Young, Phys. Rev. B 54, 3328
(1996).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from spinsim.analysis.jackknife import bootstrap
from spinsim.analysis.runs import Array, Tempered, once, samples_in
from spinsim.analysis.scaling.curves import Size, order_of, size_of
from spinsim.analysis.scaling.limits import SizeFit, power_of_size
from spinsim.analysis.scaling.peaks import peak_of
from spinsim.analysis.sizes import RESAMPLES, sites_of_space
from spinsim.analysis.statistics import statistics_of
from spinsim.errors import InputError
from spinsim.inputs.arguments import public
from spinsim.observables.quantities import in_space
from spinsim.observables.table import CROSSING, binder_cumulant
from spinsim.result import Run, as_result, runs_in

_OVERLAP: Final = CROSSING["overlap"][0]
_TIMES: Final = ("correlation_time_over_slices", "overlap_correlation_time_over_slices")
_LONGEST: Final = 0.2  # correlation time over slices beyond which the end of time cuts it off
_IN_TIME: Final = 2  # degree of the polynomial in the logarithm of the number of slices
_FEWEST_SLICES: Final = 3
_FEWEST_IN_TAIL: Final = 10


class _Slices(NamedTuple):
    """Time of a size in slices, of all data and of each resample."""

    side: float
    resampled: dict[str, Array]


@public
def dynamic_exponent(runs: Iterable[Run], at: float, name: str | None = None, *, smallest: float = 0) -> SizeFit:
    """Dynamic exponent z at the critical point ``at``, from best numbers of slices or from correlation times.

    By default, and for cumulants: a parabola in ln L_t through the cumulants of one size has its largest value at L_t ~
    L^z. For a correlation time over slices: this times L_t grows as L^z, if there are many more slices; a tenth or less
    is best. Averages between points of a ladder are from cubic polynomials. Errors do not include that of ``at``.

    Args:
        runs: Quantum results or files of one model in two sizes or more. For cumulants each size needs three numbers of
            slices or more; of correlation times the run with most slices counts.
        at: The critical k (Gamma, beta), within all ladders.
        name: A cumulant, ``correlation_time_over_slices`` or ``overlap_correlation_time_over_slices``; by default the
            Binder cumulant of the order parameter of space and time, of overlaps the average of each sample's cumulant.
        smallest: Smaller sizes are left out.

    Returns:
        The fit of L_t = a L^z, a ``SizeFit``: ``value`` is z; ``sides`` and ``values`` have L and the best number of
            slices, or the correlation time in slices.

    Raises:
        InputError: for too few sizes or slices, an unknown average, sizes whose largest cumulant is at an end, and
            correlation times above a fifth of the slices.

    Source: M. Guo, R. N. Bhatt, D. A. Huse, Phys. Rev. Lett. 72, 4137 (1994); H. Rieger, A. P. Young, Phys. Rev. Lett.
    72, 4141 (1994).
    """
    results = [as_result(one) for one in runs_in(runs)]
    _check_in_time(*results)
    sizes = [size_of(one) for one in results]
    chosen = name or CROSSING[order_of(sizes)][0]
    if name is None and chosen == _OVERLAP:
        sizes = [_of_samples(one) for one in sizes]
    time_of = _correlation_time if chosen in _TIMES else _best
    sides = sorted({one.side for one in sizes if one.side >= smallest})
    return power_of_size([time_of(side, [one for one in sizes if one.side == side], at, chosen) for side in sides],
                         "slices")  # fmt: skip


def _of_samples(size: Size) -> Size:
    """The size with the average of each sample's cumulant in the place of the cumulant of averages."""
    if samples_in(size.result) == 1 or _OVERLAP not in size.rows:
        return size
    return size._replace(rows={**size.rows, _OVERLAP: _cumulants_of_samples(size.result)})


@once
def _cumulants_of_samples(result: Tempered) -> Array:
    """Average of each sample's cumulant with bootstrap resamples, (1 + resamples, points)."""
    moments = statistics_of(result).entries(("q^2", "q^4"))  # (samples, 2, points)
    cumulants = binder_cumulant(moments[:, 0], moments[:, 1])[:, np.argsort(result.axis.values)]
    return bootstrap(np.asarray, cumulants, RESAMPLES, sites_of_space(result.model), takes_many=True)


def _correlation_time(side: float, sizes: Sequence[Size], at: float, name: str) -> _Slices:
    """Correlation time of one size in slices, from its run with most slices."""
    longest = max(sizes, key=lambda one: one.result.model.graph.slices)
    slices, rows = longest.result.model.graph.slices, longest.at(name, at)
    if not np.isfinite(rows[0]):
        raise InputError(f"L = {side:g} has no {name} at {longest.symbol} = {at:g}: give more samples or more sweeps")
    if rows[0] > _LONGEST:
        raise InputError(
            f"the correlation time of L = {side:g} is {rows[0]:.2g} of its {slices} slices, above {_LONGEST:g}: give "
            "more slices"
        )
    return _Slices(side, {"slices": slices * rows})


def _best(side: float, sizes: Sequence[Size], at: float, name: str) -> _Slices:
    """Number of slices of the largest cumulant of one size, from runs of several numbers of slices."""
    ordered = sorted(sizes, key=lambda one: one.result.model.graph.slices)
    slices = np.array([one.result.model.graph.slices for one in ordered])
    if len(set(slices.tolist())) < max(len(slices), _FEWEST_SLICES):
        raise InputError(
            f"L = {side:g} has runs of {', '.join(map(str, slices))} slices: give three different numbers or more"
        )
    rows = np.stack([one.at(name, at) for one in ordered], axis=1)
    curve = Size(side, np.log(slices), {name: rows}, {name: len(rows)}, ordered[0].result, "ln L_t")
    peak = peak_of(curve, name, degree=_IN_TIME)
    if not np.isfinite(peak.place):
        raise InputError(
            f"L = {side:g}: the cumulant is largest at an end of {slices[0]} to {slices[-1]} slices: give runs of more "
            "or of fewer"
        )
    return _Slices(side, {"slices": np.exp(peak.resampled["place"])})


@dataclass(frozen=True)
class LocalTail:
    """Tail of the distribution of local susceptibilities, P(chi_local > x) ~ x^-exponent; arrays of shape (points,).

    Attributes:
        exponent: Exponent d / z' at each point of the ladder.
        error: Its standard error, from bootstrap resamples of the samples; NaN for one sample.
        start: Susceptibility from which on the tail is taken, in 1 / unit of the couplings.
        z: z' at each point: dimension of space over ``exponent``; susceptibilities have no mean where it exceeds d.
    """

    exponent: Array
    error: Array
    start: Array
    z: Array


@public
def local_tail(run: Run, share: float = 0.1) -> LocalTail:
    """Exponent of the tail of the local susceptibilities of a disordered quantum model at each point of the ladder.

    Hill's estimator: 1 / mean of ln(chi / chi_start) over the largest susceptibilities.

    Args:
        run: A quantum run with ``local_susceptibility``, or its file.
        share: Share of all sites of all samples that make the tail, above 0 and at most 0.5. Compare several.

    Returns:
        ``exponent``, ``error``, ``start`` and ``z`` of a ``LocalTail``, (points,) each.

    Raises:
        InputError: for runs without local susceptibilities, and fewer than ten sites in the tail.

    Source: B. M. Hill, Ann. Stat. 3, 1163 (1975); H. Rieger, A. P. Young, Phys. Rev. B 54, 3328 (1996).
    """
    result: Any = as_result(run)
    if not 0 < share <= 0.5:
        raise InputError(f"share {share} of the sites is no tail: give a number above 0 and at most 0.5, such as 0.1")
    _check_in_time(result)
    values = result.local_susceptibility.mean(axis=1)  # of the copies, (samples, points, sites)
    samples, points, sites = values.shape
    if share * samples * sites < _FEWEST_IN_TAIL:
        raise InputError(
            f"{share:g} of {samples * sites} local susceptibilities are fewer than {_FEWEST_IN_TAIL}: give more samples"
        )
    random = np.random.default_rng(0)
    drawn = np.concatenate([np.arange(samples)[None], random.integers(samples, size=(RESAMPLES, samples))])
    found = np.array([[_hill(values[of, p].ravel(), share) for of in drawn] for p in range(points)])
    exponent, lattice = found[:, 0, 0], in_space(result.model)
    error = found[:, 1:, 0].std(axis=1, ddof=1) if samples > 1 else np.full(points, np.nan)
    return LocalTail(exponent, error, found[:, 0, 1], (np.nan if lattice is None else lattice.dimension) / exponent)


def _check_in_time(*results: Tempered) -> None:
    for one in results:
        if one.in_time is None:
            raise InputError(f"the run of {one.model.name} has no slices in time: give a quantum run")


def _hill(values: Array, share: float) -> tuple[float, float]:
    """Exponent of the tail of positive values, and where it starts."""
    count = int(share * len(values))
    largest = np.partition(values, len(values) - count - 1)[len(values) - count - 1 :]
    start = largest.min()
    return float(count / np.log(largest / start).sum()), float(start)
