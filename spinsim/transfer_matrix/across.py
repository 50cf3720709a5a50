"""Factors of the bits that tell parts of a vector from each other, and the flip of all spins, which mirrors them too.

Every part is cut into chunks. In a round each device gets one chunk from all parts, the same one of each, and the chunk
that mirrors it: all that these factors mix. It applies them and gives the chunks back. Of 2^top devices each so sends
2 (1 - 2^-top) times what it has, whatever ``top`` is; sending whole parts, bit by bit, would take top + 1 times.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np

from spinsim.cuda.compile import instance
from spinsim.cuda.device import multiprocessors
from spinsim.cuda.launch import Launch
from spinsim.transfer_matrix.layer import Layer
from spinsim.transfer_matrix.vectors import Share

FILE: Final = "transfer_matrix/across.cu"
MOST_TOP: Final = 4  # bits that tell parts apart
THREADS: Final = 256
ROOM: Final = {"cpu": 2**20, "cuda": 2**25}  # amplitudes of a buffer: 256 MiB on a GPU
_LANES: Final = {"cpu": 1, "cuda": 2}  # buffers; that of one round travels while that of another is mixed


def buffer_bytes(device: str) -> int:
    """Bytes of all buffers on a device, at most."""
    return 8 * ROOM[device] * _LANES[device]


OfPiece = Callable[[int], None]


def _nothing(piece: int) -> None: ...


class _Lane(NamedTuple):
    """Where rounds are carried out: a buffer (parts, 2, chunk), what mixes it, on a GPU a stream."""

    buffer: Any
    mix: Callable[[], None]
    stream: Any = None


class Across:
    """These factors on one device's part of a vector, at all parts at the same time.

    The layer is that of the whole vector; at least ``top`` + 1 bits lie within a part. A round takes two pieces of
    ``piece`` amplitudes.
    """

    def __init__(self, layer: Layer, share: Share, device: str) -> None:
        self._share, parts = share, share.size
        length = layer.dimension // parts
        chunk = min(length, ROOM[device]) // (2 * parts)
        self._shape, self._rounds, self.piece = (-1, chunk), length // (2 * parts * chunk), parts * chunk
        factors = layer.ratio, layer.sign * layer.ratio
        if device == "cuda":
            import cupy

            buffers = [cupy.empty((parts, 2, chunk)) for _ in range(min(_LANES[device], self._rounds))]
            streams = (cupy.cuda.Stream(non_blocking=True) for _ in buffers)  # none waits for another
            pairs = zip(buffers, streams, strict=True)
            self._lanes = [_Lane(buffer, CudaMix(buffer, *factors), stream) for buffer, stream in pairs]
        else:
            buffer = np.empty((parts, 2, chunk))
            self._lanes = [_Lane(buffer, partial(_mix, buffer, *factors))]

    def __call__(self, y: Any, before: OfPiece = _nothing, after: OfPiece = _nothing) -> None:
        """Apply them to a part, in place; on a GPU one buffer travels while another is mixed.

        ``before`` makes a piece of the part ready, by its number, and ``after`` goes on with it while others travel.
        """
        streams = [lane.stream for lane in self._lanes if lane.stream is not None]
        chunks, parts = y.reshape(self._shape), range(self._share.size)
        with along_with(streams) if streams else nullcontext():
            for number in range(self._rounds):
                first = number * len(parts)
                lane = self._lanes[number % len(self._lanes)]
                pieces = number, 2 * self._rounds - 1 - number
                with lane.stream or nullcontext():
                    for piece in pieces:
                        before(piece)
                    self._round(lane, [(chunks[first + j], chunks[len(chunks) - 1 - first - j]) for j in parts])
                    for piece in pieces:
                        after(piece)

    def _round(self, lane: _Lane, pairs: list[tuple[Any, Any]]) -> None:
        """One of them: ``pairs`` are the chunks that each device mixes, with those that mirror them."""
        share, (buffer, mix, _) = self._share, lane
        mine, others = share.index, [j for j in range(share.size) if j != share.index]
        there = [(pairs[j][half], j) for j in others for half in range(2)]
        here = [(buffer[j, half], j) for j in others for half in range(2)]
        for half in range(2):
            buffer[mine, half] = pairs[mine][half]
        share.exchange(there, here)
        mix()
        for half in range(2):
            pairs[mine][half][:] = buffer[mine, half]
        share.exchange(here, there)


def _mix(buffer: Any, ratio: float, flip: float) -> None:
    """Factors [[1, ratio], [ratio, 1]] of every bit of the first index, then the flip, on the CPU."""
    parts = len(buffer)
    for bit in range(parts.bit_length() - 1):
        pairs = buffer.reshape(parts >> (bit + 1), 2, -1)
        _pair(pairs[:, 0], pairs[:, 1], ratio)
    if flip:
        _pair(buffer[:, 0], buffer[::-1, 1, ::-1], flip)


def _pair(one: Any, other: Any, factor: float) -> None:
    new = one + factor * other
    other += factor * one
    one[...] = new


def across_instances() -> list[tuple[str, str]]:
    return [(FILE, instance("across", top)) for top in range(1, MOST_TOP + 1)]


class CudaMix:
    """The factors of ``_mix`` on chunks in a buffer (parts, 2, chunk) of which the second ones mirror the first."""

    def __init__(self, buffer: Any, ratio: float, flip: float) -> None:
        parts, _, chunk = buffer.shape
        device = buffer.device.id
        numbers = {"chunk": np.uint64(chunk), "ratio": np.float64(ratio), "flip": np.float64(flip)}
        self._launch = Launch(device, FILE, instance("across", parts.bit_length() - 1), {"buffer": buffer} | numbers)
        self._blocks = min(-(-chunk // THREADS), 16 * multiprocessors(device))

    def __call__(self) -> None:
        import cupy

        self._launch(cupy.cuda.get_current_stream(), (self._blocks, 1, 1), THREADS)


@contextmanager
def along_with(streams: Sequence[Any]) -> Iterator[None]:
    """Let streams begin where the present one is now, and that one go on when they are done."""
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
