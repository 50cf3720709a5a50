"""What is needed to measure one ladder on a GPU, made ready when it is first asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from spinsim.cuda.device import require_memory
from spinsim.engine.measuring.correlations import Wanted
from spinsim.engine.measuring.cuda import Measuring
from spinsim.engine.measuring.cuda_comparison import Comparison
from spinsim.engine.measuring.cuda_counting import CudaCounting
from spinsim.engine.measuring.cuda_held import KEEPING, HeldStates
from spinsim.engine.moves.exchange.cuda import CudaTempering
from spinsim.model.ising import Ising

AT_ONCE: Final = 5  # measurements; more would make launches no cheaper to speak of
MEASURED_BYTES: Final = 2**28  # of these measurements' copies of the state, and of their numbers


class LadderMeasuring:
    """Measurements of one engine's present ladder, as full as they are wanted.

    Args:
        model: What is simulated.
        device: Number of the device.
        stream: Of the kernels; the present one of CuPy.
        tempering: The ladder.
        counting: Sums of the present state.
        compare: Makes what compares copies of the ladder, as fully as is wanted.
        state: The spins on the device.

    Attributes:
        at_once: Measurements that are best made in succession.
    """

    def __init__(
        self,
        model: Ising,
        device: int,
        stream: Any,
        tempering: CudaTempering,
        counting: CudaCounting,
        compare: Callable[[CudaTempering, Wanted], Comparison],
        state: Any,
    ) -> None:
        self._device, self._stream, self._tempering, self._state = device, stream, tempering, state
        self._counting, self._compare = counting, compare
        self._held = HeldStates(device, stream)
        self._ready: dict[Wanted, Measuring] = {}
        pairs, axes = (
            len(tempering.copies) * tempering.ladder.temperatures,
            model.lattice.dimension if model.lattice else 0,
        )
        frame = model.samples * (tempering.ladder.replicas + pairs) * (40 + 8 * axes)
        self.at_once = max(1, min(AT_ONCE, MEASURED_BYTES // max(frame, int(state.nbytes))))

    def of(self, wanted: Wanted) -> Measuring:
        """Measurements as full as is wanted."""
        if wanted not in self._ready:
            self._ready[wanted] = Measuring(
                self._stream, self._tempering, self._compare(self._tempering, wanted), self._counting.observables,
                self._counting.stride, self._held, self.at_once,
            )  # fmt: skip
        return self._ready[wanted]

    def prepare(self, kept: int, wanted: Wanted) -> None:
        """Refuse measurements that have no room, where ``kept`` of them are there at a time."""
        measuring = self.of(wanted)
        require_memory(self._device, kept * self.at_once * int(self._state.nbytes), KEEPING)
        measuring.prepare(self._state)
