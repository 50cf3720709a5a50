"""The Ising model H = - sum over bonds of J s_i s_j - sum over sites of h s_i, its identity and its settings in words.

The identity is the SHA-256 of everything that determines how a model moves, and of its labels. A run of a model given
in Python, or read from an instance file, is identified by the model's content. The equivalent settings of ``[model]``
say the same in words, as far as they are known, and count in no identity. ``sites`` is always among them, but is no
setting; older files lack it.
"""

from __future__ import annotations

import hashlib
import os
from copy import copy
from dataclasses import replace
from math import fsum
from typing import Any, Final, Self

import numpy as np
import numpy.typing as npt

from spinsim.errors import InputError, MissingError, WrongTypeError
from spinsim.inputs.arguments import judges, public
from spinsim.inputs.texts import count
from spinsim.model.couplings import Drawn, distinct, one_if_equal
from spinsim.model.exchange import Exchanged
from spinsim.model.formats import read_problem
from spinsim.model.formats.source import Source
from spinsim.model.graph import Graph
from spinsim.model.hamiltonian import Hamiltonian
from spinsim.model.lattice import Lattice, space_of
from spinsim.model.quadratic import BINARY, SPIN, Labels, Quadratic, as_labels, finite, label_text, sums_at

_LARGEST_CHANGE: Final = 1e-5  # of a value by rounding, below what any simulation resolves
_AT_ONCE: Final = 2**16  # numbers that are widened at once, in a cache
_MARK: Final = "sites"
_COUPLINGS: Final = {1.0: "ferromagnet", -1.0: "antiferromagnet"}


@public
@judges("graph", "terms")
class Ising(Hamiltonian, Exchanged):
    """An Ising model on a lattice or graph, with one or more disorder samples.

    Args:
        graph: A lattice (``ss.square(64)``) or a ``Graph``.
        couplings: J of each bond: a number, an array (bonds,) or (samples, bonds), or a recipe to
            draw them. Positive is ferromagnetic.
        field: h of each site: a number, an array (sites,) or (samples, sites).
        name: Short name for files and figures.
        offset: Constant added to the energy (QUBO instances); reported, never simulated.
        maxcut_weight: Sum of all weights of a MaxCut instance, whose cut is (sum - energy) / 2.
        terms: The term of each bond, 0 or 1, shape (bonds,), where the terms of the energy may have
            inverse temperatures of their own (model/graph.py); None where there is one term.
        labels: Names of the sites in their order, any hashable objects; None for 0, 1, 2, ... An
            empty tuple where the problem has no variables: one idle site then stands for none.
        vartype: The caller's variables: ``SPIN``, s, or ``BINARY``, x = (1 + s) / 2.

    Attributes:
        graph: Sites and bonds; ``graph.edges`` has the ends of each bond, (bonds, 2), in the
            order of couplings.
        couplings: J (1 or samples, bonds), multiples of ``quantum``: ``float64``, or ``int8`` where
            they were given so or are drawn. Couplings are drawn when they are first read.
        fields: h (1 or samples, sites), likewise.
        samples: Number of disorder samples.
        quantum: Unit of the exact integers, a power of two.
        rounded: True if a given value was not a multiple of the quantum.
        rounding_error: Largest relative change of a value by rounding; 1 where a value became 0.
        problem: The quadratic problem that it was made from, with the values as given, else None.
        drawn: Recipe of couplings that are drawn later (+-J of ``EdwardsAnderson``), else None.
        field_changes: True if the field changes during the run.
        whole: The model of all samples, if this one has some of them by ``of_numbers``, else None.
        numbers: Their numbers in ``whole``, (samples,), else None.
        origin: Settings of ``[model]`` that made it and do not follow from the model itself.

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
        super().__init__(check_graph(graph), couplings, field, terms)
        self.name = name or self.graph.label
        self.offset = finite(offset, "offset")
        self.maxcut_weight = None if maxcut_weight is None else finite(maxcut_weight, "maxcut_weight")
        is_idle = self.graph.sites == 1 and not self.graph.bonds and not np.any(self.fields)
        is_empty = is_idle and isinstance(labels, tuple) and not labels
        self.labels = () if is_empty else as_labels(labels, self.graph.sites)
        if vartype not in (SPIN, BINARY):
            raise InputError(f"vartype {vartype!r} is unknown: choose SPIN or BINARY")
        self.vartype = vartype
        self.problem: Quadratic | None = None
        self.field_changes = False
        self.whole: Ising | None = None
        self.numbers: npt.NDArray[np.int64] | None = None
        self.origin: dict[str, Any] = {}

    def __setattr__(self, name: str, value: Any) -> None:
        if "origin" in vars(self) and name not in vars(self) and not hasattr(type(self), name):
            raise MissingError(
                f"a model has no {name} to set: give couplings and fields to ss.Ising, further fields to model.in_field"
            )
        object.__setattr__(self, name, value)

    @classmethod
    def from_quadratic(cls, problem: Quadratic) -> Self:
        """The model with the energies of a problem: J = -b and h = -a of its form in spins.

        Terms of value 0 are left out; their variables stay. A problem without variables becomes a
        model of one idle site that has no label.

        Raises:
            InputError: where the values cannot be held exactly.
        """
        at, linear, ends, pairs, offset = problem.check().split_in(SPIN)
        sums, rounded = sums_at(at, linear, problem.sites)
        maxcut_weight = fsum(pairs) if problem.is_maxcut else None
        if not pairs.all():
            if problem.vartype != SPIN:  # values that are not 0 may become 0 in spins
                rounded |= bool(np.count_nonzero(pairs) < np.count_nonzero(problem.split()[3]))
            ends, pairs = ends[pairs != 0], pairs[pairs != 0]
        model = cls(
            Graph(problem.sites or 1, ends.astype(np.int32)),
            -pairs,
            0.0 - sums if sums.any() else 0.0,  # 0.0 - x, as -x would store -0.0
            name=problem.name,
            offset=offset,
            maxcut_weight=maxcut_weight,
            labels=problem.labels if problem.sites else (),
            vartype=problem.vartype,
        )
        model.problem = replace(problem, labels=model.labels)
        model.rounded = bool(model.rounded or rounded)
        return model

    @property
    def size_in_words(self) -> str:
        """Size such as "800 sites, 1600 bonds"; "no variables" for a problem without any."""
        return f"{count(self.sites, 'site')}, {count(self.bonds, 'bond')}" if len(self.labels) else "no variables"

    @property
    def _summary(self) -> dict[str, str]:
        facts = {"model": self.name, "size": self.size_in_words, "samples": count(self.samples, "sample")}
        if np.any(distinct(self.fields)):
            facts["field"] = f"field {self.fields[0, 0]:g}" if self.uniform_field is not None else "with fields"
        if "disorder_seed" in self.origin:
            facts["seed"] = f"disorder seed {self.origin['disorder_seed']}"
        if self.maxcut_weight is not None:
            facts["problem"] = "MaxCut"
        elif self.vartype == BINARY and len(self.labels):
            facts["problem"] = "binary variables"
        return facts

    @property
    def quadratic(self) -> Quadratic:
        """The problem as its caller stated it, or else from its couplings and fields.

        Raises:
            InputError: for several samples.
        """
        if self.problem is not None:
            return self.problem
        if self.samples > 1:
            raise InputError(
                f"model {self.name} has {self.samples} samples, and each of them is a problem of its own: give one "
                "of them, such as model.of_samples(0, 1)"
            )
        sites = np.flatnonzero(self.fields[0])
        linear, pairs = 0.0 - self.fields[0, sites], 0.0 - self.couplings[0].astype(np.float64)
        spins = Quadratic(
            len(self.labels),
            np.concatenate([np.stack([sites, sites], axis=1), self.graph.edges]).astype(np.int64),
            np.concatenate([linear, pairs]),
            offset=float(self.offset),
            labels=self.labels,
            is_maxcut=self.maxcut_weight is not None and not len(sites) and fsum(pairs) == self.maxcut_weight,
            name=self.name,
        )
        return spins.of_vartype(self.vartype)

    @property
    def caution(self) -> str:
        """A sentence where rounding to the quantum took digits that matter, else empty."""
        if self.rounding_error > _LARGEST_CHANGE:
            return (
                f"couplings and fields of {self.name} are multiples of one quantum, so that energies are exact, which "
                f"changes some by up to {100 * self.rounding_error:.3g} %: values so different do not fit one model"
            )
        sizes = np.abs(self.problem.values) if self.rounded and self.problem is not None else np.zeros(0)
        least = float(sizes[sizes > 0].min(initial=np.inf))
        if self.quantum > _LARGEST_CHANGE * least:
            return (
                f"energies of {self.name} are searched in steps of {self.quantum:.3g}, while its least value is "
                f"{least:.3g}: values so different do not fit one model, so lower the largest, such as penalties"
            )
        return ""

    def content_sha256(self) -> str:
        """Identity of the model: SHA-256 of its sites, bonds, couplings, fields, offsets and labels.

        Bonds that are not listed enter as their lattice; couplings enter as their recipe or as
        bytes, equal values as one number.
        """
        digest = hashlib.sha256(f"{self.sites} {self.offset!r} {self.maxcut_weight!r}".encode())
        in_lists, drawn = self.graph.is_listed, self.drawn
        for piece in self.graph.identity():
            digest.update(piece)
        if self.terms is not None:
            digest.update(b"terms" + self.terms.tobytes())
        if drawn is not None and not in_lists:
            digest.update(f"pm-j {drawn.bond_fraction!r} {drawn.seed} {drawn.first} {drawn.samples}".encode())
            given = [self.fields]
        else:
            given = [self.couplings, self.fields]
        for sample in range(self.samples):
            for rows in given if in_lists else map(one_if_equal, given):
                row, kind = rows[sample % len(rows)], "<f8" if in_lists or rows.dtype != np.int8 else "i1"
                for first in range(0, row.size, _AT_ONCE):
                    digest.update(np.ascontiguousarray(row[first : first + _AT_ONCE], kind).data)
        if isinstance(self.labels, tuple):
            digest.update("\n".join(["labels", *map(label_text, self.labels)]).encode())
        if self.whole is not None and self.numbers is not None:
            digest.update(f"samples {self.numbers.tolist()} of {self.whole.content_sha256()}".encode())
        return digest.hexdigest()

    def in_field(self, field: float) -> Ising:
        """This model in a uniform field, which is added to its own fields.

        Raises:
            InputError: for a field that is not finite or too large, and for a problem without
                variables.
        """
        if not len(self.labels):
            raise InputError(f"model {self.name} has no variables that a field could act on: leave the field out")
        couplings = self.drawn or (self.couplings[0, 0] if self.one_coupling else self.couplings)
        return changed(self, couplings, field)

    def of_samples(self, first: int, stop: int) -> Ising:
        """Model of some of the samples alone, which moves as they do among all samples.

        Properties of all samples, such as the quantum, stay as they are; rows are not copied.
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

        This is the plain definition, kept as a reference for the packed measurement; raises
        InputError as ``check_spins``.
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


def described(model: Ising) -> dict[str, Any]:
    """Settings that lead to a model, as far as it knows them; in space alone where it has slices in time."""
    graph, lattice = model.graph, model.lattice
    if lattice is not None and graph.slices > 1:
        lattice = space_of(lattice)
    settings: dict[str, Any] = {_MARK: graph.sites // graph.slices, "samples": model.samples}
    if lattice is not None:
        size, boundary = "x".join(map(str, lattice.shape)), "periodic" if lattice.periodic else "open"
        settings |= {"lattice": lattice.name, "size": size, "boundary": boundary}
    if graph.slices == 1:
        if model.uniform_coupling in _COUPLINGS:
            settings["couplings"] = _COUPLINGS[model.uniform_coupling]
        if (drawn := model.drawn) is not None:
            settings |= {"couplings": "pm-j", "bond_fraction": drawn.bond_fraction, "disorder_seed": drawn.seed}
        if model.uniform_field is not None:
            settings["field"] = model.uniform_field * model.quantum
    return settings | model.origin


def described_in(tables: object) -> dict[str, Any]:
    """The settings of a model in the configuration of a file; empty in older files, which lack them."""
    table = tables.get("model") if isinstance(tables, dict) else None
    if not isinstance(table, dict) or _MARK not in table:
        return {}
    return {name: value for name, value in table.items() if name != "instance"}


def changed(model: Ising, couplings: npt.ArrayLike | Drawn, field: float = 0.0) -> Ising:
    """A model with other couplings, and with a uniform field that is added to its own."""
    fields = model.fields[0, 0] if model.fields.strides[-1] == 0 else model.fields
    others = ("name", "offset", "maxcut_weight", "terms", "labels", "vartype")
    return Ising(model.graph, couplings, fields + field, **{name: getattr(model, name) for name in others})


def repeated(model: Ising, times: int) -> Ising:
    """A model with all its samples repeated ``times`` times, group by group; shared rows stay shared."""
    if times == 1:
        return model
    groups, order = model.of_samples(0, model.samples), np.tile(np.arange(model.samples), times)
    groups.samples, groups.drawn = len(order), None
    both = model.couplings, model.fields
    groups.couplings, groups.fields = (rows[order] if len(rows) > 1 else rows for rows in both)
    return groups


def of_numbers(model: Ising, numbers: npt.NDArray[np.int64]) -> Ising:
    """Return a model of the samples with these numbers, rising from 0, which move as they do among all samples."""
    if model.whole is not None and model.numbers is not None:
        return of_numbers(model.whole, model.numbers[numbers])
    part, both = model.of_samples(0, model.samples), (model.couplings, model.fields)
    part.samples, part.whole, part.numbers, part.origin = len(numbers), model, np.array(numbers), model.origin
    part.drawn = None
    part.couplings, part.fields = (rows[numbers] if len(rows) > 1 else rows for rows in both)
    return part


def check_spins(model: Ising, spins: npt.ArrayLike) -> npt.NDArray[np.int64]:
    try:
        given = np.asarray(spins)
        numbers = given.dtype.kind in "iuf"
    except ValueError:  # lists of unequal lengths
        numbers = False
    if not numbers:
        raise WrongTypeError(f"spins of type {type(spins).__name__} hold no numbers: give an array of +1, -1")
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
        raise WrongTypeError(
            f"a {kind} is no model, it has no couplings: give ss.Ising of it, a ferromagnet, or ss.EdwardsAnderson"
        )
    makers = {"to_numpy_vectors": "from_bqm", "adjacency": "from_networkx", "keys": "from_qubo", "dtype": "from_matrix"}
    maker = next((f"ss.Ising.{makers[name]} of it" for name in makers if hasattr(model, name)), None)
    raise WrongTypeError(
        f"an object of type {type(model).__name__} is no model: give "
        f"{maker or 'one such as ss.Ising(ss.square(8))'} or ss.read_instance(path)"
    )


def check_graph(graph: Any) -> Graph:
    if isinstance(graph, Lattice):
        return Graph.of_lattice(graph)
    if isinstance(graph, Graph):
        return graph
    raise WrongTypeError(
        f"an object of type {type(graph).__name__} is no lattice and no graph: give one such as ss.square(8), or "
        "ss.Graph(sites, edges) with edges of shape (bonds, 2) and the couplings of these bonds"
    )


@public
def read_instance(path: str | os.PathLike[str]) -> Ising:
    """Read an Ising, QUBO or MaxCut instance; its header or, for some formats, its suffix decides the format.

    * rudy, G-set, Biq Mac: ``n m``, then m lines ``i j w``, or ``i j``, with sites from 1. A MaxCut instance: J = -w,
      and ``maxcut_weight`` is the sum W of all weights, so that a cut of weight c has energy W - 2c.
    * DIMACS: ``p edge n m`` or ``p col n m``, then lines ``e i j``, or ``e i j w``, with sites from 1, a MaxCut
      instance in which each edge counts once.
    * ``.sparse`` or ``.bq`` of Biq Mac, ``.qs`` of QOBLIB: ``n m``, then ``i j q`` with sites from 1: minimise x' Q x,
      Q symmetric. A comment ``# ObjectiveOffset c`` states the constant.
    * ``.edgelist``, ``.edges``, ``.el``, ``.wel``: lines ``u v`` or ``u v w`` of words, a MaxCut instance.
    * COO of dimod: ``# vartype=SPIN`` or ``# vartype=BINARY``, then ``i j value`` with sites from 0; i = i is a linear
      term. dimod minimises sum h s + sum J s s: our J and h are minus its values.
    * qbsolv: one line ``p qubo 0 maxNodes nDiagonals nElements``, then ``i j value`` with sites from 0, i = j for
      diagonals.
    * MatrixMarket: the weights of a MaxCut instance; with a comment ``% vartype=BINARY`` or ``% vartype=SPIN`` a
      problem in such variables.
    * BQM files of dimod, as ``bqm.to_file()`` writes them.

    Binary variables are x = (1 + s) / 2; energy + ``offset`` of the model is the value of the QUBO. Repeated terms
    add: pairs as separate bonds, linear terms in one field. Bonds of value 0 are left out; their sites stay.
    Energies, fields and couplings are in the units of the file. Labels are those of the file: its numbers or words.
    Lines that begin with ``#`` or a single ``c`` above a header are comments; of problems other than graphs one such
    as ``# offset=c`` states the constant. Files that gzip or xz compressed are unpacked.

    Args:
        path: The file: UTF-8 text with any line ends; blank lines and trailing spaces are allowed.

    Returns:
        The model, named after the file without its last suffix.

    Raises:
        InputError: where the file cannot be read, is of another format or breaks a rule of its own; the sentence
            names the file and, where there is one, the line.
    """
    source = Source(path)
    problem = read_problem(source)
    try:
        return Ising.from_quadratic(problem)
    except InputError as error:
        raise InputError(f"instance file {source.name} cannot be held exactly: {error}") from error


@public
def from_bqm(bqm: Any, name: str = "bqm") -> Ising:
    """The model of a ``dimod.BinaryQuadraticModel``: the same as ``Ising.from_bqm``.

    Args:
        bqm: The binary quadratic model. Its biases are -J and -h.
        name: Short name for files and figures.

    Returns:
        The model, with the labels and the kind of variables of ``bqm``.
    """
    return Ising.from_bqm(bqm, name)
