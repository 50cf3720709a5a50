"""Groups: members at places, a device each, that exchange arrays directly while they carry out a request of rank 0.

``make_group`` makes a group at any places. ``together`` has a function carried out by all members at once; members call
the methods of their ``Group`` in the same order. Arrays of NumPy go through memory within a process and by MPI between
ranks. Arrays of CuPy go from GPU to GPU within a process, and by NCCL between ranks, or through host memory without
NCCL. A member that fails ends the waits of all others; in a group of several ranks it ends the run.
"""

from __future__ import annotations

import os
import socket
import threading
import warnings
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from itertools import count
from typing import Any, Final, NamedTuple
from weakref import WeakValueDictionary

import numpy as np
import numpy.typing as npt

from spinsim.errors import InputError
from spinsim.machine.memory import is_on_gpu, readable, using
from spinsim.parallel import session
from spinsim.parallel.ranks import FIRST, name_of
from spinsim.parallel.session import Kept, LeftWaitingError, Place, answers

CONNECT_WITHIN: Final = 60.0  # seconds


def new_name(seats: Iterable[tuple[Place, int | None]]) -> Any:
    """A name by which GPUs at places find each other, None where NCCL is missing, or has two members on one GPU."""
    gpus = answers([place.request(_gpu, number) for place, number in seats])
    if None in gpus or len(set(gpus)) < len(gpus):
        return None
    from cupy.cuda import nccl

    return nccl.get_unique_id()


def _gpu(number: int | None) -> tuple[str, str] | None:
    """Machine and bus identifier of a GPU; None for the CPU and where NCCL is missing."""
    if number is None:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # CuPy's advice to install it
        try:
            from cupy.cuda import Device, nccl
        except ImportError:
            return None
    return (socket.gethostname(), Device(number).pci_bus_id) if nccl.available else None


class Nccl:
    """NCCL communicator of a member; all members make theirs at the same time, each with its own GPU current."""

    def __init__(self, size: int, name: Any, index: int) -> None:
        os.environ.setdefault("NCCL_NVLS_ENABLE", "0")  # multicast serves collectives, and fails on some machines
        from cupy.cuda import Device, nccl, runtime

        self._nccl, self._device, ranks = nccl, Device(), session.ranks()
        assert ranks is not None  # noqa: S101  (members are at several)
        why = f"GPUs of ranks did not reach each other by NCCL in {CONNECT_WITHIN:.0f} s (NCCL_DEBUG=INFO tells more)"
        timer = threading.Timer(CONNECT_WITHIN, ranks.abort, [why])  # NCCL itself waits for ever
        timer.daemon = True
        timer.start()
        try:
            self._communicator = nccl.NcclCommunicator(size, name, index)
            self._greet((index + 1) % size, (index - 1) % size)
        except nccl.NcclError as error:  # NCCL does not say that memory ran out
            free = readable(runtime.memGetInfo()[0])
            raise InputError(
                f"NCCL does not begin on GPU {self._device.id}, where {free} of memory are free ({error}): end what "
                "else uses it, or take other GPUs"
            ) from error
        finally:
            timer.cancel()

    def _greet(self, after: int, before: int) -> None:
        """Send a number to one member and receive one: NCCL connects GPUs at their first exchange."""
        import cupy

        mine, theirs = cupy.zeros(1), cupy.empty(1)
        self.exchange([(mine, after)], [(theirs, before)])
        self._device.synchronize()

    def __del__(self) -> None:
        """End without the others, for which the destructor of CuPy's communicator would wait."""
        if hasattr(self, "_communicator"):
            self._device.synchronize()
            self._communicator.abort()

    def exchange(self, give: list[tuple[Any, int]], get: list[tuple[Any, int]]) -> None:
        """Send arrays to members and receive arrays from them, on the present stream.

        NCCL has no tags: between the same two members the order of sends and receives decides.
        """
        import cupy

        stream, byte = cupy.cuda.get_current_stream().ptr, self._nccl.NCCL_UINT8
        self._nccl.groupStart()
        for array, to in give:
            self._communicator.send(array.data.ptr, array.nbytes, byte, to, stream)
        for into, giver in get:
            self._communicator.recv(into.data.ptr, into.nbytes, byte, giver, stream)
        self._nccl.groupEnd()


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
        """Return when an array may change again; on a GPU, by later work of the present stream."""
        self._wait(lambda: offer.taken, taker)
        if is_on_gpu(offer.array):
            with offer.array.device:
                _stream().wait_event(offer.copied)

    def fail(self, why: str) -> None:
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
    """An event after all work so far on the present stream of an array's GPU."""
    import cupy

    with array.device:
        event = cupy.cuda.Event(disable_timing=True)
        event.record(_stream())
    return event


_GROUPS: Final[WeakValueDictionary[int, InMemory]] = WeakValueDictionary()
_OPENING: Final = threading.Lock()


def in_memory(group: int) -> InMemory:
    with _OPENING:
        return _GROUPS.setdefault(group, InMemory())


_numbers = count()  # of groups; rank 0 alone takes them


class Seat(NamedTuple):
    """A place with one device."""

    place: Place  # where functions are carried out
    gpu: int | None = None  # number of its GPU there, None where it is the CPU

    @property
    def rank(self) -> int:
        return getattr(self.place, "rank", FIRST)


class Member(NamedTuple):
    """A member as rank 0 sees it."""

    seat: Seat  # place and device of the member
    group: Any  # ``Group`` of the member, which stays there


class Each(list[Any]):
    """An argument with a separate value for every member."""


class Group:
    """A group as one of its members sees it; arrays must be contiguous (C order).

    Args:
        ranks: Rank of each member.
        gpu: Number of this member's GPU, None where it is the CPU.
        nccl: The name of the group for NCCL, None where it does without.
    """

    def __init__(self, number: int, index: int, ranks: Sequence[int], gpu: int | None, nccl: Any) -> None:
        self.index, self.size, self.gpu = index, len(ranks), gpu
        self._members, self._shared = ranks, in_memory(number)
        self._nccl: Nccl | None = None
        if nccl is not None:
            with self.working():
                self._nccl = Nccl(self.size, nccl, index)

    def exchange(self, give: list[tuple[Any, int]], get: list[tuple[Any, int]]) -> None:
        """Give arrays to other members and get arrays of equal sizes from them, each paired with the other member.

        Arrays between the same two members keep their order. On GPUs exchanges are queued on the present stream: the
        host does not wait for them.
        """
        if self._nccl and any(is_on_gpu(array) for array, _ in (*give, *get)):
            self._nccl.exchange(give, get)
            return
        mine = self._members[self.index]
        here = [each for each in give if self._members[each[1]] == mine]
        offers = [(self._shared.put(array, self.index, to), to) for array, to in here]
        self._between_ranks(give, get)
        for into, giver in get:
            if self._members[giver] == mine:
                self._shared.copy(into, giver, self.index)
        for offer, to in offers:
            self._shared.wait_until_copied(offer, to)

    def ring(self, to_before: Any, to_after: Any, from_before: Any, from_after: Any) -> None:
        """Give arrays to the members before and after this one and get theirs; the last one is before the first.

        Queued on GPUs as by ``exchange``.
        """
        before, after = (self.index - 1) % self.size, (self.index + 1) % self.size
        # with two members both neighbours are one: its array for the member before arrives first, as from the one after
        self.exchange([(to_before, before), (to_after, after)], [(from_after, after), (from_before, before)])

    def sum(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Sum over members of a small array in host memory, added in the order of members: the same bits at each."""
        values = np.ascontiguousarray(values)
        others = [k for k in range(self.size) if k != self.index]
        parts = [values if k == self.index else np.empty_like(values) for k in range(self.size)]
        self.exchange([(values, k) for k in others], [(parts[k], k) for k in others])
        total = parts[0].copy()
        for part in parts[1:]:
            total += part
        return total

    def _between_ranks(self, give: list[tuple[Any, int]], get: list[tuple[Any, int]]) -> None:
        """Exchange arrays with other ranks by MPI, arrays of GPUs through host memory, with a tag for each pair."""
        mine = self._members[self.index]
        give, get = ([each for each in arrays if self._members[each[1]] != mine] for arrays in (give, get))
        if not give and not get:
            return
        ranks = session.ranks()
        assert ranks is not None  # noqa: S101  (members are at several)
        sent = [(array.get() if is_on_gpu(array) else array, to) for array, to in give]
        received = [(np.empty(into.shape, into.dtype) if is_on_gpu(into) else into, giver) for into, giver in get]
        ranks.exchange(
            [(array, self._members[to], self.index * self.size + to) for array, to in sent],
            [(into, self._members[giver], giver * self.size + self.index) for into, giver in received],
        )
        for (host, _), (into, _) in zip(received, get, strict=True):
            if host is not into:
                into.set(host)

    @contextmanager
    def working(self) -> Iterator[None]:
        """Context of work on a request of all members: sets this member's GPU, and ends others' waits if it fails."""
        try:
            with nullcontext() if self.gpu is None else using(self.gpu):
                yield
        except BaseException as error:
            ranks, why = session.ranks(), str(error) if isinstance(error, InputError) else repr(error)
            if ranks and isinstance(error, Exception) and len(set(self._members)) > 1:
                ranks.abort(f"{name_of(ranks.rank)} has failed ({why})")
            self._shared.fail(f"member {self.index} of {self.size} has failed: {error!r}")
            raise


def make_group(seats: Sequence[Seat]) -> list[Member]:
    ranks = [seat.rank for seat in seats]
    number = next(_numbers)
    nccl = new_name(seats) if len(set(ranks)) > 1 else None
    asked = [seat.place.request(_join, number, k, ranks, seat.gpu, nccl) for k, seat in enumerate(seats)]
    return [Member(*each) for each in zip(seats, answers(asked), strict=True)]


def _join(number: int, index: int, ranks: Sequence[int], gpu: int | None, nccl: Any) -> Kept:
    return Kept(Group(number, index, ranks, gpu, nccl))


def together(members: Sequence[Member], function: Any, *arguments: Any) -> list[Any]:
    """Call ``function(group, *arguments)`` at all members at the same time, and return all results.

    Raises:
        Exception: the failure of a member, not that of a member left waiting.
    """
    asked = []
    for k, (seat, group) in enumerate(members):
        own = [argument[k] if isinstance(argument, Each) else argument for argument in arguments]
        asked.append(seat.place.request(_work, group, function, *own))
    return answers(asked)


def _work(group: Group, function: Any, *arguments: Any) -> Any:
    with group.working():
        return function(group, *arguments)
