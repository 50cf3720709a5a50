"""How texts of users are shown: on one line, and as a shell takes them."""

from __future__ import annotations

import os
import shlex


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
