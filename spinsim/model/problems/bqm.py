"""Binary quadratic models of dimod, the exchange format of the annealing community."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np

from spinsim.errors import InputError
from spinsim.model.problems.labels import as_labels
from spinsim.model.problems.quadratic import BINARY, SPIN, Quadratic, number_in


def from_bqm(bqm: Any, name: str = "bqm") -> Quadratic:
    """The problem of a ``dimod.BinaryQuadraticModel``, spin or binary; variables in their order there.

    Raises:
        InputError: for other objects, models of dimod that are no binary quadratic ones among them.
    """
    try:
        variables, kind = list(bqm.variables), getattr(bqm.vartype, "name", "")
    except (AttributeError, TypeError) as error:
        raise InputError(f"a {type(bqm).__name__} is no dimod model: give a dimod.BinaryQuadraticModel") from error
    if not hasattr(bqm, "to_numpy_vectors"):
        raise InputError(_not_quadratic(bqm))
    if kind not in (SPIN, BINARY):
        raise InputError(f"a {type(bqm).__name__} has variables of other kinds: give a dimod.BinaryQuadraticModel")
    if not variables:
        raise InputError("a dimod model without variables has nothing to simulate: add at least one")
    try:
        linear, (rows, columns, pairs), offset = bqm.to_numpy_vectors(variable_order=variables)[:3]
        values = np.concatenate([np.asarray(linear, np.float64), np.asarray(pairs, np.float64)])
    except (AttributeError, TypeError, ValueError) as error:
        raise InputError(f"a {type(bqm).__name__} has biases that are no numbers: give floats") from error
    every = np.arange(len(variables))
    ends = np.concatenate([np.stack([every, every], axis=1), np.stack([rows, columns], axis=1)]).astype(np.int64)
    labels = as_labels(variables, len(variables))
    return Quadratic(len(variables), ends, values, kind, number_in(offset, "offset"), labels, name=name).check()


def _not_quadratic(model: Any) -> str:
    """Why another model of dimod cannot be taken, in a sentence."""
    degree = getattr(model, "degree", None)
    if isinstance(degree, int):
        return (
            f"a {type(model).__name__} of degree {degree} is no quadratic model: reduce it to pairs first, by "
            "dimod.make_quadratic"
        )
    return f"a {type(model).__name__} has more than binary variables and pairs: give a BinaryQuadraticModel"


def to_bqm(problem: Quadratic) -> Any:
    """A ``dimod.BinaryQuadraticModel`` of the same variables.

    Raises:
        InputError: where dimod is not installed.
    """
    linear, ends, pairs = problem.added_up()
    rows, columns = ends.T
    order = list(problem.names)
    vectors = (linear, (rows, columns, pairs), problem.offset, problem.vartype)
    return import_dimod().BinaryQuadraticModel.from_numpy_vectors(*vectors, variable_order=order)


def import_dimod() -> ModuleType:
    """The module.

    Raises:
        InputError: where it is not installed.
    """
    try:
        import dimod
    except ImportError as error:
        raise InputError("dimod is missing: install spinsim[dimod] to use its models") from error
    module: ModuleType = dimod
    return module
