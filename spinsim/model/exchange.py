"""Problems as objects of other programs: dictionaries of QUBOs, matrices, graphs of NetworkX and models of dimod.

A QUBO is {(u, v): value}, the sum of value x_u x_v with x = 0, 1. Edges of a graph have J and its nodes h, in the signs
of this program; a graph with the attribute ``maxcut`` has the weights of a MaxCut instance, w = -J, and one whose
attribute ``vartype`` is BINARY the values of a QUBO. Matrices are NumPy's, SciPy's sparse ones or DataFrames of pandas.
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterable, Mapping, Sized
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from spinsim.errors import InputError, WrongTypeError
from spinsim.inputs.arguments import judges, public
from spinsim.inputs.numbers import as_floats
from spinsim.inputs.texts import Described, shown
from spinsim.model.formats import write_instance
from spinsim.model.quadratic import (
    BINARY,
    SPIN,
    Labels,
    Quadratic,
    Values,
    as_labels,
    no_pair,
    number_in,
    one_half,
    site_of,
)

if TYPE_CHECKING:
    from scipy import sparse

Qubo = dict[tuple[Hashable, Hashable], float]
Sites = npt.NDArray[np.int64]
KINDS = ("ising", "qubo")


class Matrices(NamedTuple):
    """A problem as ``from_matrix`` takes it."""

    matrix: sparse.csr_array
    """J, symmetric, or Q, upper triangular with linear terms on its diagonal: a sparse array of SciPy."""
    field: Values | None  # h of each site; None of a QUBO
    offset: float  # the constant


@public
class Exchanged(Described):
    """The part of ``Ising`` that exchanges problems with other programs, by way of a ``Quadratic``.

    Sites keep the labels and the order that the caller gives; values, the constant and the kind of
    the variables are kept as well.
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
        return cls.from_quadratic(_of_qubo(qubo, offset, name))

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
                diagonal is 0. Of kind ``qubo`` Q: x' Q x is minimised. Of kind ``maxcut`` weights w
                of a MaxCut instance, J = -w, which is reported with its cut.
            field: h, a number or one for each site, of kind ``ising`` alone.
            offset: The constant.
            kind: ``ising``, ``qubo`` or ``maxcut``.
            labels: Labels of the sites, in the order of the rows; by default those of a DataFrame,
                else 0, 1, 2, ...
            name: Short name for files and figures.

        Raises:
            InputError: for objects that are no such matrix.
        """
        return cls.from_quadratic(_of_matrix(matrix, field, offset, kind, labels, name))

    @classmethod
    def from_edges(cls, edges: Any, maxcut: bool = False, name: str = "edges") -> Self:
        """The model of a list of edges, such as a DataFrame with a row for each edge.

        Args:
            edges: A DataFrame of pandas with three columns, two labels and the coupling J; or
                tuples (u, v, J), or (u, v) with J = 1. Parallel edges add. Sites are in the order
                in which labels appear.
            maxcut: True if values are the weights w of a MaxCut instance, J = -w, which is reported
                with its cut.
            name: Short name for files and figures.

        Raises:
            InputError: for edges of other lengths, values that are not finite numbers, and
                couplings of a site with itself. Loops of a MaxCut instance are left out.

        Examples:
            >>> edges = [("a", "b", 3), ("b", "c", 1), ("a", "c", 2)]
            >>> ss.anneal(ss.Ising.from_edges(edges, maxcut=True), replicas=8).best.cut
            5.0
        """
        return cls.from_quadratic(_of_edges(edges, maxcut, name))

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
            maxcut: True if edges have the weights w of a MaxCut instance, J = -w, which is reported
                with its cut.
            name: Short name for files and figures.

        Raises:
            InputError: for objects that are no such graph, and attributes that are not finite
                numbers.
        """
        return cls.from_quadratic(_of_graph(graph, weight, field, maxcut, name))

    @classmethod
    def from_bqm(cls, bqm: Any, name: str = "bqm") -> Self:
        """The model of a ``dimod.BinaryQuadraticModel``, spin or binary.

        dimod's energy is sum a_i s_i + sum b_ij s_i s_j + offset, so J = -b and h = -a; energy +
        offset is dimod's.

        Raises:
            InputError: for other objects, including models of more than quadratic terms.
        """
        return cls.from_quadratic(of_bqm(bqm, name))

    def to_qubo(self) -> tuple[Qubo, float]:
        """The problem as ``{(u, v): value}`` by labels, and the constant, as ``from_qubo`` takes them.

        Raises:
            InputError: for several samples.
        """
        problem = self.quadratic
        binary = problem.of_vartype(BINARY)
        linear, ends, pairs = binary.added_up()
        names = problem.names
        qubo: Qubo = {(name, name): value for name, value in zip(names, linear.tolist(), strict=True)}
        qubo |= {(names[i], names[j]): value for (i, j), value in zip(ends.tolist(), pairs.tolist(), strict=True)}
        return qubo, binary.offset

    def to_matrix(self, kind: str = "ising") -> Matrices:
        """Sparse matrix, field and offset of the problem, as ``from_matrix`` takes them.

        Args:
            kind: ``ising`` for J, symmetric, and h; ``qubo`` for Q, upper triangular, without a
                field.
        """
        problem = self.quadratic
        if kind not in KINDS:
            raise InputError(f"kind {kind!r} of a matrix is unknown: choose ising or qubo")
        from scipy import sparse

        given = problem.of_vartype(BINARY if kind == "qubo" else SPIN)
        shape = (problem.sites, problem.sites)
        if kind == "qubo":
            ends, values, _ = given.each_once()
            return Matrices(sparse.csr_array((values, tuple(np.sort(ends, axis=1).T)), shape), None, given.offset)
        linear, ends, pairs = given.added_up()
        low, high = np.sort(ends, axis=1).T
        both = np.concatenate([low, high]), np.concatenate([high, low])
        couplings = 0.0 - np.concatenate([pairs, pairs])
        return Matrices(sparse.csr_array((couplings, both), shape), 0.0 - linear, given.offset)

    def to_networkx(self, weight: str = "weight", field: str = "field") -> Any:
        """A ``networkx.Graph`` with J on edges and h on nodes; for a QUBO with the QUBO's values.

        Raises:
            InputError: where NetworkX is not installed.
        """
        problem = self.quadratic
        try:
            import networkx as nx
        except ImportError as error:
            raise InputError("networkx is missing: install networkx to make graphs of it") from error
        values, ends, pairs = problem.added_up()
        names = problem.names
        linear, quadratic = _signs(problem.is_maxcut, problem.vartype)
        about = {"vartype": problem.vartype, "offset": problem.offset, "maxcut": problem.is_maxcut}
        graph = nx.Graph(name=problem.name, **about)
        for name, value in zip(names, (0.0 + linear * values).tolist(), strict=True):
            graph.add_node(name, **({field: value} if value else {}))
        for (i, j), value in zip(ends.tolist(), (0.0 + quadratic * pairs).tolist(), strict=True):
            graph.add_edge(names[i], names[j], **{weight: value})
        return graph

    def to_bqm(self) -> Any:
        """A ``dimod.BinaryQuadraticModel`` of its labels and its kind of variables.

        Raises:
            InputError: where dimod is not installed.
        """
        problem = self.quadratic
        linear, ends, pairs = problem.added_up()
        rows, columns = ends.T
        order = list(problem.names)
        vectors = (linear, (rows, columns, pairs), problem.offset, problem.vartype)
        return import_dimod().BinaryQuadraticModel.from_numpy_vectors(*vectors, variable_order=order)

    def save(self, path: str | os.PathLike[str], overwrite: bool = False) -> None:
        """Write an instance file that ``ss.read_instance`` reads; the suffix decides the format.

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
        write_instance(self.quadratic, path, overwrite)


def _of_qubo(qubo: Any, offset: Any = 0.0, name: str = "qubo") -> Quadratic:
    if not isinstance(qubo, Mapping):
        return _of_matrix(qubo, None, offset, "qubo", None, name)
    if isinstance(offset, Mapping):
        raise InputError("offset is a dict: linear terms go into the QUBO, as {(u, u): value}")
    known: dict[Hashable, int] = {}
    terms, values = [], []
    for key, value in qubo.items():
        if not isinstance(key, tuple) or len(key) != 2:
            raise InputError(no_pair(key))
        terms.append((site_of(known, key[0]), site_of(known, key[1])))
        values.append(number_in(value, "the value of", key))
    return _from_terms(known, terms, values, vartype=BINARY, offset=number_in(offset, "offset"), name=name)


def _from_terms(
    known: dict[Hashable, int], terms: list[tuple[int, int]], values: list[float], **others: object
) -> Quadratic:
    ends, numbers = np.array(terms, np.int64).reshape(-1, 2), np.array(values, np.float64)
    problem = Quadratic(len(known), ends, numbers, labels=tuple(known), **others)  # type: ignore[arg-type]
    return problem.check().with_each_pair_once()


def _of_graph(graph: Any, weight: str, field: str, maxcut: bool, name: str) -> Quadratic:
    """The problem of an undirected graph: sites in the order of its nodes; parallel edges add."""
    try:
        nodes, edges, directed = list(graph.nodes(data=True)), list(graph.edges(data=True)), graph.is_directed()
        about = dict(graph.graph)
    except (AttributeError, TypeError, ValueError) as error:
        raise WrongTypeError(
            f"an object of type {type(graph).__name__} is no graph of NetworkX: give a networkx.Graph"
        ) from error
    if directed:
        raise InputError("a directed graph has no couplings of pairs: give graph.to_undirected()")
    maxcut, vartype = maxcut or about.get("maxcut") is True, about.get("vartype", SPIN)
    if not isinstance(vartype, str) or vartype not in (SPIN, BINARY):
        raise InputError(f"attribute vartype of the graph is {shown(vartype)}: give SPIN or BINARY, or leave it out")
    linear, quadratic = _signs(maxcut, vartype)
    known: dict[Hashable, int] = {}
    terms, values = [], []
    for node, data in nodes:
        at = site_of(known, node)
        if field in data:
            terms.append((at, at))
            values.append(0.0 + linear * number_in(data[field], f"{field} of node", node))
    for first, second, data in edges:
        if first == second:
            raise InputError(f"an edge joins node {shown(first)} to itself: remove it, s s = 1 is a constant")
        terms.append((known[first], known[second]))
        values.append(0.0 + quadratic * number_in(data.get(weight, 1.0), f"{weight} of edge", (first, second)))
    offset = number_in(about.get("offset", 0.0), "attribute offset of the graph")
    if maxcut and (offset or vartype == BINARY or any(values[: len(values) - len(edges)])):
        raise InputError(
            f"a MaxCut instance has weights of edges alone: leave out its offset, its vartype and {field!r} of nodes"
        )
    return _from_terms(known, terms, values, vartype=vartype, offset=offset, is_maxcut=maxcut, name=name)


def _of_edges(edges: Any, maxcut: bool, name: str) -> Quadratic:
    """The problem of rows (u, v) or (u, v, value); sites in the order in which labels appear."""
    given = zip(*(edges[column] for column in edges.columns), strict=True) if hasattr(edges, "columns") else edges
    if not isinstance(given, Iterable):
        raise WrongTypeError(f"{shown(edges)} is no list of edges: give a DataFrame or tuples (u, v, value)")
    known: dict[Hashable, int] = {}
    terms, values = [], []
    for edge in given:
        ends = tuple(edge) if isinstance(edge, Iterable) and not isinstance(edge, str) else ()
        if len(ends) not in (2, 3):
            raise InputError(f"edge {shown(edge)} is no edge: give (u, v) or (u, v, value)")
        if ends[0] == ends[1]:
            if not maxcut:
                raise InputError(f"an edge joins {shown(ends[0])} to itself: remove it, s s = 1 is a constant")
            site_of(known, ends[0])  # no cut has it
            continue
        terms.append((site_of(known, ends[0]), site_of(known, ends[1])))
        values.append(0.0 + _signs(maxcut, SPIN)[1] * number_in(ends[2] if len(ends) == 3 else 1.0, "edge", ends[:2]))
    return _from_terms(known, terms, values, vartype=SPIN, is_maxcut=maxcut, name=name)


def _signs(maxcut: bool, vartype: str) -> tuple[float, float]:
    """Signs of the values of nodes and of edges in a problem."""
    return (1.0, 1.0) if vartype == BINARY else (-1.0, 1.0 if maxcut else -1.0)


def of_bqm(bqm: Any, name: str = "bqm") -> Quadratic:
    variables, kind = variables_of(bqm)
    linear, rows, columns, pairs = _biases(bqm, variables)
    sites, every = len(variables), np.arange(len(variables))
    ends = np.empty((sites + len(rows), 2), np.int64)
    ends[:, 0], ends[:, 1] = np.concatenate([every, rows]), np.concatenate([every, columns])
    values = np.concatenate([linear, pairs])
    labels = as_labels(variables, sites)
    return Quadratic(sites, ends, values, kind, number_in(bqm.offset, "offset"), labels, name=name).check(in_order=True)


def _biases(bqm: Any, variables: list[Hashable]) -> tuple[Values, Sites, Sites, Values]:
    """Linear biases in the order of the variables, then the places of each pair's variables, and its bias."""
    if bqm.dtype != object:
        linear, (rows, columns, pairs), _ = bqm.to_numpy_vectors(variable_order=variables)[:3]
        return np.asarray(linear, np.float64), rows, columns, np.asarray(pairs, np.float64)
    # dimod rounds the numbers of such models where some of them are integers
    place = {name: site for site, name in enumerate(variables)}
    linear = [number_in(bqm.linear[name], "the bias of", name) for name in variables]
    terms = list(bqm.iter_quadratic())
    in_order = place.__getitem__
    biases = [number_in(bias, "the bias of", tuple(sorted(pair, key=in_order))) for *pair, bias in terms]
    ends = np.array([(place[one], place[other]) for one, other, _ in terms], np.int64).reshape(-1, 2)
    return np.array(linear, np.float64), ends[:, 0], ends[:, 1], np.array(biases, np.float64)


def check_pairs(terms: Any) -> None:
    """Refuse malformed terms that dimod has no clear message for; other objects are left to dimod."""
    for key, value in terms.items() if isinstance(terms, Mapping) else ():
        if not isinstance(key, Sized) or len(key) != 2:
            raise InputError(no_pair(key))
        number_in(value, "the value of", key)


def variables_of(bqm: Any) -> tuple[list[Hashable], str]:
    try:
        variables, kind = list(bqm.variables), getattr(bqm.vartype, "name", "")
    except (AttributeError, TypeError) as error:
        raise WrongTypeError(
            f"an object of type {type(bqm).__name__} is no dimod model: give a dimod.BinaryQuadraticModel"
        ) from error
    if not hasattr(bqm, "to_numpy_vectors"):
        raise WrongTypeError(_not_quadratic(bqm))
    if kind not in (SPIN, BINARY):
        raise WrongTypeError(f"a {type(bqm).__name__} has variables of other kinds: give a dimod.BinaryQuadraticModel")
    return variables, kind


def _not_quadratic(model: Any) -> str:
    degree = getattr(model, "degree", None)
    if isinstance(degree, int):
        return f"a {type(model).__name__} has degree {degree}: reduce it to pairs first, by dimod.make_quadratic"
    if hasattr(model, "constraints"):
        return f"a {type(model).__name__} may have constraints: give the model that dimod.cqm_to_bqm makes of it"
    kinds = {model.vartype(name).name for name in model.variables} if callable(model.vartype) else set()
    if len(kinds) == 1 and kinds <= {SPIN, BINARY}:
        parts = f"m.linear, m.quadratic, m.offset, {kinds.pop()!r}"
        return f"a {type(model).__name__} m is no BinaryQuadraticModel: give dimod.BinaryQuadraticModel({parts})"
    return f"a {type(model).__name__} has more than binary variables and pairs: give a BinaryQuadraticModel"


def import_dimod() -> ModuleType:
    try:
        import dimod
    except ImportError as error:
        raise InputError("dimod is missing: install spinsim-ising[dimod] to use its models") from error
    module: ModuleType = dimod
    return module


def _of_matrix(matrix: Any, field: Any, offset: Any, kind: str, labels: Labels | None, name: str) -> Quadratic:
    if kind not in (*KINDS, "maxcut"):
        raise InputError(f"kind {kind!r} of a matrix is unknown: choose ising, qubo or maxcut")
    if hasattr(matrix, "columns") and hasattr(matrix, "index"):  # a DataFrame
        matrix, labels = _of_table(matrix, labels)
    rows, columns, values, sites = _entries(matrix, fold=kind == "qubo")
    constant = number_in(offset, "offset")
    ends = np.stack([rows, columns], axis=1)
    names = as_labels(labels, sites)
    if kind == "qubo":
        if field is not None:
            raise InputError("a QUBO matrix has its linear terms on the diagonal: leave field out")
        return Quadratic(sites, ends, values, BINARY, constant, names, name=name).check().with_each_pair_once()
    diagonal = rows == columns
    if values[diagonal].any():
        raise InputError(
            f"an Ising matrix has {values[diagonal][0]:g} on its diagonal, though s_i s_i = 1 is a constant: "
            "set it to 0 and give fields as field"
        )
    half = one_half(ends[~diagonal], values[~diagonal])
    if half is None:
        raise InputError(
            f"an Ising matrix of {sites} sites with pairs twice is not symmetric: give J_ij = J_ji or each pair once"
        )
    ends, values = np.sort(half[0], axis=1), half[1]
    if kind == "maxcut":
        if field is not None or constant:
            raise InputError("a MaxCut instance has weights of edges alone: leave field and offset out")
        return Quadratic(sites, ends, values, SPIN, 0.0, names, is_maxcut=True, name=name).check()
    at, fields = _fields(_of_series(field, names), sites)
    every = np.concatenate([np.stack([at, at], axis=1), ends])
    return Quadratic(sites, every, 0.0 - np.concatenate([fields, values]), SPIN, constant, names, name=name).check()


def _of_table(table: Any, labels: Labels | None) -> tuple[npt.NDArray[Any], Labels]:
    """The matrix of a DataFrame, columns in the order of the rows, and labels: the given ones or those of the rows."""
    rows, columns = tuple(table.index), tuple(table.columns)
    order = _order(columns, rows)
    if order is not None:
        return np.asarray(table)[:, order], rows if labels is None else labels
    if labels is None:
        odd = next((name for name in (*rows, *columns) if (name in rows) != (name in columns)), rows[:1])
        raise InputError(
            f"rows and columns of the table have different labels, {shown(odd)} among them: give index and columns the "
            "same, or labels; a table with a row for each edge goes to Ising.from_edges"
        )
    return np.asarray(table), labels


def _order(names: Labels, wanted: Labels) -> list[int] | slice | None:
    """Places of names in the wanted order; None where the two have different names."""
    if tuple(names) == tuple(wanted):
        return slice(None)
    place = {name: k for k, name in enumerate(names)}
    if len(place) == len(names) == len(wanted) and place.keys() == set(wanted):
        return [place[name] for name in wanted]
    return None


def _entries(matrix: Any, fold: bool) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], Values, int]:
    """Rows, columns and values of entries that are not 0, and the side; ``fold`` adds the lower half to the upper."""
    from scipy import sparse  # which takes long to load

    if not sparse.issparse(matrix):
        try:
            matrix = np.asarray(matrix)
        except ValueError as error:
            raise InputError("the matrix is ragged: give rows of equal lengths") from error
    given: Any = matrix
    sides, kind = given.shape, given.dtype.kind
    if len(sides) > 2:
        raise InputError(
            f"a tensor of shape {sides} is of degree {len(sides)}, higher than quadratic: give a matrix, reduce other "
            "terms to pairs first"
        )
    if kind not in "biuf":
        kinds = "complex numbers" if kind == "c" else f"{given.dtype} values"
        raise InputError(f"the matrix holds {kinds}: give a square matrix of real numbers")
    if len(sides) != 2 or sides[0] != sides[1]:
        raise InputError(f"the matrix has shape {sides}: give a square one, a row for each site")
    if not sparse.issparse(given):
        dense: Values = as_floats(given, "a value of the matrix")
        if fold:
            with np.errstate(over="ignore", invalid="ignore"):  # infinite sums are refused as such values are
                dense = np.triu(dense) + np.tril(dense, -1).T
        elif np.array_equal(dense, dense.T):  # one half is enough
            dense = np.triu(dense)
        rows, columns = np.nonzero(dense)
        return rows, columns, dense[rows, columns], sides[0]
    form: Any = sparse.coo_array
    entries = form(given)
    entries.sum_duplicates()
    row, column = (np.asarray(part).astype(np.int64) for part in entries.coords)
    order = np.lexsort((column, row))
    return row[order], column[order], as_floats(entries.data, "a value of the matrix")[order], sides[0]


def _of_series(field: Any, names: Labels) -> Any:
    """Fields in the order of the sites: a Series of pandas has them by label, unless it is numbered from 0 on."""
    if not hasattr(field, "reindex"):
        return field
    order = _order(tuple(field.index), names)
    if order is None and tuple(field.index) != tuple(range(len(field))):
        raise InputError("labels of the fields differ from those of the sites: give the same labels, or an array")
    return np.asarray(field) if order is None else np.asarray(field)[order]


def _fields(field: Any, sites: int) -> tuple[npt.NDArray[np.int64], Values]:
    """Sites with a field, and their fields."""
    try:
        given = np.asarray(0.0 if field is None else field)
        number = given.dtype.kind in "biuf"
    except ValueError:
        number = False
    if not number or given.shape not in ((), (sites,)):
        raise WrongTypeError(f"field of type {type(field).__name__} does not fit: give a number, or one for each site")
    values = np.broadcast_to(as_floats(given, "a value of field"), sites)
    at = np.flatnonzero(values)
    return at, values[at]
