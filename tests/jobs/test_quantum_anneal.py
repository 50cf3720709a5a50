"""Quantum anneals: their slices against the oracle, ground states, both limits of the field, files and refusals."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import oracle
import pytest
from engines import plainly
from exact import assert_agree, enumerate_states, replica_mean
from harness import run
from places import DATA

import spinsim as ss
from spinsim.engine import create_engine
from spinsim.jobs.anneal.settings import Anneal, AnnealSettings
from spinsim.model.trotter import trotter
from spinsim.sampling import BestSlices, InField, annealing

MODELS = {
    "pm-j": lambda: ss.EdwardsAnderson(ss.square(4), samples=2, seed=1),
    "gaussian-open": lambda: ss.EdwardsAnderson(ss.square(4, periodic=False), couplings="gaussian", seed=1),
    "graph": lambda: ss.Ising(ss.Graph(5, [(0, 1), (1, 2), (2, 3), (3, 4), (4, 0), (0, 2)]), [1, -1, 1, 1, -1, 1]),
    "random-field": lambda: ss.EdwardsAnderson(ss.square(4), random_field=0.7, seed=1, samples=2),
}
GAMMAS = np.array([3.0, 2.0, 1.0, 0.4, 0.1])
TEMPERATURE, SLICES = 0.2, 6
SERIES = ("temperature", "gamma", "energy", "mean_slice_energy", "magnetization", "best_energy", "best_spins")


def anneal(model: ss.Ising, **options: Any) -> ss.AnnealResult:
    return ss.anneal(
        model, **{"quantum": True, "slices": 4, "steps": 12, "sweeps": 3, "replicas": 5, "seed": 7, **options}
    )


class Stop:
    """Interrupts a run that reports so many times."""

    def __init__(self, after: int) -> None:
        self._left = after

    def __call__(self, updates: int) -> None:
        self._left -= 1
        if not self._left:
            import signal

            signal.raise_signal(signal.SIGINT)


def assert_same(one: ss.AnnealResult, other: ss.AnnealResult) -> None:
    for name in SERIES:
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), name)


@pytest.mark.parametrize("name", MODELS)
def test_best_slices_equal_the_oracle(device: str, name: str) -> None:
    space, replicas, dynamics = MODELS[name](), 5, ss.Dynamics(seed=7)
    model = trotter(space, SLICES, by_term=True)
    engine = BestSlices(space, create_engine(model, replicas, dynamics, device))
    spins, uniform = plainly(engine.engine, dynamics)
    step, lines = 1 / TEMPERATURE / SLICES, model.graph.world_lines()
    frames = annealing(engine, [TEMPERATURE] * len(GAMMAS), 2, gammas=GAMMAS)
    for number, frame in enumerate(frames):
        pair = np.array([[step, -np.log(np.tanh(GAMMAS[number] * step)) / 2]])
        oracle.sweep(model, spins, pair, 7, 2, uniform, dynamics.zero_acceptance, 2 * number, in_pairs=True)
        by_slice = spins[:, lines]  # (samples, sites of space, slices, replicas)
        energy = np.stack([space.energy(by_slice[:, :, t]) for t in range(SLICES)], axis=1)
        np.testing.assert_array_equal(frame.measured.energy, energy.min(axis=1))
        np.testing.assert_allclose(frame.mean_slice_energy, energy.mean(axis=1), rtol=1e-14)
        best = energy.argmin(axis=1)
        for k, r in np.ndindex(*best.shape):
            chosen = by_slice[k, :, best[k, r], r]
            np.testing.assert_array_equal(engine.spins(k, r), chosen)
            assert frame.measured.magnetization[k, r] == chosen.sum(dtype=np.int64)
        chosen = np.stack([np.stack([engine.spins(k, r) for r in range(replicas)], -1) for k in range(space.samples)])
        np.testing.assert_array_equal(frame.measured.staggered_magnetization, oracle.staggered(space, chosen))
        assert (frame.gamma, frame.temperature) == (GAMMAS[number], TEMPERATURE)
    assert number == len(GAMMAS) - 1


@pytest.mark.parametrize("name", MODELS)
def test_ground_states(name: str) -> None:
    model = MODELS[name]()
    result = anneal(model, slices=16, steps=40, sweeps=10, replicas=20)
    np.testing.assert_array_equal(result.best_energy.min(axis=1), model.energy(result.best_spins[:, :, None])[:, 0])
    states = 2 * (np.arange(2**model.sites) >> np.arange(model.sites)[:, None] & 1).astype(np.int8) - 1
    ground = model.energy(np.broadcast_to(states, (model.samples, *states.shape))).min(axis=1)
    np.testing.assert_array_equal(result.best_energy.min(axis=1), ground)
    assert (result.energy <= result.mean_slice_energy + 1e-9).all()


def test_instances_have_cuts() -> None:
    model = ss.read_instance(DATA / "t2g10_5555.mc")
    result = ss.anneal(model, quantum=True, steps=100, sweeps=10, replicas=16, seed=2)
    assert result.cut == 6049461  # the known maximum


def test_slices_in_a_strong_field_are_strangers() -> None:
    """Each is then in equilibrium at the temperature of a slice by itself."""
    model = MODELS["random-field"]()
    result = anneal(model, gamma_start=20.0, gamma_stop=20.0, beta=2.0, slices=4, steps=100, sweeps=2, replicas=100)
    energy = result.mean_slice_energy[20:]
    exact = [enumerate_states(model, 2.0, k).energy * model.sites for k in range(2)]
    assert_agree([(f"sample {k}", *replica_mean(energy[:, k]), exact[k]) for k in range(2)])


def test_slices_in_no_field_are_bound() -> None:
    """No spin turns against both of its neighbours in time."""
    model = MODELS["gaussian-open"]()
    result = anneal(model, gamma_start=1e-7, gamma_stop=1e-8, beta=1.0, start="up")
    np.testing.assert_allclose(result.mean_slice_energy, model.energy(np.ones((1, 16)))[0], rtol=1e-14)
    start = np.where(np.arange(16) % 3, 1, -1)
    given = anneal(model, gamma_start=1e-7, gamma_stop=1e-8, beta=1.0, start=start)
    np.testing.assert_array_equal(given.best_spins[0], start)


@pytest.mark.parametrize("name", MODELS)
def test_temperatures_and_fields_that_change_too(device: str, name: str) -> None:
    """Each step has the bits of the oracle in its own temperature, uniform field and transverse field."""
    space, replicas, dynamics = MODELS[name](), 3, ss.Dynamics(seed=7)
    make = partial(create_engine, replicas=replicas, device=device)
    in_field = InField(
        make(trotter(space, SLICES, by_term=True), dynamics=dynamics),
        partial(make, dynamics=ss.Dynamics(seed=7, start="up")),
    )
    engine = BestSlices(space, in_field)
    spins, uniform = plainly(engine.engine, dynamics)
    temperatures, fields = [0.5, 0.4, 0.4, 0.3], [0.0, 0.5, 0.5, -0.25]
    frames = annealing(engine, temperatures, 2, gammas=GAMMAS[:4], fields=fields)
    for number, frame in enumerate(frames):
        there = space.in_field(fields[number])
        model, step = trotter(there, SLICES, by_term=True), 1 / temperatures[number] / SLICES
        lines = model.graph.world_lines()
        pair = np.array([[step, -np.log(np.tanh(GAMMAS[number] * step)) / 2]])
        oracle.sweep(model, spins, pair, 7, 2, uniform, dynamics.zero_acceptance, 2 * number, in_pairs=True)
        by_slice = spins[:, lines]
        energy = np.stack([there.energy(by_slice[:, :, t]) for t in range(SLICES)], axis=1)
        np.testing.assert_allclose(frame.measured.energy, energy.min(axis=1), rtol=1e-12)
        np.testing.assert_allclose(frame.mean_slice_energy, energy.mean(axis=1), rtol=1e-12)
        assert (frame.gamma, frame.temperature, frame.field) == (GAMMAS[number], temperatures[number], fields[number])
    assert number == 3


def test_slices_cool_and_turn_together() -> None:
    """In a strong transverse field each is in equilibrium at the present temperature and uniform field of a slice."""
    model, steps = MODELS["random-field"](), 60
    temperatures, fields = np.repeat([0.5, 1.0], steps), np.repeat([0.4, -0.3], steps)
    result = ss.anneal(
        model,
        temperatures,
        quantum=True,
        gamma_start=20.0,
        gamma_stop=20.0,
        slices=4,
        sweeps=2,
        replicas=100,
        field=fields,
    )
    rows = []
    for first, temperature, field in ((0, 0.5, 0.4), (steps, 1.0, -0.3)):
        energy = result.mean_slice_energy[first + 20 : first + steps]
        for k in range(2):
            exact = enumerate_states(model.in_field(field), 4 * temperature, k).energy * model.sites
            rows.append((f"T = {temperature}, sample {k}", *replica_mean(energy[:, k]), exact))
    assert_agree(rows)
    np.testing.assert_array_equal(result.best_energy.min(axis=1), model.energy(result.best_spins[:, :, None])[:, 0])


def test_one_temperature_however_it_is_said() -> None:
    model = MODELS["pm-j"]()
    one = anneal(model, beta=2.0)
    for same in (
        {"t_start": 0.5, "t_stop": 0.5},
        {"temperatures": [0.5] * 12, "steps": None},
        {"beta": 2.0, "field": [0.0] * 12},
    ):
        assert_same(anneal(model, **same), one)
    cooled = anneal(model, t_start=1.0, t_stop=0.5, schedule="linear")
    np.testing.assert_allclose(cooled.temperature, np.linspace(1.0, 0.5, 12))


def test_files_of_fields_and_measures(tmp_path: Path) -> None:
    model, path = MODELS["pm-j"](), tmp_path / "run.h5"
    options: dict[str, Any] = {
        "field": np.linspace(1, 0, 12),
        "t_start": 1.0,
        "measure": {"up": lambda b: b.spins.sum(axis=-1)},
    }
    whole = anneal(model, **options)
    np.testing.assert_array_equal(whole.measured["up"], whole.magnetization)
    with pytest.raises(KeyboardInterrupt):
        anneal(model, out=path, on_updates=Stop(4), **options)
    ss.resume(path, measure=options["measure"])
    assert_same(ss.load(path), whole)
    np.testing.assert_array_equal(ss.load(path).measured["up"], whole.measured["up"])


@pytest.mark.parametrize("name", ["pm-j", "gaussian-open"])
def test_files_interrupted_and_resumed(name: str, tmp_path: Path, monkeypatch, capsys) -> None:
    model, path = MODELS[name](), tmp_path / "run.h5"
    options: dict[str, Any] = {"steps": 6, "save_configurations": 2}
    whole = anneal(model, **options)
    with pytest.raises(KeyboardInterrupt):
        anneal(model, out=path, on_updates=Stop(4), **options)
    assert not ss.load(path).finished
    ss.resume(path)
    found = ss.load(path)
    assert_same(found, whole)
    np.testing.assert_array_equal(found.configurations[:], whole.configurations[:])
    again = ss.recount(path)
    np.testing.assert_array_equal(again.energy, whole.energy[1::2])
    np.testing.assert_array_equal(again.gamma, whole.gamma[1::2])
    shown = run(capsys, monkeypatch, "show", path)
    assert shown.status == 0
    assert "E/N of best slices" in shown.out
    assert run(capsys, monkeypatch, "check", path).status == 0
    copy = tmp_path / "copy.h5"
    found.save(copy)
    assert_same(ss.load(copy), whole)
    assert {"gamma", "mean_slice_energy_per_site"} <= set(ss.table(path).columns)
    assert "mean_slice_energy" in found.dataset()


def test_the_command(tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    line = (
        "anneal --size 4 --couplings pm-j --quantum --gamma-start 3 --gamma-stop 0.05 --slices 8 --steps 5 --out q.h5"
    )
    done = run(capsys, monkeypatch, *line.split())
    assert done.status == 0
    assert "8 slices at T = 0.125, Gamma = 3 to 0.05 in 5 steps" in " ".join(done.out.split())
    assert run(capsys, monkeypatch, "plot", "q.h5").status == 0
    assert "all its slices" in " ".join((tmp_path / "q-thermodynamics.txt").read_text().split())
    result = ss.load("q.h5")
    np.testing.assert_allclose(result.gamma[[0, -1]], [3.0, 0.05])
    assert set(result.temperature) == {0.125}


def test_quantum_counts_in_the_identity() -> None:
    config = Anneal(anneal=AnnealSettings(t_start=3.0, t_stop=0.1))
    assert Anneal(anneal=AnnealSettings(t_start=3.0, t_stop=0.1, quantum=True)).sha256(None) != config.sha256(None)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"slices": 5}, "slices 5 are odd"),
        ({"quantum": False}, "slices 4 goes with quantum alone: give quantum=True"),
        ({"quantum": False, "slices": None, "beta": 2.0}, "beta 2.0 goes with quantum alone"),
        ({"temperatures": [1.0], "steps": None, "beta": 1.0}, "temperatures .* does not go with beta, one temperature"),
        ({"field": [1.0] * 2}, "field has 2 numbers for 12 temperatures"),
        ({"t_start": 2.0, "beta": 1.0}, "t_start 2.0 does not go with beta, one temperature for all steps"),
        ({"beta": 1e5}, "leaves slices that do not interact: give more slices"),
        ({"gamma_stop": 1e-12}, "leaves no spin free in time: give fewer slices"),
        ({"gamma_start": -1.0}, "gamma_start -1.0 is out of range"),
    ],
)
def test_refusals(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ss.InputError, match=message):
        anneal(MODELS["pm-j"](), **options)


def test_slices_that_do_not_fit_in_memory_are_refused_before_they_are_made() -> None:
    with pytest.raises(ss.InputError, match=r"in 1048576 slices needs .* TiB of memory but .*: give fewer slices"):
        ss.anneal(ss.Ising(ss.square(1000)), quantum=True, slices=2**20, steps=1, sweeps=1, replicas=1)


def test_samplers_refuse_what_does_not_go_together() -> None:
    space = MODELS["pm-j"]()
    make = partial(create_engine, replicas=2, dynamics=ss.Dynamics())
    engine = BestSlices(space, make(trotter(space, 4, by_term=True)))
    with pytest.raises(ss.InputError, match="give gammas and BestSlices, or neither"):
        annealing(engine, [1.0], 1)
    with pytest.raises(ss.InputError, match="give an InField"):
        annealing(engine, [1.0], 1, gammas=[1.0], fields=[1.0])
    with pytest.raises(ss.InputError, match="gamma has 2 numbers for 1 temperature"):
        annealing(engine, [1.0], 1, gammas=[1.0, 2.0])
    with pytest.raises(ss.InputError, match="give gammas and BestSlices"):
        annealing(make(space), [1.0], 1, gammas=[1.0])
