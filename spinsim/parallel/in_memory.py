"""Members of a group in one process hand arrays to each other in memory, thread to thread."""

from __future__ import annotations

import threading
from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final
from weakref import WeakValueDictionary

from spinsim.machine.memory import is_on_gpu
from spinsim.parallel.places import LeftWaitingError

LONGEST_WAIT: Final = 600.0  # seconds that a member waits for another


@dataclass(eq=False)
class Offer:
    """An array that another member is to copy."""

    array: Any  # array of NumPy or CuPy, in one piece
    written: Any = None  # on a GPU the event after which the array is there
    taken: bool = False  # True if it has been copied, or the copy has been queued
    copied: Any = None  # on a GPU the event after which it has been copied


class InMemory:
    """Offers that the members of one group make each other in one process."""

    def __init__(self) -> None:
        self._offers: defaultdict[tuple[int, int], deque[Offer]] = defaultdict(deque)
        self._changed = threading.Condition()
        self._failure = ""

    def put(self, array: Any, giver: int, taker: int) -> Offer:
        """Offer an array, which must not change until it is taken; several between the same two keep their order."""
        offer = Offer(array)
        if is_on_gpu(array):
            offer.written = _event_of_now(array)
        with self._changed:
            self._offers[giver, taker].append(offer)
            self._changed.notify_all()
        return offer

    def copy(self, into: Any, giver: int, taker: int) -> None:
        """Wait for the next array of a member and copy it."""
        waiting = self._offers[giver, taker]
        self._wait(lambda: bool(waiting), giver)
        offer = waiting.popleft()
        if offer.array.nbytes != into.nbytes:
            raise ValueError(f"{offer.array.nbytes} bytes came where {into.nbytes} were to come")
        if is_on_gpu(into):
            with into.device:
                stream = _stream()
                stream.wait_event(offer.written)
                into.data.copy_from_device_async(offer.array.data, into.nbytes, stream)
            offer.copied = _event_of_now(into)
        else:
            into[...] = offer.array
        with self._changed:
            offer.taken = True
            self._changed.notify_all()

    def wait_until_copied(self, offer: Offer, taker: int) -> None:
        """Return when an array may change again; on a GPU for what the present stream does from now on."""
        self._wait(lambda: offer.taken, taker)
        if is_on_gpu(offer.array):
            with offer.array.device:
                _stream().wait_event(offer.copied)

    def fail(self, why: str) -> None:
        """End the waits of all others, for good."""
        with self._changed:
            self._failure = self._failure or why
            self._changed.notify_all()

    def _wait(self, until: Callable[[], bool], member: int) -> None:
        with self._changed:
            there = self._changed.wait_for(lambda: until() or bool(self._failure), LONGEST_WAIT)
            if self._failure:
                raise LeftWaitingError(self._failure)
        if not there:
            raise LeftWaitingError(f"member {member} has not answered for {LONGEST_WAIT:.0f} s")


def _stream() -> Any:
    import cupy

    return cupy.cuda.get_current_stream()


def _event_of_now(array: Any) -> Any:
    """An event after all that the present stream of an array's GPU has been given."""
    import cupy

    with array.device:
        event = cupy.cuda.Event(disable_timing=True)
        event.record(_stream())
    return event


_GROUPS: Final[WeakValueDictionary[int, InMemory]] = WeakValueDictionary()
_OPENING: Final = threading.Lock()


def in_memory(group: int) -> InMemory:
    """Return what members of the group of that number share in this process, as long as somebody refers to it."""
    with _OPENING:
        shared = _GROUPS.get(group)
        if shared is None:
            shared = _GROUPS[group] = InMemory()
        return shared
