"""Objects of other programs, and files, of which an ``Ising`` is made, and into which it is made."""

from __future__ import annotations

import os
from dataclasses import replace
from math import fsum
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from spinsim.inputs.signatures import in_lines
from spinsim.inputs.texts import Described
from spinsim.model.graph import Graph
from spinsim.model.problems import objects
from spinsim.model.problems.quadratic import SPIN, Quadratic, are_rounded, quadratic_of, sums_at

if TYPE_CHECKING:
    from spinsim.model.ising import Ising
    from spinsim.model.problems.objects import Matrices
    from spinsim.model.problems.quadratic import Labels


@in_lines
class Exchanged(Described):
    """The part of ``Ising`` that exchanges problems with other programs.

    Sites are called what the caller calls them and stand in the order given; values, the constant
    and the kind of the variables are kept as they are given.
    """

    @classmethod
    def from_quadratic(cls, problem: Quadratic) -> Ising:
        """The model with the energies of a problem: J = -b and h = -a of its form in spins.

        Terms of value 0 are left out; their variables stay.

        Raises:
            InputError: where the values cannot be held exactly.
        """
        spins = problem.check().of_vartype(SPIN)
        at, linear, ends, pairs = spins.split()
        sums = sums_at(at, linear, problem.sites)
        rounded = len(at) > problem.sites and are_rounded(sums, at, linear)
        # terms of binary variables may become 0 in spins
        lost = spins is not problem and np.count_nonzero(pairs) < np.count_nonzero(problem.split()[3])
        maxcut_weight = fsum(pairs) if problem.is_maxcut else None
        if not pairs.all():
            ends, pairs = ends[pairs != 0], pairs[pairs != 0]
        model = cast("type[Ising]", cls)(
            Graph(problem.sites, ends.astype(np.int32)),
            -pairs,
            0.0 - sums if sums.any() else 0.0,  # 0.0 - x, as -x would store -0.0
            name=problem.name,
            offset=spins.offset,
            maxcut_weight=maxcut_weight,
            labels=problem.labels,
            vartype=problem.vartype,
        )
        model.problem = replace(problem, labels=model.labels)
        model.rounded = bool(model.rounded or rounded or lost)
        return model

    @classmethod
    def from_qubo(cls, qubo: Any, offset: float = 0.0, name: str = "qubo") -> Ising:
        """The model of a QUBO: minimise the sum of value x_u x_v, x = 0, 1, plus ``offset``.

        Args:
            qubo: ``{(u, v): value}`` with any hashable labels, (u, u) for linear terms; pairs in
                both orders add. Or a square matrix, NumPy's or SciPy's sparse, of which x' Q x is
                minimised.
            offset: The constant.
            name: Short name for files and figures.

        Raises:
            InputError: for keys that are no pairs, values that are no finite numbers, and matrices
                that are not square.

        Examples:
            >>> model = ss.Ising.from_qubo({("x", "x"): -1.0, ("x", "y"): 2.0})
            >>> ss.anneal(model, device="cpu").best.by_label
            {'x': 1, 'y': 0}
        """
        return cls.from_quadratic(objects.from_qubo(qubo, offset, name))

    @classmethod
    def from_matrix(
        cls,
        matrix: Any,
        field: npt.ArrayLike | None = None,
        offset: float = 0.0,
        kind: str = "ising",
        labels: Labels | None = None,
        name: str = "matrix",
    ) -> Ising:
        """The model of a square matrix, NumPy's or SciPy's sparse.

        Args:
            matrix: Of kind ``ising`` the couplings J, H = - sum over pairs J_ij s_i s_j - sum h_i
                s_i: symmetric or triangular, each pair counts once, the diagonal is 0. Of kind
                ``qubo`` Q: x' Q x is minimised.
            field: h, a number or one for each site, of kind ``ising`` alone.
            offset: The constant.
            kind: ``ising`` or ``qubo``.
            labels: Of the sites, in the order of the rows; 0, 1, 2, ... where left out.
            name: Short name for files and figures.

        Raises:
            InputError: for what is no such matrix.
        """
        return cls.from_quadratic(objects.from_matrix(matrix, field, offset, kind, labels, name))

    @classmethod
    def from_networkx(
        cls, graph: Any, weight: str = "weight", field: str = "field", maxcut: bool = False, name: str = "graph"
    ) -> Ising:
        """The model of a ``networkx.Graph``: its nodes are the labels, in their order.

        Args:
            graph: Undirected; parallel edges add. Its attributes ``offset``, ``maxcut`` and
                ``vartype`` count, if any: with ``BINARY`` weights and fields are values of a QUBO.
            weight: Attribute of edges with the coupling J, 1 where there is none; positive is
                ferromagnetic.
            field: Attribute of nodes with the field h, 0 where there is none.
            maxcut: True if weights are those of a MaxCut instance, J = -w, which is reported with
                its cut.
            name: Short name for files and figures.

        Raises:
            InputError: for what is no such graph, and for attributes that are no finite numbers.
        """
        return cls.from_quadratic(objects.from_networkx(graph, weight, field, maxcut, name))

    @classmethod
    def from_bqm(cls, bqm: Any, name: str = "bqm") -> Ising:
        """The model of a ``dimod.BinaryQuadraticModel``, spin or binary.

        dimod's energy is sum a_i s_i + sum b_ij s_i s_j + offset, so J = -b and h = -a; energy +
        offset is dimod's.

        Raises:
            InputError: for other objects, those of more than quadratic terms among them.
        """
        return cls.from_quadratic(objects.from_bqm(bqm, name))

    def to_qubo(self) -> tuple[objects.Qubo, float]:
        """The problem as ``{(u, v): value}`` by labels, and the constant, as ``from_qubo`` takes them.

        Raises:
            InputError: for several samples.
        """
        return objects.to_qubo(self.quadratic)

    def to_matrix(self, kind: str = "ising") -> Matrices:
        """Sparse matrix, field and offset of the problem, as ``from_matrix`` takes them.

        Args:
            kind: ``ising`` for J, symmetric, and h; ``qubo`` for Q, upper triangular, without a
                field.
        """
        return objects.to_matrix(self.quadratic, kind)

    def to_networkx(self, weight: str = "weight", field: str = "field") -> Any:
        """A ``networkx.Graph`` with J on edges and h on nodes; of a QUBO with the QUBO's values.

        Raises:
            InputError: where NetworkX is not installed.
        """
        return objects.to_networkx(self.quadratic, weight, field)

    def to_bqm(self) -> Any:
        """A ``dimod.BinaryQuadraticModel`` of its labels and its kind of variables.

        Raises:
            InputError: where dimod is not installed.
        """
        return objects.to_bqm(self.quadratic)

    def save(self, path: str | os.PathLike[str], overwrite: bool = False) -> None:
        """Write an instance file that ``ss.read_instance`` reads; the suffix tells the format.

        Args:
            path: With the suffix .mc, .rud or .txt (rudy), .sparse (Biq Mac QUBO), .edgelist, .mtx
                (MatrixMarket), .coo, .qubo (qbsolv) or .bqm (dimod). Labels, the constant and the
                kind of variables are kept, in comments where a format has no place for them; rudy
                files count sites from 1, and .sparse and .qubo hold the problem in binary
                variables.
            overwrite: True if an instance file that is there may be replaced.

        Raises:
            InputError: for other suffixes, and for a problem that the format cannot hold.
        """
        from spinsim.model.formats import write_instance

        write_instance(self.quadratic, path, overwrite)

    @property
    def quadratic(self) -> Quadratic:
        """The problem as its caller stated it, or as its couplings and fields say.

        Raises:
            InputError: for several samples.
        """
        return quadratic_of(cast("Ising", self))
