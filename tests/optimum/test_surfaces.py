"""Searches on tori against enumeration; paths that cut a torus open; bits that depend on the seed alone."""

from __future__ import annotations

import numpy as np
import pytest
from planar import all_energies

import spinsim as ss
from spinsim.optimum import surfaces
from spinsim.optimum.surfaces import SurfaceSearch, closed_paths, surface_bound, surface_of, surface_state

pytest.importorskip("pymatching")


def search_of(model: ss.Ising, seed: int) -> SurfaceSearch:
    surface = surface_of(model)
    assert surface is not None
    return SurfaceSearch(surface, seed)


def helix(sites: int, step: int) -> ss.Graph:
    """A torus of squares: bonds to the next site and to the one ``step`` further on."""
    one = np.arange(sites)
    return ss.Graph(sites, np.concatenate([np.stack([one, (one + by) % sites], axis=1) for by in (1, step)]))


def test_small_tori_equal_enumeration() -> None:
    """Bounds hold, and searches meet the lowest energy, also where short cycles run around the torus."""
    random, proven, met = np.random.default_rng(1), 0, 0
    graphs = [ss.triangular(4), helix(13, 5), helix(17, 4)]
    for number in range(60):
        graph, couplings = graphs[number % 3], random.normal(size=51)
        if number % 2:
            couplings = random.choice([-2.0, -1.0, 1.0], size=51)
        model = ss.Ising(graph, couplings[: graph.bonds])
        lowest = all_energies(model).min()
        state, search = surface_state(model), search_of(model, 1)
        assert state is not None
        assert state.bound <= lowest <= state.energy == model.energy(state.spins[None])[0]
        while search.starts <= 12:
            search.advance()
        assert model.energy(search.lowest_spins[None])[0] == search.lowest * model.quantum >= lowest
        met, proven = met + (search.lowest * model.quantum == lowest), proven + state.is_proven
    assert met == 60
    assert 0 < proven < 60


@pytest.mark.parametrize("lattice", [ss.square(9, 7), ss.triangular(6, 8)])
def test_closed_paths_cut_a_torus_open(lattice: ss.Lattice) -> None:
    """With the spins of both paths fixed, every T-join fits spins; other paths need not do."""
    model = ss.EdwardsAnderson(lattice, seed=2)
    surface = surface_of(model)
    assert surface is not None
    assert len(surface.odd) == lattice.bonds - lattice.sites
    random, refused = np.random.default_rng(3), 0
    for root in range(0, 45, 3):
        paths = closed_paths(surface, root, 1 + random.random(lattice.bonds))
        assert len(paths) == 2
        for which in ([0], [1], [0, 1]):
            spins, fixed = random.choice([-1, 1], lattice.sites).astype(np.int8), np.zeros(lattice.sites, bool)
            fixed[np.concatenate([paths[k] for k in which])] = True
            free = ~fixed[surface.pairs.ends].all(axis=1)
            join = surfaces._unsatisfied(surface.pairs, spins) & ~free
            odd = surface.odd ^ surfaces.with_odd_number(surface.sides[join], len(surface.odd))
            join[free], _ = surfaces.smallest_join(surface.sides[free], np.ones(int(free.sum()), np.int64), odd)
            found = surfaces._fitting(surface, join)
            assert found is not None or len(which) == 1
            if found is None:
                refused += 1
            else:
                same = found[fixed] == spins[fixed]
                assert same.all() or not same.any()
    assert refused > 0


def test_a_listed_torus_equals_its_lattice() -> None:
    lattice = ss.square(12)
    couplings, order = np.random.default_rng(4).normal(size=lattice.bonds), np.random.default_rng(5).permutation(144)
    listed = ss.Ising(ss.Graph(144, order[lattice.edges()].astype(np.int32)), couplings)
    bounds = [surface_bound(surface_of(model))[0] * model.quantum for model in (ss.Ising(lattice, couplings), listed)]
    assert bounds[0] == bounds[1]
    first, second = search_of(ss.Ising(lattice, couplings), 1), search_of(listed, 2)
    for search in (first, second):
        while search.starts <= 3:
            search.advance()
    assert first.lowest == second.lowest >= round(bounds[0] / listed.quantum)
    assert first.hits > 1


@pytest.mark.parametrize(
    "model",
    [
        ss.EdwardsAnderson(ss.cubic(4)),
        ss.EdwardsAnderson(ss.square(6, periodic=False)),
        ss.EdwardsAnderson(ss.square(6), field=1.0),
        ss.Ising(ss.Graph(6, np.column_stack(np.triu_indices(6, 1))), 1.0),
        ss.Ising(ss.chain(8), 1.0),
    ],
    ids=["cubic", "open", "field", "complete", "chain"],
)
def test_other_graphs_are_no_surfaces(model: ss.Ising) -> None:
    assert surface_of(model) is None
    assert surface_state(model) is None


def test_large_models_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(surfaces, "MOST_SITES", 399)
    assert surface_of(ss.EdwardsAnderson(ss.square(20))) is None
    assert surface_state(ss.EdwardsAnderson(ss.square(100)), seconds=0.1) is None


@pytest.mark.parametrize("couplings", ["pm-j", "gaussian"])
def test_large_surfaces_are_searched_in_cells(monkeypatch: pytest.MonkeyPatch, couplings: str) -> None:
    """Every matching of cells fits spins and raises no energy; cells take turns; the bits go on."""
    model = ss.EdwardsAnderson(ss.square(24), couplings=couplings, seed=1)
    small = search_of(model, 1)
    while small.starts <= 2:
        small.advance()
    for name, value in (("AT_ONCE", 500), ("_CELL", 60), ("_FREE", 200)):
        monkeypatch.setattr(surfaces, name, value)
    search, other, freed = search_of(model, 1), search_of(model, 1), np.zeros(576, bool)
    before = search._energy
    for number in range(40):
        if number == 10:
            other.restore(search.state())
        if number < 3:
            freed |= ~search._fixed()
        search.advance()
        assert search._energy <= before
        before = search._energy
        assert model.energy(search._spins[None])[0] == search._energy * model.quantum
    for _ in range(30):
        other.advance()
    assert np.array_equal(other._spins, search._spins)
    assert freed.mean() > 0.5
    assert small.lowest <= search.lowest < 0.97 * small.lowest


@pytest.mark.parametrize("couplings", ["pm-j", "gaussian"])
def test_a_stopped_search_goes_on(couplings: str) -> None:
    model = ss.EdwardsAnderson(ss.square(8), couplings=couplings, seed=6)
    whole, first, second = search_of(model, 7), search_of(model, 7), search_of(model, 7)
    for _ in range(50):
        whole.advance()
    for _ in range(23):
        first.advance()
    second.restore(first.state())
    for _ in range(27):
        second.advance()
    states = whole.state(), second.state()
    assert all(np.array_equal(states[0][name], states[1][name]) for name in states[0])
    assert whole.has_ties == (couplings == "pm-j")
    assert whole.starts > 1


def test_a_given_state_is_taken_on() -> None:
    model = ss.EdwardsAnderson(ss.square(12), seed=3)
    best, search = search_of(model, 1), search_of(model, 2)
    while best.starts <= 3:
        best.advance()
    search.offer(best.lowest_spins)
    search.offer(-best.lowest_spins)
    assert search.starts == 0
    search.advance()
    assert (search.lowest, search.hits) == (best.lowest, 0)
    while search.starts <= 2:
        search.advance()
    assert search.hits > 0


def test_most_glasses_of_whole_couplings_are_proven() -> None:
    states = [surface_state(ss.EdwardsAnderson(ss.square(20), seed=seed)) for seed in range(8)]
    assert sum(state is not None and state.is_proven for state in states) >= 5
