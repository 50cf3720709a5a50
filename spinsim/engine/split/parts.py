"""Some samples of a run at a place, or some replicas of them, and what is asked of all such parts together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from spinsim.bits import Bits
from spinsim.engine.protocols import KeptSpins, LocalSquares, Spins, bits_of
from spinsim.mesh.places import Place, Reply, answers


class Located(Protocol):
    """A part of an engine, wherever it is."""

    @property
    def place(self) -> Place:
        """Where it is."""

    @property
    def engine(self) -> Any:
        """What stays there."""

    def size(self, samples: int, replicas: int) -> int:
        """Configurations that it has, where the whole has so many samples of so many replicas."""


class Part(NamedTuple):
    """Some samples of a run, and where they are.

    Attributes:
        place: Where they are.
        engine: Their engine, which stays there.
        samples: Which they are.
    """

    place: Place
    engine: Any
    samples: range

    def size(self, samples: int, replicas: int) -> int:
        """Configurations that it has."""
        return len(self.samples) * replicas

    def own(self, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """The rows of its samples of an array of all samples."""
        return array[self.samples.start : self.samples.stop]


class ReplicaPart(NamedTuple):
    """Some replicas of all samples of a run, and where they are.

    Attributes:
        place: Where they are.
        engine: Their engine, which stays there.
        replicas: Which they are.
        blocks: The same as blocks of replicas that stay together.
    """

    place: Place
    engine: Any
    replicas: range
    blocks: range

    def size(self, samples: int, replicas: int) -> int:
        """Configurations that it has."""
        return samples * len(self.replicas)

    def own(self, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """What belongs to its replicas of an array (samples, replicas, ...)."""
        return array[:, self.replicas.start : self.replicas.stop]

    def own_spins(self, words: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """The words of its replicas of a snapshot's."""
        return words[:, self.blocks.start : self.blocks.stop]


def where(parts: Sequence[Part], sample: int) -> tuple[int, int]:
    """The part of a sample and its number there."""
    number = next(k for k, part in enumerate(parts) if sample in part.samples)
    return number, sample - parts[number].samples.start


class SplitSpins(KeptSpins):
    """Configurations of one moment, which stay where they are.

    Args:
        parts: All of them.
        kept: The configurations of each.
        replicas: Of each sample.

    Attributes:
        kept: As given.
    """

    def __init__(self, parts: Sequence[Part], kept: Sequence[Any], replicas: int) -> None:
        self._parts, self.kept = parts, kept

        def bits(sample: int) -> Bits:
            found: Bits = self._ask(bits_of, sample, replicas)
            return found

        super().__init__(self._read_there, bits)

    def _read_there(self, sample: int, replica: int) -> npt.NDArray[np.int8]:
        found: npt.NDArray[np.int8] = self._ask(_configuration, sample, replica)
        return found

    def _ask(self, function: Callable[..., Any], sample: int, argument: int) -> Any:
        number, own = where(self._parts, sample)
        reply: Reply = self._parts[number].place.ask(function, self.kept[number], own, argument)
        return reply()


class SplitSquares:
    """``LocalSquares`` of an engine of parts, which add up where their configurations are.

    Args:
        parts: All of them.
        squares: ``LocalSquares`` of each.
    """

    def __init__(self, parts: Sequence[Part], squares: Sequence[Any]) -> None:
        self._each = tuple(zip(parts, squares, strict=True))

    def add(self, spins: Spins, holder: npt.NDArray[np.int32]) -> None:
        """Add the configurations of a measurement of the same engine."""
        assert isinstance(spins, SplitSpins)  # noqa: S101  (its measurements have such)
        each = zip(self._each, spins.kept, strict=True)
        answers([part.place.ask(_add, squares, kept, part.own(holder)) for (part, squares), kept in each])

    def sums(self) -> npt.NDArray[np.int64]:
        """The sums so far."""
        return np.concatenate(answers([part.place.ask(_sums, squares) for part, squares in self._each]))

    def set_sums(self, sums: npt.NDArray[np.int64]) -> None:
        """Go back to such sums."""
        answers([part.place.ask(_set_sums, squares, part.own(sums)) for part, squares in self._each])


def _configuration(spins: Spins, sample: int, replica: int) -> npt.NDArray[np.int8]:
    return spins(sample, replica)


def _add(squares: LocalSquares, spins: Spins, holder: npt.NDArray[np.int32]) -> None:
    squares.add(spins, holder)


def _sums(squares: LocalSquares) -> npt.NDArray[np.int64]:
    return squares.sums()


def _set_sums(squares: LocalSquares, sums: npt.NDArray[np.int64]) -> None:
    squares.set_sums(sums)
