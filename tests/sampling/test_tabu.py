"""Tabu searches: exact energies, the lowest states of small problems, and bits that depend on seed and steps alone."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import numpy.typing as npt
import pytest
from penalties import assignment, at_most_one, independent_set

import spinsim as ss
from spinsim.sampling import tabu
from spinsim.sampling.tabu import Tabu

STEPS = 30_000


def glass(sites: int, bonds: int, real: bool, seed: int, fields: bool = False) -> ss.Ising:
    """Random bonds with couplings of +-1 or real ones."""
    random = np.random.default_rng(seed)
    pairs = np.array(list(combinations(range(sites), 2)))
    some = np.sort(random.choice(len(pairs), bonds, replace=False))
    couplings = random.normal(size=bonds) if real else random.choice([-1.0, 1.0], bonds)
    return ss.Ising(ss.Graph(sites, pairs[some]), couplings, random.normal(size=sites) if fields else 0.0)


def lowest(model: ss.Ising) -> float:
    """Lowest energy by enumeration."""
    bits = np.arange(2**model.sites, dtype=np.int64)[:, None] >> np.arange(model.sites) & 1
    return float(model.energy((2 * bits - 1).T[None]).min())


def energy_of(model: ss.Ising, spins: npt.NDArray[np.int8]) -> float:
    return float(model.energy(spins[None])[0])


def select(items: int, chosen: int, seed: int) -> ss.Ising:
    """``chosen`` of the items, with benefits of pairs, and a penalty far above them for another number."""
    random = np.random.default_rng(seed)
    penalty = float(random.integers(100, 201))
    terms = {(i, i): -float(random.integers(1, 50)) + penalty * (1 - 2 * chosen) for i in range(items)}
    terms |= {(i, j): 2 * penalty - float(random.integers(0, 10)) for i in range(items) for j in range(i)}
    return ss.Ising.from_qubo(terms)


MODELS = {
    "sparse": lambda: glass(16, 30, real=False, seed=1),
    "real couplings": lambda: glass(16, 30, real=True, seed=2),
    "fields": lambda: glass(14, 40, real=True, seed=3, fields=True),
    "dense": lambda: glass(15, 105, real=False, seed=4),
    "no bonds": lambda: ss.Ising(ss.Graph(3, np.empty((0, 2), np.int32)), 1.0, [0.5, -0.25, 0.0]),
    "no couplings": lambda: ss.Ising(ss.Graph(2, [[0, 1]]), 0.0),
    "independent set": lambda: independent_set(16, 0.3, 50.0, 5),
    "one of each": lambda: at_most_one(4, 4, 200.0, 6),
    "assignment": lambda: assignment(4, 500.0, 7),
    "some of all": lambda: select(16, 5, 8),
}


@pytest.mark.parametrize("name", MODELS)
def test_small_problems_are_solved_exactly(name: str) -> None:
    model = MODELS[name]()
    search = Tabu(model, 3)
    search.advance(STEPS)
    assert search.best_energy == lowest(model) == energy_of(model, search.best_spins)
    assert 1 <= search.hits <= search.starts


def record_of(search: Tabu) -> dict[str, object]:
    return {name: array.tolist() for name, array in search.state().items()}


@pytest.mark.parametrize("name", ["sparse", "real couplings", "dense", "independent set"])
def test_bits_do_not_depend_on_how_steps_are_cut(name: str) -> None:
    """20,000 steps, the same in parts, and in parts each by another search that goes on from arrays."""
    model = MODELS[name]()
    whole, parts = Tabu(model, 5), Tabu(model, 5)
    whole.advance(20_000)
    for steps in (1, 2, 997, 5_000, 0, 14_000):
        parts.advance(steps)
        following = Tabu(model, 5)
        following.restore(parts.state())
        parts = following
    assert record_of(whole) == record_of(parts)
    other = Tabu(model, 6)
    other.advance(20_000)
    assert record_of(other) != record_of(whole)


@pytest.mark.parametrize("make", [lambda: glass(150, 3_000, False, 1), lambda: independent_set(150, 0.2, 4.0, 2)])
@pytest.mark.parametrize("change", ["lists instead of a matrix", "single blocks", "wide integers"])
def test_layouts_have_the_same_bits(make, change: str, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    model = make()
    one = Tabu(model, 2)
    assert one._is_wide
    assert one._problem[3].size
    assert one._top.dtype == np.int32
    if change == "wide integers":
        monkeypatch.setattr(tabu, "_LARGEST_SMALL", 0)
    else:
        monkeypatch.setattr(tabu, "DENSE", 1.0)
    other = Tabu(model, 2)
    if change == "single blocks":
        other._is_wide = False
    assert other._problem[3].size == 0 or other._top.dtype == np.int64
    for search in (one, other):
        search.advance(100_000)
    states = [{k: v for k, v in record_of(search).items() if k not in ("cost", "low")} for search in (one, other)]
    assert states[0] == states[1]


def test_kept_costs_are_exact_with_real_couplings() -> None:
    model = glass(80, 400, real=True, seed=9, fields=True)
    search = Tabu(model, 1)
    for _ in range(5):
        search.advance(2_345)
        state, forbidden = search.state(), int(search._top[0]) // 2 + 1
        spins = state["spin"].astype(np.int64)
        local = model.integer_fields(0).copy()
        ends, couplings = model.graph.edges, model.integer_couplings(0)
        np.add.at(local, ends[:, 0], couplings * spins[ends[:, 1]])
        np.add.at(local, ends[:, 1], couplings * spins[ends[:, 0]])
        cost = state["cost"][:80].copy()
        cost[cost >= forbidden // 2] -= forbidden
        assert np.array_equal(cost * search._unit, spins * local)
        assert search.best_energy == energy_of(model, search.best_spins)


def test_searches_begin_at_states_that_are_given() -> None:
    model = glass(100, 300, real=False, seed=4)
    good = Tabu(model, 1)
    good.advance(200_000)
    search = Tabu(model, 2, start=good.best_spins)
    assert search.best_energy == good.best_energy
    assert np.array_equal(search.best_spins, good.best_spins)
    assert search.hits == 0  # as it is not found yet by a start of its own
    search.advance(1)
    assert (search.state()["spin"] != good.best_spins).sum() == 1
    later = Tabu(model, 2)
    later.advance(10)
    assert later.best_energy > good.best_energy
    later.offer(good.best_spins)
    assert later.best_energy == good.best_energy
    with pytest.raises(ss.InputError, match="spins"):
        later.offer(good.best_spins[:5])


def test_searches_begin_at_states_that_wait_in_their_order() -> None:
    """Also where a search that has some of them goes on from arrays, and where a call of no steps comes between."""
    model, random = glass(30, 60, real=False, seed=4), np.random.default_rng(1)
    given = random.choice([-1, 1], (3, 30))
    whole, parts = Tabu(model, 5), Tabu(model, 5)
    for search in (whole, parts):
        search.advance(10)
        for spins in given:
            search.offer(spins)
    whole.advance(20_000)
    numbers = {3}
    for _ in range(200):
        following = Tabu(model, 5)
        following.restore(parts.state())
        parts = following
        parts.advance(0)
        parts.advance(100)
        waiting = parts.state()["waiting"]
        np.testing.assert_array_equal(waiting, given[3 - len(waiting) :])
        numbers.add(len(waiting))
    assert numbers == {3, 2, 1, 0}
    assert record_of(whole) == record_of(parts)


def test_penalties_are_crossed() -> None:
    """Twelve of 60 with penalties of 100 to 200, where anneals of single flips stay in one choice."""
    energies = []
    for seed in (1, 2):
        search = Tabu(select(60, 12, 3), seed)
        search.advance(100_000)
        energies.append(search.best_energy)
        assert (search.best_spins > 0).sum() == 12
    assert energies[0] == energies[1]
