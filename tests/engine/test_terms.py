"""Energies of two terms on every device against the oracle, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest
from engines import (
    GENERAL,
    GENERAL_TERMS,
    GENERAL_TERMS_TEMPERED,
    PACKED,
    TERMS,
    TERMS_TEMPERED,
    around,
    by_axis,
    gaussian,
    run_both,
    temper_both,
)
from exact import assert_agree, enumerate_states, replica_mean
from frames import state
from places import DATA

from spinsim.engine import Dynamics, choose_packing, create_engine
from spinsim.engine.measuring.correlations import OVERLAPS_ONLY
from spinsim.engine.moves.metropolis import unpacked as cpu_of_unpacked
from spinsim.engine.moves.metropolis.replica_packed import cpu
from spinsim.errors import InputError
from spinsim.model.disorder import EdwardsAnderson
from spinsim.model.graph import Graph
from spinsim.model.ising import Ising, read_instance
from spinsim.model.lattice import chain, square
from spinsim.model.trotter import trotter
from spinsim.packing import Packing
from spinsim.sampling import Times, tempering_in_beta


@pytest.mark.parametrize("name", [*TERMS, *GENERAL_TERMS])
def test_kernels_equal_the_oracle(device: str, name: str) -> None:
    make, pair = (TERMS | GENERAL_TERMS)[name]
    model = make()
    assert choose_packing(model) is (Packing.ANISOTROPIC if name in TERMS else Packing.UNPACKED)
    run_both(device, model, 130, around(pair, 130), (1, 9))


@pytest.mark.parametrize(
    ("beta", "options"),
    [
        (0.5, {"rng_rounds": 7}),
        ([[0.5, 0.3]], {"zero_acceptance": 1.0}),
        ([0.0, 0.4, 3.0], {}),
        ([[0.0, 0.4], [0.4, 0.0], [40.0, 1e-9]], {"zero_acceptance": 0.7}),
    ],
)
def test_options(device: str, beta: list[float], options: dict[str, object]) -> None:
    run_both(device, TERMS["square-signs-odd"][0](), 3, beta, (4,), **options)


@pytest.mark.parametrize(
    ("beta", "options"),
    [
        (0.5, {"rng_rounds": 7}),
        ([0.0, 0.4, 3.0], {}),
        ([[0.5, 0.3]], {"zero_acceptance": 1.0}),
        ([[0.0, 0.4], [0.4, 0.0], [40.0, 1e-9]], {"zero_acceptance": 0.7, "rng_rounds": 7}),
        ([[1e-12, 1e-11], [1e50, 1e50], [1e100, 1e-100]], {}),
        ([[3e-10, 2e-10], [1e6, 1e6], [0.0, 0.0]], {}),
    ],
)
@pytest.mark.parametrize("name", ["cancelling", "gaussian"])
def test_options_of_the_unpacked_update(device: str, name: str, beta: list[float], options: dict[str, object]) -> None:
    run_both(device, GENERAL_TERMS[name][0](), 3, beta, (4,), **options)


@pytest.mark.parametrize("name", TERMS_TEMPERED | GENERAL_TERMS_TEMPERED)
def test_tempering_equals_the_oracle(device: str, name: str) -> None:
    make, beta, copies = (TERMS_TEMPERED | GENERAL_TERMS_TEMPERED)[name]
    state = temper_both(device, make(), beta, copies, [(1, 1), (4, 2), (3, 1)])
    assert 0 < state.accepts.sum() < state.attempts.sum()


def averages(model: Ising, pair: np.ndarray) -> tuple[float, float, float]:
    """Energies of both terms and the squared magnetisation by enumeration, at a pair of inverse temperatures."""
    spins = 2 * (np.arange(2**model.sites) >> np.arange(model.sites)[:, None] & 1) - 1
    ends, couplings = model.graph.edges, model.couplings[0]
    of_bonds = -couplings[:, None] * spins[ends[:, 0]] * spins[ends[:, 1]]
    parts = np.stack([of_bonds[model.terms == term].sum(axis=0) for term in range(2)])
    parts[0] -= model.fields[0] @ spins
    cost = pair @ parts
    weight = np.exp(cost.min() - cost)
    weight /= weight.sum()
    return *(parts @ weight), float(weight @ spins.sum(axis=0) ** 2)


def sampled(model: Ising, beta: np.ndarray, copies: int, rounds: int) -> tuple[np.ndarray, np.ndarray]:
    """Energies of both terms and squared magnetisations after each of so many rounds, of one sample."""
    engine = create_engine(model, copies * len(beta), Dynamics(seed=3), "cpu")
    frames = list(tempering_in_beta(engine, beta, Times(100, 2 * rounds, 2), copies, wanted=OVERLAPS_ONLY))
    energy, magnetization = (
        np.stack([getattr(f, name)[0] for f in frames]) for name in ("energy_by_term", "magnetization")
    )
    return energy, magnetization.astype(np.float64) ** 2


LADDERS = {
    "along-gamma": np.array([[0.5, 0.1], [0.5, 0.3], [0.5, 0.6]]),
    "along-temperature": np.linspace(0.8, 0.3, 3)[:, None] * [1.0, 0.5],
    "cancelling": np.array([[0.3, 0.3], [0.2, 0.2]]),
}


SMALL = {
    "ferromagnet": lambda: by_axis(square(3, 4), [1.0, 1.0], [0, 1]),
    "signs": lambda: by_axis(square(3, 4), [1.0, 1.0], [0, 1], 1),
    "gaussian": lambda: trotter(gaussian(chain(3), seed=2, random_field=0.5), 4, by_term=True),
}


@pytest.mark.parametrize("name", LADDERS)
@pytest.mark.parametrize("which", SMALL)
def test_equilibrium_against_enumeration(name: str, which: str) -> None:
    model, beta, rows = SMALL[which](), LADDERS[name], []
    energy, squares = sampled(model, beta, 200, 250)
    for t, pair in enumerate(beta):
        exact = averages(model, pair)
        series = energy[:, :, t, 0], energy[:, :, t, 1], squares[:, :, t]
        for what, found, value in zip(("E_0", "E_1", "m^2"), series, exact, strict=True):
            rows.append((f"{name} {pair}: {what}", *replica_mean(found), value))
    assert_agree(rows)


def test_equal_temperatures_of_both_terms_are_those_of_one() -> None:
    """The total energy of an isotropic model, whose bonds are said to be of two terms."""
    model, beta = by_axis(square(4), [1.0, 1.0], [0, 1], 1), 1 / np.linspace(1.0, 2.5, 4)
    energy, squares = sampled(model, beta, 200, 250)
    rows = []
    for t, temperature in enumerate(1 / beta):
        exact = enumerate_states(Ising(model.graph, model.couplings), temperature)
        rows.append((f"T = {temperature:.2f}: E", *replica_mean(energy[:, :, t].sum(axis=-1) / 16), exact.energy))
        rows.append((f"T = {temperature:.2f}: m^2", *replica_mean(squares[:, :, t] / 256), exact.magnetization_squared))
    assert_agree(rows)


@pytest.mark.parametrize(
    "name", ["cubic-both", "two-blocks", "unpacked-two-blocks", "gaussian-gamma", "gaussian-one-temperature"]
)
def test_parts_and_restored_states_make_the_whole(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    make, beta, copies = (TERMS_TEMPERED | GENERAL_TERMS_TEMPERED)[name]
    states = []
    for split, threads in ((2**14, 1), (1, 3)):
        monkeypatch.setattr(cpu, "SPLIT_SITES", split)
        monkeypatch.setattr(cpu_of_unpacked.UnpackedSweeper, "long_round", split)
        engine, other = (create_engine(make(), copies * len(beta), Dynamics(seed=8), "cpu", threads) for _ in range(2))
        engine.set_ladder(beta, copies)
        other.set_ladder(beta, copies)
        engine.temper(7, 2)
        other.restore(engine.snapshot())
        other.temper(2, 1)
        states.append(state(other))
    engine.temper(2, 1)
    for each in states:
        for one, expected in zip(each, state(engine), strict=True):
            np.testing.assert_array_equal(one, expected)


@pytest.mark.parametrize(
    ("make", "packing"),
    [
        (lambda: Ising(square(4), 1.0, np.arange(16.0), terms=np.arange(32) % 2), Packing.UNPACKED),
        (lambda: Ising(square(4), np.arange(1.0, 33.0), terms=np.arange(32) % 2), Packing.UNPACKED),
        (lambda: Ising(square(4), terms=np.arange(32) % 3 == 0), Packing.ANISOTROPIC),
        (lambda: Ising(Graph(34, np.stack([np.zeros(33, int), np.arange(1, 34)], 1)), terms=np.zeros(33, int)),
         Packing.UNPACKED),
    ],
)  # fmt: skip
def test_every_model_of_two_terms_takes_one_temperature_and_two(make, packing: Packing) -> None:
    model = make()
    assert choose_packing(model) is packing
    engine = create_engine(model, 4, Dynamics(), "cpu")
    engine.set_beta(0.5)
    engine.sweep(1)
    engine.set_ladder([[0.5, 0.4], [0.5, 0.3]], 2)
    engine.temper(1, 1)


@pytest.mark.parametrize("make", [PACKED["square-6"], GENERAL["gaussian"]])
def test_models_of_one_term_have_one_temperature(make) -> None:
    engine = create_engine(make(), 4, Dynamics(), "cpu")
    with pytest.raises(InputError, match=r"ladder have shape \(2, 2\): give one for each temperature, as two take"):
        engine.set_ladder([[0.5, 0.4], [0.5, 0.3]], 2)


@pytest.mark.parametrize(
    ("beta", "message"),
    [
        ([[0.5, 0.4, 0.3], [0.5, 0.3, 0.3]], r"shape \(2, 3\): give \(temperatures,\) or \(temperatures, 2\)"),
        ([[0.5, 0.4], [0.5, 0.4]], "neighbouring points of a ladder must differ"),
        ([[0.5, -0.4], [0.5, 0.4]], "inverse temperature -0.4 is not allowed"),
        ([0.4, 0.5], "come from the lowest to the highest"),
        ([[1e101, 0.4], [0.5, 0.4]], r"1e\+101 is too high for two terms: give at most 1e\+100"),
    ],
)
def test_bad_ladders_are_refused(beta: list[list[float]], message: str) -> None:
    engine = create_engine(TERMS["square"][0](), 4, Dynamics(), "cpu")
    with pytest.raises(InputError, match=message):
        engine.set_ladder(beta, 2)


def test_bad_temperatures_are_refused() -> None:
    engine = create_engine(TERMS["square"][0](), 4, Dynamics(), "cpu")
    with pytest.raises(InputError, match=r"have shape \(3, 2\): give \(4, 2\), one for each term"):
        engine.set_beta(np.ones((3, 2)))
    for make in (PACKED["square-6"], GENERAL["gaussian"]):
        with pytest.raises(InputError, match=r"have shape \(4, 2\): give a number or one for each replica"):
            create_engine(make(), 4, Dynamics(), "cpu").set_beta(np.ones((4, 2)))


@pytest.mark.parametrize(
    ("space", "packing"),
    [
        (lambda: EdwardsAnderson(square(3, 4), samples=2, seed=1), Packing.ANISOTROPIC),
        (lambda: EdwardsAnderson(chain(4), seed=1, field=0.25), Packing.ANISOTROPIC),
        (lambda: EdwardsAnderson(square(3, periodic=False), seed=1), Packing.ANISOTROPIC),
        (lambda: gaussian(square(3, 4), samples=2, seed=1), Packing.UNPACKED),
        (lambda: EdwardsAnderson(square(4), seed=1, random_field=0.5), Packing.UNPACKED),
        (lambda: read_instance(DATA / "t2g10_5555.mc"), Packing.UNPACKED),
    ],
)
def test_space_and_time_are_two_terms(space, packing: Packing) -> None:
    model = trotter(space(), 6, by_term=True)
    line = np.empty(model.sites, np.int64)
    line[model.graph.world_lines()] = np.arange(model.sites // 6)[:, None]
    np.testing.assert_array_equal(model.terms == 1, line[model.graph.edges[:, 0]] == line[model.graph.edges[:, 1]])
    assert choose_packing(model) is packing
    run_both("cpu", model, 3, [[0.2, 0.9]], (2,))
