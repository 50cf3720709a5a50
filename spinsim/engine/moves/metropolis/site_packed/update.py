"""The site-packed update: memory, counters, engines."""

from __future__ import annotations

from typing import Final

from spinsim.engine.layouts.site_packed.signs import pack, suits
from spinsim.engine.update import Counters, InSlabs, Outline, Update, engine_of
from spinsim.model.graph import MOST_LISTED
from spinsim.packing import LANES, Packing


def needed_bytes(outline: Outline, replicas: int) -> int:
    """Memory that a run takes at most: it has no adjacency, and two signs for each bond unless couplings are equal.

    Of a lattice whose bonds are not listed lowest states are held as bits.
    """
    bonds, sites, samples = outline.bonds, outline.sites, outline.samples
    if bonds > MOST_LISTED:
        signs = 0 if outline.one_coupling else samples * bonds // 4
        return signs + samples * (sites // 2 + replicas * (3 * sites // 8 + 512))  # the state, and two copies to save
    drawn = 0 if outline.one_coupling else bonds * (8 + 8 * samples)
    return bonds * 24 + drawn + samples * (sites * 4 + replicas * (sites // 8 + 512))


def counters(outline: Outline, replicas: int) -> Counters:
    """Fields of the random counter: a group is 128 sites, and every replica is a block."""
    return Counters(outline.sites // LANES, replicas, "replicas of a site-packed lattice")


on_cpu = engine_of(f"{__package__}.cpu")
on_cuda = engine_of(f"{__package__}.cuda")

UPDATE: Final = Update(
    *(Packing.SITE, suits, needed_bytes, counters, pack, on_cpu, on_cuda),
    together=1,
    in_slabs=InSlabs(on_cpu, on_cuda),
)
