"""Several devices in this process, each of which is the CPU, and what their runs must have in common."""

from __future__ import annotations

from typing import Final

import numpy as np
import pytest

from spinsim.engine.split import shares
from spinsim.mesh.places import Here, InThread

OWN: Final = ("command", "config", "devices", "history")
"""Attributes in which files of several devices may differ from those of one."""


def on_cpus(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    """Give this process so many devices, each of which is the CPU."""
    places = [Here(), *(InThread() for _ in range(count - 1))]
    monkeypatch.setattr(shares, "_own", lambda device: [shares.Seat(place, 1) for place in places])


def same(one: object, other: object) -> None:
    """That two measurements, sums or states are equal, of equal types."""
    assert type(one) is type(other)
    if isinstance(one, dict):
        assert list(one) == list(other)
        same(tuple(one.values()), tuple(other.values()))
    elif isinstance(one, tuple):
        for a, b in zip(one, other, strict=True):
            same(a, b)
    elif isinstance(one, np.ndarray):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)
