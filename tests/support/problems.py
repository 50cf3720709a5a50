"""Quadratic problems drawn at random, for the tests of what reads, writes and samples them."""

from __future__ import annotations

from itertools import product
from typing import Any

import dimod
import numpy as np
from hypothesis import strategies as st

import spinsim as ss

plain_labels = st.recursive(
    st.integers(-5, 40) | st.text(max_size=3) | st.none() | st.booleans() | st.floats(-2, 2),
    lambda parts: st.lists(parts, max_size=2).map(tuple),
    max_leaves=3,
)
"""Labels that files can hold."""
any_labels = plain_labels | st.frozensets(st.integers(0, 5), max_size=2) | st.binary(max_size=2)
integers = st.integers(-50, 50).map(float)
reals = st.floats(-1e6, 1e6, allow_subnormal=False).filter(lambda value: value == 0 or abs(value) > 1e-6)


@st.composite
def bqms(draw: st.DrawFn, labels: st.SearchStrategy[Any] = any_labels, values: Any = reals, kinds: str = "SB") -> Any:
    """A binary quadratic model of dimod with up to six variables."""
    named = labels.filter(lambda label: label is not None)  # for which dimod makes up a name
    names = draw(st.lists(named, min_size=1, max_size=6, unique_by=lambda label: label))
    kind = {"S": "SPIN", "B": "BINARY"}[draw(st.sampled_from(kinds))]
    bqm = dimod.BinaryQuadraticModel(kind)
    for name in names:
        bqm.add_variable(name, draw(values))
    for i, j in draw(st.lists(st.tuples(st.sampled_from(range(6)), st.sampled_from(range(6))), max_size=8)):
        if i != j and max(i, j) < len(names):
            bqm.add_quadratic(names[i], names[j], draw(values))
    bqm.offset = draw(values)
    return bqm


def all_states(sites: int) -> np.ndarray:
    """Every configuration, (2^sites, sites)."""
    return np.array(list(product((-1, 1), repeat=sites)))


def energies(model: ss.Ising, states: np.ndarray) -> np.ndarray:
    """Energies of configurations (states, sites), with the constant of the problem."""
    return np.asarray(model.energy(states.T[None])[0]) + model.offset


def energies_by_dimod(bqm: Any, states: np.ndarray) -> np.ndarray:
    """What dimod says of them; variables stand in the order of the model."""
    given = states if bqm.vartype is dimod.SPIN else (1 + states) // 2
    return np.asarray(bqm.energies((given, list(bqm.variables))))


def file_of(bqm: Any, **how: Any) -> bytes:
    """The file that dimod writes of a model."""
    with bqm.to_file(**how) as file:
        return bytes(file.read())
