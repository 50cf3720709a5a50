"""Long vectors on the CPU (NumPy, with Numba kernels) or a GPU (CuPy): all operations of Lanczos in one place.

Sums go over blocks of fixed size in a fixed order, so that on the CPU no number of threads changes a bit.

To the butterflies of the CPU a vector of 2^bits amplitudes is a table of 2^(bits - low) rows of 2^low. The first pass
takes rows, which lie in one piece and fit the second-level cache; the second takes narrow columns of all rows.

Several devices may have a part of each vector (``Share``). ``Across`` applies the factors of the bits that number the
parts, and the flip of all spins, which mirrors parts too. Every part is cut into chunks. In a round each device gets
the same chunk from all parts, and the chunk that mirrors it: all amplitudes that these factors mix. It applies the
factors and gives the chunks back. Each of 2^top devices thus sends 2 (1 - 2^-top) times its part, whatever ``top`` is;
sending whole parts, bit by bit, would send it top + 1 times.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import cache, partial
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spinsim import rng
from spinsim.cuda.compile import instance
from spinsim.cuda.device import multiprocessors
from spinsim.cuda.launch import Launch, round_keys
from spinsim.machine.compiled import kernel, part, real_kernel
from spinsim.machine.threads import Threads
from spinsim.parallel.group import Group
from spinsim.transfer_matrix.layer import Layer

START_FILE: Final = "transfer_matrix/start_vector.cu"
BLOCK: Final = 4096  # amplitudes of one partial sum: a few rows of this length fit the first-level cache
_LONGEST: Final = 2**30  # amplitudes that cuBLAS takes at a time
_LONGEST_ROW: Final = 2**29  # row of a matrix, beyond which cuBLAS was seen to read other memory
ROTATED: Final = {"cpu": 2**18, "cuda": 2**22}  # columns that are multiplied at a time
Array = npt.NDArray[np.float64]


@part
def _pair(y, first, distance, width, q):  # type: ignore[no-untyped-def]
    """One factor [[1, q], [q, 1]] on ``width`` neighbouring pairs."""
    for j in range(first, first + width):
        a, b = y[j], y[j + distance]
        y[j] = a + q * b
        y[j + distance] = b + q * a


@part
def _quadruple(y, first, distance, width, q):  # type: ignore[no-untyped-def]
    """Two factors, of distances d and 2 d."""
    for j in range(first, first + width):
        a, b, c, d = y[j], y[j + distance], y[j + 2 * distance], y[j + 3 * distance]
        e, f, g, h = a + q * b, b + q * a, c + q * d, d + q * c
        y[j] = e + q * g
        y[j + distance] = f + q * h
        y[j + 2 * distance] = g + q * e
        y[j + 3 * distance] = h + q * f


@part
def _octuple(y, first, q):  # type: ignore[no-untyped-def]
    """Three factors on eight neighbours."""
    for j in range(first, first + 8, 2):
        a, b = y[j], y[j + 1]
        y[j], y[j + 1] = a + q * b, b + q * a
    _quadruple(y, first, 2, 2, q)


@real_kernel
def rows(x, diagonal, y, low, q, flip, both, first, last):  # type: ignore[no-untyped-def]
    """Apply the diagonal, the flip of all spins, ``low`` factors and, if ``both``, the diagonal again to some rows."""
    size = 1 << low
    for row in range(first, last):
        begin, end = row * size, (row + 1) * size
        if flip != 0.0:
            top = x.size - 1
            for i in range(begin, end):
                y[i] = diagonal[i] * x[i] + flip * (diagonal[top - i] * x[top - i])
        else:
            for i in range(begin, end):
                y[i] = diagonal[i] * x[i]
        bit = 0
        if low >= 3:
            for i in range(begin, end, 8):
                _octuple(y, i, q)
            bit = 3
        while bit + 1 < low:
            for i in range(begin, end, 4 << bit):
                _quadruple(y, i, 1 << bit, 1 << bit, q)
            bit += 2
        if bit < low:
            for i in range(begin, end, 2 << bit):
                _pair(y, i, 1 << bit, 1 << bit, q)
        if both:
            for i in range(begin, end):
                y[i] *= diagonal[i]


@real_kernel
def columns(diagonal, y, low, bits, width, q, first, last):  # type: ignore[no-untyped-def]
    """Apply factors from ``low`` on and the diagonal, in place, to columns of ``width`` from ``first`` to ``last``."""
    for column in range(first, last):
        begin = column * width
        bit = low
        while bit + 1 < bits:
            step = 1 << bit
            for high in range(0, 1 << bits, 4 << bit):
                for row in range(0, step, 1 << low):
                    _quadruple(y, begin + high + row, step, width, q)
            bit += 2
        if bit < bits:
            step = 1 << bit
            for high in range(0, 1 << bits, 2 << bit):
                for row in range(0, step, 1 << low):
                    _pair(y, begin + high + row, step, width, q)
        for row in range(0, 1 << bits, 1 << low):
            for i in range(begin + row, begin + row + width):
                y[i] *= diagonal[i]


@real_kernel
def project(basis, w, size, first, last, out):  # type: ignore[no-untyped-def]
    """out[block, j] = sum over a block of ``size`` amplitudes of basis[j] w; blocks from ``first`` to ``last``."""
    for block in range(first, last):
        begin, end = block * size, min((block + 1) * size, w.size)
        part = w[begin:end]
        for j in range(len(basis)):
            row, total = basis[j, begin:end], 0.0
            for i in range(part.size):
                total += row[i] * part[i]
            out[block, j] = total


@real_kernel
def subtract(basis, factors, w, size, first, last):  # type: ignore[no-untyped-def]
    """W minus the sum of factors[j] basis[j], in place; four rows at a time, as w would else be stored too often."""
    for block in range(first, last):
        begin, end = block * size, min((block + 1) * size, w.size)
        part = w[begin:end]
        j = 0
        while j + 4 <= len(basis):
            a, b, c, d = basis[j, begin:end], basis[j + 1, begin:end], basis[j + 2, begin:end], basis[j + 3, begin:end]
            for i in range(part.size):
                part[i] -= factors[j] * a[i] + factors[j + 1] * b[i] + factors[j + 2] * c[i] + factors[j + 3] * d[i]
            j += 4
        while j < len(basis):
            row, factor = basis[j, begin:end], factors[j]
            for i in range(part.size):
                part[i] -= factor * row[i]
            j += 1


@kernel
def _fill(first, out, block, plane, k0, k1):  # type: ignore[no-untyped-def]
    """Numbers from (-1, 1), two of each call of Philox; ``first`` is even."""
    c3 = rng.counter_plane(np.uint64(0), np.uint64(rng.Stream.LANCZOS), np.uint64(plane))
    for i in range(0, out.size, 2):
        pair = np.uint64((first + i) >> 1)
        words = rng.philox(pair, np.uint64(block), pair >> rng.SHIFT32, c3, k0, k1, rng.ROUNDS)
        for j in range(2):
            if i + j < out.size:
                bits = (rng.low32(words[2 * j]) << rng.SHIFT32) | rng.low32(words[2 * j + 1])
                grid = np.float64((bits >> np.uint64(12)) << np.uint64(12)) * 2.0**-63
                out[i + j] = grid - (1.0 - 2.0**-52)


def fill_on_gpu(out: Any, first: int, seed: int, block: int, plane: int) -> None:
    import cupy

    room = out if out.size % 2 == 0 else cupy.empty(out.size + 1)
    pairs, device = room.size // 2, out.device.id
    arguments = {"out": room, "first": np.uint64(first // 2), "pairs": np.uint64(pairs), "key": round_keys(seed)}
    arguments |= {"block": np.uint32(block), "plane": np.uint32(plane)}
    blocks = min(-(-pairs // 256), 16 * multiprocessors(device))
    Launch(device, START_FILE, "start_vector", arguments)(cupy.cuda.get_current_stream(), (blocks, 1, 1), 256)
    if room is not out:
        out[:] = room[: out.size]


class Share:
    """A part of 2^-top of the amplitudes, and sums over all parts.

    Without a group, which has 2^top members, the part is the whole. ``index`` is the number of the part, ``size`` the
    number of parts; the highest ``top`` bits of an amplitude's number are the number of its part.
    """

    def __init__(self, group: Group | None = None) -> None:
        self._group = group
        self.index, self.size = (group.index, group.size) if group else (0, 1)
        self.top = self.size.bit_length() - 1

    def sum(self, values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """The sum over all parts, with the same bits at each."""
        return self._group.sum(values) if self._group else values

    def agreed(self, *arrays: npt.NDArray[Any]) -> Sequence[npt.NDArray[Any]]:
        """Return the arrays of the first part at all parts, as libraries may round differently on other processors."""
        if self._group is None:
            return arrays
        mine = self.index == 0
        return [self._group.sum(array if mine else np.zeros_like(array)) for array in arrays]

    def exchange(self, give: list[tuple[Any, int]], get: list[tuple[Any, int]]) -> None:
        assert self._group is not None  # noqa: S101  (it has nothing to exchange)
        self._group.exchange(give, get)


class Vectors:
    """Arithmetic with vectors of one length on one device, or with its part of vectors that several devices share.

    Members of a group call the same methods. ``length`` is the number of amplitudes on this device, ``xp`` is NumPy or
    CuPy.
    """

    def __init__(
        self, dimension: int, device: str = "cpu", threads: Threads | int | None = None, share: Share | None = None
    ) -> None:
        self.dimension, self.device, self.share = dimension, device, share or Share()
        self.length = dimension // self.share.size
        self.xp = module(device)
        self.threads = threads if isinstance(threads, Threads) else Threads(threads if device == "cpu" else 1)

    def empty(self, *shape: int) -> Any:
        """Uninitialised array of vectors, (*shape, length)."""
        return self.xp.empty((*shape, self.length))

    def random(self, seed: int, block: int, plane: int, out: Any) -> None:
        """Fill a vector with random numbers from (-1, 1); block and plane are fields of Philox's counter."""
        before = self.share.index * self.length
        if self.device == "cuda":
            fill_on_gpu(out, before, seed, block, plane)
            return
        keys, step = rng.split_seed(seed), 2**16
        pieces = ((first, out[first : first + step]) for first in range(0, self.length, step))
        self.threads.run(partial(_fill, before + first, piece, block, plane, *keys) for first, piece in pieces)

    def _by_blocks(self, task: Callable[[int, int], None]) -> None:
        """``task(first, last)`` over ranges of blocks, one range a thread where that pays."""
        blocks = -(-self.length // BLOCK)
        self.threads.share_out(task, blocks, None if blocks >= 16 else 0)

    def overlaps(self, basis: Any, w: Any) -> Array:
        """Products of each vector of ``basis`` with w, shape (vectors,)."""
        if self.device == "cuda":
            if self.length > _LONGEST_ROW:
                return np.array([self.dot(x, w) for x in basis])
            return self.share.sum(np.asarray((basis @ w).get()))
        sums = np.empty((-(-self.length // BLOCK), len(basis)))
        self._by_blocks(lambda first, last: project(basis, w, BLOCK, first, last, sums))
        return self.share.sum(np.asarray(np.add.reduce(sums, axis=0)))

    def subtract(self, basis: Any, factors: Array, w: Any) -> None:
        if self.device == "cuda" and self.length > _LONGEST_ROW:
            for x, factor in zip(basis, factors, strict=True):
                self.add(-float(factor), x, w)
        elif self.device == "cuda":
            from cupy import cublas

            cublas.gemv("N", -1.0, basis.T, self.xp.asarray(factors), 1.0, w)
        else:
            self._by_blocks(lambda first, last: subtract(basis, factors, w, BLOCK, first, last))

    def add(self, factor: float, x: Any, y: Any) -> None:
        """Y becomes y + factor x, without room for another vector."""
        if self.device == "cuda":
            from cupy import cublas

            for first in range(0, self.length, _LONGEST):
                cublas.axpy(factor, x[first : first + _LONGEST], y[first : first + _LONGEST])
        else:
            self.subtract(x[None], np.array([-factor]), y)

    def dot(self, x: Any, y: Any) -> float:
        if self.device == "cuda":
            from cupy import cublas

            pieces = range(0, self.length, _LONGEST)
            here = sum(float(cublas.dot(x[i : i + _LONGEST], y[i : i + _LONGEST]).get()) for i in pieces)
            return float(self.share.sum(np.array([here]))[0])
        return float(self.overlaps(x[None], y)[0])

    def norm(self, x: Any) -> float:
        return float(np.sqrt(self.dot(x, x)))

    def rotate(self, basis: Any, mixing: Array) -> None:
        """Replace the first vectors of ``basis`` by combinations of all, with the columns of ``mixing`` as weights."""
        rows = self.xp.asarray(np.ascontiguousarray(mixing.T))
        step = ROTATED[self.device]
        for first in range(0, self.length, step):
            piece = basis[:, first : first + step]
            piece[: len(rows)] = rows @ piece

    def numpy(self, x: Any) -> Array:
        return np.asarray(x.get() if self.device == "cuda" else x.copy())


@cache
def module(device: str) -> Any:
    """NumPy or CuPy."""
    if device == "cuda":
        import cupy

        return cupy
    return np


ACROSS_FILE: Final = "transfer_matrix/across.cu"
MOST_TOP: Final = 4  # most bits that number parts
MIX_THREADS: Final = 256
BUFFER: Final = {"cpu": 2**20, "cuda": 2**25}  # amplitudes of a buffer: 256 MiB on a GPU
_LANES: Final = {"cpu": 1, "cuda": 2}  # buffers; one travels while another is mixed


def buffer_bytes(device: str) -> int:
    """Bytes of all buffers on a device, at most."""
    return 8 * BUFFER[device] * _LANES[device]


OfPiece = Callable[[int], None]


def _nothing(piece: int) -> None: ...


class _Lane(NamedTuple):
    """Resources of a round: a buffer (parts, 2, chunk), the function that mixes it and, on a GPU, a stream."""

    buffer: Any
    mix: Callable[[], None]
    stream: Any = None


class Across:
    """Factors that mix parts, applied to one device's part of a vector, at all devices at the same time.

    The layer belongs to the whole vector; at least ``top`` + 1 bits lie within a part. A round takes two pieces of
    ``piece`` amplitudes.
    """

    def __init__(self, layer: Layer, share: Share, device: str) -> None:
        self._share, parts = share, share.size
        length = layer.dimension // parts
        chunk = min(length, BUFFER[device]) // (2 * parts)
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
        """Apply the factors to a part, in place; on a GPU one buffer travels while another is mixed.

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
        """Carry out a round: ``pairs`` are the chunks that each device mixes, with the chunks that mirror them."""
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
        _mix_pair(pairs[:, 0], pairs[:, 1], ratio)
    if flip:
        _mix_pair(buffer[:, 0], buffer[::-1, 1, ::-1], flip)


def _mix_pair(one: Any, other: Any, factor: float) -> None:
    new = one + factor * other
    other += factor * one
    one[...] = new


def across_instances() -> list[tuple[str, str]]:
    return [(ACROSS_FILE, instance("across", top)) for top in range(1, MOST_TOP + 1)]


class CudaMix:
    """The factors of ``_mix`` on chunks in a buffer (parts, 2, chunk); the second chunks mirror the first."""

    def __init__(self, buffer: Any, ratio: float, flip: float) -> None:
        parts, _, chunk = buffer.shape
        device = buffer.device.id
        numbers = {"chunk": np.uint64(chunk), "ratio": np.float64(ratio), "flip": np.float64(flip)}
        self._launch = Launch(
            device, ACROSS_FILE, instance("across", parts.bit_length() - 1), {"buffer": buffer} | numbers
        )
        self._blocks = min(-(-chunk // MIX_THREADS), 16 * multiprocessors(device))

    def __call__(self) -> None:
        import cupy

        self._launch(cupy.cuda.get_current_stream(), (self._blocks, 1, 1), MIX_THREADS)


@contextmanager
def along_with(streams: Sequence[Any]) -> Iterator[None]:
    """Let streams begin after the work so far of the present stream, and this stream go on when they are done."""
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
