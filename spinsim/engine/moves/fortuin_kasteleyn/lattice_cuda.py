"""Fortuin-Kasteleyn moves of site-packed lattices on a GPU: open bonds, clusters in and across tiles, flips.

The kernels are in kernels/clusters/lattice_bonds.cu and lattice_clusters.cu. Only enough lattices to keep a GPU busy
are moved at a time, so that labels of all lattices need not fit its memory.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final

import numpy as np

from spinsim.cuda.compile import Instances, instance
from spinsim.cuda.device import cupy, require_memory
from spinsim.cuda.launch import ADDRESS, Launch, record, round_keys, struct_type
from spinsim.engine.cuda import CudaParts
from spinsim.engine.cuda_queue import GRID_LIMIT
from spinsim.engine.moves.fortuin_kasteleyn.clusters import KINDS, SEEDED, SWENDSEN_WANG, WOLFF
from spinsim.engine.moves.fortuin_kasteleyn.lattice import chances, check_sites, field_of
from spinsim.engine.moves.metropolis.site_packed.cuda import SiteLattices, edge_of
from spinsim.engine.moves.move import FastPath, Moment
from spinsim.model.ising import Ising

THREADS: Final = 128  # threads of a block; each has 32 sites of its tile
SQUARE_X: Final = 128  # sides of tiles
SQUARE_Y: Final = 32
SQUARE_JOINED: Final = 2  # sites at the border of a tile that a thread joins to the next tile
CUBIC_X: Final = 64
CUBIC_Y: Final = 8
CUBIC_Z: Final = 8
CUBIC_JOINED: Final = 4
SITES_AT_ONCE: Final = 2**27
LATTICES: Final = struct_type(
    **dict.fromkeys(("opened", "ghosts", "label", "parent", "marks"), ADDRESS),
    **dict.fromkeys(("side", "height", "depth", "groups", "tiles_x", "tiles_y"), np.uint32),
    **dict.fromkeys(("first", "replicas", "first_sample"), np.uint32),
)
BONDS: Final = "clusters/lattice_bonds.cu"
CLUSTERS: Final = "clusters/lattice_clusters.cu"
KERNELS: Final = ("label_tiles", "join_tiles", "mark_clusters", "flip_clusters")
DIMENSIONS: Final = (2, 3)
INSTANCES: Final[Instances] = (
    *((BONDS, instance("open_bonds", dimension, kind)) for dimension in DIMENSIONS for kind in ("Slab", "AnyRows")),
    *(
        (CLUSTERS, instance(name, dimension, any_rows))
        for name in KERNELS
        for dimension in DIMENSIONS
        for any_rows in (False, True)
    ),
)


def fast_path(kind: int, model: Ising, replicas: int, first_sample: int, parts: CudaParts) -> FastPath:
    assert isinstance(parts.state, SiteLattices)  # noqa: S101  (always so here)
    return LatticesOnGpu(kind, model, replicas, first_sample, parts, parts.state)


class LatticesOnGpu:
    """A ``FastPath`` of an engine; CuPy's present device and stream must be the engine's."""

    def __init__(
        self, kind: int, model: Ising, replicas: int, first_sample: int, parts: CudaParts, lattices: SiteLattices
    ) -> None:
        check_sites(model)
        self._kind, self._model, self._queue, self._lattices = kind, model, parts.queue, lattices
        self._replicas, self._first_sample = replicas, first_sample
        self._field = int(np.sign(field_of(model)))
        self._at_once = max(1, min(lattices.count, SITES_AT_ONCE // model.sites, GRID_LIMIT))
        self._arrays = self._room()
        self._beta: Any = None
        self._seed = -1
        self._make()

    def _room(self) -> dict[str, Any]:
        """Work arrays of a move, for the lattices that are moved at a time."""
        sites, count, dimension = self._model.sites, self._at_once, self._lattices.dimension
        words = 4 * self._lattices.plan.groups  # words of a colour
        is_marked = bool(self._field) or self._kind == SEEDED
        sizes = {
            "opened": (2 * dimension * words, np.uint32),
            "ghosts": (2 * words if self._field else 0, np.uint32),
            "label": (sites, np.uint16),
            "parent": (sites, np.uint32),
            "marks": (2 * -(-sites // 32) if is_marked else 0, np.uint32),
        }
        needed = count * sum(size * np.dtype(kind).itemsize for size, kind in sizes.values())
        require_memory(self._queue.device, needed, f"the clusters of {self._model.name}")
        return {name: cupy.zeros((count, size), kind) for name, (size, kind) in sizes.items()}

    def _make(self) -> None:
        lattices, queue = self._lattices, self._queue
        dimension, side, height, depth = lattices.dimension, 2 * lattices.in_row, lattices.height, lattices.depth
        x, y, z = (SQUARE_X, SQUARE_Y, 1) if dimension == 2 else (CUBIC_X, CUBIC_Y, CUBIC_Z)
        tiles_x, tiles_y, tiles_z = -(-side // x), -(-height // y), -(-depth // z)
        self._record = record(
            LATTICES, **self._arrays, side=side, height=height, depth=depth, groups=lattices.plan.groups,
            tiles_x=tiles_x, tiles_y=tiles_y, first=0, replicas=self._replicas, first_sample=self._first_sample,
        )  # fmt: skip
        words, threads_a_word = -(-side // 32), 32 // (SQUARE_JOINED if dimension == 2 else CUBIC_JOINED)
        first_y = -(-tiles_z * height * words * threads_a_word // THREADS) if dimension == 3 else 0
        first_x = first_y - (-tiles_y * depth * words * threads_a_word // THREADS)
        tiles, rows = tiles_x * tiles_y * tiles_z, height * depth
        self._grids = {
            "open_bonds": (-(-lattices.plan.groups // THREADS), 2 * dimension + (2 if self._field else 0)),
            "label_tiles": (tiles, 1),
            "join_tiles": (first_x - (-rows * tiles_x // THREADS), 1),
            "mark_clusters": (-(-rows * words // THREADS), 1),
            "flip_clusters": (tiles, 1),
        }
        drawn = {"field": np.int32(self._field), "time": np.uint64(0), "key": queue.keys.copy()}
        chosen = {"all": self._record, "kind": np.uint32(self._kind), **drawn}
        arguments: dict[str, dict[str, Any]] = {
            "open_bonds": {
                **{name: lattices.arguments[name] for name in ("state", "signs")}, "geometry": lattices.geometry,
                "layer": np.uint32(edge_of(lattices.plan)),
                "is_signed": np.uint32(lattices.is_signed), "all": self._record, "chances": np.uint64(0),
                "holder": np.uint64(0), "temperatures": np.uint32(1), **drawn,
            },
            "label_tiles": {"all": self._record},
            "join_tiles": {"all": self._record, "first_y": np.uint32(first_y), "first_x": np.uint32(first_x)},
            "mark_clusters": chosen,
            "flip_clusters": {"state": lattices.present, **chosen},
        }  # fmt: skip
        if not self._arrays["marks"].size:
            del arguments["mark_clusters"]
        self._launches = {
            name: Launch(queue.device, BONDS, instance(name, dimension, lattices.kind), given)
            if name == "open_bonds"
            else Launch(queue.device, CLUSTERS, instance(name, dimension, not lattices.fills_groups), given)
            for name, given in arguments.items()
        }

    def __call__(self, moment: Moment, holder: Any) -> None:
        """Queue a move; ``holder`` is int32 on the device."""
        if self._beta is None or not np.array_equal(moment.beta, self._beta):
            self._beta = np.array(moment.beta, np.float64)
            self._chances = cupy.asarray(chances(self._model, self._beta))
        changed: dict[str, dict[str, Any]] = {name: {} for name in self._launches}  # launches keep all other arguments
        for name in changed.keys() - {"label_tiles", "join_tiles"}:
            changed[name]["time"] = KINDS * moment.time + self._kind
            if moment.seed != self._seed:
                changed[name]["key"] = round_keys(moment.seed)
        self._seed = moment.seed
        changed["open_bonds"] |= {
            "chances": self._chances.data.ptr, "holder": holder.data.ptr, "temperatures": holder.shape[2],
        }  # fmt: skip
        marks, stream, count = self._arrays["marks"], self._queue.stream, self._lattices.count
        for first in range(0, count, self._at_once):
            several = min(self._at_once, count - first)
            if marks.size:
                marks.data.memset_async(0, marks.nbytes, stream)
            for name, launch in self._launches.items():
                if several < count:
                    self._record["first"] = first
                    changed[name]["all"] = self._record
                blocks, slots = self._grids[name]
                launch(stream, (blocks, several, slots), THREADS, **changed[name])


swendsen_wang, wolff, seeded = (partial(fast_path, kind) for kind in (SWENDSEN_WANG, WOLFF, SEEDED))
