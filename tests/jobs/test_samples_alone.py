"""Some samples of a run go on alone, with the bits that they have in a run of all samples."""

from pathlib import Path

import numpy as np
import pytest

import spinsim as ss
from spinsim.engine.measuring.reduction import SAMPLE_AXIS
from spinsim.run.alone import alone
from spinsim.run.execute import to_file
from spinsim.run.identity import verify
from spinsim.run.plan import plan_resume
from spinsim.store.files import read, save_new

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
