"""Binary quadratic models of dimod, the exchange format of the annealing community."""

from __future__ import annotations

from typing import Any

import numpy as np

from spinsim.errors import InputError
from spinsim.model.graph import Graph
from spinsim.model.ising import Ising


def from_bqm(bqm: Any, name: str = "bqm") -> Ising:
    """The Ising model of a ``dimod.BinaryQuadraticModel``, spin or binary.

    dimod's energy is sum a_i s_i + sum b_ij s_i s_j + offset, so J = -b and h = -a; energy + offset is dimod's energy.
    Site i is the i-th of ``bqm.variables``.

    Raises:
        InputError: where ``bqm`` is none, or has no variables.
    """
    try:
        spin = bqm.spin
        linear, (rows, columns, quadratic), offset = spin.to_numpy_vectors(variable_order=list(spin.variables))[:3]
    except (AttributeError, TypeError, ValueError) as error:
        raise InputError(f"{type(bqm).__name__} is not a dimod model: give a dimod.BinaryQuadraticModel") from error
    graph = Graph(len(linear), np.stack([rows, columns], axis=1))
    return Ising(graph, -np.asarray(quadratic), -np.asarray(linear), name=name, offset=float(offset))
