"""The Ising model H = - sum over bonds of J s_i s_j - sum over sites of h s_i, held as exact integers.

Couplings and fields are multiples of one ``quantum``, a power of two, so that every local field and every energy is an
exact integer number of quanta below 2^53, on every device. Values that are not such multiples (0.1, say) are rounded to
the nearest one; the quantum is at least 2^52 times smaller than the sum of all couplings and fields.
"""

from __future__ import annotations

from copy import copy
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from spinsim.errors import InputError, MissingError
from spinsim.inputs.signatures import in_lines
from spinsim.inputs.texts import count
from spinsim.machine.memory import require
from spinsim.model import quanta
from spinsim.model.drawing import Drawn
from spinsim.model.geometry.lattice import Lattice
from spinsim.model.graph import Graph, check_terms, frozen, magnitudes_of
from spinsim.model.identity import Keeping, content_sha256_of
from spinsim.model.problems.exchange import Exchanged
from spinsim.model.problems.quadratic import BINARY, SPIN, Labels, Quadratic, as_labels, finite
from spinsim.model.quanta import Rows

_BYTES_A_LISTED: Final = 24  # bonds, and what makes the list


@in_lines
class Ising(Exchanged, Keeping):
    """An Ising model on a lattice or graph, with one or more disorder samples.

    Args:
        graph: A lattice (``ss.square(64)``) or a ``Graph``.
        couplings: J of each bond: a number, an array (bonds,) or (samples, bonds), or how they are
            drawn. Positive is ferromagnetic.
        field: h of each site: a number, an array (sites,) or (samples, sites).
        name: Short name for files and figures.
        offset: Constant added to the energy (QUBO instances); reported, never simulated.
        maxcut_weight: Sum of all weights of a MaxCut instance, whose cut is (sum - energy) / 2.
        terms: The term of each bond, 0 or 1, shape (bonds,), where the terms of the energy may have
            inverse temperatures of their own (model/graph.py); None where there is one term.
        labels: Names of the sites in their order, any hashable objects; None for 0, 1, 2, ...
        vartype: The caller's variables: ``SPIN``, s, or ``BINARY``, x = (1 + s) / 2.

    Attributes:
        graph: Sites and bonds; ``graph.edges`` has the ends of each bond, (bonds, 2), in the
            order of couplings.
        couplings: J (1 or samples, bonds), multiples of ``quantum``: ``float64``, or ``int8`` where
            they were given so or are drawn, which is done when they are first read.
        fields: h (1 or samples, sites), likewise.
        samples: Number of disorder samples.
        quantum: Unit of the exact integers, a power of two.
        rounded: True if a given value was not a multiple of the quantum.
        rounding_error: Largest relative change of a value by that; 1 where one became 0.
        problem: The quadratic problem that it was made from, with the values as given, else None.
        drawn: Recipe of couplings that are drawn later (+-J of ``EdwardsAnderson``), else None.
        field_changes: True if the field changes during the run.
        origin: Settings of ``[model]`` that made it, as far as they do not follow from it.
        stated_sha256: Identity that a file gives the model; empty where it is in none.

    Raises:
        InputError: for NaN or infinite values and for shapes that do not fit the graph.
    """

    def __init__(
        self,
        graph: Graph | Lattice,
        couplings: npt.ArrayLike | Drawn = 1.0,
        field: npt.ArrayLike = 0.0,
        *,
        name: str = "",
        offset: float = 0.0,
        maxcut_weight: float | None = None,
        terms: npt.ArrayLike | None = None,
        labels: Labels | None = None,
        vartype: str = SPIN,
    ) -> None:
        self.graph = check_graph(graph)
        self.drawn = couplings if isinstance(couplings, Drawn) else None
        given = self.sizes_of_couplings if isinstance(couplings, Drawn) else couplings
        rows = quanta.as_rows(given, self.graph.bonds, "couplings", "bonds")
        fields = quanta.as_rows(field, self.graph.sites, "fields", "sites")
        self.samples = max(len(rows), len(fields))
        if {len(rows), len(fields)} - {1, self.samples}:
            raise InputError(
                f"couplings of {len(rows)} samples and fields of {len(fields)} do not fit: give equal numbers"
            )
        self.quantum, self.rounded = quanta.common_quantum(rows, fields)
        if self.drawn is not None and self.rounded:
            rows = self.drawn.rows(self.bonds)
        multiples = [quanta.round_to(one, self.quantum) if self.rounded else one for one in (rows, fields)]
        self.rounding_error = max(map(quanta.relative_change, (rows, fields), multiples))
        self.fields = frozen(multiples[1])
        if self.drawn is None or self.rounded:
            self.couplings = frozen(multiples[0])
        self.name = name or self.graph.label
        self.offset = finite(offset, "offset")
        self.maxcut_weight = None if maxcut_weight is None else finite(maxcut_weight, "maxcut_weight")
        self.terms = check_terms(terms, self.graph.bonds)
        self.labels = as_labels(labels, self.graph.sites)
        if vartype not in (SPIN, BINARY):
            raise InputError(f"vartype {vartype!r} is unknown: choose SPIN or BINARY")
        self.vartype = vartype
        self.problem: Quadratic | None = None
        self.field_changes = False
        self.origin: dict[str, Any] = {}
        self.stated_sha256 = ""

    @property
    def _facts(self) -> dict[str, str]:
        size = f"{count(self.sites, 'site')}, {count(self.bonds, 'bond')}"
        facts = {"model": self.name, "size": size, "samples": count(self.samples, "sample")}
        if np.any(quanta.distinct(self.fields)):
            facts["field"] = f"field {self.fields[0, 0]:g}" if self.uniform_field is not None else "with fields"
        return facts

    @property
    def lattice(self) -> Lattice | None:
        """The lattice, if the model lives on one."""
        return self.graph.lattice

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
    def couplings(self) -> Rows:  # those that are not drawn are set at once
        assert self.drawn is not None  # noqa: S101
        return frozen(self.drawn.rows(self.bonds))

    @property
    def are_yet_to_draw(self) -> bool:
        """True where couplings are drawn and nobody has read them yet."""
        return "couplings" not in vars(self)

    @property
    def coupling_rows(self) -> int:
        """1 where all samples share couplings, else their number."""
        return len(self.sizes_of_couplings)

    @property
    def sizes_of_couplings(self) -> Rows:
        """Numbers of the same sizes as the couplings."""
        if self.drawn is None or not self.are_yet_to_draw:
            return self.couplings
        return np.broadcast_to(np.int8(1), (self.drawn.samples, self.bonds))

    @property
    def one_coupling(self) -> bool:
        """True if J is held as one number for all bonds."""
        return self.drawn is None and self.couplings.strides[-1] == 0

    caution = property(quanta.caution_of)

    def integer_couplings(self, sample: int) -> npt.NDArray[np.int64]:
        """J of one sample in quanta, shape (bonds,)."""
        return self._in_quanta(self.couplings, sample)

    def negative_bonds(self) -> npt.NDArray[np.bool_]:
        """True for couplings below 0, (1 or samples, bonds); one number for all is not copied."""
        return np.broadcast_to(quanta.distinct(self.couplings) < 0, self.couplings.shape)

    def integer_fields(self, sample: int) -> npt.NDArray[np.int64]:
        """H of one sample in quanta, shape (sites,)."""
        return self._in_quanta(self.fields, sample)

    def _in_quanta(self, rows: Rows, sample: int) -> npt.NDArray[np.int64]:
        row: Rows = rows[sample if len(rows) > 1 else 0]
        return np.rint(row / self.quantum).astype(np.int64)

    @cached_property
    def magnitude(self) -> int | None:
        """|J| in quanta where every bond of every sample has the same nonzero one, else None."""
        if self.bonds == 0:
            return None
        values = quanta.distinct(self.sizes_of_couplings)
        sizes = np.abs(values[:, :1] if quanta.are_signs(values) else values)
        largest = sizes.max()
        return round(float(largest) / self.quantum) if largest and largest == sizes.min() else None

    weights = cached_property(quanta.weights_of)
    units = cached_property(quanta.units_of)
    largest_local_field = cached_property(quanta.largest_local_field_of)

    @cached_property
    def term_magnitudes(self) -> tuple[int, ...] | None:
        """|J| in quanta of each of two terms, if all bonds of a term share one above 0; else None."""
        return None if self.terms is None else magnitudes_of(self.couplings, self.terms, self.quantum)

    @property
    def coupling_unit(self) -> float:
        """The |J| that all bonds share, else 1: scale of exact curves and of couplings in time."""
        return self.magnitude * self.quantum if self.magnitude else 1.0

    @cached_property
    def uniform_field(self) -> int | None:
        """Field h in quanta where every site of every sample has the same one, else None."""
        values = quanta.distinct(self.fields)
        return round(float(values[0, 0]) / self.quantum) if values.min() == values.max() else None

    @cached_property
    def uniform_coupling(self) -> float | None:
        """The J that all bonds of all samples share; None if they differ or there are no bonds."""
        low, high = self.extreme_couplings
        return low if low == high and self.bonds else None

    extreme_couplings = cached_property(quanta.extremes_of)
    energy_scale = cached_property(quanta.energy_scale_of)
    content_sha256 = content_sha256_of

    def in_field(self, field: float) -> Ising:
        """This model in a uniform field, which is added to its own fields.

        Raises:
            InputError: for a field that is not finite or too large.
        """
        couplings = self.drawn or (self.couplings[0, 0] if self.one_coupling else self.couplings)
        fields = self.fields[0, 0] if self.fields.strides[-1] == 0 else self.fields
        others = ("name", "offset", "maxcut_weight", "terms", "labels", "vartype")
        return Ising(self.graph, couplings, fields + field, **{name: getattr(self, name) for name in others})

    def of_samples(self, first: int, stop: int) -> Ising:
        """The model of some of the samples alone, which moves as these do among all of them.

        What depends on all samples, such as the quantum, stays as it is; rows are not copied.
        """
        _ = self.magnitude, self.units, self.term_magnitudes, self.uniform_field
        if self.drawn is None:
            _ = self.weights
        part = copy(self)
        part.samples, part.origin = stop - first, {}
        part.fields = self.fields[first:stop] if len(self.fields) > 1 else self.fields
        if self.drawn is not None and self.drawn.samples > 1:
            part.drawn = self.drawn.of_samples(first, stop)
        if not self.are_yet_to_draw:
            part.couplings = self.couplings[first:stop] if len(self.couplings) > 1 else self.couplings
        return part

    def energy(self, spins: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Exact energies of spins, (sample, site) or (sample, site, replica), without the offset.

        The plain definition, kept beside the packed measurement as its oracle; raises InputError as
        ``check_spins``.
        """
        s = check_spins(self, spins)
        ends = self.graph.edges
        total = []
        for sample in range(self.samples):
            j, h = self.integer_couplings(sample), self.integer_fields(sample)
            pairs = s[sample, ends[:, 0]] * s[sample, ends[:, 1]]
            total.append(-np.tensordot(j, pairs, 1) - np.tensordot(h, s[sample], 1))
        return np.asarray(total, np.float64) * self.quantum

    def cut(self, energy: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Cut weight of a MaxCut instance at an energy: (W - E) / 2.

        Raises:
            InputError: where the model did not come from a MaxCut instance.
        """
        if self.maxcut_weight is None:
            raise MissingError(f"model {self.name} is not a MaxCut instance: it has no cut")
        return (self.maxcut_weight - np.asarray(energy, np.float64)) / 2


def repeated(model: Ising, times: int) -> Ising:
    """A model with all of its samples so many times over, group by group; shared rows stay shared."""
    if times == 1:
        return model
    groups, order = model.of_samples(0, model.samples), np.tile(np.arange(model.samples), times)
    groups.samples, groups.drawn = len(order), None
    both = model.couplings, model.fields
    groups.couplings, groups.fields = (rows[order] if len(rows) > 1 else rows for rows in both)
    return groups


def with_list(model: Ising) -> Ising:
    """A model with the list of its bonds, as earlier versions wrote all models to files."""
    require(_BYTES_A_LISTED * model.bonds, f"the list of bonds of {model.name}")
    same = copy(model)
    same.graph = model.graph.with_list()
    return same


def check_spins(model: Ising, spins: npt.ArrayLike) -> npt.NDArray[np.int64]:
    try:
        given = np.asarray(spins)
        numbers = given.dtype.kind in "iuf"
    except ValueError:  # lists of unequal lengths
        numbers = False
    if not numbers:
        raise InputError(f"spins of type {type(spins).__name__} hold no numbers: give an array of +1, -1")
    if given.ndim not in (2, 3) or given.shape[:2] != (model.samples, model.sites):
        raise InputError(
            f"spins have shape {given.shape}: give (samples, sites) or (samples, sites, replicas) with samples = "
            f"{model.samples}, sites = {model.sites}, such as result.best_spins"
        )
    wrong = given[(given != 1) & (given != -1)]
    if wrong.size:
        binary = ", 2 x - 1 of values 0 and 1" if model.vartype == BINARY else ""
        raise InputError(f"spins hold {wrong[0]}: every one must be +1 or -1{binary}")
    return given.astype(np.int64)


def check_model(model: Any) -> Ising:
    if isinstance(model, Ising):
        return model
    if isinstance(model, Lattice | Graph):
        kind = "lattice" if isinstance(model, Lattice) else "graph"
        raise InputError(
            f"a {kind} is no model, its couplings are not known: give ss.Ising of it, a ferromagnet, or "
            "ss.EdwardsAnderson"
        )
    makers = {"to_numpy_vectors": "from_bqm", "adjacency": "from_networkx", "keys": "from_qubo", "dtype": "from_matrix"}
    maker = next((f"ss.Ising.{makers[name]} of it" for name in makers if hasattr(model, name)), None)
    raise InputError(
        f"a {type(model).__name__} is no model: give {maker or 'one such as ss.Ising(ss.square(8))'} or "
        "ss.read_instance(path)"
    )


def check_graph(graph: Any) -> Graph:
    if isinstance(graph, Lattice):
        return Graph.of_lattice(graph)
    if isinstance(graph, Graph):
        return graph
    raise InputError(
        f"a {type(graph).__name__} is no lattice and no graph: give one such as ss.square(8), or "
        "ss.Graph(sites, edges) with edges of shape (bonds, 2) and the couplings of these bonds"
    )
