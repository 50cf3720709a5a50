"""GPUs: finding them, reasons for having none, their memory, and the memory of other GPUs that their kernels reach."""

from __future__ import annotations

import ctypes
import os
import socket
import sys
import weakref
import zlib
from contextlib import suppress
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from threading import Thread
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from spinsim.errors import InputError, argument
from spinsim.machine.memory import make_current, on_gpu, readable
from spinsim.machine.stored import make_folder
from spinsim.parallel.session import ranks


class _CuPy:
    """CuPy, which is imported where something of it is first used: its loading takes longer than a small run."""

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module("cupy"), name)


cupy: Any = _CuPy()


def stream_for(owner: Any) -> Any:
    """Create a stream on the present device for an object that owns the memory which the stream's work uses.

    Before this memory is freed, all work of the stream has ended. A later stream may get the same handle, and with it
    the memory that CuPy keeps for the handle; nothing would put the work of both in order, such as clearing sums.
    """
    stream = cupy.cuda.Stream(non_blocking=True)
    weakref.finalize(owner, stream.synchronize).atexit = False
    return stream


def why_not() -> str | None:
    """The reason that keeps ``--device cuda`` from working here, None where nothing does."""
    if "cupy" not in sys.modules and _is_without_driver():
        return "CUDA finds no usable GPU (its driver cannot be loaded): check the driver with nvidia-smi"
    cupy = _cupy()
    if cupy is None:
        return f"install spinsim-ising[cuda13] to use {argument('device', 'cuda')}"
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        return f"CUDA finds no usable GPU ({str(error).split(': ')[-1]}): check the driver with nvidia-smi"
    return None if count else "CUDA finds no GPU: check the driver with nvidia-smi"


@cache
def _is_without_driver() -> bool:
    """Return True if CuPy is installed without a driver; this saves loading CuPy, which outlasts a small run."""
    try:
        ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
    except OSError:
        return find_spec("cupy") is not None
    return False


@cache
def _cupy() -> Any:
    """CuPy, or None if it is missing; cached, as each search for a missing CuPy takes as long as a small run."""
    _avoid_shared_cache()
    try:
        import cupy
    except ImportError:
        return None
    return cupy


def _avoid_shared_cache() -> None:
    """Have CuPy keep kernels in memory if others can write to CUPY_CACHE_DIR, as CuPy runs any code found there."""
    if chosen := os.environ.get("CUPY_CACHE_DIR"):
        try:
            folder = Path(chosen).resolve()
            make_folder(folder)
        except (OSError, RuntimeError):  # the latter where links go round in a circle
            os.environ["CUPY_CACHE_IN_MEMORY"] = "1"
        else:
            os.environ["CUPY_CACHE_DIR"] = str(folder)


def wake() -> None:
    """Have a thread make the first GPU ready, if there is one, which takes the driver a third of a second."""

    def begin() -> None:
        with suppress(Exception):  # the first use of the GPU reports the error
            if why_not() is None:
                make_current(0)

    Thread(target=begin).start()


def names() -> list[str]:
    if why_not() is not None:
        return []
    return [_name(device) for device in range(cupy.cuda.runtime.getDeviceCount())]


@cache
def _name(device: int) -> str:
    """Name of a GPU; cached, as the driver takes a millisecond to collect its properties."""
    return str(cupy.cuda.runtime.getDeviceProperties(device)["name"].decode())


def shared_memory(device: int) -> int:
    return int(cupy.cuda.Device(device).attributes["MaxSharedMemoryPerBlockOptin"])


def has_clusters(device: int) -> bool:
    """Return True if a GPU launches thread blocks together that reach each other's shared memory."""
    return int(cupy.cuda.Device(device).compute_capability) >= 90


def multiprocessors(device: int) -> int:
    return int(cupy.cuda.Device(device).attributes["MultiProcessorCount"])


def free_memory(device: int) -> int:
    """Free bytes of a GPU, including those that CuPy's memory pool holds unused."""
    with on_gpu(device):
        return int(cupy.cuda.runtime.memGetInfo()[0] + cupy.get_default_memory_pool().free_bytes())


def free_blocks() -> None:
    """Return unused memory of CuPy's pool to the present GPU, as it may be too fragmented for a long array."""
    cupy.get_default_memory_pool().free_all_blocks()


def free_in_blocks() -> int:
    """Free bytes of the present GPU for long arrays, without memory that CuPy still holds, as it may be fragmented."""
    free_blocks()
    return int(cupy.cuda.runtime.memGetInfo()[0])


def require_memory(
    device: int, needed: int, subject: str, mend: str = "choose a smaller size, fewer samples or fewer replicas"
) -> None:
    free = free_memory(device)
    if needed > free:
        raise InputError(f"{subject} needs {readable(needed)} on GPU {device} but {readable(free)} are free: {mend}")


HANDLE: Final = 8  # int64 words by which another process opens an allocation
WHOLE: Final = 2**21  # bytes; allocations of a multiple of these share no memory with others


def shared(shape: tuple[int, ...], kind: npt.DTypeLike) -> Any:
    """An array on the present device, in an allocation of its own where other processes may open it."""
    if ranks() is None:
        return cupy.empty(shape, kind)
    size = int(np.prod(shape)) * np.dtype(kind).itemsize
    memory = cupy.cuda.Memory(-(-size // WHOLE) * WHOLE)
    return cupy.ndarray(shape, kind, cupy.cuda.MemoryPointer(memory, 0))


def offer(device: int, array: Any) -> npt.NDArray[np.int64]:
    """Numbers by which other GPUs find an array of ``shared``: machine, process, device, GPU, address and handle."""
    runtime, handle = cupy.cuda.runtime, np.zeros(HANDLE, np.int64)
    if ranks() is not None:
        with suppress(runtime.CUDARuntimeError):  # as on machines that do not let processes share memory
            handle = np.frombuffer(runtime.ipcGetMemHandle(array.data.ptr), np.int64)
    machine, gpu = (zlib.crc32(name.encode()) for name in (socket.gethostname(), runtime.deviceGetPCIBusId(device)))
    return np.array([machine, os.getpid(), device, gpu, array.data.ptr, *handle], np.int64)


class Reached:
    """An array of another GPU."""

    def __init__(self, address: int, device: int, opened: bool) -> None:
        self.address = address
        if opened:
            weakref.finalize(self, _close, address, device).atexit = False


def _close(address: int, device: int) -> None:
    with on_gpu(device):
        cupy.cuda.runtime.ipcCloseMemHandle(address)


def reach(device: int, mine: npt.NDArray[np.int64], theirs: npt.NDArray[np.int64]) -> Reached | None:
    """An array that another GPU offers; None where kernels of this GPU cannot reach it."""
    runtime = cupy.cuda.runtime
    machine, process, other, gpu, address = theirs[:-HANDLE].tolist()
    if machine != mine[0] or gpu == mine[3]:
        return None
    if process == mine[1]:
        return Reached(address, device, False) if reaches(device, other) else None
    if not theirs[-HANDLE:].any():
        return None
    try:
        with on_gpu(device):
            return Reached(runtime.ipcOpenMemHandle(theirs[-HANDLE:].tobytes()), device, True)
    except runtime.CUDARuntimeError:
        return None


@cache
def reaches(device: int, other: int) -> bool:
    """Return True if kernels of a GPU can use the memory of another one of this process; from now on they may."""
    runtime = cupy.cuda.runtime
    if not runtime.deviceCanAccessPeer(device, other):
        return False
    with on_gpu(device):
        try:
            runtime.deviceEnablePeerAccess(other)
        except runtime.CUDARuntimeError as error:
            return "AlreadyEnabled" in str(error)
    return True
