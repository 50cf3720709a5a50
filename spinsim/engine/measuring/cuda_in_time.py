"""Correlations in time of replica-packed models of space and time on a GPU, whose world lines fit shared memory."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from spinsim.cuda.launch import Launch
from spinsim.model.graph import Graph

THREADS: Final = 512
WORDS: Final = 2048  # of 128 replicas, of one thread block's world lines in shared memory


def fits_in_time(graph: Graph) -> bool:
    """Whether a thread block can hold a world line."""
    return 1 < graph.slices <= WORDS


class InTime:
    """Counts pairs of sites in time whose spins differ.

    Args:
        device: Number of the device.
        graph: Space and time.
        times: Slices from one site of a pair to the other.
        place: Where each site stands.
        shape: Of the state, (samples, blocks).
        replicas: Of each sample.
        pairs: As kernels take them.
    """

    def __init__(
        self,
        device: int,
        graph: Graph,
        times: tuple[int, ...],
        place: npt.NDArray[np.uint32],
        shape: tuple[int, int],
        replicas: int,
        pairs: npt.NDArray[np.void],
    ) -> None:
        import cupy

        lines = graph.world_lines()
        together = min(len(lines), WORDS // graph.slices)
        totals = cupy.zeros((*shape, len(times), 128), cupy.uint32)
        self._shape, self._chunks, self._replicas = shape, -(-len(lines) // together), replicas
        self._count = Launch(device, "measuring/in_time.cu", "correlate_in_time", {
            "state": np.uint64(0), "sites": np.uint32(graph.sites),
            "places": cupy.asarray(place[lines].astype(np.int32)),
            "lines": np.uint32(len(lines)), "slices": np.uint32(graph.slices), "together": np.uint32(together),
            "times": cupy.asarray(np.array(times, np.uint32)), "count": np.uint32(len(times)), "totals": totals,
        }, 16 * together * graph.slices)  # fmt: skip
        self._sort = Launch(device, "measuring/in_time.cu", "sort_in_time", {
            "totals": totals, "blocks": np.uint32(shape[1]), "sites": np.uint32(graph.sites),
            "count": np.uint32(len(times)), "pairs": pairs, "replicas": np.uint32(replicas), "in_time": np.uint64(0),
        })  # fmt: skip

    def queue(self, stream: Any, state: int, pairs: npt.NDArray[np.void], to: int) -> None:
        """Queue the correlations (samples, replicas, times) of a state at an address to another."""
        samples, blocks = self._shape
        self._count(stream, (self._chunks, blocks, samples), THREADS, state=state)
        self._sort(stream, (-(-self._replicas // THREADS), samples, 1), THREADS, pairs=pairs, in_time=to)
