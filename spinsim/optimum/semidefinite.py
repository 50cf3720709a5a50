"""The semidefinite lower bound of energies, found by the mixing method and proven by a Cholesky factor.

With unit vectors v_i for spins, the lowest -sum J_ij v_i.v_j lies below all energies. Coordinate descent minimises it:
v_i becomes the direction of g_i = sum_j J_ij v_j (Wang, Chang and Kolter, arXiv:1706.00476), in sqrt(2 nodes)
dimensions, which suffice. The lengths y_i = |g_i| are then nearly dual: whenever Diag(y) - J is positive semidefinite,
no energy is below -sum y_i / 2. They are enlarged a little until that can be proven: if a Cholesky factorisation of
the matrix S succeeds in floating point, the least eigenvalue of S is at least -c tr(S) / (1 - c), where c =
(n + 1) u / (1 - (n + 1) u) and u = 2^-53 (Rump, BIT Numer. Math. 46, 433 (2006)). All that is rounded before is the
choice of y, and any y is valid.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil, floor, fsum, inf, sqrt
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from scipy.linalg import LinAlgError, cholesky
from scipy.sparse import csr_array, diags_array
from scipy.sparse.linalg import ArpackNoConvergence, eigsh

from spinsim.machine.compiled import kernel, seconds_without_compiling
from spinsim.optimum.pairs import Pairs

MOST_NODES: Final = 8192  # whose matrix takes half a gigabyte
_FLOPS: Final = 2e9  # a second, of a Cholesky factorisation on a slow or busy computer
_CHANGE: Final = 1e-10  # of the sum of y in a sweep, at which sweeps end
_TOLERANCE: Final = 1e-7  # of the largest eigenvalue
_RISE_IF_UNKNOWN: Final = 1e-4
_RESTARTS: Final = 300  # of the search of the largest eigenvalue
_MOST_TRIALS: Final = 12
Array = npt.NDArray[np.float64]


def seconds_needed(nodes: int) -> float:
    """Time that a bound takes at least; infinite for more nodes than fit into memory."""
    return nodes**3 / 3 / _FLOPS if nodes <= MOST_NODES else inf


def semidefinite_bounds(pairs: Pairs, seconds: float) -> Iterator[int]:
    """Yield a proven lower bound of the energy in quanta, or none where it would take longer or too much memory."""
    used, ends = np.unique(pairs.ends, return_inverse=True)
    nodes, end = len(used), seconds_without_compiling() + seconds
    proof = seconds_needed(nodes)
    if not nodes or proof > seconds:
        return
    i, j = ends.reshape(-1, 2).T
    unit = 2.0 ** (int(np.abs(pairs.couplings).max()) - 1).bit_length()  # a power of two: division is exact
    values = np.tile(pairs.couplings / unit, 2)
    matrix = csr_array((values, (np.concatenate([i, j]), np.concatenate([j, i]))), shape=(nodes, nodes))
    bound = _proven(matrix, _lengths(matrix, end - proof), end)
    if bound is not None:
        yield floor(bound * unit)


def _lengths(matrix: Any, end: float) -> Array:
    """Return y (nodes,) of vectors that nearly minimise the energy."""
    nodes = matrix.shape[0]
    vectors = np.random.default_rng(0).standard_normal((nodes, ceil(sqrt(2 * nodes)) + 1))
    vectors /= np.linalg.norm(vectors, axis=1)[:, None]
    rows = matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32), matrix.data
    lengths, before = np.zeros(nodes), inf
    is_first = True
    while is_first or seconds_without_compiling() < end:
        is_first = False
        _mix(*rows, vectors, lengths, np.empty(vectors.shape[1]))
        total = float(lengths.sum())
        if abs(total - before) <= _CHANGE * total:
            break
        before = total
    return np.asarray(np.linalg.norm(matrix @ vectors, axis=1))


def _proven(matrix: Any, lengths: Array, end: float) -> float | None:
    """Return the bound in units of the matrix after lengthening y as far as a Cholesky factorisation needs."""
    nodes = len(lengths)
    lengths = np.maximum(lengths, 1e-6 * lengths.mean())
    scale = diags_array(1 / np.sqrt(lengths))
    first = np.random.default_rng(1).standard_normal(nodes)
    options: dict[str, Any] = {"tol": _TOLERANCE, "maxiter": _RESTARTS, "return_eigenvectors": False}
    try:
        largest = float(eigsh(scale @ matrix @ scale, k=1, which="LA", v0=first, **options)[0])
    except ArpackNoConvergence:
        largest = 1 + _RISE_IF_UNKNOWN
    rise = max(largest - 1, 0.0) + 2 * _TOLERANCE
    for trial in range(_MOST_TRIALS):
        if trial and seconds_without_compiling() + seconds_needed(nodes) > end:
            return None
        diagonal = lengths * (1 + rise)
        dense = (-matrix).toarray(order="F")
        dense[np.diag_indices(nodes)] = diagonal
        try:
            cholesky(dense, overwrite_a=True, check_finite=False)
            break
        except LinAlgError:
            rise *= 1.1 if trial < 3 else 4
    else:
        return None
    rounding = (nodes + 1) * 2.0**-53
    rounding /= 1 - 2 * rounding
    missing = 1.1 * rounding * fsum(diagonal)  # of the least eigenvalue
    return -(fsum(diagonal) + nodes * missing) / 2 * (1 + 2.0**-50)


@kernel
def _mix(start, neighbour, values, vectors, lengths, sums):  # type: ignore[no-untyped-def]
    """Turn each vector into the direction of its local field, one after the other, and keep the fields' lengths."""
    for i in range(vectors.shape[0]):
        sums[:] = 0.0
        for e in range(start[i], start[i + 1]):
            other, value = neighbour[e], values[e]
            for k in range(sums.size):
                sums[k] += value * vectors[other, k]
        square = 0.0
        for k in range(sums.size):
            square += sums[k] * sums[k]
        lengths[i] = np.sqrt(square)
        if square > 0:
            for k in range(sums.size):
                vectors[i, k] = sums[k] / lengths[i]
