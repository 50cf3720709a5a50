"""Measurements of a ladder on a GPU: sorted there into one buffer, and fetched by one copy during later sweeps."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from spinsim.cuda.device import cupy, require_memory, stream_for
from spinsim.cuda.launch import ADDRESS, SIZE, Fetched, Fields, Launch, Totals, TotalsPool, record, struct_type
from spinsim.engine.cuda_queue import Queue
from spinsim.engine.measuring.correlations import Quantities
from spinsim.engine.measuring.cpu import Integers, shape_of_sums
from spinsim.engine.measuring.cuda_comparison import AT_ONCE, MOST_AT_ONCE, SMALL_BYTES, Comparison
from spinsim.engine.measuring.cuda_reduction import Buffer, CudaReduction
from spinsim.engine.measuring.sums import CudaCounting, Linear
from spinsim.engine.moves.exchange import Exchange, Ladder
from spinsim.engine.moves.exchange_cuda import CudaTempering
from spinsim.engine.moves.resample import Moves
from spinsim.engine.protocols import Begun, KeptSpins, LadderMeasurement, Spins
from spinsim.machine.memory import on_gpu
from spinsim.model.ising import Ising

KEEPING: Final = "keeping the configurations of measurements under way"
MEND: Final = "keep fewer frames, or choose a smaller size, fewer samples or fewer replicas"


class CudaState(Protocol):
    """The spins of all replicas of all samples on a device.

    It may also have ``read_all(state, sample)``, which reads the spins of all replicas of a sample as bits.
    """

    present: Any  # array that sweeps change
    replica_axis: int  # axis of ``present`` along which replicas, or blocks of replicas, follow each other

    def words(self) -> npt.NDArray[np.uint64]:
        """Return the words of a snapshot, in the CPU's layout."""

    def set_words(self, words: npt.NDArray[np.uint64]) -> None:
        """Restore the words of a snapshot."""

    def copy(self, moves: Moves) -> None:
        """Queue copies of configurations."""

    def read(self, state: Any, sample: int, replica: int) -> npt.NDArray[np.int8]:
        """Read one configuration of ``present``, or of a copy of it, on the current stream."""


@dataclass(eq=False)
class CopiedSpins(KeptSpins):
    """Configurations of one moment, in a copy of the state on the device."""

    # takes a stream and a function. The function is called with the stream and the copy's address, and queues kernels
    # that read the copy, which exists until they have ended
    queue_read: Callable[[Any, Callable[[Any, int], None]], None] = field(kw_only=True)


class StateCopies:
    """Memory for copies of a state on the device, made after the queued sweeps and read during later ones.

    The event ``made`` is recorded after the last copy, ``compared`` after the last kernel that reads the copies.
    """

    def __init__(self, device: int, copies: Any, reads: Any) -> None:
        self._device, self._copies, self._reads = device, copies, reads
        self._stride, self._first = copies.nbytes // len(copies), copies.data.ptr
        self.made, self.compared = (cupy.cuda.Event(disable_timing=True) for _ in range(2))

    def address(self, number: int) -> int:
        return int(self._first + number * self._stride)

    def copy(self, state: Any, number: int, stream: Any) -> None:
        self._copies[number].data.copy_from_device_async(state.data, self._stride, stream)

    def spins(self, number: int, state: CudaState) -> Spins:
        def read_copy(read: Callable[..., Any], *which: int) -> Any:
            with on_gpu(self._device), self._reads:
                self._reads.wait_event(self.made)
                return read(self._copies[number], *which)

        read_all = getattr(state, "read_all", None)
        bits = None if read_all is None else partial(read_copy, read_all)
        return CopiedSpins(partial(read_copy, state.read), bits, queue_read=partial(self._queue_read, number))

    def _queue_read(self, number: int, stream: Any, queue: Callable[[Any, int], None]) -> None:
        stream.wait_event(self.made)
        queue(stream, self.address(number))
        self.compared.record(stream)  # measurements are handed out after the kernels that compare copies


class CopyPool:
    """Memory for copies, reused when nobody reads it any more."""

    def __init__(self, device: int, sweeps: Any) -> None:
        self._device, self._sweeps, self._reads = device, sweeps, stream_for(self)
        self._idle: list[tuple[Any, Any]] = []

    def reserve(self, state: Any, copies: int) -> StateCopies:
        """Return memory for copies of a state; ``copies`` must always be the same."""
        if self._idle:
            room, compared = self._idle.pop(0)  # the one read longest ago
            self._sweeps.wait_event(compared)
        else:
            require_memory(self._device, copies * state.nbytes, KEEPING, MEND)
            room = cupy.empty((copies, *state.shape), state.dtype)
        state_copies = StateCopies(self._device, room, self._reads)
        weakref.finalize(state_copies, self._idle.append, (room, state_copies.compared))
        return state_copies


THREADS: Final = 256  # threads per sample
LINEAR: Final = struct_type(one=np.int64, other=np.int64, third=np.int64, constant=np.int64)
MEASURED: Final = struct_type(
    **dict.fromkeys(("energy", "magnetization", "staggered_magnetization", "overlap", "link_overlap"), SIZE),
    **dict.fromkeys(("attempts", "accepts", "trips", "place", "holder", "last_end", "size"), SIZE),
    energy_of=LINEAR, magnetization_of=LINEAR, staggered_of=LINEAR, quantum=np.float64,
    compared=SIZE, linked=SIZE, sites=SIZE, bonds=SIZE,
)  # fmt: skip
TERMS: Final = struct_type(
    **dict.fromkeys(("per_up", "per_first", "first_constant", "per_second", "second_constant"), np.int64), energies=SIZE
)
NOTHING: Final = np.zeros((), MEASURED)


class Measurements(NamedTuple):
    """Memory for a few consecutive measurements: their numbers, and copies of their states."""

    several: int  # number of measurements
    state_copies: StateCopies  # copies of the states
    totals: Totals  # numbers, a row per measurement

    def address(self, number: int) -> int:
        """Address of the first number of a measurement."""
        return int(self.totals.parts[number])


class Measuring:
    """Measurements of one engine's present ladder, up to ``most`` at a time.

    Sweeps wait until the state has been copied and sums have been sorted; copies are compared during sweeps. ``record``
    states where the numbers of a measurement go, and how they follow from sums.
    """

    def __init__(
        self, sweeps: Any, tempering: CudaTempering, comparison: Comparison, counting: CudaCounting,
        copy_pool: CopyPool, most: int,
    ) -> None:  # fmt: skip
        self._sweeps, self._comparison, self._copy_pool, self._most = sweeps, comparison, copy_pool, most
        compared, ladder, observables = comparison.compared, tempering.ladder, counting.observables
        model, samples, pairs = compared.model, compared.model.samples, compared.shape
        by_temperature, by_replica = (samples, ladder.copies, ladder.temperatures), (samples, ladder.replicas)
        between = samples, ladder.temperatures - 1
        links = pairs if compared.full else (samples, 0, ladder.temperatures)
        self._fields = fields = Fields(
            energy=(by_temperature, np.float64), magnetization=(by_temperature, np.int64),
            staggered_magnetization=(by_temperature, np.int64), overlap=(pairs, np.int64),
            link_overlap=(links, np.int64), attempts=(between, np.int64), accepts=(between, np.int64),
            trips=(by_replica, np.int64), place=(by_replica, np.int32), holder=(by_temperature, np.int32),
            last_end=(by_replica, np.int8), modes=((samples, compared.count, comparison.axes), np.float64),
            powers=((samples, compared.count, compared.powers), np.int64),
            in_time=((samples, compared.unpaired, len(compared.times)), np.int64),
            even_in_time=((samples, compared.unpaired, len(compared.times) if compared.wanted.even else 0), np.int64),
            link_overlap_in_space=(pairs if compared.wanted.even else (samples, 0, ladder.temperatures), np.int64),
            **({"energy_by_term": ((*by_temperature, 2), np.float64)} if observables.terms else {}),
        )  # fmt: skip
        counted = observables.from_energy if observables.terms else observables
        apart = ("modes", "powers", "in_time", "even_in_time", "link_overlap_in_space", "energy_by_term")
        words = {name: first for name, first in fields.words.items() if name not in apart}
        overlaps, linked = (fields.sizes[name] // samples for name in ("overlap", "link_overlap"))
        self.record = record(
            MEASURED, **words, size=fields.size, energy_of=counted.energy.in_order,
            magnetization_of=counted.magnetization.in_order,
            staggered_of=counted.staggered_magnetization.in_order, quantum=model.quantum,
            compared=overlaps, linked=linked, sites=model.sites, bonds=model.bonds,
        )  # fmt: skip
        self.buffer = Buffer(fields.words, fields.size, compared, comparison.axes)
        self._totals, self._shape = TotalsPool(sweeps, clears=False), (most, fields.size)
        file, kernel = "measuring/by_temperature.cu", "sort_by_temperature"
        self._sums: tuple[str, ...] = ("one", "other", "third")
        more: dict[str, Any] = {}
        if observables.terms:
            file, kernel = "measuring/by_temperature_terms.cu", "sort_terms"
            self._sums, more = ("up", "first", "second", "up_first"), {"terms": self._terms(observables.terms)}
        self._sort = Launch(compared.device, file, kernel, {
            "to": np.uint64(0), "measured": self.record, "exchange": tempering.record,
            "stride": np.uint64(counting.stride), **dict.fromkeys(self._sums, np.uint64(0)), **more,
        })  # fmt: skip

    def _terms(self, terms: tuple[Linear, ...]) -> npt.NDArray[np.void]:
        """Record of how the energies of two terms follow from sums, and of where they go."""
        (per_up, per_first, _, _, first), (_, _, per_second, _, second) = (term.in_order for term in terms)
        return record(
            TERMS, per_up=per_up, per_first=per_first, first_constant=first, per_second=per_second,
            second_constant=second, energies=self._fields.words["energy_by_term"],
        )  # fmt: skip

    def open(self, state: Any, count: int) -> Measurements:
        """Return memory for ``count`` measurements of such states, to be written on the stream of the kernels."""
        return Measurements(count, self._copy_pool.reserve(state, self._most), self._totals.reserve(self._shape))

    def prepare(self, state: Any) -> None:
        """Allocate the memory that the first measurements use."""
        self._totals.give_back(self.open(state, 0).totals)

    def write(self, into: Measurements, number: int, state: Any, counted: Totals) -> None:
        """Queue a measurement of the present state from its counts, and clear the counts."""
        into.state_copies.copy(state, number, self._sweeps)
        grid, sums = (self._comparison.compared.model.samples, 1, 1), dict(zip(self._sums, counted.parts, strict=True))
        self._sort(self._sweeps, grid, THREADS, to=into.address(number), **sums)

    def close(
        self, written: Measurements, state: CudaState, reduction: CudaReduction | None, fetched: Sequence[bool]
    ) -> list[Begun]:
        """Compare copies, add measurements up and start to fetch some; the returned functions wait for the data."""
        rows, state_copies = [k for k in range(written.several) if fetched[k]], written.state_copies
        to_queue = self._compare(written, reduction)
        if not rows:
            self._totals.give_back(written.totals)
            return [None] * written.several
        numbers = self._totals.fetch(written.totals, to_queue, range(rows[0], rows[-1] + 1))
        return [
            partial(self._read, numbers, k, state_copies.spins(k, state)) if k in rows else None
            for k in range(written.several)
        ]

    def close_together(self, written: Measurements, state: CudaState, reduction: CudaReduction | None) -> Begun:
        """Do ``close``, but return a function that gives all measurements in arrays (several, samples, ...)."""
        numbers = self._totals.fetch(written.totals, self._compare(written, reduction), range(written.several))
        return partial(self._read, numbers, None, written.state_copies.spins(written.several - 1, state))

    def are_small(self, several: int) -> bool:
        """Return True if ``several`` measurements are read faster in joint arrays than one by one."""
        return several > 1 and 8 * several * self._fields.size <= SMALL_BYTES

    def _compare(self, written: Measurements, reduction: CudaReduction | None) -> Callable[[Any], None] | None:
        """Compare copies and add measurements up; or, without a reduction, return a function that queues this."""
        state_copies = written.state_copies
        state_copies.made.record(self._sweeps)

        def compare(stream: Any) -> None:
            together = self._comparison.at_once
            for k in range(0, written.several, together):
                first, count = written.address(k), min(together, written.several - k)
                at = {name: first + 8 * word for name, word in self._fields.words.items()}
                self._comparison.queue(stream, state_copies.address(k), at, count, self._fields.size)
            if reduction is not None:
                reduction.queue(stream, self.buffer, written.address(0), state_copies.address(0), written.several)
            state_copies.compared.record(stream)

        if reduction is None:
            return compare
        # Nobody waits for measurements that are added up, and kernels that run beside sweeps cost more than their own
        # time. A multiprocessor accepts a kernel with another share of shared memory only after those of the sweeps
        # have left it.
        compare(self._sweeps)
        return None

    def _read(self, fetched: Fetched, number: int | None, spins: Spins) -> LadderMeasurement:
        """Read one measurement, or all of them."""
        fields = self._fields.split(fetched(number))
        correlations = self._comparison.correlations(fields)
        last = {name: fields[name] if number is not None else fields[name][-1] for name in Exchange._fields}
        exchange = Exchange(**last)
        return LadderMeasurement(
            fields["energy"], fields["magnetization"], fields["staggered_magnetization"], fields["holder"], exchange,
            correlations, spins, fields.get("energy_by_term", fields["energy"][..., None]),
        )  # fmt: skip


MEASURED_BYTES: Final = 2**28  # most bytes of the state copies, and of the numbers, of measurements made at a time


class LadderMeasuring:
    """Measurements of one engine's present ladder; ``compare`` compares copies as fully as requested."""

    def __init__(
        self, model: Ising, queue: Queue, tempering: CudaTempering, counting: CudaCounting,
        compare: Callable[[CudaTempering, Quantities], Comparison], state: Any,
    ) -> None:  # fmt: skip
        self._queue, self._tempering, self._state = queue, tempering, state
        self._counting, self._compare, self._copy_pool = counting, compare, CopyPool(queue.device, queue.stream)
        self._ready: dict[Quantities, Measuring] = {}
        pairs = len(tempering.copies) * tempering.ladder.temperatures
        axes = model.embedding.dimension if model.embedding else 0
        frame = model.samples * (tempering.ladder.replicas + pairs) * (40 + 8 * axes)
        each = max(frame, int(state.nbytes))
        self.at_once = max(1, min(AT_ONCE, MEASURED_BYTES // each), min(MOST_AT_ONCE, SMALL_BYTES // each))

    def of(self, wanted: Quantities) -> Measuring:
        if wanted not in self._ready:
            comparison = self._compare(self._tempering, wanted)
            self._ready[wanted] = Measuring(
                self._queue.stream, self._tempering, comparison, self._counting, self._copy_pool, self.at_once
            )
        return self._ready[wanted]

    def prepare(self, kept: int, wanted: Quantities) -> None:
        """Refuse measurements that do not fit, if ``kept`` of them exist at a time."""
        measuring = self.of(wanted)
        require_memory(self._queue.device, kept * self.at_once * int(self._state.nbytes), KEEPING)
        measuring.prepare(self._state)


SQUARES_THREADS: Final = 256
SQUARES_LINES: Final = 16  # lines per thread block
LINES_TYPE: Final = struct_type(
    places=ADDRESS, holder=ADDRESS, sums=ADDRESS, **dict.fromkeys(("lines", "slices", "replicas"), SIZE)
)


class CudaSquares:
    """``LocalSquares`` on the device of the spins; ``place`` is each site's place, None if that is its number."""

    def __init__(
        self, device: int, model: Ising, ladder: Ladder, place: npt.NDArray[np.uint32] | None, kernel: str,
        blocks: int, width: dict[str, np.uint32],
    ) -> None:  # fmt: skip
        lines, self._shape = model.graph.world_lines(), shape_of_sums(model, ladder)
        room = 8 * int(np.prod(self._shape)) + 4 * (lines.size + model.samples * ladder.replicas)
        require_memory(device, room, f"sums for local susceptibilities of {model.name}")
        self._device, self._grid = device, (-(-len(lines) // SQUARES_LINES), blocks, model.samples)
        with on_gpu(device):
            self._stream = stream_for(self)
            with self._stream:
                places = cupy.asarray((lines if place is None else place[lines]).astype(np.int32))
                self._holder = cupy.zeros(self._shape[:3], cupy.int32)
                self._sums = cupy.zeros(self._shape, cupy.int64)
        self._kept = places  # the record holds only addresses
        to = record(
            LINES_TYPE, places=places, holder=self._holder, sums=self._sums,
            lines=len(lines), slices=model.graph.slices, replicas=ladder.replicas,
        )  # fmt: skip
        given = {"state": np.uint64(0), "sites": np.uint32(model.sites), **width, "to": to}
        self._launch = Launch(device, "measuring/local.cu", kernel, given)

    def add(self, spins: Spins, holder: npt.NDArray[np.int32]) -> None:
        """Queue adding the configurations of a measurement that this engine has made."""
        if not isinstance(spins, CopiedSpins):
            raise TypeError("local susceptibilities are added up of the configurations that a measurement holds")
        of_replicas = np.array(holder, np.int32)  # a copy: pinned memory may change before the transfer begins

        def queue(stream: Any, state: int) -> None:
            self._holder.data.copy_from_host_async(of_replicas.ctypes.data, of_replicas.nbytes, stream)
            self._launch(stream, self._grid, SQUARES_THREADS, state=state)

        spins.queue_read(self._stream, queue)

    def sums(self) -> Integers:
        with on_gpu(self._device), self._stream:
            return np.asarray(self._sums.get())

    def set_sums(self, sums: Integers) -> None:
        with on_gpu(self._device), self._stream:
            self._sums.set(np.ascontiguousarray(sums))
            self._stream.synchronize()
