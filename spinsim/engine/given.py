"""Configurations in host memory, set in any engine: a user's initial ones, or the result of a move.

A user's configurations are checked, and identified by a digest.
"""

from __future__ import annotations

import hashlib
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from spinsim import packing
from spinsim.engine.moves.exchange import Exchange, snapshot_of
from spinsim.engine.moves.move import Batch, Moment, Move
from spinsim.engine.protocols import Engine
from spinsim.errors import InputError, WrongTypeError
from spinsim.machine.memory import require
from spinsim.model.ising import Ising
from spinsim.packing import Packing

GIVEN: Final = "sha256:"  # start of a run with given configurations: this prefix and their digest


def name_of(spins: npt.NDArray[np.int8]) -> str:
    return GIVEN + hashlib.sha256(f"{spins.shape}".encode() + np.ascontiguousarray(spins).data).hexdigest()


def as_spins(start: npt.ArrayLike, model: Ising, replicas: int | None, name: str = "start") -> npt.NDArray[np.int8]:
    """Convert given configurations to ``int8`` (1 or samples, 1 or replicas, sites).

    Args:
        start: +1 or -1, shape (sites,), (samples, sites) or (samples, replicas, sites).
        replicas: Replicas per sample; None if not known yet.
        name: Argument name for messages.

    Raises:
        InputError: for other shapes or other values.
    """
    try:
        given: npt.NDArray[Any] = np.asarray(start)
        numbers = given.dtype.kind in "iuf"
    except ValueError:  # lists of unequal lengths
        numbers = False
    if not numbers:
        named = "'random', 'up' or " if name == "start" else ""
        raise WrongTypeError(f"{name} of type {type(start).__name__} holds no spins: give {named}an array of +1, -1")
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


def set_spins(
    engine: Engine, spins: npt.NDArray[np.int8], exchange: Exchange | None = None, half_sweep: int = 0
) -> None:
    """Set all configurations of an engine, +1 and -1, (1 or samples, 1 or replicas, sites).

    ``exchange`` is the new exchange state of an engine that is on a ladder. Random numbers continue as after
    ``half_sweep`` half-sweeps.
    """
    every = np.broadcast_to(spins, (engine.model.samples, engine.replicas, engine.model.sites))
    words = np.concatenate([_packed(engine, of_sample[None]) for of_sample in every])
    engine.restore(snapshot_of(words, half_sweep, 0, exchange))


def apply_in_host_memory(engine: Engine, move: Move, moment: Moment, first_sample: int = 0) -> None:
    """Apply a move to all replicas of an engine; its ladder and its random numbers continue unchanged.

    Spins on GPUs, in other processes and in slabs pass through this process's memory.
    """
    model = engine.model
    shape = model.samples, engine.replicas, model.sites
    require(4.0 * np.prod(shape, dtype=np.float64), f"the spins that move {move.name} changes")
    saved = engine.snapshot()
    place = np.asarray(saved["place"], np.int32) if np.ndim(moment.beta) else np.zeros(shape[:2], np.int32)
    spins = _unpacked(engine, saved["spins"])
    for one in moment.each:
        move.apply(Batch(spins, model, place, one, first_sample))
    if not (np.abs(spins) == 1).all():
        raise InputError(f"move {move.name} leaves other values than +1 and -1 in batch.spins")
    engine.restore({**saved, "spins": _packed(engine, spins)})


def _packed(engine: Engine, spins: npt.NDArray[np.int8]) -> npt.NDArray[np.uint64]:
    """Words of an engine's snapshot, from configurations (samples, replicas, sites)."""
    if engine.packing is not Packing.SITE:
        return packing.pack(np.ascontiguousarray(spins.transpose(0, 2, 1)))
    assert engine.model.lattice is not None  # noqa: S101  (site-packed models have one)
    shape = engine.model.lattice.shape  # lattices are large: packing one by one saves memory
    return np.array([[packing.pack_sites(one, shape) for one in of_sample] for of_sample in spins])


def _unpacked(engine: Engine, words: npt.NDArray[Any]) -> npt.NDArray[np.int8]:
    if engine.packing is not Packing.SITE:
        return np.ascontiguousarray(packing.unpack(words, engine.replicas).transpose(0, 2, 1))
    assert engine.model.lattice is not None  # noqa: S101  (site-packed models have one)
    return packing.unpack_sites(words, engine.model.lattice.shape)
