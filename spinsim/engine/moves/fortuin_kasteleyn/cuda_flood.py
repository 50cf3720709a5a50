"""Lattices whose clusters a block of threads floods: rows along each axis, as threads have them."""

from __future__ import annotations

from typing import Final

import numpy as np

from spinsim.cuda.compile import instance
from spinsim.cuda.launch import ADDRESS, struct_type
from spinsim.engine.moves.fortuin_kasteleyn.bonds import axes_of
from spinsim.model.ising import Ising

FLOOD: Final = "clusters/flood.cu"
WIDTH: Final = 32  # replicas of a block, threads of a warp
FLOODING: Final = 512  # of a block that floods a lattice, at most
RUN: Final = 16  # sites of a row that a thread has, at most
SIDES: Final = {2: (16, 32, 64), 3: (8, 10, 12, 16)}  # of lattices whose sides kernels know
LINES: Final = struct_type(axis=(np.uint32, (3, 4)), begin=ADDRESS, most=np.uint32, row=np.uint32, size=np.uint32)
FLOODS: Final = tuple(instance("flood_clusters", axes, side) for axes, sides in SIDES.items() for side in (0, *sides))


class Rows:
    """Rows of a lattice of right angles along each axis, as threads have them, and the padding between them.

    Attributes:
        row: Sites of a row along the first axis, behind each of which there is a word of padding.
        size: Words of all sites.
        axis: Length, stride, parts of a row and rows of each axis.
        begin: Where rows begin, (axes, rows).
        threads: Of a block.
        kernel: The instance that floods it.
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.row, sites = shape[0], int(np.prod(shape))
        at = np.arange(sites) + np.arange(sites) // self.row
        grid = at.reshape(shape[::-1])
        self.size = sites + sites // self.row
        self.room = 8 * self.size  # bytes of shared memory
        parts = [-(-side // RUN) for side in shape]
        begins = [np.moveaxis(grid, -1 - a, 0)[0].reshape(-1) for a in range(len(shape))]
        strides = [int(np.moveaxis(grid, -1 - a, 0)[1 % side].flat[0]) for a, side in enumerate(shape)]
        rows = [begin.size for begin in begins]
        self.axis = np.array(list(zip(shape, strides, parts, rows, strict=True)), np.uint32)
        self.begin = np.zeros((len(shape), max(rows)), np.uint32)
        for a, begin in enumerate(begins):
            self.begin[a, : begin.size] = begin
        of_warp = [WIDTH // part if part <= WIDTH else 0 for part in parts]
        warps = [-(-count // each) if each else FLOODING for count, each in zip(rows, of_warp, strict=True)]
        self.threads = WIDTH * max(2, *warps)
        sides = set(shape)
        side = shape[0] if len(sides) == 1 and sides <= set(SIDES[len(shape)]) else 0
        self.kernel = instance("flood_clusters", len(shape), side)


def rows_of(model: Ising, room: int) -> Rows | None:
    """Return the rows of a model's lattice, where a thread block has threads and so many bytes for all of them."""
    axes, lattice = axes_of(model), model.lattice
    if axes not in SIDES or lattice is None:
        return None
    rows = Rows(lattice.shape)
    return rows if rows.threads <= FLOODING and rows.room <= room else None
