"""Counting again what a run has measured, from the configurations that it has saved."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from spinsim.errors import InputError
from spinsim.result import Result
from spinsim.saved import Configurations, configurations


def saved_of(result: Result) -> tuple[Configurations, npt.NDArray[np.int64]]:
    """Returns the configurations of a run and the rows of its series at which they were saved.

    Raises:
        InputError: where there are none.
    """
    found = configurations(result)
    if not len(found):
        raise InputError(f"the run has not come to its first saved configurations, at every {found.every} steps: go on")
    return found, (np.arange(found.shape[0]) + 1) * found.every - 1
