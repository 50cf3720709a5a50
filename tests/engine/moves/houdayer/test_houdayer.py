"""Houdayer moves: every path equals the plain one, energies of pairs are kept, averages are exact."""

from __future__ import annotations

from pathlib import Path

import houdayer_oracle as oracle
import numpy as np
import numpy.typing as npt
import pytest
from enumeration import Thermal
from several import on_cpus

import spinsim as ss
from spinsim.analysis.autocorrelation import integrated_time
from spinsim.engine.moves import houdayer_cuda as cuda
from spinsim.engine.moves.exchange import holders
from spinsim.engine.moves.move import Moment, modules_of
from spinsim.engine.split import shares
from spinsim.model.trotter import trotter
from spinsim.packing import Packing

RING = [(i, (i + 1) % 30) for i in range(30)] + [(i, (7 * i + 3) % 30) for i in range(30) if i not in (7, 12, 17, 22)]
RING = [(i, j) for i, j in RING if i != j]


def random_graph(values: list[float], field: float = 0.0) -> ss.Ising:
    couplings = np.random.default_rng(1).choice(values, (2, len(RING)))
    return ss.Ising(ss.Graph(30, np.array(RING)), couplings, field)


def diluted(lattice: ss.Lattice) -> ss.Ising:
    couplings = np.random.default_rng(1).choice([-1.0, 0.0, 1.0, 1.0], (2, lattice.bonds))
    return ss.Ising(ss.Graph.of_lattice(lattice), couplings)


MODELS = {
    "replica-packed": lambda: ss.EdwardsAnderson(ss.square(9), samples=2, seed=3),
    "cubic in a field": lambda: ss.EdwardsAnderson(ss.cubic(4), samples=2, seed=3, field=1.0),
    "graph": lambda: random_graph([-1.0, 1.0]),
    "diluted graph": lambda: random_graph([-1.0, 0.0, 1.0], 0.25),
    "open": lambda: ss.EdwardsAnderson(ss.cubic(5, 3, 8, periodic=False), samples=2, seed=3),
    "rows": lambda: diluted(ss.cubic(3, 5, 13)),
    "long rows": lambda: diluted(ss.square(36, 17)),
    "unpacked": lambda: ss.EdwardsAnderson(ss.square(4), samples=2, couplings="gaussian", seed=3),
    "site-packed": lambda: ss.Ising(ss.square(256, 2)),
    "dense": lambda: ss.Ising(ss.Graph(70, np.array(np.triu_indices(70, 1)).T), np.tile([1.0, -1.0, 1.0], 805)),
    "anisotropic": lambda: trotter(ss.EdwardsAnderson(ss.square(3), samples=2, seed=3), 4),
}
LADDER = 1 / np.linspace(0.5, 2.0, 14)
COPIES = 11


def configurations(engine: ss.engine.Engine) -> npt.NDArray[np.int8]:
    samples, replicas = range(engine.model.samples), range(engine.replicas)
    return np.stack([[engine.spins(k, r) for r in replicas] for k in samples])


@pytest.mark.parametrize("name", MODELS)
def test_same_as_oracle(name: str, device: str) -> None:
    """14 x 5 pairs fill two words of pairs, and 154 replicas two blocks."""
    model = MODELS[name]()
    engine = ss.create_engine(model, len(LADDER) * COPIES, ss.Dynamics(seed=3), device)
    engine.set_ladder(LADDER, COPIES)
    for time in range(2):
        engine.temper(3, 1)
        before, place, energy = configurations(engine), engine.begin_exchange()().place, engine.counts().by_term
        holder = holders(place, COPIES)
        engine.apply(ss.Houdayer(), Moment(LADDER, time, 77))
        expected = np.stack([oracle.move(before[k], holder[k], model, 77, k, time) for k in range(model.samples)])
        np.testing.assert_array_equal(configurations(engine), expected)
        assert (expected != before).mean() > 0.05
        changed = engine.counts().by_term - energy
        assert changed.any()
        of_sample = np.arange(model.samples)[:, None, None]
        assert not changed[of_sample, holder].sum(axis=1).any()
        np.testing.assert_array_equal(engine.begin_exchange()().place, place)


def test_without_registers(emulated: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda, "KEPT", ())
    test_same_as_oracle("open", "cuda")


@pytest.mark.parametrize("name", ["replica-packed", "cubic in a field"])
def test_in_global_memory(name: str, emulated: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda, "shared_memory", lambda device: 0)
    test_same_as_oracle(name, "cuda")


def test_without_ladder_all_replicas_are_copies(device: str) -> None:
    model = MODELS["replica-packed"]()
    engine = ss.create_engine(model, 7, ss.Dynamics(seed=3), device)
    engine.set_beta(1.0)
    engine.sweep(3)
    before, every = configurations(engine), np.arange(7)[:, None]
    engine.apply(ss.Houdayer(), Moment(1.0, 5, 77))
    expected = np.stack([oracle.move(before[k], every, model, 77, k, 5) for k in range(2)])
    np.testing.assert_array_equal(configurations(engine), expected)


def test_one_copy_stays_as_it_is(device: str) -> None:
    engine = ss.create_engine(MODELS["replica-packed"](), 14, ss.Dynamics(seed=3), device)
    engine.set_ladder(LADDER, 1)
    before = configurations(engine)
    engine.apply(ss.Houdayer(), Moment(LADDER, 0, 77))
    np.testing.assert_array_equal(configurations(engine), before)


def test_registered_where_words_are_of_replicas() -> None:
    layouts = {layout for layout, _ in modules_of(ss.Houdayer())}
    assert layouts == {Packing.REPLICA, Packing.ANISOTROPIC, Packing.UNPACKED}


GRAPH = [(0, 1), (1, 2), (2, 0), (2, 3), (3, 4), (4, 5), (5, 2), (5, 6), (6, 7), (7, 0), (1, 6)]
TEMPERATURES = np.array([0.6, 1.0, 1.7])
SMALL = {
    "square": lambda: ss.EdwardsAnderson(ss.square(3), seed=2),
    "square in a field": lambda: ss.EdwardsAnderson(ss.square(3), seed=2, field=0.5),
    "cubic": lambda: ss.EdwardsAnderson(ss.cubic(2), seed=2),
    "Gaussian": lambda: ss.EdwardsAnderson(ss.square(3), couplings="gaussian", seed=2),
    "Gaussian in a field": lambda: ss.EdwardsAnderson(ss.square(3), couplings="gaussian", seed=2, field=0.3),
    "graph": lambda: ss.Ising(ss.Graph(8, np.array(GRAPH)), np.resize([1.0, -1.0, 1.0, -1.0, -1.0], len(GRAPH))),
}


HOW = {"thermalize": 4, "sweeps": 20, "measure_every": 2, "seed": 5, "device": "cpu", "replicas": 4}


def run(model: ss.Ising, *, every: int = 2, **settings) -> ss.TemperResult:
    return ss.temper(model, TEMPERATURES, moves=[(ss.Houdayer(), every)], **HOW | settings)


def check_same(one: ss.TemperResult, other: ss.TemperResult) -> None:
    for name in ("energy", "magnetization", "overlap", "permutation"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


@pytest.mark.parametrize("name", SMALL)
def test_against_enumeration(name: str) -> None:
    model = SMALL[name]()
    result = run(model, every=1, thermalize=200, sweeps=6000)
    for t, temperature in enumerate(TEMPERATURES):
        exact = Thermal(model, temperature)
        for series, value in (
            (result.energy[:, 0, :, t] / model.sites, exact.mean(exact.energy)),
            ((result.magnetization[:, 0, :, t] / model.sites) ** 2, exact.mean(exact.m**2)),
            ((result.overlap[:, 0, [0, -1], t] / model.sites) ** 2, exact.mean(exact.q**2)),  # copies 0, 1 and 2, 3
        ):
            found = integrated_time(series, chain_axis=1)
            assert abs(found.mean - value) <= 4 * found.mean_error, (temperature, found, value)


@pytest.mark.parametrize("name", ["square", "Gaussian"])
@pytest.mark.parametrize(
    ("samples", "replicas", "devices"), [(4, 4, 2), (1, 44, 2), (2, 44, 4)], ids=["samples", "replicas", "both"]
)
def test_split(monkeypatch: pytest.MonkeyPatch, name: str, samples: int, replicas: int, devices: int) -> None:
    monkeypatch.setattr(shares, "SHORTEST_CALL", 0)
    couplings = "gaussian" if name == "Gaussian" else "pm-j"
    model = ss.EdwardsAnderson(ss.square(4), samples=samples, couplings=couplings, seed=3)
    whole = run(model, replicas=replicas)
    on_cpus(monkeypatch, devices)
    assert ss.create_engine(model, 3 * replicas, ss.Dynamics(), "cpu", slabs=False).devices == devices
    check_same(whole, run(model, replicas=replicas))


def sparse_and_dense() -> list[ss.Ising]:
    """Rings of 40 sites with four bonds each, and with nine, which join all neighbourhoods."""
    ring = [[(i, (i + step) % 40) for step in range(1, most) for i in range(40)] for most in (3, 5)]
    ring[1] += [(i, i + 20) for i in range(20)]
    return [ss.Ising(ss.Graph(40, np.array(bonds)), np.resize([1.0, -1.0, 1.0], len(bonds))) for bonds in ring]


def test_auto_is_for_sparse_graphs_and_two_copies() -> None:
    short = {"sweeps": 10, "thermalize": 0, "device": "cpu", "houdayer": "auto", "swap_every": 2}
    sparse, dense = sparse_and_dense()
    for model, replicas, moves in ((sparse, 2, "houdayer:10"), (sparse, 1, None), (dense, 2, None)):
        found = ss.temper(model, TEMPERATURES, replicas=replicas, **short).config["temper"]
        assert (found["moves"], found["houdayer"]) == (moves, "auto")
    in_time = ss.quantum(sparse, slices=4, **short).config["quantum"]
    assert (in_time["moves"], in_time["houdayer"]) == ("houdayer:10", "auto")


def test_searches_of_sparse_graphs_have_moves(tmp_path: Path) -> None:
    sparse, dense = sparse_and_dense()
    short = {"time_limit": 0.001, "device": "cpu", "threads": 1}
    lattice = ss.Ising(ss.square(4))
    for model, given, moves in (
        (sparse, {}, "houdayer:5"), (sparse, {"houdayer": 0}, None), (dense, {}, None), (lattice, {}, None),
        (dense, {"houdayer": 3}, "houdayer:3"), (lattice, {"houdayer": "auto"}, "houdayer:5"),
    ):  # fmt: skip
        assert ss.temper(model, **short, **given).config["temper"]["moves"] == moves
    path = tmp_path / "begun.h5"
    ss.temper(sparse, **short, houdayer=0, out=path)
    assert ss.temper(sparse, **short, out=path).config["temper"]["moves"] is None  # as its file has it


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"houdayer": "often"}, "houdayer 'often' is no number of sweeps"),
        ({"houdayer": 2.5}, "houdayer = 2.5 has the wrong type"),
        ({"houdayer": 4, "moves": "houdayer:8"}, "houdayer 4 does not go with moves houdayer:8"),
        ({"houdayer": 3, "swap_every": 2}, "no multiple of swap_every 2"),
    ],
)
def test_refused(given: dict, sentence: str) -> None:
    with pytest.raises(ss.InputError, match=sentence):
        run_with(**given)


def run_with(**given) -> ss.TemperResult:
    return ss.temper(SMALL["square"](), TEMPERATURES, **HOW | given)


def test_beside_moves_of_a_user() -> None:
    class Stays:
        name = "stays"

        def apply(self, batch: ss.Batch) -> None:
            """Leave all as it is."""

    found = run_with(moves=[(Stays(), 4)], houdayer=2)
    assert found.config["temper"]["moves"] == "stays:4,houdayer:2"
    check_same(found, run_with(houdayer=2))


def test_resumed(tmp_path: Path) -> None:
    model = MODELS["replica-packed"]()
    run(model, every=3, sweeps=10, out=tmp_path / "short.h5")
    whole = run(model, every=3)
    check_same(ss.resume(tmp_path / "short.h5", sweeps=20), whole)
    for same in ({"moves": "houdayer:3"}, {"houdayer": 3}):
        check_same(ss.temper(model, TEMPERATURES, **same, **HOW), whole)
    for text in ("houdayer", "houdayer:0", "houdayer:3,houdayer:3", "houdayer:3,mine:2"):
        with pytest.raises(ss.InputError, match=r"houdayer"):
            ss.temper(model, TEMPERATURES, moves=text, **HOW)
    assert not np.array_equal(whole.energy, run(model, every=4).energy)
