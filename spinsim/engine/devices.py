"""The devices that a run can be asked for."""

from __future__ import annotations

from typing import Final

from spinsim.errors import InputError

DEVICES: Final = ("auto", "cpu", "cuda", "gpu")


def resolve_device(device: str) -> str:
    """``cpu`` or ``cuda``; ``gpu`` is ``cuda``, and so is ``auto`` where a GPU can be used.

    Raises:
        InputError: for an unknown device, and for ``cuda`` where there is none, saying what is missing.
    """
    if device not in DEVICES:
        raise InputError(f"device {device!r} is unknown: choose one of {', '.join(DEVICES)}")
    if device == "cpu":
        return device
    from spinsim.cuda.device import why_not

    missing = why_not()
    if missing is None:
        return "cuda"
    if device != "auto":
        raise InputError(missing)
    return "cpu"
