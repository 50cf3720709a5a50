"""Exchange of temperatures on a GPU: its state, its kernels, and one ladder over several GPUs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from spinsim.cuda.compile import instance
from spinsim.cuda.device import cupy
from spinsim.cuda.launch import ADDRESS, SIZE, Fields, Launch, TotalsPool, record, struct_type
from spinsim.engine.cuda_queue import Queue
from spinsim.engine.measuring.sums import CudaCounting, Observables
from spinsim.engine.moves.exchange import Exchange, Ladder, copy_pairs, holders
from spinsim.model.ising import Ising

THREADS: Final = 128  # threads for a sample's exchanges
EXCHANGE: Final = struct_type(
    place=ADDRESS, holder=ADDRESS, attempts=ADDRESS, accepts=ADDRESS, trips=ADDRESS, last_end=ADDRESS, steps=ADDRESS,
    copies=SIZE, temperatures=SIZE,
)  # fmt: skip
SUMS: Final = struct_type(one=ADDRESS, other=ADDRESS, per_one=np.int64, per_other=np.int64, stride=SIZE)
TERM_SUMS: Final = struct_type(
    up=ADDRESS, first=ADDRESS, second=ADDRESS, per_up=np.int64, per_first=np.int64, per_second=np.int64, stride=SIZE
)
PAIRS: Final = struct_type(holder=ADDRESS, copies=ADDRESS, replicas=SIZE, temperatures=SIZE, count=SIZE)
LADDER: Final = struct_type(limits=ADDRESS, certain=ADDRESS, temperatures=SIZE)  # limits of replicas in packed words


class GivenPlaces(NamedTuple):
    """Replicas at the temperatures of a ladder whose exchanges are made elsewhere."""

    ladder: Ladder  # with any number of replicas
    place: Any  # temperature index of each replica, int32 (samples, replicas), on the device


class CudaTempering:
    """Exchanges of one engine's replicas, for any packing. One buffer holds their state, so that one copy fetches it.

    Energies follow from the first two sums of ``shape`` (sums, samples, ...); with two terms, from the first three.
    ``place`` is the temperature of each replica, int32 (samples, replicas), ``holder`` the replica of each copy at each
    temperature, ``sums`` are addresses of sums, which are 0 before a kernel adds to them.
    """

    def __init__(
        self, queue: Queue, ladder: Ladder, steps: npt.NDArray[np.float64], shape: tuple[int, ...],
        observables: Observables,
    ) -> None:  # fmt: skip
        self.ladder, self.round, self._stream, self._observables = ladder, 0, queue.stream, observables
        self._samples = samples = shape[1]
        begin = ladder.begin(samples)
        self._fields = Fields(**{name: (array.shape, array.dtype) for name, array in begin._asdict().items()})
        self._buffer = cupy.zeros(self._fields.size, cupy.int64)
        self._arrays = e = self._split(self._buffer)
        self.place = e.place
        self.holder = cupy.empty((samples, ladder.copies, ladder.temperatures), cupy.int32)
        self._set(begin)
        self._totals = TotalsPool(queue.stream, clears=False)
        terms = observables.terms
        self._steps, self._sums = cupy.asarray(steps), cupy.zeros((3 if terms else 2, *shape[1:]), cupy.int64)
        self.sums = tuple(part.data.ptr for part in self._sums)
        self.record = record(
            EXCHANGE, place=e.place, holder=self.holder, attempts=e.attempts, accepts=e.accepts, trips=e.trips,
            last_end=e.last_end, steps=self._steps, copies=ladder.copies, temperatures=ladder.temperatures,
        )  # fmt: skip
        in_pairs = ladder.beta.ndim == 2
        name = "tempering/exchange_terms.cu" if in_pairs else "tempering/exchange.cu"
        expression = instance("exchange_terms" if in_pairs else "exchange_neighbours", queue.rng_rounds)
        self._exchange = Launch(queue.device, name, expression, {
            "exchange": self.record, "first_sample": queue.first_sample, "round": np.uint64(0), "key": queue.keys,
            "sums": self._sums_of(self._sums),
        })  # fmt: skip
        self.copies = copy_pairs(ladder.copies)
        self._copies = cupy.asarray(self.copies.astype(np.int32))

    def _sums_of(self, sums: Any) -> npt.NDArray[np.void]:
        """Sums (sums, samples, ...) as an exchange takes them; two terms at one temperature make one energy."""
        addresses, stride = tuple(part.data.ptr for part in sums), sums[0, 0].size
        if self.ladder.beta.ndim == 1:
            count, weights = len(addresses), tuple(self._observables.energy.weights.values())
            (one, other), (per_one, per_other) = addresses[-2:], weights[count - 2 : count]
            return record(SUMS, one=one, other=other, per_one=per_one, per_other=per_other, stride=stride)
        of_first, of_second = (tuple(term.weights.values()) for term in self._observables.terms)
        up, first, second = addresses
        return record(
            TERM_SUMS, up=up, first=first, second=second, per_up=of_first[0], per_first=of_first[1],
            per_second=of_second[2], stride=stride,
        )  # fmt: skip

    def _split(self, words: Any) -> Exchange:
        return Exchange(**self._fields.split(words))

    def _set(self, exchange: Exchange) -> None:
        for name, value in exchange._asdict().items():
            getattr(self._arrays, name).set(np.ascontiguousarray(value))
        self.holder.set(holders(exchange.place, self.ladder.copies).astype(np.int32))

    def begin_exchange(self) -> Callable[[], Exchange]:
        """Copy the state after the queued work; the returned function waits for the copy."""
        totals = self._totals.reserve((1, self._buffer.size))
        totals.sums.data.copy_from_device_async(self._buffer.data, self._buffer.nbytes, self._stream)
        fetched = self._totals.fetch(totals)
        return lambda: self._split(fetched()[0])

    def follow(self, other: CudaTempering) -> None:
        """Queue copying the state of another object on the same device."""
        for mine, theirs in ((self._buffer, other._buffer), (self.holder, other.holder)):
            mine.data.copy_from_device_async(theirs.data, theirs.nbytes, self._stream)

    def exchange(self) -> None:
        self._exchange(self._stream, (self._samples, 1, 1), THREADS, round=self.round)
        self.round += 1

    def restore(self, exchange: Exchange, rounds: int) -> None:
        self._set(exchange)
        self.round = rounds

    def pairs(self, holder: Any) -> npt.NDArray[np.void]:
        """Record of the replicas to compare, given the address of the replica at each temperature."""
        ladder = self.ladder
        count = len(self.copies) * ladder.temperatures
        return record(
            PAIRS, holder=holder, copies=self._copies, replicas=ladder.replicas, temperatures=ladder.temperatures,
            count=count,
        )  # fmt: skip


ReplicaPlaces: TypeAlias = CudaTempering | GivenPlaces
"""Replicas on a ``ladder``; ``place`` has their temperature indices."""


class TemperingAcross(CudaTempering):
    """Exchanges of all replicas of one sample, repeated by each of several GPUs; ``lanes`` counts all lanes."""

    def __init__(
        self, queue: Queue, ladder: Ladder, model: Ising, counting: CudaCounting, first: int, replicas: int, lanes: int
    ) -> None:
        super().__init__(
            queue, ladder, ladder.steps(model), (counting.shape[0], 1, lanes), counting.observables
        )  # this makes the first set of sums
        self._sets = self._sums, cupy.zeros(self._sums.shape, cupy.int64)
        self._records = [self._sums_of(sums).item() for sums in self._sets]
        self._own = own = slice(first, first + counting.stride)
        self._to_count = [tuple(part[0, own].data.ptr for part in sums) for sums in self._sets]
        self.own = GivenPlaces(ladder, self.place[:, first : first + replicas])
        self.given = cupy.cuda.Event(disable_timing=True)  # recorded after sums have been given to others
        self._to: list[list[tuple[Any, Any, int]]] = []

    def meet(self, others: Sequence[TemperingAcross]) -> None:
        """Register the other GPUs, to which this one writes the sums of its replicas."""
        self._others = others
        for mine, theirs in zip(self._sets, zip(*(other._sets for other in others), strict=True), strict=True):
            to = []
            for k in range(len(mine)):
                source = mine[k, 0, self._own]
                to += [(sums[k, 0, self._own].data, source.data, source.nbytes) for sums in theirs]
            self._to.append(to)

    @property
    def to_count(self) -> tuple[int, ...]:
        """Addresses to which this GPU's counts are added before an exchange."""
        return self._to_count[self.round % 2]

    def give(self) -> None:
        for target, source, size in self._to[self.round % 2]:
            target.copy_from_device_async(source, size, self._stream)
        self.given.record(self._stream)

    def exchange(self) -> None:
        """Queue one round of exchanges, after all other GPUs have given their counts."""
        for other in self._others:
            self._stream.wait_event(other.given)
        self._exchange(self._stream, (1, 1, 1), THREADS, round=self.round, sums=self._records[self.round % 2])
        self.round += 1

    def restore(self, exchange: Exchange, rounds: int) -> None:
        """Restore a state after ``rounds`` rounds, and wait for all queued work."""
        super().restore(exchange, rounds)
        self._stream.synchronize()
