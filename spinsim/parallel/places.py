"""Places where objects live and have functions carried out on them: this thread, a thread of its own, another rank."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol

from spinsim.machine.memory import make_current

Reply = Callable[[], Any]  # waits for the outcome of what was asked for, and returns it or raises what it raised


@dataclass
class Kept:
    """An object that stays at its place; others hold this in its stead and pass it on to functions that work there."""

    value: Any  # the object


class Place(Protocol):
    """Somewhere functions are carried out, one after the other in the order in which they are asked for."""

    def request(self, function: Callable[..., Any], *arguments: Any) -> Reply:
        """Have a function of a module carried out there; what it keeps at its place it returns as ``Kept``.

        Arguments are plain data, and what was kept there, of which the function gets the object itself.
        """


def opened(arguments: Iterable[Any]) -> list[Any]:
    """The arguments of a function at the place where all that is kept lives."""
    return [argument.value if isinstance(argument, Kept) else argument for argument in arguments]


class Here(Place):
    """This thread, which begins when the outcome is waited for, so that other places can begin before."""

    def request(self, function: Callable[..., Any], *arguments: Any) -> Reply:
        return lambda: function(*opened(arguments))


class InThread(Place):
    """A thread of its own, as a call may wait until a GPU has room for what it queues; it has that GPU from then on."""

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
    """All outcomes of what was asked for at several places.

    Raises:
        Exception: the first failure that is a cause of its own, when all outcomes are there.
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
