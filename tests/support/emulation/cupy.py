"""As much of CuPy as spinsim's engines use, on NumPy arrays; kernels run at once, on one multiprocessor.

Kernels of different devices run side by side in the threads that launch them, and reach each other's memory. A thread
begins with GPU 0 and without a context; as in CuPy 14, ``with Device(0)`` gives it none, and unlike there, another
device, allocations and the end of ``with`` do not either: whoever launches must not rely on them.
"""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType, SimpleNamespace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from emulation.compiler import compile_instance
from spinsim.cuda import compile as compiling
from spinsim.cuda import device
from spinsim.cuda.launch import compiled_kernel
from spinsim.machine import memory

SHARED: Final = 232448  # bytes that a block may have, as in device.h
MEMORY: Final = 2**33
ONE_AT_A_TIME: Final = threading.Lock()  # compiling
CURRENT: Final = threading.local()  # the device of a thread, and of its context


class Memory:
    """Where an array lies."""

    def __init__(self, array: npt.NDArray[Any]) -> None:
        self.ptr = array.ctypes.data

    def copy_from_device_async(self, source: Memory, size: int, stream: object) -> None:
        ctypes.memmove(self.ptr, source.ptr, size)

    def copy_to_host_async(self, target: int, size: int, stream: object) -> None:
        ctypes.memmove(target, self.ptr, size)

    def copy_from_host_async(self, source: int, size: int, stream: object) -> None:
        ctypes.memmove(self.ptr, source, size)

    def memset_async(self, value: int, size: int, stream: object) -> None:
        ctypes.memset(self.ptr, value, size)


class Nothing:
    """Streams and events, each of the device that was present when it was made: all is done at once, in order."""

    ptr = 0

    def __init__(self, *given: object, **named: object) -> None:
        self.device = current_device()

    def __enter__(self) -> Nothing:
        return self

    def __exit__(self, *error: object) -> None: ...

    def record(self, stream: Nothing | None = None) -> None:
        assert self.device == (current_device() if stream is None else stream.device), "invalid resource handle"

    def synchronize(self) -> None: ...

    def wait_event(self, event: object) -> None: ...


class Device(Nothing):
    """A device, which is the current one within ``with``."""

    attributes: Final = {"MaxSharedMemoryPerBlockOptin": SHARED, "MultiProcessorCount": 1}
    compute_capability: Final = "90"

    def __init__(self, number: int | None = None) -> None:
        self.id = current_device() if number is None else number

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device) and self.id == other.id

    def __hash__(self) -> int:
        return self.id

    def __enter__(self) -> Device:
        self._before = current_device()
        set_device(self.id)
        return self

    def __exit__(self, *error: object) -> None:
        set_device(self._before)


def current_device() -> int:
    return getattr(CURRENT, "device", 0)


def current_context() -> int:
    """Number of a thread's context, 0 where it has none."""
    return getattr(CURRENT, "context", 0)


def set_device(number: int) -> None:
    CURRENT.device = number


def set_context(context: int) -> None:
    CURRENT.context = context


def make_context(address: int) -> None:
    """Free no memory, by which the present device gets its context."""
    assert address == 0
    set_context(1 + current_device())


class Array(np.ndarray):  # type: ignore[type-arg]
    """An array "on the device"."""

    __module__ = "cupy"  # by which products know what is on a device

    @property
    def data(self) -> Memory:  # type: ignore[override]
        return Memory(self)

    _number = 0

    def __array_finalize__(self, origin: Any) -> None:
        self._number = origin._number if isinstance(origin, Array) else current_device()

    @property
    def device(self) -> Device:  # type: ignore[override]
        return Device(self._number)

    def get(self) -> npt.NDArray[Any]:
        return np.array(self)

    def set(self, values: npt.NDArray[Any]) -> None:
        self[...] = values


def _pinned_memory(size: int) -> Any:
    """Memory that copies go to."""
    memory = type("Bytes", (ctypes.c_char * size,), {})()
    memory.ptr = ctypes.addressof(memory)
    return memory


def _array_in(shape: tuple[int, ...], kind: Any, memory: npt.NDArray[np.uint8]) -> Array:
    """An array in memory that was allocated before."""
    return memory[: int(np.prod(shape)) * np.dtype(kind).itemsize].view(kind).reshape(shape).view(Array)


class Function:
    """A kernel instance."""

    max_dynamic_shared_size_bytes = 0
    every: Final[list[Function]] = []

    def __init__(self, code: str, expression: str) -> None:
        with ONE_AT_A_TIME:
            self.device = current_device()
            self.library = compile_instance(code, expression, self.device)
            self.alone = vars(self.library).setdefault("alone", threading.Lock())  # as it has variables of its own
            self.every.append(self)
            self.kernel = SimpleNamespace(ptr=len(self.every) - 1)


class RawModule:
    """A kernel file."""

    def __init__(self, code: str, options: tuple[str, ...], name_expressions: tuple[str, ...]) -> None:
        self._code = code

    def get_function(self, expression: str) -> Function:
        return Function(self._code, expression)


def _launch(
    function: int,
    gx: int,
    gy: int,
    gz: int,
    threads: int,
    y: int,
    z: int,
    shared: int,
    stream: int,
    values: int,
    _: int,
) -> None:
    assert shared <= SHARED
    grid = (ctypes.c_uint * 3)(gx, gy, gz)
    kernel = Function.every[function]
    assert current_context() == 1 + kernel.device, "CUDA_ERROR_INVALID_CONTEXT"
    with kernel.alone:
        kernel.library.launch_instance(ctypes.c_void_p(values), grid, ctypes.c_uint(threads))


def _axpy(a: float, x: Any, y: Any) -> None:
    y += a * x


def _gemv(transposed: str, alpha: float, a: Any, x: Any, beta: float, y: Any) -> None:
    y[:] = alpha * ((a.T if transposed == "T" else a) @ x) + beta * y


def _module() -> ModuleType:
    """``cupy``."""
    module: Any = ModuleType("cupy")
    makers = ("empty", "zeros", "ones", "full", "ascontiguousarray", "asarray")
    for name in (*makers, "unpackbits", "packbits", "roll", "moveaxis", "sign", "exp", "multiply", "rint", "stack"):
        make = getattr(np, {"asarray": "array"}.get(name, name))
        setattr(module, name, lambda *given, _make=make, **named: _make(*given, **named).view(Array))
    for name in ("int8", "uint8", "int32", "uint32", "int64", "uint64", "float32", "float64"):
        setattr(module, name, getattr(np, name))
    module.RawModule = RawModule
    module.cuda = ModuleType("cupy.cuda")
    module.cuda.Device, module.cuda.Stream, module.cuda.Event = Device, Nothing, Nothing
    module.cuda.get_current_stream = Nothing
    module.cuda.alloc_pinned_memory = _pinned_memory
    module.get_default_memory_pool = lambda: SimpleNamespace(free_bytes=lambda: 0, free_all_blocks=lambda: None)
    module.ndarray, module.cuda.MemoryPointer = _array_in, lambda memory, offset: memory[offset:]
    module.cuda.Memory = lambda size: np.empty(size, np.uint8)
    module.cublas = ModuleType("cupy.cublas")
    module.cublas.dot, module.cublas.axpy, module.cublas.gemv = lambda x, y: np.array(x @ y).view(Array), _axpy, _gemv
    module.cuda.get_elapsed_time = lambda began, ended: 1.0
    module.cuda.driver = SimpleNamespace(
        launchKernel=_launch,
        launchCooperativeKernel=lambda *arguments: _launch(*arguments, 0),
        ctxGetCurrent=current_context,
        ctxSetCurrent=set_context,
        occupancyMaxActiveBlocksPerMultiprocessor=lambda function, threads, shared: 1,
    )
    module.cuda.runtime = SimpleNamespace(
        CUDARuntimeError=RuntimeError,
        getDeviceCount=lambda: 1,
        getDevice=current_device,
        setDevice=set_device,
        free=make_context,
        getDeviceProperties=lambda device: {"name": b"emulator"},
        memGetInfo=lambda: (MEMORY, MEMORY),
        deviceCanAccessPeer=lambda device, other: 1,
        deviceEnablePeerAccess=lambda other: None,
        deviceGetPCIBusId=str,
        ipcGetMemHandle=lambda address: address.to_bytes(64, "little"),
        ipcOpenMemHandle=lambda handle: int.from_bytes(handle, "little"),
        ipcCloseMemHandle=lambda address: None,
    )
    return module


def _forget() -> None:
    """Have everything that belongs to one of both looked for again."""
    compiling.begin.cache_clear()
    compiled_kernel.cache_clear()
    memory.context_of.cache_clear()
    memory.interfaces.cache_clear()
    device._cupy.cache_clear()


@contextmanager
def in_place_of_cupy() -> Iterator[None]:
    """``import cupy`` gives the stand-in."""
    module = _module()
    before = {name: sys.modules.get(name) for name in ("cupy", "cupy.cuda", "cupy.cublas")}
    sys.modules |= {"cupy": module, "cupy.cuda": module.cuda, "cupy.cublas": module.cublas}
    _forget()
    try:
        yield
    finally:
        _forget()
        for name, old in before.items():
            if old is None:
                del sys.modules[name]
            else:
                sys.modules[name] = old
