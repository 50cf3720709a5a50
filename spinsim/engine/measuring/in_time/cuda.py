"""Correlations in time of replica-packed models of space and time on a GPU, whose world lines fit shared memory."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from spinsim.cuda.launch import Launch

THREADS: Final = 256
LINES: Final = 8  # that a thread block holds in shared memory, at most
MOST_SLICES: Final = 2048
WORDS: Final = 4608  # of 128 replicas, that a thread block holds: a line twice, or all lines of 512 slices and some


def fits_in_time(slices: int) -> bool:
    """Whether a thread block can hold a world line."""
    return 1 < slices <= MOST_SLICES


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

        (lines, slices), sites = places.shape, np.uint32(places.size)
        stretch = slices + max(times)
        together = min(lines, LINES, WORDS // stretch)
        totals = cupy.zeros((*shape, len(times), 128), cupy.uint32)
        self._shape, self._chunks, self._replicas, self._times = shape, -(-lines // together), replicas, len(times)
        self._count = Launch(device, "measuring/in_time.cu", "correlate_in_time", {
            "state": np.uint64(0), "sites": sites, "places": cupy.asarray(places.astype(np.int32)),
            "lines": np.uint32(lines), "slices": np.uint32(slices), "stretch": np.uint32(stretch),
            "together": np.uint32(together), "totals": totals,
            "times": cupy.asarray(np.array(times, np.uint32)), "count": np.uint32(len(times)),
        }, 16 * together * stretch)  # fmt: skip
        self._sort = Launch(device, "measuring/in_time.cu", "sort_in_time", {
            "totals": totals, "blocks": np.uint32(shape[1]), "sites": sites,
            "count": np.uint32(len(times)), "pairs": pairs, "replicas": np.uint32(replicas), "in_time": np.uint64(0),
        })  # fmt: skip

    def queue(self, stream: Any, state: int, pairs: npt.NDArray[np.void], to: int) -> None:
        """Queue the correlations (samples, replicas, times) of a state at an address to another."""
        samples, blocks = self._shape
        self._count(stream, (self._chunks, blocks, samples), THREADS, state=state)
        self._sort(stream, (-(-self._replicas // THREADS), samples, self._times), THREADS, pairs=pairs, in_time=to)
