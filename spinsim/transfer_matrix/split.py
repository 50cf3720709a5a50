"""Vectors shared by several devices: which of them, and a solver that is one at each, asked by rank 0."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from spinsim.engine.devices import CUDA, seats
from spinsim.errors import InputError
from spinsim.inputs.texts import count
from spinsim.machine.threads import Threads
from spinsim.parallel.group import Each, Group, Member, Seat, together
from spinsim.parallel.places import Kept, answers
from spinsim.parallel.session import others
from spinsim.transfer_matrix.across import MOST_TOP
from spinsim.transfer_matrix.lanczos import NotConvergedError
from spinsim.transfer_matrix.spectrum import Fit, Settings, Solver, fit, room
from spinsim.transfer_matrix.vectors import Share

Saved = dict[str, npt.NDArray[Any]]
FEWEST_BITS: Final = {"cpu": 18, CUDA: 24}
"""Least bits of vectors that are worth sharing: with shorter ones devices would wait for each other."""
_SHARED: Final = ("basis", "finished_vectors")  # vectors in a snapshot; everything else is the same at all devices


class Chosen(NamedTuple):
    """Devices for one task."""

    seats: list[Seat]  # where they are, a power of two
    room: Fit  # vectors that fit in memory
    words: str  # how they share out the work, a sentence; empty where there is but one device


def choose(sites: int, sectors: tuple[str, ...], settings: Settings, device: str, tasks: int = 1) -> Chosen:
    """The devices that share each vector: all that are asked for, more where it would not fit one GPU."""
    given = seats(device)
    members = _most(len(given), sites - (sectors != ("all",)), settings.device)
    while True:
        mine = given[:members]
        try:
            return Chosen(mine, _fit(sites, sectors, settings, tasks, mine), _in_words(mine, given))
        except InputError:
            if device == CUDA and not others():
                given = seats(f"{CUDA}:all")
            if 2 * members > min(len(given), 1 << MOST_TOP) or device == "cpu":
                raise
            members *= 2


def _most(devices: int, bits: int, kind: str) -> int:
    """The power of two of devices that share vectors of 2^bits amplitudes."""
    if bits < FEWEST_BITS[kind]:
        return 1
    most = 1 << (devices.bit_length() - 1)
    return min(most, 1 << MOST_TOP) if kind == CUDA else most


def _fit(sites: int, sectors: tuple[str, ...], settings: Settings, tasks: int, mine: Sequence[Seat]) -> Fit:
    if len(mine) == 1 and mine[0].gpu is None:
        return fit(sites, sectors, settings, tasks)
    rooms = answers([seat.place.request(room, seat.gpu) for seat in mine])
    return fit(sites, sectors, settings, tasks, len(mine), min(rooms))


def _in_words(mine: Sequence[Seat], given: Sequence[Seat]) -> str:
    if len(given) == 1:
        return ""
    idle = len(given) - len(mine)
    kind = "GPU" if given[0].gpu is not None else "rank"
    leaves = f", which leaves {count(idle, kind)} idle" if idle else ""
    return (f"each vector over {len(mine)} {kind}s" if len(mine) > 1 else "none") + leaves


class SplitSolver:
    """A ``Solver`` at every device of a group, each with its part of all vectors.

    Its arguments up to ``room`` are ``given``; ``on_product`` is called before every product, and what it raises ends
    the task.
    """

    def __init__(
        self,
        members: Sequence[Member],
        given: tuple[Any, ...],
        threads: int | None,
        on_product: Callable[[], None] | None,
    ) -> None:
        self._members, self.done = members, False
        first = Each([on_product, *[None] * (len(members) - 1)])
        self._solvers = Each(together(members, _make, given, threads, first, on_product is not None))

    def advance(self) -> None:
        """As of ``Solver``; raises KeyboardInterrupt where ``on_product`` did."""
        stopped, self.done = together(self._members, _advance, self._solvers)[0]
        if stopped:
            raise KeyboardInterrupt

    @property
    def problems(self) -> list[NotConvergedError]:
        return cast("list[NotConvergedError]", together(self._members, _call, self._solvers, "problems")[0])

    def row(self) -> dict[str, Any]:
        return cast("dict[str, Any]", together(self._members, _call, self._solvers, "row")[0])

    def snapshot(self) -> Saved:
        parts: list[Saved] = together(self._members, _call, self._solvers, "snapshot")
        return parts[0] | {name: np.concatenate([part[name] for part in parts], axis=-1) for name in _SHARED}

    def restore(self, saved: Saved) -> None:
        """Go on from a snapshot, of however many devices."""
        parts = {name: np.split(saved[name], len(self._members), axis=-1) for name in _SHARED}
        own = [saved | {name: parts[name][k] for name in _SHARED} for k in range(len(self._members))]
        together(self._members, _call, self._solvers, "restore", Each(own))


class _StoppedError(Exception):
    """The task is to end, at all devices."""


def _make(
    group: Group, given: tuple[Any, ...], threads: int | None, on_product: Callable[[], None] | None, watched: bool
) -> Kept:
    def before_product() -> None:
        """Ask rank 0 whether to go on; all get the same answer before the same product."""
        stop = 0
        try:
            if on_product:
                on_product()
        except KeyboardInterrupt:
            stop = 1
        if group.sum(np.array([stop]))[0]:
            raise _StoppedError

    def nothing() -> None: ...

    settings: Settings = given[5]
    pool = Threads(threads if settings.device == "cpu" else 1)
    make: Callable[..., Solver] = Solver
    return Kept(make(*given, pool, before_product if watched else nothing, Share(group)))


def _advance(group: Group, solver: Solver) -> tuple[bool, bool]:
    try:
        solver.advance()
    except _StoppedError:
        return True, False
    return False, solver.done


def _call(group: Group, solver: Solver, name: str, *arguments: Any) -> Any:
    member = getattr(solver, name)
    return member(*arguments) if callable(member) else member
