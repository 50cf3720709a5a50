"""The lowest distinct states that a search has met; feasible ones come first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from spinsim.packing import packed_spins, unpacked_spins
from spinsim.store.contents import Arrays

Spins = npt.NDArray[np.int8]
_A_LOOK: Final = 8  # most states that one look adds


class States:
    """Distinct low states of one sample, from the best one.

    A state and its reverse count as one where ``is_symmetric``. With ``is_feasible``, which takes spins, feasible states
    come before all others.

    Attributes:
        sites: Number of sites.
        energies: Energies of the states, rising among the feasible ones and among the others.
        tested: Number of states that were tested for feasibility, and ``feasible`` of them that were feasible.
    """

    def __init__(
        self, sites: int, most: int, is_symmetric: bool, is_feasible: Callable[[Spins], bool] | None = None
    ) -> None:
        self.sites, self._most, self._is_symmetric, self._is_feasible = sites, most, is_symmetric, is_feasible
        self.energies: list[float] = []
        self._failed: list[bool] = []  # True for states that are not feasible
        self._bits: list[bytes] = []
        self._known: set[bytes] = set()
        self.tested = self.feasible = 0

    def __len__(self) -> int:
        return len(self.energies)

    def spins(self) -> Spins:
        """All states, (states, sites)."""
        bits = np.frombuffer(b"".join(self._bits), np.uint8).reshape(len(self), -1)
        return np.asarray(unpacked_spins(bits, self.sites), np.int8)

    @property
    def failed(self) -> npt.NDArray[np.bool_]:
        """True for states that are not feasible, (states,)."""
        return np.array(self._failed, bool)

    def look(self, energies: npt.NDArray[np.float64], spins_of: Callable[[int], Spins]) -> bool:
        """Take in states by their energies; return True if there is a new best one."""
        worst = self._worst()
        wanted = np.flatnonzero(energies < worst if len(self) >= self._most else energies <= worst)
        if not wanted.size:
            return False
        lowest = wanted[np.argsort(energies[wanted], kind="stable")[:_A_LOOK]]
        return any([self.offer(float(energies[k]), spins_of(int(k))) for k in lowest])

    def _worst(self) -> float:
        """Energy from which on states are of no interest."""
        if len(self) < self._most:
            return np.inf
        return max(self.energies) if any(self._failed) else self.energies[-1]

    def offer(self, energy: float, spins: Spins) -> bool:
        if self._is_symmetric and spins[0] < 0:
            spins = -spins
        bits = packed_spins(spins[None]).tobytes()
        if bits in self._known:
            return False
        fails = False
        if self._is_feasible is not None:
            fails = not self._is_feasible(spins)
            self.tested, self.feasible = self.tested + 1, self.feasible + (not fails)
        place = sum((f, e) <= (fails, energy) for f, e in zip(self._failed, self.energies, strict=True))
        if place >= self._most:
            return False
        self._known.add(bits)
        self.energies.insert(place, energy)
        self._failed.insert(place, fails)
        self._bits.insert(place, bits)
        if len(self) > self._most:
            self._known.remove(self._bits.pop())
            self.energies.pop()
            self._failed.pop()
        return place == 0

    def state(self) -> dict[str, npt.NDArray[Any]]:
        bits = np.frombuffer(b"".join(self._bits), np.uint8).reshape(len(self), -1)
        counts = np.array([self.tested, self.feasible])
        return {"energies": np.array(self.energies), "failed": self.failed, "bits": bits, "tested": counts}

    def restore(self, saved: Arrays) -> None:
        self.energies, self._failed = saved["energies"].tolist(), saved["failed"].tolist()
        self._bits = [row.tobytes() for row in saved["bits"]]
        self._known = set(self._bits)
        self.tested, self.feasible = saved["tested"].tolist()
