"""Vectors shared by several devices: products, levels and what follows from them are those of one."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest

import spinsim as ss
from spinsim.jobs.transfer.run import Work
from spinsim.machine.memory import readable
from spinsim.machine.threads import Threads
from spinsim.parallel.group import Group, Seat, make_group, together
from spinsim.parallel.session import Here, InThread
from spinsim.transfer_matrix import spectrum, vectors
from spinsim.transfer_matrix.layer import Layer, make_points
from spinsim.transfer_matrix.operator import TransferOperator
from spinsim.transfer_matrix.spectrum import FEWEST_BITS, Chosen, Fit, Settings, Solver, SplitSolver, choose
from spinsim.transfer_matrix.vectors import Share, Vectors

GLASS = partial(ss.EdwardsAnderson, seed=4)


def members(count: int, gpus: Sequence[int | None] = (None,)) -> list[Any]:
    return make_group([Seat(InThread() if k else Here(), gpus[k % len(gpus)]) for k in range(count)])


def product(group: Group, layer: Layer, device: str, method: str) -> Any:
    """T on the random vector of one device."""
    share = Share(group)
    vectors = Vectors(layer.dimension, device, 1, share)
    x, y = vectors.empty(), vectors.empty()
    vectors.random(3, 1, 2, x)
    return vectors.numpy(TransferOperator(layer, device, method, 1, share).apply(x, y))


def check_product(
    count: int, sites: int, sector: str, device: str, method: str, gpus: Sequence[int | None] = (None,)
) -> None:
    model = GLASS(ss.chain(sites), couplings="gaussian", field=0.2 if sector == "all" else 0.0)
    layer = Layer(model, 0, 0.4, 0.3, sector)
    alone = Vectors(layer.dimension)
    x, y = alone.empty(), alone.empty()
    alone.random(3, 1, 2, x)
    TransferOperator(layer).apply(x, y)
    found = np.concatenate(together(members(count, gpus), product, layer, device, method))
    np.testing.assert_allclose(found, y, atol=1e-14 * np.abs(y).max())


@pytest.mark.parametrize("method", ["butterfly", "kronecker"])
@pytest.mark.parametrize(("count", "sector"), [(2, "even"), (4, "odd"), (8, "even"), (4, "all")])
def test_products_of_parts(monkeypatch: pytest.MonkeyPatch, count: int, sector: str, method: str) -> None:
    monkeypatch.setitem(vectors.BUFFER, "cpu", 2**9)
    check_product(count, 13, sector, "cpu", method)


@pytest.mark.usefixtures("emulated")
@pytest.mark.parametrize(
    ("count", "sites", "sector", "room"), [(2, 15, "odd", 2**11), (4, 15, "even", 2**11), (2, 16, "even", 2**13)]
)
def test_products_of_parts_on_gpus(
    monkeypatch: pytest.MonkeyPatch, count: int, sites: int, sector: str, room: int
) -> None:
    """Of one pass, after which the diagonal comes in another, and of two, the first of which goes piece by piece."""
    monkeypatch.setitem(vectors.BUFFER, "cuda", room)
    check_product(count, sites, sector, "cuda", "butterfly", [0, 1])


@pytest.mark.gpu
@pytest.mark.usefixtures("two_gpus")
@pytest.mark.parametrize("method", ["butterfly", "kronecker"])
@pytest.mark.parametrize(("sites", "sector"), [(14, "odd"), (21, "even"), (24, "all")])
def test_products_of_two_gpus(monkeypatch: pytest.MonkeyPatch, sites: int, sector: str, method: str) -> None:
    monkeypatch.setitem(vectors.BUFFER, "cuda", 2**22)
    for count in (2, 4):
        check_product(count, sites, sector, "cuda", method if sites > 14 else "auto", [0, 1])


@pytest.mark.gpu
@pytest.mark.usefixtures("two_gpus")
@pytest.mark.parametrize("basis", [None, 0])
def test_levels_of_two_gpus(monkeypatch: pytest.MonkeyPatch, basis: int | None) -> None:
    monkeypatch.setitem(FEWEST_BITS, "cuda", 15)
    model = GLASS(ss.square(6, 3), couplings="gaussian")
    one, two, second = (
        ss.transfer(model, k=0.4, basis=basis, tolerance=1e-12, device="cuda", gpus=gpus) for gpus in (None, "2", "1,")
    )
    assert two.attributes["devices"].startswith("2 x ")
    for found in (two, second):
        np.testing.assert_allclose(found.levels, one.levels, rtol=0, atol=1e-12)
        np.testing.assert_allclose(found.sigma, one.sigma, atol=1e-7)
        np.testing.assert_allclose(found.energy_per_site, one.energy_per_site, atol=1e-9)


LAYERS = {
    "even and odd": (GLASS(ss.square(3, 4)), ("even", "odd")),
    "odd": (GLASS(ss.chain(11, periodic=False), couplings="gaussian"), ("odd",)),
    "field": (GLASS(ss.square(3), field=0.25), ("all",)),
    "degenerate": (ss.Ising(ss.chain(10)), ("even", "odd")),
}


def given(name: str, room: Fit, **settings: Any) -> tuple[Any, ...]:
    model, sectors = LAYERS[name]
    return model, 0, 0.45, 0.35, sectors, Settings(**{"eigenvalues": 3, "tolerance": 1e-12} | settings), room


@pytest.mark.parametrize(
    ("name", "count", "room"),
    [
        ("even and odd", 2, Fit(22)),
        ("even and odd", 4, Fit(0)),
        ("odd", 4, Fit(12)),
        ("odd", 2, Fit(0, fits_eigenvectors=False)),
        ("field", 4, Fit(22)),
        ("degenerate", 2, Fit(0)),
    ],
)
def test_levels_of_parts(name: str, count: int, room: Fit) -> None:
    """Levels, energies and matrix elements."""
    task = given(name, room)
    one, several = Solver(*task, Threads(1)), SplitSolver(members(count), task, 1, None)
    for solver in (one, several):
        while not solver.done:
            solver.advance()
    expected, found = one.row(), several.row()
    assert not several.problems
    np.testing.assert_allclose(found["log_eigenvalue"], expected["log_eigenvalue"], rtol=0, atol=1e-12)
    for key in ("sigma", "sigma_sigma", "energy_per_site", "correlation_length"):
        np.testing.assert_allclose(found[key], expected[key], rtol=1e-7, atol=1e-9)


def test_checkpoints_go_on_with_another_number_of_devices() -> None:
    task = given("even and odd", Fit(12), eigenvalues=2)

    def solver(count: int) -> Any:
        return SplitSolver(members(count), task, 1, None) if count > 1 else Solver(*task, Threads(1))

    whole = solver(1)
    while not whole.done:
        whole.advance()
    counts = [2, 1, 4]
    part = solver(counts[0])
    while not part.done:
        part.advance()
        if not part.done:
            counts = counts[1:] + counts[:1]
            saved, part = part.snapshot(), solver(counts[0])
            part.restore(saved)
    np.testing.assert_allclose(part.row()["log_eigenvalue"], whole.row()["log_eigenvalue"], rtol=0, atol=1e-12)


def on_cpus(monkeypatch: pytest.MonkeyPatch, devices: int) -> None:
    """Give this process so many devices, each of which is the CPU, and let them share short vectors."""
    monkeypatch.setitem(FEWEST_BITS, "cpu", 6)
    found = [Seat(InThread() if k else Here()) for k in range(devices)]
    monkeypatch.setattr(spectrum, "seats", lambda device: found)


@pytest.mark.parametrize("options", ["", " --basis 0"])
def test_a_run_of_several_devices(do, monkeypatch: pytest.MonkeyPatch, options: str) -> None:
    line = f"transfer --width 13 --couplings pm-j --samples 2 --k 0.3,0.4 --device cpu{options} --out"
    expected = ss.load(do(f"{line} a.h5", "one"))
    on_cpus(monkeypatch, 3)
    found = ss.load(do(f"{line} b.h5", "two"))
    np.testing.assert_allclose(found.levels, expected.levels, rtol=0, atol=1e-12)
    np.testing.assert_allclose(found.energy_per_site, expected.energy_per_site, atol=1e-9)
    assert found.attributes["devices"] == "2 x cpu"
    assert found.attributes["config_sha256"] == expected.attributes["config_sha256"]


def test_a_run_of_several_devices_stops_when_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    on_cpus(monkeypatch, 2)
    work = Work(GLASS(ss.chain(13)), make_points([0.4], None), "both", Settings(basis=0), 1)
    asked = iter(range(100))
    with pytest.raises(KeyboardInterrupt):
        list(work.solved([0], lambda: next(asked) == 5))
    assert next(asked) == 6


def test_who_shares(monkeypatch: pytest.MonkeyPatch) -> None:
    def chosen(sites: int) -> Chosen:
        return choose(sites, ("even", "odd"), Settings(), "cpu")

    assert chosen(20).words == ""
    for devices, sites, words in (
        (5, 20, "each vector over 4 ranks, which leaves 1 rank idle"),
        (2, 20, "each vector over 2 ranks"),
        (3, 6, "none, which leaves 2 ranks idle"),
    ):
        on_cpus(monkeypatch, devices)
        assert chosen(sites).words == words
    size = 8 * 2**38
    with pytest.raises(ss.InputError, match=r"needs .* of memory on each of 2 devices but .* are available"):
        choose(40, ("even", "odd"), Settings(), "cpu")
    monkeypatch.setattr(spectrum, "room", lambda gpu: 9 * size)
    assert choose(40, ("even", "odd"), Settings(eigenvalues=1), "cpu").room == Fit(0)
    assert readable(size) == "2.0 TiB"


@pytest.mark.usefixtures("emulated")
def test_as_many_gpus_as_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 9 GiB each, where the command names none."""
    import cupy

    monkeypatch.setattr(cupy.cuda.runtime, "memGetInfo", lambda: (9 * 2**30, 9 * 2**30))

    def chosen(there: int, sites: int, device: str = "cuda") -> str:
        monkeypatch.setattr(cupy.cuda.runtime, "getDeviceCount", lambda: there)
        return choose(sites, ("even", "odd"), Settings(eigenvalues=1, device="cuda"), device).words

    assert chosen(4, 29) == ""
    assert chosen(4, 30) == "each vector over 4 GPUs"
    assert chosen(3, 29, "cuda:3") == "each vector over 2 GPUs, which leaves 1 GPU idle"
    with pytest.raises(ss.InputError, match=r"2\^29 .* needs 9.5 GiB of GPU memory on each of 2 devices but 9.0 GiB"):
        chosen(3, 30)
