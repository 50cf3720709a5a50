"""Replicas of a run that is not told how many: as many as fill a GPU."""

from __future__ import annotations

import numpy as np
import pytest

import spinsim as ss
from spinsim.engine import PlannedSizes
from spinsim.engine import choosing as filling
from spinsim.engine.choosing import replicas_that_fill
from spinsim.engine.update import ModelSizes, Sizes
from spinsim.model.ising import Ising

SMALL = ss.square(32)
STEPS = 100 * 24  # bytes of a replica in 100 steps


def planned(lattice: ss.Lattice, samples: int = 1) -> Sizes:
    """A ferromagnet that is not built."""
    return PlannedSizes(lattice, samples, one_magnitude=True, one_coupling=True)


def stop(_: int) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("sizes", "device", "written", "replicas"),
    [
        (planned(SMALL), "cpu", STEPS, 128),
        (planned(SMALL), "cuda", STEPS, 4 * 132 * 128),  # four blocks for each multiprocessor
        (planned(SMALL), "cuda:0,1", STEPS, 4 * 132 * 128),
        (planned(SMALL, 100), "cuda", STEPS, 6 * 128),  # samples share 528 blocks
        (planned(SMALL, 1000), "cuda", STEPS, 128),
        (planned(SMALL), "cuda", 100 * STEPS, 8 * 128),  # many steps: a file of 256 MiB
        (planned(ss.cubic(20)), "cuda", STEPS, 4 * 132 * 128),
        (planned(ss.cubic(40)), "cuda", STEPS, 34 * 128),  # several multiprocessors share a lattice
        (planned(ss.cubic(200)), "cuda", STEPS, 128),
        (planned(ss.square(256)), "cuda", STEPS, 33 * 128),
        (ModelSizes(ss.Ising.from_matrix(np.ones((200, 200)) - np.eye(200))), "cuda", STEPS, 132 * 16),
    ],
)
def test_replicas_fill_the_gpu(sizes: Sizes, device: str, written: int, replicas: int) -> None:
    assert replicas_that_fill(sizes, device, written) == replicas


def test_searches_of_dense_problems_have_few_replicas_on_a_cpu(tmp_path) -> None:
    """Which take no word together; given numbers stay, and files go on with what they have."""
    dense, packed = ss.Ising.from_matrix(np.ones((130, 130)) - np.eye(130)), ss.Ising(ss.square(4))
    how = {"device": "cpu", "threads": 1}
    found, path = {"target": -8000, "time_limit": 0.001}, tmp_path / "run.h5"
    assert ss.anneal(dense, **found, **how).energy.shape[2] == 16
    assert ss.anneal(dense, steps=1, sweeps=1, **how).energy.shape[2] == 128
    assert ss.anneal(packed, time_limit=0.001, **how).energy.shape[2] == 128
    assert ss.anneal(dense, replicas=40, **found, **how).energy.shape[2] == 40
    copies = [ss.temper(model, time_limit=0.001, **how).config["run"]["replicas"] for model in (dense, packed)]
    assert copies == [1, 4]
    assert ss.temper(packed, sweeps=10, thermalize=0, **how).config["run"]["replicas"] == 2
    before = {ss.anneal: {"replicas": 128}, ss.temper: {"replicas": 4}}
    for run, given in before.items():
        with pytest.raises(KeyboardInterrupt):
            run(dense, out=path, on_updates=stop, **given, **found, **how)
        config = run(dense, out=path, **found, **how).config
        assert given.items() <= (config["run"] | config[run.__name__]).items()
        path.unlink()


def test_searches_have_fewer_than_fill_a_gpu() -> None:
    assert replicas_that_fill(planned(SMALL), "cuda", STEPS, searches=True) == 2**13
    assert replicas_that_fill(planned(SMALL, 100), "cuda", STEPS, searches=True) == 128
    assert replicas_that_fill(planned(ss.cubic(40)), "cuda", STEPS, searches=True) == 34 * 128


@pytest.mark.emulated
def test_a_run_has_the_replicas_with_which_it_began_on_any_device(emulated, monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(filling, "MULTIPROCESSORS", 1)
    model: Ising = ss.Ising(ss.square(4))
    path = tmp_path / "run.h5"
    how = {"temperatures": [2.0, 1.0], "sweeps": 2}

    with pytest.raises(KeyboardInterrupt):
        ss.anneal(model, device="cuda", out=path, on_updates=stop, **how)
    completed = ss.anneal(model, device="cpu", out=path, **how)  # the same call, elsewhere
    assert completed.energy.shape == (2, 1, 512)
    told = ss.anneal(model, device="cpu", replicas=512, **how)
    np.testing.assert_array_equal(completed.energy, told.energy)
    assert completed.attributes["config_sha256"] == told.attributes["config_sha256"]
    assert ss.anneal(model, device="cuda", quantum=True, steps=1, sweeps=1).energy.shape[2] == 128


def test_given_configurations_say_how_many_replicas_there_are() -> None:
    model = ss.Ising(ss.square(4))
    run = ss.anneal(model, 1.0, 1, start=np.ones((1, 3, 16)), device="cpu")
    assert run.energy.shape == (1, 1, 3)
    assert ss.anneal(model, 1.0, 1, start=np.ones((1, 1, 16)), device="cpu").energy.shape == (1, 1, 128)
