"""Ground states of planar graphs against enumeration, and the refusals."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from planar import all_energies, triangulation, values

import spinsim as ss
from spinsim.optimum.cycles import cycle_bounds
from spinsim.optimum.pairs import with_ghost
from spinsim.optimum.planar import planar_ground_state

pytest.importorskip("pymatching")
pytest.importorskip("networkx")


def test_random_planar_graphs_equal_enumeration() -> None:
    random, proven = np.random.default_rng(1), 0
    for _ in range(200):
        sites = int(random.integers(4, 11))
        bonds = triangulation(sites, random.choice([0.4, 0.7, 1.0]), random)
        model = ss.Ising(ss.Graph(sites, bonds.astype(np.int32)), values(len(bonds), random) if len(bonds) else 0.0)
        state = planar_ground_state(model)
        assert state is not None
        lowest = all_energies(model).min()
        assert state.bound <= lowest <= state.energy == model.energy(state.spins[None])[0]
        assert not state.is_proven or state.energy == lowest
        proven += state.is_proven
    assert proven > 170  # the rest are couplings that differ by 1e-9


def test_fields_where_the_ghost_keeps_the_graph_planar() -> None:
    random, planar = np.random.default_rng(2), 0
    for _ in range(100):
        bonds = triangulation(8, 0.7, random).astype(np.int32)
        field = np.zeros(8)
        field[random.integers(8, size=2)] = random.normal(size=2)
        model = ss.Ising(ss.Graph(8, bonds), random.normal(size=len(bonds)), field)
        state = planar_ground_state(model)
        if state is not None:
            planar += 1
            assert state.is_proven
            assert state.energy == all_energies(model).min() == model.energy(state.spins[None])[0]
    assert 50 < planar < 100


@pytest.mark.parametrize(
    "lattice", [ss.square(4, periodic=False), ss.triangular(4, 3, periodic=False), ss.honeycomb(2)]
)
def test_lattices(lattice: ss.Lattice) -> None:
    open_lattice = lattice if not lattice.periodic else ss.honeycomb(2, 3, periodic=False)
    for seed in range(5):
        couplings = np.random.default_rng(seed).choice([-1.0, 1.0], open_lattice.bonds)
        model = ss.Ising(open_lattice, couplings)
        state = planar_ground_state(model)
        assert state is not None
        assert state.energy == state.bound == all_energies(model).min()


def test_large_lattices_agree_with_cycles() -> None:
    """An independent proof: the linear program of cycles is exact for planar graphs."""
    lattice = ss.square(20, periodic=False)
    model = ss.Ising(lattice, np.random.default_rng(3).normal(size=lattice.bonds))
    state = planar_ground_state(model)
    assert state is not None
    assert state.is_proven
    of_cycles = max(cycle_bounds(with_ghost(model), 60)) * model.quantum
    assert state.energy == pytest.approx(of_cycles, rel=1e-9)
    assert of_cycles <= state.energy


def test_a_listed_lattice_equals_its_lattice() -> None:
    lattice = ss.square(12, periodic=False)
    couplings, order = np.random.default_rng(4).normal(size=lattice.bonds), np.random.default_rng(5).permutation(144)
    state = planar_ground_state(ss.Ising(lattice, couplings))
    listed = planar_ground_state(ss.Ising(ss.Graph(144, order[lattice.edges()].astype(np.int32)), couplings))
    assert state is not None
    assert listed is not None
    assert state.energy == listed.energy
    assert planar_ground_state(ss.Ising(ss.Graph(144, order[lattice.edges()].astype(np.int32)), couplings), 0) is None


def test_other_graphs_are_told() -> None:
    five = np.array([(i, j) for i in range(5) for j in range(i)], np.int32)
    three = np.array([(i, 3 + j) for i in range(3) for j in range(3)], np.int32)
    assert planar_ground_state(ss.Ising(ss.Graph(5, five))) is None
    assert planar_ground_state(ss.Ising(ss.Graph(6, three))) is None
    assert planar_ground_state(ss.Ising(ss.square(4))) is None
    assert planar_ground_state(ss.Ising(ss.square(4, periodic=False), field=0.5)) is None


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pymatching", None)
    couplings = np.random.default_rng(6).choice([-1.0, 1.0], 24)
    with pytest.raises(ss.InputError, match=r"install spinsim-ising\[solve\]"):
        planar_ground_state(ss.Ising(ss.square(4, periodic=False), couplings))
