"""Correlations in time of replica-packed models of space and time on a GPU, whose world lines fit shared memory."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from spinsim.cuda.launch import Launch

THREADS: Final = 512
WORDS: Final = 2048  # of 128 replicas, of one thread block's world lines in shared memory


def fits_in_time(slices: int) -> bool:
    """Whether a thread block can hold a world line."""
    return 1 < slices <= WORDS


class InTime:
    """Counts pairs in time whose spins, or products of neighbours' spins, differ.

    Args:
        device: Number of the device.
        places: Where each of them stands, (lines, slices).
        times: Slices from one of a pair to the other.
        shape: Of the state, (samples, blocks).
        replicas: Of each sample.
        pairs: As kernels take them.
    """

    def __init__(
        self,
        device: int,
        places: npt.NDArray[np.integer],
        times: tuple[int, ...],
        shape: tuple[int, int],
        replicas: int,
        pairs: npt.NDArray[np.void],
    ) -> None:
        import cupy

        lines, slices = places.shape
        together, sites = min(lines, WORDS // slices), np.uint32(places.size)
        totals = cupy.zeros((*shape, len(times), 128), cupy.uint32)
        self._shape, self._chunks, self._replicas = shape, -(-lines // together), replicas
        self._count = Launch(device, "measuring/in_time.cu", "correlate_in_time", {
            "state": np.uint64(0), "sites": sites, "places": cupy.asarray(places.astype(np.int32)),
            "lines": np.uint32(lines), "slices": np.uint32(slices), "together": np.uint32(together),
            "times": cupy.asarray(np.array(times, np.uint32)), "count": np.uint32(len(times)), "totals": totals,
        }, 16 * together * slices)  # fmt: skip
        self._sort = Launch(device, "measuring/in_time.cu", "sort_in_time", {
            "totals": totals, "blocks": np.uint32(shape[1]), "sites": sites,
            "count": np.uint32(len(times)), "pairs": pairs, "replicas": np.uint32(replicas), "in_time": np.uint64(0),
        })  # fmt: skip

    def queue(self, stream: Any, state: int, pairs: npt.NDArray[np.void], to: int) -> None:
        """Queue the correlations (samples, replicas, times) of a state at an address to another."""
        samples, blocks = self._shape
        self._count(stream, (self._chunks, blocks, samples), THREADS, state=state)
        self._sort(stream, (-(-self._replicas // THREADS), samples, 1), THREADS, pairs=pairs, in_time=to)
