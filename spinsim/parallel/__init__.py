"""Processes and devices that share the work of one run: MPI ranks times their devices.

One process, rank 0, carries out the command: it alone reads and writes files, prints, and decides when to save and to
stop. All others *serve*: objects such as engines live there, and rank 0 has functions carried out on them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final, NamedTuple


class Launched(NamedTuple):
    """A process among those that were started together, as the environment shows before MPI itself is touched."""

    rank: int  # number of this process
    ranks: int  # number of processes
    by: str  # program that started them, in words


_VARIABLES: Final = (
    ("Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("MPICH", "PMI_RANK", "PMI_SIZE"),
    ("Slurm", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),
)
"""Variables of each launcher: the rank and the number of ranks; Intel MPI has the variables of MPICH.

A Slurm batch script that srun did not start belongs to no step, so that it has no number of tasks."""


def launched(environment: Mapping[str, str] = os.environ) -> Launched | None:
    """Rank and number of the processes that were started together; None where this process is alone."""
    for by, rank, ranks in _VARIABLES:
        if rank in environment and ranks in environment:
            process = Launched(int(environment[rank]), int(environment[ranks]), by)
            return process if process.ranks > 1 else None
    return None
