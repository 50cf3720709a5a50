"""Rules of settings that jobs share: seeds, GPUs, and the ends of schedules that are not told.

A seed that is left out is fixed, and none, or ``random``, draws a fresh one. Left out, the dynamics have seed 1 and the
disorder seed 0, so that the same call gives the same bits. ``seed=None`` in Python, ``--seed random`` on the command
line and ``seed = "random"`` in files draw 64 bits from the operating system. Runs hold the number that they used:
``result.config``, the file and ``spinsim show`` say it.
"""

from __future__ import annotations

import re
import secrets
from operator import index
from typing import Any, Final

from spinsim.errors import InputError

T_START: Final = 1.5
"""First temperature, in units of the root mean square local field."""
T_STOP: Final = 0.05
"""Last temperature, likewise."""
_FORM: Final = re.compile(r"all|0*[1-9][0-9]{0,4}|([0-9]{1,5},)+([0-9]{1,5})?")
RANDOM: Final = "random"


def drawn_seed() -> int:
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
