"""Houdayer moves of replica-packed words on a GPU: squares of 32 sites x 32 replicas are turned and turned back.

Unpacked models also have such words on a GPU. The kernels are in kernels/clusters/houdayer.cu.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spinsim.cuda.compile import instance
from spinsim.cuda.device import cupy, require_memory, shared_memory
from spinsim.cuda.launch import ADDRESS, SIZE, Launch, round_keys, struct_type
from spinsim.engine.cuda import CudaParts
from spinsim.engine.cuda_queue import OnDevice, Step, queue_steps
from spinsim.engine.layouts.replica_packed_cuda import OrderedWords, place_of
from spinsim.engine.moves.houdayer import Bonds, bonds_of
from spinsim.engine.moves.move import FastPath, Moment, most_halvings
from spinsim.model.couplings import distinct
from spinsim.model.graph import colouring
from spinsim.model.ising import Ising
from spinsim.packing import LANES

WIDTH: Final = 32
NOBODY: Final = 2**32 - 1  # marks a position without a site
SHIFT_BITS: Final = 5
SLOTS: Final = 4

Words = npt.NDArray[np.uint32]


class Rows(NamedTuple):
    """Lattices in rows: a word has 32 sites of a row, or several short rows, so that clusters grow by whole words.

    A lattice has rows if row u has the sites L u to L u + L - 1, and each bond joins neighbours in a row or equal
    positions of two rows. A row has ceil(L / 32) words, or else 32 / G bits of a word. G is the largest power of two
    that leaves room for L and divides the number of rows U. Row u is then part u // (U / G) of word u % (U / G), so
    that neighbouring rows have the same bits of two words. Across a border between parts they are shifted by one part.

    A GPU visits 32 words at a time; these see each other's changes only at the next visit. So neighbouring rows are
    visited one after the other: words are numbered by the rows' places in blocks of 2^b x 2^c rows (one place per
    visit), then by blocks.
    """

    site_at: Words  # site at each position, (words, 32), or ``NOBODY``
    near: Words  # words to which bonds lead, (words, 4), each as 128 times its number plus the shift in bits
    in_row: Words  # words before and after in the row, (words, 2), likewise, plus their last bits
    slots: int  # how many of the four columns are used
    allowed: Words  # positions that have the bond of a slot, (1 or samples, slots, words)
    along: Words  # positions with a bond to the previous one in their ring, (1 or samples, words)
    words_a_row: int  # words of a row
    last: int  # bit of the last position of a row in its last word, counted from the row's first bit
    low: int  # first positions of rows, or of words of longer rows, as bits of a word

    @property
    def is_masked(self) -> bool:
        """True if sites of a word differ in the bonds that they have with other rows."""
        itself = np.arange(len(self.site_at)) << SHIFT_BITS + 2
        sites = np.bitwise_or.reduce(_bit(np.arange(WIDTH)) * (self.site_at != NOBODY).astype(np.uint32), axis=1)
        return bool(np.any((self.near.T[: self.slots] != itself) & (self.allowed != sites)))


def _bit(number: npt.NDArray[np.int64]) -> Words:
    return (np.uint64(1) << number.astype(np.uint64)).astype(np.uint32)


def _numbered(rows: int, sides: tuple[int, ...], words: int) -> npt.NDArray[np.int64]:
    """Visiting numbers of rows, which have ``words`` words in all; ``sides`` across the rows, the first fastest."""
    left, phase = np.arange(rows), np.zeros(rows, np.int64)
    sides = (*sides[:-1], rows)
    bits = (-(-words // WIDTH) - 1).bit_length()
    for axis, side in enumerate(sides):
        own = bits // len(sides) + (axis < bits % len(sides))
        phase = phase << own | left % side % 2**own
        left = left // side
    number = np.empty(rows, np.int64)
    number[np.argsort(phase, kind="stable")] = np.arange(rows)
    return number


def rows_of(model: Ising, bonds: Bonds) -> Rows | None:
    """Rows of a model's lattice, or of its sites in time; None if it has no rows."""
    lattice, sites = model.lattice, model.sites
    length = lattice.shape[0] if lattice else model.graph.slices
    if length < 3 or sites % length:
        return None
    rows, parts = sites // length, max(1, WIDTH // 2 ** (length - 1).bit_length())
    while rows % parts:
        parts //= 2
    a_row, rows_a_part, wide = -(-length // WIDTH), rows // parts, WIDTH // parts
    row, x = np.divmod(np.arange(sites), length)
    number = _numbered(rows_a_part, lattice.shape[1:] if lattice else (), rows_a_part * a_row)
    word, bit = number[row % rows_a_part] * a_row + x // WIDTH, row // rows_a_part * wide + x % WIDTH
    words = rows_a_part * a_row
    site_at = np.full((words, WIDTH), NOBODY, np.uint32)
    site_at[word, bit] = np.arange(sites)

    one, other = (np.concatenate([model.graph.edges[:, end] for end in ends]) for ends in ((0, 1), (1, 0)))
    in_row, step = row[one] == row[other], x[one] - x[other]
    if not np.where(in_row, np.isin(np.abs(step), (1, length - 1)), step == 0).all():
        return None
    across = ~in_row
    rotation = (bit[other] - bit[one]) % WIDTH
    leads = (word[one] * words + word[other]) * WIDTH + rotation
    kinds = np.unique(leads[across])
    slot = np.arange(len(kinds)) - np.searchsorted(kinds // (words * WIDTH), kinds // (words * WIDTH))
    slots = int(slot.max(initial=-1)) + 1
    if slots > SLOTS:
        return None
    code = np.arange(words) << SHIFT_BITS + 2
    near = np.repeat(code[:, None], SLOTS, axis=1)
    near[kinds // (words * WIDTH), slot] = code[kinds // WIDTH % words] + kinds % WIDTH
    in_row, top = np.arange(words).reshape(-1, a_row), np.full(a_row, WIDTH - 1)
    top[-1] = (length - 1) % WIDTH
    neighbours = [code[np.roll(in_row, by, axis=1)] + last for by, last in ((1, np.roll(top, 1)), (-1, top))]

    allowed = np.zeros((len(bonds.start), slots, words), np.uint32)
    along = np.zeros((len(bonds.start), words), np.uint32)
    for k, start in enumerate(bonds.start):
        one, other = np.repeat(np.arange(sites), np.diff(start)), bonds.neighbour[start[0] : start[-1]]
        in_row, step = row[one] == row[other], x[one] - x[other]
        before = in_row & ((step == 1) | (step == 1 - length))
        np.bitwise_or.at(along[k], word[one[before]], _bit(bit[one[before]]))
        one, other = one[~in_row], other[~in_row]
        leads = (word[one] * words + word[other]) * WIDTH + (bit[other] - bit[one]) % WIDTH
        np.bitwise_or.at(allowed[k], (slot[np.searchsorted(kinds, leads)], word[one]), _bit(bit[one]))
    low = sum(1 << part * wide for part in range(parts))
    near, in_row = near.astype(np.uint32), np.stack(neighbours, axis=-1).reshape(words, 2).astype(np.uint32)
    return Rows(site_at, near, in_row, slots, allowed, along, a_row, int(top[-1]), low)


FILE: Final = "clusters/houdayer.cu"
THREADS: Final = 512  # most threads of a block
COLUMNS: Final = 8  # columns of a block that transposes squares, a memory sector for each row
MOST_PAIRS: Final = 8  # most pairs of a block, one per warp
KEPT: Final = (1, 2, 4)  # numbers of words of a pair that a lane can keep in registers
STATIC: Final = 1024  # most bytes of the kernels' other shared memory
PAIRS: Final = struct_type(
    one=ADDRESS, other=ADDRESS, halvings=ADDRESS, of_replica=ADDRESS, keys=ADDRESS, count=np.uint32, replicas=np.uint32
)
SQUARES: Final = struct_type(
    state=ADDRESS, turned=ADDRESS, place_of=ADDRESS, site_at=ADDRESS, sites=np.uint32, columns=np.uint32,
    stride=np.uint32, blocks=np.uint32, in_field=np.uint32,
)  # fmt: skip
GROWTH: Final = struct_type(
    near=ADDRESS, degree=ADDRESS, colour_start=ADDRESS, near_stride=SIZE, degree_stride=SIZE, colours=np.uint32
)
ROWS: Final = struct_type(
    near=ADDRESS, in_row=ADDRESS, allowed=ADDRESS, along=ADDRESS, allowed_stride=SIZE, along_stride=SIZE,
    slots=np.uint32, words_a_row=np.uint32, last=np.uint32, low=np.uint32, masked=np.uint32,
)  # fmt: skip


def fast_path(model: Ising, replicas: int, first_sample: int, parts: CudaParts) -> FastPath | None:
    """Make the move of an engine's words in place; None for other layouts, such as dense models."""
    if not isinstance(parts.state, OrderedWords):
        return None
    return ClustersOnGpu(model, replicas, first_sample, parts, parts.state)


class ClustersOnGpu:
    """A ``FastPath`` of an engine; CuPy's present device and stream must be the engine's."""

    def __init__(self, model: Ising, replicas: int, first_sample: int, parts: CudaParts, words: OrderedWords) -> None:
        self._model, self._replicas, self._queue, self._words = model, replicas, parts.queue, words
        self._first_sample = np.uint32(first_sample)
        self._made_for: tuple[int, ...] = ()
        self._steps: list[Step] = []

    def __call__(self, moment: Moment, holder: Any) -> None:
        """Queue a move; ``holder`` is int32 on the device."""
        if holder.shape[1] < 2:
            return
        if self._made_for != holder.shape:
            self._on_device, self._made_for = OnDevice(), holder.shape
            self._steps = self._made(*holder.shape[1:])
        now = {"time": moment.time, "key": round_keys(moment.seed)}
        queue_steps(self._queue.stream, self._steps, {"holder": holder.data.ptr}, now)

    def _made(self, copies: int, temperatures: int) -> list[Step]:
        """Return the kernels in order, with all arguments except the moment's."""
        queue, model, count = self._queue, self._model, copies // 2 * temperatures
        bonds = bonds_of(model)
        rows = rows_of(model, bonds)
        if rows and 8 * len(rows.site_at) > shared_memory(queue.device):
            rows = None
        squares, columns = self._squares(rows)
        sizes = {"one": count, "other": count, "halvings": count, "of_replica": self._replicas}
        arrays = {name: np.zeros((model.samples, size), np.uint32) for name, size in sizes.items()}
        arrays["keys"] = np.zeros((model.samples, self._replicas), np.uint64)
        pairs = self._on_device(PAIRS, **arrays, count=count, replicas=self._replicas)
        drawing = {"pairs": pairs, "first_sample": self._first_sample, "time": np.uint64(0)}
        pairing = Launch(queue.device, FILE, "pair_copies", {
            "holder": np.uint64(0), "copies": np.uint32(copies), "temperatures": np.uint32(temperatures),
            "most": np.uint32(most_halvings(model.sites)), "key": queue.keys.copy(), **drawing,
        })  # fmt: skip
        drawing |= {"squares": squares, "key": queue.keys.copy()}
        over = -(-columns // COLUMNS)
        turning = (over, self._words.present.shape[1], model.samples), COLUMNS * WIDTH, False
        return [
            Step(pairing, (model.samples, 1, 1), THREADS, True),
            Step(Launch(queue.device, FILE, "turn_replicas", {"squares": squares}), *turning),
            *(self._in_rows(rows, over, drawing) if rows else self._by_site(bonds, drawing)),
            Step(Launch(queue.device, FILE, "flip_replicas", {"squares": squares, "pairs": pairs}), *turning),
        ]

    def _squares(self, rows: Rows | None) -> tuple[Any, int]:
        """Record of the spins in both orientations, and the number of columns; sites are in rows or in word order."""
        order, (samples, blocks, sites, _) = self._words.site_at, self._words.present.shape
        columns = len(rows.site_at) if rows else -(-sites // WIDTH)
        at = np.full(columns * WIDTH, NOBODY, np.uint32)
        at[: at.size if rows else sites] = rows.site_at.ravel() if rows else order
        place = np.full(at.size, NOBODY, np.uint32)
        place[at != NOBODY] = place_of(order)[at[at != NOBODY]]
        stride = -(-columns // COLUMNS) * COLUMNS
        lie = samples * blocks * LANES * stride
        require_memory(self._queue.device, 4 * lie, f"the turned replicas of {self._model.name}")
        return self._on_device(
            SQUARES, state=self._words.present, turned=cupy.empty(lie, cupy.uint32), place_of=place, site_at=at,
            sites=sites, columns=columns, stride=stride, blocks=blocks,
            in_field=bool(np.any(distinct(self._model.fields))),
        ), columns  # fmt: skip

    def _in_rows(self, rows: Rows, over: int, drawing: dict[str, Any]) -> list[Step]:
        """Return the kernels for lattices in rows: seeds, then clusters."""
        model, device, columns = self._model, self._queue.device, len(rows.site_at)
        samples, each, count = model.samples, len(rows.along) > 1, int(drawing["pairs"]["count"])
        words = -(-count // WIDTH)
        lie = samples * words * WIDTH * over * COLUMNS
        require_memory(device, 4 * lie, f"the seeds of clusters of {model.name}")
        sown = cupy.empty(lie, cupy.uint32)
        of_rows = self._on_device(
            ROWS, near=rows.near, in_row=rows.in_row, allowed=rows.allowed, along=rows.along,
            allowed_stride=rows.allowed[0].size if each else 0, along_stride=rows.along[0].size if each else 0,
            slots=rows.slots, words_a_row=rows.words_a_row, last=rows.last, low=rows.low, masked=rows.is_masked,
        )  # fmt: skip
        sowing = Launch(device, FILE, "sow", {"sown": sown, **drawing})
        warps = min(MOST_PAIRS, shared_memory(device) // (8 * columns))
        kept = next((number for number in KEPT if columns <= number * WIDTH), 0)
        moving = Launch(
            device, FILE, instance("move_in_rows", kept),
            {"rows": of_rows, "sown": sown, **{name: drawing[name] for name in ("squares", "pairs")}},
            8 * columns * warps,
        )  # fmt: skip
        return [
            Step(sowing, (over, words, samples), COLUMNS * WIDTH, True),
            Step(moving, (-(-count // warps), samples, 1), warps * WIDTH, False),
        ]

    def _by_site(self, bonds: Bonds, drawing: dict[str, Any]) -> list[Step]:
        """Return the kernel for all other graphs, with sites in the words' order."""
        model, device, order = self._model, self._queue.device, self._words.site_at
        words = -(-int(drawing["pairs"]["count"]) // WIDTH)
        place, degree = place_of(order), np.diff(bonds.start)[:, order]
        slots, rows = int(degree.max(initial=1)), len(degree)
        require_memory(device, rows * model.sites * (4 * slots + 2), f"the bonds of clusters of {model.name}")
        near = np.zeros((rows, slots, model.sites), np.uint32)
        first = bonds.start[:, :-1][:, order]
        for slot in range(slots):
            there = slot < degree
            near[:, slot][there] = place[bonds.neighbour[first[there] + slot]]
        colour = colouring(model.graph)[order]
        starts = np.searchsorted(colour, np.arange(colour[-1] + 2)).astype(np.uint32)
        strides = (near[0].size, model.sites) if rows > 1 else (0, 0)
        growth = self._on_device(
            GROWTH, near=near, degree=np.ascontiguousarray(degree, np.uint16), colour_start=starts,
            near_stride=strides[0], degree_stride=strides[1], colours=len(starts) - 1,
        )  # fmt: skip
        bytes_a_block = 2 * 4 * model.sites
        in_shared = bytes_a_block <= shared_memory(device) - STATIC
        lie = model.samples * words * bytes_a_block
        if not in_shared:
            require_memory(device, lie, f"the clusters of {model.name}")
        scratch = cupy.empty(0 if in_shared else lie // 4, cupy.uint32)
        launch = Launch(
            device, FILE, instance("move_clusters", in_shared), {"growth": growth, "scratch": scratch, **drawing},
            bytes_a_block if in_shared else 0,
        )  # fmt: skip
        return [Step(launch, (words, model.samples, 1), min(THREADS, -(-model.sites // WIDTH) * WIDTH), True)]
