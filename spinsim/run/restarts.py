"""Restarts of a search: it begins anew with other random numbers where it has met nothing lower for long."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from spinsim import rng

NAMES: Final = ("restarts", "restart_before", "restart_since", "restart_lowest")
"""The names under which checkpoints hold it."""
_MOST_DOUBLINGS: Final = 40


def seed_of_start(seed: int, number: int) -> int:
    """Seed of the start of this number in a run of a seed, which is that of the run for the first."""
    return rng.derived_seed(seed, number, rng.Stream.RESTART) if number else seed


class Restarts:
    """Number of restarts so far, and when the next one is due.

    A start ends once no sample has met a state lower than all before in this start for ``after`` sweeps. Each later
    start waits twice as long, so that a wait that is too short costs a search no more than a factor.

    Args:
        after: Sweeps that the first start waits; 0 for no restarts.
        samples: Samples of the model.

    Attributes:
        number: Restarts so far.
        before: Sweeps of all earlier starts.
    """

    def __init__(self, after: int, samples: int) -> None:
        self.number, self.before = 0, 0
        self._after, self._since = after, 0
        self._lowest = np.full(samples, np.inf)

    def look(self, lowest: npt.NDArray[np.float64], sweeps: int) -> None:
        """Take in the lowest energy of each sample, (samples,), after so many sweeps of the present start."""
        if (lowest < self._lowest).any():
            self._since = sweeps
            np.minimum(self._lowest, lowest, out=self._lowest)

    def is_due(self, sweeps: int) -> bool:
        """Return True where the search is to begin anew after so many sweeps of the present start."""
        return self._after > 0 and sweeps - self._since >= self._after << min(self.number, _MOST_DOUBLINGS)

    def begin(self, sweeps: int) -> None:
        """Begin the next start, where the present one ends after so many sweeps."""
        self.number += 1
        self.before += sweeps
        self._since = 0
        self._lowest[:] = np.inf

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """All so far, by the names under which checkpoints hold it; nothing where there are no restarts."""
        if not self._after:
            return {}
        numbers = (np.array(value, np.int64) for value in (self.number, self.before, self._since))
        return dict(zip(NAMES, (*numbers, self._lowest.copy()), strict=True))

    def restore(self, saved: Mapping[str, npt.NDArray[Any]]) -> None:
        """Go back to what a checkpoint holds."""
        if self._after:
            self.number, self.before, self._since = (int(saved[name]) for name in NAMES[:3])
            self._lowest = saved[NAMES[3]].copy()
