"""QUBO problems as dictionaries: {(u, v): value}, the sum of value x_u x_v with x = 0, 1."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

from spinsim.errors import InputError
from spinsim.model.problems.labels import no_pair, shown, site_of
from spinsim.model.problems.matrices import from_matrix
from spinsim.model.problems.quadratic import BINARY, Quadratic, from_terms, number_in

Qubo = dict[tuple[Hashable, Hashable], float]


def from_qubo(qubo: Any, offset: Any = 0.0, name: str = "qubo") -> Quadratic:
    """The problem of a dictionary or matrix; variables in the order in which the keys name them first.

    Raises:
        InputError: for other objects, for keys that are no pairs of labels and for values that are no numbers.
    """
    if not isinstance(qubo, Mapping):
        return from_matrix(qubo, None, offset, "qubo", None, name)
    known: dict[Hashable, int] = {}
    terms, values = [], []
    for key, value in qubo.items():
        if not isinstance(key, tuple) or len(key) != 2:
            raise InputError(no_pair(key))
        terms.append((site_of(known, key[0]), site_of(known, key[1])))
        values.append(number_in(value, f"the value of {shown(key)}"))
    if not known:
        raise InputError("a QUBO without a term has no variables: give {(u, u): a, (u, v): b} with a value for each")
    given = from_terms(known, terms, values, vartype=BINARY, offset=number_in(offset, "offset"), name=name)
    return given.check().with_each_pair_once()


def to_qubo(problem: Quadratic) -> tuple[Qubo, float]:
    """The dictionary, and the constant beside it; every variable has its linear term, so that none is lost."""
    binary = problem.of_vartype(BINARY)
    linear, ends, pairs = binary.added_up()
    names = problem.names
    qubo: Qubo = {(name, name): value for name, value in zip(names, linear.tolist(), strict=True)}
    qubo |= {(names[i], names[j]): value for (i, j), value in zip(ends.tolist(), pairs.tolist(), strict=True)}
    return qubo, binary.offset
