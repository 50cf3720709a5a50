"""Kinds of arguments: different for what takes different machine code, and the same for what takes the same."""

from __future__ import annotations

from itertools import product
from typing import Any, NamedTuple

import llvmlite.binding as llvm
import numpy as np

from spinsim.machine import kinds, stored


class Pair(NamedTuple):
    """A named tuple, as kernels take some."""

    first: Any
    second: Any


def arguments() -> list[Any]:
    """Values of which no two have the same type."""
    found: list[Any] = [1, 1.5, True, np.uint64(3), np.int64(3), np.float64(1), np.bool_(True), (), ((),)]
    for dtype, shape in product(("u1", "i2", "i4", "u4", "i8", "u8", "f4", "f8", "?"), ((4,), (4, 4), (4, 4, 4))):
        whole = np.zeros(shape, dtype)
        frozen = whole.copy()
        frozen.flags.writeable = False
        found += [whole, frozen, whole[::2], *([np.asfortranarray(whole)] if whole.ndim > 1 else [])]
    found += [np.zeros(4, ">i8"), np.zeros(9, np.uint8)[1:].view(np.int64)]
    return found + [(a, b) for a, b in zip(found[:20], found[7:27], strict=True)]


def test_kinds_are_different_for_different_types_and_equal_for_equal_ones() -> None:
    kind = stored.kind_of_arguments()
    assert kind is not kinds.by_python  # these places in memory are as they should be here
    values = arguments()
    for tell in (kind, kinds.by_python):
        numbers = [tell((value, 5)) for value in values]
        assert numbers == [tell((value, 7)) for value in arguments()]
        assert len(set(numbers)) == len(values)
        assert tell((1, (2, 3))) != tell((1, 2, 3)) != tell(((1, 2), 3))
        assert tell(Pair(values[9], 2)) == tell((values[9], 3))


def test_pointers_of_both_kinds_are_written() -> None:
    """LLVM took pointers of a type before its version 15, and takes no others since."""
    assert "ptr %place" in kinds._code(15)
    assert "i8* %place" in kinds._code(14)
    llvm.parse_assembly(kinds._code(llvm.llvm_version_info[0])).verify()
