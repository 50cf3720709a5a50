"""The butterfly kernels' passes over a vector on a GPU, and its random start."""

from __future__ import annotations

from itertools import product
from math import ceil
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spinsim.cuda.compile import instance
from spinsim.cuda.device import multiprocessors
from spinsim.cuda.launch import ADDRESS, Launch, record, struct_type
from spinsim.gemm import both_factors, left_factor
from spinsim.transfer_matrix.layer import Layer, quadratic
from spinsim.transfer_matrix.vectors import START_FILE, Across, across_instances

FILE: Final = "transfer_matrix/butterfly.cu"
FEWEST_BITS: Final = 12  # of a tile
MOST_BITS: Final = 13
TILES: Final = (FEWEST_BITS, MOST_BITS)
RUN: Final = 4  # lowest bits of the vector that every tile holds
REGISTER_BITS: Final = 4  # bits of a tile that a thread holds in registers
SITES, FIXED = 16, 32  # most sites of a tile, and most other sites
COLUMNS, CONTIGUOUS, SECTOR = range(3)
KINDS: Final = (COLUMNS, CONTIGUOUS, SECTOR)
FACTORS: Final = struct_type(q=(np.float64, MOST_BITS))
DIAGONAL: Final = struct_type(own=ADDRESS, outer=ADDRESS, cross=ADDRESS)


def instantiations() -> list[tuple[str, str]]:
    passes = product(TILES, KINDS, (False, True))
    ours = [*((FILE, instance("butterfly", *of_pass)) for of_pass in passes), (START_FILE, "start_vector")]
    return ours + across_instances()


class Pass(NamedTuple):
    """One pass over memory."""

    tile: int  # bits of a tile
    kind: int  # kind of the tile, one of ``KINDS``
    position: int  # first of the tile's bits outside the run
    active: range  # bits of the vector whose factors belong to this pass

    @property
    def reach(self) -> int:
        """Amplitudes of the smallest contiguous piece of a vector within which the pass stays."""
        return 1 << (self.tile if self.kind == CONTIGUOUS else self.position + self.tile - RUN)

    def sites(self, layer: Layer) -> list[int]:
        """Sites of the tile's bits. The global-flip bit stands for the last site, which is otherwise fixed down."""
        if self.kind == COLUMNS:
            return [*range(RUN), *range(self.position, self.position + self.tile - RUN)]
        return [*range(self.tile - 1), layer.sites - 1 if self.kind == SECTOR else self.tile - 1]


def plan_passes(bits: int, sector: bool) -> list[Pass]:
    """Plan as few passes as possible, with smaller tiles where these suffice; larger tiles first, without diagonal."""
    widest = TILES[-1] - RUN

    def columns(tile: int) -> int:
        return ceil(max(0, bits - (tile - sector)) / widest)

    tile = min((t for t in TILES if t <= bits), key=columns)
    at, count = tile - sector, columns(tile)
    passes = [Pass(tile, SECTOR if sector else CONTIGUOUS, RUN, range(at))]
    wide = max(0, bits - at - count * (TILES[0] - RUN))
    for i in range(count):
        tile = TILES[i < wide]
        end = min(at + tile - RUN, bits)
        passes.append(Pass(tile, COLUMNS, end - (tile - RUN), range(at, end)))
        at = end
    return passes


def _diagonal_pass(bits: int) -> Pass:
    return Pass(FEWEST_BITS, COLUMNS, bits - FEWEST_BITS + RUN, range(0))


class CudaButterfly:
    """D B D by butterflies; the diagonal comes from tables of a tile's and of all other spins.

    A layer has at least ``FEWEST_BITS`` bits. Where its vectors are parts of longer ones, ``across`` has the factors of
    the remaining bits.
    """

    def __init__(self, layer: Layer, device: int = 0, across: Across | None = None) -> None:
        passes = plan_passes(layer.bits, layer.sign != 0)
        if across and len(passes) == 1:
            passes.append(_diagonal_pass(layer.bits))
        self._launches = [_PassLaunch(layer, p, p is passes[-1], device) for p in passes]
        self._across = across
        self._in_pieces = 0  # passes that can be done piece by piece
        if across:
            self._in_pieces = sum(p.reach <= across.piece for p in passes[:-1])
            for launch in self._launches[: self._in_pieces]:
                launch.cut(across.piece)

    def __call__(self, x: Any, out: Any) -> None:
        """Out = T x; they may be the same vector."""
        first, *others = self._launches
        if self._across is None or self._in_pieces == 0:
            first(x, out)
            if self._across:
                self._across(out)
        else:
            ready = others[: self._in_pieces - 1]
            others = others[self._in_pieces - 1 :]

            def before(piece: int) -> None:
                first(x, out, piece)

            def after(piece: int) -> None:
                for launch in ready:
                    launch(out, out, piece)

            self._across(out, before, after)
        for launch in others:
            launch(out, out)


class CudaKronecker:
    """D B D by products with 64 x 64 factors (``spinsim.gemm``), between two passes of the diagonal.

    Twelve bits go in one pass with a factor on both sides of each tile, the others six, five or seven at a time.
    Arguments are as for ``CudaButterfly``.
    """

    def __init__(self, layer: Layer, device: int = 0, across: Across | None = None) -> None:
        import cupy

        first = Pass(FEWEST_BITS, SECTOR if layer.sign else CONTIGUOUS, RUN, range(0))
        self._first = _PassLaunch(layer, first, False, device)
        self._last = _PassLaunch(layer, _diagonal_pass(layer.bits), True, device)
        self._across = across
        self._tile, groups = cupy.asarray(_factor(layer.ratio, 6, 6)), _split(layer.bits - 12)
        self._groups = [(position, cupy.asarray(_factor(layer.ratio, *of_bits))) for position, *of_bits in groups]

    def __call__(self, x: Any, out: Any) -> None:
        self._first(x, out)
        if self._across:
            self._across(out)
        tiles = out.reshape(-1, 64, 64)
        both_factors(self._tile, tiles, self._tile, out=tiles)
        for position, factor in self._groups:
            panel = out.reshape(-1, len(factor), 1 << position)
            left_factor(factor, panel, out=panel)
        self._last(out, out)


def _split(bits: int) -> list[tuple[int, int, int]]:
    """Groups of the bits from the twelfth on: first bit, width, and how many of them are new (the highest)."""
    groups, at = [], 12
    count = ceil(bits / 7)
    for i in range(count):
        active = (bits - (at - 12)) // (count - i)
        width = max(active, 5)
        groups.append((at + active - width, width, active))
        at += active
    return groups


def _factor(ratio: float, bits: int, active: int) -> npt.NDArray[np.float64]:
    """The product of [[1, q], [q, 1]] over the highest ``active`` of some bits."""
    factor = np.ones((1, 1))
    for bit in range(bits):
        pair = np.array([[1, ratio], [ratio, 1]]) if bit >= bits - active else np.eye(2)
        factor = np.kron(pair, factor)
    return np.ascontiguousarray(factor)


class _PassLaunch:
    def __init__(self, layer: Layer, p: Pass, last: bool, device: int) -> None:
        own = p.sites(layer)
        factors = np.zeros(MOST_BITS)
        factors[: len(own)] = [layer.ratio if site in p.active else 0.0 for site in own]
        if p.kind == SECTOR:
            factors[p.tile - 1] = layer.sign * layer.ratio
        self._tile, self._tiles, self._piece = p.tile, 1 << (layer.bits - p.tile), 0
        self._tables = _tables(layer, own) if last or p.kind != COLUMNS else None
        mine, outer, cross = self._tables or (0, 0, 0)
        arguments = {
            "x": np.uint64(0),
            "y": np.uint64(0),
            "tiles": np.uint64(self._tiles),
            "position": np.int32(p.position),
            "last": np.uint64(layer.dimension - 1),
            "factors": record(FACTORS, q=factors),
            "diagonal": record(DIAGONAL, own=mine, outer=outer, cross=cross),
        }
        ahead = p.tile > TILES[0] and last and p.kind == COLUMNS  # the next tile comes while one is in use: AHEAD
        shared = 8 * ((1 << p.tile) + (1 << p.tile - 4) + ahead * (1 << p.tile))
        self._launch = Launch(device, FILE, instance("butterfly", p.tile, p.kind, last), arguments, shared)
        self._threads = 1 << (p.tile - REGISTER_BITS)
        self._most_blocks = multiprocessors(device) * self._launch.blocks_at_once(self._threads)

    def cut(self, piece: int) -> None:
        """Make the launch ready for pieces of ``piece`` amplitudes.

        A tile counts from the beginning of its piece, so that spins which are up in all of the piece are taken as down:
        bonds to these spins change their sign.
        """
        import cupy

        self._piece = piece
        if self._tables is None:
            return
        cross, tiles = self._tables[2].get(), piece >> self._tile
        numbers = np.arange(self._tiles // tiles)[:, None] * tiles
        up = np.where((numbers >> np.arange(FIXED)) & 1, -1.0, 1.0)
        self._of_pieces = cupy.asarray(up[:, None, :] * cross)

    def __call__(self, x: Any, out: Any, piece: int | None = None) -> None:
        """Launch the pass on a whole vector, or on its piece of this number."""
        import cupy

        tiles, first, changed = self._tiles, 0, dict[str, Any]()
        if piece is not None:
            tiles, first = self._piece >> self._tile, piece * self._piece
            if self._tables:
                own, outer, _ = self._tables
                outer, cross = outer[first >> self._tile :], self._of_pieces[piece]
                changed["diagonal"] = record(DIAGONAL, own=own, outer=outer, cross=cross)
        changed |= {"tiles": tiles, "x": x.data.ptr + 8 * first, "y": out.data.ptr + 8 * first}
        blocks = min(tiles, self._most_blocks)
        self._launch(cupy.cuda.get_current_stream(), (blocks, 1, 1), self._threads, **changed)


def _tables(layer: Layer, own: list[int]) -> tuple[Any, Any, Any]:
    """The diagonal of a tile's spins, of all others, and the bonds between the two."""
    import cupy

    pairs, fields = layer.pairs, layer.fields
    if layer.sites - 1 not in own:
        pairs, fields = layer.free(pairs, fields)
    others = [i for i in range(len(fields)) if i not in own]
    inside = pairs[np.ix_(own, own)]
    bound = float(np.abs(inside).sum() / 2 + np.abs(fields[own]).sum())
    mine = cupy.exp(quadratic(cupy, inside, fields[own]) - bound)
    outer = cupy.exp(quadratic(cupy, pairs[np.ix_(others, others)], fields[others]) - (layer.offset - bound))
    cross: npt.NDArray[np.float64] = np.zeros((SITES, FIXED))
    cross[: len(own), : len(others)] = pairs[np.ix_(own, others)]
    return mine, outer, cupy.asarray(cross)
