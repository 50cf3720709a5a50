"""Cosines and sines of a periodic axis, the same bits on every machine."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

WAVE_BITS: Final = 64  # of cosines and sines behind the point, before they are rounded to float64
_GUARD_BITS: Final = 64  # more while they are computed: enough for 2^31 steps


def wave(side: int) -> npt.NDArray[np.float64]:
    """Cosines and sines of 2 pi x / side for all x, (2, side), the same bits on every machine.

    A rotation in fixed point: NumPy's cosine may differ in the last bit from one processor to another.
    """
    bits = WAVE_BITS + _GUARD_BITS
    one = 1 << bits
    cosine, sine = _of_angle(2 * _pi(bits) // side, bits)
    found = np.empty((2, side))
    c, s = one, 0
    for x in range(side):
        found[:, x] = [((part >> _GUARD_BITS - 1) + 1 >> 1) / (1 << WAVE_BITS) for part in (c, s)]
        c, s = (c * cosine - s * sine) >> bits, (s * cosine + c * sine) >> bits
    return found


def _pi(bits: int) -> int:
    """Pi in fixed point by Machin's formula."""
    extra = 32
    one = 1 << bits + extra

    def arctangent(inverse: int) -> int:
        term, total, k = one // inverse, 0, 1
        while term:
            total += term // k if k % 4 == 1 else -(term // k)
            term //= inverse * inverse
            k += 2
        return total

    return 4 * (4 * arctangent(5) - arctangent(239)) >> extra


def _of_angle(angle: int, bits: int) -> tuple[int, int]:
    """Cosine and sine in fixed point by their series; ``angle`` is at most 2 pi."""
    sums, term, k = [0, 0, 0, 0], 1 << bits, 0
    while term:
        sums[k % 4] += term
        k += 1
        term = (term * angle >> bits) // k
    return sums[0] - sums[2], sums[1] - sums[3]
