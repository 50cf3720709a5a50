"""A portfolio: methods take turns, all alike in a tenth of the time, two up to three tenths; then the best gets most.

Two rules of thumb come from measurements (docs/decisions.md). Favourites, which are matching, and tempering with
Houdayer moves on flat graphs, start worse than anneals and end better: if one of them can make enough sweeps, it has
half of the first tenth, and counts as the best one for half of the time. A method that has not improved for long shares
more of its time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Final

from spinsim.jobs.solve.methods import Method
from spinsim.machine.compiled import seconds_without_compiling

TRIAL, SECOND = 0.1, 0.3  # parts of the time up to which all methods, or the two best ones, get the same
OTHERS, STUCK = 0.1, 0.4  # part of the remaining time for the methods that are not the best one, by its state
_SINCE: Final = 0.75  # a method is stuck that has not improved in this part of its own time
_FAVOURED: Final = 0.5  # part of the time in which the favourite counts as the best one
_TURNS: Final = 50  # least number of turns in the whole time
_LONGEST, _SHORTEST = 1.0, 0.005  # seconds of a turn
_BESIDE: Final = 0.1  # part of the time so far that a turn beside a GPU takes, as the end of a search waits for it
_LONGEST_BESIDE: Final = 0.2  # seconds
_FASTER: Final = 4  # a turn has at most this many times the sweeps of the one before, as rates are still unknown


@dataclass
class Clock:
    """The time of a method.

    Attributes:
        seconds: Time that it has had.
        met: Its own time when it met its lowest energy.
        turn: Sweeps of its last turn.
        took: Seconds of this turn, also those in which kernels were compiled, by whatever thread; 0 if it had none.
    """

    seconds: float = 0.0
    met: float = 0.0
    turn: int = 0
    took: float = 0.0


class Portfolio:
    """Decides which method has the next turn, and how long it is.

    With a limit in sweeps, turns do not depend on the time: each method makes a tenth of its sweeps, in order, and so
    on. Otherwise turns are measured in seconds. Those of a portfolio ``beside`` another one are short.
    """

    def __init__(self, methods: Sequence[Method], seconds: float, sweeps: int | None, beside: bool = False) -> None:
        self.methods, self.clocks = methods, [Clock() for _ in methods]
        self._seconds, self._sweeps, self._is_beside = seconds, sweeps, beside

    def turn(self, elapsed: float) -> tuple[int, int] | None:
        """Return the number of the method that is next and its sweeps, after this time; None if nothing is left."""
        return self._of_sweeps() if self._sweeps is not None else self._of_seconds(elapsed)

    @property
    def is_sharing(self) -> bool:
        """True once the best method is known: until then each shows what it finds by itself."""
        if self._sweeps is not None:
            return min(one.sweeps for one in self.methods) >= SECOND * self._sweeps
        return sum(clock.seconds for clock in self.clocks) >= SECOND * self._seconds

    def _of_sweeps(self) -> tuple[int, int] | None:
        assert self._sweeps is not None  # noqa: S101
        most = [max(one.unit, self._sweeps // one.unit * one.unit) for one in self.methods]
        tenths = [10 * one.sweeps // limit for one, limit in zip(self.methods, most, strict=True)]
        number = min(range(len(most)), key=lambda k: tenths[k])
        if tenths[number] == 10:
            return None
        one, upto = self.methods[number], -(-most[number] * (tenths[number] + 1) // 10)
        return number, -(-upto // one.unit) * one.unit - one.sweeps

    def _of_seconds(self, elapsed: float) -> tuple[int, int]:
        number = self._chosen(elapsed)
        one, clock = self.methods[number], self.clocks[number]
        longest = min(_LONGEST_BESIDE, _BESIDE * elapsed) if self._is_beside else _LONGEST
        wanted = min(longest, max(_SHORTEST, self._seconds / _TURNS), max(_SHORTEST, self._seconds - elapsed))
        if not one.sweeps:
            return number, one.unit
        sweeps = int(one.sweeps / max(clock.seconds, 1e-6) * wanted)
        sweeps = min(sweeps, _FASTER * max(one.unit, clock.turn))
        if clock.took > wanted:  # the clock stands still while kernels of others are compiled
            sweeps = min(sweeps, int(clock.turn / clock.took * wanted))
        return number, max(one.unit, sweeps // one.unit * one.unit)

    def _chosen(self, elapsed: float) -> int:
        spent = [clock.seconds for clock in self.clocks]
        total, favourites = sum(spent), self._favourites(elapsed)
        trial, second = TRIAL * self._seconds, SECOND * self._seconds
        if total < trial or not min(spent):
            is_due = bool(favourites) and min(spent) > 0 and 2 * spent[favourites[0]] < total
            return favourites[0] if is_due else min(range(len(spent)), key=lambda k: spent[k])
        ranked = self._ranked(favourites)
        if total < second and not favourites:
            return min(ranked[:2], key=lambda k: spent[k])
        best, rest = ranked[0], ranked[1:]
        if not rest:
            return best
        due, clock = min(rest, key=lambda k: spent[k]), self.clocks[best]
        of_others = STUCK if clock.met < (1 - _SINCE) * clock.seconds else OTHERS
        share = trial / len(spent) + of_others / len(rest) * (total - second)
        return due if spent[due] < share else best

    def _favourites(self, elapsed: float) -> list[int]:
        """Methods that surpass others although they begin worse, where they have time for it; the first is the best."""
        if elapsed >= _FAVOURED * self._seconds:
            return []
        rates = [one.sweeps / max(clock.seconds, 1e-9) for one, clock in zip(self.methods, self.clocks, strict=True)]
        return [k for k, one in enumerate(self.methods) if one.patience and rates[k] * self._seconds > one.patience]

    def _ranked(self, favourites: list[int]) -> list[int]:
        """Methods by their lowest energies; of equals, that first which met it in the least time of its own.

        Favourites come first.
        """
        others = [k for k in range(len(self.methods)) if k not in favourites]
        return favourites + sorted(others, key=lambda k: (self.methods[k].lowest, self.clocks[k].met))

    def take(self, number: int, sweeps: int) -> None:
        """Let a method have a turn."""
        method, clock = self.methods[number], self.clocks[number]
        before, began, at = method.lowest, seconds_without_compiling(), perf_counter()
        method.advance(sweeps)
        clock.seconds, clock.turn = clock.seconds + seconds_without_compiling() - began, sweeps
        clock.took = perf_counter() - at
        if method.lowest < before:
            clock.met = clock.seconds
