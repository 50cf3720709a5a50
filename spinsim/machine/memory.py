"""Refusal of runs that do not fit, before anything is allocated; if a GPU runs out of memory, the message names it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import cache
from typing import Any, Final

from spinsim.errors import InputError

_ALWAYS_THERE: Final = 2**25
"""Bytes that are always assumed to be available, because asking the system takes longer than small runs."""


def available_bytes() -> int:
    import psutil  # takes longer to load than small runs take

    return int(psutil.virtual_memory().available)


def readable(count: float) -> str:
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} TiB" if count < 1024 else f"{count / 1024:.1f} PiB"


def require(needed: float, subject: str, mend: str = "choose a smaller size, fewer samples or fewer replicas") -> None:
    """Refuse a ``subject`` that needs more memory than is available."""
    if needed <= _ALWAYS_THERE:
        return
    room = available_bytes()
    if needed > room:
        raise InputError(f"{subject} needs {readable(needed)} of memory but {readable(room)} are available: {mend}")


def is_on_gpu(array: Any) -> bool:
    """True for a CuPy array, without importing CuPy."""
    return type(array).__module__.partition(".")[0] == "cupy"


@cache
def interfaces() -> tuple[Any, Any]:
    """Interfaces of CUDA's driver and runtime, cached because importing them takes as long as a call."""
    from cupy.cuda import driver, runtime

    return driver, runtime


@cache
def context_of(device: int) -> int:
    """Create the context of a GPU in this process, and return its address."""
    driver, runtime = interfaces()
    runtime.setDevice(device)
    runtime.free(0)
    return int(driver.ctxGetCurrent())


def make_current(device: int) -> None:
    """Make a GPU current for this thread, both in CuPy and, by its context, in the driver."""
    (driver, runtime), context = interfaces(), context_of(device)
    runtime.setDevice(device)
    driver.ctxSetCurrent(context)


@contextmanager
def on_gpu(device: int) -> Iterator[None]:
    """Send CuPy's calls and kernels within the block to GPU ``device``.

    ``with cupy.cuda.Device(0)`` does nothing in a thread that has begun with GPU 0 and has no context yet, so that a
    launch fails there. A thread without a context keeps this GPU afterwards: going back would create a context on a GPU
    that may be full.
    """
    before = interfaces()[1].getDevice() if _has_context() else device
    make_current(device)
    try:
        yield
    finally:
        make_current(before)


def _has_context() -> bool:
    driver = interfaces()[0]
    try:
        return bool(driver.ctxGetCurrent())
    except driver.CUDADriverError:  # nothing has initialised the driver yet
        return False


@contextmanager
def using(device: int, stream: Any = None) -> Iterator[None]:
    """Send CuPy's calls within the block to GPU ``device``, and to a stream there if one is given."""
    try:
        with on_gpu(device), stream or nullcontext():
            yield
    except Exception as error:
        if not type(error).__module__.startswith("cupy") or "out of memory" not in str(error).lower():
            raise
        raise InputError(
            f"GPU {device} is out of memory: stop other programs that use it, take other GPUs, or choose a "
            "smaller size, fewer samples or fewer replicas"
        ) from error
