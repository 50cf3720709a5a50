"""Site-packed spins on a GPU: the state has the CPU engine's layout, read as 128-bit words."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spinsim import packing
from spinsim.acceptance import check_beta
from spinsim.cuda.compile import instance
from spinsim.cuda.device import multiprocessors, require_memory
from spinsim.cuda.launch import Launch
from spinsim.cuda.records import record
from spinsim.engine.cuda import CudaEngine, check_grid
from spinsim.engine.dynamics import Dynamics
from spinsim.engine.ladder.cuda import LADDER, Tempering
from spinsim.engine.measuring.cuda_comparison import Comparison
from spinsim.engine.packed.classes import PLANES
from spinsim.engine.packed.cuda_sharing import APART, LATTICE_BARRIER, NEIGHBOUR_BARRIER, TICKETS
from spinsim.engine.packed.kinds import Kind, kind_of
from spinsim.engine.site_packed.cuda_comparison import SiteComparison
from spinsim.engine.site_packed.cuda_records import HALO, SHARE, SIGNS, SLAB, UNIFORM_TABLES, divisor
from spinsim.engine.site_packed.plan import SitePlan
from spinsim.errors import InputError
from spinsim.model.ising import Ising

THREADS: Final = 128
BLOCKS: Final = 4  # on one multiprocessor, where its shared memory allows it
WARP: Final = 32
MOST_ACROSS: Final = 64  # tiles side by side, so that a block can wait for all blocks beside it
UPDATES_A_LAUNCH: Final = 2**37  # so that a launch stays well below a second
HALF_SWEEPS_A_LAUNCH: Final = 2000
COUNT_THREADS: Final = 256  # of a block that counts
COUNT_BLOCKS: Final = 4  # on one multiprocessor


class Share(NamedTuple):
    """How warps share a lattice.

    Attributes:
        record: Tiles, as the kernel reads them.
        tiles: Tiles of the lattice.
        layers: Layers of a tile that a thread takes: 1 where each warp has one tile, else 2.
        blocks: Thread blocks that take them.
        reach: How far before and behind a block those are whose tiles touch its own, where each warp has one tile.
    """

    record: npt.NDArray[np.void]
    tiles: int
    layers: int
    blocks: int
    reach: int


class CudaSiteEngine(CudaEngine):
    """An ``Engine`` for couplings of one magnitude and a uniform field on lattices whose ``rows_can_be_packed``."""

    packing = packing.Packing.SITE
    colours = SitePlan.colours

    def __init__(self, model: Ising, replicas: int, dynamics: Dynamics, device: int = 0) -> None:
        import cupy

        super().__init__(model, replicas, dynamics, device)
        self._plan = plan = SitePlan(model, replicas, dynamics)
        check_grid(model.samples, replicas)
        if 16 * plan.groups >= 2**32:
            raise InputError(f"{model.sites} sites are too many for one GPU lattice: at most 2^36 less one group")
        lattice = plan.lattice
        self._dimension = lattice.dimension
        self._width, self._height = lattice.shape[0] // (2 * packing.LANES), lattice.shape[1]
        self._depth = lattice.shape[2] if lattice.dimension == 3 else 1
        signs = np.empty(0, np.uint64) if plan.signs is None else plan.signs
        require_memory(device, signs.nbytes + 8 * int(np.prod(plan.shape)), f"the state of {model.name}")
        with self._here():
            self._signs = cupy.asarray(signs)
            self.state = cupy.empty(plan.shape, cupy.uint64)
            if dynamics.start == "up":
                self.state[:] = np.uint64(2**64 - 1)
            else:
                lanes = cupy.full((replicas, 2), np.uint64(2**64 - 1))
                self._random_start(self.state.reshape(model.samples, replicas, 2 * plan.groups, 2), lanes)
        self._launch: Launch | None = None
        self._sums_shape, self._observables = (2, model.samples, replicas), plan.observables

    @property
    def tasks(self) -> int:
        """Replicas over all samples."""
        return self.model.samples * self.replicas

    def _slab(self) -> npt.NDArray[np.void]:
        """The whole lattice."""
        return record(SLAB, width=self._width, height=self._height, depth=self._depth, first_row=0, parity=0)

    def _halo(self) -> npt.NDArray[np.void]:
        """The lattice's own last and first row or plane of each colour, as it is periodic."""
        groups, first = self._plan.groups, self.state.data.ptr
        edge = self._width * (self._height if self._dimension == 3 else 1)
        before = tuple(first + 16 * (groups * (colour + 1) - edge) for colour in range(2))
        after = tuple(first + 16 * groups * colour for colour in range(2))
        return record(HALO, before=before, after=after, stride=2 * groups)

    def _negative(self) -> npt.NDArray[np.void]:
        """Where couplings are negative."""
        stride = 4 * self._dimension * self._plan.groups if len(self._signs) > 1 else 0
        return record(SIGNS, negative=self._signs, stride=stride)

    def _share(self, blocks: int) -> Share:
        """Tiles for all warps, where ``blocks`` blocks can be resident on a multiprocessor."""
        in_three = self._dimension == 3
        layer, layers = (self._width * self._height, self._depth) if in_three else (self._width, self._height)
        columns = math.gcd(layer, WARP)
        across, warps = layer // columns, THREADS // WARP
        most = max(1, blocks * multiprocessors(self.device) // self.tasks)

        def tiles(layers_a_thread: int) -> int:
            return across * -(-layers * columns // (layers_a_thread * WARP))

        each = 1 if tiles(1) <= most * warps and across <= MOST_ACROSS else 2
        shared = record(SHARE, columns=columns, tiles=tiles(each), across=divisor(across), width=divisor(self._width))
        used = min(most, -(-tiles(each) // warps))
        reach = -(-(2 * across - 1) // warps) + (tiles(each) % warps > 0)  # a tile's layers and one more
        return Share(shared, tiles(each), each, used, min(reach, used // 2))

    def set_beta(self, beta: npt.ArrayLike) -> None:
        """Set the inverse temperature: a number or one for each replica (replicas,)."""
        import cupy

        tables = self._plan.tables(beta)
        with self._here():
            self._tables = [cupy.asarray(a) for a in (tables.always, tables.planes, tables.thresholds)]
            self._make_launch(check_beta(beta, self.replicas))
        self._tempering = None

    def _make_launch(self, beta: npt.NDArray[np.float64]) -> None:
        """Make ready for sweeps at inverse temperatures ``beta``, whatever the tables will hold of them."""
        import cupy

        plan, d = self._plan, self.dynamics
        signed, kind, slots = plan.signs is not None, min(kind_of(plan, beta), Kind.PLAIN), 2 * self._dimension
        always, planes, thresholds = self._tables
        stride = self.replicas if len(always) > 1 else 0
        tables = record(UNIFORM_TABLES, always=always, planes=planes, thresholds=thresholds, stride=stride)
        blocks = BLOCKS
        while True:
            share = self._share(blocks)
            barrier = NEIGHBOUR_BARRIER if share.layers == 1 else LATTICE_BARRIER
            expression = instance(
                "sweep_site", self._dimension, signed, plan.has_field, int(kind), share.layers, d.rng_rounds
            )
            self._launch = Launch(self.device, "metropolis/site_packed.cu", expression, {
                "state": self.state, "slab": self._slab(), "halo": self._halo(), "signs": self._negative(),
                "tables": tables, "share": share.record, "first_sample": np.uint32(0),
                "first_replica": np.uint32(0), "half_sweep": np.uint64(0), "half_sweeps": np.uint32(1),
                "all_tickets": np.zeros((), TICKETS), "barriers": np.zeros((), barrier), "key": self._round_keys,
            }, 16 * THREADS * (slots + 1 + signed * slots))  # fmt: skip
            room = self._launch.blocks_at_once(THREADS)
            if room >= blocks:
                break
            blocks = room
        self._share_now = share
        self._next = cupy.zeros(self.tasks, cupy.uint32)
        self._arrived = cupy.zeros(self.tasks * (share.blocks * APART if share.layers == 1 else 1), cupy.uint32)
        self._arrivals = self._drawn = 0

    def _prepare_ladder(self, tempering: Tempering) -> None:
        import cupy

        plan, beta = self._plan, tempering.ladder.beta
        classes, parts = 2**plan.classes.bits, plan.shape[:2]
        self._tables = always, planes, thresholds = [
            cupy.empty((*parts, classes), cupy.uint32),
            cupy.empty((*parts, PLANES, classes), cupy.uint32),
            cupy.empty((*parts, classes), cupy.uint64),
        ]
        self._make_launch(beta)
        self._limits = certain, limits = [cupy.asarray(a) for a in plan.limits(beta)]
        self._lay = Launch(self.device, "tempering/lay_tables.cu", "lay_uniform_tables", {
            "always": always, "planes": planes, "thresholds": thresholds,
            "ladder": record(LADDER, limits=limits, certain=certain, temperatures=beta.size), "place": tempering.place,
            "replicas": np.uint32(self.tasks), "classes": np.uint32(classes),
        })  # fmt: skip

    def _lay_tables(self) -> None:
        self._lay(self.stream, (-(-self.tasks // THREADS), 1, 1), THREADS)

    def _compare(self, tempering: Tempering, full: bool) -> Comparison:
        return SiteComparison(self._slab(), self.device, self.model, tempering, full)

    def sweep(self, count: int) -> None:
        """Attempt every spin of every replica ``count`` times."""
        if self._launch is None:
            raise InputError("no temperature is set: call set_beta before sweep")
        share, left = self._share_now, count * self.colours
        reach = (share.reach,) if share.layers == 1 else ()
        most = UPDATES_A_LAUNCH // (packing.LANES * self._plan.groups * self.tasks)
        with self._here():
            while left:
                several = min(left, max(1, min(most, HALF_SWEEPS_A_LAUNCH)))
                self._launch(
                    self.stream, (share.blocks, self.replicas, self.model.samples), THREADS, share.blocks > 1,
                    half_sweep=self.half_sweep, half_sweeps=several, all_tickets=(self._next.data.ptr, self._drawn),
                    barriers=(self._arrived.data.ptr, self._arrivals, *reach),
                )  # fmt: skip
                self.half_sweep += several
                if share.layers > 1:
                    self._drawn = (self._drawn + several * share.tiles) % 2**32
                together = 1 if share.layers == 1 else share.blocks  # that arrive at one count
                self._arrivals = (self._arrivals + (several - 1) * together) % 2**32
                left -= several

    @cached_property
    def _count(self) -> tuple[Launch, int]:
        """The counting kernel and how many of its blocks share a lattice."""
        expression = instance("count_site", self._dimension, self._plan.signs is not None)
        launch = Launch(self.device, "measure/count_site_packed.cu", expression, {
            "state": self.state, "slab": self._slab(), "halo": self._halo(), "signs": self._negative(),
            "up": np.uint64(0), "unsatisfied": np.uint64(0),
        })  # fmt: skip
        most = max(1, COUNT_BLOCKS * multiprocessors(self.device) // self.tasks)
        return launch, min(most, -(-self._plan.groups // COUNT_THREADS))

    def _add_sums(self, to: tuple[int, ...]) -> None:
        up, unsatisfied = to
        samples, replicas = self._plan.shape[:2]
        launch, blocks = self._count
        launch(self.stream, (blocks, replicas, samples), COUNT_THREADS, up=up, unsatisfied=unsatisfied)

    def _words_of_state(self) -> npt.NDArray[np.uint64]:
        return np.asarray(self.state.get())

    def _set_words(self, words: npt.NDArray[np.uint64]) -> None:
        self.state.set(words)

    def _present(self) -> Any:
        return self.state

    def _spins_in(self, state: Any, sample: int, replica: int) -> npt.NDArray[np.int8]:
        return packing.unpack_sites(state[sample, replica].get(), self._plan.lattice.shape)
