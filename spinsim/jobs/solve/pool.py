"""The lowest distinct states that a search has met; feasible ones come first."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from spinsim.packing import Bits, packed_spins, unpacked_spins
from spinsim.store.contents import Arrays

Spins = npt.NDArray[np.int8]
_A_LOOK, _TESTED = 8, 64  # most states that one look takes in, without and with a test
_KNOWN: Final = 2**16  # states that are recognised as met before


class States:
    """Distinct low states of one sample, from the best one.

    A state and its reverse count as one where ``is_symmetric``. With ``is_feasible``, which takes spins, feasible
    states come before all others.

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
        return np.asarray(unpacked_spins(self._packed(), self.sites), np.int8)

    def _packed(self) -> Bits:
        return np.frombuffer(b"".join(self._bits), np.uint8).reshape(len(self), -(-self.sites // 8))

    @property
    def failed(self) -> npt.NDArray[np.bool_]:
        """True for states that are not feasible, (states,)."""
        return np.array(self._failed, bool)

    def look(self, energies: npt.NDArray[np.float64], spins_of: Callable[[int], Spins]) -> bool:
        """Take in states by their energies; return True if there is a new best one."""
        wanted = np.flatnonzero(energies < self._worst)
        if not wanted.size:
            return False
        order = wanted[np.argsort(energies[wanted], kind="stable")]
        repeats = np.diff(energies[order], prepend=np.nan) == 0  # may be the same state
        several = _TESTED if self._is_feasible is not None else _A_LOOK
        chosen = np.concatenate([order[~repeats], order[repeats]])[:several]
        new = [self.offer(float(energies[k]), spins_of(int(k))) for k in chosen]  # all of them, after a new best too
        return any(new)

    @property
    def _worst(self) -> float:
        """Energy from which on states are of no interest: that of the last one, if it is feasible and the list full."""
        return np.inf if len(self) < self._most or self._failed[-1] else self.energies[-1]

    def offer(self, energy: float, spins: Spins) -> bool:
        """Take in a state; return True if it is the new best one."""
        if self._is_symmetric and spins[0] < 0:
            spins = -spins
        key = bits = packed_spins(spins[None]).tobytes()
        if key in self._known:
            return False
        fails = False
        if self._is_feasible is not None:
            fails = not self._is_feasible(spins)
            if fails and self._is_symmetric and self._is_feasible(-spins):
                bits, fails = packed_spins(-spins[None]).tobytes(), False
            self.tested, self.feasible = self.tested + 1, self.feasible + (not fails)
        if len(self._known) >= _KNOWN:
            self._known = self._keys()
        self._known.add(key)
        place = bisect_right(list(zip(self._failed, self.energies, strict=True)), (fails, energy))
        self.energies.insert(place, energy)
        self._failed.insert(place, fails)
        self._bits.insert(place, bits)
        for kept in (self.energies, self._failed, self._bits):
            del kept[self._most :]
        return place == 0

    def _keys(self) -> set[bytes]:
        """Return the kept states as they are recognised."""
        spins = self.spins()
        if self._is_symmetric:
            spins = spins * spins[:, :1]
        return {row.tobytes() for row in packed_spins(spins)}

    def state(self) -> dict[str, npt.NDArray[Any]]:
        counts = np.array([self.tested, self.feasible])
        return {"energies": np.array(self.energies), "failed": self.failed, "bits": self._packed(), "tested": counts}

    def restore(self, saved: Arrays) -> None:
        self.energies, self._failed = saved["energies"].tolist(), saved["failed"].tolist()
        self._bits = [row.tobytes() for row in saved["bits"]]
        self._known = self._keys()
        self.tested, self.feasible = saved["tested"].tolist()
