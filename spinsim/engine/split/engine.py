"""An engine whose samples are shared out to several devices, of this process and of other ranks.

Random numbers depend on a sample's number in the whole run, so that each part moves its samples as one engine of all
samples would. What is measured, exchanged and saved is that of all parts, sample after sample.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from spinsim.engine.measuring.correlations import WITHOUT_TIMES, Wanted
from spinsim.engine.moves.exchange.ladder import Exchange
from spinsim.engine.protocols import Counts, Engine, LadderMeasurement
from spinsim.engine.split.parts import Part, SplitSpins, SplitSquares, where
from spinsim.engine.split.together import Method, Together, done, joined
from spinsim.mesh.places import Kept
from spinsim.model.ising import Ising

SHARED: Final = ("half_sweep", "round")
"""What a snapshot holds once for all samples."""


class SplitEngine(Together):
    """An ``Engine`` put together from engines of parts of its samples.

    Args:
        model: What is simulated, all samples.
        replicas: Configurations of each sample.
        parts: All of them, in the order of their samples.

    Attributes:
        at_once: Measurements that are best made in succession, of the present ladder.
    """

    def __init__(self, model: Ising, replicas: int, parts: Sequence[Part]) -> None:
        super().__init__(model, replicas, parts)
        self._parts, self.at_once = parts, 1

    def set_beta(self, beta: npt.ArrayLike) -> None:
        """Set the inverse temperature: a number or one for each replica (replicas,)."""
        self._do(Engine.set_beta, beta)
        self.at_once = 1

    def sweep(self, count: int) -> None:
        """Attempt every spin of every replica ``count`` times."""
        self._do(Engine.sweep, count)
        self._moved(count)

    def timed_sweep(self, count: int) -> float:
        """Sweep and return the seconds of the part that took longest."""
        took: list[float] = self._do(Engine.timed_sweep, count)
        self._moved(count)
        return max(took)

    def begin_counts(self) -> Callable[[], Counts]:
        """Ask for the present energies and magnetisations; the function returned waits for them."""
        begun = self._begin(Engine.begin_counts)
        return lambda: joined(self._finish(begun))

    def spins(self, sample: int, replica: int) -> npt.NDArray[np.int8]:
        """One configuration, shape (sites,), +1 or -1."""
        number, own = where(self._parts, sample)
        part = self._parts[number]
        found: npt.NDArray[np.int8] = part.place.ask(done, part.engine, Engine.spins, own, replica)()
        return found

    def take_from(self, parent: npt.NDArray[np.integer]) -> None:
        """Give each replica the configuration of its parent, (samples, replicas), who keeps its own."""
        self._do_own(Engine.take_from, [part.own(parent) for part in self._parts])

    def set_ladder(self, beta: npt.ArrayLike, copies: int) -> None:
        """Give each copy of each sample a ladder of inverse temperatures, as engine/moves/exchange/ladder.py says."""
        self._do(Engine.set_ladder, beta, copies)
        self.at_once = min(self._all(_at_once))

    def temper(self, rounds: int, sweeps: int) -> None:
        """``rounds`` times: sweep ``sweeps`` times, then try to exchange neighbouring temperatures."""
        self._do(Engine.temper, rounds, sweeps)
        self._moved(rounds * sweeps)

    def begin_exchange(self) -> Callable[[], Exchange]:
        """Ask for the present state of the exchange; the function returned waits for it."""
        begun = self._begin(Engine.begin_exchange)
        return lambda: joined(self._finish(begun))

    def prepare_measurements(self, kept: int, wanted: Wanted = WITHOUT_TIMES) -> None:
        """Refuse measurements that have no room, where ``kept`` of them are there at a time."""
        self._do(Engine.prepare_measurements, kept, wanted)

    def begin_measurement(self, wanted: Wanted = WITHOUT_TIMES) -> Callable[[], LadderMeasurement]:
        """Ask for what is measured of every copy at every temperature; the function returned waits for it."""
        return partial(self._measured, self._begin(Engine.begin_measurement, wanted))

    def temper_measured(
        self, count: int, rounds: int, sweeps: int, wanted: Wanted = WITHOUT_TIMES
    ) -> list[Callable[[], LadderMeasurement]]:
        """``count`` times: ``temper``, then ``begin_measurement``."""
        begun = self._all(_several_begun, Engine.temper_measured, count, rounds, sweeps, wanted)
        self._moved(count * rounds * sweeps)
        return [partial(self._measured, later) for later in zip(*begun, strict=True)]

    def _measured(self, begun: Sequence[Any]) -> LadderMeasurement:
        found: list[LadderMeasurement] = self._finish(begun)
        spins = SplitSpins(self._parts, [measured.spins for measured in found], self.replicas)
        return joined(found)._replace(spins=spins)

    def local_squares(self) -> SplitSquares:
        """Make what adds up squares along world lines over measurements of the present ladder."""
        return SplitSquares(self._parts, self._begin(Engine.local_squares))

    def snapshot(self) -> dict[str, npt.NDArray[np.generic]]:
        """All that a later ``restore`` needs; the same arrays as those of one engine of all samples."""
        found: list[dict[str, npt.NDArray[np.generic]]] = self._do(Engine.snapshot)
        return {
            name: one if name in SHARED else np.concatenate([each[name] for each in found])
            for name, one in found[0].items()
        }

    def restore(self, saved: Mapping[str, npt.NDArray[np.generic]]) -> None:
        """Go back to a ``snapshot``, of however many parts."""
        own = [
            {name: array if name in SHARED else part.own(array) for name, array in saved.items()}
            for part in self._parts
        ]
        self._do_own(Engine.restore, own)
        self.half_sweep = int(saved["half_sweep"])


def _at_once(engine: Engine) -> int:
    return engine.at_once


def _several_begun(engine: Engine, method: Method, *arguments: Any) -> list[Kept]:
    return [Kept(later) for later in done(engine, method, *arguments)]
