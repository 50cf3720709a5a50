"""Moves, which change configurations between sweeps: their interface, the path that applies them, and their times.

A run has a list of moves, each with a number of sweeps. An engine has one method for them, ``apply``. It takes the fast
path that the move registers for the layout and device of the spins, if there is one. Otherwise it takes the plain path:
the state is unpacked in host memory, moved and packed again (engine/given.py). A move may have no fast path, like the
moves of users. Random numbers are a pure function of the seed and of the numbers of sample, replica, time, move and
draw. So both paths, all devices and all ways to share out a run give the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pkgutil import resolve_name
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from spinsim import rng
from spinsim.engine.moves.exchange import holders
from spinsim.errors import InputError
from spinsim.inputs.arguments import plain, public, whole
from spinsim.inputs.texts import shown
from spinsim.model.ising import Ising
from spinsim.packing import LANES, Packing

MOST_MOVES: Final = 2**rng.PLANE_BITS
MOST_DRAWS: Final = 2 * 2**rng.GROUP_BITS // LANES
"""Most random numbers that a replica can draw in one application of a move."""
OWN_MOVES: Final = {
    "houdayer": "spinsim.engine.moves.houdayer:Houdayer",
    "swendsen-wang": "spinsim.engine.moves.fortuin_kasteleyn.move:SwendsenWang",
    "wolff": "spinsim.engine.moves.fortuin_kasteleyn.move:Wolff",
    "seeded-clusters": "spinsim.engine.moves.fortuin_kasteleyn.move:SeededClusters",
}
"""Moves that a run may name without passing an object, and their classes."""


class Moment(NamedTuple):
    """One application of a move, or several after each other."""

    # inverse temperatures of the engine's ladder, (temperatures,) or, of two terms, (temperatures, 2). A number if all
    # replicas have the same; they are then copies of each other
    beta: npt.NDArray[np.float64] | float
    time: int  # number of earlier applications of the move
    seed: int
    number: int = 0  # number of the move in the run's list
    times: int = 1  # number of applications

    @property
    def each(self) -> Iterator[Moment]:
        """The single applications."""
        return (self._replace(time=self.time + k, times=1) for k in range(self.times))


@public
class Batch:
    """Configurations that a move changes in place, all replicas of all samples.

    Attributes:
        spins: +1 and -1, ``int8`` (samples, replicas, sites) in host memory; changed in place.
        model: Model that is simulated.
        beta: Inverse temperature of each replica, (samples, replicas).
        holder: Replica of each copy at each temperature, (samples, copies, temperatures). If all replicas have one
            temperature, each is a copy.
        time: Number of earlier applications of the move.
        seed: Seed of the run.
        first_sample: Number of the first sample in the whole run.
    """

    def __init__(
        self, spins: npt.NDArray[np.int8], model: Ising, place: npt.NDArray[np.int32], moment: Moment,
        first_sample: int = 0,
    ) -> None:  # fmt: skip
        self.spins, self.model, self.first_sample = spins, model, first_sample
        beta = np.asarray(moment.beta)
        self.beta = beta[place] if beta.ndim else np.full(place.shape, beta)
        self.holder = holders(place, place.shape[1] // (len(beta) if beta.ndim else 1))
        self.time, self.seed, self._number, self._drawn = moment.time, moment.seed, moment.number, 0

    def uniform(self, count: int) -> npt.NDArray[np.uint64]:
        """Return the next random 64-bit numbers of each replica, (samples, replicas, count).

        Raises:
            InputError: for more than 2^26 numbers of a replica in one application.
        """
        samples, replicas, _ = self.spins.shape
        first, stop = self._drawn // 2, -(-(self._drawn + count) // 2)
        if self._drawn + count > MOST_DRAWS:
            raise InputError(f"a move draws {self._drawn + count} numbers of a replica, of at most {MOST_DRAWS}")
        block, lane = np.divmod(np.arange(replicas), LANES)
        words = rng.draw(
            self.seed, rng.Stream.MOVE, group=np.arange(first, stop) * LANES + lane[:, None],
            sample=self.first_sample + np.arange(samples)[:, None, None], block=block[:, None], half_sweep=self.time,
            plane=self._number,
        )  # fmt: skip
        pairs = np.stack([words[0] | words[1] << rng.SHIFT32, words[2] | words[3] << rng.SHIFT32], axis=-1)
        start = self._drawn % 2
        self._drawn += count
        return pairs.reshape(samples, replicas, -1)[..., start : start + count]


class Move(Protocol):
    """A change of configurations that preserves the Boltzmann distribution.

    A move with its own kernels also has an attribute ``fast_paths``. It maps the layout of the spins and ``cpu`` or
    ``cuda`` to the name of a module, or ``module:function``. That function, by default ``fast_path``, makes a
    ``FastPath``, or None, from the model, the replicas, the number of the first sample in the whole run and the
    ``CpuParts`` or ``CudaParts`` of an engine. A function of the name ``of_move`` takes the move before these, and the
    move is hashable. ``apply`` is the plain path of all other layouts, and the reference for
    tests of fast paths.

    Attributes:
        name: Name of the move in files.
    """

    @property
    def name(self) -> str:
        """Name of the move in files."""

    def apply(self, batch: Batch) -> None:
        """Change ``batch.spins`` in place."""


def most_halvings(sites: int) -> int:
    """Largest k of seeds that cluster moves draw with probability 2^-k: about one seed per ``sites`` sites is left."""
    return max(1, (sites - 1).bit_length())


FastPath = Callable[[Moment, Any], None]
"""Applies a move to an engine's spins in place, at a moment; ``Batch.holder`` is an array on the engine's device."""


class FastPaths:
    """Fast paths of an engine's moves, each made on first use."""

    def __init__(self, device: str, packing: Packing, *given: Any) -> None:
        self._device, self._packing, self._given = device, packing, given
        self._made: dict[Any, FastPath | None] = {}

    def of(self, move: Move) -> FastPath | None:
        """Return the fast path of a move; None if it has none for this engine."""
        path = modules_of(move).get((self._packing, self._device))
        if path is None:
            return None
        of_move = path.endswith(":of_move")
        key = path, move if of_move else move.name
        if key not in self._made:
            make = resolve_name(path if ":" in path else f"{path}:fast_path")
            made = make(*([move] if of_move else []), *self._given)
            self._made[key] = None if made is None else partial(_each_time, made)
        return self._made[key]


def _each_time(fast_path: FastPath, moment: Moment, holder: Any) -> None:
    for one in moment.each:
        fast_path(one, holder)


def modules_of(move: Move) -> Mapping[tuple[Packing, str], str]:
    """Return the modules of a move's fast paths by layout and device; most moves of users have none."""
    modules: Mapping[tuple[Packing, str], str] = getattr(move, "fast_paths", {})
    return modules


class Moves:
    """Moves between the sweeps of a run, each applied after a fixed number of sweeps.

    Args:
        unit: Sweeps that cannot be interrupted, such as the sweeps of a round of exchanges.

    Raises:
        InputError: for names that occur twice or are not allowed in a file, and for numbers of sweeps that are not
            multiples of ``unit``.
    """

    def __init__(self, moves: Sequence[tuple[Move, int]], seed: int, unit: int = 1) -> None:
        self._moves, self._seed = pairs_of(moves), seed
        for move, every in self._moves:
            if every % unit:
                raise InputError(f"move {move.name} comes every {every} sweeps, no multiple of swap_every {unit}")

    def until_next(self, done: int, most: int) -> int:
        """Sweeps from sweep ``done`` to the next move, at most ``most``."""
        return min([most, *(every - done % every for _, every in self._moves)])

    def apply(self, engine: Any, done: int, beta: Any) -> None:
        """Apply the moves that follow sweep ``done``, in their order; ``beta`` is as in ``Moment``."""
        for number, (move, every) in enumerate(self._moves):
            if done % every == 0:
                engine.apply(move, Moment(beta, done // every - 1, self._seed, number))


def moves_of_run(given: Sequence[tuple[Move, int]], named: str | None, call: str) -> Sequence[tuple[Move, int]]:
    """Moves of a run's configuration: taken from ``given``, or made by name if they are spinsim's own.

    Raises:
        InputError: if ``given`` has other moves than the configuration names, or lacks a user's move.
    """
    told = text_of(given)
    users = {move.name: (move, every) for move, every in pairs_of(given)}
    moves = []
    for name, _, every in (one.partition(":") for one in (named or "").split(",")):
        if name in users:
            moves.append(users[name])
        elif name in OWN_MOVES and every.isdecimal():
            moves.append((resolve_name(OWN_MOVES[name])(), int(every)))
    if named != text_of(moves) or not {move.name for move, _ in moves} >= users.keys():
        raise InputError(
            f"the run has moves {named or 'none'} but was given {told or 'none'}: give it its own in Python, "
            f"{call}(..., moves=[(move, every)]) or ss.resume(path, moves=...)"
        )
    return moves


def text_of(moves: Sequence[tuple[Move, int]]) -> str | None:
    """Moves in the form of a run's configuration, such as ``row-reversal:10``; None if there are none.

    Raises:
        InputError: as ``pairs_of``.
    """
    return ",".join(f"{move.name}:{every}" for move, every in pairs_of(moves)) or None


def pairs_of(moves: Sequence[tuple[Move, int]]) -> tuple[tuple[Move, int], ...]:
    """Return moves with the sweeps between two of them, which may be given as numbers of NumPy or whole floats.

    Raises:
        InputError: for names that occur twice, contain a comma, colon or space, or belong to another of spinsim's
            moves; for sweeps that are not whole numbers from 1; and for too many moves.
    """
    if not all(isinstance(one, tuple | list) and len(one) == 2 for one in moves):
        raise InputError("moves are pairs of a move and its sweeps apart: give such as [(ss.Wolff(), 10)]")
    names = [move.name for move, _ in moves]
    if len(set(names)) < len(names) or len(names) > MOST_MOVES:
        raise InputError(f"moves {', '.join(names)}: give each another name, {MOST_MOVES} of them at most")
    pairs = []
    for name, (move, every) in zip(names, moves, strict=True):
        if name in OWN_MOVES and not isinstance(move, resolve_name(OWN_MOVES[name])):
            raise InputError(f"move {name} is not the one that spinsim knows by this name: give it another name")
        if not name or set(name) & set(",: "):
            raise InputError(f"move {name!r} has no usable name: give one without spaces, commas and colons")
        try:
            sweeps = whole(every)
        except (TypeError, ValueError):
            sweeps = 0
        if sweeps < 1:
            raise InputError(f"move {name} comes every {shown(plain(every))} sweeps: give a whole number, at least 1")
        pairs.append((move, sweeps))
    return tuple(pairs)
