"""Printing: one escaped line at a time, also to readers that may disappear; one-sentence messages of the parser."""

from __future__ import annotations

import errno
import io
import json
import math
import os
import re
import sys
from collections.abc import Sequence
from typing import Any, Final

import typer

from spinsim.errors import InputError, OwnCodeError
from spinsim.inputs.texts import WIDTH, alike, beyond_ising, either, enumerated, from_inverse, printable, serving

_GONE: Final = (errno.EPIPE, errno.EIO)  # a closed pipe, a terminal that was hung up


def say(*lines: object, err: bool = False) -> None:
    """Print lines on standard output, or on standard error, with terminal control characters escaped."""
    for line in lines:
        typer.echo(printable(str(line)), err=err)


def log_events() -> None:
    """Write what the program logs to standard error, a line with the time for each event."""
    import logging

    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(name)s: %(message)s")
    logging.getLogger("spinsim").setLevel(logging.INFO)


def table_width() -> int | None:
    """Return the largest width of a table on standard output; None if no terminal shows it, for programs that read."""
    return WIDTH if sys.stdout.isatty() else None


def say_json(numbers: Any) -> None:
    """Print numbers as one line of JSON, with null for NaN and infinity, which JSON lacks."""
    say(json.dumps(_finite(numbers), allow_nan=False))


def _finite(values: Any) -> Any:
    if isinstance(values, dict):
        return {name: _finite(value) for name, value in values.items()}
    if isinstance(values, list | tuple):
        return [_finite(value) for value in values]
    return None if isinstance(values, float) and not math.isfinite(values) else values


def open_streams() -> None:
    """Let standard streams accept every text, and discard output that has no reader, so that no run ends for that."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:  # closed: a file that is opened later would get this number, and printed text would go into it
            os.open(os.devnull, os.O_RDWR)
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115  (open to the end)
        elif stream is getattr(sys, f"__{name}__"):
            stream.flush()
            binary = io.BufferedWriter(_Stream(stream.fileno(), "wb", closefd=False))
            setattr(sys, name, io.TextIOWrapper(
                binary, stream.encoding, "backslashreplace", line_buffering=stream.line_buffering
            ))  # fmt: skip


class _Stream(io.FileIO):
    """A standard stream that discards further output once it cannot be written."""

    def write(self, data: Any) -> int:
        """Write data, or discard it.

        Raises:
            OSError: at the first failure, unless the reader has just disappeared.
        """
        try:
            return super().write(data)
        except OSError as error:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self.fileno())
            os.close(nowhere)
            if error.errno not in _GONE:
                error.filename = "standard output"
                raise
            return memoryview(data).nbytes


def refuse(why: str | InputError) -> int:
    """Print the reason in one line on standard error, below the trace of a failed user function; return status 2."""
    if isinstance(why, OwnCodeError):
        say(*why.trace.splitlines(), err=True)
    say(f"spinsim: {why}", err=True)
    return 2


_MOST_CLOSE: Final = 2


def usage_sentence(error: Any) -> str:
    """Return the parser's message as one sentence, with the command whose --help explains the rule."""
    message = " ".join(error.format_message().split()).replace(". Did you", ", did you").rstrip(".?")
    context = getattr(error, "ctx", None)
    value = re.match(r"Invalid value for '(?P<flag>--[\w-]+)'[^:]*: (?P<rule>.*)", message)
    if value:
        return f"{value['flag']} {value['rule']}"
    wish = getattr(error, "option_name", None)
    if wish is not None and context is not None:
        flags = [name for one in context.command.params for name in one.opts if name.startswith("--")]
        message = f"No such option: {wish}{_instead(wish, flags)}"
    word = re.search("'([^']*)'", message)
    if word and (scope := beyond_ising(word[1])):
        return f"{message}: {scope}"
    return f"{message}: see '{context.command_path if context else 'spinsim'} --help'"


def _instead(wish: str, flags: Sequence[str]) -> str:
    """Return a hint at the flags of a command that serve or resemble an unknown one; empty if there are none."""
    names, word = [one.removeprefix("--").replace("-", "_") for one in flags], wish.lstrip("-")
    if wish != "-h" and (wanted := serving(word, names)):  # -h asks for help, which the end of the sentence names
        return f", give {enumerated(_flags(wanted), 'and')}{from_inverse(word, wanted)}"
    close = alike(word, names, _MOST_CLOSE)
    return f", did you mean {either(_flags(close))}" if close else ""


def _flags(names: Sequence[str]) -> list[str]:
    return [f"--{name.replace('_', '-')}" for name in names]
