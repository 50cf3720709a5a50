"""Settings that the tables of Monte Carlo jobs have in common."""

from __future__ import annotations

from typing import Any

from spinsim.settings.setting import setting


def start() -> Any:
    """The initial spins; configurations that are given in Python stand there by their digest."""
    return setting("random", "Initial spins", choices=("random", "up"), besides="sha256:")


def zero_acceptance() -> Any:
    """How often a flip that costs nothing is accepted."""
    return setting(1 - 2.0**-6, "Acceptance of flips that cost nothing", shown="1 - 2^-6", above=0, high=1)


def own_measure() -> Any:
    """The setting that names observables of a user's own."""
    return setting(
        None,
        "Functions of your own that measure, module:function, several with commas between them: each takes a batch of "
        "spins and returns a number or an array for each configuration, under its own name",
        before=None,
    )
