"""Rows of bonds from which rounds of a GPU count energies."""

from __future__ import annotations

import numpy as np
import pytest
from engines import GENERAL

import spinsim as ss
from spinsim.engine import Dynamics
from spinsim.engine.moves.metropolis.unpacked_cuda import DIGIT_BITS, SLOTS, SlotPlan, counted_rows


def digits_together(couplings: np.ndarray) -> np.ndarray:
    """Couplings in quanta, (1 or samples, rows, slots)."""
    return sum(digit.astype(np.int64) << DIGIT_BITS * k for k, digit in enumerate(couplings))


@pytest.mark.parametrize("name", GENERAL)
def test_rows_hold_the_energy(name: str) -> None:
    """Every bond and field stands in one row, with all digits of its coupling."""
    model: ss.Ising = GENERAL[name]()
    plan = SlotPlan(model, 1, Dynamics())
    near, couplings = counted_rows(plan)
    spins = np.random.default_rng(1).choice([-1, 1], model.sites)
    placed = np.append(spins[plan.batches.order], 1)
    signs = placed[near[:, SLOTS]][:, None] * placed[near[:, :SLOTS]]
    found = -(signs * digits_together(couplings)[..., :SLOTS]).sum(axis=(1, 2))
    for sample, energy in enumerate(found):
        of_bonds = model.integer_couplings(sample) @ spins[model.graph.edges].prod(axis=1)
        assert energy == -(of_bonds + model.integer_fields(sample) @ spins)
    assert np.abs(couplings.astype(np.int64)).sum(axis=-1).max(initial=0) < 2**31
