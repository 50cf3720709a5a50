"""Comparing copies of site-packed lattices on a GPU, which are too large for lists of their sites."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from spinsim.cuda.compile import instance
from spinsim.cuda.device import multiprocessors
from spinsim.cuda.launch import Launch
from spinsim.engine.measuring.cuda_comparison import THREADS, TILE, Comparison, Part
from spinsim.packing import LANES

BLOCKS: Final = 8  # on one multiprocessor
TILES_A_THREAD: Final = 16  # of rows of a column of words
MOST_WORDS: Final = 2**20  # of 128 sites that a block compares


class SiteComparison(Comparison):
    """Of site-packed spins.

    Args:
        slab: The whole lattice, as kernels read it.
        others: As for ``Comparison``.
    """

    def __init__(self, slab: npt.NDArray[np.void], *others: Any) -> None:
        super().__init__(*others)
        self._words = self.model.sites // LANES
        state, pairs, first = np.uint64(0), self.tempering.pairs(0), np.uint32(0)
        if not self.full:
            self._add = self._kernel("differing_lattices", {
                "state": state, "words": np.uint32(self._words), "pairs": pairs, "same": np.uint64(0),
            })  # fmt: skip
            return
        self._add = self._kernel(instance("differing_bonds", len(self._sides)), {
            "state": state, "slab": slab, "pairs": pairs, "same": np.uint64(0),
        })  # fmt: skip
        lattices = {"state": state, "slab": slab, "first": first, "pairs": pairs}
        z = self.sums[2] if len(self._sides) > 2 else np.uint64(0)
        self._rows = self._kernel("layers_of_rows", lattices | {"along_y": self.sums[1], "along_z": z})
        tiles = -(-self.model.sites // (2 * self._sides[0] * TILE))
        stripes = np.uint32(-(-tiles // TILES_A_THREAD))
        self._columns = self._kernel("layers_of_columns", lattices | {"along_x": self.sums[0], "stripes": stripes})

    def _kernel(self, expression: str, arguments: dict[str, Any]) -> Launch:
        return Launch(self.device, "measure/overlaps_site_packed.cu", expression, arguments)

    def _make_parts(self) -> list[Part]:
        sites = self.model.sites
        return [Part(side, sites // side, self.compared, axis) for axis, side in enumerate(self._sides)]

    def _shares(self, compared: int, samples: int) -> int:
        """Thread blocks that share a lattice."""
        fill = BLOCKS * multiprocessors(self.device) // max(1, compared * samples)
        return min(-(-self._words // THREADS), max(fill, -(-self._words // MOST_WORDS)), 65535)

    def _queue_totals(self, stream: Any, state: Any, pairs: npt.NDArray[np.void], overlaps: int, links: int) -> None:
        if self._pairs:
            grid = self._pairs, self._shares(self._pairs, self.model.samples), self.model.samples
            self._add(stream, grid, THREADS, state=state, pairs=pairs, same=links if self.full else overlaps)

    def _queue_sums(self, stream: Any, state: Any, pairs: npt.NDArray[np.void], first: int, samples: int) -> None:
        for sums in self.sums:
            sums.data.memset_async(0, sums.nbytes, stream)
        grid = self.compared, self._shares(self.compared, samples), samples
        for launch in (self._rows, self._columns):
            launch(stream, grid, THREADS, state=state, pairs=pairs, first=first)
