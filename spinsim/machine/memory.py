"""Refusing what cannot fit, before anything is allocated; a GPU whose memory runs out is named."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import cache
from typing import Any, Final

from spinsim.errors import InputError

_ALWAYS_THERE: Final = 2**25
"""Bytes for which nobody asks the system how much there is, which takes longer than small runs are to take."""


def available_bytes() -> int:
    import psutil  # which takes longer to load than small runs are to take

    return int(psutil.virtual_memory().available)


def readable(count: float) -> str:
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} TiB" if count < 1024 else f"{count / 1024:.1f} PiB"


def require(needed: float, subject: str, mend: str = "choose a smaller size, fewer samples or fewer replicas") -> None:
    """Refuse a ``subject`` that needs more memory than there is."""
    if needed <= _ALWAYS_THERE:
        return
    room = available_bytes()
    if needed > room:
        raise InputError(f"{subject} needs {readable(needed)} of memory but {readable(room)} are available: {mend}")


def is_on_gpu(array: Any) -> bool:
    """True for an array of CuPy, found without importing CuPy."""
    return type(array).__module__.partition(".")[0] == "cupy"


@cache
def interfaces() -> tuple[Any, Any]:
    """Interfaces of CUDA's driver and of its runtime: importing them takes as long as a call."""
    from cupy.cuda import driver, runtime

    return driver, runtime


@cache
def context_of(device: int) -> int:
    """Address of the context of a GPU in this process, which is made here."""
    driver, runtime = interfaces()
    runtime.setDevice(device)
    runtime.free(0)
    return int(driver.ctxGetCurrent())


def make_current(device: int) -> None:
    """Give this thread a GPU until it gets another one: for CuPy, and its context for the driver."""
    (driver, runtime), context = interfaces(), context_of(device)
    runtime.setDevice(device)
    driver.ctxSetCurrent(context)


@contextmanager
def on_gpu(device: int) -> Iterator[None]:
    """CuPy's calls and kernels go to the GPU of this number.

    ``with cupy.cuda.Device(0)`` does nothing in a thread that has begun with GPU 0 and has no context yet, so that a
    launch fails there. A thread without a context keeps this one: going back would make one on a GPU that may be full.
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
    """CuPy's calls go to the GPU of this number, and to a stream there if one is given."""
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
