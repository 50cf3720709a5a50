"""Which rounds of replica-packed lattices a GPU makes many of in one launch."""

from __future__ import annotations

from typing import Any

from spinsim.engine.moves.exchange.cuda_rounds import LaunchedRounds
from spinsim.engine.moves.metropolis.packed.kinds import Kind
from spinsim.engine.moves.metropolis.replica_packed.cuda_lattices import ReplicaLattices
from spinsim.engine.moves.metropolis.replica_packed.cuda_tables import LadderTables
from spinsim.engine.moves.metropolis.replica_packed.tempering.cuda_global import GlobalRounds, suits_global_rounds
from spinsim.engine.moves.metropolis.replica_packed.tempering.cuda_shared import SharedRounds, fits_with_ladder


def launched_rounds(
    kinds: dict[int, Kind], lattices: ReplicaLattices, tables: LadderTables, device: int, **given: Any
) -> LaunchedRounds | None:
    """Rounds of lattices in shared memory, or in global memory; None where they are made one by one.

    Args:
        kinds: The special case of each number of slots.
        lattices: The spins.
        tables: As for ``LaunchedRounds``.
        device: Number of the device.
        given: What else it takes.
    """
    if fits_with_ladder(lattices, device):
        return SharedRounds(kinds, lattices, tables, **given)
    if suits_global_rounds(lattices, kinds):
        return GlobalRounds(kinds, lattices, tables, **given)
    return None
