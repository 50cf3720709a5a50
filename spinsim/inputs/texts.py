"""Texts of users as they are shown, and rules of settings that jobs share: seeds and GPUs.

A seed that is left out is fixed, and none, or ``random``, draws a fresh one. Left out, the dynamics have seed 1 and the
disorder seed 0, so that the same call gives the same bits. ``seed=None`` in Python, ``--seed random`` on the command
line and ``seed = "random"`` in files draw 64 bits from the operating system. Runs hold the number that they used:
``result.config``, the file and ``spinsim show`` say it.
"""

from __future__ import annotations

import os
import re
import shlex
import textwrap
from operator import index
from typing import Any, Final

from spinsim.errors import InputError

_OTHER_MODELS: Final = ("potts", "clock", "xy", "heisenberg", "blume-capel")
_SHOWN: Final = 40  # characters of a value in a sentence
WIDTH: Final = 80  # width of a terminal, in characters


def printable(text: str) -> str:
    """A text on one line, with everything escaped that a terminal would act on or that no encoding has."""
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def shown(value: Any) -> str:
    """A value as Python shows it, on one line and shortened, for sentences."""
    try:
        text = printable(repr(value))
    except Exception:
        text = f"of type {type(value).__name__}"
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."


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
    """Such as "1 sample", "4 samples" and "2 copies"."""
    plural = f"{name[:-1]}ies" if name.endswith("y") else f"{name}s"
    return f"{number} {name if number == 1 else plural}"


def interval(number: int, name: str) -> str:
    """Such as "every sweep" and "every 10 sweeps"."""
    return f"every {name if number == 1 else count(number, name)}"


def wrapped(sentence: str, head: str = "") -> list[str]:
    return textwrap.wrap(head + sentence, WIDTH, subsequent_indent=" " * len(head), break_on_hyphens=False)


class Described:
    """An object that shows itself in one line, and in a notebook as a small table."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(self._facts.values())})"

    def _repr_html_(self) -> str:
        import html

        facts = ((html.escape(name), html.escape(value)) for name, value in self._facts.items())
        rows = "".join(f"<tr><th>{name}</th><td>{value}</td></tr>" for name, value in facts)
        return f"<table><caption>{html.escape(type(self).__name__)}</caption>{rows}</table>"

    @property
    def _facts(self) -> dict[str, str]:
        raise NotImplementedError


T_START: Final = 1.5  # first temperature, in units of the root mean square local field
T_STOP: Final = 0.05  # last temperature, likewise
HOT_ACCEPTANCE: Final = 0.15
"""Mean acceptance of the flips that cost energy at local minima, which sets the first temperature of a graph."""
COLD_SHARE: Final = 1 / 64
"""Mean thermal energy above a local minimum, in units of how far minima lie above the best, at its last temperature."""
_FORM: Final = re.compile(r"all|0*[1-9][0-9]{0,4}|([0-9]{1,5},)+([0-9]{1,5})?")
RANDOM: Final = "random"


def drawn_seed() -> int:
    import secrets  # takes a tenth of the time in which the program starts

    return secrets.randbits(64)


def as_seed(seed: int | None) -> int:
    return drawn_seed() if seed is None else seed


def seeds_of(seed: Any, count: int) -> list[Any]:
    """Return the seed of each of several problems: ``seed + k``, modulo 2^64, from a drawn one where it is None.

    What is no seed is returned as it is, for whoever takes it to refuse.
    """
    seed = as_seed(seed)
    try:
        first = index(seed)
    except TypeError:
        return [seed] * count
    if isinstance(seed, bool) or not 0 <= first < 2**64:
        return [seed] * count
    return [(first + k) % 2**64 for k in range(count)]


def check_gpus(gpus: str) -> None:
    """Refuse what names no GPUs: ``all``, how many, or their numbers with commas; a comma may end the list."""
    if not _FORM.fullmatch(gpus):
        raise InputError(f"gpus {gpus!r} cannot be read: give all, how many such as 2, or their numbers such as 0,2")
