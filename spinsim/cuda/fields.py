"""Arrays that share one buffer, so that one copy fetches all of them."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np


class Fields:
    """Where arrays stand in a buffer of int64 words, in the order given, each at a whole word.

    Args:
        fields: Shape and type by name.

    Attributes:
        words: First word of each.
        sizes: Items of each.
        size: Words of the buffer.
    """

    def __init__(self, **fields: tuple[tuple[int, ...], Any]) -> None:
        self.sizes = {name: prod(shape) for name, (shape, _) in fields.items()}
        self.words, self._places, self.size = {}, {}, 0
        for name, (shape, kind) in fields.items():
            dtype = np.dtype(kind)
            self.words[name] = self.size
            self._places[name] = 8 * self.size, 8 * self.size + self.sizes[name] * dtype.itemsize, dtype, shape
            self.size += -(-self.sizes[name] * dtype.itemsize // 8)

    def split(self, words: Any) -> dict[str, Any]:
        """Views of a buffer, on the host or on the device."""
        octets = words.view(np.uint8)
        return {
            name: octets[first:end].view(dtype).reshape(shape)
            for name, (first, end, dtype, shape) in self._places.items()
        }
