"""Places where objects live and have functions carried out on them, and the ranks of this command.

A place is this thread, a thread of its own or another rank. Rank 0 carries out the command; the others serve it.
"""

from __future__ import annotations

import io
import os
import pickle
import socket
import threading
import traceback
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Any, NamedTuple, Protocol

import numpy as np

from spinsim.errors import InputError
from spinsim.machine import threads
from spinsim.machine.memory import make_current
from spinsim.parallel import Launched
from spinsim.parallel.ranks import FIRST, Ranks, name_of

Reply = Callable[[], Any]  # waits for the outcome of a request; returns the result or raises its exception


@dataclass
class Kept:
    """Stand-in for an object that stays at its place; others hold it and pass it to functions that run there."""

    value: Any  # the object


class Place(Protocol):
    """Somewhere functions are carried out, one after the other in the order in which they are asked for."""

    def request(self, function: Callable[..., Any], *arguments: Any) -> Reply:
        """Have a function of a module carried out there; it returns objects that stay at the place as ``Kept``.

        Arguments are plain data, and ``Kept`` objects of the place, of which the function gets the object itself.
        """


def opened(arguments: Iterable[Any]) -> list[Any]:
    """Replace ``Kept`` arguments by their objects, at the place where these live."""
    return [argument.value if isinstance(argument, Kept) else argument for argument in arguments]


class Here(Place):
    """This thread; work begins when its outcome is waited for, so that other places can begin before."""

    def request(self, function: Callable[..., Any], *arguments: Any) -> Reply:
        return lambda: function(*opened(arguments))


class InThread(Place):
    """A thread of its own, as a call may wait until a GPU has room in its queue; the thread keeps that GPU current."""

    def __init__(self, gpu: int | None = None) -> None:
        self._thread, self._gpu = ThreadPoolExecutor(1), gpu

    def request(self, function: Callable[..., Any], *arguments: Any) -> Reply:
        return self._thread.submit(self._carry_out, function, opened(arguments)).result

    def _carry_out(self, function: Callable[..., Any], arguments: list[Any]) -> Any:
        if self._gpu is not None:
            make_current(self._gpu)  # a thread begins with GPU 0 and without a context
        return function(*arguments)


class LeftWaitingError(RuntimeError):
    """Another place has failed, which left this one waiting for it."""


def answers(replies: Iterable[Reply]) -> list[Any]:
    """Outcomes of requests at several places.

    Raises:
        Exception: the first failure that no other failure has caused, when all outcomes are there.
    """
    outcomes, failures = [], []
    for reply in replies:
        try:
            outcomes.append(reply())
        except Exception as error:
            failures.append(error)
    if failures:
        raise next((error for error in failures if not isinstance(error, LeftWaitingError)), failures[0])
    return outcomes


STOP = None  # the message that ends a serving rank


class _Pickler(pickle.Pickler):
    def __init__(self, file: io.BytesIO, number_of: Callable[[Any], int | None]) -> None:
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self._number_of = number_of

    def persistent_id(self, obj: Any) -> int | None:
        return self._number_of(obj)

    def reducer_override(self, obj: Any) -> Any:
        """An array that repeats one number, such as the couplings of a ferromagnet, arrives as such."""
        if type(obj) is not np.ndarray or obj.size < 2 or 0 not in obj.strides:
            return NotImplemented
        distinct = obj[tuple(slice(1) if stride == 0 else slice(None) for stride in obj.strides)]
        return np.broadcast_to, (distinct.copy(), obj.shape)


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, of_number: Callable[[int], Any]) -> None:
        super().__init__(file)
        self._of_number = of_number

    def persistent_load(self, pid: int) -> Any:
        return self._of_number(pid)


def as_bytes(content: Any, number_of: Callable[[Any], int | None]) -> bytes:
    """A message; ``number_of`` gives numbers to objects that stay where they are, None to all others."""
    file = io.BytesIO()
    _Pickler(file, number_of).dump(content)
    return file.getvalue()


def from_bytes(message: bytes, of_number: Callable[[int], Any]) -> Any:
    """Content of a message from another rank of the same run; ``of_number`` returns the object of a number."""
    return _Unpickler(io.BytesIO(message), of_number).load()


class RankError(RuntimeError):
    """Something went wrong at another rank."""


class There:
    """A handle of an object at a serving rank; when nobody has the handle any more, the object goes too."""

    def __init__(self, number: int, dropped: deque[int]) -> None:
        self.number = number
        weakref.finalize(self, dropped.append, number)


class Thread(NamedTuple):
    """A thread of a serving rank, beside others that serve at the same time."""

    number: int  # from 1 on
    gpu: int | None  # its GPU, None where it is the CPU


class AtRank(Place):
    """A serving rank, as rank 0 sees it."""

    def __init__(self, ranks: Ranks, rank: int) -> None:
        self._ranks, self.rank = ranks, rank
        self._dropped = deque[int]()
        self._numbers = count()
        self.waiting = set[int]()  # numbers of requests that are not answered yet
        self._sending, self._arriving, self._receiving = threading.Lock(), threading.Condition(), False
        self._arrived: dict[int, tuple[Any, Exception | None]] = {}

    def thread(self, number: int, gpu: int | None = None) -> InThreadAtRank:
        return InThreadAtRank(self, Thread(number, gpu))

    def request(self, function: Callable[..., Any], *arguments: Any) -> Reply:
        return self.request_of_thread(None, function, *arguments)

    def request_of_thread(self, thread: Thread | None, function: Callable[..., Any], *arguments: Any) -> Reply:
        dropped = [self._dropped.popleft() for _ in range(len(self._dropped))]
        with self._sending:
            number = next(self._numbers)
            self._ranks.send(as_bytes((dropped, number, thread, function, arguments), _number_of), self.rank)
            self.waiting.add(number)
        return partial(self._answer, number)

    def _answer(self, number: int) -> Any:
        while not self._has_arrived(number):  # the rank's threads answer in any order
            try:
                message = self._ranks.receive(self.rank)
                which, outcome, failure = from_bytes(message, lambda number: There(number, self._dropped))
                self._arrived[which] = outcome, failure
                self.waiting.remove(which)
            finally:
                with self._arriving:
                    self._receiving = False
                    self._arriving.notify_all()
        outcome, failure = self._arrived.pop(number)
        if failure is not None:
            raise failure
        return outcome

    def _has_arrived(self, number: int) -> bool:
        """True if an answer has arrived; if False, the caller is the one waiting thread that must receive."""
        with self._arriving:
            self._arriving.wait_for(lambda: number in self._arrived or not self._receiving)
            if number in self._arrived:
                return True
            self._receiving = True
            return False

    def stop(self) -> None:
        self._ranks.send(as_bytes(STOP, _number_of), self.rank)


class InThreadAtRank(Place):
    """A thread of a serving rank, as rank 0 sees it."""

    def __init__(self, of: AtRank, thread: Thread) -> None:
        self._of, self._thread, self.rank = of, thread, of.rank

    def request(self, function: Callable[..., Any], *arguments: Any) -> Reply:
        return self._of.request_of_thread(self._thread, function, *arguments)


def _number_of(thing: Any) -> int | None:
    return thing.number if isinstance(thing, There) else None


class _Serving:
    """Objects of a serving rank, and its threads."""

    def __init__(self, ranks: Ranks) -> None:
        self._ranks = ranks
        self._kept: dict[int, Kept] = {}
        self._numbers = count()
        self._threads: dict[Thread, InThread] = {}
        self._answering = threading.Lock()

    def _keep(self, thing: Any) -> int | None:
        if not isinstance(thing, Kept):
            return None
        number = next(self._numbers)
        self._kept[number] = thing
        return number

    def next(self) -> bool:
        """Take the next request; return False for the message that ends serving."""
        message = from_bytes(self._ranks.receive(FIRST), self._kept.__getitem__)
        if message is STOP:
            return False
        dropped, number, thread, function, arguments = message
        for each in dropped:
            del self._kept[each]
        opened_here = opened(arguments)
        del message, arguments  # what they hold may be dropped next
        if thread:
            self._threads.setdefault(thread, InThread(thread.gpu)).request(
                self._in_thread, number, function, opened_here
            )
        else:
            self._carry_out(number, function, opened_here)
        return True

    def _in_thread(self, number: int, function: Callable[..., Any], arguments: list[Any]) -> None:
        try:
            self._carry_out(number, function, arguments)
        except Exception as error:  # rank 0 waits for an answer
            self._ranks.abort(f"{name_of(self._ranks.rank)} cannot answer ({error!r})")

    def _carry_out(self, number: int, function: Callable[..., Any], arguments: list[Any]) -> None:
        outcome: Any = None
        failure: Exception | None = None
        try:
            outcome = function(*arguments)
        except (InputError, MemoryError) as error:
            failure = InputError(f"{name_of(self._ranks.rank)}: {error or 'memory ran out'}")
        except LeftWaitingError as error:
            failure = LeftWaitingError(f"{name_of(self._ranks.rank)}: {error}")
        except Exception:
            failure = RankError(f"{name_of(self._ranks.rank)} has failed:\n{traceback.format_exc()}")
        arguments.clear()
        with self._answering:
            self._ranks.send(as_bytes((number, outcome, failure), self._keep), FIRST)


def serve(ranks: Ranks) -> None:
    serving = _Serving(ranks)
    while serving.next():
        pass


class OnNode(NamedTuple):
    """The place of a rank among the ranks of its node."""

    number: int  # from 0
    ranks: int  # number of ranks on the node

    def share(self, things: Sequence[int]) -> list[int]:
        """The rank's part of its node's devices: no two ranks have the same one unless there are too few."""
        if not things:
            return []
        return list(things[self.number :: self.ranks]) or [things[self.number % len(things)]]


class _Session:
    """The other processes, as this one knows them."""

    on_node = OnNode(0, 1)
    others: tuple[AtRank, ...] = ()
    ranks: Ranks | None = None


def others() -> tuple[AtRank, ...]:
    return _Session.others


def ranks() -> Ranks | None:
    return _Session.ranks


@contextmanager
def first_ranks(count: int) -> Iterator[None]:
    """Let only the first ``count`` ranks share work that begins meanwhile, to compare numbers of ranks."""
    everyone = _Session.others
    _Session.others = everyone[: count - 1]
    try:
        yield
    finally:
        _Session.others = everyone


def on_node() -> OnNode:
    return _Session.on_node


@contextmanager
def joined(how: Launched) -> Iterator[bool]:
    """Join the other ranks: True in the process that carries out the command, False at a rank that has served it.

    Raises:
        InputError: where the command was started under MPI that cannot be used; on rank 0 alone.
    """
    try:
        ranks = Ranks(how)
    except InputError:
        if how.rank != FIRST:
            raise SystemExit(2) from None
        raise
    _Session.ranks = ranks
    if ranks.rank != FIRST:
        _serve(ranks)
        yield False
        return
    _Session.others = tuple(AtRank(ranks, rank) for rank in range(1, ranks.size))
    try:
        _settle_all()
        yield True
    finally:
        if any(place.waiting for place in _Session.others):  # as after a second Ctrl-C
            ranks.abort("", 130)
        for place in _Session.others:
            place.stop()
        _Session.others, _Session.ranks = (), None
        ranks.leave()


def _serve(ranks: Ranks) -> None:
    """Serve until rank 0 ends the service; rank 0 alone decides when to stop, as signals reach it too."""
    threads.ignore_signals()
    try:
        serve(ranks)
    except Exception as error:
        ranks.abort(f"{name_of(ranks.rank)} has failed ({error!r})")
    ranks.leave()


def _settle_all() -> None:
    """Tell each rank its number on its node, and how many ranks share its processors."""
    asked = answers([place.request(_whereabouts) for place in _Session.others])
    whereabouts = [_whereabouts(), *asked]
    hosts = [host for host, _ in whereabouts]
    nodes = [OnNode(hosts[:rank].count(host), hosts.count(host)) for rank, host in enumerate(hosts)]
    settled = [(node, whereabouts.count(where)) for node, where in zip(nodes, whereabouts, strict=True)]
    _settle(*settled[0])
    answers([place.request(_settle, *one) for place, one in zip(_Session.others, settled[1:], strict=True)])


def _whereabouts() -> tuple[str, frozenset[int]]:
    """The node of a rank and the processors that it may use."""
    mine = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set[int]()
    return socket.gethostname(), frozenset(mine)


def _settle(on_node: OnNode, sharing: int) -> None:
    _Session.on_node = on_node
    threads.share_processors(sharing)
