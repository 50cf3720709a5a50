"""Kernel launches through the driver, with arguments laid out once; CuPy's own call does this anew each time.

Kernels take numbers, addresses of arrays, and structs of both by value. The host reads totals that kernels add up on
the device while later sweeps run.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable
from functools import cache, cached_property
from math import prod
from threading import current_thread
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from spinsim import rng
from spinsim.cuda.compile import begin, kernel, parameters
from spinsim.cuda.device import cupy, stream_for
from spinsim.machine.memory import context_of, interfaces, on_gpu

Struct = np.dtype[np.void]

ADDRESS: Final = np.uint64
SIZE: Final = np.uint64  # size_t


def struct_type(**members: Any) -> Struct:
    """The type of a C struct: the types of its members, in order, by the names that they have in the kernels."""
    return np.dtype(list(members.items()), align=True)


KEY: Final = struct_type(low=(np.uint32, rng.ROUNDS), high=(np.uint32, rng.ROUNDS))


def address(argument: Any) -> Any:
    """An array on the device as its address; anything else as it is."""
    return getattr(getattr(argument, "data", None), "ptr", argument)


def record(kind: Struct, **members: Any) -> npt.NDArray[np.void]:
    """A struct by the names of its members: numbers, structs as tuples, arrays on the device as their address."""
    names = kind.names or ()
    if members.keys() != set(names):
        raise TypeError(f"a struct of {', '.join(names)} is given {', '.join(members)}")
    return np.array(tuple(address(members[name]) for name in names), kind)


def round_keys(seed: int) -> npt.NDArray[np.void]:
    """The two key words of every round, as ``KEY``."""
    first, second = (np.uint32(word) for word in rng.split_seed(seed))
    rounds = np.arange(rng.ROUNDS, dtype=np.uint32)
    low, high = first + rounds * np.uint32(rng.WEYL_0), second + rounds * np.uint32(rng.WEYL_1)  # modulo 2^32
    return record(KEY, low=low, high=high)


class Fields:
    """Arrays in one buffer of int64 words, fetched by one copy: in the order given, each beginning at a whole word."""

    def __init__(self, **fields: tuple[tuple[int, ...], Any]) -> None:
        self.sizes = {name: prod(shape) for name, (shape, _) in fields.items()}
        self.words, self._places, self.size = {}, {}, 0
        for name, (shape, kind) in fields.items():
            dtype = np.dtype(kind)
            self.words[name] = self.size
            self._places[name] = 8 * self.size, 8 * self.size + self.sizes[name] * dtype.itemsize, dtype, shape
            self.size += -(-self.sizes[name] * dtype.itemsize // 8)

    def split(self, words: Any) -> dict[str, Any]:
        """Split a buffer into its arrays; several buffers (..., words) give arrays with the same leading axes."""
        octets, before = words.view(np.uint8), words.shape[:-1]
        return {
            name: octets[..., first:end].view(dtype).reshape(*before, *shape)
            for name, (first, end, dtype, shape) in self._places.items()
        }


def in_memory(argument: Any) -> npt.NDArray[Any]:
    """An argument as the bytes that a kernel receives: arrays on the device as their address."""
    where = address(argument)
    return np.array([argument]) if where is argument else np.array([where], np.uint64)


@cache
def compiled_kernel(device: int, file: str, expression: str, shared: int) -> Any:
    """A kernel that may use ``shared`` bytes of shared memory; cached, as small products launch it anew each time."""
    function = kernel(device, file, expression)
    with on_gpu(device):  # CuPy returns the function of the current device
        if shared:  # the limit belongs to the function, which other launches share
            function.max_dynamic_shared_size_bytes = max(shared, function.max_dynamic_shared_size_bytes)
        return function.kernel


@cache
def _blocks_at_once(function: int, threads: int, shared: int) -> int:
    from cupy.cuda import driver

    return int(driver.occupancyMaxActiveBlocksPerMultiprocessor(function, threads, shared))


class Launch:
    """One kernel instance on one device and its arguments.

    Args:
        arguments: NumPy scalars, structs and arrays on the device, by the names of the kernel's parameters.
    """

    def __init__(self, device: int, file: str, expression: str, arguments: dict[str, Any], shared: int = 0) -> None:
        names = parameters(file, expression)
        if arguments.keys() != set(names):
            raise TypeError(f"{file}: {expression} takes {', '.join(names)}, not {', '.join(arguments)}")
        begin(device, file, expression)  # the first call waits for the compiled kernel
        self._kernel, self._shared = (device, file, expression), shared
        self._kept = arguments  # device arrays live as long as the launch
        self._values = {name: in_memory(arguments[name]) for name in names}
        self._pointers = np.array([value.ctypes.data for value in self._values.values()], np.uintp)

    @cached_property
    def _function(self) -> int:
        return int(compiled_kernel(*self._kernel, self._shared).ptr)

    def blocks_at_once(self, threads: int) -> int:
        """Number of blocks of ``threads`` threads that one multiprocessor holds."""
        return _blocks_at_once(self._function, threads, self._shared)

    def __call__(
        self, stream: Any, grid: tuple[int, int, int], threads: int, wait: bool = False, **changed: Any
    ) -> None:
        """Launch, after giving some arguments new values; ``wait`` says that blocks wait for each other.

        Raises:
            RuntimeError: where this thread has another GPU, or no context yet.
        """
        (driver, runtime), device = interfaces(), self._kernel[0]
        present, context = runtime.getDevice(), driver.ctxGetCurrent()
        if present != device or context != context_of(device):
            held = f"context {context:#x}" if context else "no context"
            raise RuntimeError(
                f"{self._kernel[2]} is to run on GPU {device}, but thread {current_thread().name} has GPU {present} "
                f"and {held}: begin it with machine.memory.make_current({device})"
            )
        for name, value in changed.items():
            self._values[name][0] = value
        where = self._shared, stream.ptr, self._pointers.ctypes.data
        if wait:  # the driver refuses a grid that cannot be resident at once
            driver.launchCooperativeKernel(self._function, *grid, threads, 1, 1, *where)
        else:
            driver.launchKernel(self._function, *grid, threads, 1, 1, *where, 0)


KEPT: Final = 8  # totals whose pinned memory arrays may share; with more totals in use, arrays are copies


Fetched = Callable[..., npt.NDArray[np.int64]]
"""Waits for the rows that were copied and returns all or one: pinned memory, or copies where many are kept."""


class Totals:
    """Sums on the device.

    Attributes:
        sums: int64 on the device; 0 when a kernel begins to add to them.
        parts: Addresses of ``sums[0]``, ``sums[1]`` and so on.
        cleared: The event after which sums are 0 for the next kernel.
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.sums: Any = cupy.zeros(shape, cupy.int64)
        self.parts = tuple(part.data.ptr for part in self.sums)
        self.added, self.copied, self.cleared = (cupy.cuda.Event(disable_timing=True) for _ in range(3))


class TotalsPool:
    """An engine's totals, used again and again.

    A separate stream copies totals to the host and clears them, so that sweeps wait for neither. Totals are reused when
    the function that reads them and the arrays that it returned are gone. That function may be called late, several
    times or never.

    Args:
        clears: True if totals must be 0 for the next kernel.
    """

    def __init__(self, sweeps: Any, clears: bool = True) -> None:
        self._sweeps, self._clears = sweeps, clears
        self._copies, self._side_stream = stream_for(self), stream_for(self)
        weakref.finalize(self, sweeps.synchronize).atexit = False  # as kernels there read and clear totals
        self._idle: list[Totals] = []
        self._pinned: dict[int, list[Any]] = {}  # idle memory on the host by its bytes; it takes long to be allocated
        self._made = 0

    def reserve(self, shape: tuple[int, ...]) -> Totals:
        """Return totals that are 0 for the kernel launched next; ``shape`` is always the same."""
        if self._idle:
            totals = self._idle.pop()
        else:
            with self._copies:  # the totals belong to this stream's memory pool, which frees them after the copies
                totals = Totals(shape)
                self._made += 1
                totals.cleared.record(self._copies)
        self._sweeps.wait_event(totals.cleared)
        return totals

    def give_back(self, totals: Totals) -> None:
        """Take totals that a kernel just launched has read and cleared."""
        totals.cleared.record(self._sweeps)
        self._idle.append(totals)

    def fetch(
        self, totals: Totals, queue_more: Callable[[Any], None] | None = None, rows: range | None = None
    ) -> Fetched:
        """Start copying totals after the kernel just launched; the function returned waits for them, or one row.

        ``queue_more`` gets a stream where it may queue further additions, which run in parallel with later sweeps. Only
        ``rows`` are copied.
        """
        rows = range(len(totals.sums)) if rows is None else rows
        row = totals.sums.nbytes // len(totals.sums)
        totals.added.record(self._sweeps)
        if queue_more is not None:
            self._side_stream.wait_event(totals.added)
            queue_more(self._side_stream)
            totals.added.record(self._side_stream)
        self._copies.wait_event(totals.added)
        shape, size = (len(rows), *totals.sums.shape[1:]), row * len(rows)
        idle = self._pinned.setdefault(size, [])
        memory = idle.pop() if idle else cupy.cuda.alloc_pinned_memory(size)
        totals.sums[rows.start :].data.copy_to_host_async(memory.ptr, size, self._copies)
        totals.copied.record(self._copies)
        if self._clears:
            totals.sums.data.memset_async(0, totals.sums.nbytes, self._copies)
        totals.cleared.record(self._copies)
        lent = (ctypes.c_char * size).from_address(memory.ptr)  # lives as long as any array of it
        weakref.finalize(lent, self._give_back_later, totals, memory, idle)

        def fetched(row: int | None = None) -> npt.NDArray[np.int64]:
            totals.copied.synchronize()
            whole = np.frombuffer(lent, np.int64).reshape(shape)
            numbers = whole if row is None else whole[row - rows.start]
            return numbers.copy() if self._made - len(self._idle) > KEPT else numbers

        return fetched

    def _give_back_later(self, totals: Totals, memory: Any, idle: list[Any]) -> None:
        totals.copied.synchronize()  # pinned memory is not given to others while a copy is under way
        idle.append(memory)
        self._idle.append(totals)
