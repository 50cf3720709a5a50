"""Groups: members at places, a device each, that exchange arrays directly while they carry out a request of rank 0.

``make_group`` makes one at any places; ``together`` has a function carried out by all members at once, which call the
methods of their ``Group`` in the same order. Arrays of NumPy go through memory within a process and by MPI between
ranks; arrays of CuPy from GPU to GPU within a process, by NCCL between ranks, or through host memory where there is no
NCCL. A member that fails ends the waits of all others; in a group of several ranks it ends the run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from itertools import count
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from spinsim.errors import InputError
from spinsim.machine.memory import is_on_gpu, using
from spinsim.parallel import session
from spinsim.parallel.in_memory import Offer, in_memory
from spinsim.parallel.nccl import Nccl, new_name
from spinsim.parallel.places import Kept, Place, answers
from spinsim.parallel.ranks import FIRST, name_of
from spinsim.parallel.serving import AtRank, InThreadAtRank

_numbers = count()  # of groups; rank 0 alone takes them


class Seat(NamedTuple):
    """A place with one device."""

    place: Place  # where functions are carried out
    gpu: int | None = None  # number of its GPU there, None where it is the CPU

    @property
    def rank(self) -> int:
        """The rank at which it is."""
        return self.place.rank if isinstance(self.place, (AtRank, InThreadAtRank)) else FIRST


class Member(NamedTuple):
    """A member as rank 0 sees it."""

    seat: Seat  # where it is
    group: Any  # ``Group`` of the member, which stays there


class Each(list[Any]):
    """An argument of which every member gets its own."""


class Group:
    """All members, as one of them sees them; arrays given are in one piece (C order).

    Args:
        ranks: Rank of each member.
        gpu: Number of this member's GPU, None where it is the CPU.
        nccl: The name of the group for NCCL, None where it does without.

    Attributes:
        size: How many members there are.
    """

    def __init__(self, number: int, index: int, ranks: Sequence[int], gpu: int | None, nccl: Any) -> None:
        self.index, self.size, self.gpu = index, len(ranks), gpu
        self._members, self._shared = ranks, in_memory(number)
        self._nccl: Nccl | None = None
        if nccl is not None:
            with self.working():
                self._nccl = Nccl(self.size, nccl, index)

    def exchange(self, give: list[tuple[Any, int]], get: list[tuple[Any, int]]) -> None:
        """Give arrays to other members and get arrays from them, each with its member, of the sizes that these give.

        Those between the same two members keep their order. On GPUs all is queued on the present stream: the host does
        not wait for it.
        """
        if self._nccl and any(is_on_gpu(array) for array, _ in (*give, *get)):
            self._nccl.exchange(give, get)
            return
        mine = self._members[self.index]
        offers: list[tuple[Offer, int]] = []
        for array, to in give:
            if self._members[to] == mine:
                offers.append((self._shared.put(array, self.index, to), to))
        self._between_ranks(
            [each for each in give if self._members[each[1]] != mine],
            [each for each in get if self._members[each[1]] != mine],
        )
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
        # of two members both neighbours are one: what it sends to its member before comes first, from the one after
        self.exchange([(to_before, before), (to_after, after)], [(from_after, after), (from_before, before)])

    def sum(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """The sum over members of a small array in host memory, added in their order: the same bits at each."""
        values = np.ascontiguousarray(values)
        others = [k for k in range(self.size) if k != self.index]
        parts = [values if k == self.index else np.empty_like(values) for k in range(self.size)]
        self.exchange([(values, k) for k in others], [(parts[k], k) for k in others])
        total = parts[0].copy()
        for part in parts[1:]:
            total += part
        return total

    def _between_ranks(self, give: list[tuple[Any, int]], get: list[tuple[Any, int]]) -> None:
        """Exchange arrays by MPI, those of GPUs through host memory; a tag for each pair of members."""
        if not give and not get:
            return
        ranks = session.ranks()
        assert ranks is not None  # noqa: S101  (members are at several)
        there = [np.empty(into.shape, into.dtype) if is_on_gpu(into) else into for into, _ in get]
        ranks.exchange(
            [
                (array.get() if is_on_gpu(array) else array, self._members[to], self.index * self.size + to)
                for array, to in give
            ],
            [
                (into, self._members[giver], giver * self.size + self.index)
                for into, (_, giver) in zip(there, get, strict=True)
            ],
        )
        for host, (into, _) in zip(there, get, strict=True):
            if host is not into:
                into.set(host)

    @contextmanager
    def working(self) -> Iterator[None]:
        """While this member works on a request of all: with its GPU, and so that its failure ends the others' waits."""
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
    """A group with a member at each seat, in their order; no two in the same thread."""
    ranks = [seat.rank for seat in seats]
    number = next(_numbers)
    nccl = new_name(seats) if len(set(ranks)) > 1 else None
    asked = [seat.place.request(_join, number, k, ranks, seat.gpu, nccl) for k, seat in enumerate(seats)]
    return [Member(*each) for each in zip(seats, answers(asked), strict=True)]


def _join(number: int, index: int, ranks: Sequence[int], gpu: int | None, nccl: Any) -> Kept:
    return Kept(Group(number, index, ranks, gpu, nccl))


def together(members: Sequence[Member], function: Any, *arguments: Any) -> list[Any]:
    """Call ``function(group, *arguments)`` at all members at the same time, and return all results.

    Args:
        members: All members of one group.
        function: One of a module. What it keeps at its place it returns as ``Kept``.
        arguments: Plain data, what was kept there, and ``Each`` with one for each member.

    Raises:
        Exception: that of a member that failed, not that of one which was left waiting.
    """
    asked = []
    for k, (seat, group) in enumerate(members):
        own = [argument[k] if isinstance(argument, Each) else argument for argument in arguments]
        asked.append(seat.place.request(_work, group, function, *own))
    return answers(asked)


def _work(group: Group, function: Any, *arguments: Any) -> Any:
    with group.working():
        return function(group, *arguments)
