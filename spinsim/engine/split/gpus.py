"""A ladder whose replicas several GPUs of this process share out, which they follow together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from spinsim.engine.moves.exchange.cuda import TemperingAcross
from spinsim.engine.moves.exchange.ladder import Exchange, Ladder
from spinsim.model.ising import Ising

if TYPE_CHECKING:
    from spinsim.engine.cuda import CudaEngine
    from spinsim.engine.split.engine import SplitEngine


class GpuLadder:
    """Exchanges of one sample's replicas on several GPUs, all queued by this thread.

    It waits for none: a GPU whose queue is full goes on, as it waits only for what others have been asked for already.

    Args:
        model: What is simulated, one sample.
        engines: Of consecutive replicas.
    """

    def __init__(self, model: Ising, ladder: Ladder, engines: Sequence[CudaEngine]) -> None:
        self._engines, self._each = engines, list[TemperingAcross]()
        lanes, first = sum(engine.parts.counting.stride for engine in engines), 0
        for engine in engines:
            queue, counting = engine.parts.queue, engine.parts.counting
            with queue.here():
                tempering = TemperingAcross(queue, ladder, model, counting, first, engine.replicas, lanes)
                self._each.append(tempering)
                engine.sweep_at_places(tempering.own)
                queue.stream.synchronize()
            first += engine.replicas
        for tempering in self._each:
            tempering.meet([other for other in self._each if other is not tempering])

    @property
    def round(self) -> int:
        return self._each[0].round

    def sweep(self, count: int) -> None:
        for engine in self._engines:
            engine.sweep(count)

    def temper(self, rounds: int, sweeps: int) -> None:
        both = tuple(zip(self._engines, self._each, strict=True))
        for _ in range(rounds):
            for engine, tempering in both:
                with engine.parts.queue.here():
                    engine.parts.sweeper.sweep(sweeps, engine.half_sweep)
                    engine.half_sweep += sweeps * engine.colours
                    engine.parts.counting.add(tempering.to_count)
                    tempering.give()
            for engine, tempering in both:
                with engine.parts.queue.here():
                    tempering.exchange()
                    engine.parts.sweeper.lay_tables()

    def begin_exchange(self) -> Callable[[], Exchange]:
        with self._engines[0].parts.queue.here():
            return self._each[0].begin_exchange()

    def restore(self, exchange: Exchange, rounds: int) -> None:
        for engine in self._engines:
            engine.wait()
        for engine, tempering in zip(self._engines, self._each, strict=True):
            with engine.parts.queue.here():
                tempering.restore(exchange, rounds)
                engine.parts.sweeper.lay_tables()

    def show(self, whole: SplitEngine) -> None:
        """Queue bringing an engine of all replicas, on the first of these GPUs, to the present state."""
        import cupy

        shown: CudaEngine = whole.parts[0].engine.value
        queue, first = shown.parts.queue, 0
        for engine in self._engines:
            theirs, stream = engine.parts.state.present, engine.parts.queue.stream
            with engine.parts.queue.here():
                swept = cupy.cuda.Event(disable_timing=True)  # which belongs to the present device
                swept.record(stream)
            with queue.here():
                taken = cupy.cuda.Event(disable_timing=True)
                queue.stream.wait_event(swept)
                first += _take_over(shown, theirs, first)
                if engine is self._engines[0]:
                    shown.follow(self._each[0], engine.half_sweep)
                taken.record(queue.stream)
            with engine.parts.queue.here():
                stream.wait_event(taken)


def _take_over(engine: CudaEngine, spins: Any, first: int) -> int:
    """Queue taking over the spins of replicas from a place on along their axis; returns how far they reach there.

    The present device and stream of CuPy are the engine's.
    """
    import cupy

    state, stream = engine.parts.state, engine.parts.queue.stream
    count = int(spins.shape[state.replica_axis])
    if state.replica_axis == 1:  # of one sample: all that follows lies together
        state.present[:, first : first + count].data.copy_from_device_async(spins.data, spins.nbytes, stream)
    else:
        here = cupy.empty(spins.shape, spins.dtype)
        here.data.copy_from_device_async(spins.data, spins.nbytes, stream)
        state.present[..., first : first + count] = here
    return count
