"""What host and device must agree on is stated once, in Python; kernel sources say where, and are filled in from there.

In a source ``HOST(rng.ROUNDS)`` stands for the number ``spinsim.rng.ROUNDS``. ``CHECK_LAYOUT(Key, cuda.records.KEY);``
asserts that the C++ struct has the members, the offsets and the size of that NumPy type.
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
    members = [(member, offset) for member, (_, offset, *_) in (kind.fields or {}).items()]
    claims = [f"sizeof({struct}) == {kind.itemsize}"]
    claims += [f"__builtin_offsetof({struct}, {member}) == {offset}" for member, offset in members]
    return f'static_assert({" && ".join(claims)}, "{struct} is not laid out as {name}");'


def fill_in(source: str) -> str:
    """A kernel source with numbers and assertions in the place of the names that it gives."""
    return _LAYOUT.sub(_assertion, _NUMBER.sub(_number, source))
