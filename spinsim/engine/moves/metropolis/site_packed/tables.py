"""Acceptance tables of the site-packed update: one threshold serves all sites of a replica."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from spinsim.acceptance import acceptance
from spinsim.engine.moves.metropolis.packed.classes import PLANES, Classes


@dataclass(frozen=True)
class SiteTables:
    """Thresholds of every replica, the same in all lanes, of each sample or, of length 1, of all; sites of even degree.

    Attributes:
        always: ``always[sample, replica, class]``, uint32: all bits set where a flip needs no random number, else none.
        planes: ``planes[sample, replica, plane, class]``, uint32: bit ``63 - plane`` of the threshold in every bit.
        thresholds: ``thresholds[sample, replica, class]``, uint64: the thresholds of acceptance.py.
    """

    always: npt.NDArray[np.uint32]
    planes: npt.NDArray[np.uint32]
    thresholds: npt.NDArray[np.uint64]


def build_site_tables(classes: Classes, beta: npt.NDArray[np.float64], zero_acceptance: float) -> SiteTables:
    """The tables for ``beta`` (1 or samples, replicas): inverse temperature times the quantum of each replica."""
    always, threshold = acceptance(classes.costs[0], beta[..., None], zero_acceptance)
    shift = np.arange(63, 63 - PLANES, -1, dtype=np.uint64)[:, None]
    bits = (threshold[..., None, :] >> shift & np.uint64(1)).astype(np.uint32)
    full = np.uint32(0xFFFFFFFF)
    return SiteTables(always.astype(np.uint32) * full, bits * full, threshold)
