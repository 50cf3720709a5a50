"""Clusters of configurations on a GPU: the numbers that observables/clusters.py finds on CPUs.

Open bonds of Fortuin-Kasteleyn clusters are drawn by the kernel of their moves; kernels/clusters/describe.cu joins
them, a block of threads a configuration.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from spinsim.cuda.compile import FLAGS, Instances, instance
from spinsim.cuda.device import cupy, require_memory
from spinsim.cuda.launch import ADDRESS, Launch, record, round_keys, struct_type
from spinsim.engine.cuda_queue import GRID_LIMIT, OnDevice
from spinsim.engine.moves.fortuin_kasteleyn import cuda
from spinsim.engine.moves.fortuin_kasteleyn.clusters import WOLFF, Bonds
from spinsim.engine.moves.fortuin_kasteleyn.cuda import WIDTH
from spinsim.observables.batch import Batch
from spinsim.packing import LANES, block_count

FILE: Final = "clusters/describe.cu"
DESCRIBING: Final = 1024  # threads of a block, at most
SITES_A_THREAD: Final = 16
MOST_AXES: Final = 4
AT_ONCE: Final = 2**28  # spins and bonds of configurations that are described together
PLACE_BITS: Final = 63  # bits for the displacements of a site along all axes
JOINED: Final = struct_type(
    ends=ADDRESS, steps=ADDRESS, count=np.uint32, sites=np.uint32, columns=np.uint32, stride=np.uint32,
    axes=np.uint32, bits=np.uint32,
)  # fmt: skip
TREES: Final = struct_type(parents=ADDRESS, members=ADDRESS, totals=ADDRESS, places=ADDRESS)
DESCRIBED: Final = struct_type(
    squares=ADDRESS, largest=ADDRESS, sizes=ADDRESS, wrapped=ADDRESS, labels=ADDRESS, sizes_of_one=np.uint32
)
INSTANCES: Final[Instances] = tuple((FILE, instance("describe_clusters", wraps)) for wraps in FLAGS)


def serves(steps: npt.NDArray[np.int8], sites: int, count: int) -> bool:
    """Return True if a GPU can find clusters of ``count`` configurations a sample.

    Displacements along all axes, each at most the number of sites, must fit into a number; CuPy packs fewer than 2^31
    bits.
    """
    axes = steps.shape[1]
    fits = not axes or bool(axes <= MOST_AXES and sites.bit_length() < PLACE_BITS // axes)
    return fits and items_of(count, sites, len(steps)) < 2**31


def items_of(count: int, sites: int, bonds: int) -> int:
    """Spins or bonds of a sample, in whole blocks of configurations."""
    return block_count(count) * LANES * (sites + bonds + 1)


class Clusters:
    """Describes clusters of configurations, some samples at a time.

    Args:
        batch: The configurations.
        flat: Their spins or overlaps, int8 on the device (samples, configurations, sites).
        ends: Sites that each bond joins, (bonds, 2); the ghost has the number of sites.
        steps: Displacement along each bond, (bonds, axes), without axes where wrapping is not looked for.
        labels: True if labels of sites are wanted.
    """

    def __init__(
        self, batch: Batch, flat: Any, ends: npt.NDArray[np.int32], steps: npt.NDArray[np.int8], labels: bool = False
    ) -> None:
        self._flat, self._device, self._on_device = cupy.ascontiguousarray(flat), flat.device.id, OnDevice()
        samples, count, sites = flat.shape
        axes, bits = steps.shape[1], sites.bit_length()
        self._bits_of_place = PLACE_BITS // max(1, axes)
        weights = np.int64(1) << np.arange(axes, dtype=np.int64) * np.int64(self._bits_of_place)
        self._ends, self._steps = cupy.asarray(ends.astype(np.uint32)), cupy.asarray(steps.astype(np.int64) @ weights)
        items = items_of(count, sites, batch.model.bonds)
        self.samples_at_once = max(1, min(samples, GRID_LIMIT, AT_ONCE // items))
        places = self.samples_at_once * count * (sites + 1)
        needed = 20 * places + 4 * self.samples_at_once * items + 4 * labels * samples * count * sites
        require_memory(self._device, needed, f"the clusters of {batch.model.name}")
        self._trees = self._on_device(
            TREES, parents=cupy.empty(places, cupy.uint32), members=cupy.empty(places, cupy.uint32),
            totals=cupy.empty(places, cupy.int32), places=cupy.empty(places if axes else 0, cupy.uint64),
        )  # fmt: skip
        shape = samples, count
        self.results = (
            cupy.empty(shape, cupy.float64), cupy.empty(shape, cupy.int64), cupy.empty((*shape, bits), cupy.int64),
            cupy.zeros((*shape, axes), cupy.int64), cupy.empty((*shape, sites if labels else 0), cupy.int32),
        )  # fmt: skip

    def describe(self, first: int, opened: Any) -> None:
        """Describe samples from ``first`` on, with open bonds as words (samples, configurations, columns)."""
        samples, stride, columns = opened.shape
        _, count, sites = self._flat.shape
        squares, largest, sizes, wrapped, labels = (one[first : first + samples] for one in self.results)
        axes = wrapped.shape[-1]
        joined = self._on_device(
            JOINED, ends=self._ends, steps=self._steps, count=len(self._ends), sites=sites, columns=columns,
            stride=stride, axes=axes, bits=self._bits_of_place,
        )  # fmt: skip
        described = record(
            DESCRIBED, squares=squares, largest=largest, sizes=sizes, wrapped=wrapped,
            labels=labels if labels.size else 0, sizes_of_one=sizes.shape[-1],
        )  # fmt: skip
        given = {"opened": opened, "spins": self._flat[first:], "joined": joined, "trees": self._trees}
        name = instance("describe_clusters", axes > 0)
        launch = Launch(self._device, FILE, name, given | {"described": described})
        threads = min(DESCRIBING, max(WIDTH, sites // SITES_A_THREAD // WIDTH * WIDTH))
        launch(cupy.cuda.get_current_stream(), (count, samples, 1), threads)


def of_fortuin_kasteleyn(
    batch: Batch, bonds: Bonds, counted: int, beta: npt.NDArray[np.float64], steps: npt.NDArray[np.int8], when: int,
    labels: bool,
) -> tuple[Any, ...]:  # fmt: skip
    """Values of ``describe`` of clusters.py for the first ``counted`` bonds, (samples, configurations, ...).

    ``beta`` (configurations, terms) is in quanta; ``when`` and the seed of the batch select the random numbers.
    """
    samples = len(batch.spins)
    flat = batch.spins.reshape(samples, -1, batch.model.sites)
    clusters = Clusters(batch, flat, bonds.ends[:counted], steps, labels)
    for first in range(0, samples, clusters.samples_at_once):
        some = flat[first : first + clusters.samples_at_once]
        clusters.describe(first, drawn_bonds(some, first, bonds, beta, when, batch.seed))
    return clusters.results


def drawn_bonds(spins: Any, first: int, bonds: Bonds, beta: npt.NDArray[np.float64], when: int, seed: int) -> Any:
    """Return open bonds of configurations (samples, configurations, sites) as words, in whole blocks of 128 of them."""
    samples, count, sites = spins.shape
    blocks, on_device = block_count(count), OnDevice()
    up = cupy.zeros((samples, blocks * LANES, sites), cupy.uint8)
    up[:, :count] = spins > 0
    lanes_last = cupy.ascontiguousarray(up.reshape(samples, blocks, LANES, sites).swapaxes(2, 3))
    words = cupy.packbits(lanes_last.ravel(), bitorder="little")
    rows = slice(first, first + samples)
    negative = bonds.negative[rows] if len(bonds.negative) > 1 else bonds.negative
    level = bonds.level[rows] if len(bonds.level) > 1 else bonds.level
    mine = bonds._replace(negative=negative, level=level)
    layout = cuda.Layout(sites, len(bonds.number))
    columns = layout.bond_columns
    opened = cupy.empty((samples, blocks * LANES, columns), cupy.uint32)
    none = cupy.empty(0, cupy.uint32)
    batch = record(
        cuda.BATCH, state=words, opened=opened, chosen=none, blocks=blocks, replicas=count, move=WOLFF,
        first_sample=first,
    )  # fmt: skip
    of_sites = record(
        cuda.SITES, site=none, place=none, label=none, count=sites, joined=0, columns=0, joined_columns=0, most=1
    )
    holder = cupy.asarray(np.ascontiguousarray(np.broadcast_to(np.arange(count, dtype=np.int32), (samples, count))))
    ladder = on_device(
        cuda.LADDER, holder=holder, beta=np.ascontiguousarray(beta), copies=1, temperatures=count, terms=beta.shape[1]
    )
    given = {
        "batch": batch, "bonds": cuda.record_of_bonds(on_device, mine, layout, np.arange(sites + 1, dtype=np.uint32)),
        "sites": of_sites, "ladder": ladder, "time": np.uint64(when), "key": round_keys(seed),
    }  # fmt: skip
    choose = Launch(spins.device.id, cuda.FILE, instance("choose", len(bonds.costs) <= cuda.FEW_LEVELS, True), given)
    choose(cupy.cuda.get_current_stream(), (cuda.parts_of(columns), blocks, samples), cuda.THREADS)
    return opened


def of_overlaps(
    batch: Batch, overlaps: Any, there: npt.NDArray[np.bool_], steps: npt.NDArray[np.int8]
) -> tuple[Any, ...]:
    """Values for clusters of equal overlap, int8 (samples, configurations, sites), over the bonds that exist.

    ``there`` marks these bonds, (1 or samples, bonds).
    """
    ends = batch.model.graph.edges
    clusters = Clusters(batch, overlaps, ends, steps)
    one, other = (cupy.asarray(np.ascontiguousarray(ends[:, side])) for side in range(2))
    samples, count, _ = overlaps.shape
    columns = -(-len(ends) // WIDTH)
    for first in range(0, samples, clusters.samples_at_once):
        some = overlaps[first : first + clusters.samples_at_once]
        joined = cupy.zeros((len(some), count, columns * WIDTH), cupy.uint8)
        rows = there[first : first + len(some)] if len(there) > 1 else there
        joined[..., : len(ends)] = (some[..., one] == some[..., other]) & cupy.asarray(rows)[:, None]
        words = cupy.packbits(joined.ravel(), bitorder="little").view(cupy.uint32)
        clusters.describe(first, words.reshape(len(some), count, columns))
    return clusters.results
