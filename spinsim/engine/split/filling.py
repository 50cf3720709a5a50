"""How many replicas a run has that is not told: as many as fill its GPUs."""

from __future__ import annotations

from math import ceil
from typing import Final

from spinsim.cuda.device import multiprocessors
from spinsim.engine.choosing import choose
from spinsim.engine.devices import gpu_numbers
from spinsim.engine.split.shares import number_of_devices
from spinsim.engine.update import Outline

USUAL: Final = 128
"""Replicas of each sample of a run on a CPU, and the least on a GPU: a word of the packed updates has as many lanes."""
BYTES: Final = 2**28
"""What the replicas that fill one GPU may write."""


def replicas_that_fill(outline: Outline, device: str, bytes_a_replica: int) -> int:
    """Replicas of each sample that keep all GPUs busy, at least ``USUAL``; ``USUAL`` on a CPU.

    A multiprocessor is busy as the update of the model says (``Update.busy``): with so many spins, in whole groups of
    replicas where it has several of them, so that none waits for others; of lattices that multiprocessors share it has
    up to twice as many spins, as these wait for each other. Samples share the groups. The answer depends on the kind of
    the GPUs and not on what else runs there: the spins take 2 MiB of a multiprocessor's share of the memory at most.

    Args:
        outline: Of the model.
        device: As ``resolve_device`` returns it.
        bytes_a_replica: That a run writes of each replica of a sample.
    """
    if device == "cpu":
        return USUAL
    gpus, busy = number_of_devices(device), choose(outline).busy
    of_each = min(busy.most, busy.spins / (busy.group * outline.sites))
    processors = gpus * multiprocessors(gpu_numbers(device)[0])
    groups = int(of_each) * processors if of_each >= 1 else ceil(min(1, 2 * of_each) * processors)
    room = gpus * BYTES // (outline.samples * bytes_a_replica * busy.group)
    return max(USUAL, busy.group * min(ceil(groups / outline.samples), room))
