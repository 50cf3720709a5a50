"""Correlations of spins and overlaps in space, and their Fourier transforms, from saved configurations.

A field f(x) of a configuration, or of copies at one temperature, has the power P(k) = |sum_x f(x) exp(-i k x)|^2 / N.
Its average is a susceptibility at momentum k, and (1 / N) sum_k P(k) exp(i k r) the average over x of f(x) f(x + r).
Fields are

* s(x): the structure factor S(k) and C(r) = [<s(x) s(x + r)>];
* q(x) = s_a(x) s_b(x) of each pair of copies: chi_SG(k) and C4(r) = [<s(x) s(x + r)>^2];
* in a field (s_a(x) - s_b(x)) (s_c(x) - s_d(x)) / 2 of four copies, in three ways: the replicon chi_R(k) and
  G_R(r) = [(<s(x) s(x + r)> - <s(x)> <s(x + r)>)^2], as copies are independent.

The second-moment correlation length is xi = sqrt(chi(0) / chi(k_1) - 1) / K_1, and R_12 = chi(k_1) / chi(k_2) with
k_1 = (2 pi / L, 0, ...) and k_2 = (2 pi / L, +-2 pi / L, 0, ...), averaged over the longest axes. Averages over the
pairs within each quantile of |q|, in a field over the four copies within each of the median of their overlaps, show
what averages over all of them mix.

Sources: F. Belletti et al. (Janus), J. Stat. Phys. 135, 1121 (2009) for C4; R. A. Banos et al. (Janus), PNAS 109, 6452
(2012) for the replicon and R_12; M. Baity-Jesi et al. (Janus), J. Stat. Mech. P05014 (2014) for quantiles;
M. Palassini, S. Caracciolo, Phys. Rev. Lett. 82, 5128 (1999) for xi.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import partial
from itertools import combinations
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from scipy.fft import fftn, ifft

from spinsim.analysis.jackknife import Jackknife
from spinsim.analysis.runs import Array
from spinsim.analysis.space.entries import Measured, bins_of, entries_of, in_quantiles, periodic_grid, saved_run
from spinsim.analysis.space.estimates import Estimates, Panel
from spinsim.errors import InputError
from spinsim.inputs.arguments import public
from spinsim.model.lattice import Lattice
from spinsim.observables.quantities import in_field
from spinsim.observables.table import COPIES_IN_FIELD, correlation_length
from spinsim.result import Run

_WAYS: Final = (((0, 1), (2, 3)), ((0, 2), (1, 3)), ((0, 3), (1, 2)))  # four copies as two pairs


@public
def space(run: Run, quantiles: int = 5, bins: int = 16) -> Estimates:
    """Correlations in space and susceptibilities at all axis momenta, from the saved configurations of a run.

    Args:
        run: A tempering run with ``save_configurations`` on a periodic lattice, or its file; two copies for overlaps,
            in a field four.
        quantiles: Number of quantiles of the overlap |q| of two copies, in a field of the median of four, of equal
            shares.
        bins: Bins of equal width of this overlap; those at the ends of quantiles are divided.

    Returns:
        Averages along the longest axes, with jackknife errors over samples or, for one sample, blocks of time:
        ``correlation`` C(r), (temperatures, distances), ``structure_factor`` S(k) at k = 2 pi r / L, likewise,
        ``length`` xi of S, (temperatures,); ``overlap_correlation`` C4(r), ``overlap_susceptibility`` chi_SG(k),
        ``overlap_length`` and, with right angles and two longest axes, ``ratio`` R_12. ``conditioned_correlation`` and
        ``conditioned_susceptibility`` are C4(r) and chi_SG(k) in each quantile, (temperatures, quantiles, distances).
        In a field overlaps are those of the replicon, and ``length`` is left out. ``arrays`` has ``temperature``,
        ``distance`` and ``wave_number``.

    Examples:
        >>> run = ss.temper(ss.EdwardsAnderson(ss.square(4), 4), "1:2:3", 200, save_configurations=2, device="cpu")
        >>> ss.space(run)["overlap_susceptibility"].value.shape  # (temperatures, k = 0, pi / 2, pi)
        (3, 3)

    Raises:
        InputError: for a run that has saved no configurations, a model without a periodic lattice, and fewer than one
            quantile or bin.
    """
    if min(quantiles, bins) < 1:
        raise InputError(f"there are no {quantiles} quantiles from {bins} bins: give at least 1 of each")
    result, saved = saved_run(run)
    lattice, field = periodic_grid(result), in_field(result.model)
    has_overlaps = saved.shape[2] >= (COPIES_IN_FIELD if field else 2)
    measure = partial(_measure, lattice=lattice, field=field, bins=bins)
    averages = entries_of(result, [saved], measure, ("S", "chi") if has_overlaps else ("S",))
    side = max(lattice.shape)
    momentum = lattice.momentum(lattice.shape.index(side))

    def length(chi: Array) -> Array:
        return correlation_length(chi[:, 0], chi[:, 1], momentum)

    found = {"correlation": averages.mean("C"), "structure_factor": averages.mean("S")}
    found |= {} if field else {"length": averages.estimate(length, "S")}
    if has_overlaps:
        found |= {"overlap_correlation": averages.mean("C4"), "overlap_susceptibility": averages.mean("chi")}
        found["overlap_length"] = averages.estimate(length, "chi")
        conditioned = partial(in_quantiles, quantiles=quantiles)
        for name, sums in {"correlation": "C4 in bins", "susceptibility": "chi in bins"}.items():
            found[f"conditioned_{name}"] = averages.estimate(conditioned, "bins", sums)
    if "diagonal" in averages.arrays:
        found["ratio"] = averages.estimate(lambda chi, other: chi[:, 1] / other, "chi", "diagonal")
    distance = np.arange(side // 2 + 1)
    wave_number = np.asarray(2 * np.pi * distance / side)
    lengths = {"xi/L": "length", "xi_q/L": "overlap_length"}
    over = {head: vars(found[name]) for head, name in lengths.items() if name in found}
    printed = {head: Jackknife(*(part / side for part in parts.values())) for head, parts in over.items()}
    printed |= {"R_12": found["ratio"]} if "ratio" in found else {}
    for name, head in {"structure_factor": "S", "overlap_susceptibility": "chi"}.items():
        printed |= {f"{head}({k})": found[name][:, n] for n, k in enumerate(("0", "k_1")) if name in found}
    of_r = {"correlation": "$C(r)$", "overlap_correlation": "$G_R(r)$" if field else "$C_4(r)$"}
    of_k = {"structure_factor": "$S(k)$", "overlap_susceptibility": r"$\chi_R(k)$" if field else r"$\chi_{\rm SG}(k)$"}
    panels = [Panel(distance, found[name], ("distance $r$", y)) for name, y in of_r.items() if name in found]
    panels += [Panel(wave_number, found[name], ("wave number $k$", y)) for name, y in of_k.items() if name in found]
    if has_overlaps:
        labels, coldest = tuple(f"quantile {k + 1}" for k in range(quantiles)), found["conditioned_correlation"][0]
        panels.append(Panel(distance, coldest, ("distance $r$", of_r["overlap_correlation"]), labels))
    words = "correlations in space" + " and the replicon" * field
    arrays = {"temperature": result.temperature, "distance": distance, "wave_number": wave_number}
    return Estimates(words, arrays, found, printed, panels)


def _measure(spins: npt.NDArray[np.int8], *, lattice: Lattice, field: bool, bins: int) -> Measured:
    """Return susceptibilities and correlations of one sample, from its spins (copies, temperatures, sites)."""
    found = dict(zip(("S", "C"), _along_axes(_mean_power(spins, lattice), lattice), strict=True))
    groups = [
        (overlap, _of_overlaps(_mean_power(fields, lattice), lattice)) for overlap, fields in _groups(spins, field)
    ]
    if groups:
        share = np.array([bins_of(overlap, bins)[:, None] == np.arange(bins) for overlap, _ in groups]) / len(groups)
        every = {name: np.array([one[name] for _, one in groups]) for name in groups[0][1]}
        found |= {name: one.mean(axis=0) for name, one in every.items()} | {"bins": share.sum(axis=0)}
        found |= {f"{name} in bins": np.einsum("gtb,gtr->tbr", share, every[name]) for name in ("chi", "C4")}
    return found


def _of_overlaps(power: Array, lattice: Lattice) -> Measured:
    found = dict(zip(("chi", "C4"), _along_axes(power, lattice), strict=True))
    right_angles = len(_longest(lattice)) > 1 and lattice.joins_layers
    return found | ({"diagonal": _at_diagonals(power, lattice)} if right_angles else {})


def _groups(spins: npt.NDArray[np.int8], field: bool) -> Iterator[tuple[Array, list[npt.NDArray[Any]]]]:
    """Yield 2 |q| - 1 (temperatures,) and q(x) (temperatures, sites) of each pair of copies.

    In a field yield the median overlap and the fields in three ways of each four in a row.
    """
    if not field:
        for a, b in combinations(spins, 2):
            yield 2 * np.abs((a * b).mean(axis=1)) - 1, [a * b]
    for first in range(0, len(spins) - 3, COPIES_IN_FIELD) if field else ():
        four = spins[first : first + COPIES_IN_FIELD]
        overlap = np.median([(a * b).mean(axis=1) for a, b in combinations(four, 2)], axis=0)
        yield overlap, [(four[a] - four[b]) * (four[c] - four[d]) // 2 for (a, b), (c, d) in _WAYS]


def _mean_power(fields: Collection[npt.NDArray[Any]] | npt.NDArray[np.int8], lattice: Lattice) -> Array:
    """Return P(k) averaged over fields (temperatures, sites), (temperatures, sides)."""
    axes, total = tuple(range(-lattice.dimension, 0)), np.zeros(())
    for values in fields:
        modes = fftn(values.reshape(-1, *lattice.shape[::-1]).astype(np.float64), axes=axes)
        total = total + modes.real**2 + modes.imag**2
    return total / (len(fields) * lattice.sites)


def _longest(lattice: Lattice) -> list[int]:
    return [axis for axis, side in enumerate(lattice.shape) if side == max(lattice.shape)]


def _along_axes(power: Array, lattice: Lattice) -> tuple[Array, Array]:
    """Return P(k) and the correlation along the longest axes, averaged over these, (temperatures, distances) each."""
    longest, side = _longest(lattice), max(lattice.shape)
    susceptibility, correlation = np.zeros((2, len(power), side // 2 + 1))
    for axis in longest:
        lines = np.moveaxis(power, -1 - axis, 1).reshape(len(power), side, -1)
        susceptibility += lines[:, : side // 2 + 1, 0]
        sums = ifft(lines.sum(axis=2), axis=1).real * side / lattice.sites
        correlation += sums[:, : side // 2 + 1]
    return susceptibility / len(longest), correlation / len(longest)


def _at_diagonals(power: Array, lattice: Lattice) -> Array:
    """Return P(k_2) averaged over pairs of the longest axes and both signs, (temperatures,)."""
    found = [
        np.moveaxis(power, (-1 - a, -1 - b), (1, 2)).reshape(len(power), *[max(lattice.shape)] * 2, -1)[:, 1, sign, 0]
        for a, b in combinations(_longest(lattice), 2)
        for sign in (1, -1)
    ]
    return np.asarray(np.mean(found, axis=0))
