"""Lanczos without a stored basis, for vectors of which only a few fit: three-term recurrences, each run twice.

A first run finds a level, a second one of the same steps adds up its eigenvector, whose true residual is measured.
``one_by_one`` holds the vectors found and keeps each recurrence orthogonal to them, so that degenerate levels come out
as often as they are there; it ends when a recurrence beside all of them finds nothing above the lowest. ``at_once``
holds none: all levels come from one recurrence, and of degenerate ones it finds one. Rounding lets levels that have
converged there come back as copies, and others appear that are none. The test of J. Cullum and R. Willoughby (Lanczos
Algorithms for Large Symmetric Eigenvalue Computations, 1985) tells them: a simple Ritz value that is also one of the
matrix without its first row and column is none of T's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.linalg import eigh_tridiagonal, eigvalsh_tridiagonal

from spinsim.transfer_matrix import lanczos
from spinsim.transfer_matrix.lanczos import Apply, Cause, Levels, Search
from spinsim.transfer_matrix.vectors import Vectors

Array = npt.NDArray[np.float64]

VECTORS: Final = 3  # that a recurrence holds at once; beside them at least one eigenvector
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
        """From the start vector of that number, again and again the same."""
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
        self._project(w)  # last: what is taken away later would bring back what v has of the held vectors
        self._length = self._vectors.norm(w)
        w *= 1 / max(self._length, 1e-300)
        self._before, self._v, self._next = self._v, w, self._before
        self.diagonal.append(diagonal)
        self.off_diagonal.append(self._length)

    @property
    def exhausted(self) -> bool:  # the Krylov space ends here
        return self._length <= lanczos.INVARIANT * max(map(abs, self.diagonal))

    @property
    def to_look(self) -> bool:  # it is time for the Ritz values
        return self.exhausted or len(self.diagonal) % (1 + len(self.diagonal) // _LOOKS) == 0

    def vector(self, number: int, components: Array, x: Any) -> tuple[float, float]:
        """Add up a Ritz vector in ``x``, by the same steps again: its Rayleigh quotient and true residual."""
        self.begin(number)
        x[:] = 0
        for i, component in enumerate(components):
            if i:
                self.step()
            self._vectors.add(float(component), self._v, x)
        x *= 1 / self._vectors.norm(x)
        self.products += 1
        return lanczos.true_residual(self._apply, self._vectors, x, self._next)

    def _pairs(self, most: int) -> Sequence[Array]:
        """The largest Ritz values, in ascending order, and the components of their vectors."""
        ends = max(0, len(self.diagonal) - most), len(self.diagonal) - 1
        diagonal, off_diagonal = np.array(self.diagonal), np.array(self.off_diagonal[:-1])
        return self._vectors.share.agreed(*eigh_tridiagonal(diagonal, off_diagonal, select="i", select_range=ends))

    def largest(self) -> _Ritz:
        """The largest Ritz value; of copies of it, the one that is known best."""
        values, components = self._pairs(_COPIES)
        copies = np.flatnonzero(values[-1] - values <= _SAME * values[-1])
        residual = np.abs(self.off_diagonal[-1] * components[-1, copies])
        best = int(copies[residual.argmin()])
        return _Ritz(float(values[best]), float(residual.min()), np.asarray(components[:, best], np.float64))

    def genuine(self, wanted: int) -> list[_Ritz]:
        """The largest Ritz values that are none of rounding, each once."""
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
    """The levels found one by one, and what is still to be done."""

    def __init__(self, apply: Apply, vectors: Vectors, search: Search) -> None:
        self._iteration, self._vectors, self._tolerance = _Recurrence(apply, vectors, search), vectors, search.tolerance
        self._wanted, self._most, self._limit, self._longer = search.wanted, search.most_steps, search.most_steps, False
        self._levels: list[tuple[float, float]] = []  # value and residual of each vector held
        self._reached = np.full(search.wanted, np.nan)
        self._cause, self._starts, self.done = Cause.NONE, 0, False

    def _below(self, ritz: _Ritz) -> bool:
        """True if all levels wanted are there and the one that shows beside them is not above the lowest."""
        lowest = min((value for value, _ in self._levels), default=0.0)
        return len(self._levels) == self._wanted and ritz.value <= lowest * (1 + 10 * self._tolerance)

    def _known(self, ritz: _Ritz) -> bool:
        """True if that level is known well enough: to be a level, or only to say that nothing is missing."""
        if self._below(ritz):
            return ritz.residual <= lanczos.FRESH * min(value for value, _ in self._levels)
        aim = self._tolerance if len(self._reached) == 1 else min(self._tolerance, _LOCKED)
        meaningless = lanczos.ROUNDING / 10 * max([ritz.value, *(value for value, _ in self._levels)])
        return ritz.residual <= max(aim * ritz.value, meaningless)

    def _run(self) -> _Ritz:
        """The largest level beside those found, as far as it has to be known or can be."""
        iteration = self._iteration
        iteration.begin(self._starts)
        while True:
            iteration.step()
            if iteration.to_look or iteration.products >= self._limit:
                ritz = iteration.largest()
                if self._known(ritz) or iteration.exhausted or iteration.products >= self._limit:
                    return ritz

    def advance(self) -> None:
        """One recurrence more: a level, or the end."""
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
        elif len(self._levels) == self._wanted:  # it is above the lowest, whose place the next recurrence finds it for
            lowest = int(np.argmin([value for value, _ in self._levels]))
            del self._levels[lowest], self._iteration.deflated[lowest]
            self._starts += 1
        else:
            self._hold(ritz)

    def _hold(self, ritz: _Ritz) -> None:
        """The vector of a level, which all that comes is orthogonal to."""
        x = self._vectors.empty()
        value, residual = self._iteration.vector(self._starts, ritz.components, x)
        copied = max((abs(self._vectors.dot(other, x)) for other in self._iteration.deflated), default=0.0)
        if residual > 10 * self._tolerance or copied > lanczos.FRESH:  # it has converged: what is left is rounding
            self._give_up(Cause.DROWNED, ritz._replace(residual=residual * value))
            return
        self._iteration.deflated.append(x)
        self._levels.append((value, residual))
        self._starts += 1
        if self._starts == len(self._levels):  # none was dropped: the steps are those of a level
            self._limit = self._iteration.products + self._most

    def _give_up(self, cause: Cause, ritz: _Ritz) -> None:
        """Go on to see that nothing above the levels found is missing; a second time, give these up as well."""
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
    """Leading levels with room for ``VECTORS`` vectors and one a level; ``most_steps`` are those of each."""
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
            least = np.maximum(tolerance * value, lanczos.ROUNDING * value[:1])
            drowned = len(ritz) == wanted and bool((error <= least).all())
            ended |= drowned
    value, reached, x = np.full(wanted, np.nan), np.full(wanted, np.nan), vectors.empty()
    reached[: len(residual)] = residual
    kept = lanczos.leading(residual, tolerance)
    for level in range(kept):
        value[level], reached[level] = iteration.vector(0, ritz[level].components, x)
    kept = lanczos.leading(reached[:kept], 10 * tolerance)
    value[kept:] = np.nan
    cause = Cause.NONE if kept == wanted else Cause.DROWNED if drowned else Cause.STEPS
    return Levels(value, reached, None, iteration.products, cause)
