"""What mixes the parts of a vector on a GPU, and streams beside the present one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import numpy as np

from spinsim.cuda.compile import instance
from spinsim.cuda.device import multiprocessors
from spinsim.cuda.launch import Launch

FILE: Final = "transfer_matrix/across.cu"
MOST_TOP: Final = 4  # bits that tell parts apart
THREADS: Final = 256


def instantiations() -> list[tuple[str, str]]:
    """The kernel's instances, with their file."""
    return [(FILE, instance("across", top)) for top in range(1, MOST_TOP + 1)]


class CudaMix:
    """The factors of all parts, on chunks in a buffer (parts, 2, chunk) of which the second ones mirror the first.

    Args:
        buffer: What is changed.
        ratio: The factors are [[1, ratio], [ratio, 1]].
        flip: The same of the flip of all spins, 0 where it is no factor.
    """

    def __init__(self, buffer: Any, ratio: float, flip: float) -> None:
        parts, _, chunk = buffer.shape
        device = buffer.device.id
        arguments = {
            "buffer": buffer,
            "chunk": np.uint64(chunk),
            "ratio": np.float64(ratio),
            "flip": np.float64(flip),
        }
        self._launch = Launch(device, FILE, instance("across", parts.bit_length() - 1), arguments)
        self._blocks = min(-(-chunk // THREADS), 16 * multiprocessors(device))

    def __call__(self) -> None:
        """Mix them, on the present stream."""
        import cupy

        self._launch(cupy.cuda.get_current_stream(), (self._blocks, 1, 1), THREADS)


def new_stream() -> Any:
    """A stream of the present GPU that waits for no other."""
    import cupy

    return cupy.cuda.Stream(non_blocking=True)


@contextmanager
def beside(streams: Sequence[Any]) -> Iterator[None]:
    """Let streams begin when the present one is where it is, and that one go on when they are done."""
    import cupy

    present = cupy.cuda.get_current_stream()
    begun = cupy.cuda.Event(disable_timing=True)
    begun.record(present)
    for stream in streams:
        stream.wait_event(begun)
    yield
    for stream in streams:
        done = cupy.cuda.Event(disable_timing=True)
        done.record(stream)
        present.wait_event(done)
