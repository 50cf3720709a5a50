"""Kinds of arguments are different where machine code is, and the same for equal types."""

from __future__ import annotations

from itertools import product
from typing import Any, NamedTuple

import numpy as np

from spinsim.machine.compiled import _kinds, _types


class Pair(NamedTuple):
    """A named tuple, as kernels take some."""

    first: Any
    second: Any


def arguments() -> list[Any]:
    """Values of many types."""
    found: list[Any] = [1, 1.5, True, np.uint64(3), np.int64(3), np.float64(1), np.bool_(True), (), ((),)]
    for dtype, shape in product(("u1", "i2", "i4", "u4", "i8", "u8", "f4", "f8", "?"), ((4,), (4, 4), (4, 4, 4))):
        whole = np.zeros(shape, dtype)
        frozen = whole.copy()
        frozen.flags.writeable = False
        found += [whole, frozen, whole[::2], *([np.asfortranarray(whole)] if whole.ndim > 1 else [])]
    found += [np.zeros(4, ">i8"), np.zeros(9, np.uint8)[1:].view(np.int64), 2**64 - 1]
    return [*found, Pair(found[9], 2), *((a, b) for a, b in zip(found[:20], found[7:27], strict=True))]


def test_kinds_tell_types_apart() -> None:
    kinds: dict[Any, str] = {}
    for value in arguments():
        assert kinds.setdefault(_kinds((value, 5)), _types((value, 5))) == _types((value, 5))
    assert {_kinds((value, 7)) for value in arguments()} == set(kinds)
    assert len({_kinds((value,)) for value in ((1, (2, 3)), (1, 2, 3), ((1, 2), 3), 2**63)}) == 4
