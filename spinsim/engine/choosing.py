"""The update of a model, the one place that knows all of them, and how many replicas fill a device."""

from __future__ import annotations

from math import ceil
from typing import Final

import numpy as np

from spinsim import rng
from spinsim.engine.moves.metropolis import dense, unpacked
from spinsim.engine.moves.metropolis.replica_packed.update import ANISOTROPIC, REPLICA_PACKED
from spinsim.engine.moves.metropolis.site_packed.update import UPDATE as SITE_PACKED
from spinsim.engine.update import ModelSizes, Sizes, Update
from spinsim.errors import InputError
from spinsim.machine.memory import require
from spinsim.model.ising import Ising
from spinsim.packing import Packing

UPDATES: Final[tuple[Update, ...]] = (
    *(ANISOTROPIC, SITE_PACKED, dense.UPDATE, REPLICA_PACKED, dense.ON_CPU, unpacked.UPDATE),
)
"""All updates, the fastest first; the last one can do everything. The first is for models that state terms alone."""


USUAL: Final = 128
"""Replicas of each sample of a run on a CPU, and the least on a GPU: a word of the packed updates has as many lanes."""


def choose(sizes: Sizes, replicas: int = USUAL) -> Update:
    """The first update that suits a model and its replicas of each sample, whatever the device and who shares them."""
    return next(update for update in UPDATES if update.suits(sizes, replicas))


def update_of(model: Ising, replicas: int = USUAL) -> Update:
    return choose(ModelSizes(model), replicas)


def choose_packing(model: Ising, replicas: int = USUAL) -> Packing:
    """Layout of the spins of a model and its replicas of each sample: a name for their update."""
    return update_of(model, replicas).packing


def check_memory(sizes: Sizes, replicas: int, update: Update | None = None) -> None:
    """Refuse a run that cannot fit the memory of the host, also before its model is built.

    Raises:
        InputError: naming the need and the room.
    """
    run = f"a run of {sizes.sites} sites x {sizes.samples} samples x {replicas} replicas"
    require((update or choose(sizes, replicas)).needed_bytes(sizes, replicas), run)


def check_run(model: Ising, replicas: int, sweeps: int, colours: int) -> None:
    """Refuse replica numbers and lengths that the random counters cannot serve.

    Raises:
        InputError: for no whole number of replicas, and naming the count that is too large.
    """
    if not isinstance(replicas, int | np.integer) or replicas < 1:
        raise InputError(f"{replicas} replicas cannot be simulated: give a whole number, at least 1")
    sizes = ModelSizes(model)
    groups, blocks, block_name = choose(sizes, replicas).counters(sizes, replicas)
    rng.check_budget(
        groups=groups, samples=model.samples, blocks=blocks, half_sweeps=sweeps * colours, block_name=block_name
    )


FEW: Final = 16
"""Replicas of a search on a CPU that visits them one by one: the right length of an anneal is met sooner with few."""
MOST_COPIES: Final = 8
"""Most copies of a ladder of few temperatures in a search, as overlaps of all pairs of copies are measured."""
MULTIPROCESSORS: Final = 132
"""Multiprocessors of an H200. Other GPUs, and several, take as many replicas: a command has the same result on all."""
BYTES: Final = 2**28  # bytes that the replicas that fill a GPU may write
TOGETHER: Final = 2**23
"""Spins that a launch may update in a search whose groups have no multiprocessor each: more slow each other down."""
LOOK: Final = 64  # bytes of what a look of a search brings to the host of each replica
ROOM: Final = 2**32  # bytes that the groups of a search may take on a CPU
SEARCHING: Final = 2**13
"""The most of all samples in a search: more do not meet a target sooner, and the host looks at each of them."""


def replicas_that_fill(sizes: Sizes, device: str, bytes_a_replica: int, searches: bool = False) -> int:
    """Replicas of each sample that keep a GPU busy, at least ``USUAL``; on a CPU that, or ``FEW``.

    Where a multiprocessor has a lattice for itself it takes several groups of replicas, one after the other or side by
    side (``Update.busy``); of larger lattices, which multiprocessors share, each has up to twice ``Busy.spins``.
    Samples share the groups.

    Args:
        bytes_a_replica: That a run writes of each replica of a sample.
        searches: True if it anneals again and again until a target is met or its time is up.
    """
    if device == "cpu":
        return FEW if searches and choose(sizes).one_by_one else USUAL
    busy = choose(sizes).busy
    of_each = busy.spins / (busy.group * sizes.sites)
    groups = busy.most * MULTIPROCESSORS if of_each >= 1 else ceil(min(1, 2 * of_each) * MULTIPROCESSORS)
    if searches:
        groups = min(groups, SEARCHING // busy.group)
    room = BYTES // (sizes.samples * bytes_a_replica * busy.group)
    return max(USUAL, busy.group * min(ceil(groups / sizes.samples), room))


def copies_of_search(sizes: Sizes, device: str, temperatures: int) -> int:
    """Copies in a group of a search: as many as fill a word, one on a CPU that visits replicas one by one."""
    if device == "cpu" and choose(sizes).one_by_one:
        return 1
    return max(1, min(MOST_COPIES, USUAL // temperatures))


def groups_of_search(sizes: Sizes, device: str, replicas: int, threads: int) -> int:
    """Groups of copies that search side by side: as many as fill a GPU, on a CPU one for each thread.

    A multiprocessor holds one group, as more would keep the host waiting between looks. Groups of larger problems share
    multiprocessors, and many groups would each make few sweeps.

    Args:
        replicas: Of each sample in a group.
        threads: CPU threads, of all ranks together.
    """
    if device != "cpu":
        busy = choose(sizes, replicas).busy
        fits_one = busy.spins >= busy.group * sizes.sites
        of_a_launch = sizes.sites * replicas / max(1, sizes.largest_degree)  # about a colour
        together = MULTIPROCESSORS if fits_one else ceil(TOGETHER / of_a_launch)
        return max(1, min(MULTIPROCESSORS, together, replicas_that_fill(sizes, device, LOOK) // replicas))
    need = choose(sizes, replicas).needed_bytes(sizes, replicas)
    return max(1, min(ceil(threads / sizes.samples), ROOM // need))
