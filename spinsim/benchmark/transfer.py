"""Speed of transfer matrices on this machine, applied and diagonalised."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np

from spinsim.benchmark import wait_for
from spinsim.cuda.device import free_memory
from spinsim.errors import InputError
from spinsim.machine.memory import available_bytes, readable
from spinsim.machine.threads import Threads
from spinsim.model.disorder import EdwardsAnderson
from spinsim.model.ising import Ising
from spinsim.model.lattice import chain, square
from spinsim.transfer_matrix.lanczos import Search, ThickRestart
from spinsim.transfer_matrix.layer import CRITICAL, Layer
from spinsim.transfer_matrix.operator import TransferOperator
from spinsim.transfer_matrix.spectrum import Settings, fit, room
from spinsim.transfer_matrix.vectors import Vectors

PASSES: Final = 3
"""Passes over memory, each reading and writing 8 bytes an amplitude: the bound for a product with T."""
WIDTHS: Final = {"cpu": (16, 20, 22), "cuda": (24, 28, 30)}
_LEVELS: Final = 2
_SECONDS: Final = 0.5
_CUPY_INDICES: Final = 2**31 - 1  # CuPy's eigsh counts the elements of its basis in 32 bits, and crashes with more
_CUPY_FEWEST: Final = _LEVELS + 2  # stored vectors that it takes
_PEER_WORK: Final = 8  # most vectors that an eigsh needs in addition to its basis


@dataclass(frozen=True)
class Rate:
    """One method on one layer, in the odd sector."""

    sites: int  # sites of the layer
    amplitudes: int  # amplitudes of a vector
    method: str  # ``butterfly`` or ``kronecker``
    apply_seconds: float  # median time of one product with T
    copy_seconds: float  # time of reading a vector and writing it once
    step_seconds: float  # time of a Lanczos step with its re-orthogonalisation
    solve_seconds: float  # time of two levels to 1e-10, checked for missing ones
    steps: int  # products with T in that time
    peer_seconds: float
    """Time of the same levels by scipy's or CuPy's ``eigsh`` with this operator, NaN where it cannot find them."""
    difference: float  # largest difference of ln of the levels from those of ``eigsh``, NaN likewise
    without_peer: str  # why ``eigsh`` cannot find them, in a sentence, else empty

    @property
    def bandwidth(self) -> float:  # bytes a second, as if the product made three passes over memory
        return PASSES * 16 * self.amplitudes / self.apply_seconds

    @property
    def share(self) -> float:  # of the bound that three passes at the speed of copying set
        return PASSES * self.copy_seconds / self.apply_seconds


def layer_model(sites: int) -> Ising:
    """A square +-J layer where the sites make one, else a chain of the ferromagnet."""
    sides = next(((w, sites // w) for w in range(int(sites**0.5), 2, -1) if sites % w == 0), None)
    return EdwardsAnderson(square(*sides), seed=1) if sides else Ising(chain(sites))


def rates(device: str, threads: int | None, widths: tuple[int, ...], repeats: int) -> Iterator[Rate]:
    pool = Threads(threads if device == "cpu" else 1)
    for sites in widths:
        for method in ("butterfly", "kronecker"):
            yield _measure(layer_model(sites), device, method, pool, repeats)


def _measure(model: Ising, device: str, method: str, pool: Threads, repeats: int) -> Rate:
    there = max(0, room(None if device == "cpu" else 0) - 2 * 8 * 2 ** (model.sites - 1))  # products have two vectors
    basis = fit(model.sites, ("odd",), Settings(_LEVELS, method=method, device=device), there=there).basis
    if not basis:
        raise InputError(f"width {model.sites} leaves no room for stored vectors: give smaller widths")
    k = CRITICAL[1] if model.lattice and model.lattice.dimension == 1 else 0.29
    layer = Layer(model, 0, k, k, "odd")
    operator = TransferOperator(layer, device, method, pool)
    vectors = Vectors(layer.dimension, device, pool)
    x, y = vectors.empty(), vectors.empty()
    vectors.random(1, 0, 0, x)
    applied = _time(lambda: operator.apply(x, y), device, repeats)
    pieces = partial(pool.share_out, lambda first, stop: np.copyto(y[first:stop], x[first:stop]), len(x))
    copied = _time(partial(y.__setitem__, ..., x) if device == "cuda" else pieces, device, repeats)
    ThickRestart(operator.apply, vectors, Search(_LEVELS), basis).cycle()  # compiles
    began, iteration = time.perf_counter(), ThickRestart(operator.apply, vectors, Search(_LEVELS), basis)
    while not iteration.done:
        iteration.cycle()
    levels = iteration.levels()
    values, steps, seconds = levels.value, levels.steps, time.perf_counter() - began
    stored, without = _peer_basis(layer, device, basis)
    peer_seconds, peer = (np.nan, np.full(_LEVELS, np.nan)) if without else _peer(operator, x, device, stored)
    difference = float(np.abs(np.log(values / peer)).max())
    measured = applied, copied, seconds / steps, seconds, steps, peer_seconds, difference, without
    return Rate(model.sites, layer.dimension, operator.method, *measured)


def _time(task: Callable[[], Any], device: str, repeats: int) -> float:
    """Median seconds of a task, which is repeated in succession where it is short."""

    def run(count: int) -> float:
        wait_for(device)
        began = time.perf_counter()
        for _ in range(count):
            task()
        wait_for(device)
        return (time.perf_counter() - began) / count

    count = max(1, int(_SECONDS / repeats / max(run(1), run(1), 1e-6)))
    return statistics.median(run(count) for _ in range(repeats))


def _peer_basis(layer: Layer, device: str, basis: int) -> tuple[int, str]:
    """Stored vectors of the library's Lanczos, or why it cannot run, in a sentence."""
    stored, room = min(basis, layer.dimension - 1), available_bytes()
    without = f"{'CuPy' if device == 'cuda' else 'scipy'}'s eigsh was not run with {layer.dimension} amplitudes: it "
    if device == "cuda":
        stored = min(stored, _CUPY_INDICES // layer.dimension)
        if stored < _CUPY_FEWEST:
            which = f"{stored} of these vectors fit and it needs {_CUPY_FEWEST}"
            return 0, f"{without}counts the elements of its basis in 32 bits, so that {which}"
        room = free_memory(0)
    needed = 8 * layer.dimension * (stored + _PEER_WORK)
    if needed > room:
        return 0, f"{without}needs {readable(needed)} of memory but {readable(room)} are available"
    return stored, ""


def _peer(operator: TransferOperator, start: Any, device: str, basis: int) -> tuple[float, Any]:
    """Seconds and levels of the library's Lanczos with our operator."""
    if device == "cuda":
        from cupyx.scipy.sparse.linalg import eigsh
    else:
        from scipy.sparse.linalg import eigsh
    began = time.perf_counter()
    values = eigsh(operator, _LEVELS, which="LA", v0=start, ncv=basis, tol=1e-10, return_eigenvectors=False)
    wait_for(device)
    seconds = time.perf_counter() - began
    host = values.get() if device == "cuda" else values
    return seconds, np.sort(host)[::-1]
