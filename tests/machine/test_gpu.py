"""What is said of a GPU without memory."""

from __future__ import annotations

import pytest

from spinsim.errors import InputError
from spinsim.machine.memory import using


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
