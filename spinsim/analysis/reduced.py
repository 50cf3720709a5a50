"""A run whose measurements were added up as they were made: the sums, from which its statistics follow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from spinsim.engine.measuring.reduction import Reduced


@dataclass(frozen=True)
class ReducedRun:
    """Sums over the measurements of a run.

    Attributes:
        reduced: What was added up.
        arrays: The sums by name, with the shapes of ``Reduced.arrays``.
        measure_every: Sweeps between measurements.
        stride: Measurements for each row of the series that were kept; 0 where none were.
    """

    reduced: Reduced
    arrays: Mapping[str, npt.NDArray[Any]]
    measure_every: int
    stride: int

    @property
    def measurements(self) -> int:
        """Measurements in the sums."""
        return int(self.arrays["measurements"][0])
