"""Fortuin-Kasteleyn moves of site-packed lattices on the CPU, where the words lie: a task for each lattice."""

from __future__ import annotations

from functools import partial
from typing import Final

import numpy as np
import numpy.typing as npt

from spinsim import rng
from spinsim.engine.cpu import CpuParts
from spinsim.engine.layouts.replica_packed.cpu_blocks import Blocks
from spinsim.engine.moves.fortuin_kasteleyn.bonds import KINDS, SEEDED, SWENDSEN_WANG, WOLFF
from spinsim.engine.moves.fortuin_kasteleyn.lattice.words import chances, check_sites, field_of, flip_lattice
from spinsim.engine.moves.metropolis.site_packed.cpu import SiteSweeper
from spinsim.engine.moves.move import FastPath, Moment
from spinsim.model.ising import Ising

PASSES: Final = 512  # of all words, in the time of which a move takes place, about


def fast_path(kind: int, model: Ising, replicas: int, first_sample: int, parts: CpuParts) -> FastPath:
    """The move of a kind of an engine's lattices where they lie."""
    blocks, sweeper, field = parts.state, parts.sweeper, field_of(model)
    assert isinstance(blocks, Blocks) and isinstance(sweeper, SiteSweeper)  # noqa: PT018, S101  (this layout's have them)
    check_sites(model)
    lattices = sweeper.lattices

    def move(moment: Moment, holder: npt.NDArray[np.int64]) -> None:
        when, key = np.uint64(KINDS * moment.time + kind), rng.split_seed(moment.seed)
        chance = chances(model, np.asarray(moment.beta))
        place = np.empty((model.samples, replicas), np.int64)
        np.put_along_axis(place, holder.reshape(model.samples, -1), np.arange(replicas)[None] % holder.shape[2], axis=1)

        def task(_: int, sample: int, replica: int) -> None:
            source = rng.counter_block(np.uint64(first_sample + sample), np.uint64(replica)), key
            words, signs = lattices.words[sample, replica], lattices.signs_of(sample)
            flip_lattice(words, lattices.sides, signs, chance[place[sample, replica]], field, source, when, kind)

        blocks.each(task, times=PASSES)

    return move


swendsen_wang = partial(fast_path, SWENDSEN_WANG)
wolff = partial(fast_path, WOLFF)
seeded = partial(fast_path, SEEDED)
