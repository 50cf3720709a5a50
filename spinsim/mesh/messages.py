"""What ranks send to each other as bytes: data whole, objects that stay at their rank as numbers."""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np


class _Pickler(pickle.Pickler):
    def __init__(self, file: io.BytesIO, number_of: Callable[[Any], int | None]) -> None:
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self._number_of = number_of

    def persistent_id(self, obj: Any) -> int | None:
        return self._number_of(obj)

    def reducer_override(self, obj: Any) -> Any:
        """An array that repeats one number, such as the couplings of a ferromagnet, arrives as such."""
        if type(obj) is not np.ndarray or obj.size < 2 or 0 not in obj.strides:
            return NotImplemented
        distinct = obj[tuple(slice(1) if stride == 0 else slice(None) for stride in obj.strides)]
        return np.broadcast_to, (distinct.copy(), obj.shape)


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, of_number: Callable[[int], Any]) -> None:
        super().__init__(file)
        self._of_number = of_number

    def persistent_load(self, pid: int) -> Any:
        return self._of_number(pid)


def as_bytes(content: Any, number_of: Callable[[Any], int | None]) -> bytes:
    """A message; ``number_of`` gives numbers to objects that stay where they are, None to all others."""
    file = io.BytesIO()
    _Pickler(file, number_of).dump(content)
    return file.getvalue()


def from_bytes(message: bytes, of_number: Callable[[int], Any]) -> Any:
    """The content of a message from another rank of the same run; ``of_number`` stands for what has a number."""
    return _Unpickler(io.BytesIO(message), of_number).load()
