"""Lists of temperatures and couplings in the users' notation, the same in every job.

``0.8:2:16`` are 16 numbers from 0.8 to 2, evenly spaced. ``0.8:2:16g`` are 16 numbers in geometric progression, each
the same multiple of the one before. ``0.8,1.0,1.3`` is a plain list. Numbers may fall as well as rise.
"""

from __future__ import annotations

import re
from decimal import Decimal
from math import isfinite
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from spinsim.acceptance import exp_reduced
from spinsim.errors import InputError, WrongTypeError, worded

Array = npt.NDArray[np.float64]
LARGEST: Final = 2**53  # up to here float64 holds every whole number
_RULE: Final = (
    "is a whole number that float64 does not hold (it holds all up to 2^53 = 9007199254740992): divide all values by "
    "a common factor, or choose one that it holds"
)
_LONG: Final = re.compile(r"[+-]?(\d{16,})(\.0*)?", re.ASCII)


def check_whole(value: Any, name: str) -> None:
    """Refuse a whole number that float64 cannot represent exactly; other numbers pass."""
    if isinstance(value, int | np.integer) and abs(int(value)) > LARGEST and float(value) != int(value):
        raise InputError(f"{name} is {value}, which {_RULE}")


def check_word(word: str, name: str) -> None:
    """Refuse a word that is a whole number without an exact float64."""
    match = _LONG.fullmatch(word.strip())
    if match and len(match[1]) < 400:
        check_whole(int(match[1]), name)


def as_floats(values: npt.ArrayLike, name: str) -> npt.NDArray[np.float64]:
    """Return numbers, arrays and lists as float64; whole numbers must be exact. Anything else raises NumPy's errors."""
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


def whole_array(values: npt.ArrayLike, name: str) -> npt.NDArray[Any]:
    """Return whole numbers, which may be given as floats, as an array of integers; truths and fractions are refused."""
    given: npt.NDArray[Any] = np.asarray(values)
    if given.dtype.kind == "f":
        bad = given[~((np.rint(given) == given) & (np.abs(given) <= LARGEST))]
        if bad.size:
            raise InputError(f"{name} {bad[0]} is no whole number: give such as 2 or 2.0")
        return given.astype(np.int64)
    if given.dtype.kind not in "iu":
        first = f" {given.reshape(-1)[0]}" if given.size else ""
        raise WrongTypeError(f"{name}{first} of type {given.dtype} is no whole number: give such as 2 or 2.0")
    return given


def finite_array(values: npt.ArrayLike, name: str, least: int = 2) -> Array:
    """Return the values in double precision; they must be real and finite, with at least ``least`` along axis 0."""
    array = real_array(values, name)
    if array.ndim == 0 or len(array) < least or array.size == 0:
        raise InputError(f"{name} has shape {array.shape}: give at least {least} entries along axis 0")
    if not np.isfinite(array).all():
        raise InputError(f"{name} holds {array[~np.isfinite(array)][0]}: give finite numbers only")
    return array


def real_array(values: npt.ArrayLike, name: str) -> Array:
    """Return real values in double precision, of any shape; NaN and infinity pass."""
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise InputError(f"{name} is ragged: give one rectangular array") from error
    if array.dtype.kind not in "biuf":
        raise InputError(f"{name} holds {array.dtype} values: give real numbers")
    return array.astype(np.float64, copy=False)


MOST: Final = 10**6
_GRIDS: Final = "0.8:2:16 (evenly spaced), 0.8:2:16g (geometric)"
_SHOWN: Final = 6


class Written(str):
    """Text of given ``numbers``, together with these numbers, so that the text is never parsed."""

    numbers: Array


def form(besides: str = "") -> str:
    """Return the allowed notations for numbers in words; ``besides`` adds one more."""
    also = f" or {besides}" if besides else ""
    return worded(
        f"{_GRIDS} or numbers with commas between them{also and ',' + also}",
        f"a list of floats, or text such as {_GRIDS}{also}",
    )


def shown(text: str) -> str:
    """Return numbers as the user gave them, for messages: text, or a list for a list in Python."""
    if is_grid(text):
        return repr(text)
    numbers = [part.strip() for part in text.split(",")]
    if len(numbers) > _SHOWN:
        numbers = [*numbers[: _SHOWN // 2], "...", *numbers[-_SHOWN // 2 :]]
    return worded(repr(text), f"[{', '.join(numbers)}]")


def read_grid(name: str, text: str, wanted: str = "", any_sign: bool = False) -> Array:
    """Read the numbers of a text; they must be above 0 unless ``any_sign``. Geometric progressions are always above 0.

    Messages have the ``name`` of the setting and the ``wanted`` notations, ``form()`` by default.
    """
    try:
        values = _numbers(name, text)
    except InputError:
        raise
    except ValueError as error:
        raise InputError(f"{name} {text!r} cannot be read: give {wanted or form()}") from error
    if not (np.isfinite(values).all() and (any_sign or (values > 0).all())):
        sign = "" if any_sign else "above 0 and "
        raise InputError(f"{name} {shown(text)} is not all {sign}finite: give {wanted or form()}")
    return values


def _numbers(name: str, text: str) -> Array:
    if isinstance(text, Written):
        return text.numbers.copy()
    if is_grid(text):
        return _grid(name, text)
    numbers = []
    for word in text.split(","):
        check_word(word, name)
        numbers.append(float(word))
    return np.array(numbers)


def _grid(name: str, text: str) -> Array:
    """Read the numbers of ``from:to:count``; if an end is not finite, only the ends are returned."""
    low, high, count = text.split(":")
    first, last, steps = float(low), float(high), int(count.strip().removesuffix("g"))
    if not 1 <= steps <= MOST:
        raise InputError(f"{name} {text!r} has {steps} points: give 1 to {MOST}")
    if not (isfinite(first) and isfinite(last)):
        return np.array([first, last])
    if not text.strip().endswith("g"):
        return linear(first, last, steps)
    if not (first > 0 and last > 0):
        raise InputError(f"{name} {text!r} is not all above 0 and finite: a geometric row has ends above 0")
    return geometric(first, last, steps)


def as_text(numbers: Array) -> str:
    """Return numbers, (count,), as text that reproduces every bit."""
    text = Written(",".join(map(repr, numbers.tolist())))
    text.numbers = np.array(numbers, np.float64)
    return text


def linear(first: float, last: float, count: int) -> Array:
    return np.array([first + (last - first) * (i / max(count - 1, 1)) for i in range(count)])


def geometric(first: float, last: float, count: int) -> Array:
    """Geometric progression with the same bits on all machines; ``np.geomspace`` depends on the processor."""
    if count == 1:
        return np.array([first], np.float64)
    growth = float((Decimal(float(last)) / Decimal(float(first))).ln())
    mantissa, power = exp_reduced(growth * (np.arange(count) / (count - 1)))
    row = first * np.ldexp(mantissa, power.astype(np.int64))
    row[-1] = last
    return np.asarray(row)


def is_grid(text: str) -> bool:
    return ":" in text
