"""Settings of the jobs that may search for low states until a target is met or the time is up."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from spinsim.errors import InputError, argument
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


def check_limited(target: str | None, limit: float | None, changes: Mapping[str, Any], path: Path) -> None:
    """Refuse to change the time limit of a run that has none.

    Raises:
        InputError: for it.
    """
    if limit is None and "time_limit" in changes:
        what = "a run that no time ends" if target is None else "a search that goes on until its target is met"
        raise InputError(f"{path} holds {what}: leave {argument('time_limit')} out")
