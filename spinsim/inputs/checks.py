"""Numbers as users give them: whole ones that float64 does not hold are refused, never rounded; arrays are finite."""

from __future__ import annotations

import re
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from spinsim.errors import InputError

Array = npt.NDArray[np.float64]
LARGEST: Final = 2**53  # up to here float64 holds every whole number
_RULE: Final = (
    "is a whole number that float64 does not hold (it holds all up to 2^53 = 9007199254740992): divide all values by "
    "a common factor, or choose one that it holds"
)
_LONG: Final = re.compile(r"[+-]?(\d{16,})(\.0*)?", re.ASCII)


def check_whole(value: Any, name: str) -> None:
    """Refuse a whole number that no float64 equals; other numbers pass."""
    if isinstance(value, int | np.integer) and abs(int(value)) > LARGEST and float(value) != int(value):
        raise InputError(f"{name} is {value}, which {_RULE}")


def check_word(word: str, name: str) -> None:
    """Refuse a word that stands for such a number."""
    match = _LONG.fullmatch(word.strip())
    if match and len(match[1]) < 400:
        check_whole(int(match[1]), name)


def as_floats(values: npt.ArrayLike, name: str) -> npt.NDArray[np.float64]:
    """Numbers, arrays and lists as float64, whole numbers as they are; NumPy's errors for what are no numbers."""
    given: npt.NDArray[Any] = np.asarray(values)
    floats = np.asarray(given, np.float64)
    if given.dtype == np.float64 and isinstance(values, np.ndarray | float):
        return floats
    large = ~(np.abs(floats) < LARGEST)
    if large.any():
        each = given if given.dtype.kind in "iu" else np.asarray(values, object)
        for value in each[large].tolist() if each.shape == floats.shape else []:
            check_whole(value, name)
    return floats


def finite_array(values: npt.ArrayLike, name: str, least: int = 2) -> Array:
    """The values in double precision: real, finite and at least ``least`` along axis 0."""
    array = real_array(values, name)
    if array.ndim == 0 or len(array) < least or array.size == 0:
        raise InputError(f"{name} has shape {array.shape}: give at least {least} entries along axis 0")
    if not np.isfinite(array).all():
        raise InputError(f"{name} holds {array[~np.isfinite(array)][0]}: give finite numbers only")
    return array


def real_array(values: npt.ArrayLike, name: str) -> Array:
    """The values in double precision, whatever their shape; NaN and infinity pass."""
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise InputError(f"{name} is ragged: give one rectangular array") from error
    if array.dtype.kind not in "biuf":
        raise InputError(f"{name} holds {array.dtype} values: give real numbers")
    return array.astype(np.float64, copy=False)
