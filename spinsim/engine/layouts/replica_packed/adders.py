"""Carry-save adders: numbers of set bits, for all 64 lanes of a word at once."""

from __future__ import annotations

from typing import Final

import numpy as np

from spinsim.machine.compiled import part

BATCH: Final = 64  # sites whose words are worked on together
ROW: Final = 2 * BATCH  # words of a scratch row: half 0 of all sites, then half 1
ZERO: Final = np.uint64(0)
ONE: Final = np.uint64(1)


@part
def full_add(a, b, c):  # type: ignore[no-untyped-def]
    """Sum and carry of three bits."""
    return a ^ b ^ c, (a & b) | (c & (a | b))


@part
def add_four(x0, x1, x2, x3):  # type: ignore[no-untyped-def]
    """Three bit planes of one more than the number of bits set among four (degree 4 padded to 6)."""
    sum_a, carry_a = full_add(x0, x1, x2)
    low, d = sum_a ^ x3, sum_a & x3
    return ~low, carry_a ^ d ^ low, (carry_a & d) | (low & (carry_a ^ d))


@part
def add_six(x0, x1, x2, x3, x4, x5):  # type: ignore[no-untyped-def]
    """Three bit planes of the number of bits set among six."""
    sum_a, carry_a = full_add(x0, x1, x2)
    sum_b, carry_b = full_add(x3, x4, x5)
    middle, high = full_add(carry_a, carry_b, sum_a & sum_b)
    return sum_a ^ sum_b, middle, high


@part
def add_seven(x0, x1, x2, x3, x4, x5, x6):  # type: ignore[no-untyped-def]
    """Three bit planes of the number of bits set among seven."""
    sum_a, carry_a = full_add(x0, x1, x2)
    sum_b, carry_b = full_add(x3, x4, x5)
    low, carry_c = full_add(sum_a, sum_b, x6)
    middle, high = full_add(carry_a, carry_b, carry_c)
    return low, middle, high
