"""Some samples of a run go on alone, with the bits that they have in a run of all samples."""

import shutil
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from harness import at_row, run

import spinsim as ss
from spinsim.engine.measuring.reduction import SAMPLE_AXIS
from spinsim.run.alone import alone
from spinsim.run.execute import to_file
from spinsim.run.identity import verify
from spinsim.run.plan import plan_resume
from spinsim.store.files import read, save_new


class Nothing:
    name = "nothing"

    def apply(self, batch):
        pass


CHOSEN = np.array([1, 2, 6, 9])
SETTINGS = {"seed": 3, "thermalize": 20, "threads": 1, "progress": False}


def gaussian() -> ss.Ising:
    return ss.Ising(ss.square(4), np.random.default_rng(1).normal(size=(10, 32)))


def signs() -> ss.Ising:
    return ss.EdwardsAnderson(ss.square(4), samples=10, seed=1)


def cut(path: Path, numbers=CHOSEN) -> Path:
    file = path.with_name("alone.h5")
    save_new(file, alone(read(path), numbers))
    return file


@pytest.mark.parametrize("make", [signs, gaussian])
@pytest.mark.parametrize("moves", [{}, {"houdayer": 10, "clusters": "wolff"}])
def test_samples_alone_have_the_bits_of_a_run_of_all(tmp_path, make, moves):
    path = tmp_path / "run.h5"
    ss.temper(make(), "0.8:2:4", sweeps=400, out=path, **SETTINGS, **moves)
    whole = ss.temper(make(), "0.8:2:4", sweeps=800, **SETTINGS, **moves)
    result, ran = to_file(plan_resume(cut(path), {"sweeps": 800}, {}))
    assert ran
    assert result.model.samples == len(CHOSEN)
    assert result.model.quantum == whole.model.quantum
    for name in ("energy", "overlap", "permutation", "magnetization", "link_overlap"):
        assert np.array_equal(getattr(result, name), getattr(whole, name)[:, CHOSEN]), name
    for name in ("accepts", "attempts", "round_trips", "best_energy", "best_spins"):
        assert np.array_equal(getattr(result, name), getattr(whole, name)[CHOSEN]), name
    of_whole = whole.reduced.of_samples(CHOSEN).arrays
    assert all(np.array_equal(of_whole[name], array) for name, array in result.reduced.arrays.items())


def test_a_file_of_samples_alone_is_whole_and_another_run(tmp_path):
    path = tmp_path / "run.h5"
    first = ss.temper(signs(), "0.8:2:4", sweeps=400, out=path, **SETTINGS)
    file = cut(path)
    assert verify(file).startswith("whole, finished")
    result = ss.load(file)
    assert result.attributes["config_sha256"] != first.attributes["config_sha256"]
    assert np.array_equal(result.model.numbers, CHOSEN)
    assert np.array_equal(result.model.couplings, first.model.couplings[CHOSEN])
    again = cut(file.rename(tmp_path / "four.h5"), np.array([1, 3]))
    assert np.array_equal(ss.load(again).model.numbers, [2, 9])


def test_pooled_each_sample_counts_from_its_longest_run(tmp_path):
    path = tmp_path / "run.h5"
    ss.temper(signs(), "0.8:2:4", sweeps=400, out=path, **SETTINGS)
    whole = ss.temper(signs(), "0.8:2:4", sweeps=800, **SETTINGS)
    file = cut(path)
    to_file(plan_resume(file, {"sweeps": 800}, {}))
    pooled = ss.pool([path, file])
    rest = np.setdiff1d(np.arange(10), CHOSEN)
    short = ss.load(path)
    assert pooled.disorder is None
    assert np.array_equal(pooled.model.couplings, short.model.couplings[np.concatenate([rest, CHOSEN])])
    for name, sums in pooled.reduced.arrays.items():
        axis = SAMPLE_AXIS.get(name, 0)
        parts = [short.reduced.arrays[name].take(rest, axis), whole.reduced.arrays[name].take(CHOSEN, axis)]
        assert np.array_equal(sums, np.concatenate(parts, axis)), name
    everything = cut(file.rename(tmp_path / "four.h5"), np.arange(4))
    assert ss.pool([path, tmp_path / "four.h5"]).model.samples == 10
    assert np.array_equal(ss.load(everything).model.numbers, CHOSEN)


@pytest.fixture(scope="module")
def short_run(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("short") / "run.h5"
    ss.temper(signs(), "0.1:3:24", sweeps=160, measure_every=5, out=path, **SETTINGS)
    return path


def files_of(path: Path) -> list[Path]:
    return sorted(path.parent.glob("run-slow-*.h5"), key=lambda one: int(one.stem.rpartition("-")[2]))


def test_slow_samples_go_on_until_none_is_slow(tmp_path, short_run):
    path = Path(shutil.copy(short_run, tmp_path))
    first = ss.load(path).equilibrium()
    assert len(first.slow)
    pooled = ss.resume(path, slow_samples=True)
    assert pooled.model.samples == 10
    assert len({pooled.model.couplings[k].tobytes() for k in range(10)}) == 10
    files = files_of(path)
    last = ss.load(files[-1])
    assert not len(last.equilibrium().slow)
    whole = ss.temper(signs(), "0.1:3:24", sweeps=int(last.config["temper"]["sweeps"]), measure_every=5, **SETTINGS)
    assert np.array_equal(last.energy, whole.energy[:, last.model.numbers])
    assert np.array_equal(ss.pool([path, *files]).reduced.arrays["block_sums"], pooled.reduced.arrays["block_sums"])
    before = [file.read_bytes() for file in files]
    ss.resume(path, slow_samples=True)  # a repeated call computes nothing
    assert [file.read_bytes() for file in files] == before


def test_a_killed_call_is_repeated(tmp_path, short_run, monkeypatch):
    path, other = (Path(shutil.copy(short_run, tmp_path / name)) for name in ("run.h5", "whole.h5"))

    def kill() -> None:
        raise KeyboardInterrupt

    at_row(monkeypatch, 100, kill)  # in the second file
    with pytest.raises(KeyboardInterrupt):
        ss.resume(path, slow_samples=True, checkpoint_every=0)
    assert len(files_of(path)) == 2
    again, at_once = (ss.resume(one, slow_samples=True) for one in (path, other))
    assert np.array_equal(again.reduced.arrays["block_sums"], at_once.reduced.arrays["block_sums"])


def test_the_longest_length_and_the_command(tmp_path, short_run, capsys, monkeypatch):
    told = partial(run, capsys, monkeypatch)
    path = Path(shutil.copy(short_run, tmp_path))
    assert told("resume", path, "--slow-samples", "--sweeps", 320, "--quiet").status == 0
    assert [one.name for one in files_of(path)] == ["run-slow-320.h5"]
    assert told("check", *files_of(path)).status == 0
    assert told("analyze", path, *files_of(path)).status == 0
    assert told("resume", path, "--slow-samples", "--time-limit", 4).status == 2


def test_refusals(tmp_path, short_run):
    path = Path(shutil.copy(short_run, tmp_path))
    with pytest.raises(ss.InputError, match="within sweeps 300"):
        ss.resume(path, sweeps=300, slow_samples=True)
    with pytest.raises(ss.InputError, match="leave other changes out"):
        ss.resume(path, anneals=3, slow_samples=True)
    saved = tmp_path / "saved.h5"
    ss.temper(signs(), "0.1:3:24", sweeps=160, measure_every=5, **SETTINGS).save(saved)
    with pytest.raises(ss.InputError, match="without a checkpoint"):
        ss.resume(saved, slow_samples=True)
    shutil.copy(saved, tmp_path / "run-slow-320.h5")
    with pytest.raises(ss.InputError, match="another run"):
        ss.resume(path, slow_samples=True)
    anneal = tmp_path / "anneal.h5"
    ss.anneal(signs(), sweeps=10, replicas=2, out=anneal, progress=False)
    with pytest.raises(ss.InputError, match="no finished run with walks"):
        ss.resume(anneal, slow_samples=True)
    easy = tmp_path / "easy.h5"
    ss.temper(signs(), "2:3:3", sweeps=4000, out=easy, **SETTINGS)
    with pytest.raises(ss.InputError, match="no slow samples"):
        ss.resume(easy, slow_samples=True)


def test_samples_of_a_quantum_run_go_on_alone(tmp_path):
    path = tmp_path / "run.h5"
    how = {"k": "0.2:0.6:4", "seed": 3, "thermalize": 20, "threads": 1, "progress": False}
    ss.quantum(ss.EdwardsAnderson(ss.square(4), samples=10, seed=1), slices=8, sweeps=400, out=path, **how)
    whole = ss.quantum(ss.EdwardsAnderson(ss.square(4), samples=10, seed=1), slices=8, sweeps=800, **how)
    result, _ = to_file(plan_resume(cut(path), {"sweeps": 800}, {}))
    assert np.array_equal(result.permutation, whole.permutation[:, CHOSEN])
    assert np.array_equal(result.overlap, whole.overlap[:, CHOSEN])


def test_moves_of_users_are_refused(tmp_path):
    path = tmp_path / "run.h5"
    ss.temper(signs(), "1:2:3", sweeps=100, out=path, moves=[(Nothing(), 10)], **SETTINGS)
    with pytest.raises(ss.InputError, match="nothing is a user's own"):
        cut(path)


def test_a_run_until_it_is_equilibrated(tmp_path, short_run, capsys, monkeypatch):
    how = {"temperatures": "0.1:3:24", "sweeps": 160, "measure_every": 5, **SETTINGS}
    path, other = tmp_path / "run.h5", Path(shutil.copy(short_run, tmp_path / "other.h5"))
    found = ss.temper(signs(), out=path, until_equilibrated=True, **how)
    resumed = ss.resume(other, slow_samples=True)
    assert found.model.samples == 10
    assert np.array_equal(found.reduced.arrays["block_sums"], resumed.reduced.arrays["block_sums"])
    *before, _ = (file.read_bytes() for file in [path, *files_of(path)])
    assert len(before) > 1
    files_of(path)[-1].unlink()
    ss.temper(signs(), out=path, until_equilibrated=True, **how)  # completes what is missing
    assert [file.read_bytes() for file in [path, *files_of(path)[:-1]]] == before
    assert len(files_of(path)) == len(before)
    model = ["--size", 4, "--couplings", "pm-j", "--samples", 10]
    told = partial(run, capsys, monkeypatch, "temper", *model, "--temperatures", "0.1:3:24", "--thermalize", 20)
    command = told(
        "--sweeps", 160, "--seed", 3, "--measure-every", 5, "--until-equilibrated", "--out", tmp_path / "c.h5"
    )
    assert command.status == 0
    assert len(list(tmp_path.glob("c-slow-*.h5"))) == len(before)
    assert told("--until-equilibrated", "--json", "--out", tmp_path / "json.h5").status == 2
    assert not (tmp_path / "json.h5").exists()


def test_a_run_without_slow_samples_ends(tmp_path):
    how = {"temperatures": "2:3:3", "sweeps": 4000, "until_equilibrated": True, **SETTINGS}
    result = ss.temper(signs(), out=tmp_path / "run.h5", **how)
    assert not len(result.equilibrium().slow)
    assert not files_of(tmp_path / "run.h5")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "give out"),
        ({"out": "run.h5", "time_limit": 1.0}, "not a search"),
        ({"out": "run.h5", "temperatures": 1.0}, "walks along a ladder"),
        ({"out": "run.h5", "moves": [(ss.Houdayer(), 10), (Nothing(), 10)]}, "a user's own"),
    ],
)
def test_runs_that_cannot_equilibrate_are_refused_at_once(tmp_path, monkeypatch, given, words):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ss.InputError, match=words):
        ss.temper(signs(), **{"temperatures": "1:2:3", "sweeps": 100, **SETTINGS, **given}, until_equilibrated=True)
    assert not list(tmp_path.iterdir())
