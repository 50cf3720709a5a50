"""Adding measurements to the sums over energy on the GPU that makes them (``engine/measuring/energies.py``)."""

from __future__ import annotations

from math import ldexp
from typing import Any, Final

import numpy as np

from spinsim.cuda.launch import ADDRESS, SIZE, Launch, record, struct_type
from spinsim.engine.measuring.cuda_terms import SOURCE, THREADS
from spinsim.engine.measuring.energies import COUNTS, RANGE, SUMS, is_halved
from spinsim.engine.measuring.reduction import Reduced

_FILE: Final = "measuring/energies.cu"
_MOST_CHAINS: Final = 8
"""Threads of a place that share the chains of a term: their additions wait for memory side by side."""
_ARRAYS: Final = {
    "range": RANGE, "counts": COUNTS[0], "sums": SUMS[0], "pair_counts": COUNTS[1], "pair_sums": SUMS[1],
}  # fmt: skip
ENERGIES: Final = struct_type(
    **dict.fromkeys(("terms", "scales", "constants", "pairs", *_ARRAYS), ADDRESS),
    energy=SOURCE,
    inverse=np.float64,
    **dict.fromkeys(("term_count", "samples", "places", "copies", "pair_count", "bins", "blocks"), SIZE),
    **dict.fromkeys(("rows", "pair_rows"), SIZE),
)


class CudaEnergies:
    """The sums over energy of a reduction, in its arrays.

    Args:
        reduced: What is added up, with sums over energy.
        arrays: Of the reduction, by name.
        size: Words of a measurement.
        energy: Where its energies lie, as ``SOURCE``.
        terms: On the device, as ``TERM``.
        tables: ``scales``, ``constants`` and ``pairs`` on the device.
    """

    def __init__(
        self, device: int, reduced: Reduced, arrays: dict[str, Any], size: int, energy: Any, terms: Any, **tables: Any
    ) -> None:
        import cupy

        assert reduced.energies is not None  # noqa: S101  (as the caller has asked)
        self._reduced, self._energies = reduced, reduced.energies
        self._sums = [arrays[name] for name in SUMS if name in arrays]
        e = reduced.energies
        to = record(
            ENERGIES, terms=terms, **tables, **{name: arrays.get(own, 0) for name, own in _ARRAYS.items()},
            energy=energy, inverse=1 / e.unit, term_count=len(reduced.terms), samples=reduced.model.samples,
            places=reduced.places, copies=reduced.copies, pair_count=reduced.pairs if e.pair_rows else 0, bins=e.bins,
            blocks=e.blocks, rows=e.rows, pair_rows=e.pair_rows,
        )  # fmt: skip
        buffers = {"numbers": np.uint64(0), "size": np.uint64(size), "to": to}
        self._widen = Launch(
            device, _FILE, "widen_energies", {**buffers, "count": np.uint32(0), "number": np.uint64(0)}
        )
        self._stream = cupy.cuda.Stream(non_blocking=True)
        self._ready, self._done = (cupy.cuda.Event(disable_timing=True) for _ in range(2))
        self._chains = min(max(reduced.copies, reduced.pairs), _MOST_CHAINS)
        of_measurements = {"chains": np.uint32(self._chains), "block": np.uint64(0), "scale": np.float64(0)}
        self._add = Launch(device, _FILE, "add_energies", buffers | of_measurements)
        self._halve = Launch(device, _FILE, "halve_sums", {"sums": np.uint64(0), "size": np.uint64(0)})

    def add(self, stream: Any, numbers: int, count: int, number: int, block: int) -> None:
        """Queue adding measurements of one block and unit behind a stream's work; ``number`` came before.

        What the stream does until ``join`` goes on beside it: neither fills the device.
        """
        self._ready.record(stream)
        self._stream.wait_event(self._ready)
        self._queue(self._stream, numbers, count, number, block)
        self._done.record(self._stream)

    def join(self, stream: Any) -> None:
        """Let a stream wait for what was added."""
        stream.wait_event(self._done)

    def _queue(self, stream: Any, numbers: int, count: int, number: int, block: int) -> None:
        reduced, energies = self._reduced, self._energies
        if is_halved(number):
            for sums in self._sums:
                grid = -(-sums.size // THREADS), 1, 1
                self._halve(stream, grid, THREADS, sums=sums.data.ptr, size=sums.size)
        self._widen(stream, (reduced.model.samples, 1, 1), THREADS, numbers=numbers, count=count, number=number)
        columns = -(-reduced.model.samples * reduced.places // THREADS)
        grid = columns, len(reduced.terms) + 1 + (energies.pair_rows > 0), count * self._chains
        scale = ldexp(1.0, energies.exponent(number))
        self._add(stream, grid, THREADS, numbers=numbers, block=block, scale=scale)
