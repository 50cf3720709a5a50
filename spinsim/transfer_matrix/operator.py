"""T = D B D as a linear operator, never as a matrix: by butterflies or by Kronecker factors."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import Any, Final

import numpy as np
from scipy.sparse.linalg import LinearOperator

from spinsim.errors import InputError
from spinsim.machine.threads import Threads
from spinsim.transfer_matrix.cuda import FEWEST_BITS, CudaButterfly, CudaKronecker
from spinsim.transfer_matrix.layer import Layer
from spinsim.transfer_matrix.vectors import Across, Share, columns, module, rows

METHODS: Final = ("auto", "butterfly", "kronecker")
FACTOR_BITS: Final = 6  # of a Kronecker factor: 64 x 64
_ROW_BITS: Final = 13  # 64 KiB of amplitudes and as much of the diagonal fit the second-level cache
_COLUMN: Final = 256
_ONE_THREAD_BITS: Final = 16  # 0.3 ms


class TransferOperator(LinearOperator):
    """One sector of a layer's transfer matrix, divided by exp(``log_scale``).

    On the CPU it is a scipy ``LinearOperator``; on a GPU it multiplies CuPy vectors, so that
    ``cupyx.scipy.sparse.linalg.eigsh`` takes it as well.

    Args:
        device: ``cpu`` or ``cuda``.
        method: ``butterfly`` (2 x 2 factors in cache or registers), ``kronecker`` (64 x 64 factors by matrix products)
            or ``auto``, the faster of the two.
        threads: CPU threads, a pool or a number.
        share: Part of vectors on this device, None for all; other devices multiply at the same time.

    Attributes:
        layer: The layer.
        method: Method of multiplication, ``butterfly`` or ``kronecker``.
        log_scale: Logarithm of the number by which T is divided: ln of an eigenvalue of T is ln of an eigenvalue of
            this operator plus ``log_scale``.
    """

    def __init__(
        self,
        layer: Layer,
        device: str = "cpu",
        method: str = "auto",
        threads: Threads | int | None = None,
        share: Share | None = None,
    ) -> None:
        if method not in METHODS:
            raise InputError(f"method {method!r} is unknown: choose one of {', '.join(METHODS)}")
        super().__init__(np.dtype(np.float64), (layer.dimension, layer.dimension))  # type: ignore[call-arg]
        self.layer, self.device, self.log_scale = layer, device, layer.log_scale
        across, here = None, layer
        if share and share.top:
            across, here = Across(layer, share, device), layer.part(share.index, share.top)
        has_tiles = device != "cuda" or here.bits >= FEWEST_BITS
        self.method = method if method != "auto" else "butterfly" if has_tiles else "kronecker"  # the faster of the two
        if self.method == "butterfly" and not has_tiles:
            raise InputError(f"{here.bits} free spins are too few for butterflies on a GPU: leave method out")
        if device == "cuda" and has_tiles:
            kind = CudaButterfly if self.method == "butterfly" else CudaKronecker
            self._product: Any = kind(here, module("cuda").cuda.Device().id, across)
        elif self.method == "butterfly":
            self._product = _CpuButterfly(here, threads if isinstance(threads, Threads) else Threads(threads), across)
        else:
            self._product = _Kronecker(here, module(device), across)

    def apply(self, x: Any, out: Any) -> Any:
        """T x into ``out``, another vector; returns it."""
        self._product(x, out)
        return out

    def _matvec(self, x: Any) -> Any:
        flat = module(self.device).ascontiguousarray(x.reshape(-1), dtype=np.float64)
        return self.apply(flat, module(self.device).empty_like(flat))

    def __matmul__(self, x: Any) -> Any:
        """A product with a vector of NumPy or CuPy; scipy's own would make NumPy of everything."""
        return self._matvec(x) if self.device == "cuda" and x.ndim == 1 else super().__matmul__(x)

    def _adjoint(self) -> TransferOperator:
        return self


class _CpuButterfly:
    """Two passes over memory, of rows and of columns, by all threads; ``across`` changes the vector between them."""

    def __init__(self, layer: Layer, threads: Threads, across: Across | None) -> None:
        self._layer, self._threads, self._across = layer, threads, across
        self._diagonal = layer.diagonal(np)
        self._low = min(layer.bits, _ROW_BITS)

    def __call__(self, x: Any, out: Any) -> None:
        layer, low, bits = self._layer, self._low, self._layer.bits
        q, flip = layer.ratio, layer.sign * layer.ratio
        both = low == bits and not self._across
        self._split(partial(rows, x, self._diagonal, out, low, q, flip, both), 1 << (bits - low))
        if self._across:
            self._across(out)
            if low == bits:
                out *= self._diagonal
        if low < bits:
            self._split(partial(columns, self._diagonal, out, low, bits, _COLUMN, q), (1 << low) // _COLUMN)

    def _split(self, task: Any, count: int) -> None:
        large = self._threads.count > 1 and self._layer.bits > _ONE_THREAD_BITS
        parts = min(count, 4 * self._threads.count) if large else 1
        edges = [count * i // parts for i in range(parts + 1)]
        self._threads.run(partial(task, *ends) for ends in pairwise(edges))


class _Kronecker:
    """B as a few dense factors, each a matrix product with the reshaped vector."""

    def __init__(self, layer: Layer, xp: Any, across: Across | None) -> None:
        self._layer, self._xp, self._across = layer, xp, across
        self._diagonal = layer.diagonal(xp)
        pair, factor = np.array([[1.0, layer.ratio], [layer.ratio, 1.0]]), np.ones((1, 1))
        self._factors = [xp.asarray(factor := np.kron(factor, pair)) for _ in range(min(layer.bits, FACTOR_BITS))]

    def __call__(self, x: Any, out: Any) -> None:
        layer, xp = self._layer, self._xp
        y = x * self._diagonal
        if layer.sign:
            y = y + (layer.sign * layer.ratio) * y[::-1]
        if self._across:
            self._across(y)
        for bit in range(0, layer.bits, FACTOR_BITS):
            m = min(FACTOR_BITS, layer.bits - bit)
            factor = self._factors[m - 1]
            y = factor @ y.reshape(-1, 1 << m, 1 << bit) if bit else y.reshape(-1, 1 << m) @ factor  # symmetric
        xp.multiply(y.reshape(-1), self._diagonal, out=out)
