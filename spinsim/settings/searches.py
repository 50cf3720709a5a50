"""Settings of the jobs that may search for low states until a target is met or the time is up."""

from __future__ import annotations

from typing import Any

from spinsim.settings.setting import GRID, setting


def target() -> Any:
    """The values that end a search."""
    return setting(
        None,
        "End when this value is met, one or one for each sample: the cut of a MaxCut instance, else the energy, with "
        "the constant of the problem; until then the search goes on",
        numbers=GRID,
        before=None,
    )


def solution() -> Any:
    """A file for the lowest states."""
    return setting(
        None,
        "File for the lowest states by the labels of the problem, .txt or .json",
        is_path=True,
        physics=False,
        before=None,
    )


def time_limit() -> Any:
    """The time that ends a search."""
    return setting(
        None,
        "End after so long, without the compiling of kernels; until then the search goes on",
        unit="seconds",
        low=1e-3,
        before=None,
    )
