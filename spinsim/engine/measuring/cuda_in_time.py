"""Quantities of space and time on a GPU: products of neighbours in space, and squares of sums along world lines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from spinsim.cuda.device import cupy, require_memory
from spinsim.cuda.launch import ADDRESS, SIZE, Launch, address, record, struct_type
from spinsim.engine.measuring.cuda import CopiedSpins
from spinsim.engine.measuring.cuda_comparison import (
    Compared,
    Comparison,
    InTime,
    ListCounting,
    Part,
    PartSums,
    fits_in_time,
)
from spinsim.engine.measuring.in_time import (
    Integers,
    all_bonds_in_space,
    ends_of_bonds,
    lines_of_bonds,
    pairs_in_time,
    shape_of_sums,
)
from spinsim.engine.moves.exchange.ladder import Ladder
from spinsim.engine.protocols import Spins
from spinsim.model.ising import Ising

SQUARES_THREADS: Final = 256
SQUARES_LINES: Final = 16  # that a thread block takes
LINES_TYPE: Final = struct_type(
    places=ADDRESS, holder=ADDRESS, sums=ADDRESS, **dict.fromkeys(("lines", "slices", "replicas"), SIZE)
)


class CudaSquares:
    """``LocalSquares`` on the device that holds the spins.

    Args:
        place: Where each site stands on the device; None: at its number.
        width: Arguments of the kernel that say how wide a state is.
    """

    def __init__(
        self, device: int, model: Ising, ladder: Ladder, place: npt.NDArray[np.uint32] | None, kernel: str,
        blocks: int, width: dict[str, np.uint32],
    ) -> None:  # fmt: skip
        lines, self._shape = model.graph.world_lines(), shape_of_sums(model, ladder)
        room = 8 * int(np.prod(self._shape)) + 4 * (lines.size + model.samples * ladder.replicas)
        require_memory(device, room, f"sums for local susceptibilities of {model.name}")
        self._device, self._grid = device, (-(-len(lines) // SQUARES_LINES), blocks, model.samples)
        with cupy.cuda.Device(device):
            self._stream = cupy.cuda.Stream(non_blocking=True)
            with self._stream:
                places = cupy.asarray((lines if place is None else place[lines]).astype(np.int32))
                self._holder = cupy.zeros(self._shape[:3], cupy.int32)
                self._sums = cupy.zeros(self._shape, cupy.int64)
        self._kept = places  # the record holds addresses alone
        to = record(
            LINES_TYPE, places=places, holder=self._holder, sums=self._sums,
            lines=len(lines), slices=model.graph.slices, replicas=ladder.replicas,
        )  # fmt: skip
        given = {"state": np.uint64(0), "sites": np.uint32(model.sites), **width, "to": to}
        self._launch = Launch(device, "measuring/local.cu", kernel, given)

    def add(self, spins: Spins, holder: npt.NDArray[np.int32]) -> None:
        """Queue adding the configurations of a measurement, which this engine has made."""
        if not isinstance(spins, CopiedSpins):
            raise TypeError("local susceptibilities are added up of the configurations that a measurement holds")
        of_replicas = np.array(holder, np.int32)  # pinned memory may get other numbers before the copy begins

        def queue(stream: Any, state: int) -> None:
            self._holder.data.copy_from_host_async(of_replicas.ctypes.data, of_replicas.nbytes, stream)
            self._launch(stream, self._grid, SQUARES_THREADS, state=state)

        spins.queue_read(self._stream, queue)

    def sums(self) -> Integers:
        with cupy.cuda.Device(self._device), self._stream:
            return np.asarray(self._sums.get())

    def set_sums(self, sums: Integers) -> None:
        with cupy.cuda.Device(self._device), self._stream:
            self._sums.set(np.ascontiguousarray(sums))
            self._stream.synchronize()


PRODUCTS_THREADS: Final = 256


@dataclass(frozen=True)
class Layout:
    """How spins lie on a device, so that products can lie likewise."""

    kernel: str  # name of the kernel that makes products
    compares: str  # name of the kernel that compares lists of them
    shape: tuple[int, int]  # (samples, blocks)
    words: int  # words of 32 bits of a site in a block
    width: dict[str, np.uint32]  # arguments of kernels that say how wide a state is
    columns: int  # of 32 replicas
    place: npt.NDArray[np.uint32] | None  # where each site stands; None: at its number


class Products:
    """Makes the products of both ends of each bond in space at each slice, then compares and correlates them."""

    def __init__(self, compared: Compared, layout: Layout) -> None:
        graph, (samples, blocks) = compared.model.graph, layout.shape
        ends = ends_of_bonds(graph)
        count, size = len(ends), samples * blocks * len(ends) * layout.words
        require_memory(compared.device, 4 * size, f"products of neighbours of {compared.model.name}")
        self._products = cupy.empty(size, cupy.uint32)
        places = ends if layout.place is None else layout.place[ends].astype(np.int32)
        self._grid = -(-count // PRODUCTS_THREADS), blocks, samples
        self._make = Launch(compared.device, "measuring/products.cu", layout.kernel, {
            "state": np.uint64(0), "sites": np.uint32(compared.model.sites), "words": np.uint32(layout.words),
            "ends": cupy.asarray(np.ascontiguousarray(places)), "bonds": np.uint32(count), "to": self._products,
            "links": np.uint64(0), "pairs": np.uint32(compared.pairs),
        })  # fmt: skip
        of_products = Compared(
            compared.device, compared.model, compared.tempering, compared.wanted._replace(full=False, even=False)
        )
        items, lines = [all_bonds_in_space(graph)], lines_of_bonds(graph)
        parts, in_time = [Part(items[0].segments, items[0].size, compared.pairs)], None
        if fits_in_time(graph.slices):
            replicas, pairs = compared.tempering.ladder.replicas, compared.tempering.pairs(0)
            in_time = InTime(compared.device, lines, compared.times, layout.shape, replicas, pairs)
        else:
            items.append(pairs_in_time(lines, compared.times))
            parts.append(Part(items[1].segments, items[1].size, of_products.count, are_times=True))
        width = {name: np.uint32(count) if name == "sites" else value for name, value in layout.width.items()}
        part_sums = PartSums(of_products, parts)
        counting = ListCounting(of_products, part_sums, items, layout.compares, width, layout.columns, None)
        self._comparison = Comparison(of_products, part_sums, counting, in_time)

    def queue(self, stream: Any, state: int, to: dict[str, int]) -> None:
        """Queue what follows from a state at an address to ``link_overlap_in_space`` and ``even_in_time``."""
        links = to["link_overlap_in_space"]
        self._make(stream, self._grid, PRODUCTS_THREADS, state=state, links=links)
        addresses = {"holder": to["holder"], "overlap": links, "in_time": to["even_in_time"]}
        nowhere = dict.fromkeys(("link_overlap", "modes", "powers"), 0)
        self._comparison.queue(stream, address(self._products), nowhere | addresses)
