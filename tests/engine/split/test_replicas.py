"""Replicas of one sample that several devices share out end as those of one device, to the bit."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from engines import GENERAL, GENERAL_TERMS, PACKED, SITE, TERMS, check_counts, ladder
from harness import contents
from several import OF_FEW_SAMPLES, OWN, on_cpus, same

import spinsim as ss
from spinsim.cuda.device import names
from spinsim.engine import Dynamics, Engine, create_engine
from spinsim.engine.choosing import update_of
from spinsim.engine.measuring.correlations import Quantities
from spinsim.engine.split import shares
from spinsim.engine.split.replicas import ReplicaSplit
from spinsim.model.ising import Ising
from spinsim.packing import Packing
from spinsim.parallel.group import Seat
from spinsim.parallel.session import Here

MODELS: dict[Packing, tuple[Callable[[], Ising], int]] = {
    Packing.REPLICA: (PACKED["square-5x4-odd"], 300),
    Packing.SITE: (SITE["square-256x2"][0], 6),
    Packing.UNPACKED: (GENERAL["gaussian"], 260),
    Packing.ANISOTROPIC: (TERMS["cubic-field"][0], 260),
}
"""A model of each update, and replicas that fill more than two blocks, the last one in part."""

DYNAMICS = Dynamics(seed=2**40 + 17)


@pytest.fixture(autouse=True)
def _any_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """GPUs share out what is short, too."""
    monkeypatch.setattr(shares, "SHORTEST_CALL", 0)


def check_replicas(whole: Engine, split: Engine) -> None:
    """That they start and move as those of one device, at given temperatures and on a ladder."""
    replicas = whole.replicas
    assert (split.packing, split.colours, split.devices) == (whole.packing, whole.colours, 3)
    same(split.snapshot(), whole.snapshot())
    for engine in (whole, split):
        engine.set_beta(np.linspace(0.1, 1, replicas))
        engine.sweep(2)
    later = split.begin_counts()
    split.sweep(1)
    same(later(), whole.counts())
    whole.sweep(1)
    same(split.snapshot(), whole.snapshot())
    found = []
    for engine in (whole, split):
        engine.set_ladder(ladder(0.8, 2.0, replicas // 2), 2)
        engine.prepare_measurements(3)
        engine.temper(3, 1)
        others = engine.temper_measured(2, 1, 2, Quantities(full=False))
        found.append([begun() for begun in (engine.begin_measurement(), *others)])
    for one, other in zip(*found, strict=True):
        same(one._replace(spins=None), other._replace(spins=None))
        np.testing.assert_array_equal(one.spins(0, replicas - 1), other.spins(0, replicas - 1))
    saved = split.snapshot()
    same(saved, whole.snapshot())
    for engine in (whole, split):
        engine.temper(2, 1)
        engine.restore(saved)
        engine.temper(1, 1)
        engine.sweep(2)
    same(split.begin_exchange()(), whole.begin_exchange()())
    same(split.snapshot(), whole.snapshot())
    np.testing.assert_array_equal(split.spins(0, 1), whole.spins(0, 1))


def on_three(monkeypatch: pytest.MonkeyPatch, model: Ising, replicas: int) -> Engine:
    """An engine whose replicas three CPUs share out."""
    with monkeypatch.context() as patch:
        on_cpus(patch, 3)
        return create_engine(model, replicas, DYNAMICS, "cpu")


@pytest.mark.parametrize("packing", MODELS)
def test_replicas_of_one_sample(monkeypatch: pytest.MonkeyPatch, packing: Packing) -> None:
    make, replicas = MODELS[packing]
    whole, split = create_engine(make(), replicas, DYNAMICS, "cpu"), on_three(monkeypatch, make(), replicas)
    assert whole.packing is packing
    assert isinstance(split, ReplicaSplit)
    check_replicas(whole, split)
    check_counts(split)


def test_replicas_of_two_samples_of_two_general_terms(monkeypatch: pytest.MonkeyPatch) -> None:
    """One sample has one device, the other has two."""
    model = GENERAL_TERMS["gaussian"][0]()
    check_replicas(create_engine(model, 130, DYNAMICS, "cpu"), on_three(monkeypatch, model, 130))


def test_temperatures_are_refused_in_the_words_of_one_device(monkeypatch: pytest.MonkeyPatch) -> None:
    split = on_three(monkeypatch, PACKED["square-6"](), 300)
    with pytest.raises(ss.InputError, match=r"have shape \(299,\)"):
        split.set_beta(np.ones(299))
    with pytest.raises(ss.InputError, match=r"have shape \(1, 2\)"):
        split.set_beta(np.ones((1, 2)))
    with pytest.raises(ss.InputError, match="no temperature is set"):
        split.sweep(1)
    with pytest.raises(ss.InputError, match="no ladder of temperatures is set"):
        split.temper(1, 1)
    with pytest.raises(ss.InputError, match="2 copies of 5 temperatures are 10 replicas"):
        split.set_ladder(ladder(0.8, 2.0, 5), 2)


@pytest.mark.system
@pytest.mark.usefixtures("emulated")
@pytest.mark.parametrize(
    "packing",
    [Packing.SITE, Packing.UNPACKED]
    + [pytest.param(packing, marks=pytest.mark.slow) for packing in (Packing.REPLICA, Packing.ANISOTROPIC)],
)
def test_replicas_of_one_sample_on_three_gpus(monkeypatch: pytest.MonkeyPatch, packing: Packing) -> None:
    import cupy

    monkeypatch.setattr(cupy.cuda.runtime, "getDeviceCount", lambda: 3)
    make, replicas = MODELS[packing]
    check_replicas(*(create_engine(make(), replicas, DYNAMICS, device) for device in ("cuda", "cuda:all")))


@pytest.mark.system
@pytest.mark.usefixtures("emulated")
def test_exchanges_of_gpus_that_are_made_on_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where they are those of several ranks."""
    import cupy

    monkeypatch.setattr(cupy.cuda.runtime, "getDeviceCount", lambda: 3)
    make, replicas = MODELS[Packing.SITE]
    whole, split = (create_engine(make(), replicas, DYNAMICS, device) for device in ("cuda", "cuda:all"))
    split._on_gpus = False  # type: ignore[attr-defined]
    check_replicas(whole, split)


@pytest.mark.system
@pytest.mark.usefixtures("emulated")
def test_gpus_do_not_share_out_what_takes_one_of_them_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    import cupy

    monkeypatch.setattr(cupy.cuda.runtime, "getDeviceCount", lambda: 3)
    for packing, sweeps in ((Packing.SITE, 7), (Packing.UNPACKED, 7), (Packing.UNPACKED, None)):
        make, replicas = MODELS[packing]
        update = update_of(make())
        turn = shares.call_time_of(update, make().sites, replicas, sweeps)
        assert turn == make().sites * replicas * (7 if packing is Packing.SITE else 1) / update.pace.rate
        for shortest, devices, words in ((turn, 3, " each"), (turn + 1, 1, "2 of 3 GPUs idle: too little to do")):
            monkeypatch.setattr(shares, "SHORTEST_CALL", shortest)
            engine = create_engine(make(), replicas, DYNAMICS, "cuda:all", slabs=False, round_sweeps=sweeps)
            assert engine.devices == devices
            assert words in shares.in_words(shares.Work(1, replicas, update.together, turn), "cuda:all")


@pytest.mark.gpu
@pytest.mark.parametrize("packing", MODELS)
def test_replicas_of_one_sample_on_two_gpus(packing: Packing) -> None:
    make, replicas = MODELS[packing]
    if len(names()) < 2:
        pytest.skip("needs two GPUs")
    whole, split = (create_engine(make(), replicas, DYNAMICS, device) for device in ("cuda", "cuda:2"))
    split.devices += 1  # as of three
    check_replicas(whole, split)


@pytest.mark.system
@pytest.mark.parametrize("line", OF_FEW_SAMPLES.values(), ids=OF_FEW_SAMPLES)
def test_files_of_several_devices_are_those_of_one(do, monkeypatch: pytest.MonkeyPatch, line: str) -> None:
    line += " --device cpu --quiet"
    expected = contents(do(f"{line} --out a.h5", "one"), *OWN)
    on_cpus(monkeypatch, 3)
    assert contents(do(f"{line} --out b.h5", "three"), *OWN) == expected


@pytest.mark.slow
@pytest.mark.usefixtures("emulated")
@pytest.mark.parametrize("job", ["anneal", "anneal-population", "temper-sites", "quantum"])
def test_files_of_several_gpus_are_those_of_the_cpu(do, monkeypatch: pytest.MonkeyPatch, job: str) -> None:
    import cupy

    line = OF_FEW_SAMPLES[job] + " --quiet --out a.h5 --device"
    own = (*OWN, "engine")
    expected = contents(do(f"{line} cpu", "cpu"), *own)
    monkeypatch.setattr(cupy.cuda.runtime, "getDeviceCount", lambda: 3)
    assert contents(do(f"{line} cuda --gpus all", "gpus"), *own) == expected


@pytest.mark.system
def test_a_longer_run_goes_on_with_another_number_of_devices(do, monkeypatch: pytest.MonkeyPatch) -> None:
    line, more = OF_FEW_SAMPLES["temper-sites"] + " --device cpu --quiet", " --sweeps 40"
    expected = contents(do(line.replace(" --sweeps 20", more) + " --out a.h5", "one"), *OWN, "config_sha256")
    on_cpus(monkeypatch, 3)
    path = do(f"{line} --out b.h5", "more")
    on_cpus(monkeypatch, 2)
    do(f"resume {path}{more} --quiet", "more")
    assert contents(path, *OWN, "config_sha256") == expected


def test_seats_share_out_samples_first_and_then_replicas(monkeypatch: pytest.MonkeyPatch) -> None:
    seats = [Seat(Here()) for _ in range(3)]
    shared = [(len(mine), samples) for mine, samples in shares._shared_out(2, seats)]
    assert shared == [(1, range(1)), (2, range(1, 2))]
    assert [samples for _, samples in shares._shared_out(7, seats)] == [range(2), range(2, 4), range(4, 7)]


@pytest.mark.parametrize(
    ("work", "words"),
    [
        ((6, 300, 128), "6 samples over 3 ranks, 2 each"),
        ((1, 300, 128), "1 sample x 3 blocks of 128 replicas over 3 ranks, 1 each"),
        ((2, 300, 128), "2 samples x 3 blocks of 128 replicas over 3 ranks, 1 to 3 each"),
        ((2, 200, 128), "2 samples x 2 blocks of 128 replicas over 3 ranks, 1 or 2 each"),
        ((1, 2, 1), "1 sample x 2 replicas over 3 ranks, 1 each, which leaves 1 of 3 ranks idle"),
        ((2, 4, 128), "2 samples, one each, which leaves 1 of 3 ranks idle"),
        ((1, None, 128), "1 sample over 3 ranks, which share out replicas"),
        ((1, 300, 128, 10), "1 sample x 3 blocks of 128 replicas over 3 ranks, 1 each"),
    ],
)
def test_how_work_is_shared_out_in_words(monkeypatch, work: tuple[int, ...], words: str) -> None:
    on_cpus(monkeypatch, 3)
    assert shares.in_words(shares.Work(*work), "cpu") == words
