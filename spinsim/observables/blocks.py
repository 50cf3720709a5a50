"""Magnetisations and overlaps of blocks of a lattice at every scale, as functions for ``measure``.

``--measure spinsim.observables.blocks:block_magnetization`` makes a run measure the first of them; in Python
``measure={"m_b": block_magnetization, "q_b": block_overlap}``. Blocks of b x b x ... sites, b = 1, 2, 4, ..., tile the
lattice from its first site on, as long as b divides all sides; each scale is made from the sums of the one before.
Averages <m_b^2> and <m_b^4> over blocks give Binder's cumulant 1 - <m_b^4> / (3 <m_b^2>^2) of every scale from one run.

Source: K. Binder, Z. Phys. B 43, 119 (1981).
"""

from __future__ import annotations

from math import gcd
from typing import Any

from spinsim.observables.batch import Batch
from spinsim.observables.distances import overlaps_of_copies


def block_magnetization(batch: Batch) -> Any:
    """Second and fourth powers of block magnetisations per site, averaged over the blocks of a configuration.

    Returns ``float64`` (..., scales, 2): scale k has blocks of 2^k sites a side, the last axis the powers 2 and 4. The
    model must have a lattice of one site a cell.
    """
    return _by_scale(batch, batch.grid)


def block_overlap(batch: Batch) -> Any:
    """Second and fourth powers of block overlaps likewise, with q(x) = s(x) s'(x) of two copies.

    One copy alone raises InputError. Each copy (or replica, axis 1) is paired with the next one and the last with the
    first, as in ``distances.overlap_correlation``.
    """
    return _by_scale(batch, overlaps_of_copies(batch.grid, batch.xp, "block_overlap needs"))


def _by_scale(batch: Batch, values: Any) -> Any:
    """Averages over blocks of the powers of block sums per site, for values (..., sides) of +1 and -1."""
    lattice, xp = batch.model.embedding, batch.xp
    assert lattice is not None  # noqa: S101  (it has a grid)
    dimension = lattice.dimension
    sites = tuple(range(-dimension, 0))
    common = gcd(*lattice.shape)
    scales = (common & -common).bit_length()  # 1, 2, 4, ..., the largest power of two in all sides
    powers = xp.empty((*values.shape[:-dimension], scales, 2))
    sums = values.astype(xp.int64)
    for scale in range(scales):
        if scale:
            for axis in sites:
                first = xp.moveaxis(sums, axis, 0)
                sums = xp.moveaxis(first[::2] + first[1::2], 0, axis)
        squares = (sums / 2.0 ** (scale * dimension)) ** 2
        powers[..., scale, 0], powers[..., scale, 1] = squares.mean(axis=sites), (squares**2).mean(axis=sites)
    return powers
