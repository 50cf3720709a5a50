"""Several devices in this process, each of which is the CPU, and what their runs must have in common."""

from __future__ import annotations

from typing import Final

import numpy as np
import pytest

from spinsim.engine.split import shares
from spinsim.parallel.group import Seat
from spinsim.parallel.session import Here, InThread

OWN: Final = ("command", "config", "devices", "history")
"""Attributes in which files of several devices may differ from those of one."""

OF_FEW_SAMPLES: Final = {
    "anneal": "anneal --size 6 --couplings pm-j --replicas 300 --steps 4 --sweeps 2 --save-configurations 2",
    "anneal-population": "anneal --size 6 --couplings pm-j --replicas 300 --populations 2 --steps 4 --sweeps 2",
    "anneal-sites": "anneal --size 256x4 --couplings pm-j --replicas 3 --steps 4 --sweeps 2",
    "anneal-field": "anneal --size 4 --couplings gaussian --samples 2 --replicas 300 --fields 1:0:3 --steps 3 "
    "--sweeps 2",
    "anneal-quantum": "anneal --quantum --size 4 --couplings pm-j --slices 8 --replicas 300 --steps 3 "
    "--sweeps 2",
    "temper": "temper --size 4 --couplings pm-j --samples 2 --temperatures 0.8:2.5:65g --replicas 4 --thermalize 10 "
    "--sweeps 40 --save-configurations 2",
    "temper-sums": "temper --size 4 --couplings pm-j --samples 2 --temperatures 0.8:2.5:65g --replicas 4 "
    "--thermalize 10 --sweeps 40 --measure-every 1 --series none",
    "temper-sites": "temper --size 256x2 --couplings pm-j --temperatures 2:3:3 --thermalize 4 "
    "--sweeps 20",
    "quantum": "quantum --local-susceptibility --size 4 --couplings pm-j --k 0.25:0.31:66 --slices 8 "
    "--thermalize 10 --sweeps 20 --replicas 2",
}  # fmt: skip
"""Commands whose replicas are shared out, in more than one block."""


def on_cpus(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    """Give this process so many devices, each of which is the CPU."""
    places = [Here(), *(InThread() for _ in range(count - 1))]
    monkeypatch.setattr(shares, "seats", lambda device: [Seat(place) for place in places])


def on_several(monkeypatch: pytest.MonkeyPatch, device: str, count: int) -> None:
    """Give this process so many devices of a kind, each of which is the CPU or the only GPU."""
    gpu = None if device == "cpu" else 0
    places = [Here(), *(InThread() for _ in range(count - 1))]
    monkeypatch.setattr(shares, "seats", lambda device: [Seat(place, gpu=gpu) for place in places])
    monkeypatch.setattr(shares, "SHORTEST_CALL", 0)


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
