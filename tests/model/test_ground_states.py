"""Annealing with the command line's defaults reaches the best known cuts of public instances."""

from __future__ import annotations

import numpy as np
import pytest
from places import DATA

import spinsim as ss

BEST_KNOWN = {
    "G11.txt": 564,
    "G48.txt": 6000,
    "pm1s_100.0.mc": 127,
    "t2g10_5555.mc": 6049461,
    "t3g5_5555.mc": 10933215,
}


def best_cut(name: str, replicas: int = 128) -> float:
    model = ss.read_instance(DATA / name)
    scale = model.energy_scale
    return ss.anneal(model, np.geomspace(1.5 * scale, 0.05 * scale, 100), sweeps=100, replicas=replicas).cut


@pytest.mark.parametrize("name", BEST_KNOWN)
def test_the_optimum_is_reached(name: str) -> None:
    assert best_cut(name) == BEST_KNOWN[name]


def test_a_planar_instance_within_three_tenths_of_a_percent() -> None:
    assert best_cut("G14.txt", 32) >= 3064 * 0.997


def test_a_dimod_model_has_dimods_energies() -> None:
    dimod = pytest.importorskip("dimod")
    bqm = dimod.BinaryQuadraticModel({"a": 1.5, "b": -2}, {("a", "b"): 3, ("b", "c"): 0.5}, 0.25, "BINARY")
    model = ss.from_bqm(bqm)
    for values in np.ndindex(2, 2, 2):
        sample = dict(zip(bqm.variables, values, strict=True))
        energy = model.energy(2 * np.array([values]) - 1)[0] + model.offset
        assert energy == bqm.energy(sample)
