"""A GPU as the present one of CuPy, which is named where its memory runs out."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from spinsim.errors import InputError


@contextmanager
def using(device: int) -> Iterator[None]:
    """CuPy's calls go to the GPU of this number.

    Raises:
        InputError: where its memory runs out, as when another process takes what was free.
    """
    import cupy

    try:
        with cupy.cuda.Device(device):
            yield
    except Exception as error:
        refuse_without_memory(error, device)
        raise


def refuse_without_memory(error: Exception, device: int) -> None:
    """Say of which GPU the memory ran out, where that is what an error of CuPy means.

    Raises:
        InputError: where it does.
    """
    if type(error).__module__.startswith("cupy") and "out of memory" in str(error).lower():
        raise InputError(
            f"GPU {device} is out of memory: end what else uses it, take other GPUs, or choose a smaller size, fewer "
            "samples or fewer replicas"
        ) from error
