"""Leading eigenvalues of a symmetric operator by Lanczos, with a stored basis, or without one where few vectors fit.

``ThickRestart`` stores a basis and re-orthogonalises fully. Source: K. Wu, H. Simon, "Thick-restart Lanczos method for
large symmetric eigenvalue problems", SIAM J. Matrix Anal. Appl. 22, 602 (2000). A Krylov space holds one vector of each
eigenspace only. When all wanted levels have converged, the iteration therefore begins again with a random vector
orthogonal to them, and ends when this finds no level above the lowest of them. Degenerate levels thus appear with their
multiplicity, and a missed level is found.

Without a basis there are three-term recurrences, each run twice. A first run finds a level, a second one of the same
steps adds up its eigenvector, whose true residual is measured. ``one_by_one`` holds the vectors found and keeps each
recurrence orthogonal to them, so that degenerate levels appear with their multiplicity. It ends when a recurrence
orthogonal to all of them finds nothing above the lowest. ``at_once`` holds no vectors: all levels come from one
recurrence, which finds a degenerate level once. By rounding, converged levels come back as copies there, and spurious
values appear. The test of J. Cullum and R. Willoughby (Lanczos Algorithms for Large Symmetric Eigenvalue Computations,
1985) identifies these: a simple Ritz value that is also an eigenvalue of the matrix without its first row and column is
no eigenvalue of T.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.linalg import eigh_tridiagonal, eigvalsh_tridiagonal

from spinsim.errors import InputError
from spinsim.transfer_matrix.vectors import Vectors

Array = npt.NDArray[np.float64]
Apply = Callable[[Any, Any], Any]

TOLERANCE: Final = 1e-10
MOST_STEPS: Final = 5000
SPARE: Final = 3  # stored vectors besides the wanted ones: with two, the value that shows a missed level is never kept
ROUNDING: Final = 1e-15  # of the largest level: residuals do not fall below
FRESH: Final = 1e-6  # residual, in units of the lowest wanted level, at which the rest of the spectrum counts as known
INVARIANT: Final = 1e-14  # of the largest element: the Krylov space is exhausted


class Cause(IntEnum):
    """Why levels are missing."""

    NONE = 0
    STEPS = 1
    SEARCH = 2
    DROWNED = 3


_DROWNED: Final = "rounding hides levels that are so much smaller than the largest, ask for fewer eigenvalues"
_MORE: Final = "give a larger tolerance, more steps (most_steps) or "


class NotConvergedError(InputError):
    """Levels were asked for that did not converge."""


@dataclass(frozen=True)
class Levels:
    """Leading eigenvalues of an operator."""

    value: Array  # from the largest on, shape (levels,); NaN from the first on that did not converge
    residual: Array
    """|T x - value x| / value, from one more product with each vector; the residual reached where the level did not
    converge, NaN without such a vector."""
    vectors: Any  # eigenvectors of length 1, (levels, dimension), None where they were not kept
    steps: int  # number of products with T
    cause: Cause = Cause.NONE  # why levels are missing

    def problem(self, tolerance: float, where: str = "", basis: bool = True) -> NotConvergedError | None:
        """Error that names missing levels and the remedy, None where none is missing."""
        if self.cause is Cause.NONE:
            return None
        kept, wanted = int(np.isfinite(self.value).sum()), len(self.value)
        converged = wanted if self.cause is Cause.SEARCH else kept + leading(self.residual[kept:], tolerance)
        sentence = f"{converged} of {wanted} levels converged, "
        if converged > kept:
            sentence += "but the search for missed ones did not end"
        else:
            sentence += f"Lanczos reached a residual of {self.residual[kept]:.2g} for the next, not {tolerance:g},"
        mend = _MORE + ("more stored vectors (basis)" if basis else "stored vectors (basis) where they fit")
        mend = _DROWNED if self.cause is Cause.DROWNED else mend
        return NotConvergedError(f"{where}{sentence} in {self.steps} steps: {mend}")


def most_kept(levels: int, basis: int) -> int:
    """Stored vectors that go on from one cycle to the next."""
    return max(levels, min((levels + basis) // 2, basis - 2))


def leading(residual: Array, limit: float) -> int:
    """Number of residuals, from the first on, within a limit."""
    return int(np.cumprod(residual <= limit).sum())


def default_basis(wanted: int) -> int:
    """Stored vectors that serve well: more save few steps, fewer cost many."""
    return 2 * wanted + 16


class Search(NamedTuple):
    """Levels that are looked for."""

    wanted: int  # number of levels
    tolerance: float = TOLERANCE  # relative residual at which a level has converged
    seed: int = 1  # seed of the start vectors, one for each plane
    plane: int = 0
    most_steps: int = MOST_STEPS
    """Products of T after which levels that have not converged are given up. As many again may follow, to check that
    no level above the converged ones is missing."""


class ThickRestart:
    """The thick-restart iteration, a cycle at a time.

    Args:
        apply: ``apply(x, out)`` writes T x.
        vectors: Arithmetic on the device of T.
        search: Levels that it looks for.
        basis: Number of stored vectors, at least ``SPARE`` more than the wanted levels.
    """

    def __init__(self, apply: Apply, vectors: Vectors, search: Search, basis: int | None = None) -> None:
        wanted = search.wanted
        self._size = min(basis or default_basis(wanted), vectors.dimension)
        self._apply, self._vectors, self._asked, self._wanted = apply, vectors, wanted, wanted
        self._tolerance, self._most_steps = search.tolerance, search.most_steps
        self._limit, self._cause = search.most_steps, Cause.NONE
        self.gave_up = False  # True if steps were used up or levels given up
        self._reached = np.full(wanted, np.nan)  # residuals, for levels that are given up
        self._seed, self._plane, self._starts = search.seed, search.plane, 0
        self._basis = vectors.empty(self._size + 1)
        self._projected = np.zeros((self._size, self._size))
        self._checked = np.zeros(wanted)  # levels when the iteration last began with a new vector
        self._kept = self.steps = 0  # stored vectors that go on, and products so far
        self.done = False
        self._begin()

    @property
    def _most_kept(self) -> int:
        return most_kept(self._asked, self._size)

    def _begin(self) -> None:
        """Go on with a random vector orthogonal to the kept ones."""
        v = self._basis[self._kept]
        self._vectors.random(self._seed, self._starts, self._plane, v)
        self._starts += 1
        for _ in range(2):
            v *= 1 / self._vectors.norm(v)
            self._orthogonalise(self._kept, v)
        v *= 1 / self._vectors.norm(v)

    def _orthogonalise(self, count: int, w: Any) -> Array:
        """Subtract the components along the first vectors from w and return them."""
        total = np.zeros(count)
        for _ in range(2 if count else 0):  # twice is enough
            part = self._vectors.overlaps(self._basis[:count], w)
            self._vectors.subtract(self._basis[:count], part, w)
            total += part
        return total

    def _extend(self, j: int) -> float:
        """Make row j of the projected matrix and vector j + 1; return the vector's length before it was scaled."""
        w = self._apply(self._basis[j], self._basis[j + 1])
        self.steps += 1
        self._projected[j, j] = self._orthogonalise(j + 1, w)[j]
        length = self._vectors.norm(w)
        if length > INVARIANT * float(np.abs(self._projected).max()):
            w *= 1 / length
            return length
        if j + 1 < self._vectors.dimension:
            kept, self._kept = self._kept, j + 1
            self._begin()
            self._kept = kept
        return 0.0

    def cycle(self) -> None:
        """Fill the basis, look at the Ritz values, keep the best vectors."""
        length = 0.0
        for j in range(self._kept, self._size):
            length = self._extend(j)
            if j + 1 < self._size:
                self._projected[j, j + 1] = self._projected[j + 1, j] = length
        theta, mixing = self._vectors.share.agreed(*np.linalg.eigh(self._projected))
        theta, mixing = theta[::-1], mixing[:, ::-1]
        coupling = length * mixing[-1]
        wanted = self._wanted
        residual = np.abs(coupling[:wanted]) / np.abs(theta[:wanted])
        if self._size == self._vectors.dimension:
            self.done = True
        elif residual.max() <= self._tolerance:
            if not np.allclose(theta[:wanted], self._checked[:wanted], rtol=10 * self._tolerance, atol=0):
                self._look_for_more(theta, mixing, residual)
                return
            self.done = bool(abs(coupling[wanted]) <= FRESH * theta[wanted - 1])
        elif np.all(np.abs(coupling[:wanted]) <= np.maximum(self._tolerance * theta[:wanted], ROUNDING * theta[0])):
            self._give_up(theta, mixing, residual, Cause.DROWNED)
            return
        if self.steps >= self._limit and not self.done:
            self._limit, again, self.gave_up = self.steps + self._most_steps, self.gave_up, True
            if again or residual.max() > self._tolerance:
                self._give_up(theta, mixing, residual, Cause.STEPS, again)
                return
        self._restart(theta, mixing, coupling[: wanted if self.done else self._most_kept])

    def _note(self, residual: Array) -> None:
        """Remember the residuals that were reached, as residuals of kept levels come out as 0 later."""
        self._reached[: len(residual)] = np.fmax(self._reached[: len(residual)], residual)

    def _look_for_more(self, theta: Array, mixing: Array, residual: Array) -> None:
        """Keep the wanted levels, which have converged, and begin again orthogonal to them."""
        self._note(residual[: self._wanted])
        self._checked[: self._wanted] = theta[: self._wanted]
        self._restart(theta, mixing, np.zeros(self._wanted))
        self._begin()

    def _give_up(self, theta: Array, mixing: Array, residual: Array, cause: Cause, all_of_them: bool = False) -> None:
        """Go on with the leading levels that have converged; end where there is none."""
        converged = leading(residual, self._tolerance)
        if self._cause is Cause.NONE:
            self._cause = Cause.SEARCH if converged == self._asked else cause
            self._note(residual)
        self._wanted, self.gave_up = 0 if all_of_them else converged, True
        self.done = self._wanted == 0
        if not self.done:
            self._look_for_more(theta, mixing, residual)

    def _restart(self, theta: Array, mixing: Array, coupling: Array) -> None:
        """Keep a Ritz vector for each entry of ``coupling``, and the next vector, to which these couple."""
        kept = self._kept = len(coupling)
        self._vectors.rotate(self._basis[: self._size], mixing[:, :kept])
        self._basis[kept] = self._basis[self._size]
        self._projected[:] = 0
        self._projected[range(kept), range(kept)] = theta[:kept]
        if kept < self._size:
            self._projected[kept, :kept] = self._projected[:kept, kept] = coupling

    def levels(self) -> Levels:
        """The levels of a finished iteration, with true residuals."""
        wanted, basis, spare = self._wanted, self._basis[: self._asked], self._basis[self._asked]
        value, residual, cause = np.full(self._asked, np.nan), self._reached.copy(), self._cause
        for i, x in enumerate(basis[:wanted]):
            value[i], residual[i] = true_residual(self._apply, self._vectors, x, spare)
        order = np.argsort(-value[:wanted], kind="stable")
        if (order != np.arange(wanted)).any():
            self._vectors.rotate(basis[:wanted], np.eye(wanted)[:, order])
        value[:wanted], residual[:wanted] = value[order], residual[order]
        kept = leading(residual[:wanted], 10 * self._tolerance)
        if kept < wanted:
            drowned = ROUNDING * value[0] > self._tolerance * value[kept]
            cause = Cause.DROWNED if drowned else Cause.STEPS
        value[kept:] = np.nan
        basis[kept:] = np.nan
        return Levels(value, residual, basis, self.steps, cause)

    def snapshot(self) -> dict[str, npt.NDArray[Any]]:
        """State on which the next cycle depends, as arrays of fixed shapes; vectors hold this device's part."""
        basis = np.zeros((self._most_kept + 1, self._vectors.length))
        basis[: self._kept + 1] = self._vectors.numpy(self._basis[: self._kept + 1])
        numbers = self._kept, self._starts, self.steps, self.done, self._wanted, self._limit, self._cause, self.gave_up
        return {
            "basis": basis,
            "projected": self._projected.copy(),
            "checked": self._checked.copy(),
            "reached": self._reached.copy(),
            "numbers": np.array(numbers, np.int64),
        }

    def restore(self, saved: dict[str, npt.NDArray[Any]]) -> None:
        """Go on from a snapshot, with this iteration's own limit of steps where no limit was reached yet."""
        numbers = [int(n) for n in saved["numbers"]]
        self._kept, self._starts, self.steps, done, self._wanted, limit, cause, gave_up = numbers
        self.done, self.gave_up, self._cause = bool(done), bool(gave_up), Cause(cause)
        self._limit = limit if gave_up else self._most_steps
        self._basis[: self._kept + 1] = self._vectors.xp.asarray(saved["basis"][: self._kept + 1])
        self._projected[:], self._checked[:] = saved["projected"], saved["checked"]
        self._reached[:] = saved["reached"]


def true_residual(apply: Apply, vectors: Vectors, x: Any, spare: Any) -> tuple[float, float]:
    """Rayleigh quotient of a vector of length 1, and |T x - value x| / value; ``spare`` is written to."""
    apply(x, spare)
    value = vectors.dot(x, spare)
    vectors.add(-value, x, spare)
    return value, vectors.norm(spare) / abs(value)


VECTORS: Final = 3  # vectors that a recurrence holds at once, in addition to at least one eigenvector
_LOCKED: Final = 1e-14  # residual of vectors that are held, as errors of large levels spoil small ones
_LOOKS: Final = 16  # at the Ritz values while the steps double
_SAME: Final = 1e-10  # of the largest: Ritz values that are copies of each other
_COPIES: Final = 8  # Ritz values among which the largest and its copies are sought


class _Ritz(NamedTuple):
    """A Ritz value: its residual, and the Ritz vector's components, as many as there were steps."""

    value: float
    residual: float
    components: Array


class _Recurrence:
    """v, the vector before it and the next one, in three buffers, orthogonal to all ``deflated`` vectors."""

    def __init__(self, apply: Apply, vectors: Vectors, search: Search) -> None:
        self._apply, self._vectors = apply, vectors
        self._before, self._v, self._next = vectors.empty(), vectors.empty(), vectors.empty()
        self._seed, self._plane = search.seed, search.plane
        self.deflated: list[Any] = []  # eigenvectors of length 1
        self.products = 0  # with T, of all runs

    def begin(self, number: int) -> None:
        """Begin from the start vector of that number, which is the same every time."""
        self.diagonal: list[float] = []  # of the tridiagonal matrix, as far as it is known
        self.off_diagonal: list[float] = []
        self._length = 0.0
        self._before[:] = 0
        self._vectors.random(self._seed, number, self._plane, self._v)
        for _ in range(2):  # twice is enough
            self._v *= 1 / self._vectors.norm(self._v)
            self._project(self._v)
        self._v *= 1 / self._vectors.norm(self._v)

    def _project(self, w: Any) -> None:
        for x in self.deflated:
            self._vectors.add(-self._vectors.dot(x, w), x, w)

    def step(self) -> None:
        w = self._apply(self._v, self._next)
        self.products += 1
        self._vectors.add(-self._length, self._before, w)
        diagonal = self._vectors.dot(self._v, w)
        self._vectors.add(-diagonal, self._v, w)
        self._project(w)  # last: later subtractions would bring back components of v along held vectors
        self._length = self._vectors.norm(w)
        w *= 1 / max(self._length, 1e-300)
        self._before, self._v, self._next = self._v, w, self._before
        self.diagonal.append(diagonal)
        self.off_diagonal.append(self._length)

    @property
    def exhausted(self) -> bool:  # the Krylov space ends here
        return self._length <= INVARIANT * max(map(abs, self.diagonal))

    @property
    def to_look(self) -> bool:  # it is time for the Ritz values
        return self.exhausted or len(self.diagonal) % (1 + len(self.diagonal) // _LOOKS) == 0

    def vector(self, number: int, components: Array, x: Any) -> tuple[float, float]:
        """Add up a Ritz vector in ``x`` by the same steps again; return its Rayleigh quotient and true residual."""
        self.begin(number)
        x[:] = 0
        for i, component in enumerate(components):
            if i:
                self.step()
            self._vectors.add(float(component), self._v, x)
        x *= 1 / self._vectors.norm(x)
        self.products += 1
        return true_residual(self._apply, self._vectors, x, self._next)

    def _pairs(self, most: int) -> Sequence[Array]:
        """The largest Ritz values, in ascending order, and the components of their vectors."""
        ends = max(0, len(self.diagonal) - most), len(self.diagonal) - 1
        diagonal, off_diagonal = np.array(self.diagonal), np.array(self.off_diagonal[:-1])
        return self._vectors.share.agreed(*eigh_tridiagonal(diagonal, off_diagonal, select="i", select_range=ends))

    def largest(self) -> _Ritz:
        """The largest Ritz value; among its copies, the one with the smallest residual."""
        values, components = self._pairs(_COPIES)
        copies = np.flatnonzero(values[-1] - values <= _SAME * values[-1])
        residual = np.abs(self.off_diagonal[-1] * components[-1, copies])
        best = int(copies[residual.argmin()])
        return _Ritz(float(values[best]), float(residual.min()), np.asarray(components[:, best], np.float64))

    def genuine(self, wanted: int) -> list[_Ritz]:
        """The largest Ritz values that are not due to rounding, each once."""
        values, components = self._pairs(8 * wanted + 40)
        diagonal, off_diagonal = np.array(self.diagonal[1:]), np.array(self.off_diagonal[1:-1])
        (without,) = self._vectors.share.agreed(
            eigvalsh_tridiagonal(diagonal, off_diagonal) if diagonal.size else np.zeros(0)
        )
        near = _SAME * values[-1]
        ritz: list[_Ritz] = []
        for i in range(len(values) - 1, -1, -1):
            if ritz and abs(values[i] - ritz[-1].value) <= near:
                continue
            copies = int((np.abs(values - values[i]) <= near).sum())
            if copies == 1 and without.size and np.abs(without - values[i]).min() <= 1e-12 * values[-1]:
                continue
            residual = abs(float(self.off_diagonal[-1] * components[-1, i]))
            ritz.append(_Ritz(float(values[i]), residual, np.asarray(components[:, i], np.float64)))
            if len(ritz) == wanted:
                break
        return ritz


class _OneByOne:
    """State of the search for levels one by one."""

    def __init__(self, apply: Apply, vectors: Vectors, search: Search) -> None:
        self._iteration, self._vectors, self._tolerance = _Recurrence(apply, vectors, search), vectors, search.tolerance
        self._wanted, self._most, self._limit, self._longer = search.wanted, search.most_steps, search.most_steps, False
        self._levels: list[tuple[float, float]] = []  # value and residual of each vector held
        self._reached = np.full(search.wanted, np.nan)
        self._cause, self._starts, self.done = Cause.NONE, 0, False

    def _below(self, ritz: _Ritz) -> bool:
        """True if all wanted levels are found and a further Ritz value is not above the lowest of them."""
        lowest = min((value for value, _ in self._levels), default=0.0)
        return len(self._levels) == self._wanted and ritz.value <= lowest * (1 + 10 * self._tolerance)

    def _known(self, ritz: _Ritz) -> bool:
        """True if a Ritz value is known well enough, to be a level or only to show that no level is missing."""
        if self._below(ritz):
            return ritz.residual <= FRESH * min(value for value, _ in self._levels)
        aim = self._tolerance if len(self._reached) == 1 else min(self._tolerance, _LOCKED)
        meaningless = ROUNDING / 10 * max([ritz.value, *(value for value, _ in self._levels)])
        return ritz.residual <= max(aim * ritz.value, meaningless)

    def _run(self) -> _Ritz:
        """Return the largest further Ritz value, as accurate as it must be or can be."""
        iteration = self._iteration
        iteration.begin(self._starts)
        while True:
            iteration.step()
            if iteration.to_look or iteration.products >= self._limit:
                ritz = iteration.largest()
                if self._known(ritz) or iteration.exhausted or iteration.products >= self._limit:
                    return ritz

    def advance(self) -> None:
        """Run one more recurrence, which finds a level or ends the search."""
        if len(self._levels) == self._vectors.dimension:
            self.done = True
            return
        ritz = self._run()
        converged = ritz.residual <= self._tolerance * ritz.value and not self._below(ritz)
        if not converged and not self._known(ritz):
            self._give_up(Cause.DROWNED if self._iteration.exhausted else Cause.STEPS, ritz)
        elif self._below(ritz):
            self.done = True
        elif not converged:
            self._give_up(Cause.DROWNED, ritz)
        elif len(self._levels) == self._wanted:  # it is above the lowest, which goes; the next recurrence finds it
            lowest = int(np.argmin([value for value, _ in self._levels]))
            del self._levels[lowest], self._iteration.deflated[lowest]
            self._starts += 1
        else:
            self._hold(ritz)

    def _hold(self, ritz: _Ritz) -> None:
        """Hold the vector of a level; all later vectors are orthogonal to it."""
        x = self._vectors.empty()
        value, residual = self._iteration.vector(self._starts, ritz.components, x)
        copied = max((abs(self._vectors.dot(other, x)) for other in self._iteration.deflated), default=0.0)
        if residual > 10 * self._tolerance or copied > FRESH:  # it has converged: what is left is rounding
            self._give_up(Cause.DROWNED, ritz._replace(residual=residual * value))
            return
        self._iteration.deflated.append(x)
        self._levels.append((value, residual))
        self._starts += 1
        if self._starts == len(self._levels):  # none was dropped: the next level gets all its steps
            self._limit = self._iteration.products + self._most

    def _give_up(self, cause: Cause, ritz: _Ritz) -> None:
        """Check only that no level above those found is missing; the second time, give these up as well."""
        if self._cause is Cause.NONE and len(self._levels) < self._wanted:
            self._cause = cause
            self._reached[len(self._levels)] = ritz.residual / ritz.value
            self._wanted = len(self._levels)
        elif self._longer:
            self._cause = self._cause or Cause.SEARCH
            self._reached[: len(self._levels)] = [residual for _, residual in sorted(self._levels, reverse=True)]
            self._wanted, self._levels, self._iteration.deflated = 0, [], []
        self._limit, self._longer = self._iteration.products + self._most, True
        self.done = not self._wanted or (self._below(ritz) and self._known(ritz))

    def levels(self) -> Levels:
        value, residual = np.full(len(self._reached), np.nan), self._reached
        for i, level in enumerate(sorted(self._levels, reverse=True)):
            value[i], residual[i] = level
        return Levels(value, residual, None, self._iteration.products, self._cause)


def one_by_one(apply: Apply, vectors: Vectors, search: Search) -> Levels:
    """Leading levels with room for ``VECTORS`` vectors and one for each level; ``most_steps`` holds for each level."""
    iteration = _OneByOne(apply, vectors, search)
    while not iteration.done:
        iteration.advance()
    return iteration.levels()


def at_once(apply: Apply, vectors: Vectors, search: Search) -> Levels:
    """Leading levels with room for one vector more than ``VECTORS``, degenerate ones once."""
    iteration, wanted, tolerance = _Recurrence(apply, vectors, search), search.wanted, search.tolerance
    iteration.begin(0)
    residual, ritz, drowned, ended = np.zeros(0), list[_Ritz](), False, False
    while not ended:
        iteration.step()
        ended = iteration.exhausted or iteration.products >= search.most_steps
        if ended or iteration.to_look:
            ritz = iteration.genuine(wanted)
            error, value = np.array([r.residual for r in ritz]), np.array([r.value for r in ritz])
            residual = error / value
            least = np.maximum(tolerance * value, ROUNDING * value[:1])
            drowned = len(ritz) == wanted and bool((error <= least).all())
            ended |= drowned
    value, reached, x = np.full(wanted, np.nan), np.full(wanted, np.nan), vectors.empty()
    reached[: len(residual)] = residual
    kept = leading(residual, tolerance)
    for level in range(kept):
        value[level], reached[level] = iteration.vector(0, ritz[level].components, x)
    kept = leading(reached[:kept], 10 * tolerance)
    value[kept:] = np.nan
    cause = Cause.NONE if kept == wanted else Cause.DROWNED if drowned else Cause.STEPS
    return Levels(value, reached, None, iteration.products, cause)
