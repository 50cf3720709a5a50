"""What one device has of every vector: all of it, or the amplitudes whose highest bits are its number in a group."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from spinsim.mesh.group import Group


class Share:
    """A part of 2^-top of the amplitudes, and what is added up over all parts.

    Args:
        group: The device's group, of 2^top members; None where it has everything.

    Attributes:
        index: Of the part.
        size: How many parts there are.
        top: Bits of an amplitude's number that say whose it is, the highest ones.
    """

    def __init__(self, group: Group | None = None) -> None:
        self._group = group
        self.index, self.size = (group.index, group.size) if group else (0, 1)
        self.top = self.size.bit_length() - 1

    def sum(self, values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """The sum over all parts, with the same bits at each."""
        return self._group.sum(values) if self._group else values

    def agreed(self, *arrays: npt.NDArray[Any]) -> Sequence[npt.NDArray[Any]]:
        """The arrays of the first part, equally at all: libraries may round differently on other processors."""
        if self._group is None:
            return arrays
        mine = self.index == 0
        return [self._group.sum(array if mine else np.zeros_like(array)) for array in arrays]

    def exchange(self, give: list[tuple[Any, int]], get: list[tuple[Any, int]]) -> None:
        """As ``Group.exchange``."""
        assert self._group is not None  # noqa: S101  (it has nothing to exchange)
        self._group.exchange(give, get)
