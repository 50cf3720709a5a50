"""Fingerprints of arguments are different where machine code is, and the same for equal types."""

from __future__ import annotations

from itertools import product
from typing import Any, NamedTuple

import numpy as np

from spinsim.machine import stored
from spinsim.machine.compiled import _types


class Pair(NamedTuple):
    """A named tuple, as kernels take some."""

    first: Any
    second: Any


def arguments() -> list[Any]:
    """Values of many types; arrays in the machine's byte order, as all are that kernels take."""
    found: list[Any] = [1, 1.5, True, np.uint64(3), np.int64(3), np.float64(1), np.bool_(True), (), ((),)]
    for dtype, shape in product(("u1", "i2", "i4", "u4", "i8", "u8", "f4", "f8", "?"), ((4,), (4, 4), (4, 4, 4))):
        whole = np.zeros(shape, dtype)
        frozen = whole.copy()
        frozen.flags.writeable = False
        found += [whole, frozen, whole[::2], *([np.asfortranarray(whole)] if whole.ndim > 1 else [])]
    return [*found, Pair(found[9], 2), *((a, b) for a, b in zip(found[:20], found[7:27], strict=True))]


def test_fingerprints_tell_types_apart() -> None:
    fingerprint = stored.fingerprint()
    types: dict[bytes, str] = {}
    for value in arguments():
        assert types.setdefault(fingerprint((value, 5)), _types((value, 5))) == _types((value, 5))
    again = {fingerprint((value, 7)) for value in arguments()}
    assert again == set(types)
    assert len({fingerprint(value) for value in ((1, (2, 3)), (1, 2, 3), ((1, 2), 3))}) == 3
