"""Memory that kernels of other GPUs read and write: GPUs of this process, and of others on the same machine."""

from __future__ import annotations

import os
import socket
import weakref
import zlib
from contextlib import suppress
from functools import cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from spinsim.mesh.session import ranks

HANDLE: Final = 8  # int64 by which another process opens an allocation
WHOLE: Final = 2**21  # bytes; allocations of a multiple of these share no memory with others


def shared(shape: tuple[int, ...], kind: npt.DTypeLike) -> Any:
    """An array on the present device, in an allocation of its own where other processes may open it."""
    import cupy

    if ranks() is None:
        return cupy.empty(shape, kind)
    size = int(np.prod(shape)) * np.dtype(kind).itemsize
    memory = cupy.cuda.Memory(-(-size // WHOLE) * WHOLE)
    return cupy.ndarray(shape, kind, cupy.cuda.MemoryPointer(memory, 0))


def offer(device: int, array: Any) -> npt.NDArray[np.int64]:
    """By what other GPUs find an array of ``shared``: machine, process, device, GPU, address and handle."""
    import cupy

    runtime, handle = cupy.cuda.runtime, np.zeros(HANDLE, np.int64)
    if ranks() is not None:
        with suppress(runtime.CUDARuntimeError):  # as on machines that do not let processes share memory
            handle = np.frombuffer(runtime.ipcGetMemHandle(array.data.ptr), np.int64)
    machine, gpu = (zlib.crc32(name.encode()) for name in (socket.gethostname(), runtime.deviceGetPCIBusId(device)))
    return np.array([machine, os.getpid(), device, gpu, array.data.ptr, *handle], np.int64)


class Reached:
    """An array of another GPU.

    Args:
        address: Where it is for kernels of this GPU.
        device: This GPU.
        opened: Whether it belongs to another process.

    Attributes:
        address: As given.
    """

    def __init__(self, address: int, device: int, opened: bool) -> None:
        self.address = address
        if opened:
            weakref.finalize(self, _close, address, device).atexit = False


def _close(address: int, device: int) -> None:
    import cupy

    with cupy.cuda.Device(device):
        cupy.cuda.runtime.ipcCloseMemHandle(address)


def reach(device: int, mine: npt.NDArray[np.int64], theirs: npt.NDArray[np.int64]) -> Reached | None:
    """An array that another GPU offers; None where kernels of this one cannot reach it.

    Args:
        device: Number of this GPU.
        mine: What it offers itself.
        theirs: What the other one offers.
    """
    import cupy

    runtime = cupy.cuda.runtime
    machine, process, other, gpu, address = theirs[:-HANDLE].tolist()
    if machine != mine[0] or gpu == mine[3]:
        return None
    if process == mine[1]:
        return Reached(address, device, False) if reaches(device, other) else None
    if not theirs[-HANDLE:].any():
        return None
    try:
        with cupy.cuda.Device(device):
            return Reached(runtime.ipcOpenMemHandle(theirs[-HANDLE:].tobytes()), device, True)
    except runtime.CUDARuntimeError:
        return None


@cache
def reaches(device: int, other: int) -> bool:
    """Whether kernels of a GPU can read and write the memory of another one of this process; from now on they may."""
    import cupy

    runtime = cupy.cuda.runtime
    if not runtime.deviceCanAccessPeer(device, other):
        return False
    with cupy.cuda.Device(device):
        try:
            runtime.deviceEnablePeerAccess(other)
        except runtime.CUDARuntimeError as error:
            return "AlreadyEnabled" in str(error)
    return True
