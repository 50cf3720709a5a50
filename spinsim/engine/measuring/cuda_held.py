"""Copies of an engine's state that outlast its sweeps."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from functools import partial
from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt

from spinsim.bits import Bits
from spinsim.cuda.device import require_memory
from spinsim.engine.measuring.kept_spins import KeptSpins
from spinsim.engine.protocols import Spins

KEEPING: Final = "keeping the configurations of measurements under way"
MEND: Final = "keep fewer frames, or choose a smaller size, fewer samples or fewer replicas"


class Reads(Protocol):
    """A state that finds configurations in itself and in copies of it.

    It may have ``read_all(state, sample)``, which finds those of all replicas of a sample as bits, too.
    """

    def read(self, state: Any, sample: int, replica: int) -> npt.NDArray[np.int8]:
        """One configuration, fetched by the present stream."""


class HeldSpins(KeptSpins):
    """The configurations of one moment in a copy of the state on the device.

    Args:
        read: As ``KeptSpins`` takes it.
        bits: Likewise.
        read_beside: Given a stream and a function of it and the copy's address, which queues kernels there that read
            the copy: the copy lasts until they have.
    """

    def __init__(
        self,
        read: Spins,
        bits: Callable[[int], Bits] | None,
        read_beside: Callable[[Any, Callable[[Any, int], None]], None],
    ) -> None:
        super().__init__(read, bits)
        self.read_beside = read_beside


class Held:
    """Room for copies of a state on the device, made behind the sweeps that are queued and read beside later ones.

    Args:
        device: Number of the device.
        copies: The room, (copies, ...).
        reads: Stream of those who read.

    Attributes:
        made: The event behind the last copy.
        compared: The event behind the last kernel that reads them.
    """

    def __init__(self, device: int, copies: Any, reads: Any) -> None:
        import cupy

        self._device, self._copies, self._reads = device, copies, reads
        self._stride, self._first = copies.nbytes // len(copies), copies.data.ptr
        self.made, self.compared = (cupy.cuda.Event(disable_timing=True) for _ in range(2))

    def address(self, number: int) -> int:
        """Where a copy lies."""
        return int(self._first + number * self._stride)

    def copy(self, state: Any, number: int, stream: Any) -> None:
        """Queue a copy of a state."""
        self._copies[number].data.copy_from_device_async(state.data, self._stride, stream)

    def spins(self, number: int, state: Reads) -> Spins:
        """What a state finds in a copy of it."""
        import cupy

        def found(read: Callable[..., Any], *which: int) -> Any:
            with cupy.cuda.Device(self._device), self._reads:
                self._reads.wait_event(self.made)
                return read(self._copies[number], *which)

        read_all = getattr(state, "read_all", None)
        bits = None if read_all is None else partial(found, read_all)
        return HeldSpins(partial(found, state.read), bits, partial(self._read_beside, number))

    def _read_beside(self, number: int, stream: Any, queue: Callable[[Any, int], None]) -> None:
        stream.wait_event(self.made)
        queue(stream, self.address(number))
        self.compared.record(stream)  # measurements are given out when the kernels that compare have ended


class HeldStates:
    """Rooms for copies, used again when nothing reads them any more.

    Args:
        device: Number of the device.
        sweeps: The stream of the kernels.
    """

    def __init__(self, device: int, sweeps: Any) -> None:
        import cupy

        self._device, self._sweeps, self._reads = device, sweeps, cupy.cuda.Stream(non_blocking=True)
        self._idle: list[tuple[Any, Any]] = []

    def take(self, state: Any, copies: int) -> Held:
        """Room for copies of a state, always as many.

        Raises:
            InputError: where the device has none.
        """
        import cupy

        if self._idle:
            room, compared = self._idle.pop(0)  # read longest ago
            self._sweeps.wait_event(compared)
        else:
            require_memory(self._device, copies * state.nbytes, KEEPING, MEND)
            room = cupy.empty((copies, *state.shape), state.dtype)
        held = Held(self._device, room, self._reads)
        weakref.finalize(held, self._idle.append, (room, held.compared))
        return held
