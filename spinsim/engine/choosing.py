"""Choice of a model's update, from the one list of all updates, and of the number of replicas that fills a device."""

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
"""All updates, fastest first. The last serves every model, the first only models that assign bonds to terms."""


USUAL: Final = 128
"""Replicas per sample of a run on a CPU, and the minimum on a GPU: a packed word pair has this number of lanes."""


def choose(sizes: Sizes, replicas: int = USUAL) -> Update:
    """First update that suits a model and its replicas per sample, independent of devices and of work sharing."""
    return next(update for update in UPDATES if update.suits(sizes, replicas))


def update_of(model: Ising, replicas: int = USUAL) -> Update:
    return choose(ModelSizes(model), replicas)


def choose_packing(model: Ising, replicas: int = USUAL) -> Packing:
    """Spin layout of a model and its replicas per sample; the layout names the update."""
    return update_of(model, replicas).packing


def check_memory(sizes: Sizes, replicas: int, update: Update | None = None) -> None:
    """Refuse a run that exceeds the host's memory. The model need not be built yet."""
    run = f"a run of {sizes.sites} sites x {sizes.samples} samples x {replicas} replicas"
    require((update or choose(sizes, replicas)).needed_bytes(sizes, replicas), run)


def check_run(model: Ising, replicas: int, sweeps: int, colours: int) -> None:
    """Refuse replicas that are no whole number from 1, and counts and run lengths that exceed the random counters."""
    if not isinstance(replicas, int | np.integer) or replicas < 1:
        raise InputError(f"{replicas} replicas cannot be simulated: give a whole number, at least 1")
    sizes = ModelSizes(model)
    groups, blocks, block_name = choose(sizes, replicas).counters(sizes, replicas)
    rng.check_budget(
        groups=groups, samples=model.samples, blocks=blocks, half_sweeps=sweeps * colours, block_name=block_name
    )


FEW: Final = 16
"""Replicas of a search on a CPU that visits them one by one: with few, the right anneal length is found sooner."""
MOST_COPIES: Final = 8
"""Most copies in a search's ladder of few temperatures, because overlaps of all pairs of copies are measured."""
MULTIPROCESSORS: Final = 132
"""Multiprocessors of an H200. One or several GPUs of any type use this number, so that all give equal results."""
BYTES: Final = 2**28  # most bytes that the replicas filling a GPU may write
TOGETHER: Final = 2**23
"""Spins updated per launch in a search whose groups share multiprocessors: more groups would slow each other down."""
LOOK: Final = 64  # bytes per replica that a search copies to the host at each look
ROOM: Final = 2**32  # most bytes of a search's groups on a CPU
SEARCHING: Final = 2**13
"""Most replicas of all samples in a search: more do not meet a target sooner, and the host looks at each of them."""


def replicas_that_fill(sizes: Sizes, device: str, bytes_a_replica: int, searches: bool = False) -> int:
    """Replicas per sample that keep a GPU busy, at least ``USUAL``; on a CPU ``USUAL``, or ``FEW`` for some searches.

    A multiprocessor that holds whole lattices takes several groups of replicas, one after the other or side by side
    (``Update.busy``). Multiprocessors that share a larger lattice have up to twice ``Busy.spins`` spins each. Samples
    share the groups.

    Args:
        bytes_a_replica: Bytes that a run writes for each replica of a sample.
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
    """Copies in a search group: enough to fill a word, but one on a CPU that visits replicas one by one."""
    if device == "cpu" and choose(sizes).one_by_one:
        return 1
    return max(1, min(MOST_COPIES, USUAL // temperatures))


def groups_of_search(sizes: Sizes, device: str, replicas: int, threads: int) -> int:
    """Groups of copies that search side by side: enough to fill a GPU, or on a CPU one for each thread.

    A multiprocessor holds one group, because more would keep the host waiting between looks. Groups of larger problems
    share multiprocessors, and many groups would each make few sweeps.

    Args:
        replicas: Replicas of each sample in a group.
        threads: CPU threads, of all ranks together.
    """
    if device != "cpu":
        busy = choose(sizes, replicas).busy
        fits_one = busy.spins >= busy.group * sizes.sites
        of_a_launch = sizes.sites * replicas / max(1, sizes.largest_degree)  # roughly the spins of one colour
        together = MULTIPROCESSORS if fits_one else ceil(TOGETHER / of_a_launch)
        return max(1, min(MULTIPROCESSORS, together, replicas_that_fill(sizes, device, LOOK) // replicas))
    need = choose(sizes, replicas).needed_bytes(sizes, replicas)
    return max(1, min(ceil(threads / sizes.samples), ROOM // need))
