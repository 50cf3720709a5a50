"""Engines that are parts of one: how all of them are asked at once, and what does not depend on what they share out."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from spinsim.engine.protocols import Counts, Engine, LadderMeasurement
from spinsim.engine.split.parts import Located
from spinsim.machine.clock import compiling_seconds
from spinsim.mesh.places import Kept, Reply, answers
from spinsim.model.ising import Ising
from spinsim.packing import Packing

Method = Callable[..., Any]
"""A method of ``Engine``, which stands for that of any engine."""

Tuple = TypeVar("Tuple", bound=NamedTuple)


class Facts(NamedTuple):
    """What does not change of an engine."""

    packing: Packing
    colours: int
    device_name: str
    devices: int
    tasks: int


class Together:
    """Parts of an ``Engine`` at their places.

    Args:
        model: What is simulated, all samples.
        replicas: Configurations of each sample.
        parts: All of them, in order.

    Attributes:
        half_sweep: Half-sweeps asked for.
        devices: How many devices there are.
        tasks: Parts that run side by side.
    """

    def __init__(self, model: Ising, replicas: int, parts: Sequence[Located]) -> None:
        self.model, self.replicas, self.half_sweep = model, replicas, 0
        self._located, self._busy, self._swept = parts, np.zeros(len(parts)), 0
        facts: list[Facts] = self._all(facts_of)
        self.packing, self.colours, self.device_name = facts[0][:3]
        self.devices, self.tasks = sum(f.devices for f in facts), sum(f.tasks for f in facts)
        self._one_device_each = all(f.devices == 1 for f in facts)

    def _all(self, function: Callable[..., Any], *arguments: Any) -> list[Any]:
        """What a function of an engine gives for each part."""
        return self._answers([part.place.ask(timed, function, part.engine, *arguments) for part in self._located])

    def _answers(self, replies: Iterable[Reply]) -> list[Any]:
        """What all parts have found, while it is counted how long each was busy."""
        found: list[tuple[Any, float]] = answers(replies)
        self._busy += [seconds for _, seconds in found]
        return [outcome for outcome, _ in found]

    def _do(self, method: Method, *arguments: Any) -> list[Any]:
        """What a method of an engine gives for each part."""
        return self._all(done, method, *arguments)

    def _do_own(self, method: Method, own: Iterable[Any], *arguments: Any) -> list[Any]:
        """The same of a method whose first argument is each part's own."""
        each = zip(self._located, own, strict=True)
        return self._answers(part.place.ask(timed, done, part.engine, method, mine, *arguments) for part, mine in each)

    def _begin(self, method: Method, *arguments: Any) -> list[Any]:
        """What a method of an engine gives for each part, where it stays."""
        return self._all(begun, method, *arguments)

    def _finish(self, asked: Sequence[Any]) -> list[Any]:
        """What these functions return."""
        each = zip(self._located, asked, strict=True)
        return self._answers([part.place.ask(timed, finished, later) for part, later in each])

    def _moved(self, sweeps: int) -> None:
        """Count sweeps that have been asked for."""
        self.half_sweep += sweeps * self.colours
        self._swept += sweeps

    def part_rates(self) -> list[float]:
        """Updates/ns of each part while it worked; nothing where a part is that of several devices."""
        if not self._one_device_each:
            return []
        sizes = [part.size(self.model.samples, self.replicas) * self.model.sites for part in self._located]
        return [size * self._swept / max(busy, 1e-9) / 1e9 for size, busy in zip(sizes, self._busy, strict=True)]

    def wait(self) -> None:
        """Return when all parts are done."""
        self._do(Engine.wait)

    def begin_counts(self) -> Callable[[], Counts]:
        """Ask for the present energies and magnetisations; the function returned waits for them."""
        raise NotImplementedError

    def counts(self) -> Counts:
        """Energy and magnetisation of every replica."""
        return self.begin_counts()()


def joined(found: Sequence[Tuple], axis: int = 0) -> Tuple:
    """Arrays of all parts, one after the other along an axis, and what is no array of the first."""
    fields: list[Any] = []
    for values in zip(*found, strict=True):
        first = values[0]
        if isinstance(first, np.ndarray):
            fields.append(np.concatenate(values, axis))
        else:
            fields.append(joined(values, axis) if isinstance(first, tuple) else first)
    return type(found[0])(*fields)


def timed(function: Callable[..., Any], *arguments: Any) -> tuple[Any, float]:
    """What a function finds, and how many seconds it took without compiling."""
    began = time.perf_counter() - compiling_seconds()
    found = function(*arguments)
    return found, time.perf_counter() - compiling_seconds() - began


def facts_of(engine: Engine) -> Facts:
    """What does not change of an engine."""
    return Facts(engine.packing, engine.colours, engine.device_name, engine.devices, engine.tasks)


def done(engine: Engine, method: Method, *arguments: Any) -> Any:
    """What a method gives, of the engine's own type."""
    return getattr(engine, method.__name__)(*arguments)


def begun(engine: Engine, method: Method, *arguments: Any) -> Kept:
    """The same, which stays where it is."""
    return Kept(done(engine, method, *arguments))


def finished(later: Callable[[], Any]) -> Any:
    """What a function returns; configurations of a measurement stay where they are."""
    found = later()
    if isinstance(found, LadderMeasurement):
        kept: Any = Kept(found.spins)
        return found._replace(spins=kept)
    return found
