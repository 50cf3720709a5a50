"""What an ``Ising`` is made of, and made into: objects of other programs, and files."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, cast

import numpy.typing as npt

from spinsim.inputs.texts import Described

if TYPE_CHECKING:
    from spinsim.model.ising import Ising
    from spinsim.model.problems.labels import Labels
    from spinsim.model.problems.matrices import Matrices
    from spinsim.model.problems.quadratic import Quadratic
    from spinsim.model.problems.qubo import Qubo


class Exchanged(Described):
    """The part of ``Ising`` that exchanges problems with other programs.

    Sites are called what the caller calls them and stand in the order given; values, the constant and the kind of the
    variables are kept as they are given.
    """

    @staticmethod
    def from_qubo(qubo: Any, offset: float = 0.0, name: str = "qubo") -> Ising:
        """The model of a QUBO: minimise the sum of value x_u x_v, x = 0, 1, plus ``offset``.

        Args:
            qubo: ``{(u, v): value}`` with any hashable labels, (u, u) for linear terms; pairs in both orders add. Or a
                square matrix, NumPy's or SciPy's sparse, of which x' Q x is minimised.
            offset: The constant.
            name: Short name for files and figures.

        Raises:
            InputError: for keys that are no pairs, values that are no finite numbers, and matrices that are not square.
        """
        from spinsim.model.problems.qubo import from_qubo

        return from_qubo(qubo, offset, name).ising()

    @staticmethod
    def from_matrix(
        matrix: Any,
        field: npt.ArrayLike | None = None,
        offset: float = 0.0,
        kind: str = "ising",
        labels: Labels | None = None,
        name: str = "matrix",
    ) -> Ising:
        """The model of a square matrix, NumPy's or SciPy's sparse.

        Args:
            matrix: Of kind ``ising`` the couplings J, H = - sum over pairs J_ij s_i s_j - sum h_i s_i: symmetric or
                triangular, each pair counts once, the diagonal is 0. Of kind ``qubo`` Q: x' Q x is minimised.
            field: h, a number or one for each site, of kind ``ising`` alone.
            offset: The constant.
            kind: ``ising`` or ``qubo``.
            labels: Of the sites, in the order of the rows; 0, 1, 2, ... where left out.
            name: Short name for files and figures.

        Raises:
            InputError: for what is no such matrix.
        """
        from spinsim.model.problems.matrices import from_matrix

        return from_matrix(matrix, field, offset, kind, labels, name).ising()

    @staticmethod
    def from_networkx(
        graph: Any, weight: str = "weight", field: str = "field", maxcut: bool = False, name: str = "graph"
    ) -> Ising:
        """The model of a ``networkx.Graph``: its nodes are the labels, in their order.

        Args:
            graph: Undirected; parallel edges add. Its attributes ``offset``, ``maxcut`` and ``vartype`` count, if any:
                with ``BINARY`` weights and fields are values of a QUBO.
            weight: Attribute of edges with the coupling J, 1 where there is none; positive is ferromagnetic.
            field: Attribute of nodes with the field h, 0 where there is none.
            maxcut: Whether weights are those of a MaxCut instance, J = -w, which is reported with its cut.
            name: Short name for files and figures.

        Raises:
            InputError: for what is no such graph, and for attributes that are no finite numbers.
        """
        from spinsim.model.problems.networks import from_networkx

        return from_networkx(graph, weight, field, maxcut, name).ising()

    @staticmethod
    def from_bqm(bqm: Any, name: str = "bqm") -> Ising:
        """The model of a ``dimod.BinaryQuadraticModel``, spin or binary.

        dimod's energy is sum a_i s_i + sum b_ij s_i s_j + offset, so J = -b and h = -a; energy + offset is dimod's.

        Raises:
            InputError: for other objects, those of more than quadratic terms among them.
        """
        from spinsim.model.problems.bqm import from_bqm

        return from_bqm(bqm, name).ising()

    def to_qubo(self) -> tuple[Qubo, float]:
        """The problem as ``{(u, v): value}`` of its labels, and the constant: ``from_qubo`` takes both.

        Raises:
            InputError: for several samples, as all of these.
        """
        from spinsim.model.problems.qubo import to_qubo

        return to_qubo(self.quadratic)

    def to_matrix(self, kind: str = "ising") -> Matrices:
        """The problem as ``matrix, field, offset``, which ``from_matrix`` takes in this order: SciPy's sparse array.

        Args:
            kind: ``ising`` for J, symmetric, and h; ``qubo`` for Q, upper triangular, without a field.
        """
        from spinsim.model.problems.matrices import to_matrix

        return to_matrix(self.quadratic, kind)

    def to_networkx(self, weight: str = "weight", field: str = "field") -> Any:
        """A ``networkx.Graph`` of its labels with J on edges and h on nodes; of a QUBO with its values.

        Raises:
            InputError: where NetworkX is not installed.
        """
        from spinsim.model.problems.networks import to_networkx

        return to_networkx(self.quadratic, weight, field)

    def to_bqm(self) -> Any:
        """A ``dimod.BinaryQuadraticModel`` of its labels and its kind of variables.

        Raises:
            InputError: where dimod is not installed.
        """
        from spinsim.model.problems.bqm import to_bqm

        return to_bqm(self.quadratic)

    def save(self, path: str | os.PathLike[str], overwrite: bool = False) -> None:
        """Write an instance file that ``ss.read_instance`` reads; the suffix tells the format.

        Args:
            path: With the suffix .mc, .rud or .txt (rudy), .sparse (Biq Mac QUBO), .edgelist, .mtx (MatrixMarket),
                .coo, .qubo (qbsolv) or .bqm (dimod). Labels, the constant and the kind of variables are kept, in
                comments where a format has no place for them; rudy files count sites from 1, and .sparse and .qubo
                hold the problem in binary variables.
            overwrite: Whether an instance file that is there may be replaced.

        Raises:
            InputError: for other suffixes, and for a problem that the format cannot hold.
        """
        from spinsim.model.instances import write_instance

        write_instance(self.quadratic, path, overwrite)

    @property
    def quadratic(self) -> Quadratic:
        """The problem as its caller stated it, or as its couplings and fields say.

        Raises:
            InputError: for several samples.
        """
        from spinsim.model.problems.quadratic import quadratic_of

        return quadratic_of(cast("Ising", self))


def from_bqm(bqm: Any, name: str = "bqm") -> Ising:
    """The model of a ``dimod.BinaryQuadraticModel``: the same as ``Ising.from_bqm``."""
    return Exchanged.from_bqm(bqm, name)
