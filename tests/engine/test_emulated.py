"""The GPU engines and the very source of their kernels, on a CPU: see ``emulation``.

A few cases; ``pytest -m emulated tests/engine`` runs all that do not need more than one block at once.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from dense import check_kernel
from engines import (
    ALONE,
    DENSE,
    GENERAL,
    GENERAL_TERMS,
    GENERAL_TERMS_TEMPERED,
    PACKED,
    SITE,
    TEMPERED,
    TERMS,
    TERMS_TEMPERED,
    around,
    check_counts,
    ladder,
    run_both,
    temper_both,
)
from frames import check_frames, check_room
from products import check_exact
from reductions import RUNS, check_lowest, check_reduction

import spinsim as ss
from spinsim.engine import Dynamics, create_engine
from spinsim.gemm import product as rungs
from spinsim.transfer_matrix.layer import Layer
from spinsim.transfer_matrix.operator import TransferOperator
from spinsim.transfer_matrix.vectors import Vectors

pytestmark = [pytest.mark.system, pytest.mark.usefixtures("emulated")]


@pytest.mark.parametrize("name", ["cubic-samples", "cubic-open-odd", "random-graph-field"])
def test_shared_memory(not_spread: None, name: str) -> None:
    run_both("cuda", PACKED[name](), 130, 0.6, (1, 3))
    check_counts(create_engine(PACKED[name](), 130, Dynamics(), "cuda"))


def test_global_memory(not_spread: None, monkeypatch: pytest.MonkeyPatch) -> None:
    from spinsim.engine.moves.metropolis.replica_packed import cuda_lattices

    monkeypatch.setattr(cuda_lattices, "shared_memory", lambda device: 0)
    run_both("cuda", PACKED["cubic-samples"](), 130, 0.6, (1, 3))


@pytest.mark.parametrize(
    ("name", "beta", "room"),
    [
        ("random-graph-hubs-samples", 0.1, 2**17),
        ("random-graph-hubs-samples", 0.1, 0),
        ("random-units-fields-samples", 0.2, 2**17),
        ("random-graph-hubs-field", 0.4, 0),
    ],
)
def test_degrees(name: str, beta: float, room: int, monkeypatch: pytest.MonkeyPatch) -> None:
    from spinsim.engine.moves.metropolis.replica_packed import cuda_lattices as cuda_degrees

    monkeypatch.setattr(cuda_degrees, "shared_memory", lambda device: room)
    run_both("cuda", PACKED[name](), 130, beta, (1, 2))


def test_a_uniform_field_as_bonds(monkeypatch: pytest.MonkeyPatch) -> None:
    from spinsim.engine.moves.metropolis.replica_packed import cuda

    model = ss.Ising(PACKED["random-graph-field"]().graph, -1.0, 0.5)
    monkeypatch.setattr(cuda, "AS_BONDS", range(31))
    assert cuda.groups_by_degree(model)
    run_both("cuda", model, 130, 0.4, (1, 2))


@pytest.mark.parametrize("name", ["cubic-samples", "chain-8", "honeycomb"])
def test_spread(name: str) -> None:
    """With bonds that are none, and threads without a place."""
    run_both("cuda", PACKED[name](), 130, 0.6, (1, 3))


def test_dates_that_begin_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """After 2^32 half-sweeps, and words that several launches have left."""
    from spinsim.engine.moves.metropolis.cuda_spread import DatedWords

    monkeypatch.setattr(DatedWords, "first_date", 2**32 - 5)
    run_both("cuda", PACKED["cubic-samples"](), 130, 0.6, (1, 3, 2))
    make, beta, copies = TEMPERED["cubic-samples"][:3]
    temper_both("cuda", make(), beta, copies, [(2, 1), (1, 2), (2, 1)])


@pytest.mark.parametrize("where", ["spread", "shared", "global", "unpacked"])
def test_portions_and_pauses(where: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    from spinsim.engine.moves.metropolis.replica_packed import cuda_lattices

    if where != "spread":
        request.getfixturevalue("not_spread")
    if where == "global":
        monkeypatch.setattr(cuda_lattices, "shared_threads", lambda *_: 0)
    model = GENERAL["gaussian-samples-field"]() if where == "unpacked" else PACKED["cubic-samples"]()
    check_frames(monkeypatch, "cuda", model, ss.sampling.Times(5, 15, 3), [7])


def test_measurements_without_room_are_refused_before_the_first_sweep(monkeypatch: pytest.MonkeyPatch) -> None:
    import cupy

    with monkeypatch.context() as patch:
        for module in ("cuda", "cuda_comparison"):
            patch.setattr(f"spinsim.engine.measuring.{module}.SMALL_BYTES", 0)
        engine = create_engine(PACKED["cubic-samples"](), 6, Dynamics(), "cuda")
        patch.setattr(cupy.cuda.runtime, "memGetInfo", lambda: (70_000, 70_000))
        check_room(engine)
        patch.setattr(cupy, "get_default_memory_pool", lambda: SimpleNamespace(free_bytes=lambda: 70_000))
        ss.sampling.tempering(engine, [0.9, 1.3, 2.0], ss.sampling.Times(100, 100))  # in memory of what has ended
    engine = create_engine(ss.Ising(ss.chain(2)), 30_000, Dynamics(), "cuda")
    with pytest.raises(ss.InputError, match="30000 replicas are too many for overlaps on this GPU: take fewer"):
        ss.sampling.tempering(engine, np.linspace(1, 2, 15_000), ss.sampling.Times(100, 100))


@pytest.mark.parametrize("name", ["square-256x6", "cubic-signs-field"])
def test_site_packed(name: str) -> None:
    make, replicas = SITE[name]
    run_both("cuda", make(), replicas, 0.44, (1, 3))
    check_counts(create_engine(make(), replicas, Dynamics(), "cuda"))


@pytest.mark.parametrize("room", [2**17, 0])
def test_unpacked(room: int, monkeypatch: pytest.MonkeyPatch) -> None:
    from spinsim.engine.moves.metropolis import unpacked_cuda as cuda

    monkeypatch.setattr(cuda, "shared_memory", lambda device: room)
    for model, beta in ((GENERAL["gaussian-samples-field"](), 0.6), (GENERAL["many-degrees"](), 0.2)):
        run_both("cuda", model, 70, beta, (1, 3))
        check_counts(create_engine(model, 70, Dynamics(), "cuda"))


@pytest.mark.parametrize("name", ["signs", "pairs-without-bonds", "three-bytes-wide"])
def test_dense(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    check_kernel(name, monkeypatch)


def test_dense_tempering() -> None:
    model = DENSE["samples-field"]()
    temper_both("cuda", model, ladder(0.5, 2.0, 3) / model.energy_scale, 2, [(2, 1)])


def test_two_terms() -> None:
    make, pair = TERMS["cubic-field"]
    run_both("cuda", make(), 70, around(pair, 70), (1, 3))
    make, beta, copies = TERMS_TEMPERED["square-gamma"]
    temper_both("cuda", make(), beta, copies, [(2, 1), (1, 2)])


@pytest.mark.parametrize("name", ["square", "cubic-both", "hypercubic"])
def test_two_terms_of_known_numbers_of_bonds(name: str) -> None:
    make, beta, copies = TERMS_TEMPERED[name]
    engine = create_engine(make(), 4, Dynamics(), "cuda")
    engine.set_beta(np.repeat(beta[-1:], 4, axis=0))
    assert "0, 0" not in engine._sweeper._launch._kernel[2]  # not the kernel of any numbers
    temper_both("cuda", make(), beta, copies, [(2, 1), (1, 2)])


def test_two_terms_unpacked() -> None:
    make, pair = GENERAL_TERMS["gaussian"]
    run_both("cuda", make(), 70, around(pair, 70), (1, 3))
    make, beta, copies = GENERAL_TERMS_TEMPERED["staggered"]
    temper_both("cuda", make(), beta, copies, [(2, 1), (1, 2)])
    temper_both("cuda", make(), beta[:, 0], copies, [(2, 1)])


@pytest.mark.parametrize("name", ["cubic-samples", "hot", "warm", "field-in-halves", "hot-field", "gaussian"])
def test_tempering(name: str) -> None:
    make, beta, copies = TEMPERED[name][:3]
    temper_both("cuda", make(), beta, copies, [(2, 1), (1, 2)])
    temper_both("cuda", make(), beta[:1], copies, [(2, 1)])


@pytest.mark.parametrize("is_small", [True, False])
@pytest.mark.parametrize("name", ["square", "cubic-samples-field"])
def test_measuring_a_replica_alone(name: str, is_small: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """In blocks of several lattices, and where blocks share one."""
    if not is_small:
        for module in ("cuda", "cuda_words"):
            monkeypatch.setattr(
                f"spinsim.engine.moves.metropolis.site_packed.{module}.fits_block", lambda *sizes: False
            )
        monkeypatch.setattr("spinsim.engine.moves.metropolis.site_packed.cuda.fits_gpu", lambda *sizes: True)
    make, beta = ALONE[name]
    temper_both("cuda", make(), np.array([beta]), 1, [(2, 1), (3, 2), (1, 0)])


@pytest.mark.parametrize("name", ["cubic-samples", "hot", "infinite-temperature", "field", "field-in-halves"])
def test_tempering_in_shared_memory(not_spread: None, name: str) -> None:
    make, beta, copies = TEMPERED[name][:3]
    temper_both("cuda", make(), beta, copies, [(2, 1), (1, 2)])


@pytest.mark.parametrize(("name", "copies"), [("gaussian-samples-field", 5), ("many-degrees", 3), ("wide-integers", 3)])
def test_tempering_unpacked(name: str, copies: int) -> None:
    """Rounds in one launch, of one word of replicas and of two, with couplings of 32 and 64 bits."""
    model = GENERAL[name]()
    beta = ladder(0.5, 2.0, 9) / model.energy_scale
    temper_both("cuda", model, beta, copies, [(3, 2), (2, 1), (1, 0)])


@pytest.mark.parametrize("name", ["cubic-samples", "hot", "warm"])
def test_tempering_from_global_memory(not_spread: None, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from spinsim.engine.moves.metropolis.replica_packed import cuda_lattices

    monkeypatch.setattr(cuda_lattices, "shared_threads", lambda *_: 0)
    make, beta, copies = TEMPERED[name][:3]
    temper_both("cuda", make(), beta, copies, [(2, 1), (1, 2), (3, 1)])


@pytest.mark.parametrize("reason", ["faster", "room"])
def test_lattices_that_fit_are_shared_by_blocks(not_spread: None, reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where that is faster, or there is room for the lattice but not for its ladder besides."""
    from spinsim.engine.moves.metropolis.replica_packed import cuda_lattices, cuda_rounds

    make, beta, copies = TEMPERED["cubic-samples"]
    if reason == "faster":
        monkeypatch.setattr(cuda_lattices, "is_shared_faster", lambda *_: False)
        run_both("cuda", make(), 130, 0.6, (1, 3))
    else:
        monkeypatch.setattr(cuda_rounds, "LADDER_BYTES", 2**30)
    started: list[int] = []
    start = cuda_rounds.GlobalRounds._start

    def noted(self: Any, count: int, half_sweeps: int, **arguments: Any) -> None:
        started.append(count)
        start(self, count, half_sweeps, **arguments)

    monkeypatch.setattr(cuda_rounds.GlobalRounds, "_start", noted)
    temper_both("cuda", make(), beta, copies, [(2, 1), (1, 2)])
    assert started == [2, 1]


@pytest.mark.parametrize(
    "name", ["field-many-samples", "in-time", "site-packed", "one-replica", "one-replica-with-modes"]
)
def test_measurements_added_up(name: str) -> None:
    check_reduction(RUNS[name], "cuda", (1, 3, 2))
    check_lowest(RUNS[name], "cuda", (1, 3, 2))


@pytest.mark.parametrize(("sites", "sector"), [(13, "even"), (15, "odd"), (12, "all"), (14, "all")])
def test_butterflies(sites: int, sector: str) -> None:
    """Products with a transfer matrix, also in place, in one pass and in two."""
    model = ss.EdwardsAnderson(ss.chain(sites), seed=1, couplings="gaussian", field=0.2 if sector == "all" else 0.0)
    layer = Layer(model, 0, 0.4, 0.3, sector)
    gpu, cpu = Vectors(layer.dimension, "cuda"), Vectors(layer.dimension, "cpu")
    x, y, start, expected = gpu.empty(), gpu.empty(), cpu.empty(), cpu.empty()
    gpu.random(7, 1, 2, x)
    cpu.random(7, 1, 2, start)
    np.testing.assert_array_equal(x.get(), start)
    TransferOperator(layer).apply(start, expected)
    operator = TransferOperator(layer, "cuda")
    operator.apply(x, y)
    operator.apply(x, x)
    for product in (x, y):
        np.testing.assert_allclose(product.get(), expected, atol=1e-14 * np.abs(expected).max())


@pytest.mark.parametrize(("kernel", "kind"), [*((name, "float64") for name in rungs.RUNGS), ("naive", "int32")])
def test_products(kernel: str, kind: str) -> None:
    """In one part, in four and in nine, whose sums two threads share; with gaps and C not read where beta is 0."""
    import cupy

    shapes = [(5, 3, 20), (33, 18, 130), (9, 7, 290)]
    for shape, flips in zip(shapes, [(False, True, False), (False, False, True), (True, False, False)], strict=True):
        check_exact(cupy, kernel, kind, shape, flips, (2, 0), (3, 1))
    check_exact(cupy, kernel, kind, shapes[2], (True, True, False), (-1, 3), (1, 2))
