"""Engines that combine engines of parts, in this process and in other ranks.

Random numbers depend on the numbers of sample, replica and site in the whole run, so that each part moves its spins
like a single engine. ``EngineOfParts`` defines for each method how parts share its argument and how their results are
combined. Parts are samples here, replicas in replicas.py, slabs in slabs.py.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from operator import attrgetter, call
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from spinsim.engine.given import apply_in_host_memory
from spinsim.engine.measuring.correlations import WITHOUT_TIMES, Quantities
from spinsim.engine.measuring.reduction import SAMPLE_AXIS, Reduced
from spinsim.engine.measuring.sums import Counts
from spinsim.engine.moves.exchange import OF_SAMPLES, Exchange, state_of
from spinsim.engine.moves.move import OWN_MOVES, Moment, Move
from spinsim.engine.protocols import (
    Begun,
    Configurations,
    Engine,
    KeptSpins,
    LadderMeasurement,
    LocalSquares,
    LowestStates,
    Reduction,
    Spins,
    bits_of,
)
from spinsim.inputs.arguments import as_stated
from spinsim.machine.compiled import compiling_seconds
from spinsim.model.ising import Ising
from spinsim.packing import Bits, packed_spins, unpacked_spins
from spinsim.parallel.session import Kept, Place, Reply, answers

Method = Callable[..., Any]  # method of a protocol, which stands for the method of any engine

Tuple = TypeVar("Tuple", bound=NamedTuple)


class Part(NamedTuple):
    """Part of a run, and its place."""

    place: Place  # where it is
    engine: Any  # engine of the part, which stays at its place
    share: range  # numbers of its samples, or of its replicas
    axis: int = 0  # axis of arrays (samples, replicas, ...) that is divided
    blocks: range = range(0)  # the share in blocks of replicas that stay together, if parts are replicas

    def own(self, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the entries of the part's samples or replicas in an array of all."""
        return cut(array, self.share, self.axis)


class EngineOfParts(Engine):
    """Common base of engines of parts, for samples, replicas or slabs."""

    axis = 0  # axis along which arrays of parts follow each other
    at_once = 1

    def __init__(self, model: Ising, replicas: int, parts: Sequence[Part]) -> None:
        self.model, self.replicas, self.half_sweep = model, replicas, 0
        self.parts, self._busy, self._swept = parts, np.zeros(len(parts)), 0
        facts = self._all(attrgetter("packing", "colours", "device_name", "devices", "tasks"))
        self.packing, self.colours, self.device_name = facts[0][:3]
        devices, tasks = zip(*(each[3:] for each in facts), strict=True)
        self.devices, self.tasks = sum(devices), sum(tasks)

    def _all(self, function: Callable[..., Any], *arguments: Any) -> list[Any]:
        return self._answers([part.place.request(timed, function, part.engine, *arguments) for part in self.parts])

    def _answers(self, replies: Iterable[Reply]) -> list[Any]:
        """Collect the results of all parts, and add up the time that each was busy."""
        results: list[tuple[Any, float]] = answers(replies)
        self._busy += [seconds for _, seconds in results]
        return [outcome for outcome, _ in results]

    def _do(self, method: Method, *arguments: Any) -> list[Any]:
        return self._all(done, method, *arguments)

    def _do_own(self, method: Method, own: Iterable[Any]) -> list[Any]:
        return self._of_each(own, done, method)

    def _of_each(self, own: Iterable[Any], function: Callable[..., Any], *arguments: Any) -> list[Any]:
        """Call a function of an engine at all parts, with shared arguments and one of ``own`` for each part."""
        each = zip(self.parts, own, strict=True)
        return self._answers([p.place.request(timed, function, p.engine, *arguments, mine) for p, mine in each])

    def _finished(self, begun: Sequence[Any]) -> list[Any]:
        """Collect the results of functions that parts have begun and kept."""
        each = zip(self.parts, begun, strict=True)
        return self._answers([part.place.request(timed, finished, later) for part, later in each])

    def _joined(self, begun: Sequence[Any]) -> Any:
        return joined(self._finished(begun), self.axis)

    def _moved(self, sweeps: int) -> None:
        self.half_sweep += sweeps * self.colours
        self._swept += sweeps

    def set_beta(self, beta: npt.ArrayLike) -> None:
        self._do(Engine.set_beta, beta)

    def sweep(self, count: int) -> None:
        count = as_stated("count", count, "int")
        self._do(Engine.sweep, count)
        self._moved(count)

    def wait(self) -> None:
        self._do(Engine.wait)

    def begin_counts(self) -> Callable[[], Counts]:
        return partial(self._joined, self._all(begun, Engine.begin_counts))

    def copy_from(self, parent: npt.NDArray[np.integer]) -> None:
        self._do_own(Engine.copy_from, [part.own(parent) for part in self.parts])

    def temper(self, rounds: int, sweeps: int) -> None:
        self._do(Engine.temper, rounds, sweeps)
        self._moved(rounds * sweeps)

    def begin_exchange(self) -> Callable[[], Exchange]:
        return partial(self._joined, self._all(begun, Engine.begin_exchange))

    def prepare_measurements(self, kept: int, wanted: Quantities = WITHOUT_TIMES) -> None:
        self._do(Engine.prepare_measurements, kept, wanted)

    def snapshot(self) -> dict[str, npt.NDArray[np.generic]]:
        saved = self._do(Engine.snapshot)
        return {
            name: np.concatenate([each[name] for each in saved], self.axis) if name in OF_SAMPLES else one
            for name, one in saved[0].items()
        }

    def part_rates(self) -> list[float]:
        """Updates/ns of each part during its work; an empty list if a part has several devices."""
        if self.devices > len(self.parts):
            return []
        spins = self.model.samples * self.replicas * self.model.sites
        whole = (self.model.samples, self.replicas)[self.axis]
        sizes = [spins * len(part.share) // whole for part in self.parts]
        return [size * self._swept / max(busy, 1e-9) / 1e9 for size, busy in zip(sizes, self._busy, strict=True)]

    def _of_replica(self, method: Method, sample: int, replica: int) -> Any:
        """Call a method of the part that has this replica, with the numbers in that part."""
        numbers = [sample, replica]
        k, numbers[self.axis] = where(self.parts, numbers[self.axis])
        part = self.parts[k]
        return part.place.request(done, part.engine, method, *numbers)()

    def spins(self, sample: int, replica: int) -> npt.NDArray[np.int8]:
        spins: npt.NDArray[np.int8] = self._of_replica(Engine.spins, sample, replica)
        return spins

    def bits(self, sample: int, replica: int) -> Bits:
        bits: Bits = self._of_replica(Engine.bits, sample, replica)
        return bits


class SplitEngine(EngineOfParts):
    """An ``Engine`` that combines engines of parts of its samples."""

    def set_ladder(self, beta: npt.ArrayLike, copies: int) -> None:
        self._do(Engine.set_ladder, beta, copies)
        self.at_once = min(self._all(attrgetter("at_once")))

    def temper_measured(
        self, count: int, rounds: int, sweeps: int, wanted: Quantities = WITHOUT_TIMES,
        reduction: Reduction | None = None, fetched: Sequence[bool] | None = None,
    ) -> list[Begun]:  # fmt: skip
        all_fetched = [True] * count if reduction is None or fetched is None else list(fetched)
        own = self._reductions(reduction, count)
        begun = self._of_each(own, _several_begun, count, rounds, sweeps, wanted, all_fetched)
        self._moved(count * rounds * sweeps)
        return [
            partial(self._measured, later) if is_fetched else None
            for is_fetched, *later in zip(all_fetched, *begun, strict=True)
        ]

    def _measured(self, begun: Sequence[Any]) -> LadderMeasurement:
        results: list[LadderMeasurement] = self._finished(begun)
        spins = SplitSpins(self.parts, [each.spins for each in results], self.replicas)
        return joined(results, self.axis)._replace(spins=spins)

    def _reductions(self, reduction: Reduction | None, count: int) -> Sequence[Any]:
        """Return the reductions of all parts, which are about to add ``count`` measurements."""
        if reduction is None:
            return [None] * len(self.parts)
        assert isinstance(reduction, SplitReduction)  # noqa: S101  (engines of parts make this type)
        reduction.measurements += count
        return reduction.each

    def reduction(self, reduced: Reduced) -> SplitReduction:
        return SplitReduction(self.parts, reduced)

    def apply(self, move: Move, moment: Moment) -> None:
        """Apply a move to the samples of each part in place; a user's own move may not be known there."""
        if move.name in OWN_MOVES:
            self._do(Engine.apply, move, moment)
        else:
            apply_in_host_memory(self, move, moment)

    def local_squares(self) -> SplitSquares:
        return SplitSquares(self.parts, self._all(begun, Engine.local_squares))

    def restore(self, saved: Mapping[str, npt.NDArray[np.generic]]) -> None:
        self._do_own(Engine.restore, [state_of(saved, part.own) for part in self.parts])
        self.half_sweep = int(saved["half_sweep"])


def cut(array: npt.NDArray[Any], share: range, axis: int) -> npt.NDArray[Any]:
    """Return the entries of a share along the first or second axis of an array."""
    mine = slice(share.start, share.stop)
    return array[:, mine] if axis else array[mine]


def where(parts: Sequence[Part], number: int) -> tuple[int, int]:
    """Return the part of a sample or replica, and its number in that part."""
    k = next(k for k, part in enumerate(parts) if number in part.share)
    return k, number - parts[k].share.start


class SplitSpins(KeptSpins):
    """Configurations of one moment, ``kept`` by each of the parts at its place."""

    def __init__(self, parts: Sequence[Part], kept: Sequence[Any], replicas: int) -> None:
        self._parts, self.kept = parts, kept
        super().__init__(partial(self._there, call), lambda sample: self._there(bits_of, sample, replicas))

    def _there(self, function: Callable[..., Any], sample: int, argument: int) -> Any:
        k, own = where(self._parts, sample)
        return self._parts[k].place.request(function, self.kept[k], own, argument)()


class SplitSquares:
    """``LocalSquares`` of an engine of parts; each part adds up its own configurations."""

    def __init__(self, parts: Sequence[Part], squares: Sequence[Any]) -> None:
        self._each = tuple(zip(parts, squares, strict=True))

    def add(self, spins: Spins, holder: npt.NDArray[np.int32]) -> None:
        """Add the configurations of a measurement of the same engine."""
        assert isinstance(spins, SplitSpins)  # noqa: S101  (its measurements have this type)
        each = zip(self._each, spins.kept, strict=True)
        answers([part.place.request(done, own, LocalSquares.add, kept, part.own(holder)) for (part, own), kept in each])

    def sums(self) -> npt.NDArray[np.int64]:
        return np.concatenate(answers([part.place.request(done, own, LocalSquares.sums) for part, own in self._each]))

    def set_sums(self, sums: npt.NDArray[np.int64]) -> None:
        answers([part.place.request(done, own, LocalSquares.set_sums, part.own(sums)) for part, own in self._each])


def joined(results: Sequence[Tuple], axis: int) -> Tuple:
    """Concatenate arrays of all parts along an axis; other values are taken from the first part."""
    fields: list[Any] = []
    for values in zip(*results, strict=True):
        first = values[0]
        if isinstance(first, np.ndarray):
            fields.append(np.concatenate(values, axis))
        else:
            fields.append(joined(values, axis) if isinstance(first, tuple) else first)
    return type(results[0])(*fields)


def timed(function: Callable[..., Any], *arguments: Any) -> tuple[Any, float]:
    """Return the result of a function, and its time in seconds without compiling."""
    began = time.perf_counter() - compiling_seconds()
    results = function(*arguments)
    return results, time.perf_counter() - compiling_seconds() - began


def done(thing: Any, method: Method, *arguments: Any) -> Any:
    """Call the object's own method of the same name."""
    return getattr(thing, method.__name__)(*arguments)


def begun(engine: Engine, method: Method, *arguments: Any) -> Kept:
    """Do ``done`` for an engine, and keep the result at its place."""
    return Kept(done(engine, method, *arguments))


def finished(later: Callable[[], Any]) -> Any:
    """Call a function; keep configurations of a measurement at their place."""
    results = later()
    if isinstance(results, LadderMeasurement):
        kept: Any = Kept(results.spins)
        return results._replace(spins=kept)
    return results


def _several_begun(
    engine: Engine, count: int, rounds: int, sweeps: int, wanted: Quantities, fetched: Sequence[bool],
    reduction: Reduction | None,
) -> list[Kept]:  # fmt: skip
    return [Kept(later) for later in engine.temper_measured(count, rounds, sweeps, wanted, reduction, fetched)]


class SplitReduction:
    """A ``Reduction`` that combines reductions of parts, which have consecutive samples.

    Every number belongs to one sample, so that the concatenated sums of all parts equal the sums of one device.
    """

    def __init__(self, parts: Sequence[Part], reduced: Reduced) -> None:
        self.reduced, self.measurements, self._parts = reduced, 0, parts
        given = reduced.copies, reduced.places, reduced.terms, reduced.samples_in_run, reduced.energies or False
        replies = [part.place.request(_reduction, part.engine, *given) for part in parts]
        self.each: list[Any] = answers(replies)  # reductions of parts, which stay at their places

    def state(self) -> dict[str, npt.NDArray[Any]]:
        states = self._all(Reduction.state)
        return {name: np.concatenate([one[name] for one in states], SAMPLE_AXIS.get(name, 0)) for name in states[0]}

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        def own(share: slice) -> dict[str, npt.NDArray[Any]]:
            return {name: array[(*[slice(None)] * SAMPLE_AXIS.get(name, 0), share)] for name, array in arrays.items()}

        self._all(Reduction.restore, lambda share: (own(share),))
        self.measurements = int(arrays["measurements"][0])

    def lowest(self) -> LowestStates:
        """Return the lowest states of all measurements; new ones are transferred at once."""
        each = zip(self._parts, self.each, strict=True)
        lowest = answers([part.place.request(_lowest, own) for part, own in each])
        fresh: dict[int, Bits] = {}
        for part, (_, changed, rows, _) in zip(self._parts, lowest, strict=True):
            fresh.update(zip((part.share.start + changed).tolist(), rows, strict=True))

        def spins(sample: int) -> npt.NDArray[np.int8]:
            if sample in fresh:
                return unpacked_spins(fresh[sample], self.reduced.model.sites)
            k, own = where(self._parts, sample)
            state: npt.NDArray[np.int8] = self._parts[k].place.request(call, lowest[k][3], own)()
            return state

        return LowestStates(np.concatenate([one[0] for one in lowest]), spins, np.array([*fresh], np.int64))

    def restore_lowest(self, energy: npt.NDArray[np.float64], spins: Configurations) -> None:
        self._all(Reduction.restore_lowest, lambda share: (energy[share], spins[share]))

    def _all(self, method: Method, of: Callable[[slice], tuple[Any, ...]] = lambda _: ()) -> list[Any]:
        """Call a method of each part's reduction; ``of`` returns the arguments for its samples."""
        each = zip(self._parts, self.each, strict=True)
        shares = [slice(part.share.start, part.share.stop) for part in self._parts]
        replies = [p.place.request(done, own, method, *of(s)) for (p, own), s in zip(each, shares, strict=True)]
        return answers(replies)


def _reduction(engine: Engine, copies: int, places: int, terms: Any, samples: int, energies: Any) -> Kept:
    return Kept(engine.reduction(Reduced(engine.model, copies, places, terms, samples, energies)))


def _lowest(reduction: Reduction) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64], Bits, Kept]:
    """Lowest energies, samples with a lower state, these states as bits, and the function that finds states."""
    energy, spins, changed = reduction.lowest()
    rows = [packed_spins(spins(sample)) for sample in changed.tolist()]
    return energy, changed, np.array(rows, np.uint8), Kept(spins)
