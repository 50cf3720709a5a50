"""Samples that several devices of one process share out end as those of one device, to the bit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from engines import PACKED, TEMPERED, check_counts, configurations, ladder
from harness import contents, one_sentence, run
from several import OWN, on_cpus, same

import spinsim as ss
from spinsim.engine import Dynamics, Engine, create_engine
from spinsim.engine.devices import gpu_numbers, resolve_device
from spinsim.engine.measuring.correlations import Quantities
from spinsim.parallel import session
from spinsim.parallel.session import OnNode

RUNS = {
    "anneal": "anneal --size 6 --couplings pm-j --samples 5 --replicas 70 --steps 6 --sweeps 4 --save-configurations 2",
    "anneal-field": "anneal --size 6 --couplings pm-j --samples 3 --fields 1:0:4 --steps 4 --sweeps 2",
    "anneal-quantum": "anneal --quantum --size 4 --couplings pm-j --samples 3 --slices 8 --replicas 4 "
    "--steps 4 --sweeps 2",
    "temper": "temper --size 6 --couplings pm-j --samples 5 --temperatures 0.8:2.5:4g --thermalize 20 --sweeps 60 "
    "--save-configurations 3",
    "temper-gaussian": "temper --size 4 --couplings gaussian --samples 3 --temperatures auto:0.5:2:4 --thermalize 10 "
    "--sweeps 40",
    "temper-sums": "temper --size 4 --couplings pm-j --samples 5 --temperatures 0.8:2.5:4g --thermalize 20 --sweeps 60 "
    "--measure-every 1 --series none",
    "quantum": "quantum --local-susceptibility --size 4 --couplings pm-j --samples 4 "
    "--k 0.25:0.31:3 --slices 8 --thermalize 10 --sweeps 40",
}  # fmt: skip


def engines(monkeypatch: pytest.MonkeyPatch, name: str, replicas: int) -> tuple[Engine, Engine]:
    """One of a single device, and one of two or three devices that do not have equally many samples."""
    model = PACKED[name]() if name in PACKED else TEMPERED[name][0]()
    whole = create_engine(model, replicas, Dynamics(seed=3), "cpu")
    with monkeypatch.context() as patch:
        on_cpus(patch, 2)
        return whole, create_engine(model, replicas, Dynamics(seed=3), "cpu")


@pytest.mark.parametrize("name", ["cubic-samples", "gaussian"])
def test_an_engine_of_parts(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    whole, split = engines(monkeypatch, name, 10)
    assert (whole.devices, split.devices, split.tasks) == (1, 2, whole.tasks)
    assert (split.packing, split.colours, split.device_name) == (whole.packing, whole.colours, "cpu")
    for engine in (whole, split):
        engine.set_beta(np.linspace(0.1, 1, 10))
        engine.sweep(2)
        engine.sweep(1)
        engine.wait()
    begun = split.begin_counts()
    split.sweep(1)
    same(begun(), whole.counts())
    whole.sweep(1)
    same(split.snapshot(), whole.snapshot())
    np.testing.assert_array_equal(configurations(split), configurations(whole))
    check_counts(split)


@pytest.mark.parametrize("name", ["cubic-samples", "gaussian"])
def test_a_ladder_of_parts(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    whole, split = engines(monkeypatch, name, 10)
    found = []
    for engine in (whole, split):
        engine.set_ladder(ladder(0.8, 2.0, 5), 2)
        engine.prepare_measurements(3)
        engine.temper(3, 1)
        later = engine.begin_measurement()
        others = engine.temper_measured(2, 1, 2, Quantities(full=False))
        found.append([begun() for begun in (later, *others)])
    for one, other in zip(*found, strict=True):
        same(one._replace(spins=None), other._replace(spins=None))
        for sample in range(3):
            np.testing.assert_array_equal(one.spins(sample, 7), other.spins(sample, 7))
    same(split.begin_exchange()(), whole.begin_exchange()())
    saved = split.snapshot()
    same(saved, whole.snapshot())
    for engine in (whole, split):
        engine.temper(2, 1)
        engine.restore(saved)
        assert engine.half_sweep == int(saved["half_sweep"])
        engine.temper(1, 1)
    same(split.snapshot(), whole.snapshot())


@pytest.mark.parametrize("line", RUNS.values(), ids=RUNS)
@pytest.mark.system
def test_files_of_several_devices_are_those_of_one(do, monkeypatch: pytest.MonkeyPatch, line: str) -> None:
    line += " --device cpu --quiet"
    expected = contents(do(f"{line} --out a.h5", "one"), *OWN)
    on_cpus(monkeypatch, 3)
    assert contents(do(f"{line} --out b.h5", "three"), *OWN) == expected


def test_a_file_says_how_many_devices_there_were(monkeypatch: pytest.MonkeyPatch) -> None:
    on_cpus(monkeypatch, 2)
    model = ss.EdwardsAnderson(ss.square(4), samples=3, seed=1)
    result = ss.anneal(model, temperatures=[1.0], sweeps=1, replicas=2, device="cpu")
    assert result.attributes["devices"] == "2 x cpu"
    assert ss.anneal(ss.Ising(ss.square(4)), temperatures=[1.0], sweeps=1, replicas=2).attributes["devices"] == "cpu"


@pytest.mark.system
def test_a_longer_run_goes_on_with_another_number_of_devices(do, monkeypatch: pytest.MonkeyPatch) -> None:
    line, more = RUNS["temper"] + " --device cpu --quiet", " --sweeps 90"
    expected = contents(do(line.replace(" --sweeps 60", more) + " --out a.h5", "one"), *OWN, "config_sha256")
    on_cpus(monkeypatch, 3)
    path = do(f"{line} --out b.h5", "more")
    on_cpus(monkeypatch, 2)
    do(f"resume {path}{more} --quiet", "more")
    assert contents(path, *OWN, "config_sha256") == expected


def test_an_interrupted_run_goes_on_with_another_number_of_devices(monkeypatch, tmp_path: Path) -> None:
    model, path = ss.EdwardsAnderson(ss.square(6), samples=5, seed=1), tmp_path / "a.h5"
    settings = {"temperatures": np.linspace(2, 0.5, 6), "sweeps": 4, "replicas": 9, "device": "cpu"}
    whole = ss.anneal(model, **settings)
    steps = iter(range(100))

    def stop(updates: int) -> None:
        if next(steps) == 4:
            raise KeyboardInterrupt

    on_cpus(monkeypatch, 3)
    with pytest.raises(KeyboardInterrupt):
        ss.anneal(model, out=path, checkpoint_every=0, on_updates=stop, **settings)
    on_cpus(monkeypatch, 2)
    np.testing.assert_array_equal(ss.resume(path).energy, whole.energy)


def test_the_failure_of_a_part_is_the_failure_of_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    on_cpus(monkeypatch, 2)
    engine = create_engine(PACKED["cubic-samples"](), 4, Dynamics(), "cpu")
    with pytest.raises(ss.InputError, match="no temperature is set"):
        engine.sweep(1)
    with pytest.raises(ss.InputError, match="no ladder of temperatures is set"):
        engine.temper(1, 1)


@pytest.fixture
def gpus(emulated: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three GPUs."""
    import cupy

    monkeypatch.setattr(cupy.cuda.runtime, "getDeviceCount", lambda: 3)


@pytest.mark.system
@pytest.mark.usefixtures("gpus")
@pytest.mark.parametrize("job", ["anneal", pytest.param("temper", marks=pytest.mark.slow)])
def test_files_of_several_gpus_are_those_of_the_cpu(do, job: str) -> None:
    line = RUNS[job] + " --quiet --out a.h5 --device"
    own = (*OWN, "engine")
    expected = contents(do(f"{line} cpu", "cpu"), *own)
    assert contents(do(f"{line} cuda --gpus 2,0", "gpus"), *own) == expected


@pytest.mark.usefixtures("gpus")
def test_which_gpus_a_process_gets(monkeypatch: pytest.MonkeyPatch) -> None:
    for asked, expected in ((None, [0]), ("2", [0, 1]), ("all", [0, 1, 2]), ("2,0", [2, 0]), ("1,", [1])):
        assert gpu_numbers(resolve_device("auto", asked)) == expected
    monkeypatch.setattr(session._Session, "on_node", OnNode(1, 2))
    for asked, expected in ((None, [1]), ("all", [1]), ("0,2,1", [2])):
        assert gpu_numbers(resolve_device("cuda", asked)) == expected
    monkeypatch.setattr(session._Session, "on_node", OnNode(3, 4))
    assert gpu_numbers("cuda") == [0]


@pytest.mark.usefixtures("gpus")
@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ("4", "gpus 4 are more than the 3 of this machine"),
        ("0,3", "GPU 3 is not there: this machine has the numbers 0 to 2"),
        ("0,0", "gpus 0,0 name one twice"),
        ("none", "gpus 'none' cannot be read"),
        ("0", "gpus '0' cannot be read"),
    ],
)
def test_gpus_that_there_are_not(asked: str, words: str, capsys, monkeypatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    one_sentence(run(capsys, monkeypatch, "anneal", "--gpus", asked, "--device", "cuda"), words)
    assert not list(tmp_path.iterdir())


def test_gpus_mean_nothing_elsewhere(capsys, monkeypatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    refused = run(capsys, monkeypatch, "anneal", "--gpus", "2", "--device", "cpu")
    one_sentence(refused, "gpus 2 have no effect on the cpu")
    assert run(capsys, monkeypatch, "transfer", "--gpus", "2").status == 2
