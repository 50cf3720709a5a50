"""GPUs in threads: each launch finds a context, and a GPU without memory is named."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import spinsim as ss
from spinsim import gemm
from spinsim.engine.devices import _gpus_of_rank, seats
from spinsim.errors import InputError
from spinsim.machine.memory import context_of, make_current, on_gpu, using
from spinsim.transfer_matrix.vectors import fill_on_gpu


def in_thread(task: Callable[[], Any]) -> Any:
    """Outcome of a task in a thread of its own, which begins without a context."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(task).result()


@pytest.mark.usefixtures("emulated")
@pytest.mark.parametrize("number", [0, 1])
def test_a_launch_says_that_its_thread_has_no_context(number: int) -> None:
    import cupy

    with on_gpu(number):
        out = cupy.zeros(8)

    def launch() -> None:
        fill_on_gpu(out, 0, 1, 0, 0)

    def with_gpu_of_cupy() -> None:
        with cupy.cuda.Device(number):
            launch()

    with pytest.raises(
        RuntimeError, match=rf"to run on GPU {number}, but thread \S+ has GPU 0 and no context: begin it"
    ):
        in_thread(launch)
    if number == 0:  # CuPy sets a device only if it is another one
        with pytest.raises(RuntimeError, match="and no context"):
            in_thread(with_gpu_of_cupy)
    for begin in (lambda: make_current(number), on_gpu(number).__enter__):
        in_thread(lambda begin=begin: (begin(), launch()))
    with pytest.raises(RuntimeError, match=f"has GPU {1 - number} and context"):
        in_thread(lambda: (make_current(1 - number), launch()))


def present_gpu() -> tuple[int, bool]:
    """Number of a thread's GPU, and if it has the context of that one."""
    from cupy.cuda import driver, runtime

    number = runtime.getDevice()
    return number, driver.ctxGetCurrent() == context_of(number)


@pytest.mark.usefixtures("emulated")
def test_threads_of_seats_have_their_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    import cupy

    monkeypatch.setattr(cupy.cuda.runtime, "getDeviceCount", lambda: 3)
    assert [seat.place.request(present_gpu)() for seat in seats("cuda:3")] == [(0, True), (1, True), (2, True)]
    assert in_thread(lambda: (_gpus_of_rank("cuda:2,"), present_gpu())) == ([2], (2, True))


def use_memory_again() -> None:
    """Leave CuPy's pool with free memory: an allocation from it makes no context."""
    import cupy

    with on_gpu(0):
        cupy.empty(2**22)


def temper() -> Any:
    model = ss.EdwardsAnderson(ss.cubic(4), 2, seed=1)
    return ss.temper(model, temperatures=[1.0, 1.2], sweeps=60, device="cuda").energy


def multiply() -> Any:
    import cupy

    a = np.arange(16.0).reshape(4, 4)
    return gemm.matmul(cupy.asarray(a), cupy.asarray(a)).get()


def find_levels() -> Any:
    return ss.transfer(ss.Ising(ss.chain(16)), device="cuda").levels


@pytest.mark.usefixtures("emulated")
def test_products_in_a_thread_of_a_user() -> None:
    np.testing.assert_array_equal(in_thread(multiply), multiply())


@pytest.mark.gpu
@pytest.mark.parametrize("task", [temper, multiply, find_levels])
def test_threads_of_users(task: Callable[[], Any]) -> None:
    """A thread that has done nothing on a GPU gets what the first one gets."""
    expected = task()
    use_memory_again()
    np.testing.assert_array_equal(in_thread(task), expected)


class OutOfMemoryError(MemoryError):
    """As CuPy raises it."""


class RuntimeFailureError(RuntimeError):
    """Any failure of CUDA."""


@pytest.mark.usefixtures("emulated")
def test_a_gpu_out_of_memory_is_named() -> None:
    OutOfMemoryError.__module__ = RuntimeFailureError.__module__ = "cupy.cuda"
    for error in (
        OutOfMemoryError("Out of memory allocating 512 bytes"),
        RuntimeFailureError("cudaErrorMemoryAllocation: out of memory"),
    ):
        with pytest.raises(InputError, match="GPU 0 is out of memory: stop other programs that use it"), using(0):
            raise error
    for other in (MemoryError("out of memory"), RuntimeFailureError("an illegal memory access")):
        with pytest.raises(type(other), match="memory"), using(0):
            raise other
