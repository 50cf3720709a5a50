"""Leading eigenvalues of a symmetric operator by thick-restart Lanczos with full re-orthogonalisation.

Source: K. Wu, H. Simon, "Thick-restart Lanczos method for large symmetric eigenvalue problems", SIAM J. Matrix Anal.
Appl. 22, 602 (2000). A Krylov space holds one vector of each eigenspace only. When all wanted levels have converged,
the iteration therefore begins again with a random vector orthogonal to them, and ends when that finds no level above
the lowest of them: degenerate levels come out as often as they are there, and a missed level is found.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from spinsim.errors import InputError
from spinsim.transfer_matrix.vectors import Vectors

Array = npt.NDArray[np.float64]
Apply = Callable[[Any, Any], Any]

TOLERANCE: Final = 1e-10
MOST_STEPS: Final = 5000
SPARE: Final = 3  # stored vectors besides the wanted ones: with two, the value that shows a missed level is never kept
MEND: Final = "give a larger tolerance or more stored vectors (basis)"
_DROWNED: Final = "rounding hides levels that are so much smaller than the largest, ask for fewer eigenvalues"
_ROUNDING: Final = 1e-15  # of the largest level: residuals do not fall below
_FRESH: Final = 1e-6  # residual, in units of the lowest wanted level, at which the rest of the spectrum counts as known
_INVARIANT: Final = 1e-14  # of the largest element: the Krylov space is exhausted


class NotConvergedError(InputError):
    """The residual wanted was not reached.

    Attributes:
        residual: Largest relative residual of the wanted levels.
        steps: Products that this took.
        mend: What to do.
    """

    def __init__(self, residual: float, tolerance: float, steps: int, mend: str = MEND, where: str = "") -> None:
        super().__init__(
            f"{where}Lanczos reached a residual of {residual:.2g}, not {tolerance:g}, in {steps} steps: {mend}"
        )
        self.residual, self.steps, self.mend = residual, steps, mend


@dataclass(frozen=True)
class Levels:
    """Leading eigenvalues of an operator.

    Attributes:
        value: From the largest on, shape (levels,).
        residual: |T x - value x| / value, from one more product with each vector.
        vectors: Eigenvectors of length 1, (levels, dimension), None where they were not kept.
        steps: Products that it took.
    """

    value: Array
    residual: Array
    vectors: Any
    steps: int

    def without_the_rest(self) -> Levels:
        """The same with vectors of its own, which do not keep a whole basis in memory."""
        return replace(self, vectors=self.vectors.copy())


def reference(product: Callable[[Array], Array], start: Array, steps: int) -> Array:
    """Ritz values after so many steps of plain Lanczos with full re-orthogonalisation: the textbook, for tests."""
    basis, projected = [start / np.linalg.norm(start)], np.zeros((steps, steps))
    for j in range(steps):
        w = product(basis[j])
        projected[j, j] = basis[j] @ w
        for _ in range(2):
            w = w - np.transpose(basis) @ (np.array(basis) @ w)
        if j + 1 < steps:
            projected[j, j + 1] = projected[j + 1, j] = np.linalg.norm(w)
            basis.append(w / np.linalg.norm(w))
    return np.asarray(np.linalg.eigvalsh(projected)[::-1])


def default_basis(wanted: int) -> int:
    """Stored vectors that serve well: more save few steps, fewer cost many."""
    return 2 * wanted + 16


class ThickRestart:
    """The iteration, a cycle at a time.

    Args:
        apply: ``apply(x, out)`` writes T x.
        vectors: Arithmetic on the device of T.
        wanted: Levels.
        tolerance: Relative residual at which a level has converged.
        seed: Of the start vector.
        plane: Which of the vectors of that seed.
        basis: Stored vectors, more than the wanted ones.
        most_steps: Products of T after which it gives up.

    Attributes:
        steps: Products so far.
        done: Whether all levels have converged and none is missing.
    """

    def __init__(
        self,
        apply: Apply,
        vectors: Vectors,
        wanted: int,
        tolerance: float = TOLERANCE,
        seed: int = 1,
        plane: int = 0,
        basis: int | None = None,
        most_steps: int = MOST_STEPS,
    ) -> None:
        dimension = vectors.dimension
        self._size = min(basis or default_basis(wanted), dimension)
        if not 0 < wanted <= dimension:
            raise InputError(f"{wanted} eigenvalues of {dimension} cannot be found: give 1 to {dimension}")
        if self._size < min(wanted + SPARE, dimension):
            raise InputError(f"basis {basis} is too small for {wanted} eigenvalues: give at least {wanted + SPARE}")
        self._apply, self._vectors, self._wanted = apply, vectors, wanted
        self._tolerance, self._most_steps = tolerance, most_steps
        self._seed, self._plane, self._starts = seed, plane, 0
        self._basis = vectors.empty(self._size + 1)
        self._projected = np.zeros((self._size, self._size))
        self._checked = np.zeros(wanted)  # levels when the iteration last began with a new vector
        self._kept = self.steps = 0
        self.done = False
        self._begin()

    @property
    def _most_kept(self) -> int:
        return max(self._wanted, min((self._wanted + self._size) // 2, self._size - 2))

    def _begin(self) -> None:
        """A random vector orthogonal to the kept ones goes on."""
        v = self._basis[self._kept]
        self._vectors.random(self._seed, self._starts, self._plane, v)
        self._starts += 1
        for _ in range(2):
            v *= 1 / self._vectors.norm(v)
            self._orthogonalise(self._kept, v)
        v *= 1 / self._vectors.norm(v)

    def _orthogonalise(self, count: int, w: Any) -> Array:
        """Take the components along the first vectors from w and return them."""
        total = np.zeros(count)
        for _ in range(2 if count else 0):  # twice is enough
            part = self._vectors.overlaps(self._basis[:count], w)
            self._vectors.subtract(self._basis[:count], part, w)
            total += part
        return total

    def _extend(self, j: int) -> float:
        """One step: row j of the projected matrix and vector j + 1; returns that one's length before it was scaled."""
        w = self._apply(self._basis[j], self._basis[j + 1])
        self.steps += 1
        self._projected[j, j] = self._orthogonalise(j + 1, w)[j]
        length = self._vectors.norm(w)
        if length > _INVARIANT * float(np.abs(self._projected).max()):
            w *= 1 / length
            return length
        if j + 1 < self._vectors.dimension:
            kept, self._kept = self._kept, j + 1
            self._begin()
            self._kept = kept
        return 0.0

    def cycle(self) -> None:
        """Fill the basis, look at the Ritz values, keep the best vectors.

        Raises:
            NotConvergedError: where the steps are used up.
        """
        length = 0.0
        for j in range(self._kept, self._size):
            length = self._extend(j)
            if j + 1 < self._size:
                self._projected[j, j + 1] = self._projected[j + 1, j] = length
        theta, mixing = np.linalg.eigh(self._projected)
        theta, mixing = theta[::-1], mixing[:, ::-1]
        coupling = length * mixing[-1]
        wanted = self._wanted
        residual = np.abs(coupling[:wanted]) / np.abs(theta[:wanted])
        if self._size == self._vectors.dimension:
            self.done = True
        elif residual.max() <= self._tolerance:
            if not np.allclose(theta[:wanted], self._checked, rtol=10 * self._tolerance, atol=0):
                self._checked = theta[:wanted].copy()
                self._restart(theta, mixing, np.zeros(wanted))
                self._begin()
                return
            self.done = bool(abs(coupling[wanted]) <= _FRESH * theta[wanted - 1])
        elif np.all(np.abs(coupling[:wanted]) <= np.maximum(self._tolerance * theta[:wanted], _ROUNDING * theta[0])):
            raise NotConvergedError(float(residual.max()), self._tolerance, self.steps, _DROWNED)
        if self.steps >= self._most_steps and not self.done:
            raise NotConvergedError(float(residual.max()), self._tolerance, self.steps)
        self._restart(theta, mixing, coupling[: wanted if self.done else self._most_kept])

    def _restart(self, theta: Array, mixing: Array, coupling: Array) -> None:
        """Keep as many Ritz vectors as there are couplings to the vector that comes next, and that one."""
        kept = self._kept = len(coupling)
        self._vectors.rotate(self._basis[: self._size], mixing[:, :kept])
        self._basis[kept] = self._basis[self._size]
        self._projected[:] = 0
        self._projected[range(kept), range(kept)] = theta[:kept]
        if kept < self._size:
            self._projected[kept, :kept] = self._projected[:kept, kept] = coupling

    def levels(self) -> Levels:
        """The levels of a finished iteration, with true residuals.

        Raises:
            NotConvergedError: where a true residual is larger than the one that the iteration told.
        """
        basis, spare = self._basis[: self._wanted], self._basis[self._wanted]
        value, residual = np.zeros(self._wanted), np.zeros(self._wanted)
        for i, x in enumerate(basis):
            value[i], residual[i] = true_residual(self._apply, self._vectors, x, spare)
        if not residual.max() <= 10 * self._tolerance:
            drowned = _ROUNDING * value.max() > self._tolerance * value.min()
            raise NotConvergedError(float(residual.max()), self._tolerance, self.steps, _DROWNED if drowned else MEND)
        order = np.argsort(-value, kind="stable")
        if (order != np.arange(len(order))).any():
            self._vectors.rotate(basis, np.eye(self._wanted)[:, order])
        return Levels(value[order], residual[order], basis, self.steps)

    def snapshot(self) -> dict[str, npt.NDArray[Any]]:
        """All that the next cycle depends on, as arrays of fixed shapes."""
        basis = np.zeros((self._most_kept + 1, self._vectors.dimension))
        basis[: self._kept + 1] = self._vectors.numpy(self._basis[: self._kept + 1])
        numbers = np.array([self._kept, self._starts, self.steps, self.done], np.int64)
        return {"basis": basis, "projected": self._projected.copy(), "checked": self._checked, "numbers": numbers}

    def restore(self, saved: dict[str, npt.NDArray[Any]]) -> None:
        """Go on from a snapshot."""
        self._kept, self._starts, self.steps = (int(n) for n in saved["numbers"][:3])
        self.done = bool(saved["numbers"][3])
        self._basis[: self._kept + 1] = self._vectors.xp.asarray(saved["basis"][: self._kept + 1])
        self._projected[:], self._checked = saved["projected"], saved["checked"]


def true_residual(apply: Apply, vectors: Vectors, x: Any, spare: Any) -> tuple[float, float]:
    """Rayleigh quotient of a vector of length 1, and |T x - value x| / value; ``spare`` is written to."""
    apply(x, spare)
    value = vectors.dot(x, spare)
    vectors.add(-value, x, spare)
    return value, vectors.norm(spare) / abs(value)
