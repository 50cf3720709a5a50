"""The error that a user's input can cause, and the wording of its message.

A message on the command line names flags (``--out``), a message in Python names arguments (``out=``). The command line
announces itself by ``on_command_line``; ``argument`` and ``worded`` then choose the words when a message is made.
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
    """Bad input: one sentence with the value, the rule and the remedy. The command line exits with status 2."""


class WrongTypeError(InputError, TypeError):
    """Bad input of a type that the signature does not allow, or with an unknown name: also a TypeError for programs."""


class MissingError(InputError, AttributeError):
    """A run lacks the requested attribute. For ``hasattr`` this is an ordinary missing attribute."""


class OwnCodeError(InputError):
    """A user's own function has failed; ``trace`` is its traceback in Python's format."""

    def __init__(self, sentence: str, trace: str) -> None:
        super().__init__(sentence)
        self.trace = trace

    def __reduce__(self) -> tuple[Any, ...]:
        """Give pickle both arguments, so that other processes can rebuild the error."""
        return type(self), (str(self), self.trace)


@contextlib.contextmanager
def on_command_line() -> Iterator[None]:
    """Let messages name flags and commands within the block."""
    global _on_command_line
    before, _on_command_line = _on_command_line, True
    try:
        yield
    finally:
        _on_command_line = before


def warn_caller(sentence: str) -> None:
    """Issue a warning that points at the user's line that called the program, at any depth of the call stack."""
    package = __name__.partition(".")[0]
    for level in count(1):
        frame = sys._getframe(level)
        if frame.f_back is None or frame.f_globals.get("__name__", "").partition(".")[0] != package:
            break
    warn(sentence, stacklevel=level + 1)


def worded(command_line: str, python: str) -> str:
    """Return the wording for the command line or for Python, whichever is in use."""
    return command_line if _on_command_line else python


def argument(name: str, value: object = "") -> str:
    """Return the name of a setting, ``--replicas`` or ``replicas``, or with a value ``--replicas 2`` or ``replicas=2``.

    A switch is given with the value True: ``--quantum`` or ``quantum=True``.
    """
    switch = "" if value is True else f" {value}"
    return worded(f"--{name.replace('_', '-')}{switch}".rstrip(), f"{name}={value}" if value else name)


def another_path() -> str:
    """Return the words that ask for another file."""
    return worded("choose another --out", "choose another path")
