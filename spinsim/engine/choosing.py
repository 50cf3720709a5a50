"""Which update a model gets, and the largest runs that random counters serve."""

from __future__ import annotations

import numpy as np

from spinsim import rng
from spinsim.engine.packed.classes import MAX_DEGREE
from spinsim.engine.site_packed.plan import is_site_packed
from spinsim.errors import InputError
from spinsim.model.ising import Ising
from spinsim.packing import LANES, Packing, block_count


def choose_packing(model: Ising) -> Packing:
    """Packed for couplings of one magnitude and a uniform field, else unpacked.

    Site-packed where the lattice allows it, whatever the number of replicas; else replica-packed, up to degree 31.
    """
    if is_site_packed(model):
        return Packing.SITE
    if model.magnitude is None or model.uniform_field is None or int(model.graph.degrees().max()) > MAX_DEGREE:
        return Packing.UNPACKED
    return Packing.REPLICA


def check_run(model: Ising, replicas: int, sweeps: int, colours: int) -> None:
    """Refuse replica numbers and lengths that the random counters cannot serve."""
    if not isinstance(replicas, int | np.integer) or replicas < 1:
        raise InputError(f"{replicas} replicas cannot be simulated: give a whole number, at least 1")
    samples, half_sweeps = model.samples, sweeps * colours
    if is_site_packed(model):
        groups, name = model.sites // LANES, "replicas of a site-packed lattice"
        rng.check_budget(groups=groups, samples=samples, blocks=replicas, half_sweeps=half_sweeps, block_name=name)
    else:
        blocks = block_count(replicas)
        rng.check_budget(groups=model.sites, samples=samples, blocks=blocks, half_sweeps=half_sweeps)
