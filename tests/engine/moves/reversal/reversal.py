"""A toy move: a random row of a square lattice is reversed, with Metropolis acceptance."""

from __future__ import annotations

import numpy as np

import spinsim as ss


class RowReversal:
    """Mirrors the sites of one row of each replica, which is its own inverse."""

    name = "row-reversal"

    def apply(self, batch: ss.Batch) -> None:
        """Propose the mirrored row and accept it with probability min(1, exp(-beta dE))."""
        lattice = batch.model.lattice
        assert lattice is not None
        width, height = lattice.shape
        rows = batch.spins.reshape(*batch.spins.shape[:2], height, width)
        choice, uniform = np.moveaxis(batch.uniform(2), -1, 0)
        row = (choice % np.uint64(height)).astype(np.int64)[..., None, None]
        proposed = rows.copy()
        np.put_along_axis(proposed, row, np.take_along_axis(rows, row, 2)[..., ::-1], 2)
        proposed = proposed.reshape(batch.spins.shape)
        energy, other = (batch.model.energy(one.transpose(0, 2, 1)) for one in (batch.spins, proposed))
        accepted = uniform * 2.0**-64 < np.exp(-batch.beta * (other - energy))
        batch.spins[accepted] = proposed[accepted]
