"""Texts of users as they are shown: on one line, and as a shell takes them."""

from __future__ import annotations

import html
import os
import shlex
import textwrap
from typing import Final

_OTHER_MODELS: Final = ("potts", "clock", "xy", "heisenberg", "blume-capel")
WIDTH: Final = 80
"""Width of a terminal, in characters."""


def printable(text: str) -> str:
    """A text on one line, with everything escaped that a terminal would act on or that no encoding has."""
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def quoted(word: str | os.PathLike[str]) -> str:
    """A word as a shell takes it, for lines that users copy; $'...' where it holds what cannot be printed."""
    text = os.fspath(word)
    if text.isprintable():
        return shlex.quote(text)
    plain = (chr(b) if 32 <= b < 127 and chr(b) not in "'\\" else f"\\x{b:02x}" for b in os.fsencode(text))
    return f"$'{''.join(plain)}'"


def beyond_ising(word: object) -> str:
    """Returns a sentence on the scope of the program where a word names a model of other variables; else nothing."""
    if str(word).lower() not in _OTHER_MODELS:
        return ""
    return "spinsim simulates Ising variables, s = +1 or -1, so take another program for Potts, XY or Heisenberg models"


def count(number: int, name: str) -> str:
    """Such as "1 sample" and "4 samples"."""
    return f"{number} {name}{'' if number == 1 else 's'}"


def wrapped(sentence: str, head: str = "") -> list[str]:
    """Returns a sentence after its head, in lines that fit a terminal."""
    return textwrap.wrap(head + sentence, WIDTH, subsequent_indent=" " * len(head), break_on_hyphens=False)


class Described:
    """An object that shows itself in one line, and in a notebook as a small table."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(self._facts.values())})"

    def _repr_html_(self) -> str:
        facts = ((html.escape(name), html.escape(value)) for name, value in self._facts.items())
        rows = "".join(f"<tr><th>{name}</th><td>{value}</td></tr>" for name, value in facts)
        return f"<table><caption>{html.escape(type(self).__name__)}</caption>{rows}</table>"

    @property
    def _facts(self) -> dict[str, str]:
        raise NotImplementedError
