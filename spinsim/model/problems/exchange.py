"""Objects of other programs, and files, of which an ``Ising`` is made, and into which it is made."""

from __future__ import annotations

import os
from typing import Any, Self

import numpy.typing as npt

from spinsim.inputs.arguments import judges, public
from spinsim.inputs.texts import Described
from spinsim.model.problems import objects
from spinsim.model.problems.labels import Labels
from spinsim.model.problems.quadratic import Quadratic


@public
class Exchanged(Described):
    """The part of ``Ising`` that exchanges problems with other programs, by way of a ``Quadratic``.

    Sites are called what the caller calls them and stand in the order given; values, the constant
    and the kind of the variables are kept as they are given.
    """

    @classmethod
    def from_quadratic(cls, problem: Quadratic) -> Self:
        raise NotImplementedError

    @property
    def quadratic(self) -> Quadratic:
        raise NotImplementedError

    @classmethod
    @judges("offset")
    def from_qubo(cls, qubo: Any, offset: float = 0.0, name: str = "qubo") -> Self:
        """The model of a QUBO: minimise the sum of value x_u x_v, x = 0, 1, plus ``offset``.

        Args:
            qubo: ``{(u, v): value}`` with any hashable labels, (u, u) for linear terms; pairs in
                both orders add. Or a square matrix, as ``from_matrix`` takes it, of which x' Q x is
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
    ) -> Self:
        """The model of a square matrix: NumPy's, SciPy's sparse or a DataFrame of pandas.

        Args:
            matrix: Of kind ``ising`` the couplings J, H = - sum over pairs J_ij s_i s_j - sum h_i
                s_i: symmetric, or with each pair once, in any order; each pair counts once, the
                diagonal is 0. Of kind ``qubo`` Q: x' Q x is minimised.
            field: h, a number or one for each site, of kind ``ising`` alone.
            offset: The constant.
            kind: ``ising`` or ``qubo``.
            labels: Labels of the sites, in the order of the rows; by default those of a DataFrame,
                else 0, 1, 2, ...
            name: Short name for files and figures.

        Raises:
            InputError: for what is no such matrix.
        """
        return cls.from_quadratic(objects.from_matrix(matrix, field, offset, kind, labels, name))

    @classmethod
    def from_networkx(
        cls, graph: Any, weight: str = "weight", field: str = "field", maxcut: bool = False, name: str = "graph"
    ) -> Self:
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
    def from_bqm(cls, bqm: Any, name: str = "bqm") -> Self:
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

    def to_matrix(self, kind: str = "ising") -> objects.Matrices:
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
            path: With the suffix .mc, .rud or .txt (rudy), .col (DIMACS), .sparse (Biq Mac QUBO),
                .qs (QOBLIB), .edgelist, .mtx (MatrixMarket), .coo, .qubo (qbsolv) or .bqm (dimod);
                .gz or .xz behind it compresses. Labels, the constant and the kind of variables are
                kept, in comments where a format has no place for them; rudy files count sites from
                1, and .sparse, .qs and .qubo hold the problem in binary variables.
            overwrite: True if an instance file that is there may be replaced.

        Raises:
            InputError: for other suffixes, and for a problem that the format cannot hold.
        """
        from spinsim.model.formats import write_instance

        write_instance(self.quadratic, path, overwrite)
