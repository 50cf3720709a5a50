"""Comparing copies of site-packed lattices on a GPU, which are too large for lists of their sites."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from spinsim.cuda.compile import instance
from spinsim.cuda.device import multiprocessors
from spinsim.cuda.launch import Launch
from spinsim.engine.measuring.cuda_comparison import THREADS, TILE, Compared, Comparison, Part, PartSums, Struct
from spinsim.packing import LANES

BLOCKS: Final = 8  # on one multiprocessor
TILES_A_THREAD: Final = 16  # of rows of a column of words
MOST_WORDS: Final = 2**20  # of 128 sites that a block compares


def compare_lattices(what: Compared, slab: npt.NDArray[np.void]) -> Comparison:
    """The comparison of site-packed spins.

    Args:
        what: What is compared.
        slab: The whole lattice, as kernels read it.
    """
    sites = what.model.sites
    held = PartSums(what, [Part(side, sites // side, what.count, axis) for axis, side in enumerate(what.sides)])
    return Comparison(what, held, LatticeCounting(what, held, slab))


class LatticeCounting:
    """``CopyCounting`` of whole words, row by row.

    Args:
        what: What is compared.
        held: The sums of its parts.
        slab: The whole lattice, as kernels read it.
    """

    def __init__(self, what: Compared, held: PartSums, slab: npt.NDArray[np.void]) -> None:
        self._what, self._held, self._words = what, held, what.model.sites // LANES
        state, pairs, first = np.uint64(0), what.tempering.pairs(0), np.uint32(0)
        if not what.full:
            self._add = self._kernel("differing_lattices", {
                "state": state, "words": np.uint32(self._words), "pairs": pairs, "same": np.uint64(0),
            })  # fmt: skip
            self._layers: list[Launch] = []
            return
        self._add = self._kernel(instance("differing_bonds", len(what.sides)), {
            "state": state, "slab": slab, "pairs": pairs, "same": np.uint64(0),
        })  # fmt: skip
        lattices = {"state": state, "slab": slab, "first": first, "pairs": pairs}
        z = held.sums[2] if len(what.sides) > 2 else np.uint64(0)
        tiles = -(-what.model.sites // (2 * what.sides[0] * TILE))
        stripes = np.uint32(-(-tiles // TILES_A_THREAD))
        self._layers = [
            self._kernel("layers_of_rows", lattices | {"along_y": held.sums[1], "along_z": z}),
            self._kernel("layers_of_columns", lattices | {"along_x": held.sums[0], "stripes": stripes}),
        ]

    def _kernel(self, expression: str, arguments: dict[str, Any]) -> Launch:
        return Launch(self._what.device, "measuring/overlaps_site_packed.cu", expression, arguments)

    def _shares(self, compared: int, samples: int) -> int:
        """Thread blocks that share a lattice."""
        fill = BLOCKS * multiprocessors(self._what.device) // max(1, compared * samples)
        return min(-(-self._words // THREADS), max(fill, -(-self._words // MOST_WORDS)), 65535)

    def queue_totals(self, stream: Any, state: Any, pairs: Struct, totals: Struct) -> None:
        """Queue the overlaps or, where all is asked for, the link overlaps of all samples."""
        count, samples = self._what.pairs, self._what.model.samples
        if count:
            grid = count, self._shares(count, samples), samples
            same = totals["links" if self._what.full else "overlap"]
            self._add(stream, grid, THREADS, state=state, pairs=pairs, same=same)

    def queue_parts(self, stream: Any, state: Any, pairs: Struct, totals: Struct, samples: range) -> None:
        """Queue the sums of some samples' layers."""
        for sums in self._held.sums:
            sums.data.memset_async(0, sums.nbytes, stream)
        grid = self._what.count, self._shares(self._what.count, len(samples)), len(samples)
        for launch in self._layers:
            launch(stream, grid, THREADS, state=state, pairs=pairs, first=samples.start)
