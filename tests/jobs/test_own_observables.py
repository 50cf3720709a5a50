"""A user's own observables in tempering runs: their series, axes, averages, files, and how runs with them go on."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial
from pathlib import Path

import h5py
import numpy as np
import pytest
from harness import run
from several import on_cpus

import spinsim as ss
from spinsim.errors import InputError
from spinsim.run.own_observables import are_of_other_code, code_number

MODEL = ss.EdwardsAnderson(ss.square(6), couplings="pm-j", samples=2, seed=3)
HOW = {"temperatures": "1.2:3:4", "thermalize": 20, "measure_every": 5, "seed": 9}


def magnetized(batch):
    """Return sums of spins."""
    return batch.spins.sum(axis=-1, dtype=batch.xp.int64)


def along_x(batch):
    """Return the correlation along x at each distance up to half of the side."""
    spins = batch.grid.astype(batch.xp.float64)
    return batch.xp.stack([(spins * batch.xp.roll(spins, r, axis=-1)).mean(axis=(-2, -1)) for r in range(4)], axis=-1)


def sums(batch):
    """Return half of the sum of spins, a float."""
    return batch.spins.sum(axis=-1) / 2


MEASURE = {"summed": magnetized, "G_x": along_x, "half": sums}


@pytest.fixture(scope="module")
def result():
    return ss.temper(MODEL, sweeps=200, measure=MEASURE, **HOW)


def test_values_are_those_of_the_very_configurations(result) -> None:
    assert result.measured["summed"].dtype == np.int64
    assert np.array_equal(result.measured["summed"], result.magnetization)
    assert np.array_equal(result.measured["half"], result.magnetization / 2)
    assert result.measured["G_x"].shape == (*result.energy.shape, 4)
    assert (result.measured["G_x"][..., 0] == 1).all()


def test_measuring_changes_no_trajectory(result) -> None:
    plain = ss.temper(MODEL, sweeps=200, **HOW)
    for name in ("energy", "magnetization", "overlap", "permutation", "attempts", "accepts"):
        assert np.array_equal(getattr(plain, name), getattr(result, name)), name
    assert plain.measured == {}
    assert plain.attributes["config_sha256"] != result.attributes["config_sha256"]


def test_averages_errors_and_axes(result) -> None:
    columns = ss.table(result)
    assert np.allclose(columns["half"], result.measured["half"].mean(axis=(0, 1, 2)))
    assert {"half_error", "half_tau", "summed"} <= set(columns)
    assert "G_x" not in columns
    dataset = result.dataset()
    assert dataset["G_x"].dims == ("step", "sample", "copy", "temperature", "G_x_axis_0")
    assert np.array_equal(dataset["summed"], result.magnetization)


@pytest.mark.parametrize("kept", [{"series": "none"}, {"series_limit": 0.02}], ids=["none", "some"])
def test_averages_are_of_all_measurements_whatever_rows_are_kept(result, kept, tmp_path) -> None:
    found = ss.temper(MODEL, sweeps=200, measure=MEASURE, **HOW, **kept)
    assert len(found.sweep) < len(result.sweep)
    for by in ("temperature", "sample", "G_x"):
        assert ss.table(found, by).equals(ss.table(result, by)), by
    path = tmp_path / "a.h5"
    ss.temper(MODEL, sweeps=100, out=path, measure=MEASURE, **HOW, **kept)
    longer = ss.resume(path, sweeps=200, measure=MEASURE)
    for one in (longer, ss.load(path)):
        assert ss.table(one, "G_x").equals(ss.table(result, "G_x"))


def test_sums_are_those_of_the_rows(result) -> None:
    """Chains of sums and of the rows of a file that has none are the same."""
    older = replace(result, reduced=replace(result.reduced, own={}))
    for by in ("temperature", "sample", "G_x"):
        found, expected = (ss.table(one, by).to_numpy(float) for one in (result, older))
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


def test_pooled_runs_have_them() -> None:
    runs = [ss.temper(MODEL, sweeps=n, measure=MEASURE, **HOW | {"seed": n}) for n in (200, 300)]
    pooled = ss.pool(runs)
    expected = (ss.table(runs[0])["half"] * 200 + ss.table(runs[1])["half"] * 300) / 500
    np.testing.assert_allclose(ss.table(pooled)["half"], expected, rtol=1e-12)


def test_saved_results_have_them(result, tmp_path) -> None:
    again = ss.load(result.save(tmp_path / "saved.h5"))
    for name in MEASURE:
        assert np.array_equal(again.measured[name], result.measured[name])


def test_a_file_goes_on_with_the_function_given_again(result, tmp_path) -> None:
    path = tmp_path / "a.h5"
    first = ss.temper(MODEL, sweeps=100, out=path, measure=MEASURE, **HOW)
    assert np.array_equal(first.measured["G_x"], result.measured["G_x"][:20])
    with pytest.raises(InputError, match="given in Python: give it again by its name"):
        ss.resume(path, sweeps=200)
    with pytest.raises(InputError, match="give the function that the run began with"):
        ss.resume(path, sweeps=200, measure=MEASURE | {"summed": sums})
    with pytest.raises(InputError, match="'other' is no observable of this run"):
        ss.resume(path, sweeps=200, measure=MEASURE | {"other": sums})
    whole = ss.resume(path, sweeps=200, measure=MEASURE)
    for name in MEASURE:
        assert np.array_equal(whole.measured[name], result.measured[name]), name
    with h5py.File(path) as file:
        assert file["measurements/G_x"].dims[4][0].name.endswith("/G_x_axis_0")


def test_on_the_command_line(tmp_path, capsys, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my_observables.py").write_text("def half(batch):\n    return batch.spins.sum(axis=-1) / 2\n")
    temper = "temper --size 4 --couplings pm-j --samples 2 --temperatures 0.9:2:3 --thermalize 4 --quiet --out a.h5"
    said = run(capsys, monkeypatch, *temper.split(), "--sweeps", 200, "--measure", "my_observables:half")
    assert said.status == 0, said
    assert run(capsys, monkeypatch, "resume", "a.h5", "--sweeps", 400, "--quiet").status == 0
    assert run(capsys, monkeypatch, "check", "a.h5").status == 0
    said = run(capsys, monkeypatch, "analyze", "a.h5")
    assert said.status == 0
    assert "half" in said.out
    found = ss.load(tmp_path / "a.h5")
    assert np.array_equal(found.measured["half"], found.magnetization / 2)
    with h5py.File(tmp_path / "a.h5") as file:
        assert np.allclose(file["summary/half"], found.measured["half"].mean(axis=(0, 1, 2)))


@pytest.mark.parametrize(
    ("measure", "words"),
    [
        ({"energy": sums}, "something else"),
        ({"two words": sums}, "no name of its own"),
        ({"flat": lambda batch: 1.0}, "a number for each configuration"),
        ({"text": lambda batch: np.full(batch.spins.shape[:-1], "a")}, "return floats or whole numbers"),
        ({"huge": lambda batch: np.full(batch.spins.shape[:-1], 2**63, np.uint64)}, "returns 9223372036854775808"),
        ({"wide": lambda batch: np.full(batch.spins.shape[:-1], np.longdouble(2) ** 2000)}, "not finite"),
        ({"masked": lambda batch: np.ma.masked_less(batch.spins.sum(axis=-1), 99)}, "masked values"),
        ({"empty": lambda batch: np.zeros((*batch.spins.shape[:-1], 0))}, "return a number at least"),
        ({"ragged": lambda batch: [[1], [1, 2]]}, "ragged has failed, ValueError"),
        ({"failing": lambda batch: 1 / batch.number}, "failing has failed, ZeroDivisionError"),
        ({"lost": lambda batch: batch.spins.sum(axis=-1) / np.nan}, "not finite"),
        ({"none": 3}, "not a function"),
        ("no_such_module:f", "cannot be imported"),
        ("f", "given in Python"),
    ],
)
def test_refused_before_the_run(measure, words) -> None:
    with pytest.raises(InputError, match=words):
        ss.temper(MODEL, sweeps=10**9, measure=measure, **HOW)


def test_functions_that_write_or_go_elsewhere_change_nothing_else(result, tmp_path, monkeypatch) -> None:
    """Those after one that wrote to the spins had other numbers; a run's file was looked for in the new folder."""

    def careless(batch):
        os.chdir("/")
        batch.spins[...] = 1
        batch.beta[...] = 0
        return batch.spins.sum(axis=-1)

    def betas(batch):
        return np.broadcast_to(batch.beta, batch.spins.shape[:-1])

    monkeypatch.chdir(tmp_path)
    measure = {"first": careless, "summed": magnetized, "beta": betas}
    found = ss.temper(MODEL, sweeps=200, measure=measure, out="folder/a.h5", **HOW)
    assert Path.cwd() == tmp_path
    assert Path("folder/a.h5").is_file()
    assert (found.measured["first"] == 36).all()
    assert np.array_equal(found.measured["summed"], result.magnetization)
    assert np.array_equal(found.measured["beta"][-1, 0, 0], 1 / found.temperature)


def test_whole_numbers_that_become_too_large_during_a_run() -> None:
    numbers = iter([2**62, 2**63 - 1, 2**63])
    with pytest.raises(InputError, match="large returns 9223372036854775808"):
        ss.temper(
            MODEL, sweeps=40, measure={"large": lambda b: np.full(b.spins.shape[:-1], next(numbers), np.uint64)}, **HOW
        )


def test_other_code_is_noticed(tmp_path) -> None:
    """A series began with one function and went on with another."""

    def half_with_a_comment(batch):
        # another name, and words
        return batch.spins.sum(axis=-1) / 2

    def third(batch):
        return batch.spins.sum(axis=-1) / 3

    path = tmp_path / "a.h5"
    ss.temper(MODEL, sweeps=100, out=path, measure={"half": sums}, **HOW)
    found = ss.resume(path, sweeps=200, measure={"half": half_with_a_comment})
    assert np.array_equal(found.measured["half"], found.magnetization / 2)
    for measure in ({"half": third}, {"half": partial(third)}):
        with pytest.raises(InputError, match="half has other code than when"):
            ss.resume(path, sweeps=4000, measure=measure)
    ss.resume(path, sweeps=400, measure={"half": sums})
    with pytest.raises(InputError, match="half has other code"):  # of a run that is finished
        ss.temper(MODEL, sweeps=400, out=path, measure={"half": third}, **HOW)
    with pytest.raises(InputError, match="half has other code"):
        ss.resume(path, sweeps=800, measure={"half": third})
    path = tmp_path / "anneal.h5"
    ss.anneal(MODEL, [3, 2, 1], replicas=4, anneals=2, out=path, measure={"half": sums})
    with pytest.raises(InputError, match="half has other code"):
        ss.resume(path, anneals=3, measure={"half": third})


def test_code_is_told_whatever_holds_it() -> None:
    class Sum:
        def __call__(self, batch):
            return batch.spins.sum(axis=-1) in {"some", "words", "that", "have", "no", "order"}

    codes = [code_number(one) for one in (sums, partial(sums), magnetized, along_x, Sum(), Sum().__call__)]
    assert codes[0] == codes[1]
    assert codes[4] == codes[5]
    assert len(set(codes)) == 4
    assert min(codes) > 0
    assert code_number(np.sum) == code_number(np.sum)
    assert code_number(print) == code_number(Sum) == 0
    assert not are_of_other_code(codes[0], codes[0] + (1 << 48) + 1)  # of another version of Python
    assert not are_of_other_code(0, codes[0])  # of a file that does not say


def test_a_function_that_fails_shows_where(tmp_path, capsys, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own_failing.py").write_text(
        "def f(batch):\n    return batch.spins.sum(axis=-1) / (1 / batch.number)\n"
    )
    (tmp_path / "own_broken.py").write_text("def f(batch:\n")
    temper = "temper --size 4 --temperatures 1,2 --sweeps 100 --quiet --out a.h5 --measure"
    said = run(capsys, monkeypatch, *temper.split(), "own_failing:f")
    assert said.status == 2
    assert 'own_failing.py", line 2, in f' in said.err
    assert "run/own_observables.py" not in said.err
    assert said.err.splitlines()[-1].startswith("spinsim: measure f ")
    said = run(capsys, monkeypatch, *temper.split(), "own_broken:f")
    assert said.status == 2
    assert said.err.splitlines()[-1].startswith("spinsim: --measure own_broken:f cannot be imported, SyntaxError: ")


def test_searches_measure_nothing_of_ones_own() -> None:
    with pytest.raises(InputError, match="does not go with a search"):
        ss.temper(MODEL, time_limit=1, measure={"half": sums})


@pytest.mark.usefixtures("emulated")
def test_the_same_on_a_gpu(result) -> None:
    measure = {name: MEASURE[name] for name in ("summed", "half")}
    found = ss.temper(MODEL, sweeps=200, device="cuda", measure=measure, **HOW)
    for name in measure:
        assert np.array_equal(found.measured[name], result.measured[name]), name


def test_quantum_runs(tmp_path) -> None:
    path, how = tmp_path / "q.h5", {"k": "0.2,0.3,0.4", "slices": 4, "thermalize": 10, "measure": MEASURE}
    model = ss.Ising(ss.square(6))
    first = ss.quantum(model, sweeps=100, out=path, **how)
    assert np.array_equal(first.measured["summed"], first.magnetization)
    assert first.dataset()["summed"].dims == ("step", "sample", "copy", "k")
    whole, again = ss.resume(path, sweeps=200, measure=MEASURE), ss.quantum(model, sweeps=200, **how)
    for name in MEASURE:
        assert np.array_equal(whole.measured[name], again.measured[name]), name
    assert np.allclose(ss.table(whole)["half"], whole.measured["half"].mean(axis=(0, 1, 2)))
    assert np.array_equal(ss.load(whole.save(tmp_path / "copy.h5")).measured["G_x"], whole.measured["G_x"])


@pytest.mark.gpu
def test_arrays_of_cupy(result) -> None:
    def summed(batch):
        assert batch.xp.__name__ == "cupy"
        assert isinstance(batch.spins, batch.xp.ndarray)
        return magnetized(batch)

    found = ss.temper(MODEL, sweeps=200, device="cuda", measure=MEASURE | {"summed": summed}, **HOW)
    assert np.array_equal(found.measured["summed"], result.measured["summed"])
    assert np.allclose(found.measured["G_x"], result.measured["G_x"])


def test_anneals(tmp_path) -> None:
    path, ladder, model = tmp_path / "a.h5", np.linspace(3, 1, 12), ss.EdwardsAnderson(ss.square(6), samples=2, seed=4)
    how = {"sweeps": 5, "replicas": 8, "seed": 3}
    found = ss.anneal(model, ladder, out=path, measure=MEASURE, **how)
    assert np.array_equal(found.measured["summed"], found.magnetization)
    assert found.measured["G_x"].shape == (12, 2, 8, 4)
    assert np.array_equal(ss.anneal(model, ladder, **how).energy, found.energy)
    assert found.dataset()["G_x"].dims == ("step", "sample", "replica", "G_x_axis_0")
    memory = ss.anneal(model, ladder, measure=MEASURE, **how)
    again = ss.load(memory.save(tmp_path / "copy.h5"))
    for name in MEASURE:
        assert np.array_equal(again.measured[name], found.measured[name]), name
    saved = ss.anneal(model, ladder, measure=MEASURE, save_configurations=3, **how)
    assert np.array_equal(ss.recount(saved).measured["G_x"], found.measured["G_x"][2::3])
    path = tmp_path / "search.h5"
    search = ss.anneal(model, ladder, anneals=2, measure=MEASURE, out=path, **how)
    longer = ss.resume(path, anneals=3, measure=MEASURE)
    assert longer.anneals.done == 3
    for name in MEASURE:  # the rows are those of the first anneal
        assert np.array_equal(search.measured[name], found.measured[name]), name
        assert np.array_equal(longer.measured[name], found.measured[name]), name


def test_replicas_that_devices_share_out(monkeypatch) -> None:
    """A split engine gives its configurations as one does."""
    model = ss.EdwardsAnderson(ss.square(4), samples=3, seed=1)
    how = {"temperatures": np.linspace(0.8, 2.5, 65), "replicas": 4, "thermalize": 10, "sweeps": 40, "measure": MEASURE}
    alone = ss.temper(model, **how)
    on_cpus(monkeypatch, 2)
    shared = ss.temper(model, **how)
    for name in MEASURE:
        assert np.array_equal(alone.measured[name], shared.measured[name]), name
    assert np.array_equal(shared.measured["summed"], shared.magnetization)


def test_rows_that_are_counted_again(result) -> None:
    saved = ss.temper(MODEL, sweeps=200, measure=MEASURE, save_configurations=4, **HOW)
    again = ss.recount(saved)
    assert np.array_equal(again.measured["summed"], again.magnetization)
    assert np.array_equal(again.measured["G_x"], saved.measured["G_x"][3::4])
