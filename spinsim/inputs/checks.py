"""What every statistical function asks of its numbers."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from spinsim.errors import InputError

Array = npt.NDArray[np.float64]


def finite_array(values: npt.ArrayLike, name: str, least: int = 2) -> Array:
    """The values in double precision: real, finite and at least ``least`` along axis 0.

    Raises:
        InputError: for complex numbers and what is not a number, NaN or infinity, and too few entries.
    """
    array = real_array(values, name)
    if array.ndim == 0 or len(array) < least or array.size == 0:
        raise InputError(f"{name} has shape {array.shape}: give at least {least} entries along axis 0")
    if not np.isfinite(array).all():
        raise InputError(f"{name} holds {array[~np.isfinite(array)][0]}: give finite numbers only")
    return array


def real_array(values: npt.ArrayLike, name: str) -> Array:
    """The values in double precision, whatever their shape; NaN and infinity pass.

    Raises:
        InputError: for complex numbers and what is not a number.
    """
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise InputError(f"{name} is ragged: give one rectangular array") from error
    if array.dtype.kind not in "biuf":
        raise InputError(f"{name} holds {array.dtype} values: give real numbers")
    return array.astype(np.float64, copy=False)
