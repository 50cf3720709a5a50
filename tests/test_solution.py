"""Solutions in the labels of the problem: in files, as text, as JSON, on the command line and in Python."""

from __future__ import annotations

import importlib.util
import json
import math
import re

import dimod
import h5py
import networkx as nx
import numpy as np
import pytest
from harness import run
from places import ROOT

import spinsim as ss

QUBO = {("x", "x"): -1, ("x", ("y", 1)): 2, (7, 7): 3, (("y", 1), "two words"): -1.25, ("7", 7): 0.5}
LABELS = ["x", ("y", 1), 7, "two words", "7"]
SHORT = {"steps": 20, "sweeps": 5, "replicas": 8, "seed": 2}


def model() -> ss.Ising:
    return ss.Ising.from_qubo(QUBO, offset=0.5, name="tiny")


def value(values: dict) -> float:
    return 0.5 + sum(v * values[a] * values[b] for (a, b), v in QUBO.items())


def test_the_best_state_is_in_the_words_of_the_problem(tmp_path):
    result = ss.anneal(model(), out=tmp_path / "run.h5", **SHORT)
    best = result.best
    assert list(best.labels) == LABELS
    assert best.energy == value(best.by_label) == -0.75
    assert best["two words"] == best[("y", 1)] == 1
    assert best.replica_energies.min() == best.energy
    assert repr(best) == f"Solution(5 sites, energy -0.75, met by {best.hits} of 8 replicas)"
    loaded = ss.load(tmp_path / "run.h5")
    assert [type(label) for label in loaded.model.labels] == [type(label) for label in LABELS]
    assert loaded.best.by_label == best.by_label
    assert loaded.model.to_qubo() == ({(a, a): 0 for a in LABELS} | QUBO, 0.5)
    again = ss.anneal(model(), out=tmp_path / "run.h5", **SHORT)
    assert again.attributes["created"] == result.attributes["created"]
    renamed = ss.Ising.from_qubo({tuple(f"{a}!" for a in pair): v for pair, v in QUBO.items()}, 0.5, name="tiny")
    with pytest.raises(ss.InputError, match="holds another run"):
        ss.anneal(renamed, out=tmp_path / "run.h5", **SHORT)


def test_files_of_solutions(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model().save("tiny.coo")
    short = [f"--{key}={one}" for key, one in SHORT.items()]
    anneal = ["anneal", "tiny.coo", "--out", "run.h5", "--quiet", *short]
    assert run(capsys, monkeypatch, *anneal, "--solution", "best.txt").status == 0
    text = (tmp_path / "best.txt").read_text()
    lines = text.splitlines()
    assert lines[0] == "# tiny, sample 0: energy -0.75"
    assert [line.rpartition(" ")[0] for line in lines[1:]] == ["x", '["y", 1]', "7", '"two words"', '"7"']
    assert run(capsys, monkeypatch, "show", "run.h5", "--solution").out == text
    assert run(capsys, monkeypatch, *anneal, "--solution", "best.json").status == 0
    found = json.loads((tmp_path / "best.json").read_text())
    assert found == json.loads(run(capsys, monkeypatch, "show", "run.h5", "--solution", "--json").out)
    assert found["labels"] == ["x", ["y", 1], 7, "two words", "7"]
    assert found["vartype"] == "BINARY"
    (one,) = found["solutions"]
    assert value(dict(zip(LABELS, one["values"], strict=True))) == one["energy"] == -0.75
    assert len(one["replicas"]) == 8
    done = run(capsys, monkeypatch, "anneal", "tiny.coo", "--solution", "best.doc", *short)
    assert (done.status, "ends in '.doc': give a file that ends in .txt or .json" in done.err) == (2, True)
    other = run(capsys, monkeypatch, "anneal", "tiny.coo", "--solution", "best.txt", "--steps=3")
    assert (other.status, "best.txt exists already" in other.err) == (2, True)
    assert not (tmp_path / "runs").exists()


def test_cuts_spins_and_several_samples(tmp_path):
    cut = ss.Ising(ss.Graph(3, [(0, 1), (1, 2), (2, 0)]), -1.0, maxcut_weight=3.0, labels=[5, 6, 7])
    result = ss.anneal(cut, solution=tmp_path / "cut.txt", **SHORT)
    assert (result.best.cut, result.best.energy) == (2, -1)
    assert sorted(map(abs, result.best.by_label.values())) == [1, 1, 1]
    assert (tmp_path / "cut.txt").read_text().startswith("# graph-3, sample 0: energy -1.0, cut 2.0\n5 ")
    glass = ss.EdwardsAnderson(ss.square(4), samples=2)
    result = ss.anneal(glass, **SHORT)
    assert [one.sample for one in result.solutions] == [0, 1]
    for one in result.solutions:
        spins = np.broadcast_to(one.values[None, :, None], (2, 16, 1))
        assert glass.energy(spins)[one.sample, 0] == one.energy
    with pytest.raises(ss.InputError, match=r"2 samples, which are different problems.*ask for its solutions"):
        _ = result.best
    tempered = ss.temper(cut, temperatures=[0.5, 1, 2], sweeps=50, thermalize=10)
    assert tempered.best.cut == 2
    quantum = ss.quantum(ss.Ising(ss.chain(4)), k=[0.3], slices=4, sweeps=20, thermalize=5)
    with pytest.raises(ss.InputError, match="keeps no lowest states: anneal or temper it"):
        _ = quantum.best


def test_the_best_state_of_every_replica(tmp_path):
    plain = ss.anneal(model(), **SHORT)
    kept = ss.anneal(model(), best_states=True, out=tmp_path / "run.h5", solution=tmp_path / "all.json", **SHORT)
    assert kept.best.by_label == plain.best.by_label
    for found in (kept, ss.load(tmp_path / "run.h5"), ss.anneal(model(), best_states=True, **SHORT)):
        best = found.best
        assert best.replica_values.shape == (8, 5)
        for values, energy in zip(best.replica_values.tolist(), best.replica_energies, strict=True):
            assert value(dict(zip(LABELS, values, strict=True))) == energy
    kept.save(tmp_path / "copy.h5")
    assert (ss.load(tmp_path / "copy.h5").best_states == kept.best_states).all()
    one = json.loads((tmp_path / "all.json").read_text())["solutions"][0]
    assert one["replicas"][3] == {"energy": best.replica_energies[3], "values": best.replica_values[3].tolist()}
    assert plain.best.replica_values is None


def test_states_of_replicas_survive_an_interruption(tmp_path):
    glass, calls = ss.EdwardsAnderson(ss.square(6), samples=2, seed=3), []

    def stop(done: int) -> None:
        calls.append(done)
        if len(calls) == 12:
            raise KeyboardInterrupt

    path, long, text = tmp_path / "run.h5", SHORT | {"best_states": True}, tmp_path / "best.txt"
    with pytest.raises(KeyboardInterrupt):
        ss.anneal(glass, out=path, solution=text, checkpoint_every=0, on_updates=stop, **long)
    assert not text.exists()
    assert 0 < len(ss.load(path).temperature) < 20
    whole, resumed = ss.anneal(glass, **long), ss.resume(path)
    assert (resumed.best_states == whole.best_states).all()
    assert text.read_text().count("# ") == 2
    assert (resumed.best_energy == whole.best_energy).all()


def test_labels_in_a_damaged_file_are_refused(tmp_path):
    strange = ss.Ising(ss.chain(2), labels=[frozenset("a"), "frozenset({'a'})"])
    with pytest.raises(ss.InputError, match="cannot be told apart in a file"):
        ss.anneal(strange, out=tmp_path / "same.h5", **SHORT)
    named = ss.Ising(ss.chain(2), labels=[frozenset("a"), "b"])
    assert list(ss.anneal(named, out=tmp_path / "named.h5", **SHORT).best.labels) == list(named.labels)
    assert list(ss.load(tmp_path / "named.h5").best.labels) == ["frozenset({'a'})", "b"]
    for label in (b'"b"', b"[", b"\xff", b"NaN"):
        path = tmp_path / "run.h5"
        path.unlink(missing_ok=True)
        ss.anneal(named, **SHORT).save(path)
        with h5py.File(path, "r+") as file:
            file["model/labels"][0] = label
        with pytest.raises(ss.InputError, match="is damaged"):
            ss.load(path)


def test_energies_of_what_is_no_configuration():
    of_two = ss.EdwardsAnderson(ss.square(4), samples=2, seed=1)
    best = ss.anneal(model(), **SHORT).best
    assert model().energy(2 * best.values[None].astype(int) - 1) + model().offset == best.energy
    for asked, spins, words in (
        (model(), best.values, r"have shape \(5,\)"),
        (model(), best.values[None], "hold 0.* 2 x - 1"),
        (of_two, np.ones((1, 16)), "samples = 2, sites = 16"),
        (of_two, "up", "has the wrong type: give a number or an array of numbers"),
    ):
        with pytest.raises(ss.InputError, match=words):
            asked.energy(spins)


def test_sample_sets_of_dimod():
    pytest.importorskip("dimod")
    result = ss.anneal(model(), best_states=True, **SHORT)
    found = result.to_sampleset()
    assert list(found.variables) == LABELS
    assert found.record.energy.tolist() == result.best.replica_energies.tolist()
    assert found.vartype.name == "BINARY"
    assert type(found).from_serializable(found.to_serializable()).first.energy == result.best.energy
    glass = ss.anneal(ss.EdwardsAnderson(ss.square(4), samples=2, seed=1), **SHORT).to_sampleset()
    assert glass.record.disorder_sample.tolist() == [0, 1]


def test_energies_of_rounded_problems_are_those_of_the_values_given(tmp_path):
    """A penalty that is much larger than the objective leaves the quantum coarse; reports must not show it."""
    objective = np.random.default_rng(0).normal(size=12)
    for penalty in (1e10, 1e13):
        qubo = {(i, i): objective[i] - 5 * penalty for i in range(12)}
        qubo |= {(i, j): 2 * penalty for i in range(12) for j in range(i)}
        problem = ss.Ising.from_qubo(qubo, offset=9 * penalty)
        found = ss.anneal(problem, best_states=True, out=tmp_path / f"{penalty:g}.h5", **SHORT)
        assert problem.rounded
        for result in (found, ss.load(tmp_path / f"{penalty:g}.h5")):
            best = result.best
            values, energies = [best.values, *best.replica_values], [best.energy, *best.replica_energies]
            for x, energy in zip(values, energies, strict=True):
                assert energy == math.fsum([9 * penalty, *(v for (i, j), v in qubo.items() if x[i] and x[j])])
            assert best.energy == best.replica_energies.min()
            assert result.model.to_qubo() == (qubo, 9 * penalty)
    assert "its least value is 4.94e-324" in ss.Ising.from_qubo({(0, 1): 5e-324}).caution
    assert "its least value is 1:" in ss.Ising.from_qubo({(0, 0): -1, (0, 1): 9.9e299}).caution
    sampled = found.to_sampleset() if importlib.util.find_spec("dimod") else None
    assert sampled is None or sampled.record.energy.tolist() == best.replica_energies.tolist()


EMPTY = {
    "QUBO": lambda: ss.Ising.from_qubo({}, offset=1.5),
    "matrix": lambda: ss.Ising.from_matrix(np.zeros((0, 0)), offset=1.5),
    "graph": lambda: ss.Ising.from_networkx(nx.Graph(offset=1.5)),
    "BQM": lambda: ss.Ising.from_bqm(dimod.BQM({}, {}, 1.5, "BINARY")),
}
CONSTANT = {
    "QUBO": lambda: ss.Ising.from_qubo({("a", "b"): 0, ("a", "a"): 0}, offset=1.5),
    "BQM": lambda: ss.Ising.from_bqm(dimod.BQM({"a": 0, "b": 0}, {("a", "b"): 0}, 1.5, "SPIN")),
}


@pytest.mark.parametrize("make", [*EMPTY.values(), *CONSTANT.values()])
def test_problems_that_are_constant_are_solved(make, tmp_path):
    """Loops over subproblems meet those without a variable, or without a value."""
    model = make()
    labels = {"a", "b"} if make in CONSTANT.values() else set()
    runs = [
        ss.anneal(model, steps=5, sweeps=2, replicas=4, seed=1, best_states=True, out=tmp_path / "anneal.h5"),
        ss.anneal(model, target=1.5, seed=1),
        ss.anneal(model, time_limit=0.01, seed=1),
        ss.temper(model, sweeps=20, thermalize=10, seed=1, out=tmp_path / "temper.h5"),
        ss.temper(model, target=1.5, seed=1),
        ss.load(tmp_path / "anneal.h5"),
        ss.load(tmp_path / "temper.h5"),
    ]
    for result in runs:
        assert result.best.energy == 1.5
        assert set(result.best.by_label) == labels
        assert result.to_sampleset().variables == list(result.best.labels)
        assert (result.to_sampleset().record.energy == 1.5).all()
    assert runs[-1].model.content_sha256() == runs[-2].model.content_sha256() == model.content_sha256()


@pytest.mark.parametrize("make", EMPTY.values(), ids=EMPTY)
@pytest.mark.parametrize("suffix", [".coo", ".qubo", ".sparse", ".qs.xz", ".mtx", ".bqm"])
def test_problems_without_variables_come_back(make, suffix, tmp_path):
    make().save(tmp_path / f"empty{suffix}")
    model = ss.read_instance(tmp_path / f"empty{suffix}")
    assert (model.labels, model.to_qubo(), model.sites) == ((), ({}, 1.5), 1)
    assert repr(model).startswith("Ising(empty, no variables, 1 sample")
    with pytest.raises(ss.InputError, match="no variables that a field could act on"):
        model.in_field(1.0)


def test_commands_solve_problems_without_variables(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ss.Ising.from_qubo({}, offset=1.5).save("none.coo")
    short = [f"--{key}={one}" for key, one in SHORT.items()]
    assert run(capsys, monkeypatch, "anneal", "none.coo", "--out", "run.h5", "--quiet", *short).status == 0
    assert run(capsys, monkeypatch, "show", "run.h5", "--solution").out == "# none, sample 0: energy 1.5\n"
    found = json.loads(run(capsys, monkeypatch, "show", "run.h5", "--solution", "--json").out)
    assert (found["labels"], found["solutions"][0]["values"]) == ([], [])
    assert run(capsys, monkeypatch, "check", "run.h5").status == 0


def test_hits_count_the_replicas_that_met_the_best_value(tmp_path):
    result = ss.anneal(ss.read_instance(ROOT / "examples/data/G11.txt"), replicas=64, steps=20, sweeps=10)
    lowest = result.best_energy[0].min()
    assert result.best.hits == (result.best_energy[0] == lowest).sum()
    assert f"met by {result.best.hits} of 64 replicas" in repr(result.best)
    assert ss.load(result.save(tmp_path / "cut.h5")).best.hits == result.best.hits


def test_the_value_of_a_problem_with_a_constant_comes_first(tmp_path, capsys, monkeypatch):
    qubo = ss.Ising.from_qubo({("a", "a"): -1, ("a", "b"): 2, ("b", "c"): -1.5}, offset=7)
    path = ss.anneal(qubo, replicas=64, out=tmp_path / "qubo.h5").record
    assert path
    shown = run(capsys, monkeypatch, "show", str(tmp_path / "qubo.h5")).out
    assert re.search(r"Lowest energy +5.5 .*met by \d+ of 64 replicas", shown)
    assert re.search(r"Without constant +-\d", shown)
    known = json.loads(run(capsys, monkeypatch, "show", str(tmp_path / "qubo.h5"), "--json").out)
    assert known["lowest_energy_with_offset"] == 5.5


def test_a_run_in_memory_begins_before_it_ends(tmp_path):
    result = ss.anneal(ss.Ising(ss.square(4)), replicas=8, steps=5)
    assert result.attributes["created"] <= result.attributes["finished"]
    assert ss.load(result.save(tmp_path / "run.h5")).attributes["created"] == result.attributes["created"]
