"""Ranks of this command: who carries it out, who serves, and what each has of its node."""

from __future__ import annotations

import os
import signal
import socket
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from spinsim.errors import InputError
from spinsim.machine import threads
from spinsim.parallel.launched import Launched
from spinsim.parallel.places import answers
from spinsim.parallel.ranks import FIRST, Ranks, name_of
from spinsim.parallel.serving import AtRank, serve


class OnNode(NamedTuple):
    """The place of a rank among the ranks of its node."""

    number: int  # from 0
    ranks: int  # how many there are

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
    """Have the first ``count`` ranks alone share what is begun meanwhile, as a comparison of their numbers needs."""
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
    """Serve until rank 0 lets go; when to stop is its decision, which a signal tells it too."""
    for number in (signal.SIGINT, signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else [])):
        signal.signal(number, signal.SIG_IGN)
    try:
        serve(ranks)
    except Exception as error:
        ranks.abort(f"{name_of(ranks.rank)} has failed ({error!r})")
    ranks.leave()


def _settle_all() -> None:
    """Tell each rank which one of its node it is, and how many share its processors."""
    asked = answers([place.request(_whereabouts) for place in _Session.others])
    whereabouts = [_whereabouts(), *asked]
    before, ranks, sharing = Counter[str](), Counter(host for host, _ in whereabouts), Counter(whereabouts)
    settled = []
    for where in whereabouts:
        host = where[0]
        settled.append((OnNode(before[host], ranks[host]), sharing[where]))
        before[host] += 1
    _settle(*settled[0])
    answers([place.request(_settle, *one) for place, one in zip(_Session.others, settled[1:], strict=True)])


def _whereabouts() -> tuple[str, frozenset[int]]:
    """The node of a rank and the processors that it may use."""
    mine = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set[int]()
    return socket.gethostname(), frozenset(mine)


def _settle(on_node: OnNode, sharing: int) -> None:
    _Session.on_node = on_node
    threads.share_processors(sharing)
