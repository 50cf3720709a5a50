"""When a search looks for a lower bound of all energies, and for how long.

A bound is looked for once when all methods have had the same time, and once more, for longer, when half of the time is
over: a state that independent starts have met often is probably the lowest one, so that a proof is worth more than
further states. Bounds by cycles prove most glasses of up to a thousand sites in a few seconds, also on tori, where the
bound by matching leaves a gap.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from spinsim.jobs.solve.portfolio import TRIAL
from spinsim.model.ising import Ising

_TRIES: Final = 2
_FIRST: Final = 0.1  # part of the time limit for the first bound
_SECOND: Final = 0.3  # and for the second one
_OFTEN: Final = 8  # independent starts that met the best state, from which on a second bound is looked for
_SPARSE: Final = 4  # bonds a site up to which bounds are often tight
_DENSE_SHARE: Final = 0.2  # of the time for a first bound, on denser graphs
_MOST_BONDS: Final = 10_000  # for a second bound
_MOST_ON_SURFACES: Final = 4_000  # bonds of a torus up to which cycles surpass matching
_WITHOUT_LIMIT: Final = 1.0  # seconds for a bound without a time limit


class Bounding:
    """Decides when there is time for a bound.

    Attributes:
        tried: Bounds that were looked for.

    Args:
        rest: What is searched, None if nothing is.
        limit: Time limit of the search in seconds, None for a limit in sweeps.
        is_matched: True if a bound by matching is known.
    """

    def __init__(self, rest: Ising | None, limit: float | None, is_matched: bool) -> None:
        self._limit, bonds = limit, 0 if rest is None else rest.bonds
        is_sparse = rest is not None and bonds <= _SPARSE * rest.sites
        self._part = _FIRST if is_sparse else _DENSE_SHARE * _FIRST
        self._may_be_second = is_sparse and bonds <= _MOST_BONDS
        is_pointless = rest is None or (is_matched and bonds > _MOST_ON_SURFACES)
        self.tried = _TRIES if is_pointless else 0

    def seconds(self, elapsed: float, hits: Callable[[], int]) -> float:
        """Return how long to look for a bound now; 0 if not."""
        limit = self._limit
        if limit is None or self.tried >= _TRIES:
            return 0.0
        if not self.tried and TRIAL * limit <= elapsed < limit / 2:
            return self._part * limit
        if self._may_be_second and limit / 2 <= elapsed < (1 - _SECOND) * limit and hits() >= _OFTEN:
            return _SECOND * limit
        return 0.0

    @property
    def seconds_at_end(self) -> float:
        """Seconds for a bound at the end of a search with a limit in sweeps; 0 for none."""
        return _WITHOUT_LIMIT if self._limit is None and not self.tried else 0.0
