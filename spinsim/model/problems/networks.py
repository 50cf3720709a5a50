"""Problems as graphs of NetworkX.

Edges have J and nodes h, in the signs of this program. A graph with the attribute ``maxcut`` has the weights of a
MaxCut instance, w = -J, and one whose attribute ``vartype`` is BINARY the values of a QUBO.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from spinsim.errors import InputError
from spinsim.model.problems.labels import shown, site_of
from spinsim.model.problems.quadratic import BINARY, SPIN, Quadratic, from_terms, number_in


def from_networkx(graph: Any, weight: str, field: str, maxcut: bool, name: str) -> Quadratic:
    """The problem of a graph: sites in the order of its nodes.

    Args:
        graph: Undirected, with or without parallel edges, which add.
        weight: Attribute of edges with J, 1 where one has none; of a MaxCut instance w = -J, of a QUBO its value.
        field: Attribute of nodes with h, 0 where one has none; of a QUBO its linear value.
        maxcut: Whether it is a MaxCut instance, as the graph may say itself.
        name: Of the model.

    Raises:
        InputError: for what is no graph, a directed one, loops and attributes that are no numbers.
    """
    try:
        nodes, edges, directed = list(graph.nodes(data=True)), list(graph.edges(data=True)), graph.is_directed()
        about = dict(graph.graph)
    except (AttributeError, TypeError, ValueError) as error:
        raise InputError(
            f"an object of type {type(graph).__name__} is no graph of NetworkX: give a networkx.Graph"
        ) from error
    if directed:
        raise InputError("a directed graph has no couplings of pairs: give graph.to_undirected()")
    if not nodes:
        raise InputError("a graph without nodes has nothing to simulate: add at least one")
    maxcut, vartype = maxcut or about.get("maxcut") is True, _vartype(about)
    linear, quadratic = _signs(maxcut, vartype)
    known: dict[Hashable, int] = {}
    terms, values = [], []
    for node, data in nodes:
        at = site_of(known, node)
        if field in data:
            terms.append((at, at))
            values.append(0.0 + linear * number_in(data[field], f"{field} of node {shown(node)}"))
    for first, second, data in edges:
        if first == second:
            raise InputError(f"an edge joins node {shown(first)} to itself: remove it, s s = 1 is a constant")
        terms.append((known[first], known[second]))
        values.append(0.0 + quadratic * number_in(data.get(weight, 1.0), f"{weight} of edge {shown((first, second))}"))
    offset = number_in(about.get("offset", 0.0), "attribute offset of the graph")
    if maxcut and (offset or vartype == BINARY or any(values[: len(values) - len(edges)])):
        raise InputError(
            f"a MaxCut instance has weights of edges alone: leave out its offset, its vartype and {field!r} of nodes"
        )
    given = from_terms(known, terms, values, vartype=vartype, offset=offset, is_maxcut=maxcut, name=name)
    return given.check().with_each_pair_once()


def _vartype(about: dict[str, Any]) -> str:
    """The kind of variables that the attributes of a graph name, spins where they name none."""
    vartype = about.get("vartype", SPIN)
    if not isinstance(vartype, str) or vartype not in (SPIN, BINARY):
        raise InputError(f"attribute vartype of the graph is {shown(vartype)}: give SPIN or BINARY, or leave it out")
    return vartype


def _signs(maxcut: bool, vartype: str) -> tuple[float, float]:
    """The signs in a problem of what stands on nodes and on edges."""
    return (1.0, 1.0) if vartype == BINARY else (-1.0, 1.0 if maxcut else -1.0)


def to_networkx(problem: Quadratic, weight: str, field: str) -> Any:
    """A ``networkx.Graph`` that ``from_networkx`` takes, with the attributes vartype, offset and maxcut.

    Raises:
        InputError: where NetworkX is not installed.
    """
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
