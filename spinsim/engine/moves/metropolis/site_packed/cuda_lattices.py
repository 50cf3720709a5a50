"""Site-packed lattices on a GPU: the state has the layout of the CPU's, read as 128-bit words."""

from __future__ import annotations

from functools import cached_property
from math import prod
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from spinsim import packing
from spinsim.cuda.compile import instance
from spinsim.cuda.device import multiprocessors, require_memory
from spinsim.cuda.launch import Launch
from spinsim.cuda.memory import shared
from spinsim.cuda.records import record, round_keys
from spinsim.engine.cuda_queue import Queue
from spinsim.engine.moves.metropolis.site_packed.cuda_records import SIGNS, SLAB
from spinsim.engine.moves.metropolis.site_packed.halo.cuda import halo_of
from spinsim.engine.moves.metropolis.site_packed.plan import SitePlan
from spinsim.engine.moves.metropolis.site_packed.signs import signs_shape
from spinsim.engine.moves.resample.moves import Moves
from spinsim.errors import InputError
from spinsim.mesh.group import Group

DRAW_THREADS: Final = 256  # of a block that draws signs
COUNT_THREADS: Final = 256  # of a block that counts
COUNT_BLOCKS: Final = 4  # on one multiprocessor


class SiteLattices:
    """The state of a site-packed run, and what kernels read of its model.

    Args:
        plan: What devices share.
        queue: Where its work is queued; the present device and stream of CuPy.
        group: Who has the slabs of a lattice, of which this is one; None where it is whole.

    Attributes:
        plan: As given.
        present: The spins.
        dimension: Axes of the lattice.
        width: Groups in a row.
        height: Rows in a plane.
        depth: Planes.
        count: Replicas over all samples.
        is_signed: Whether some couplings are negative.
        halo: The layers before and after it.

    Raises:
        InputError: for lattices that are too large for the kernels' addresses.
    """

    replica_axis = 1

    def __init__(self, plan: SitePlan, queue: Queue, group: Group | None) -> None:
        import cupy

        self.plan, self._queue = plan, queue
        if 16 * plan.groups >= 2**32:
            raise InputError(f"{plan.model.sites} sites are too many for one GPU: at most 2^36 less one group on each")
        sides, (samples, replicas) = plan.sides, plan.shape[:2]
        self.dimension, self.count, self.is_signed = len(sides), samples * replicas, plan.is_signed
        self.width, self.height = sides[0] // (2 * packing.LANES), sides[1]
        self.depth = sides[2] if self.dimension == 3 else 1
        words = prod(plan.shape) + (prod(signs_shape(plan.model, plan.rows)) if plan.is_signed else 0)
        require_memory(queue.device, 8 * words, f"the state of {plan.model.name}")
        self._signs = self._signs_of_model()
        self.present = shared(plan.shape, np.uint64) if group else cupy.empty(plan.shape, cupy.uint64)
        if plan.dynamics.start == "up":
            self.present[:] = np.uint64(2**64 - 1)
        else:
            lanes = cupy.full((replicas, 2), np.uint64(2**64 - 1))
            if plan.groups == plan.all_groups:
                queue.start_at_random(self.present.reshape(samples, replicas, 2 * plan.groups, 2), lanes)
            else:
                self._start_slabs(lanes)
        self.halo = halo_of(plan, self.present, queue, group)

    def _signs_of_model(self) -> Any:
        """Signs of couplings as ``signs.py`` lays them out: drawn here, or copied where the host has couplings."""
        import cupy

        plan, drawn, lattice = self.plan, self.plan.model.drawn, self.plan.model.lattice
        if not plan.is_signed:
            return cupy.empty(0, cupy.uint64)
        if lattice is None or drawn is None or drawn.limit is None or not plan.model.are_yet_to_draw:
            return cupy.asarray(plan.signs)
        signs = cupy.empty(signs_shape(plan.model, plan.rows), cupy.uint64)
        shape, words = (*lattice.shape, 1), signs[0].size
        Launch(self._queue.device, "metropolis/site_packed_signs.cu", instance("draw_signs", self.dimension), {
            "signs": signs, "words": np.uint64(words), "width": np.uint32(self.width), "height": np.uint32(shape[1]),
            "depth": np.uint32(shape[2]), "first_row": np.uint32(plan.rows.start), "rows": np.uint32(len(plan.rows)),
            "first_sample": np.uint32(drawn.first), "limit": np.uint64(drawn.limit), "key": round_keys(drawn.seed),
        })(self._queue.stream, (-(-words // DRAW_THREADS), len(signs), 1), DRAW_THREADS)  # fmt: skip
        return signs

    def _start_slabs(self, lanes: Any) -> None:
        """Begin at random where words do not follow one another as those of the whole lattice do."""
        plan = self.plan
        for sample, replica, colour in np.ndindex(*plan.shape[:3]):
            words, first = self.present[sample, replica, colour], plan.all_groups * colour + plan.first_group
            self._queue.start_at_random(
                words.reshape(1, 1, plan.groups, 2), lanes[:1], sample=sample, block=replica, site=first
            )

    @property
    def slab(self) -> npt.NDArray[np.void]:
        """What it has of the lattice."""
        first_row = self.plan.first_group // self.width
        return record(SLAB, width=self.width, height=self.height, depth=self.depth, first_row=first_row, parity=0)

    @property
    def arguments(self) -> dict[str, Any]:
        """What every kernel takes that looks at neighbours."""
        return {"state": self.present, "slab": self.slab, "halo": self.halo.record, "signs": self._negative}

    @property
    def _negative(self) -> npt.NDArray[np.void]:
        """Where couplings are negative."""
        stride = 4 * self.dimension * self.plan.groups if len(self._signs) > 1 else 0
        return record(SIGNS, negative=self._signs, stride=stride)

    @cached_property
    def _count(self) -> tuple[Launch, int]:
        """The counting kernel and how many of its blocks share a lattice."""
        expression = instance("count_site", self.dimension, self.is_signed)
        launch = Launch(self._queue.device, "measuring/count_site_packed.cu", expression, {
            **self.arguments, "up": np.uint64(0), "unsatisfied": np.uint64(0), "up_first": np.uint64(0),
        })  # fmt: skip
        most = max(1, COUNT_BLOCKS * multiprocessors(self._queue.device) // self.count)
        return launch, min(most, -(-self.plan.groups // COUNT_THREADS))

    def add(self, to: tuple[int, ...]) -> None:
        """Queue adding spins +1, unsatisfied bonds and, where a third address is given, the spins +1 of colour 0."""
        up, unsatisfied, up_first = (*to, 0)[:3]
        samples, replicas = self.plan.shape[:2]
        self.halo.fetch(1)
        launch, blocks = self._count
        grid = blocks, replicas, samples
        launch(self._queue.stream, grid, COUNT_THREADS, up=up, unsatisfied=unsatisfied, up_first=up_first)

    def words(self) -> npt.NDArray[np.uint64]:
        """The words of a snapshot."""
        return np.asarray(self.present.get())

    def set_words(self, words: npt.NDArray[np.uint64]) -> None:
        """Go back to the words of a snapshot."""
        self.present.set(words)

    def copy(self, moves: Moves) -> None:
        """Queue copies of configurations."""
        for sample, source, target in zip(*(array.tolist() for array in moves), strict=True):
            self.present[sample, target] = self.present[sample, source]

    def read(self, state: Any, sample: int, replica: int) -> npt.NDArray[np.int8]:
        """One configuration of a state."""
        return packing.unpack_sites(state[sample, replica].get(), self.plan.sides)
