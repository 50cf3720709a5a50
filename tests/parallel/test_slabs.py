"""Lattices that several devices cut into slabs move as those of one device, to the bit."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest
from engines import check_counts, configurations
from harness import contents
from several import OWN
from test_ranks import on_ranks
from test_split import same

import spinsim as ss
from spinsim.cuda import device as gpus
from spinsim.engine import Dynamics, Engine, create_engine
from spinsim.engine.split import slabs
from spinsim.parallel.group import Seat
from spinsim.parallel.session import Here, InThread

MODELS: dict[str, tuple[Callable[[], ss.Ising], int, int]] = {
    "square": (lambda: ss.Ising(ss.square(256, 14)), 1, 3),
    "square-signs-field-samples": (lambda: ss.EdwardsAnderson(ss.square(512, 8), samples=2, seed=3, field=0.3), 1, 3),
    "cubic-signs-replicas": (lambda: ss.EdwardsAnderson(ss.cubic(256, 4, 6), seed=5), 2, 3),
    "cubic-double-bonds": (lambda: ss.EdwardsAnderson(ss.cubic(256, 2, 4), seed=5), 1, 2),
}
"""Model, replicas and slabs, which do not all have equally many layers."""

LARGE: dict[str, tuple[Callable[[], ss.Ising], int, int]] = {
    "square-large": (lambda: ss.Ising(ss.square(2048, 1030)), 1, 2),
    "square-field-large": (lambda: ss.EdwardsAnderson(ss.square(2048, 514), seed=2, field=0.3), 1, 2),
    "cubic-large": (lambda: ss.EdwardsAnderson(ss.cubic(256, 32, 66), seed=5), 1, 2),
}
"""Likewise, of many thread blocks."""


def cut(monkeypatch: pytest.MonkeyPatch, count: int, gpus: bool = False) -> None:
    """Give this process so many devices."""
    given = [Seat(InThread() if k or gpus else Here(), k if gpus else None) for k in range(count)]
    monkeypatch.setattr(slabs, "seats", lambda device: given)
    monkeypatch.setattr(slabs, "SMALLEST", 2**8)


@pytest.mark.parametrize("name", MODELS)
def test_slabs_move_as_the_whole_lattice(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    make, replicas, count = MODELS[name]
    model, dynamics = make(), Dynamics(seed=3)
    whole = create_engine(model, replicas, dynamics, "cpu")
    cut(monkeypatch, count)
    parts = create_engine(model, replicas, dynamics, "cpu")
    assert (parts.devices, parts.packing, parts.colours) == (count, whole.packing, whole.colours)
    same(parts.snapshot(), whole.snapshot())
    for engine in (parts, whole):
        engine.set_beta(np.linspace(0.3, 0.5, replicas))
        engine.sweep(3)
    saved = parts.snapshot()
    same(saved, whole.snapshot())
    same(parts.counts(), whole.counts())
    check_counts(parts)
    for engine in (parts, whole):
        engine.sweep(2)
        engine.restore(saved)
        engine.sweep(1)
        assert engine.half_sweep == 8
        assert engine.part_rates() == []
    same(parts.snapshot(), whole.snapshot())
    np.testing.assert_array_equal(configurations(parts), configurations(whole))


@pytest.mark.system
@pytest.mark.usefixtures("emulated")
@pytest.mark.parametrize(
    ("name", "halo"),
    [
        *(("square", "peers"), ("square", "processes"), ("square", "copies"), ("cubic-double-bonds", "peers")),
        *(("cubic-signs-replicas", "peers"), ("cubic-signs-replicas", "copies")),
    ],
)
def test_slabs_on_gpus(monkeypatch: pytest.MonkeyPatch, name: str, halo: str) -> None:
    """Kernels that read each other's memory and wait for each other, side by side, and copies between them."""
    import cupy

    monkeypatch.setattr(cupy.cuda.runtime, "getDeviceCount", lambda: 3)
    if halo != "peers":
        monkeypatch.setattr(gpus, "reaches", lambda device, other: False)
    if halo == "processes":
        monkeypatch.setattr(gpus, "ranks", lambda: "some")
        monkeypatch.setattr(gpus.os, "getpid", threading.get_ident)
    make, replicas, count = MODELS[name]
    parts = check_gpus(monkeypatch, make(), replicas, count, (3, 1))
    assert {part.value._state.halo.is_copied for part in parts._engines} == {halo == "copies"}


@pytest.mark.gpu
@pytest.mark.parametrize("near", [True, False])
@pytest.mark.parametrize("name", ["square", "cubic-signs-replicas", "cubic-double-bonds", *LARGE])
def test_slabs_on_two_gpus(monkeypatch: pytest.MonkeyPatch, name: str, near: bool) -> None:
    import cupy

    if cupy.cuda.runtime.getDeviceCount() < 2:
        pytest.skip("needs two GPUs")
    if not near:
        monkeypatch.setattr(gpus, "reaches", lambda device, other: False)
    check_gpus(monkeypatch, (MODELS | LARGE)[name][0](), 1, 2, (300, 7))


@pytest.mark.gpu
@pytest.mark.usefixtures("two_gpus")
@pytest.mark.parametrize("copied", [False, True])
@pytest.mark.parametrize(("ranks", "gpus"), [(2, 1), (1, 2)])
def test_slabs_of_ranks_on_two_gpus(do, tmp_path: Path, ranks: int, gpus: int, copied: bool) -> None:
    """In each other's memory, and by copies: NCCL's between ranks."""
    code = "from spinsim.engine.split import slabs\nslabs.SMALLEST = 256\n"
    if copied:
        code += "from spinsim.engine.moves.metropolis.site_packed import cuda\n"
        code += "cuda.reach = lambda *given: None\n"
    line = "anneal --size 2048x1030 --couplings pm-j --replicas 1 --steps 3 --sweeps 40 --device cuda --quiet"
    found = on_ranks(ranks, tmp_path, f"{line} --gpus {gpus} --out a.h5", code)
    assert found.status == 0, found.err
    with h5py.File(tmp_path / "a.h5") as file:
        assert file.attrs["devices"].startswith("2 x ")
    assert contents(tmp_path / "a.h5", *OWN) == contents(do(f"{line} --gpus 1 --out b.h5", "one"), *OWN)


def check_gpus(
    monkeypatch: pytest.MonkeyPatch, model: ss.Ising, replicas: int, count: int, sweeps: tuple[int, ...]
) -> Engine:
    """That so many GPUs which share one lattice do what the CPU does; their engine."""
    dynamics, beta = Dynamics(seed=3), np.linspace(0.3, 0.5, replicas)
    whole = create_engine(model, replicas, dynamics, "cpu")
    cut(monkeypatch, count, gpus=True)
    parts = create_engine(model, replicas, dynamics, "cuda")
    assert parts.devices == count
    same(parts.snapshot(), whole.snapshot())
    for several in sweeps:
        for engine in (parts, whole):
            engine.set_beta(beta)
            engine.sweep(several)
        same(parts.counts(), whole.counts())
    saved = whole.snapshot()
    same(parts.snapshot(), saved)
    for engine in (parts, whole):
        engine.restore(saved)
        engine.sweep(1)
    same(parts.snapshot(), whole.snapshot())
    return parts


def test_a_run_goes_on_with_another_number_of_slabs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    model, path = ss.EdwardsAnderson(ss.square(256, 10), seed=1), tmp_path / "a.h5"
    settings = {"temperatures": np.linspace(2, 0.5, 6), "sweeps": 2, "device": "cpu"}
    whole = ss.anneal(model, **settings)
    steps = iter(range(100))

    def stop(updates: int) -> None:
        if next(steps) == 4:
            raise KeyboardInterrupt

    cut(monkeypatch, 3)
    with pytest.raises(KeyboardInterrupt):
        ss.anneal(model, out=path, checkpoint_every=0, on_updates=stop, **settings)
    cut(monkeypatch, 2)
    found = ss.resume(path)
    np.testing.assert_array_equal(found.energy, whole.energy)
    np.testing.assert_array_equal(found.best_spins, whole.best_spins)


def test_which_lattices_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    cut(monkeypatch, 3)
    model = ss.Ising(ss.square(256, 14))
    assert slabs.slabs_in_words(model, 1, "cpu") == "one lattice in 3 slabs over 3 ranks"
    assert slabs.slabs_in_words(model, 2, "cuda") == "each of 2 lattices in 3 slabs over 3 GPUs"
    few = "one lattice in 2 slabs over 2 ranks, which leaves 1 idle"
    assert slabs.slabs_in_words(ss.Ising(ss.square(256, 4)), 1, "cpu") == few
    for whole, replicas in ((model, 3), (ss.Ising(ss.square(8)), 1)):
        assert slabs.slabs_in_words(whole, replicas, "cpu") == ""
    small = "one lattice whole, too small for slabs, which leaves 2 of 3 "
    assert slabs.slabs_in_words(ss.Ising(ss.square(256, 2)), 1, "cpu") == small + "ranks idle"
    monkeypatch.setattr(slabs, "SMALLEST", 2**11)
    assert slabs.slabs_in_words(model, 1, "cuda") == small + "GPUs idle"
    assert len(slabs.seats_of_slabs(model, 1, "cpu")) == 3
    assert [len(layers) for layers in slabs.cuts(14, 3)] == [4, 4, 6]


def test_slabs_take_no_ladder(monkeypatch: pytest.MonkeyPatch) -> None:
    cut(monkeypatch, 3)
    with pytest.raises(ss.InputError, match="takes no ladder: make its engine with slabs=False"):
        create_engine(ss.Ising(ss.square(256, 6)), 2, Dynamics(), "cpu").set_ladder([0.4, 0.3], 1)
    engine = create_engine(ss.Ising(ss.square(256, 6)), 2, Dynamics(), "cpu", slabs=False)
    engine.set_ladder([0.4, 0.3], 1)
    engine.temper(1, 1)
