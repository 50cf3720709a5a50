"""Whole numbers beyond 2^53, which float64 holds in steps: those between the steps are refused, never rounded."""

from __future__ import annotations

import re
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from spinsim.errors import InputError

LARGEST: Final = 2**53
"""Up to here float64 holds every whole number."""
_RULE: Final = (
    "is a whole number that float64 does not hold (it holds all up to 2^53 = 9007199254740992): divide all values by "
    "a common factor, or choose one that it holds"
)
_LONG: Final = re.compile(r"[+-]?(\d{16,})(\.0*)?", re.ASCII)


def check_whole(value: Any, what: str) -> None:
    """Refuse a whole number that no float64 equals; other numbers pass.

    Raises:
        InputError: for it.
    """
    if isinstance(value, int | np.integer) and abs(int(value)) > LARGEST and float(value) != int(value):
        raise InputError(f"{what} is {value}, which {_RULE}")


def check_word(word: str, what: str) -> None:
    """The same for a word that stands for a number.

    Raises:
        InputError: as ``check_whole``.
    """
    match = _LONG.fullmatch(word.strip())
    if match and len(match[1]) < 400:
        check_whole(int(match[1]), what)


def as_floats(values: npt.ArrayLike, what: str) -> npt.NDArray[np.float64]:
    """Numbers as float64, whole ones as they are.

    Args:
        values: A number, an array or lists.
        what: They are called in a refusal.

    Raises:
        InputError: as ``check_whole``.
        TypeError: or ValueError as NumPy does for what are no numbers.
    """
    given: npt.NDArray[Any] = np.asarray(values)
    found = np.asarray(given, np.float64)
    if given.dtype == np.float64 and isinstance(values, np.ndarray | float):
        return found
    large = ~(np.abs(found) < LARGEST)
    if large.any():
        each = given if given.dtype.kind in "iu" else np.asarray(values, object)
        for value in each[large].tolist() if each.shape == found.shape else []:
            check_whole(value, what)
    return found
