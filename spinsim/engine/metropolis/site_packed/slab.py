"""A slab of a site-packed lattice: some of its layers, the rest of which others have."""

from __future__ import annotations

from typing import NamedTuple

from spinsim.mesh.group import Group


class Slab(NamedTuple):
    """What an engine has of a lattice.

    Attributes:
        layers: Rows or, in three dimensions, planes, an even number from an even one on.
        group: Who has the slabs, in their order; the last one is before the first.
    """

    layers: range
    group: Group
