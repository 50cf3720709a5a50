"""Adding up the measurements of a ladder on the GPU that makes them, from their buffers; lowest states."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import ldexp, prod
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spinsim.cuda.compile import instance
from spinsim.cuda.device import cupy, multiprocessors, require_memory, stream_for
from spinsim.cuda.launch import ADDRESS, SIZE, Launch, record, struct_type
from spinsim.engine.measuring.correlations import Quantities
from spinsim.engine.measuring.cuda_comparison import Compared
from spinsim.engine.measuring.reduction import (
    CONNECTED,
    COUNTS,
    RANGE,
    Reduced,
    Source,
    Tables,
    blocks_of,
    is_halved,
    left_in_succession,
    lengths_of_blocks,
    tables_of,
)
from spinsim.engine.measuring.reduction import SUMS as ENERGY_SUMS
from spinsim.engine.moves.exchange import copy_pairs
from spinsim.engine.protocols import Configurations, LowestStates
from spinsim.machine.memory import on_gpu
from spinsim.model.ising import Ising

THREADS: Final = 128
LOWEST: Final = struct_type(
    **dict.fromkeys(("energy", "replica", "changed", "states"), ADDRESS),
    **dict.fromkeys(("samples", "replicas", "words"), SIZE),
)
BLOCKS: Final = 4  # blocks per multiprocessor that copy states, if samples are few
_MANY: Final = 16  # changed samples from which on all states are fetched together
_MOST_BYTES: Final = 2**28  # most bytes of states that are fetched together
WORDS_A_THREAD: Final = 16  # least words of a state per thread


class Fetched(np.ndarray[Any, Any]):
    """A copy of a device array on the host, which has the same method ``get``."""

    def get(self) -> npt.NDArray[Any]:
        return np.ascontiguousarray(self)


class CudaLowest:
    """The lowest energy of every replica, and a copy of each sample's state of lowest energy."""

    def __init__(
        self, device: int, model: Ising, replicas: int, state: Any,
        read: Callable[[Any, int, int], npt.NDArray[np.int8]], reads: Any,
    ) -> None:  # fmt: skip
        samples = model.samples
        size = state.nbytes // samples  # bytes per sample: whole words of 32 bits in every layout
        if size % 4:
            raise TypeError(f"the state of a sample has {size} bytes, which are no whole words")
        require_memory(device, state.nbytes + 8 * samples * (replicas + 4), "the lowest state of every sample")
        self._device, self._read, self._reads, self._sites = device, read, reads, model.sites
        with reads:
            self._energy, self._so_far = cupy.full((samples, replicas), np.inf), cupy.full((2, samples), np.inf)
            self._replica, self._changed = cupy.zeros(samples, cupy.int32), cupy.zeros(samples, cupy.uint32)
            self._states = cupy.empty(state.shape, state.dtype)
            reads.synchronize()
        words, several = size // 4, BLOCKS * multiprocessors(device) // samples
        self._grid = max(1, min(several, words // (THREADS * WORDS_A_THREAD))), samples, 1
        to = record(
            LOWEST, energy=self._energy, replica=self._replica, changed=self._changed, states=self._states,
            samples=samples, replicas=replicas, words=words,
        )  # fmt: skip
        self._keep = Launch(device, "measuring/lowest.cu", "keep_lowest", {
            "numbers": np.uint64(0), "size": np.uint64(0), "count": np.uint32(0),
            **dict.fromkeys(("energy", "holder", "state"), np.uint64(0)), "to": to,
            **dict.fromkeys(("before", "after"), np.uint64(0)),
        })  # fmt: skip
        self._so_far_at = tuple(each.data.ptr for each in self._so_far)
        self._parity = 0
        self._given: Configurations | None = None
        self._is_copied = np.zeros(samples, np.bool_)  # copied since configurations were given

    def queue(self, stream: Any, numbers: int, size: int, count: int, energy: int, holder: int, state: int) -> None:
        """Queue finding lower states in consecutive measurements.

        ``numbers`` and ``state`` are addresses of the first measurement's numbers and spins. The next measurements
        follow; each has ``size`` words of numbers. Energies and replicas by copy and place begin at words ``energy``
        and ``holder``.
        """
        before, after = self._so_far_at[self._parity], self._so_far_at[1 - self._parity]
        where = {"energy": energy, "holder": holder, "state": state, "before": before, "after": after}
        self._keep(stream, self._grid, THREADS, numbers=numbers, size=size, count=count, **where)
        self._parity = 1 - self._parity

    def states(self, added: Any) -> LowestStates:
        with on_gpu(self._device), self._reads:
            self._reads.wait_event(added)
            energy, replica, changed = (array.get() for array in (self._energy, self._replica, self._changed))
            self._changed.data.memset_async(0, self._changed.nbytes, self._reads)
            self._reads.synchronize()
            numbers = np.flatnonzero(changed)
            at_once = len(numbers) >= _MANY and self._states.nbytes <= _MOST_BYTES
            states = self._states.get().view(Fetched) if at_once else self._states
        self._is_copied |= changed != 0
        spins = partial(self._spins, states, replica)
        return LowestStates(np.asarray(energy), spins, numbers)

    def _spins(self, states: Any, replica: npt.NDArray[np.int32], sample: int) -> npt.NDArray[np.int8]:
        if not self._is_copied[sample]:
            return np.zeros(self._sites, np.int8) if self._given is None else np.asarray(self._given[sample], np.int8)
        with on_gpu(self._device), self._reads:
            return self._read(states, sample, int(replica[sample]))

    def restore(self, energy: npt.NDArray[np.float64], spins: Configurations, added: Any) -> None:
        """Restore energies (samples, replicas) and configurations of each sample, after the event ``added``."""
        with on_gpu(self._device), self._reads:
            self._reads.wait_event(added)
            self._energy.set(np.ascontiguousarray(energy, np.float64))
            self._so_far.set(np.ascontiguousarray(np.broadcast_to(energy.min(axis=1), self._so_far.shape)))
            self._changed.data.memset_async(0, self._changed.nbytes, self._reads)
            self._reads.synchronize()
        self._given = spins
        self._is_copied[:] = False


MOST_ELEMENTS: Final = 8  # most elements that a source adds up
SOURCE: Final = struct_type(
    **dict.fromkeys(("first", "of_sample", "of_chain", "of_place", "count", "is_real"), SIZE),
    elements=(np.uint32, MOST_ELEMENTS),
)
TERM: Final = struct_type(
    sources=(SOURCE, 2),
    count=SIZE,
    chains=SIZE,
    **dict.fromkeys(("power", "followed", "own", "judged", "row", "pair_row"), np.int64),
)


_FILE: Final = "measuring/energies.cu"
_MOST_CHAINS: Final = 8
"""Threads of a place that share the chains of a term, so that their additions wait for memory at the same time."""
_ARRAYS: Final = {
    "range": RANGE, "counts": COUNTS[0], "sums": ENERGY_SUMS[0], "pair_counts": COUNTS[1], "pair_sums": ENERGY_SUMS[1],
}  # fmt: skip
ENERGIES: Final = struct_type(
    **dict.fromkeys(("terms", "scales", "constants", "pairs", *_ARRAYS), ADDRESS),
    energy=SOURCE,
    inverse=np.float64,
    **dict.fromkeys(("term_count", "samples", "places", "copies", "pair_count", "bins", "blocks"), SIZE),
    **dict.fromkeys(("rows", "pair_rows"), SIZE),
)


class CudaEnergies:
    """Sums over energy of a reduction, stored in the reduction's arrays."""

    def __init__(
        self, device: int, reduced: Reduced, arrays: dict[str, Any], size: int, energy: Any, terms: Any, **tables: Any
    ) -> None:
        assert reduced.energies is not None  # noqa: S101  (checked by the caller)
        self._reduced, self._energies = reduced, reduced.energies
        self._sums = [arrays[name] for name in ENERGY_SUMS if name in arrays]
        e = reduced.energies
        to = record(
            ENERGIES, terms=terms, **tables, **{name: arrays.get(own, 0) for name, own in _ARRAYS.items()},
            energy=energy, inverse=1 / e.unit, term_count=len(reduced.terms), samples=reduced.model.samples,
            places=reduced.places, copies=reduced.copies, pair_count=reduced.pairs if e.pair_rows else 0, bins=e.bins,
            blocks=e.blocks, rows=e.rows, pair_rows=e.pair_rows,
        )  # fmt: skip
        buffers = {"numbers": np.uint64(0), "size": np.uint64(size), "to": to}
        self._widen = Launch(
            device, _FILE, "widen_energies", {**buffers, "count": np.uint32(0), "number": np.uint64(0)}
        )
        self._stream = stream_for(self)
        self._ready, self._done = (cupy.cuda.Event(disable_timing=True) for _ in range(2))
        self._chains = min(max(reduced.copies, reduced.pairs), _MOST_CHAINS)
        of_measurements = {
            "chains": np.uint32(self._chains), "number": np.uint64(0), "shift": np.uint32(0), "scale": np.float64(0)
        }  # fmt: skip
        self._add = Launch(device, _FILE, "add_energies", buffers | of_measurements)
        self._halve = Launch(device, _FILE, "halve_sums", {"sums": np.uint64(0), "size": np.uint64(0)})

    def add(self, stream: Any, numbers: int, count: int, number: int, shift: int) -> None:
        """Queue adding ``count`` measurements of one unit, 2^shift per block, behind a stream; ``number`` came before.

        The stream's work until ``join`` runs concurrently: neither fills the device.
        """
        self._ready.record(stream)
        self._stream.wait_event(self._ready)
        self._queue(self._stream, numbers, count, number, shift)
        self._done.record(self._stream)

    def join(self, stream: Any) -> None:
        """Let a stream wait for the additions."""
        stream.wait_event(self._done)

    def _queue(self, stream: Any, numbers: int, count: int, number: int, shift: int) -> None:
        reduced, energies = self._reduced, self._energies
        if is_halved(number):
            for sums in self._sums:
                grid = -(-sums.size // THREADS), 1, 1
                self._halve(stream, grid, THREADS, sums=sums.data.ptr, size=sums.size)
        self._widen(stream, (reduced.model.samples, 1, 1), THREADS, numbers=numbers, count=count, number=number)
        columns = -(-reduced.model.samples * reduced.places // THREADS)
        grid = columns, len(reduced.terms) + 1 + (energies.pair_rows > 0), count * self._chains
        scale = ldexp(1.0, energies.exponent(number))
        self._add(stream, grid, THREADS, numbers=numbers, number=number, shift=shift, scale=scale)


MOST_HISTOGRAMS: Final = 2
HISTOGRAM: Final = struct_type(counts=ADDRESS, first=SIZE, values=SIZE, cells=SIZE)
ADDED: Final = (
    *("block_sums", "copy_sums", "coldest_sums", "level_sums", "level_squares", "level_open", "first_value"),
    *("walk_sums", "walk_squares"),
)
"""Arrays of ``Reduced.arrays`` in the order of the kernels' struct."""
SUMS: Final = struct_type(
    **dict.fromkeys(("terms", "scales", "constants", "pairs", *ADDED), ADDRESS),
    **dict.fromkeys(("term_count", "histogram_count", "samples", "places", "copies", "pair_count"), SIZE),
    **dict.fromkeys(("most_chains", "blocks", "coldest_blocks", "level_blocks", "place"), SIZE),
    histograms=(HISTOGRAM, MOST_HISTOGRAMS),
)
WHOLE_PAIRS: Final = ("overlap", "link_overlap", "link_overlap_in_space")
ON_HOST: Final = ("measurements",)
MERGED: Final = {np.dtype(np.float64): "double", np.dtype(np.int64): "long long"}
"""Kernel type names of the dtypes of arrays whose blocks are merged."""


class Buffer(NamedTuple):
    """Layout of the buffer of a measurement."""

    words: Mapping[str, int]  # first word of each field, by name
    size: int  # words of a measurement
    compared: Compared  # choice of copies and quantities
    axes: int  # axes of modes

    @property
    def wanted(self) -> Quantities:
        """Kind of measurement, which distinguishes the buffers of one ladder."""
        return self.compared.wanted

    def find(self, source: Source) -> tuple[Any, ...]:
        """Return the location of a source's numbers, as the members of ``SOURCE``."""
        compared, places = self.compared, self.compared.shape[2]
        elements = source.elements or (0,)
        if len(elements) > MOST_ELEMENTS:
            raise TypeError(f"{source.name} has more than {MOST_ELEMENTS} elements that are added up")
        shift = 0
        if source.name in WHOLE_PAIRS:
            name, rows, width = source.name, compared.pairs, 1
        elif source.name in ("in_time", "even_in_time"):
            name, rows, width = source.name, compared.unpaired, len(compared.times)
        elif source.name.endswith(("_mode", "_powers")):  # copies come after pairs
            name, width = ("modes", self.axes) if source.name.endswith("_mode") else ("powers", compared.powers)
            rows, shift = compared.count, 0 if source.name.startswith("overlap") else compared.pairs
        else:
            name, rows, width = source.name, compared.tempering.ladder.replicas, 1
        is_real = source.name == "energy" or name == "modes"
        in_words = rows * width, places * width, width
        padded = (*elements, *[0] * (MOST_ELEMENTS - len(elements)))
        return self.words[name] + shift * width, *in_words, len(elements), is_real, padded


class CudaReduction:
    """``HostReduction`` on the device, equal bit for bit, with the lowest states of the measurements."""

    def __init__(
        self, device: int, reduced: Reduced, state: Any, read: Callable[[Any, int, int], npt.NDArray[np.int8]]
    ) -> None:
        require_memory(device, reduced.nbytes, f"adding up measurements of {reduced.model.name}")
        self.reduced, self.measurements, self._device = reduced, 0, device
        with on_gpu(device):
            self._reads = stream_for(self)
            self._added = cupy.cuda.Event(disable_timing=True)
            with self._reads:
                self._arrays = {
                    name: cupy.zeros(shape, kind)
                    for name, (shape, kind) in reduced.arrays().items()
                    if name not in ON_HOST
                }
                self._tables = tables = tables_of(reduced)
                self._scales, self._constants = cupy.asarray(tables.scales), cupy.asarray(tables.constant)
                self._pairs = cupy.asarray(copy_pairs(reduced.copies).astype(np.int32).reshape(-1, 2))
                self._added.record(self._reads)
            self._lowest = CudaLowest(device, reduced.model, reduced.copies * reduced.places, state, read, self._reads)
        self._launches: dict[Quantities, Launch] = {}
        self._energies: dict[Quantities, CudaEnergies] = {}
        self._terms: list[Any] = []
        weakref.finalize(self, self._added.synchronize).atexit = False  # before its memory is reused
        merged = dict.fromkeys(("sums", "rows", "blocks", "columns"), np.uint64(0))
        self._merge = {
            kind: Launch(device, "measuring/reduce.cu", instance("merge_blocks", name), merged)
            for kind, name in MERGED.items()
        }

    def _adding(self, buffer: Buffer) -> Launch:
        """Return the launch that adds measurements with this buffer layout."""
        if buffer.wanted not in self._launches:
            reduced, arrays = self.reduced, self._arrays
            with self._reads:
                terms = cupy.asarray(terms_of(reduced, self._tables, buffer).view(np.uint8))
                self._reads.synchronize()  # kernels that read them use other streams
            histograms = [
                (arrays[f"{one.source}_histogram"].data.ptr, buffer.words[one.source], one.values, one.cells)
                for one in reduced.histograms
            ]
            count = len(histograms)
            to = record(
                SUMS, terms=terms, scales=self._scales, constants=self._constants, pairs=self._pairs,
                **{name: arrays[name] for name in ADDED}, term_count=len(reduced.terms), histogram_count=count,
                samples=reduced.model.samples, places=reduced.places, copies=reduced.copies,
                pair_count=reduced.pairs, most_chains=reduced.most_chains,
                blocks=reduced.blocks, coldest_blocks=reduced.coldest_blocks, level_blocks=reduced.level_blocks,
                place=buffer.words["place"],
                histograms=[*histograms, *[(0, 0, 0, 0)] * (MOST_HISTOGRAMS - count)],
            )  # fmt: skip
            launch = Launch(self._device, "measuring/reduce.cu", "add_measurements", {
                "numbers": np.uint64(0), "size": np.uint64(buffer.size), "count": np.uint32(0), "to": to,
                "number": np.uint64(0),
                **dict.fromkeys(("block_shift", "coldest_shift", "walk_shift"), np.uint32(0)),
            })  # fmt: skip
            if reduced.energies is not None:
                self._energies[buffer.wanted] = CudaEnergies(
                    self._device, reduced, arrays, buffer.size, buffer.find(Source("energy")), terms,
                    scales=self._scales, constants=self._constants, pairs=self._pairs,
                )  # fmt: skip
            self._terms.append(terms)  # the record holds only addresses
            self._launches[buffer.wanted] = launch
        return self._launches[buffer.wanted]

    def queue(self, stream: Any, buffer: Buffer, numbers: int, state: int, count: int) -> None:
        """Queue adding the next measurements, whose numbers and spins begin at the given addresses."""
        stream.wait_event(self._added)  # measurements of other kinds come on other streams
        done = 0
        while done < count:
            several = left_in_succession(self.reduced, self.measurements, count - done)
            self._add(stream, buffer, numbers + 8 * buffer.size * done, several)
            done += several
        words = buffer.words
        self._lowest.queue(stream, numbers, buffer.size, count, words["energy"], words["holder"], state)
        self._added.record(stream)

    def _add(self, stream: Any, buffer: Buffer, numbers: int, count: int) -> None:
        """Queue adding measurements; only the first of them may merge blocks or halve sums."""
        launch, reduced, number = self._adding(buffer), self.reduced, self.measurements
        self._merge_blocks(stream, blocks_of(reduced, number)[1])
        grid = -(-reduced.model.samples * reduced.places // THREADS), len(reduced.terms) + len(reduced.histograms) + 1
        block, coldest, walk = (length.bit_length() - 1 for length in lengths_of_blocks(reduced, number))
        energies = self._energies.get(buffer.wanted)
        if energies is not None:
            energies.add(stream, numbers, count, number, block)
        launch(
            stream, (*grid, 1), THREADS, numbers=numbers, count=count, number=number,
            block_shift=block, coldest_shift=coldest, walk_shift=walk,
        )  # fmt: skip
        if energies is not None:
            energies.join(stream)
        self.measurements += count

    def _merge_blocks(self, stream: Any, names: Sequence[str]) -> None:
        for name in names:
            rows, blocks, *others = self._arrays[name].shape
            columns = prod(others)
            if rows:
                grid = -(-rows * columns // THREADS), 1, 1
                self._merge[self._arrays[name].dtype](
                    stream, grid, THREADS, sums=self._arrays[name].data.ptr, rows=rows, blocks=blocks, columns=columns
                )  # fmt: skip

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Return copies of all arrays by name, after all queued measurements have been added."""
        with on_gpu(self._device), self._reads:
            self._reads.wait_event(self._added)
            arrays = {name: np.asarray(array.get()) for name, array in self._arrays.items()}
        samples = self.reduced.model.samples
        return arrays | {"measurements": np.full(samples, self.measurements, np.int64)}

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        with on_gpu(self._device), self._reads:
            self._reads.wait_event(self._added)
            for name, array in self._arrays.items():
                array.set(np.ascontiguousarray(arrays[name], array.dtype))
            self._reads.synchronize()
        self.measurements = int(arrays["measurements"][0])

    def lowest(self) -> LowestStates:
        """Return the lowest energies and states of the measurements queued so far.

        Configurations are read on demand, which must be before the next measurement.
        """
        return self._lowest.states(self._added)

    def restore_lowest(self, energy: npt.NDArray[np.float64], spins: Configurations) -> None:
        """Restore energies (samples, replicas) and configurations that ``lowest`` returned."""
        self._lowest.restore(energy, spins, self._added)


def terms_of(reduced: Reduced, tables: Tables, buffer: Buffer) -> npt.NDArray[np.void]:
    """Return the terms as ``TERM`` structs, with the location of their numbers in such buffers."""
    nothing = np.zeros((), SOURCE).item()
    energies, nowhere = reduced.energies, np.full((len(reduced.terms), 2), -1)
    rows = nowhere if energies is None else np.stack([energies.row, energies.pair_row], axis=1)
    structs = np.zeros(len(reduced.terms), TERM)
    for k, term in enumerate(reduced.terms):
        sources = [buffer.find(source) for source in term.sources]
        chains = 1 if term.power == CONNECTED else reduced.pairs if term.of_pairs else reduced.copies
        structs[k] = (
            [*sources, *[nothing] * (2 - len(sources))], len(sources), chains, term.power, tables.followed[k],
            tables.by_copy[k], tables.judged[k], *rows[k],
        )  # fmt: skip
    return structs
