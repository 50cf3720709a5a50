"""Exchange of temperatures of one sample whose replicas several GPUs share out: each follows the whole ladder.

A GPU adds what it counts of its own replicas to its sums and copies them into those of all others. When it has theirs
it makes the exchange of all replicas, which comes out the same everywhere, so that nothing else is sent and the host
only queues. There are two sets of sums in turn: a GPU that is ahead writes into the set that none reads any more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from spinsim.engine.cuda_queue import Queue
from spinsim.engine.measuring.cuda_counting import CudaCounting
from spinsim.engine.moves.exchange.cuda import THREADS, CudaTempering, GivenPlaces
from spinsim.engine.moves.exchange.ladder import Exchange, Ladder
from spinsim.model.ising import Ising


class TemperingAcross(CudaTempering):
    """The exchanges of all replicas of one sample, as one of several GPUs makes them.

    Args:
        queue: Where kernels are queued; the present device and stream of CuPy.
        ladder: Temperatures of each copy.
        model: What is simulated, one sample.
        counting: Of the replicas that are here.
        first: Number of the first of them.
        lanes: Sums of all replicas: those of each GPU, added up.

    Attributes:
        own: Places of the replicas that are here.
        given: The event behind what others have been given.
    """

    def __init__(
        self, queue: Queue, ladder: Ladder, model: Ising, counting: CudaCounting, first: int, replicas: int, lanes: int
    ) -> None:
        import cupy

        super().__init__(
            queue, ladder, ladder.steps(model), (counting.shape[0], 1, lanes), counting.observables
        )  # which makes the first set of sums
        self._sets = self._sums, cupy.zeros(self._sums.shape, cupy.int64)
        self._records = [self._sums_of(sums).item() for sums in self._sets]
        self._own = own = slice(first, first + counting.stride)
        self._to_count = [tuple(part[0, own].data.ptr for part in sums) for sums in self._sets]
        self.own = GivenPlaces(ladder, self.place[:, first : first + replicas])
        self.given = cupy.cuda.Event(disable_timing=True)
        self._to: list[list[tuple[Any, Any, int]]] = []

    def meet(self, others: Sequence[TemperingAcross]) -> None:
        """Know the other GPUs, whose sums of replicas here this one writes."""
        self._others = others
        for mine, theirs in zip(self._sets, zip(*(other._sets for other in others), strict=True), strict=True):
            to = []
            for k in range(len(mine)):
                source = mine[k, 0, self._own]
                to += [(sums[k, 0, self._own].data, source.data, source.nbytes) for sums in theirs]
            self._to.append(to)

    @property
    def to_count(self) -> tuple[int, ...]:
        """Addresses to which what is counted here is added before an exchange."""
        return self._to_count[self.round % 2]

    def give(self) -> None:
        """Queue giving others what has been counted."""
        for target, source, size in self._to[self.round % 2]:
            target.copy_from_device_async(source, size, self._stream)
        self.given.record(self._stream)

    def exchange(self) -> None:
        """Queue one round of exchanges, when all others have given what they counted."""
        for other in self._others:
            self._stream.wait_event(other.given)
        self._exchange(self._stream, (1, 1, 1), THREADS, round=self.round, sums=self._records[self.round % 2])
        self.round += 1

    def restore(self, exchange: Exchange, rounds: int) -> None:
        """Go on from a state after so many rounds, when all that was queued is done."""
        super().restore(exchange, rounds)
        self._stream.synchronize()
