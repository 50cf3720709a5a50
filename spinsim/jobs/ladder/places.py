"""Places of a ladder: temperatures, or points of a model of space and time (``model.trotter.Points``)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np
import numpy.typing as npt

from spinsim.model.trotter import Points

Floats = npt.NDArray[np.float64]

_NONE: Final = np.empty(0)


@dataclass(frozen=True)
class Temperatures:
    """A ladder of temperatures, with what ``Points`` has.

    Attributes:
        values: From the lowest to the highest, in the unit of the couplings.
    """

    values: Floats

    axis: ClassVar[str] = "temperature"
    slices: ClassVar[int] = 1
    is_general: ClassVar[bool] = False
    gamma: ClassVar[Floats] = _NONE
    k_time: ClassVar[Floats] = _NONE

    def __len__(self) -> int:
        return len(self.values)

    @property
    def couplings(self) -> Floats:
        """Inverse temperatures."""
        return np.asarray(1.0 / self.values)


Places = Temperatures | Points
"""A ladder of either kind."""
