"""Couplings and fields on a graph as exact integers, and quantities that follow from these alone.

Couplings and fields are multiples of one ``quantum``, a power of two, so that every local field and every energy is an
exact integer number of quanta below 2^53, on every device. Values that are not such multiples (0.1, say) are rounded to
the nearest one; the quantum is at least 2^52 times smaller than the sum of all couplings and fields. Where all are a
few units, a bond of several units becomes as many parallel bonds of one unit.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from math import sqrt
from typing import Any, NamedTuple, Self, TypeVar, TypeVarTuple

import numpy as np
import numpy.typing as npt

from spinsim.errors import InputError
from spinsim.inputs.arguments import public
from spinsim.model.couplings import (
    Drawn,
    Rows,
    are_signs,
    as_rows,
    common_quantum,
    distinct,
    mean_square,
    power_above,
    relative_change,
    round_to,
    with_plain_zeros,
)
from spinsim.model.graph import MOST_KEPT, MOST_TERMS, Graph, check_terms, frozen
from spinsim.model.lattice import Lattice

Made = TypeVar("Made")
Given = TypeVarTuple("Given")
Integers = npt.NDArray[np.int64]


class Units(NamedTuple):
    """Couplings and fields as multiples of a unit."""

    unit: int  # in quanta: the largest number that divides all couplings and fields
    weights: Integers  # |J| of each bond in units, (bonds,)
    fields: Integers  # |h| of each site in units, (sites,)


class Hamiltonian:
    """The part of ``Ising`` that holds sites, bonds, couplings and fields, as ``Ising`` describes them."""

    def __init__(
        self, graph: Graph, couplings: npt.ArrayLike | Drawn, field: npt.ArrayLike, terms: npt.ArrayLike | None
    ) -> None:
        self.graph = graph
        self.drawn = couplings if isinstance(couplings, Drawn) else None
        given = self.sizes_of_couplings if isinstance(couplings, Drawn) else couplings
        rows = as_rows(given, graph.bonds, "couplings", "bonds")
        fields = as_rows(field, graph.sites, "fields", "sites")
        self.samples = max(len(rows), len(fields))
        if {len(rows), len(fields)} - {1, self.samples}:
            raise InputError(f"couplings of {len(rows)} samples do not fit fields of {len(fields)}: give equal numbers")
        self.quantum, self.rounded = common_quantum(rows, fields)
        if self.drawn is not None and self.rounded:
            rows = self.drawn.rows(self.bonds)
        multiples = [round_to(one, self.quantum) if self.rounded else one for one in (rows, fields)]
        self.rounding_error = max(map(relative_change, (rows, fields), multiples))
        self.fields = frozen(with_plain_zeros(multiples[1]))
        if self.drawn is None or self.rounded:
            self.couplings = frozen(with_plain_zeros(multiples[0]))
        self.terms = check_terms(terms, graph.bonds)

    @property
    def lattice(self) -> Lattice | None:
        """The lattice whose bonds the model has; None for any other bonds."""
        return self.graph.lattice

    @property
    def embedding(self) -> Lattice | None:
        """The lattice on whose sites the model lies, for positions and Fourier modes; else None."""
        return self.graph.embedding

    @property
    def is_bipartite(self) -> bool:
        """True if the model lives on a lattice of two sublattices, which all bonds join."""
        return self.lattice is not None and self.lattice.is_bipartite and self.graph.slices == 1

    @property
    def sites(self) -> int:
        """Number of sites."""
        return self.graph.sites

    @property
    def bonds(self) -> int:
        """Number of bonds."""
        return self.graph.bonds

    @cached_property
    def couplings(self) -> Rows:  # couplings that are not drawn are set at once
        assert self.drawn is not None  # noqa: S101
        return frozen(self.drawn.rows(self.bonds))

    @property
    def are_yet_to_draw(self) -> bool:
        """True if couplings are drawn and have not been read yet."""
        return "couplings" not in vars(self)

    @property
    def coupling_rows(self) -> int:
        """1 where all samples share couplings, else their number."""
        return len(self.sizes_of_couplings)

    @property
    def sizes_of_couplings(self) -> Rows:
        """Numbers of the same absolute values as the couplings."""
        if self.drawn is None or not self.are_yet_to_draw:
            return self.couplings
        return np.broadcast_to(np.int8(1), (self.drawn.samples, self.bonds))

    @property
    def one_coupling(self) -> bool:
        """True if J is held as one number for all bonds."""
        return self.drawn is None and self.couplings.strides[-1] == 0

    @public
    def integer_couplings(self, sample: int) -> Integers:
        """J of one sample in quanta, shape (bonds,)."""
        return self._in_quanta(self.couplings, sample)

    @public
    def integer_fields(self, sample: int) -> Integers:
        """H of one sample in quanta, shape (sites,)."""
        return self._in_quanta(self.fields, sample)

    def _in_quanta(self, rows: Rows, sample: int) -> Integers:
        row: Rows = rows[sample if len(rows) > 1 else 0]
        multiples = np.asarray(row / self.quantum)
        return np.rint(multiples, out=multiples).astype(np.int64)

    def negative_bonds(self) -> npt.NDArray[np.bool_]:
        """True for couplings below 0, (1 or samples, bonds); one number for all is not copied."""
        return np.broadcast_to(distinct(self.couplings) < 0, self.couplings.shape)

    @cached_property
    def magnitude(self) -> int | None:
        """|J| in quanta where all bonds of all samples share one above 0, else None."""
        if self.bonds == 0:
            return None
        values = distinct(self.sizes_of_couplings)
        sizes = np.abs(values[:, :1] if are_signs(values) else values)
        largest = sizes.max()
        return round(float(largest) / self.quantum) if largest and largest == sizes.min() else None

    @cached_property
    def term_magnitudes(self) -> tuple[int, ...] | None:
        """|J| in quanta of each of two terms, if all bonds of a term share one above 0; else None."""
        if self.terms is None:
            return None
        magnitudes = []
        for term in range(MOST_TERMS):
            sizes = np.abs(self.couplings[:, self.terms == term])
            largest = float(sizes.max(initial=0))
            if sizes.size and not (largest and largest == sizes.min()):
                return None
            magnitudes.append(round(largest / self.quantum) if sizes.size else 1)  # 1 of a term without bonds
        return tuple(magnitudes)

    @property
    def coupling_unit(self) -> float:
        """The |J| that all bonds share, else 1: scale of exact curves and of couplings in time."""
        return self.magnitude * self.quantum if self.magnitude else 1.0

    @cached_property
    def uniform_field(self) -> int | None:
        """Field h in quanta where all sites of all samples share one, else None."""
        values = distinct(self.fields)
        return round(float(values[0, 0]) / self.quantum) if values.min() == values.max() else None

    @cached_property
    def uniform_coupling(self) -> float | None:
        """The J that all bonds of all samples share; None if they differ or there are no bonds."""
        low, high = self.extreme_couplings
        return low if low == high and self.bonds else None

    @cached_property
    def extreme_couplings(self) -> tuple[float, float]:
        """The lowest and the highest J; 0 without bonds."""
        if not self.bonds:
            return 0.0, 0.0
        if self.drawn is not None and self.are_yet_to_draw:
            return self.drawn.extremes(self.bonds)
        values = distinct(self.couplings)
        return float(values.min()), float(values.max())

    @cached_property
    def energy_scale(self) -> float:
        """Root mean square local field of a random configuration: the natural unit of temperature."""
        both = self.sizes_of_couplings, self.fields
        unit = max(map(power_above, both))  # a power of two: it divides exactly
        if not unit:
            return 0.0
        of_bonds, of_fields = (mean_square(rows, unit) for rows in both)
        return unit * sqrt(2 * self.bonds / self.sites * of_bonds + of_fields)

    @cached_property
    def largest_local_field(self) -> int:
        """Upper bound in quanta of |sum J s + h| at any site of any sample."""
        largest = 0.0
        for sample in range(self.samples):
            bonds = np.abs(self.integer_couplings(sample)).astype(np.float64)
            local = np.abs(self.integer_fields(sample)).astype(np.float64)
            for end in (0, 1):
                local += np.bincount(self.graph.edges[:, end], bonds, self.sites)
            largest = max(largest, float(local.max()))
        return int(largest)

    @cached_property
    def weights(self) -> tuple[int, Integers] | None:
        """Largest common unit of all |J| in quanta, and |J| of each bond in this unit, (bonds,).

        None if a J is 0 or samples differ in |J|: a sample would then move differently than alone.
        """
        sizes = np.abs(self.couplings)
        if self.bonds == 0 or not sizes.all() or (len(sizes) > 1 and np.any(sizes != sizes[0])):
            return None
        in_quanta = np.abs(self.integer_couplings(0))
        unit = int(np.gcd.reduce(in_quanta))
        return unit, in_quanta if unit == 1 else in_quanta // unit

    @cached_property
    def units(self) -> Units | None:
        """Couplings and fields in their largest unit; None on lattices and if samples differ."""
        if self.lattice is not None or self.weights is None:
            return None
        sizes = np.abs(self.fields)
        if len(sizes) > 1 and np.any(sizes != sizes[0]):
            return None
        (of_bonds, weights), in_quanta = self.weights, np.abs(self.integer_fields(0))
        unit = int(np.gcd(of_bonds, np.gcd.reduce(in_quanta)))
        return Units(unit, weights if of_bonds == unit else weights * (of_bonds // unit), in_quanta // unit)

    def once(self, make: Callable[[Self, *Given], Made], *given: *Given) -> Made:
        """Return ``make(model, ...)``, computed once for the model and these hashable arguments.

        Callers must not change the result; copies of the model begin without kept results.
        Large models keep numbers alone.
        """
        kept: dict[Any, Made] = vars(self).setdefault("_kept", {})
        key = make, given
        if key in kept:
            return kept[key]
        result = make(self, *given)
        if self.samples * (self.bonds + self.sites) <= MOST_KEPT or _is_of_numbers(result):
            kept[key] = result
        return result

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_kept"}


def _is_of_numbers(result: Any) -> bool:
    """True for a number, None, or a tuple of these."""
    return all(
        one is None or isinstance(one, int | float) for one in (result if isinstance(result, tuple) else [result])
    )


def most_units(model: Hamiltonian) -> int | None:
    """Largest sum, in units, of |J| of a site's bonds and of its |h|; None where there is no unit."""
    if model.units is None:
        return None
    of_bonds = np.bincount(model.graph.edges.reshape(-1), np.repeat(model.units.weights, 2), model.sites)
    return int((of_bonds.astype(np.int64) + model.units.fields).max())


def degrees_of_terms(model: Hamiltonian) -> tuple[int, int] | None:
    """Most bonds at a site for each of two terms, if a term's couplings are +J or -J; else None."""
    terms = model.terms
    if terms is None or model.term_magnitudes is None:
        return None
    edges = model.graph.edges
    first, second = (
        int(np.bincount(edges[terms == term].reshape(-1), minlength=model.sites).max()) for term in range(MOST_TERMS)
    )
    return first, second


class UnitBonds(NamedTuple):
    """A model as bonds of one |J|: a coupling of several units becomes as many parallel bonds."""

    graph: Graph
    negative: npt.NDArray[np.bool_]  # (1 or samples, bonds), in C order, as kernels are compiled for each layout
    magnitude: int  # |J| in quanta
    field: int  # h of every site in quanta where the spin is part of the class, else 0
    fields: Integers | None
    """h of each site in units of |J|, (1 or samples, sites), where these count as bonds to a spin that is always +1;
    None elsewhere."""

    @property
    def units(self) -> Integers:
        """Bonds of each site, (sites,), including bonds to the spin that is always +1."""
        degree = self.graph.degrees().astype(np.int64)
        return degree if self.fields is None else degree + np.abs(self.fields[0])


def bonds_of_units(model: Hamiltonian, in_class: bool) -> UnitBonds | None:
    """A model as bonds of one |J|, or None; where ``in_class``, a uniform field beside one |J| is part of the class."""
    negative, field = np.array(model.negative_bonds(), order="C"), model.uniform_field
    if model.magnitude is not None and field is not None and (in_class or not field):
        return UnitBonds(model.graph, negative, model.magnitude, field, None)
    if field == 0 and model.weights is not None:  # of any sizes
        (unit, weights), fields = model.weights, None
    elif model.units is not None:
        unit, weights, _ = model.units
        fields = np.stack([model.integer_fields(k) for k in range(len(model.fields))]) // unit
    else:
        return None
    graph = model.graph
    if weights.max() > 1:  # each bond is repeated by its weight
        graph = Graph(model.sites, np.repeat(graph.edges, weights, axis=0))
        negative = np.repeat(negative, weights, axis=1)
    return UnitBonds(graph, negative, unit, 0, fields)
