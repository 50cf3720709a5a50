"""Fortuin-Kasteleyn moves: every path equals the plain definition, averages are exact."""

from __future__ import annotations

from pathlib import Path

import clusters_oracle as oracle
import numpy as np
import numpy.typing as npt
import pytest
from enumeration import Thermal
from several import on_cpus

import spinsim as ss
from spinsim.analysis.autocorrelation import integrated_time
from spinsim.engine.moves.exchange import holders
from spinsim.engine.moves.fortuin_kasteleyn import cuda
from spinsim.engine.moves.move import Moment
from spinsim.engine.split import shares
from spinsim.model.trotter import trotter

RING = [(i, (i + 1) % 30) for i in range(30)] + [(i, (7 * i + 3) % 30) for i in range(30)]
RING = [(i, j) for i, j in RING if i != j]
MOVES = {move.name: move for move in (ss.SwendsenWang(), ss.Wolff(), ss.SeededClusters())}


def random_graph(values: list[float], field: npt.ArrayLike = 0.0) -> ss.Ising:
    couplings = np.random.default_rng(1).choice(values, (2, len(RING)))
    return ss.Ising(ss.Graph(30, np.array(RING)), couplings, field)


MODELS = {
    "replica-packed": lambda: ss.EdwardsAnderson(ss.square(9), samples=2, seed=3),
    "cubic in a field": lambda: ss.Ising(ss.cubic(4, 3, 5), field=0.125),
    "chain": lambda: ss.Ising(ss.chain(40)),
    "double bonds": lambda: ss.EdwardsAnderson(ss.square(2, 6), samples=2, seed=3),
    "open": lambda: ss.EdwardsAnderson(ss.square(5, periodic=False), samples=2, seed=3, field=0.25),
    "triangular": lambda: ss.Ising(ss.triangular(6)),
    "diluted graph": lambda: random_graph([-1.0, 0.0, 1.0], np.resize([0.5, -0.5, 0.0], 30)),
    "unpacked": lambda: ss.EdwardsAnderson(ss.square(4), samples=2, couplings="gaussian", seed=3, field=0.25),
    "whole rows": lambda: ss.EdwardsAnderson(ss.cubic(8), seed=3),
    "halves of rows": lambda: ss.Ising(ss.square(32)),
    "long rows": lambda: ss.Ising(ss.square(40, 3), field=np.resize([0.5, 0.0, 0.0], 120)),
    "anisotropic": lambda: trotter(ss.EdwardsAnderson(ss.square(3), samples=2, seed=3), 4, by_term=True),
}
LADDER = 1 / np.linspace(1.0, 4.0, 13)
COPIES = 11


def configurations(engine: ss.engine.Engine) -> npt.NDArray[np.int8]:
    samples, replicas = range(engine.model.samples), range(engine.replicas)
    return np.stack([[engine.spins(k, r) for r in replicas] for k in samples])


@pytest.mark.parametrize("name", MODELS)
def test_same_as_oracle(name: str, device: str) -> None:
    """143 replicas fill a block and some of another."""
    model = MODELS[name]()
    copies = COPIES if model.sites < 200 else 1
    engine = ss.create_engine(model, len(LADDER) * copies, ss.Dynamics(seed=3), device)
    engine.set_ladder(LADDER, copies)
    for time, move in enumerate(MOVES.values()):
        engine.temper(3, 1)
        before, place = configurations(engine), engine.begin_exchange()().place
        engine.apply(move, Moment(LADDER, time, 77))
        expected = np.stack(
            [oracle.move(before[k], LADDER[place[k]], model, move.name, 77, k, time) for k in range(model.samples)]
        )
        np.testing.assert_array_equal(configurations(engine), expected)
        assert (expected != before).any()
        np.testing.assert_array_equal(engine.begin_exchange()().place, place)


@pytest.mark.parametrize(
    "room", [0, 2 * 4 * (32 + 64 + 1), 2**18], ids=["in memory", "without pairs", "in shared memory"]
)
def test_clusters_joined_elsewhere(emulated: None, monkeypatch: pytest.MonkeyPatch, room: int) -> None:
    monkeypatch.setattr(cuda, "shared_memory", lambda device: room)
    monkeypatch.setattr(cuda, "MOST_PARENTS", 0)
    test_same_as_oracle("replica-packed", "cuda")


@pytest.mark.parametrize("beta", [0.4, 0.0, 1e3])
def test_without_ladder(beta: float, device: str) -> None:
    model = MODELS["replica-packed"]()
    engine = ss.create_engine(model, 7, ss.Dynamics(seed=3), device)
    engine.set_beta(0.4)
    engine.sweep(3)
    before = configurations(engine)
    engine.apply(ss.SwendsenWang(), Moment(beta, 5, 77))
    expected = [oracle.move(before[k], np.full(7, beta), model, "swendsen-wang", 77, k, 5) for k in range(2)]
    np.testing.assert_array_equal(configurations(engine), expected)


def test_each_term_has_its_temperature(device: str) -> None:
    model = MODELS["anisotropic"]()
    betas = np.array([[0.2, 0.9], [0.7, 0.1], [0.4, 0.4]])
    engine = ss.create_engine(model, 3 * COPIES, ss.Dynamics(seed=3), device)
    engine.set_ladder(betas, COPIES)
    engine.temper(2, 1)
    before, place = configurations(engine), engine.begin_exchange()().place
    engine.apply(ss.SwendsenWang(), Moment(betas, 0, 77))
    expected = [oracle.move(before[k], betas[place[k]], model, "swendsen-wang", 77, k, 0) for k in range(2)]
    np.testing.assert_array_equal(configurations(engine), expected)
    assert holders(place, COPIES).shape == (2, COPIES, 3)


GRAPH = [(0, 1), (1, 2), (2, 0), (2, 3), (3, 4), (4, 5), (5, 2), (5, 6), (6, 7), (7, 0), (1, 6)]
TEMPERATURES = np.array([1.0, 1.7, 2.6])
SMALL = {
    "square": lambda: ss.Ising(ss.square(3)),
    "glass in a field": lambda: ss.EdwardsAnderson(ss.square(3), seed=2, field=0.5),
    "cubic": lambda: ss.EdwardsAnderson(ss.cubic(2), seed=2),
    "Gaussian": lambda: ss.EdwardsAnderson(ss.square(3), couplings="gaussian", seed=2, field=0.3),
    "random fields": lambda: ss.Ising(ss.square(3), field=np.resize([0.7, -0.4, 0.1, 0.0], 9)),
    "graph": lambda: ss.Ising(ss.Graph(8, np.array(GRAPH)), np.resize([1.0, -1.0, 0.0, -1.0, 0.5], len(GRAPH))),
    "two terms": lambda: ss.Ising(ss.square(3), along_axes(), terms=np.resize([0, 1], 18)),
}


def along_axes() -> npt.NDArray[np.float64]:
    return np.resize([1.0, 0.5], 18)


HOW = {"thermalize": 4, "sweeps": 20, "measure_every": 2, "seed": 5, "device": "cpu", "replicas": 4}


def run(model: ss.Ising, move: str = "swendsen-wang", *, every: int = 2, **settings) -> ss.TemperResult:
    return ss.temper(model, TEMPERATURES, moves=[(MOVES[move], every)], **HOW | settings)


def check_same(one: ss.TemperResult, other: ss.TemperResult) -> None:
    for name in ("energy", "magnetization", "overlap", "permutation"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


@pytest.mark.parametrize("move", MOVES)
@pytest.mark.parametrize("name", SMALL)
def test_against_enumeration(name: str, move: str) -> None:
    """Energies, magnetisations and overlaps of two copies."""
    model = SMALL[name]()
    result = run(model, move, every=1, thermalize=50, sweeps=1000)
    for t, temperature in enumerate(TEMPERATURES):
        exact = Thermal(model, temperature)
        for series, value in (
            (result.energy[:, 0, :, t] / model.sites, exact.mean(exact.energy)),
            ((result.magnetization[:, 0, :, t] / model.sites) ** 2, exact.mean(exact.m**2)),
            ((result.overlap[:, 0, [0, -1], t] / model.sites) ** 2, exact.mean(exact.q**2)),  # copies 0, 1 and 2, 3
        ):
            found = integrated_time(series, chain_axis=1)
            assert abs(found.mean - value) <= 4 * found.mean_error, (temperature, found, value)


@pytest.mark.parametrize("move", MOVES)
def test_alone_against_enumeration(move: str) -> None:
    """Moves without sweeps between them, which are irreducible where single sites flip."""
    model = ss.EdwardsAnderson(ss.square(3), seed=2, field=0.25)
    engine = ss.create_engine(model, 128 * 30, ss.Dynamics(seed=4), "cpu")
    engine.set_beta(0.5)
    for time in range(60):
        engine.apply(MOVES[move], Moment(0.5, time, 9))
    exact, counts = Thermal(model, 2.0), engine.counts()
    energies = counts.energy[0] * model.quantum / model.sites
    for values, value in (
        (energies, exact.mean(exact.energy)),
        (counts.magnetization[0] / model.sites, exact.mean(exact.m)),
        ((counts.magnetization[0] / model.sites) ** 2, exact.mean(exact.m**2)),
    ):
        assert abs(values.mean() - value) <= 4 * values.std() / np.sqrt(values.size), (values.mean(), value)


@pytest.mark.parametrize("name", ["replica-packed", "unpacked"])
@pytest.mark.parametrize(
    ("samples", "replicas", "devices"), [(4, 4, 2), (1, 44, 2), (2, 44, 4)], ids=["samples", "replicas", "both"]
)
def test_split(monkeypatch: pytest.MonkeyPatch, name: str, samples: int, replicas: int, devices: int) -> None:
    monkeypatch.setattr(shares, "SHORTEST_CALL", 0)
    couplings = "gaussian" if name == "unpacked" else "pm-j"
    model = ss.EdwardsAnderson(ss.square(4), samples=samples, couplings=couplings, seed=3)
    whole = run(model, replicas=replicas)
    on_cpus(monkeypatch, devices)
    assert ss.create_engine(model, 3 * replicas, ss.Dynamics(), "cpu", slabs=False).devices == devices
    check_same(whole, run(model, replicas=replicas))


def test_resumed_and_named(tmp_path: Path) -> None:
    model = MODELS["replica-packed"]()
    run(model, every=3, sweeps=10, out=tmp_path / "short.h5")
    whole = run(model, every=3)
    check_same(ss.resume(tmp_path / "short.h5", sweeps=20), whole)
    check_same(ss.temper(model, TEMPERATURES, moves="swendsen-wang:3", **HOW), whole)
    check_same(ss.temper(model, TEMPERATURES, clusters="sw", clusters_every=3, **HOW), whole)
    assert not np.array_equal(whole.energy, run(model, "wolff", every=3).energy)
    for wrong, match in (
        ({"clusters_every": 3}, "clusters alone"),
        ({"clusters": "sw", "moves": "swendsen-wang:2"}, "have them"),
    ):
        with pytest.raises(ss.InputError, match=match):
            ss.temper(model, TEMPERATURES, **wrong, **HOW)


@pytest.mark.parametrize("clusters", ["sw", "wolff", "seeded"])
def test_in_time_against_enumeration(clusters: str) -> None:
    """The general form of a quantum model, whose bonds in time have a temperature of their own."""
    space = ss.Ising(ss.chain(3), field=0.25)
    how = {"thermalize": 50, "sweeps": 600, "measure_every": 2, "seed": 5, "device": "cpu", "replicas": 4}
    result = ss.quantum(space, gamma=1.0, beta=[1.0, 2.0], slices=4, clusters=clusters, clusters_every=1, **how)
    for t, (k_space, k_time) in enumerate(result.points.couplings):
        exact = Thermal(trotter(space, 4), 1 / k_space, k_time=k_time)
        found = integrated_time((result.magnetization[:, 0, :, t] / 12) ** 2, chain_axis=1)
        assert abs(found.mean - exact.mean(exact.m**2)) <= 4 * found.mean_error


@pytest.mark.parametrize("move", MOVES)
@pytest.mark.parametrize("field", [None, [0.3, 0.3, 0.3]])
def test_annealed_against_enumeration(move: str, field: list[float] | None) -> None:
    model = ss.EdwardsAnderson(ss.square(3), seed=2)
    how = {"sweeps": 60, "replicas": 6000, "seed": 5, "device": "cpu", "field": field}
    result = ss.anneal(model, [2.2, 1.4, 0.9], moves=[(MOVES[move], 1)], **how)
    for step, temperature in enumerate(result.temperature):
        exact = Thermal(model if field is None else model.in_field(0.3), temperature)
        for values, value in (
            (result.energy[step, 0] / model.sites, exact.mean(exact.energy)),
            ((result.magnetization[step, 0] / model.sites) ** 2, exact.mean(exact.m**2)),
        ):
            assert abs(values.mean() - value) <= 4 * values.std() / np.sqrt(values.size)
