"""Copies of an engine's state that outlast its sweeps."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from spinsim.engine.base import Spins
from spinsim.engine.cuda.device import require_memory


class HeldStates:
    """Copies on the device, made behind the sweeps that are queued and read beside later ones.

    A copy's memory serves the next one when the function that reads it is gone.

    Args:
        device: Number of the device.
        sweeps: The stream of the kernels.
    """

    def __init__(self, device: int, sweeps: Any) -> None:
        import cupy

        self._device, self._sweeps = device, sweeps
        self._reads = cupy.cuda.Stream(non_blocking=True)
        self._idle: list[Any] = []

    def hold(self, state: Any, read: Callable[[Any, int, int], npt.NDArray[np.int8]]) -> tuple[Any, Spins]:
        """Copy ``state``: the copy, and a function that applies ``read`` to it.

        Raises:
            InputError: where the device has no room for one more copy.
        """
        import cupy

        if not self._idle:
            require_memory(self._device, state.nbytes, "a copy of the spins")
        copy = self._idle.pop() if self._idle else cupy.empty(state.shape, state.dtype)
        copy.data.copy_from_device_async(state.data, state.nbytes, self._sweeps)
        copied = cupy.cuda.Event(disable_timing=True)
        copied.record(self._sweeps)

        def spins(sample: int, replica: int) -> npt.NDArray[np.int8]:
            with cupy.cuda.Device(self._device), self._reads:
                self._reads.wait_event(copied)
                return read(copy, sample, replica)

        weakref.finalize(spins, self._idle.append, copy)
        return copy, spins
