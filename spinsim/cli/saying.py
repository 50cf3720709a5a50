"""Printing: one line at a time, control characters escaped, to readers that may go away."""

from __future__ import annotations

import errno
import io
import json
import math
import os
import sys
from typing import Any, Final

import typer

from spinsim.inputs.texts import printable

_GONE: Final = (errno.EPIPE, errno.EIO)  # a closed pipe, a terminal that was hung up


def say(line: object, err: bool = False) -> None:
    """Print a line on standard output, or on standard error; what a terminal would act on is escaped."""
    typer.echo(printable(str(line)), err=err)


def say_json(numbers: Any) -> None:
    """Print numbers as one line of JSON, which knows neither NaN nor infinity: null stands for them."""
    say(json.dumps(_finite(numbers), allow_nan=False))


def _finite(values: Any) -> Any:
    """Returns values as JSON has them."""
    if isinstance(values, dict):
        return {name: _finite(value) for name, value in values.items()}
    if isinstance(values, list | tuple):
        return [_finite(value) for value in values]
    return None if isinstance(values, float) and not math.isfinite(values) else values


def open_streams() -> None:
    """Let standard streams take every text and stay silent where nobody listens, so that a run never ends for that."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:  # closed: a file that is opened later would get this number, and what is printed
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
    """A standard stream; once it cannot be written, what is written to it vanishes."""

    def write(self, data: Any) -> int:
        """Write, or lose it.

        Raises:
            OSError: the first time, and where the reader has not just gone.
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


def refuse(sentence: str) -> int:
    """Say why in one line on standard error; exit status 2."""
    say(f"spinsim: {sentence}", err=True)
    return 2
