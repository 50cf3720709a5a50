"""Lanczos without a stored basis, for vectors of which only a few fit: three-term recurrence, run twice.

Rounding lets levels that have converged come back as copies, and others appear that are none. The test of J. Cullum and
R. Willoughby (Lanczos Algorithms for Large Symmetric Eigenvalue Computations, 1985) tells them: a simple Ritz value
that is also one of the matrix without its first row and column is none of T's. The second run adds up an eigenvector,
whose true residual is measured. Of degenerate levels one is found.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.linalg import eigh_tridiagonal, eigvalsh_tridiagonal

from spinsim.transfer_matrix.lanczos import MOST_STEPS, TOLERANCE, Apply, Levels, NotConvergedError, true_residual
from spinsim.transfer_matrix.vectors import Vectors

Array = npt.NDArray[np.float64]

VECTORS: Final = 4  # that it holds at once
_EVERY: Final = 4  # steps between looks at the Ritz values
_SAME: Final = 1e-10  # of the largest: Ritz values that are copies of each other


class _Ritz(NamedTuple):
    """A Ritz value: its residual, and the Ritz vector's components, as many as there were steps."""

    value: float
    residual: float
    components: Array


class _Recurrence:
    """v, the vector before it and the next one, in three buffers."""

    def __init__(self, apply: Apply, vectors: Vectors, seed: int, plane: int) -> None:
        self._apply, self._vectors = apply, vectors
        self._before, self.v, self._next = vectors.empty(), vectors.empty(), vectors.empty()
        self._start = seed, 0, plane
        self.begin()

    def begin(self) -> None:
        """From the start vector, again and again the same."""
        self._before[:] = 0
        self._vectors.random(*self._start, self.v)
        self.v *= 1 / self._vectors.norm(self.v)
        self._length = 0.0

    @property
    def spare(self) -> Any:
        """A buffer whose contents are not needed."""
        return self._next

    def step(self) -> tuple[float, float]:
        """The next row of the tridiagonal matrix: its diagonal element and the one after it."""
        w = self._apply(self.v, self._next)
        self._vectors.add(-self._length, self._before, w)
        diagonal = self._vectors.dot(self.v, w)
        self._vectors.add(-diagonal, self.v, w)
        self._length = self._vectors.norm(w)
        w *= 1 / max(self._length, 1e-300)
        self._before, self.v, self._next = self.v, w, self._before
        return diagonal, self._length


def two_vectors(
    apply: Apply,
    vectors: Vectors,
    wanted: int,
    tolerance: float = TOLERANCE,
    seed: int = 1,
    plane: int = 0,
    most_steps: int = MOST_STEPS,
) -> Levels:
    """Leading levels with room for four vectors; arguments as of ``ThickRestart``.

    Raises:
        NotConvergedError: where the steps are used up or a true residual is too large.
    """
    iteration = _Recurrence(apply, vectors, seed, plane)
    found: list[_Ritz] = []
    diagonal: list[float] = []
    beside: list[float] = []
    worst = float(np.inf)
    while len(found) < wanted:
        if len(diagonal) >= most_steps:
            raise NotConvergedError(worst, tolerance, most_steps)
        a, b = iteration.step()
        diagonal.append(a)
        beside.append(b)
        exhausted = len(diagonal) == vectors.dimension
        if len(diagonal) % _EVERY == 0 or exhausted:
            ritz = genuine(np.array(diagonal), np.array(beside), wanted)
            converged = [r.residual <= tolerance * r.value or exhausted for r in ritz]
            worst = max((r.residual / r.value for r in ritz), default=worst)
            if len(ritz) == wanted and all(converged):
                found = ritz
    return _second_run(apply, vectors, found, tolerance, iteration, len(diagonal))


def genuine(diagonal: Array, beside: Array, wanted: int) -> list[_Ritz]:
    """The largest Ritz values that are none of rounding, each once."""
    count = len(diagonal)
    first = max(0, count - 8 * wanted - 40)
    values, components = eigh_tridiagonal(diagonal, beside[:-1], select="i", select_range=(first, count - 1))
    without = eigvalsh_tridiagonal(diagonal[1:], beside[1:-1]) if count > 1 else np.zeros(0)
    near = _SAME * values[-1]
    found: list[_Ritz] = []
    for i in range(len(values) - 1, -1, -1):
        if found and abs(values[i] - found[-1].value) <= near:
            continue
        copies = int((np.abs(values - values[i]) <= near).sum())
        if copies == 1 and without.size and np.abs(without - values[i]).min() <= 1e-12 * values[-1]:
            continue
        residual = abs(float(beside[-1] * components[-1, i]))
        found.append(_Ritz(float(values[i]), residual, np.asarray(components[:, i], np.float64)))
        if len(found) == wanted:
            break
    return found


def _second_run(
    apply: Apply,
    vectors: Vectors,
    ritz: list[_Ritz],
    tolerance: float,
    iteration: _Recurrence,
    steps: int,
) -> Levels:
    """The same steps again for each level, adding up its vector."""
    value, residual = np.zeros(len(ritz)), np.zeros(len(ritz))
    x = vectors.empty()
    for level, r in enumerate(ritz):
        iteration.begin()
        x[:] = 0
        for component in r.components:
            vectors.add(float(component), iteration.v, x)
            iteration.step()
        x *= 1 / vectors.norm(x)
        value[level], residual[level] = true_residual(apply, vectors, x, iteration.spare)
    if not residual.max() <= 10 * tolerance:
        raise NotConvergedError(float(residual.max()), tolerance, steps)
    return Levels(value, residual, None, steps * (1 + len(ritz)))
