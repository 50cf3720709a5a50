"""What models keep of what follows from them."""

from __future__ import annotations

from copy import copy

import numpy as np
import pytest

import spinsim as ss
from spinsim.model import graph, hamiltonian
from spinsim.model.ising import Ising


def made(model: Ising, name: str) -> list[str]:
    """Anything that is worked out of a model."""
    return [model.name, name]


@pytest.fixture
def model() -> Ising:
    return ss.EdwardsAnderson(ss.square(4), samples=3, seed=2)


def test_what_follows_from_a_model_is_worked_out_once(model: Ising) -> None:
    assert model.once(made, "a") is model.once(made, "a")
    assert model.once(made, "b") == [model.name, "b"]


def test_copies_of_a_model_keep_nothing_of_it(model: Ising) -> None:
    found = model.once(made, "a")
    for other in (model.of_samples(1, 3), copy(model)):
        assert other.once(made, "a") is not found
    assert model.once(made, "a") is found


def test_large_models_keep_numbers_alone(model: Ising, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hamiltonian, "MOST_KEPT", 3 * (16 + 32) - 1)
    assert model.once(made, "a") is not model.once(made, "a")
    calls = []
    for result in (1, 2.5, None, (1.0, True)):

        def number(_: Ising, result: object = result) -> object:
            calls.append(result)
            return result

        assert model.once(number) == model.once(number) == result
    assert len(calls) == 4


def test_a_model_does_not_change_with_the_arrays_that_it_was_made_of() -> None:
    edges = np.array([[0, 1], [1, 2], [2, 0]], np.int32)
    couplings, field = np.array([1.0, -1.0, 1.0]), np.array([0.5, 0.0, 0.0])
    model = Ising(ss.Graph(3, edges), couplings, field)
    before = model.content_sha256()
    edges[0], couplings[0], field[0] = 2, 7.0, 0.0
    assert model.content_sha256() == before
    with pytest.raises(ValueError, match="read-only"):
        model.couplings[0, 0] = 3.0


@pytest.mark.parametrize("view", ["rows", "frozen", "number"])
def test_a_model_does_not_change_with_what_its_arrays_are_views_of(view: str) -> None:
    whole = np.ones(1 if view == "number" else 32)
    given = {"rows": np.broadcast_to(whole, (2, 32)), "frozen": whole.view(), "number": np.broadcast_to(whole, (2, 32))}
    given[view].flags.writeable = False
    model = ss.Ising(ss.square(4), given[view])
    before = ss.anneal(model, [0.3], 20, 4).best_energy
    whole *= -1
    after = ss.anneal(model, [0.3], 20, 4)
    np.testing.assert_array_equal(after.best_energy, before)
    assert model.energy(after.best_spins)[0] == after.best_energy[0].min()


def test_bonds_have_two_ends_of_which_models_keep_both(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (graph, hamiltonian):
        monkeypatch.setattr(module, "MOST_KEPT", 24 + 16)
    edges = np.random.default_rng(1).permuted(np.tile(np.arange(16, dtype=np.int32), (24, 1)), axis=1)[:, :2].copy()
    model = ss.Ising(ss.Graph(16, edges))
    assert model.once(made, "a") is model.once(made, "a")
    assert not np.shares_memory(model.graph.edges, edges)


def test_two_runs_of_one_model_are_those_of_two_models() -> None:
    """A search shares the order of sites with the runs before it, and none of their spins."""
    model = ss.EdwardsAnderson(ss.square(4), seed=2)
    first = [ss.anneal(model, [2.0, 1.0], 5, replicas, seed) for replicas, seed in ((128, 1), (200, 2), (128, 1))]
    other = ss.anneal(ss.EdwardsAnderson(ss.square(4), seed=2), [2.0, 1.0], 5, 200, 2)
    assert np.array_equal(first[0].energy, first[2].energy)
    assert np.array_equal(first[1].energy, other.energy)


def test_attributes_that_a_model_does_not_have_are_refused(model: Ising) -> None:
    for name in ("field", "copuling"):
        with pytest.raises(ss.InputError, match=f"a model has no {name} to set"):
            setattr(model, name, 5.0)
    model.name = "another"


ZEROS = {
    "number": {"field": -0.0},
    "array": {"field": [-0.0, 0.0, -0.0]},
    "samples": {"field": np.full((2, 3), -0.0)},
    "coupling": {"couplings": -0.0},
    "couplings": {"couplings": [-0.0, -0.0]},
    "rounded": {"couplings": [1e40, 1e40], "field": -1e-30},
    "one of several": {"couplings": [-0.0, 1.0], "field": [-0.0, 1.0, 0.0]},
}


@pytest.mark.filterwarnings("ignore:couplings and fields")
@pytest.mark.parametrize("name", ZEROS)
def test_zeros_with_a_sign(name: str, tmp_path) -> None:
    """Files leave fields of 0 out, while those of -0.0 counted otherwise in the identity: files were damaged."""
    model, path = Ising(ss.chain(3, periodic=False), **({"couplings": 1.0} | ZEROS[name])), tmp_path / "a.h5"
    ss.temper(model, [1.0, 2.0], sweeps=20, out=path)
    assert ss.load(path).model.content_sha256() == model.content_sha256()
    assert len(ss.resume(path, sweeps=40).energy) == 4
    if name != "one of several":
        signed = [np.signbit(values[values == 0]).any() for values in (model.couplings, model.fields)]
        assert not any(signed)
