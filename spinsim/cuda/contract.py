"""What host and device must agree on is stated once, in Python; kernel sources say where, and are filled in from there.

In a source ``HOST(rng.ROUNDS)`` stands for the number ``spinsim.rng.ROUNDS``. ``CHECK_LAYOUT(Key, cuda.records.KEY);``
asserts that the C++ struct has the members, their sizes and offsets and the size of that NumPy type.
"""

from __future__ import annotations

import re
from pkgutil import resolve_name
from typing import Any, Final

import numpy as np

_NUMBER: Final = re.compile(r"\bHOST\(([\w.]+)\)")
_LAYOUT: Final = re.compile(r"\bCHECK_LAYOUT\(([\w<>, ]+), ([\w.]+)\);")


def stated(name: str) -> Any:
    """What a dotted name below ``spinsim`` stands for, such as ``rng.Stream.UPDATE``.

    Raises:
        AttributeError: where there is no such name.
    """
    return resolve_name(f"spinsim.{name}")


def _number(match: re.Match[str]) -> str:
    return str(int(stated(match[1])))


def _assertion(match: re.Match[str]) -> str:
    struct, name = match.groups()
    kind: np.dtype[np.void] = stated(name)
    members = [(member, how[0].itemsize, how[1]) for member, how in (kind.fields or {}).items()]
    sizes = [f"sizeof({struct}) == {kind.itemsize}", *(f"sizeof({struct}::{m}) == {size}" for m, size, _ in members)]
    offsets = [f"__builtin_offsetof({struct}, {m}) == {offset}" for m, _, offset in members]
    said = f'"{struct} is not laid out as {name}"'
    # Older versions of NVRTC do not know offsets; g++ compiles the same source for the emulation and does.
    return "\n".join([
        f"static_assert({' && '.join(sizes)}, {said});",
        "#ifndef __CUDACC_RTC__",
        f"static_assert({' && '.join(offsets)}, {said});",
        "#endif",
    ])  # fmt: skip


def fill_in(source: str) -> str:
    """A kernel source with numbers and assertions in the place of the names that it gives."""
    return _LAYOUT.sub(_assertion, _NUMBER.sub(_number, source))
