"""Correlations of spins and overlaps in space, and their Fourier transforms, from saved configurations.

A field f(x) of a configuration, or of copies at one temperature, has the power P(k) = |sum_x f(x) exp(-i k x)|^2 / N.
Its average is a susceptibility at momentum k, and (1 / N) sum_k P(k) exp(i k r) the average over x of f(x) f(x + r).
Fields are

* s(x): the structure factor S(k) and C(r) = [<s(x) s(x + r)>];
* q(x) = s_a(x) s_b(x) of each pair of copies: chi_SG(k) and C4(r) = [<s(x) s(x + r)>^2];
* in a field (s_a(x) - s_b(x)) (s_c(x) - s_d(x)) / 2 of four copies, in three ways: the replicon chi_R(k) and
  G_R(r) = [(<s(x) s(x + r)> - <s(x)> <s(x + r)>)^2], as copies are independent.

The second-moment correlation length is xi = sqrt(chi(0) / chi(k_1) - 1) / K_1, and R_12 = chi(k_1) / chi(k_2) with
k_1 = (2 pi / L, 0, ...) and k_2 = (2 pi / L, +-2 pi / L, 0, ...), averaged over the longest axes.

Sources: F. Belletti et al. (Janus), J. Stat. Phys. 135, 1121 (2009) for C4; R. A. Banos et al. (Janus), PNAS 109, 6452
(2012) for the replicon and R_12; M. Palassini, S. Caracciolo, Phys. Rev. Lett. 82, 5128 (1999) for xi.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from scipy.fft import fftn, ifft

from spinsim.analysis.jackknife import Jackknife
from spinsim.analysis.runs import Array, Integers, Tempered
from spinsim.analysis.space.entries import Measured, each_row, entries_of, periodic_grid, saved_run
from spinsim.analysis.space.reports import at, flat, over, report_by_temperature
from spinsim.analysis.statistics import statistics_of
from spinsim.analysis.tables import Report
from spinsim.inputs.arguments import public
from spinsim.model.lattice import Lattice
from spinsim.observables.quantities import in_field
from spinsim.observables.table import COPIES_IN_FIELD, correlation_length
from spinsim.result import Run
from spinsim.saved import Configurations

Spins = npt.NDArray[np.int8]
_WAYS: Final = (((0, 1), (2, 3)), ((0, 2), (1, 3)), ((0, 3), (1, 2)))  # four copies as two pairs


@dataclass(frozen=True)
class Correlations:
    """Correlations of a run at each temperature, along its longest axes; ``value``, ``error`` and ``bias`` of each.

    Attributes:
        temperature: In the unit of the couplings, (temperatures,).
        distance: r in cells, from 0 to L / 2, (distances,).
        wave_number: k = 2 pi r / L in inverse cells, likewise.
        is_replicon: True in a field, where overlaps are connected by four copies.
        correlation: C(r), (temperatures, distances).
        structure_factor: S(k), likewise.
        length: xi from S(k) in distances of nearest neighbours, (temperatures,); None in a field.
        overlap_correlation: C4(r), in a field G_R(r), (temperatures, distances); None with too few copies, likewise the
            following.
        overlap_susceptibility: chi_SG(k), in a field the replicon chi_R(k), likewise.
        overlap_length: xi from it, (temperatures,).
        ratio: R_12 of it, likewise; NaN with a single longest axis.
    """

    temperature: Array
    distance: Integers
    wave_number: Array
    is_replicon: bool
    correlation: Jackknife
    structure_factor: Jackknife
    length: Jackknife | None
    overlap_correlation: Jackknife | None
    overlap_susceptibility: Jackknife | None
    overlap_length: Jackknife | None
    ratio: Jackknife | None

    @property
    def side(self) -> int:
        """L, the longest side in cells."""
        return round(2 * np.pi / float(self.wave_number[1]))

    @property
    def named(self) -> dict[str, Jackknife]:
        """Estimates that the run has, by name."""
        return {name: value for name, value in vars(self).items() if isinstance(value, Jackknife)}


@public
def space(run: Run) -> Correlations:
    """Correlations in space and susceptibilities at all axis momenta, from the saved configurations of a run.

    Args:
        run: A tempering run with ``save_configurations`` on a periodic lattice, or its file; two copies for overlaps,
            in a field four.

    Returns:
        C(r), S(k), C4(r), chi_SG(k), xi and R_12 (in a field the replicon), each with ``value`` and jackknife ``error``
        over samples or, for one sample, blocks of time.

    Examples:
        >>> run = ss.temper(ss.EdwardsAnderson(ss.square(4), 4), "1:2:3", 200, save_configurations=2, device="cpu")
        >>> ss.space(run).overlap_susceptibility.value.shape  # (temperatures, k = 0, pi / 2, pi)
        (3, 3)

    Raises:
        InputError: for a run that has saved no configurations, and a model without a periodic lattice.
    """
    result, saved = saved_run(run)
    lattice, field = periodic_grid(result), in_field(result.model)
    measure = partial(_measure, lattice=lattice, field=field)
    has_overlaps = saved.shape[2] >= (COPIES_IN_FIELD if field else 2)
    guides = ("S", "chi") if has_overlaps else ("S",)
    averages = entries_of(result, each_row(saved), measure, guides, saved.shape[0], rows_apart(result, saved))
    side = max(lattice.shape)
    momentum = lattice.momentum(lattice.shape.index(side))

    def length(chi: Array) -> Array:
        return correlation_length(chi[:, 0], chi[:, 1], momentum)

    distance = np.arange(side // 2 + 1)
    own = [averages.mean("C"), averages.mean("S"), None if field else averages.estimate(length, "S")]
    pairs: list[Any] = [None] * 4
    if has_overlaps:
        ratio = averages.estimate(lambda chi, other: chi[:, 1] / np.where(other > 0, other, np.nan), "chi", "diagonal")
        pairs = [averages.mean("C4"), averages.mean("chi"), averages.estimate(length, "chi"), ratio]
    return Correlations(result.temperature, distance, 2 * np.pi * distance / side, field, *own, *pairs)  # type: ignore[arg-type]


def space_report(name: str, result: Tempered) -> Report:
    """Return xi, R_12 and susceptibilities of a run at each temperature; ``--json`` has all arrays."""
    found = space(result)
    columns, kind = {}, "chi_R" if found.is_replicon else "chi_SG"
    if found.length is not None:
        columns["xi / L"] = over(found.length, found.side)
    columns |= {"S(0)": at(found.structure_factor, 0), "S(k_1)": at(found.structure_factor, 1)}
    if found.overlap_susceptibility is not None and found.overlap_length is not None and found.ratio is not None:
        columns |= {"xi_q / L": over(found.overlap_length, found.side), "R_12": found.ratio}
        columns |= {f"{kind}({k})": at(found.overlap_susceptibility, n) for n, k in enumerate(("0", "k_1"))}
    notes = [] if found.ratio is not None else [
        f"Overlaps need {COPIES_IN_FIELD if found.is_replicon else 2} copies: run with as many --replicas."
    ]  # fmt: skip
    numbers = {"file": name, "distance": found.distance, "wave_number": found.wave_number, **flat(found.named)}
    return report_by_temperature(f"{name}: correlations in space", found.temperature, columns, numbers, notes)


def rows_apart(result: Tempered, saved: Configurations) -> float:
    """Return the number of measurements between two saved rows."""
    sweep = saved.sweep.reshape(saved.shape[0], -1)[:, 0]
    return float(np.diff(sweep).mean()) / statistics_of(result).every if len(sweep) > 1 else 1.0


def _measure(spins: Spins, lattice: Lattice, field: bool) -> Measured:
    """Return susceptibilities and correlations of one sample, from its spins (copies, temperatures, sites)."""
    power, _ = _mean_power(iter(spins), lattice)
    found = dict(zip(("S", "C"), _along_axes(power, lattice), strict=True))
    power, number = _mean_power(replicon_fields(spins) if field else overlap_fields(spins), lattice)
    if number:
        found |= dict(zip(("chi", "C4"), _along_axes(power, lattice), strict=True))
        found["diagonal"] = _at_diagonals(power, lattice)
    return found


def overlap_fields(spins: Spins) -> Iterator[npt.NDArray[Any]]:
    """Yield q(x) of each pair of copies, (temperatures, sites)."""
    return (spins[a] * spins[b] for a, b in combinations(range(len(spins)), 2))


def replicon_fields(spins: Spins) -> Iterator[npt.NDArray[Any]]:
    """Yield (s_a - s_b) (s_c - s_d) / 2 of each four copies in a row, in three ways, (temperatures, sites)."""
    for first in range(0, len(spins) - 3, COPIES_IN_FIELD):
        for (a, b), (c, d) in _WAYS:
            four = spins[first : first + COPIES_IN_FIELD]
            yield (four[a] - four[b]) * (four[c] - four[d]) // 2


def _mean_power(fields: Iterator[npt.NDArray[Any]], lattice: Lattice) -> tuple[Array, int]:
    """Return P(k) averaged over fields (temperatures, sites), (temperatures, sides), and the number of fields."""
    total, number, axes = np.zeros(()), 0, tuple(range(-lattice.dimension, 0))
    for values in fields:
        modes = fftn(values.reshape(-1, *lattice.shape[::-1]).astype(np.float64), axes=axes)
        total, number = total + modes.real**2 + modes.imag**2, number + 1
    return total / (max(number, 1) * lattice.sites), number


def longest_axes(lattice: Lattice) -> list[int]:
    return [axis for axis, side in enumerate(lattice.shape) if side == max(lattice.shape)]


def _along_axes(power: Array, lattice: Lattice) -> tuple[Array, Array]:
    """Return P(k) and the correlation along the longest axes, averaged over these, (temperatures, distances) each."""
    longest, side = longest_axes(lattice), max(lattice.shape)
    susceptibility, correlation = np.zeros((2, len(power), side // 2 + 1))
    for axis in longest:
        lines = np.moveaxis(power, -1 - axis, 1).reshape(len(power), side, -1)
        susceptibility += lines[:, : side // 2 + 1, 0]
        sums = ifft(lines.sum(axis=2), axis=1).real * side / lattice.sites
        correlation += sums[:, : side // 2 + 1]
    return susceptibility / len(longest), correlation / len(longest)


def _at_diagonals(power: Array, lattice: Lattice) -> Array:
    """Return P(k_2) averaged over pairs of the longest axes and both signs, (temperatures,); 0 with a single one."""
    found = [
        np.moveaxis(power, (-1 - a, -1 - b), (1, 2)).reshape(len(power), *[max(lattice.shape)] * 2, -1)[:, 1, sign, 0]
        for a, b in combinations(longest_axes(lattice), 2)
        for sign in (1, -1)
    ]
    return np.mean(found, axis=0) if found else np.zeros(len(power))
