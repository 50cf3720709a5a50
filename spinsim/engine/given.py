"""Initial configurations that are given: checked, told apart by a digest, and put into an engine of any kind."""

from __future__ import annotations

import hashlib
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from spinsim.engine.choosing import update_of
from spinsim.engine.moves.exchange.ladder import Exchange, snapshot_of
from spinsim.engine.protocols import Engine
from spinsim.errors import InputError
from spinsim.model.ising import Ising

GIVEN: Final = "sha256:"  # how the start of a run is named whose configurations were given: this and their digest


def name_of(spins: npt.NDArray[np.int8]) -> str:
    """Words that stand for given configurations in the configuration of a run."""
    return GIVEN + hashlib.sha256(f"{spins.shape}".encode() + np.ascontiguousarray(spins).data).hexdigest()


def as_spins(start: npt.ArrayLike, model: Ising, replicas: int | None, name: str = "start") -> npt.NDArray[np.int8]:
    """Given configurations as ``int8`` (1 or samples, 1 or replicas, sites).

    Args:
        start: +1 or -1, shape (sites,), (samples, sites) or (samples, replicas, sites).
        replicas: Of each sample; None where that is not known yet.
        name: Of the argument, for messages.

    Raises:
        InputError: for other shapes and other values.
    """
    try:
        given: npt.NDArray[Any] = np.asarray(start)
        numbers = given.dtype.kind in "iuf"
    except ValueError:  # lists of unequal lengths
        numbers = False
    if not numbers:
        named = "'random', 'up' or " if name == "start" else ""
        raise InputError(f"{name} of type {type(start).__name__} holds no spins: give {named}an array of +1, -1")
    shape = (1, 1, 1, *given.shape)[-max(3, given.ndim) :]
    if given.ndim == 2:
        shape = (given.shape[0], 1, given.shape[1])
    fits = (shape[0] in (1, model.samples)) and (shape[1] == 1 or replicas in (None, shape[1]))
    if given.ndim not in (1, 2, 3) or shape[2] != model.sites or not fits:
        sizes = f"sites = {model.sites}, samples = {model.samples}" + (f", replicas = {replicas}" if replicas else "")
        shapes = "(sites,), (samples, sites) or (samples, replicas, sites)"
        raise InputError(f"{name} has shape {given.shape}: give {shapes} with {sizes}")
    wrong = given[(given != 1) & (given != -1)]
    if wrong.size:
        raise InputError(f"{name} holds {wrong[0]}: every spin must be +1 or -1")
    return given.astype(np.int8).reshape(shape)


def begin_with(engine: Engine, spins: npt.NDArray[np.int8]) -> None:
    """Set the configurations of an engine that has done nothing yet, given as ``as_spins`` makes them."""
    if spins.shape[1] not in (1, engine.replicas):
        raise InputError(
            f"start has {spins.shape[1]} replicas of each sample but the run has {engine.replicas}: give as many or one"
        )
    set_spins(engine, spins)


def set_spins(
    engine: Engine, spins: npt.NDArray[np.int8], exchange: Exchange | None = None, half_sweep: int = 0
) -> None:
    """Set all configurations of an engine.

    Args:
        spins: +1 and -1, (1 or samples, 1 or replicas, sites).
        exchange: State of the exchange that it gets, where it is on a ladder.
        half_sweep: How many half-sweeps it counts then as done, by which random numbers go on.
    """
    model, update = engine.model, update_of(engine.model)
    every = (engine.replicas, model.sites)
    words = [update.pack(model, np.broadcast_to(spins[k % len(spins)], every)) for k in range(model.samples)]
    engine.restore(snapshot_of(np.stack(words), half_sweep, 0, exchange))
