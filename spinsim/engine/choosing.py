"""The choice of an update for a model: the one place that knows all of them."""

from __future__ import annotations

from typing import Final

import numpy as np

from spinsim import rng
from spinsim.engine.moves.metropolis.anisotropic.update import UPDATE as ANISOTROPIC
from spinsim.engine.moves.metropolis.dense import update as dense
from spinsim.engine.moves.metropolis.replica_packed.update import UPDATE as REPLICA_PACKED
from spinsim.engine.moves.metropolis.site_packed.update import UPDATE as SITE_PACKED
from spinsim.engine.moves.metropolis.unpacked.update import UPDATE as UNPACKED
from spinsim.engine.update import OfModel, Outline, Update
from spinsim.errors import InputError
from spinsim.machine.memory import require
from spinsim.model.ising import Ising
from spinsim.packing import Packing

UPDATES: Final[tuple[Update, ...]] = (ANISOTROPIC, SITE_PACKED, dense.UPDATE, REPLICA_PACKED, dense.ON_CPU, UNPACKED)
"""All updates, the fastest first; the last one can do everything. The first is for models that state terms alone."""


def choose(outline: Outline) -> Update:
    """The first update that suits a model, whatever the number of replicas and the device."""
    return next(update for update in UPDATES if update.suits(outline))


def update_of(model: Ising) -> Update:
    return model.once(_chosen)


def _chosen(model: Ising) -> Update:
    return choose(OfModel(model))


def choose_packing(model: Ising) -> Packing:
    """Layout of the spins of a model: a name for its update."""
    return update_of(model).packing


def check_memory(outline: Outline, replicas: int, update: Update | None = None) -> None:
    """Refuse a run that cannot fit the memory of the host, also before its model is built.

    Raises:
        InputError: naming the need and the room.
    """
    run = f"a run of {outline.sites} sites x {outline.samples} samples x {replicas} replicas"
    require((update or choose(outline)).needed_bytes(outline, replicas), run)


def check_run(model: Ising, replicas: int, sweeps: int, colours: int) -> None:
    """Refuse replica numbers and lengths that the random counters cannot serve.

    Raises:
        InputError: for no whole number of replicas, and naming the count that is too large.
    """
    if not isinstance(replicas, int | np.integer) or replicas < 1:
        raise InputError(f"{replicas} replicas cannot be simulated: give a whole number, at least 1")
    outline = OfModel(model)
    groups, blocks, block_name = update_of(model).counters(outline, replicas)
    rng.check_budget(
        groups=groups, samples=model.samples, blocks=blocks, half_sweeps=sweeps * colours, block_name=block_name
    )
