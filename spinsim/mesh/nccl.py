"""NCCL through CuPy: arrays from GPU to GPU between ranks."""

from __future__ import annotations

from typing import Any

from spinsim.mesh.places import answers
from spinsim.mesh.session import others


def new_name() -> Any:
    """A name by which GPUs of several ranks find each other, None where a rank lacks NCCL."""
    if not all([_is_there(), *answers([place.ask(_is_there) for place in others()])]):
        return None
    from cupy.cuda import nccl

    return nccl.get_unique_id()


def _is_there() -> bool:
    try:
        from cupy.cuda import nccl
    except ImportError:
        return False
    return bool(nccl.available)


class Nccl:
    """A member among GPUs; all of them make theirs at the same time, each with its own GPU current.

    Args:
        size: How many there are.
        name: Of all of them, as ``new_name`` gives it.
        index: Of this one.
    """

    def __init__(self, size: int, name: Any, index: int) -> None:
        from cupy.cuda import nccl

        self._nccl = nccl
        self._communicator = nccl.NcclCommunicator(size, name, index)

    def exchange(self, give: list[tuple[Any, int]], get: list[tuple[Any, int]]) -> None:
        """Send arrays to members and receive arrays from them, on the present stream.

        NCCL has no tags: between the same two members the order of sends and receives decides.
        """
        import cupy

        stream, byte = cupy.cuda.get_current_stream().ptr, self._nccl.NCCL_UINT8
        self._nccl.groupStart()
        for array, to in give:
            self._communicator.send(array.data.ptr, array.nbytes, byte, to, stream)
        for into, giver in get:
            self._communicator.recv(into.data.ptr, into.nbytes, byte, giver, stream)
        self._nccl.groupEnd()
