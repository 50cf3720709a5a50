"""Squares of sums along world lines on a GPU, which local susceptibilities are averages of."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from spinsim.cuda.device import cupy, require_memory
from spinsim.cuda.launch import ADDRESS, SIZE, Launch, record, struct_type
from spinsim.engine.measuring.cuda import CopiedSpins
from spinsim.engine.measuring.in_time import Integers, shape_of_sums
from spinsim.engine.moves.exchange.ladder import Ladder
from spinsim.engine.protocols import Spins
from spinsim.machine.memory import on_gpu
from spinsim.model.ising import Ising

SQUARES_THREADS: Final = 256
SQUARES_LINES: Final = 16  # that a thread block takes
LINES_TYPE: Final = struct_type(
    places=ADDRESS, holder=ADDRESS, sums=ADDRESS, **dict.fromkeys(("lines", "slices", "replicas"), SIZE)
)


class CudaSquares:
    """``LocalSquares`` on the device that holds the spins.

    Args:
        place: Where each site stands on the device; None: at its number.
        width: Arguments of the kernel that say how wide a state is.
    """

    def __init__(
        self, device: int, model: Ising, ladder: Ladder, place: npt.NDArray[np.uint32] | None, kernel: str,
        blocks: int, width: dict[str, np.uint32],
    ) -> None:  # fmt: skip
        lines, self._shape = model.graph.world_lines(), shape_of_sums(model, ladder)
        room = 8 * int(np.prod(self._shape)) + 4 * (lines.size + model.samples * ladder.replicas)
        require_memory(device, room, f"sums for local susceptibilities of {model.name}")
        self._device, self._grid = device, (-(-len(lines) // SQUARES_LINES), blocks, model.samples)
        with on_gpu(device):
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
        if not isinstance(spins, CopiedSpins):
            raise TypeError("local susceptibilities are added up of the configurations that a measurement holds")
        of_replicas = np.array(holder, np.int32)  # pinned memory may get other numbers before the copy begins

        def queue(stream: Any, state: int) -> None:
            self._holder.data.copy_from_host_async(of_replicas.ctypes.data, of_replicas.nbytes, stream)
            self._launch(stream, self._grid, SQUARES_THREADS, state=state)

        spins.queue_read(self._stream, queue)

    def sums(self) -> Integers:
        with on_gpu(self._device), self._stream:
            return np.asarray(self._sums.get())

    def set_sums(self, sums: Integers) -> None:
        with on_gpu(self._device), self._stream:
            self._sums.set(np.ascontiguousarray(sums))
            self._stream.synchronize()
