"""Runs of Python calls: in memory and into files, interrupted and resumed, with given starts and fields that change."""

from __future__ import annotations

import itertools
import json
import os
import pty
import signal
import subprocess
import sys
from functools import partial
from inspect import signature
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import oracle
import pytest
from harness import run
from places import SUPPORT

import spinsim as ss
from spinsim.engine import create_engine
from spinsim.engine.choosing import choose_packing
from spinsim.model.ising import Ising
from spinsim.packing import Packing
from spinsim.sampling import InField, annealing
from spinsim.store import files

OWN = ("command", "config")  # root attributes that name the file, and how it was run
MODELS = {
    "pm-j": lambda: ss.EdwardsAnderson(ss.cubic(4), samples=2, seed=1),
    "gaussian": lambda: ss.EdwardsAnderson(ss.square(4), samples=2, couplings="gaussian", seed=1),
    "graph": lambda: ss.Ising(ss.Graph(5, [(0, 1), (1, 2), (2, 3), (3, 4), (4, 0), (0, 2)]), [1, -1, 1, 1, -1, 1]),
    "random-field": lambda: ss.Ising(ss.square(4), field=np.linspace(-1, 1, 16)),
    "site-packed": lambda: ss.EdwardsAnderson(ss.square(256, 2), seed=1),
}
LOOP = np.array([-2.0, -0.5, 0.0, 0.3, 2.0, 0.3, 0.0, -2.0])
SCHEDULE = np.array([1.0, 1.5, 2.0, 2.0, 1.7, 1.1, 0.6, 0.6])


def spins_of(model: Ising, replicas: int, seed: int = 3) -> np.ndarray:
    """Configurations (samples, replicas, sites)."""
    return np.random.default_rng(seed).choice([-1, 1], (model.samples, replicas, model.sites))


def uniform_of(model: Ising) -> Any:
    """The oracle's uniforms of a model's packing."""
    by_packing = {Packing.REPLICA: oracle.uniform_packed, Packing.UNPACKED: oracle.uniform_general}
    packing = choose_packing(model)
    return by_packing[packing] if packing in by_packing else oracle.uniform_site(model)


def anneal(model: Ising, **options: Any) -> ss.AnnealResult:
    return ss.anneal(model, SCHEDULE, sweeps=2, replicas=5, seed=7, **options)


def temper(model: Ising, **options: Any) -> ss.TemperResult:
    return ss.temper(model, [0.9, 1.3, 2.0], sweeps=40, thermalize=10, measure_every=4, seed=7, **options)


def transfer(model: Ising, **options: Any) -> ss.TransferResult:
    return ss.transfer(model, k=[0.2, 0.3], seed=7, **options)


def assert_same(one: Any, other: Any) -> None:
    """Every number and its type."""
    for name in one.__dataclass_fields__:
        a, b = getattr(one, name), getattr(other, name)
        if isinstance(a, np.ndarray):
            assert a.dtype == b.dtype, name
            np.testing.assert_array_equal(a, b, name)
    assert one.attributes["config_sha256"] == other.attributes["config_sha256"]
    assert one.finished == other.finished


FIRST = [(anneal, "pm-j"), (anneal, "random-field"), (temper, "gaussian"), (temper, "graph"), (temper, "site-packed")]
"""Every model with one job, which the first line takes; all others are slow tests."""


@pytest.mark.parametrize(
    ("call", "name"),
    [
        pytest.param(call, name, id=f"{call.__name__}-{name}", marks=[pytest.mark.slow] * ((call, name) not in FIRST))
        for call in (anneal, temper)
        for name in MODELS
    ],
)
def test_a_run_in_memory_is_the_run_in_a_file(tmp_path: Path, call, name: str) -> None:
    model, path = MODELS[name](), tmp_path / "run.h5"
    replicas = 5 if call is anneal else 6
    options = {"start": spins_of(model, replicas)} | ({"field": LOOP} if call is anneal else {})
    kept, written = call(model, **options), call(model, out=path, **options)
    assert_same(kept, written)
    assert_same(kept, ss.load(kept.save(tmp_path / "saved.h5")))
    before = path.read_bytes()
    assert_same(call(model, out=path, **options), kept)
    assert_same(ss.resume(path), kept)
    assert path.read_bytes() == before


def test_the_same_of_transfer_matrices(tmp_path: Path) -> None:
    model = ss.EdwardsAnderson(ss.chain(5), samples=2, seed=1)
    kept, written = transfer(model), transfer(model, out=tmp_path / "run.h5")
    assert_same(kept, written)
    assert kept.planned_rows == written.planned_rows == 4
    assert_same(ss.resume(tmp_path / "run.h5"), kept)


def test_levels_that_do_not_converge(tmp_path: Path) -> None:
    model = ss.EdwardsAnderson(ss.square(4))
    run_it = partial(ss.transfer, model, k=[0.05, 0.29], basis=12, device="cpu")
    with pytest.raises(ss.InputError, match="residual of"):
        run_it(most_steps=25)
    with pytest.warns(UserWarning, match="residual of"):
        part = run_it(most_steps=25, out=tmp_path / "run.h5")
    assert not part.finished
    assert part.incomplete.any()
    whole = ss.resume(tmp_path / "run.h5", most_steps=5000)
    assert whole.finished
    np.testing.assert_allclose(whole.levels, run_it().levels, rtol=1e-12)


class Stop:
    """Interrupts at the call of a number, as Ctrl-C would."""

    def __init__(self, at: int) -> None:
        self.left = at

    def __call__(self, updates: int) -> None:
        self.left -= 1
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGINT)


STOPPED = [
    (anneal, "gaussian", "python"),
    (anneal, "site-packed", "command"),
    (temper, "pm-j", "python"),
    (temper, "gaussian", "command"),
]
"""Every job, model and way to go on, which the first line takes; all other combinations are slow tests."""


@pytest.mark.parametrize(
    ("call", "name", "how"),
    [
        pytest.param(*one, id=f"{one[0].__name__}-{one[1]}-{one[2]}", marks=[pytest.mark.slow] * (one not in STOPPED))
        for one in itertools.product((anneal, temper), ("gaussian", "pm-j", "site-packed"), ("python", "command"))
    ],
)
def test_ctrl_c_loses_nothing(tmp_path: Path, monkeypatch, capsys, call, name: str, how: str) -> None:
    monkeypatch.setattr("spinsim.engine.cpu.AT_ONCE", 2)  # so that a short run tells of its updates often enough
    model, path, handler = MODELS[name](), tmp_path / "run.h5", signal.getsignal(signal.SIGINT)
    options = {"start": spins_of(model, 1)[:, 0]} | ({"field": LOOP} if call is anneal else {})
    whole = call(model, **options)
    with pytest.raises(KeyboardInterrupt, match=r"the run was saved: ss\.resume\('.*run\.h5'\) completes"):
        call(model, out=path, on_updates=Stop(4), **options)
    assert not ss.load(path).finished
    if how == "python":
        assert_same(ss.resume(path), whole)
    else:
        assert run(capsys, monkeypatch, "resume", path, "--quiet").status == 0
        assert_same(ss.load(path), whole)
    assert signal.getsignal(signal.SIGINT) is handler


def test_a_tempering_run_is_made_longer(tmp_path: Path) -> None:
    model, path = MODELS["graph"](), tmp_path / "run.h5"
    start = spins_of(model, 6)
    temper(model, out=path, start=start)
    longer = ss.temper(model, [0.9, 1.3, 2.0], sweeps=80, thermalize=10, measure_every=4, seed=7, start=start)
    assert_same(ss.resume(path, sweeps=80), longer)
    np.testing.assert_array_equal(h5py.File(path)["start/spins"][...], start)


@pytest.mark.system
def test_a_run_that_was_killed_before_its_first_checkpoint_begins_anew(tmp_path: Path) -> None:
    model, path = MODELS["pm-j"](), tmp_path / "run.h5"
    options = {"start": spins_of(model, 5), "field": LOOP}
    code = f"""
import os, sys
sys.path[:0] = {[str(SUPPORT), str(Path(__file__).parent)]!r}
from test_calls import MODELS, LOOP, spins_of, anneal
model = MODELS["pm-j"]()
count = iter(range(9))
def stop(updates):
    if next(count) == 6:
        os._exit(9)
anneal(model, out={str(path)!r}, start=spins_of(model, 5), field=LOOP, on_updates=stop)
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 9
    assert_same(ss.resume(path), anneal(model, **options))


def test_another_run_and_a_changed_start_are_refused(tmp_path: Path) -> None:
    model, path = MODELS["pm-j"](), tmp_path / "run.h5"
    start = spins_of(model, 5)
    anneal(model, out=path, start=start)
    before = path.read_bytes()
    for options in ({"start": -start}, {"start": "up"}, {"start": start, "field": LOOP}):
        with pytest.raises(ss.InputError, match="holds another run"):
            anneal(model, out=path, **options)
    with pytest.raises(ss.InputError, match="holds another run"):
        anneal(MODELS["gaussian"](), out=path)
    assert path.read_bytes() == before


def test_long_lists_of_temperatures_are_kept(tmp_path: Path) -> None:
    """Far above the 64 KiB of an HDF5 attribute; a run that goes on takes them from there."""
    model, path = ss.Ising(ss.chain(2)), tmp_path / "run.h5"
    schedule = np.linspace(1, 2, 9000) / 3
    options = {"sweeps": 1, "replicas": 1, "out": path}
    for steps in (100, 50):
        with pytest.raises(KeyboardInterrupt):
            ss.anneal(model, schedule, on_updates=Stop(steps), **options)
    result = ss.load(path)
    assert len(result.energy) > 100
    assert not result.finished
    np.testing.assert_array_equal(result.temperature, schedule[: len(result.temperature)])
    kept = json.loads(result.attributes["config"])["anneal"]["temperatures"]
    np.testing.assert_array_equal([float(text) for text in kept.split(",")], schedule)


def test_a_run_of_an_instance_goes_on_under_either_name(tmp_path: Path, monkeypatch, capsys) -> None:
    """A model counts with its content: the command line finishes what Python began."""
    path = tmp_path / "run.h5"
    with pytest.raises(KeyboardInterrupt):
        temper(MODELS["graph"](), out=path, on_updates=Stop(3))
    shown = run(capsys, monkeypatch, "show", "--json", path)
    assert json.loads(shown.out)["job"] == "temper"
    assert run(capsys, monkeypatch, "resume", path, "--quiet").status == 0
    assert_same(ss.load(path), temper(MODELS["graph"]()))


@pytest.mark.parametrize("name", MODELS)
def test_fields_and_starts_equal_the_oracle(device: str, name: str) -> None:
    model = MODELS[name]()
    start, dynamics = spins_of(model, 5), ss.Dynamics(seed=7)
    make = partial(create_engine, replicas=5, dynamics=dynamics, device=device)
    engine = InField(make(model, start=start), make)
    spins, uniform = start.transpose(0, 2, 1).astype(np.int8).copy(), uniform_of(model)
    frames = annealing(engine, SCHEDULE, 2, fields=LOOP)
    for step, frame in enumerate(frames):
        inside = Ising(model.graph, model.couplings, model.fields + LOOP[step])
        assert choose_packing(inside) is choose_packing(model)
        oracle.sweep(inside, spins, 1 / SCHEDULE[step], 7, 2, uniform, dynamics.zero_acceptance, 2 * step)
        for k in range(model.samples):
            for r in range(5):
                np.testing.assert_array_equal(engine.spins(k, r), spins[k, :, r])
        np.testing.assert_array_equal(frame.measured.energy, inside.energy(spins))
        np.testing.assert_array_equal(frame.measured.magnetization, spins.sum(axis=1, dtype=np.int64))
        assert frame.field == LOOP[step]
    assert step == len(SCHEDULE) - 1


def test_a_constant_field_is_that_of_the_model() -> None:
    inside, outside = ss.Ising(ss.square(6), field=0.7), ss.Ising(ss.square(6))
    one, other = anneal(inside), anneal(outside, field=[0.7] * 8)
    np.testing.assert_array_equal(one.energy, other.energy)
    np.testing.assert_array_equal(other.field, [0.7] * 8)
    np.testing.assert_array_equal(other.best_energy.min(axis=1), outside.energy(other.best_spins[:, :, None])[:, 0])


def test_shapes_of_starts() -> None:
    model = ss.EdwardsAnderson(ss.square(4), samples=2, seed=1)
    whole = spins_of(model, 5)
    whole[:] = whole[:1, :1]
    results = [anneal(model, start=start) for start in (whole[0, 0], whole[:, 0].astype(float), whole.tolist())]
    for other in results[1:]:
        np.testing.assert_array_equal(results[0].energy, other.energy)
    assert len({result.attributes["config_sha256"] for result in results}) == 3
    up = anneal(model, start=np.ones(16))
    np.testing.assert_array_equal(up.energy, anneal(model, start="up").energy)


MODEL = ss.Ising(ss.square(8))
REFUSED = [
    (lambda: ss.anneal(ss.square(8), [1.0]), "a lattice is no model.*ss.Ising of it"),
    (lambda: ss.temper(ss.Graph(2, [(0, 1)]), [1.0], 10, 0), "a graph is no model"),
    (lambda: ss.transfer("square"), "an object of type str is no model"),
    (lambda: ss.create_engine(ss.square(8), 2, ss.Dynamics()), "a lattice is no model"),
    (lambda: ss.Ising({(0, 1): 1.0}), "an object of type dict is no lattice and no graph"),
    (lambda: ss.Ising(np.ones((3, 3))), "an object of type ndarray is no lattice and no graph"),
    (lambda: ss.EdwardsAnderson(8), "8 is no lattice"),
    (lambda: ss.anneal(MODEL, [1.0], start=np.ones(63)), r"shape \(63,\): give \(sites,\).* sites = 64"),
    (lambda: ss.anneal(MODEL, [1.0], start=np.ones((3, 64))), r"shape \(3, 64\)"),
    (lambda: ss.anneal(MODEL, [1.0], replicas=2, start=np.ones((1, 3, 64))), r"shape \(1, 3, 64\)"),
    (lambda: ss.temper(MODEL, [1.0, 2.0], 10, 0, start=np.ones((1, 3, 64))), "replicas = 4"),
    (lambda: ss.anneal(MODEL, [1.0], start=np.zeros(64)), "start holds 0.0: every spin must be"),
    (lambda: ss.anneal(MODEL, [1.0], start=np.full(64, np.nan)), "start holds nan"),
    (lambda: ss.anneal(MODEL, [1.0], start="down"), "'down' is unknown"),
    (lambda: ss.anneal(MODEL, [1.0], start=None), "NoneType holds no spins"),
    (lambda: ss.anneal(MODEL, [1.0], start=[[1], [1, 1]]), "has the wrong type: give a string"),
    (lambda: ss.anneal(MODEL, [1.0], sweeps=2.5), "sweeps = 2.5 has the wrong type: give a whole number"),
    (lambda: ss.anneal(MODEL, [1.0, 2.0], field=[1.0]), "field has 1 number for 2 temperatures: give one for each"),
    (lambda: ss.anneal(MODEL, [1.0], field=[np.inf]), "field inf is not finite"),
    (lambda: ss.anneal(MODEL, [1.0], field="strong"), "field 'strong' cannot be read"),
    (lambda: ss.anneal(MODEL, [1.0], field=1e18), "couplings of square-8x8 would be rounded away"),
    (lambda: ss.anneal(MODEL, "cold"), "temperatures 'cold' cannot be read"),
    (lambda: ss.temper(MODEL, [2.0, 1.0], 10, 0), "do not rise"),
]


@pytest.mark.parametrize(("call", "words"), REFUSED, ids=[words[:30] for _, words in REFUSED])
def test_what_is_refused(call, words: str) -> None:
    with pytest.raises(ss.InputError, match=words):
        call()


@pytest.mark.parametrize(
    ("call", "given"),
    [
        (ss.anneal, {"steps": 2}),
        (ss.temper, {"temperatures": [1.0, 2.0], "sweeps": 20}),
        (ss.quantum, {"k": [0.2, 0.3], "sweeps": 20}),
        (ss.transfer, {"k": 0.3}),
    ],
    ids=lambda one: getattr(one, "__name__", ""),
)
def test_none_means_that_an_argument_is_left_out(call, given: dict[str, Any]) -> None:
    """Of all but the start, which holds spins, and the seed, for which None draws a fresh one."""
    model = ss.Ising(ss.chain(4))
    nothing = dict.fromkeys(signature(call).parameters.keys() - {"model", "start", "seed"})
    assert call(model, **nothing | given).attributes["config"] == call(model, **given).attributes["config"]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: ss.anneal(MODEL, [1.0], steps=100), "steps 100 does not go with temperatures"),
        (lambda: ss.anneal(MODEL, [1.0], schedule="geometric"), "schedule 'geometric' does not go with temperatures"),
        (lambda: ss.anneal(MODEL, clusters_every=10), "clusters_every 10 goes with clusters alone"),
    ],
)
def test_defaults_that_are_given_count_as_given(call, words: str) -> None:
    with pytest.raises(ss.InputError, match=words):
        call()


@pytest.mark.parametrize(("given", "grows"), [({}, True), ({"sweeps": 100}, False), ({"growing": False}, False)])
def test_searches_grow_where_no_length_is_given(given: dict[str, Any], grows: bool) -> None:
    result = ss.anneal(ss.Ising(ss.square(4)), anneals=2, target=-32.0, replicas=2, **given)
    assert result.config["anneal"]["growing"] is grows


def test_save_replaces_what_spinsim_wrote(tmp_path: Path) -> None:
    one, other = anneal(MODEL), anneal(MODELS["graph"]())
    path = one.save(tmp_path / "a.h5")
    with pytest.raises(ss.InputError, match="give overwrite=True to save"):
        other.save(path)
    assert_same(ss.load(other.save(path, overwrite=True)), other)
    foreign = tmp_path / "letter.txt"
    foreign.write_text("dear reader")
    with pytest.raises(ss.InputError, match="not a file of spinsim, or is damaged"):
        one.save(foreign, overwrite=True)
    with files.open_to_write(path), pytest.raises(ss.InputError, match="open in another process"):
        one.save(path, overwrite=True)
    assert_same(ss.load(path), other)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.h5", "letter.txt"]


@pytest.mark.system
@pytest.mark.skipif(sys.platform == "win32", reason="terminals as POSIX has them")
def test_progress_is_shown_on_a_terminal_where_it_is_asked_for() -> None:
    code = "import spinsim as ss; ss.anneal(ss.Ising(ss.square(4)), [2.0] * 50, 10**4, 2, progress={})"
    shown = {}
    for wanted in (True, False):
        own, its = pty.openpty()
        process = subprocess.Popen([sys.executable, "-c", code.format(wanted)], stderr=its)
        os.close(its)
        read = b""
        while True:
            try:
                piece = os.read(own, 4096)
            except OSError:
                break
            if not piece:
                break
            read += piece
        assert process.wait() == 0
        os.close(own)
        shown[wanted] = read
    assert b"updates/ns" in shown[True]
    assert shown[False] == b""


def test_a_file_with_a_first_temperature_of_its_own_is_another_run(tmp_path: Path) -> None:
    model, path = ss.EdwardsAnderson(ss.square(4), seed=1), tmp_path / "a.h5"
    ss.anneal(model, t_start=50.0, steps=2, sweeps=1, replicas=2, out=path)
    with pytest.raises(ss.InputError, match="holds another run"):
        ss.anneal(model, steps=2, sweeps=1, replicas=2, out=path)
