"""Binary quadratic models of dimod, the exchange format of the annealing community."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sized
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from spinsim.errors import InputError
from spinsim.model.problems.labels import as_labels, no_pair, shown
from spinsim.model.problems.quadratic import BINARY, SPIN, Quadratic, Values, number_in

Sites = npt.NDArray[np.int64]


def from_bqm(bqm: Any, name: str = "bqm") -> Quadratic:
    """The problem of a ``dimod.BinaryQuadraticModel``, spin or binary; variables in their order there.

    Raises:
        InputError: for other objects, models of dimod that are no binary quadratic ones among them.
    """
    variables, kind = variables_of(bqm)
    if not variables:
        raise InputError("a dimod model without variables has nothing to simulate: add at least one")
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
    found = [number_in(bqm.linear[name], f"the bias of {shown(name)}") for name in variables]
    terms = list(bqm.iter_quadratic())
    biases = [number_in(bias, f"the bias of {_pair(place, one, other)}") for one, other, bias in terms]
    ends = np.array([(place[one], place[other]) for one, other, _ in terms], np.int64).reshape(-1, 2)
    return np.array(found, np.float64), ends[:, 0], ends[:, 1], np.array(biases, np.float64)


def check_pairs(terms: Any) -> None:
    """Refuse what dimod takes for terms of a problem but has no word for; other objects are left to dimod.

    Raises:
        InputError: for keys of a dictionary that are no pairs, and for values that are no numbers.
    """
    for key, value in terms.items() if isinstance(terms, Mapping) else ():
        if not isinstance(key, Sized) or len(key) != 2:
            raise InputError(no_pair(key))
        number_in(value, f"the value of {shown(key)}")


def _pair(place: dict[Hashable, int], one: Hashable, other: Hashable) -> str:
    return shown((one, other) if place[one] < place[other] else (other, one))


def variables_of(bqm: Any) -> tuple[list[Hashable], str]:
    """The variables of a ``dimod.BinaryQuadraticModel`` and their kind.

    Raises:
        InputError: for other objects.
    """
    try:
        variables, kind = list(bqm.variables), getattr(bqm.vartype, "name", "")
    except (AttributeError, TypeError) as error:
        raise InputError(
            f"an object of type {type(bqm).__name__} is no dimod model: give a dimod.BinaryQuadraticModel"
        ) from error
    if not hasattr(bqm, "to_numpy_vectors"):
        raise InputError(_not_quadratic(bqm))
    if kind not in (SPIN, BINARY):
        raise InputError(f"a {type(bqm).__name__} has variables of other kinds: give a dimod.BinaryQuadraticModel")
    return variables, kind


def _not_quadratic(model: Any) -> str:
    """Why another model of dimod cannot be taken, in a sentence."""
    degree = getattr(model, "degree", None)
    if isinstance(degree, int):
        return (
            f"a {type(model).__name__} of degree {degree} is no quadratic model: reduce it to pairs first, by "
            "dimod.make_quadratic"
        )
    if hasattr(model, "constraints"):
        return f"a {type(model).__name__} may have constraints: give the model that dimod.cqm_to_bqm makes of it"
    kinds = {model.vartype(name).name for name in model.variables} if callable(model.vartype) else set()
    if len(kinds) == 1 and kinds <= {SPIN, BINARY}:
        parts = f"m.linear, m.quadratic, m.offset, {kinds.pop()!r}"
        return f"a {type(model).__name__} m is no BinaryQuadraticModel: give dimod.BinaryQuadraticModel({parts})"
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
