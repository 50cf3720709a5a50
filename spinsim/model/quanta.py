"""Couplings and fields as rows of numbers, and the power of two of which all of them are multiples.

Where they are a few units, a bond of several is as many bonds of one, side by side.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import frexp, fsum, ldexp, sqrt
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spinsim.errors import InputError
from spinsim.inputs.checks import as_floats
from spinsim.model.graph import Graph

if TYPE_CHECKING:
    from spinsim.model.ising import Ising

_EXACT_BITS: Final = 52  # energies stay below 2^53 quanta, so float64 holds them exactly
_LARGEST_VALUE: Final = 1e300
_SMALLEST_EXPONENT: Final = -1000
_LEAST_EXPONENT: Final = -1074  # of float64
_LARGEST_CHANGE: Final = 1e-5  # of a value by rounding, below what any simulation resolves
_FEW: Final = 2**9  # numbers that fsum adds up sooner
Rows = npt.NDArray[np.float64] | npt.NDArray[np.int8]


def as_rows(values: npt.ArrayLike, length: int, name: str, unit: str) -> Rows:
    """Values as float64 (samples, length), or int8 as they are; numbers broadcast without a copy."""
    array: npt.NDArray[Any]
    try:
        array = np.asarray(values)
        if array.dtype != np.int8 or distinct(array).min(initial=0) == np.iinfo(np.int8).min:  # has no absolute value
            array = as_floats(values, f"a value of the {name}")
    except InputError:
        raise
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} cannot be read as numbers: give floats or integers") from error
    rows = np.broadcast_to(array, (1, length)) if array.ndim == 0 else np.atleast_2d(array)
    if rows.ndim != 2 or rows.shape[1] != length or len(rows) < 1:
        raise InputError(
            f"{name} have shape {array.shape}: give ({length},) or (samples, {length}) for {length} {unit}"
        )
    probe = array.reshape(-1)
    if array.dtype == np.float64 and not np.isfinite(probe).all():
        bad = np.flatnonzero(~np.isfinite(probe))[0]
        raise InputError(f"{name} contain {probe[bad]} at position {bad}: every value must be finite")
    return rows


def distinct(rows: Rows) -> Rows:
    return rows[..., :1] if rows.ndim and rows.strides[-1] == 0 else rows


def one_if_equal(rows: Rows) -> Rows:
    """One number, (1, 1), where all are equal; else the rows."""
    values = distinct(rows)
    return np.asarray(values[:1, :1], np.float64) if values.size and values.min() == values.max() else rows


def round_to(rows: npt.NDArray[Any], quantum: float) -> npt.NDArray[np.float64]:
    return np.asarray(np.rint(rows / quantum) * quantum)


def relative_change(given: npt.NDArray[Any], rounded: npt.NDArray[Any]) -> float:
    """Largest relative change of values that were rounded, 0 where there are none."""
    if rounded is given:
        return 0.0
    there = given != 0
    if not there.any():
        return 0.0
    return float(np.max(np.abs(rounded[there] / given[there] - 1), initial=0))


def are_signs(values: Rows) -> bool:
    """True if there are values and all of them are +1 or -1, stored as int8, as couplings of one size are drawn.

    Three passes without a copy tell it, after which sums, means and common divisors are known.
    """
    if values.dtype != np.int8 or not values.size:
        return False
    return bool(values.min() >= -1 and values.max() <= 1 and np.count_nonzero(values) == values.size)


def power_above(rows: Rows) -> float:
    """Smallest power of two above every |value|, 0 where all are 0."""
    if are_signs(distinct(rows)):
        return 2.0
    largest = float(np.abs(distinct(rows)).max()) if rows.size else 0.0
    return ldexp(1.0, frexp(largest)[1]) if largest else 0.0


def mean_square(rows: Rows, unit: float) -> float:
    """Mean of (value / unit)^2, summed without rounding so that it does not depend on the processor."""
    values = distinct(rows)
    if are_signs(values):
        return values.size / unit**2 / values.size
    if not values.any():
        return 0.0
    if values.dtype == np.int8:
        return int(np.square(values, dtype=np.int16).sum(dtype=np.int64)) / unit**2 / values.size
    return sum_of((values / unit) ** 2) / values.size


def sum_of(values: npt.NDArray[np.float64]) -> float:
    """The sum of all values, rounded once."""
    numbers = values.reshape(-1)
    return fsum(numbers.tolist() if numbers.size <= _FEW else [float(part.sum()) for part in parts_of(numbers)])


def parts_of(values: npt.NDArray[np.float64]) -> Iterator[npt.NDArray[np.float64]]:
    """Arrays that add up to the values; within one of them any sum is exact, in whatever order."""
    rest, room = values, 53 - len(values).bit_length()
    while rest.any():
        exponent = int(np.frexp(np.abs(rest).max())[1])
        unit = np.ldexp(1.0, max(exponent - room, _LEAST_EXPONENT))
        part = np.rint(rest / unit) * unit
        yield part
        rest = rest - part


def lowest_bit(values: Rows) -> int:
    """Exponent of the coarsest power of two that divides every value; some are not 0."""
    if values.dtype == np.int8:
        values = np.array([np.bitwise_or.reduce(np.abs(values), axis=None)], np.float64)
    mantissa, exponent = np.frexp(values[values != 0])
    integer = np.abs(mantissa * 2.0**53).astype(np.int64)
    trailing = np.frexp((integer & -integer).astype(np.float64))[1] - 1
    return int((exponent - 53 + trailing).min())


def common_quantum(couplings: Rows, fields: Rows) -> tuple[float, bool]:
    """The coarsest power of two that divides every value, or the finest that energies allow; and whether it rounds."""
    total, lowest = 0.0, None
    for rows in (couplings, fields):
        values = distinct(rows)
        if are_signs(values):
            total += rows.shape[1]
            lowest = 0 if lowest is None else min(lowest, 0)
            continue
        if not values.any():
            continue
        sizes = np.abs(values)
        largest = float(sizes.max())
        if not largest < _LARGEST_VALUE / rows.shape[1]:
            raise InputError(
                f"value {largest:g} is too large for exact energies: rescale couplings and fields to order 1"
            )
        sums = sizes.sum(axis=1, dtype=np.int64) if values.dtype == np.int8 else list(map(sum_of, sizes))
        total += float(max(sums)) * (rows.shape[1] // values.shape[1])
        bits = lowest_bit(values)
        lowest = bits if lowest is None else min(lowest, bits)
    if lowest is None:
        return 1.0, False
    finest = frexp(total)[1] - _EXACT_BITS
    if finest < _SMALLEST_EXPONENT:
        raise InputError(f"couplings and fields add up to {total:g}, too small for float64: rescale them to order 1")
    return ldexp(1.0, max(lowest, finest)), lowest < finest


def caution_of(model: Ising) -> str:
    """A sentence where rounding to the quantum took digits that matter, else empty."""
    if not model.rounding_error > _LARGEST_CHANGE:
        least = model.problem.least if model.rounded and model.problem is not None else 0.0
        if not (least and model.quantum > _LARGEST_CHANGE * least):
            return ""
        return (
            f"energies of {model.name} are searched in steps of {model.quantum:.3g}, while its least value is "
            f"{least:.3g}: values so different do not fit one model, so lower the largest, such as penalties"
        )
    return (
        f"couplings and fields of {model.name} are multiples of one quantum, so that energies are exact, which "
        f"changes some by up to {100 * model.rounding_error:.3g} %: values so different do not fit one model"
    )


def energy_scale_of(model: Ising) -> float:
    """Root mean square local field of a random configuration: the natural unit of temperature."""
    unit = max(power_above(model.sizes_of_couplings), power_above(model.fields))  # a power of two: it divides exactly
    if not unit:
        return 0.0
    of_bonds, of_fields = mean_square(model.sizes_of_couplings, unit), mean_square(model.fields, unit)
    return unit * sqrt(2 * model.bonds / model.sites * of_bonds + of_fields)


def extremes_of(model: Ising) -> tuple[float, float]:
    """The lowest and the highest J; 0 without bonds."""
    if not model.bonds:
        return 0.0, 0.0
    if model.drawn is not None and model.are_yet_to_draw:
        return model.drawn.extremes(model.bonds)
    values = distinct(model.couplings)
    return float(values.min()), float(values.max())


class Units(NamedTuple):
    """Couplings and fields as multiples of a unit."""

    unit: int  # in quanta, the largest of which all of them are multiples
    weights: npt.NDArray[np.int64]  # |J| of each bond in it, (bonds,)
    fields: npt.NDArray[np.int64]  # |h| of each site in it, (sites,)

    def of_sites(self, graph: Graph) -> npt.NDArray[np.int64]:
        """Sum of |J| of each site's bonds and of its |h|, in units, (sites,)."""
        of_bonds = np.bincount(graph.edges.reshape(-1), np.repeat(self.weights, 2), graph.sites)
        return of_bonds.astype(np.int64) + self.fields


def weights_of(model: Ising) -> tuple[int, npt.NDArray[np.int64]] | None:
    """Largest common unit of all |J| in quanta, and |J| of each bond in this unit, (bonds,).

    None if a J is 0 or samples differ in |J|: a sample would then not move as it does alone.
    """
    sizes = np.abs(model.couplings)
    if model.bonds == 0 or not sizes.all() or (len(sizes) > 1 and np.any(sizes != sizes[0])):
        return None
    quanta = np.rint(sizes[0] / model.quantum).astype(np.int64)
    unit = int(np.gcd.reduce(quanta))
    return unit, quanta // unit


def units_of(model: Ising) -> Units | None:
    """Couplings and fields in their largest unit; None on lattices and if samples differ."""
    if model.lattice is not None or model.weights is None:
        return None
    sizes = np.abs(model.fields)
    if len(sizes) > 1 and np.any(sizes != sizes[0]):
        return None
    of_bonds, weights = model.weights
    quanta = np.rint(sizes[0] / model.quantum).astype(np.int64)
    unit = int(np.gcd(of_bonds, np.gcd.reduce(quanta)))
    return Units(unit, weights * (of_bonds // unit), quanta // unit)


def most_units(model: Ising) -> int | None:
    """Sum of |J| of a site's bonds and of its |h|, at most, in units; None where there is no unit."""
    return None if model.units is None else int(model.units.of_sites(model.graph).max())


def largest_local_field_of(model: Ising) -> int:
    """Upper bound in quanta of |sum J s + h| at any site of any sample."""
    largest = 0.0
    for sample in range(model.samples):
        bonds = np.abs(model.integer_couplings(sample)).astype(np.float64)
        local = np.abs(model.integer_fields(sample)).astype(np.float64)
        for end in (0, 1):
            local += np.bincount(model.graph.edges[:, end], bonds, model.sites)
        largest = max(largest, float(local.max()))
    return int(largest)


class UnitBonds(NamedTuple):
    """A model as bonds of one |J|: a coupling of several units is as many of them side by side."""

    graph: Graph
    negative: npt.NDArray[np.bool_]  # (1 or samples, bonds), in one layout, as kernels are compiled for each
    magnitude: int  # |J| in quanta
    field: int  # h of every site in quanta where the spin is part of the class, else 0
    fields: npt.NDArray[np.int64] | None
    """h of each site in units of |J|, (1 or samples, sites), where these count as bonds to a spin that is always +1;
    None elsewhere."""

    @property
    def units(self) -> npt.NDArray[np.int64]:
        """Bonds of each site, (sites,), those to the spin that is always +1 among them."""
        degree = self.graph.degrees().astype(np.int64)
        return degree if self.fields is None else degree + np.abs(self.fields[0])


def bonds_of_units(model: Ising, in_class: bool) -> UnitBonds | None:
    """A model as bonds of one |J|, or None; where ``in_class``, a uniform field beside one |J| is part of the class."""
    negative, field = np.array(model.negative_bonds(), order="C"), model.uniform_field
    if model.magnitude is not None and field is not None and (in_class or not field):
        return UnitBonds(model.graph, negative, model.magnitude, field, None)
    if field == 0 and model.weights is not None:  # of any sizes
        unit, weights = model.weights
        return UnitBonds(*_repeated(model, weights, negative), unit, 0, None)
    if model.units is None:
        return None
    unit, weights, _ = model.units
    fields = np.stack([model.integer_fields(k) for k in range(len(model.fields))]) // unit
    graph, negative = _repeated(model, weights, negative)
    return UnitBonds(graph, negative, unit, 0, fields)


def _repeated(
    model: Ising, weights: npt.NDArray[np.int64], negative: npt.NDArray[np.bool_]
) -> tuple[Graph, npt.NDArray[np.bool_]]:
    """Each bond as often as its weight says, and which are below 0."""
    if weights.max() == 1:
        return model.graph, negative
    graph = Graph(model.sites, np.repeat(model.graph.edges, weights, axis=0))
    return graph, np.repeat(negative, weights, axis=1)
