"""The one error that a user's input can cause, and how its sentence names settings.

A refusal of the command line speaks of flags (``--out``), one in Python of arguments (``out=``): the command line says
that it runs, and messages are worded when they are made, by ``argument`` and ``worded``.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from itertools import count
from typing import Any
from warnings import warn

_on_command_line = False


class InputError(ValueError):
    """Bad input: one sentence that names the value, the rule and the mend. The command line exits with status 2."""


class WrongTypeError(InputError, TypeError):
    """Bad input of another type than a signature says, or by a name that it lacks: also a TypeError to programs."""


class MissingError(InputError, AttributeError):
    """A run has no such thing: bad input to who asks for it, and to ``hasattr`` an attribute that is not there."""


class OwnCodeError(InputError):
    """A function of the user's own has failed; ``trace`` shows where, as Python would."""

    def __init__(self, sentence: str, trace: str) -> None:
        super().__init__(sentence)
        self.trace = trace

    def __reduce__(self) -> tuple[Any, ...]:
        """Give pickle both arguments, for other processes."""
        return type(self), (str(self), self.trace)


@contextlib.contextmanager
def on_command_line() -> Iterator[None]:
    """Let messages name flags and commands."""
    global _on_command_line
    before, _on_command_line = _on_command_line, True
    try:
        yield
    finally:
        _on_command_line = before


def warn_caller(sentence: str) -> None:
    """Warn of the line of the user's that has called the program, however deep in it that is noticed."""
    package = __name__.partition(".")[0]
    for level in count(1):
        frame = sys._getframe(level)
        if frame.f_back is None or frame.f_globals.get("__name__", "").partition(".")[0] != package:
            break
    warn(sentence, stacklevel=level + 1)


def worded(command_line: str, python: str) -> str:
    """Return the words for who reads a message."""
    return command_line if _on_command_line else python


def argument(name: str, value: object = "") -> str:
    """Return a setting as it is named, ``--replicas`` or ``replicas``, or given, ``--replicas 2`` or ``replicas=2``.

    A switch is given with the value True: ``--quantum`` or ``quantum=True``.
    """
    switch = "" if value is True else f" {value}"
    return worded(f"--{name.replace('_', '-')}{switch}".rstrip(), f"{name}={value}" if value else name)


def another_path() -> str:
    """Return how to ask for another file."""
    return worded("choose another --out", "choose another path")
