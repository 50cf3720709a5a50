"""Problems as matrices, NumPy's or SciPy's sparse ones.

Of an Ising matrix J, H = - sum over pairs i < j of J_ij s_i s_j - sum of h_i s_i: a symmetric one names each pair twice
and counts it once, a triangular one names it once. Of a QUBO matrix Q the value is x' Q x: all entries count.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

from spinsim.errors import InputError
from spinsim.inputs.checks import as_floats
from spinsim.model.problems.quadratic import BINARY, SPIN, Labels, Quadratic, Values, as_labels, number_in, one_half

KINDS = ("ising", "qubo")


class Matrices(NamedTuple):
    """A problem as ``from_matrix`` takes it."""

    matrix: sparse.csr_array
    """J, symmetric, or Q, upper triangular with linear terms on its diagonal: a sparse array of SciPy."""
    field: Values | None  # h of each site; None of a QUBO
    offset: float  # the constant


def from_matrix(matrix: Any, field: Any, offset: Any, kind: str, labels: Labels | None, name: str) -> Quadratic:
    if kind not in KINDS:
        raise InputError(f"kind {kind!r} of a matrix is unknown: choose ising or qubo")
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
            f"an Ising matrix of {sites} sites is neither symmetric nor triangular: give J_ij = J_ji, or each pair once"
        )
    ends, values = np.sort(half[0], axis=1), half[1]
    at, fields = _fields(field, sites)
    every = np.concatenate([np.stack([at, at], axis=1), ends])
    return Quadratic(sites, every, 0.0 - np.concatenate([fields, values]), SPIN, constant, names, name=name).check()


def _entries(matrix: Any, fold: bool) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], Values, int]:
    """Rows, columns and values of the entries, of a dense matrix those that are not 0, and the number of rows.

    To ``fold`` adds entries of a dense one below the diagonal to their mirror images.
    """
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
    if len(sides) != 2 or sides[0] != sides[1] or not sides[0]:
        raise InputError(f"the matrix has shape {sides}: give a square one, a row for each site")
    if not sparse.issparse(given):
        dense: Values = as_floats(given, "a value of the matrix")
        if fold:
            with np.errstate(over="ignore", invalid="ignore"):  # infinite sums are refused as such values are
                dense = np.triu(dense) + np.tril(dense, -1).T
        rows, columns = np.nonzero(dense)
        return rows, columns, dense[rows, columns], sides[0]
    form: Any = sparse.coo_array
    entries = form(given)
    entries.sum_duplicates()
    row, column = (np.asarray(part).astype(np.int64) for part in entries.coords)
    order = np.lexsort((column, row))
    return row[order], column[order], as_floats(entries.data, "a value of the matrix")[order], sides[0]


def _fields(field: Any, sites: int) -> tuple[npt.NDArray[np.int64], Values]:
    """Sites with a field, and these."""
    try:
        given = np.asarray(0.0 if field is None else field)
        number = given.dtype.kind in "biuf"
    except ValueError:
        number = False
    if not number or given.shape not in ((), (sites,)):
        raise InputError(f"field of type {type(field).__name__} does not fit: give a number, or one for each site")
    values = np.broadcast_to(as_floats(given, "a value of field"), sites)
    at = np.flatnonzero(values)
    return at, values[at]


def to_matrix(problem: Quadratic, kind: str) -> Matrices:
    if kind not in KINDS:
        raise InputError(f"kind {kind!r} of a matrix is unknown: choose ising or qubo")
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
