"""A GPU as the present one of CuPy, which is named where its memory runs out."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from spinsim.errors import InputError


@contextmanager
def using(device: int, stream: Any = None) -> Iterator[None]:
    """CuPy's calls go to the GPU of this number, and to a stream there if one is given.

    Raises:
        InputError: where its memory runs out, as when another process takes what was free.
    """
    import cupy

    try:
        with cupy.cuda.Device(device), stream or nullcontext():
            yield
    except Exception as error:
        if not type(error).__module__.startswith("cupy") or "out of memory" not in str(error).lower():
            raise
        raise InputError(
            f"GPU {device} is out of memory: end what else uses it, take other GPUs, or choose a smaller size, fewer "
            "samples or fewer replicas"
        ) from error
