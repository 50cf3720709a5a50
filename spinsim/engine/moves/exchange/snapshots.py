"""What a snapshot of an engine holds: arrays of fixed shapes, the same on every device."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from spinsim.engine.moves.exchange.ladder import Exchange


def snapshot_of(
    spins: npt.NDArray[np.uint64], half_sweep: int, round_: int, exchange: Exchange | None
) -> dict[str, npt.NDArray[np.generic]]:
    """What an engine saves: packed spins, counters and, with a ladder, the state of the exchange."""
    saved: dict[str, npt.NDArray[np.generic]] = {"spins": spins, "half_sweep": np.array(half_sweep, np.int64)}
    if exchange is None:
        return saved
    return saved | {"round": np.array(round_, np.int64)} | exchange.copied()._asdict()


def exchange_of(saved: Mapping[str, npt.NDArray[Any]]) -> Exchange:
    """The state of the exchange that was saved."""
    return Exchange(*(np.array(saved[name]) for name in Exchange._fields))
