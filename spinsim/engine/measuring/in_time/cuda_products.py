"""Products of neighbours in space on a GPU: made of the spins, then compared and correlated as spins are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from spinsim.cuda.device import require_memory
from spinsim.cuda.launch import Launch, address
from spinsim.engine.measuring.cuda_comparison import Compared, Comparison, Part, PartSums
from spinsim.engine.measuring.in_time.cuda import InTime, fits_in_time
from spinsim.engine.measuring.in_time.items import all_bonds_in_space, ends_of_bonds, lines_of_bonds, pairs_in_time
from spinsim.engine.measuring.lists.cuda import ListCounting

THREADS: Final = 256


@dataclass(frozen=True)
class Layout:
    """How spins lie on a device, so that products can lie likewise.

    Attributes:
        kernel: Name of the kernel that makes products.
        compares: Name of the kernel that compares lists of them.
        shape: (samples, blocks).
        words: Words of 32 bits of a site in a block.
        width: Arguments of kernels that say how wide a state is.
        columns: Of 32 replicas.
        place: Where each site stands; None: at its number.
    """

    kernel: str
    compares: str
    shape: tuple[int, int]
    words: int
    width: dict[str, np.uint32]
    columns: int
    place: npt.NDArray[np.uint32] | None


class Products:
    """Makes the products of both ends of each bond in space at each slice, then compares and correlates them.

    Args:
        what: What is compared of the spins.
        layout: How they lie.
    """

    def __init__(self, what: Compared, layout: Layout) -> None:
        import cupy

        graph, (samples, blocks) = what.model.graph, layout.shape
        ends = ends_of_bonds(graph)
        count, size = len(ends), samples * blocks * len(ends) * layout.words
        require_memory(what.device, 4 * size, f"products of neighbours of {what.model.name}")
        self._products = cupy.empty(size, cupy.uint32)
        places = ends if layout.place is None else layout.place[ends].astype(np.int32)
        self._grid = -(-count // THREADS), blocks, samples
        self._make = Launch(what.device, "measuring/products.cu", layout.kernel, {
            "state": np.uint64(0), "sites": np.uint32(what.model.sites), "words": np.uint32(layout.words),
            "ends": cupy.asarray(np.ascontiguousarray(places)), "bonds": np.uint32(count), "to": self._products,
            "links": np.uint64(0), "pairs": np.uint32(what.pairs),
        })  # fmt: skip
        alone = Compared(what.device, what.model, what.tempering, what.wanted._replace(full=False, even=False))
        items, lines = [all_bonds_in_space(graph)], lines_of_bonds(graph)
        parts, in_time = [Part(items[0].segments, items[0].size, what.pairs)], None
        if fits_in_time(graph.slices):
            replicas, pairs = what.tempering.ladder.replicas, what.tempering.pairs(0)
            in_time = InTime(what.device, lines, what.times, layout.shape, replicas, pairs)
        else:
            items.append(pairs_in_time(lines, what.times))
            parts.append(Part(items[1].segments, items[1].size, alone.count, are_times=True))
        width = {name: np.uint32(count) if name == "sites" else value for name, value in layout.width.items()}
        held = PartSums(alone, parts)
        counting = ListCounting(alone, held, items, layout.compares, width, layout.columns, None)
        self._comparison = Comparison(alone, held, counting, in_time)

    def queue(self, stream: Any, state: int, to: dict[str, int]) -> None:
        """Queue what follows from a state at an address to ``link_overlap_in_space`` and ``even_in_time``."""
        links = to["link_overlap_in_space"]
        self._make(stream, self._grid, THREADS, state=state, links=links)
        found = {"holder": to["holder"], "overlap": links, "in_time": to["even_in_time"]}
        nowhere = dict.fromkeys(("link_overlap", "modes", "powers"), 0)
        self._comparison.queue(stream, address(self._products), nowhere | found)
