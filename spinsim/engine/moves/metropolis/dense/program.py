"""Launches of the kernels of a dense model, whatever its couplings are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from spinsim.cuda.compile import instance
from spinsim.cuda.launch import Launch

DRAWS: Final = 80
"""Bytes of shared memory for what all warps know of random numbers."""


@dataclass(frozen=True)
class Program:
    """Kernels that sweep and add energies, and the couplings that they read."""

    name: str  # of the file in kernels/metropolis/, and of its kernels behind ``sweep_`` and ``energies_``
    kind: tuple[object, ...]  # template parameters of both
    group: int  # replicas of a thread block
    cluster: int  # thread blocks that are launched together
    threads: int  # of a thread block
    shared: int  # bytes of its shared memory
    arguments: dict[str, Any]  # those of both that describe the model
    sweeping: dict[str, Any]  # those of the first alone
    adding: dict[str, Any]  # those of the second alone

    def sweeps(self, device: int, rounds: int, arguments: dict[str, Any]) -> Launch:
        """The kernel of so many Philox rounds that sweeps."""
        return self._launch(device, instance(f"sweep_{self.name}", *self.kind, rounds), self.sweeping | arguments)

    def energies(self, device: int, arguments: dict[str, Any]) -> Launch:
        return self._launch(device, instance(f"energies_{self.name}", *self.kind), self.adding | arguments)

    def _launch(self, device: int, expression: str, arguments: dict[str, Any]) -> Launch:
        return Launch(device, f"metropolis/dense_{self.name}.cu", expression, self.arguments | arguments, self.shared)


def stride(rows: Any, length: int) -> np.uint64:
    """From one sample's row to the next one's; 0 where samples share one."""
    return np.uint64(length if len(rows) > 1 else 0)
