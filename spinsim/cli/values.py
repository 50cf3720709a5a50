"""Options that take numbers: their refusals quote what was typed."""

from __future__ import annotations

from functools import partial

import typer

from spinsim.errors import InputError
from spinsim.inputs.shared import RANDOM


def whole(text: str) -> int:
    """A whole number."""
    try:
        return int(text)
    except ValueError as error:
        raise typer.BadParameter(f"{text!r} is not a whole number: give one such as 128") from error


def seed(text: str) -> int | str:
    """A whole number, or the word for a fresh one."""
    if text == RANDOM:
        return RANDOM
    try:
        return int(text)
    except ValueError as error:
        raise typer.BadParameter(f"{text!r} is not a whole number, give digits such as 7, or {RANDOM}") from error


def real(text: str) -> float:
    """A number."""
    from spinsim.inputs.checks import check_word  # loads NumPy

    try:
        found = float(text)
    except ValueError as error:
        raise typer.BadParameter(f"{text!r} is not a number: give one such as 0.5") from error
    check_word(str(text), "the number")  # a default is a number already
    return found


def check_repeats(repeats: int) -> None:
    """Refuse to time nothing."""
    if repeats < 1:
        raise InputError(f"repeats {repeats} are too few: give at least 1")


Whole = partial(typer.Option, parser=whole, metavar="INTEGER")
Seed = partial(typer.Option, parser=seed, metavar=f"INTEGER|{RANDOM}")
Real = partial(typer.Option, parser=real, metavar="FLOAT")
