"""Squares of the sums of spins along world lines on a GPU, added up beside later sweeps where copies of a state lie."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from spinsim.cuda.device import require_memory
from spinsim.cuda.launch import ADDRESS, SIZE, Launch, record, struct_type
from spinsim.engine.measuring.cuda_held import HeldSpins
from spinsim.engine.measuring.in_time.local import Integers, shape_of_sums
from spinsim.engine.moves.exchange.ladder import Ladder
from spinsim.engine.protocols import Spins
from spinsim.model.ising import Ising

THREADS: Final = 256
LINES: Final = 16  # that a thread block takes
LINES_TYPE: Final = struct_type(
    places=ADDRESS, holder=ADDRESS, sums=ADDRESS, **dict.fromkeys(("lines", "slices", "replicas"), SIZE)
)


class CudaSquares:
    """``LocalSquares`` on the device that holds the spins.

    Args:
        device: Number of the device.
        model: Of space and time.
        ladder: Where its replicas stand.
        place: Where each site stands on the device; None: at its number.
        kernel: Name of the kernel that reads them.
        blocks: Of 128 replicas.
        width: Arguments of the kernel that say how wide a state is.

    Raises:
        InputError: where the device has no room for the sums.
    """

    def __init__(
        self,
        device: int,
        model: Ising,
        ladder: Ladder,
        place: npt.NDArray[np.uint32] | None,
        kernel: str,
        blocks: int,
        width: dict[str, np.uint32],
    ) -> None:
        import cupy

        lines, self._shape = model.graph.world_lines(), shape_of_sums(model, ladder)
        room = 8 * int(np.prod(self._shape)) + 4 * (lines.size + model.samples * ladder.replicas)
        require_memory(device, room, f"sums for local susceptibilities of {model.name}")
        self._device, self._grid = device, (-(-len(lines) // LINES), blocks, model.samples)
        with cupy.cuda.Device(device):
            self._stream = cupy.cuda.Stream(non_blocking=True)
            with self._stream:
                places = cupy.asarray((lines if place is None else place[lines]).astype(np.int32))
                self._holder = cupy.zeros(self._shape[:3], cupy.int32)
                self._sums = cupy.zeros(self._shape, cupy.int64)
        self._kept = places  # the record holds addresses alone
        to = record(
            LINES_TYPE, places=places, holder=self._holder, sums=self._sums,
            lines=len(lines), slices=model.graph.slices, replicas=ladder.replicas,
        )  # fmt: skip
        given = {"state": np.uint64(0), "sites": np.uint32(model.sites), **width, "to": to}
        self._launch = Launch(device, "measuring/local.cu", kernel, given)

    def add(self, spins: Spins, holder: npt.NDArray[np.int32]) -> None:
        """Queue adding the configurations of a measurement, which this engine has made."""
        if not isinstance(spins, HeldSpins):
            raise TypeError("local susceptibilities are added up of the configurations that a measurement holds")
        of_replicas = np.array(holder, np.int32)  # pinned memory may get other numbers before the copy begins

        def queue(stream: Any, state: int) -> None:
            self._holder.data.copy_from_host_async(of_replicas.ctypes.data, of_replicas.nbytes, stream)
            self._launch(stream, self._grid, THREADS, state=state)

        spins.read_beside(self._stream, queue)

    def sums(self) -> Integers:
        """The sums so far."""
        import cupy

        with cupy.cuda.Device(self._device), self._stream:
            return np.asarray(self._sums.get())

    def set_sums(self, sums: Integers) -> None:
        """Go back to such sums."""
        import cupy

        with cupy.cuda.Device(self._device), self._stream:
            self._sums.set(np.ascontiguousarray(sums))
            self._stream.synchronize()
