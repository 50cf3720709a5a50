"""Sums from which the local susceptibility of each site follows: its response to a field along z at that site alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from spinsim.engine import Engine
from spinsim.errors import InputError
from spinsim.machine.memory import require
from spinsim.sampling import TemperFrame
from spinsim.store.contents import Series

LOCAL: Final = "local"
"""The group of the sums."""
LOCAL_SUMS: Final = {name: f"{LOCAL}/{name}" for name in ("local_squares", "local_measurements")}
"""Paths of the sums, by the names under which checkpoints and results hold them."""
_COPIES: Final = 4  # in memory: the sums, what a measurement adds and a checkpoint under way


def local_series(axis: str) -> tuple[Series, ...]:
    """Returns the datasets of the sums along a ladder of this name."""
    squares = "sum over measurements of (sum over slices of a site's spin)^2"
    return (
        Series("local_squares", ("sample", "copy", axis, "site"), np.int64, squares, "1", LOCAL),
        Series("local_measurements", ("sample",), np.int64, "measurements in the sums", "1", LOCAL),
    )


class LocalSums:
    """Sums of measurements, replicas sorted by copy and point.

    Args:
        engine: Of a model of space and time, on its ladder.

    Raises:
        InputError: for a model with a field, where the sums hold the square of an average too, and where they have no
            room in memory.
    """

    def __init__(self, engine: Engine, copies: int, places: int) -> None:
        model = engine.model
        if model.fields.any():
            raise InputError(
                f"local susceptibilities of {model.name}, which is in a field, would hold the square of each spin's "
                "average: leave local_susceptibility out"
            )
        shape = model.samples, copies, places, model.sites // model.graph.slices
        require(_COPIES * 8 * int(np.prod(shape)), "sums for local susceptibilities", "take fewer samples or copies")
        self._squares, self._measurements = engine.local_squares(), np.zeros(model.samples, np.int64)

    def add(self, frame: TemperFrame) -> None:
        """Add a measurement."""
        self._squares.add(frame.spins, frame.holder)
        self._measurements += 1

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """The sums so far, by the names under which checkpoints hold them."""
        return {"local_squares": self._squares.sums(), "local_measurements": self._measurements.copy()}

    def restore(self, saved: Mapping[str, npt.NDArray[Any]]) -> None:
        """Go back to the sums of a checkpoint."""
        self._squares.set_sums(saved["local_squares"])
        self._measurements[...] = saved["local_measurements"]
