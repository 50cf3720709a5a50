"""Ranks that serve: objects live there, and rank 0 has functions carried out on them."""

from __future__ import annotations

import traceback
import weakref
from collections import deque
from collections.abc import Callable
from itertools import count
from typing import Any

from spinsim.errors import InputError
from spinsim.mesh.messages import as_bytes, from_bytes
from spinsim.mesh.places import Kept, Place, Reply, opened
from spinsim.mesh.ranks import FIRST, Ranks, name_of

STOP = None
"""The message that ends a serving rank."""


class RankError(RuntimeError):
    """Something went wrong at another rank."""


class There:
    """What is kept at a serving rank; when nobody holds it any more, it goes there too.

    Args:
        number: By which the rank knows it.
        dropped: Numbers of what nobody holds any more.
    """

    def __init__(self, number: int, dropped: deque[int]) -> None:
        self.number = number
        weakref.finalize(self, dropped.append, number)


class AtRank(Place):
    """A serving rank, as rank 0 sees it.

    Args:
        ranks: All of them.
        rank: Its number.

    Attributes:
        waiting: Whether it has been asked for what it has not answered.
    """

    def __init__(self, ranks: Ranks, rank: int) -> None:
        self._ranks, self.rank, self.waiting = ranks, rank, False
        self._dropped = deque[int]()

    def ask(self, function: Callable[..., Any], *arguments: Any) -> Reply:
        """Have a function carried out."""
        dropped = [self._dropped.popleft() for _ in range(len(self._dropped))]
        self._ranks.send(as_bytes((dropped, function, arguments), _number_of), self.rank)
        self.waiting = True
        return self._answer

    def _answer(self) -> Any:
        outcome, failure = from_bytes(self._ranks.receive(self.rank), lambda number: There(number, self._dropped))
        self.waiting = False
        if failure is not None:
            raise failure
        return outcome

    def stop(self) -> None:
        """Let the rank go."""
        self._ranks.send(as_bytes(STOP, _number_of), self.rank)


def _number_of(thing: Any) -> int | None:
    return thing.number if isinstance(thing, There) else None


def serve(ranks: Ranks) -> None:
    """Carry out what rank 0 asks for, until it lets go."""
    kept: dict[int, Kept] = {}
    numbers = count()

    def keep(thing: Any) -> int | None:
        if not isinstance(thing, Kept):
            return None
        number = next(numbers)
        kept[number] = thing
        return number

    while True:
        message = from_bytes(ranks.receive(FIRST), kept.__getitem__)
        if message is STOP:
            return
        dropped, function, arguments = message
        for number in dropped:
            del kept[number]
        outcome: Any = None
        failure: Exception | None = None
        try:
            outcome = function(*opened(arguments))
        except (InputError, MemoryError) as error:
            failure = InputError(f"{name_of(ranks.rank)}: {error or 'memory ran out'}")
        except Exception:
            failure = RankError(f"{name_of(ranks.rank)} has failed:\n{traceback.format_exc()}")
        del message, arguments  # what they hold may be dropped next
        ranks.send(as_bytes((outcome, failure), keep), FIRST)
