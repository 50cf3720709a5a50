"""Measurements that are added up as they are made: on the host against plain sums, on devices against the host."""

from __future__ import annotations

import numpy as np
import pytest
from engines import ladder
from reductions import RUNS, Run, assert_same, begin, check_lowest, check_reduction, measure, oracle
from several import on_several

from spinsim.engine.measuring import reduction as reducing
from spinsim.engine.measuring.cpu_reduction import HostReduction
from spinsim.engine.measuring.reduction import SUMS
from spinsim.errors import InputError
from spinsim.model.disorder import EdwardsAnderson
from spinsim.model.lattice import cubic

COUNTS = 1, 2, 3, 5, 8
SPLIT = "glass", "many-samples", "field", "in-time", "many-replicas", "site-packed"
"""Runs whose samples are shared out, or the replicas of some of them or of their only one."""


@pytest.fixture(autouse=True)
def _four_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks are merged after few measurements."""
    monkeypatch.setattr(reducing, "_BLOCKS", (4,))


@pytest.mark.parametrize("count", [1, 4, 5, 23])
@pytest.mark.parametrize("name", RUNS)
def test_sums_on_the_host_are_plain_sums(name: str, count: int) -> None:
    engine, reduced = begin(RUNS[name], "cpu")
    host = engine.reduction(reduced)
    expected = oracle(reduced, measure(engine, RUNS[name].wanted, count, host))
    found = host.state()
    assert found.keys() == expected.keys()
    for key, array in expected.items():
        if array.dtype == np.float64:
            scale = max(1e-300, float(abs(array).max(initial=0)))
            np.testing.assert_allclose(found[key], array, rtol=1e-12, atol=1e-12 * scale, err_msg=key)
        elif key in SUMS:  # values are rounded in finer units than that of the end
            np.testing.assert_allclose(found[key], array, rtol=1e-12, atol=100, err_msg=key)
        else:
            np.testing.assert_array_equal(found[key], array, key)


@pytest.mark.parametrize("name", RUNS)
def test_sums_have_the_bits_of_the_host(device: str, name: str) -> None:
    check_reduction(RUNS[name], device, COUNTS)


@pytest.mark.parametrize("devices", [2, 3])
@pytest.mark.parametrize("name", SPLIT)
def test_sums_of_parts_have_the_bits_of_one_device(
    device: str, name: str, devices: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_several(monkeypatch, device, devices)
    check_reduction(RUNS[name], device, COUNTS)
    check_lowest(RUNS[name], device, COUNTS)


@pytest.mark.gpu
@pytest.mark.parametrize("name", ["glass", "many-samples", "in-time"])
def test_long_runs(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    check_reduction(RUNS[name], "cuda", (200, 57, 1))


@pytest.mark.gpu
@pytest.mark.parametrize("samples", [15, 128])
def test_large_runs(samples: int) -> None:
    run = Run(lambda: EdwardsAnderson(cubic(6), samples=samples, field=0.2), ladder(0.8, 2.0, 32), 4)
    check_reduction(run, "cuda", COUNTS)
    check_lowest(run, "cuda", COUNTS)


@pytest.mark.parametrize(
    "where", [pytest.param("cuda", marks=pytest.mark.gpu), pytest.param("emulated", marks=pytest.mark.emulated)]
)
class TestOnAGpu:
    """What a device alone does."""

    @pytest.fixture(autouse=True)
    def _device(self, where: str, request: pytest.FixtureRequest) -> None:
        if where == "emulated":
            request.getfixturevalue("emulated")

    @pytest.mark.parametrize("name", RUNS)
    def test_lowest_states_are_those_of_the_host(self, where: str, name: str) -> None:
        check_lowest(RUNS[name], "cuda", COUNTS)

    @pytest.mark.parametrize("pattern", [[0], [0, 0, 1], [1, 0, 0, 0, 0, 0], [0, 1, 1, 0, 1, 0, 0]])
    @pytest.mark.parametrize("name", ["glass", "in-time"])
    def test_measurements_that_are_fetched_too(self, where: str, name: str, pattern: list[int]) -> None:
        run, count = RUNS[name], 12
        (engine, reduced), (other, _) = begin(run, "cuda"), begin(run, "cpu")
        reduction, host = engine.reduction(reduced), HostReduction(reduced)
        fetched = [bool(pattern[k % len(pattern)]) for k in range(count)]
        begun = engine.temper_measured(count - 1, 1, 1, run.wanted, reduction, fetched[:-1])
        engine.temper(1, 1)
        begun.append(engine.begin_measurement(run.wanted, reduction, fetched[-1]))
        assert [one is not None for one in begun] == fetched
        for one, expected in zip(begun, measure(other, run.wanted, count, host), strict=True):
            if one is not None:
                np.testing.assert_array_equal(one().energy, expected.energy)
                np.testing.assert_equal(one().correlations, expected.correlations)
                np.testing.assert_array_equal(one().spins(0, 1), expected.spins(0, 1))
        assert_same(reduction, host)

    @pytest.mark.parametrize("name", RUNS)
    def test_measurements_together_are_those_of_single_ones(self, where: str, name: str) -> None:
        run, several = RUNS[name], 3
        (engine, reduced), (other, _) = begin(run, "cuda"), begin(run, "cpu")
        reduction, host = engine.reduction(reduced), HostReduction(reduced)
        assert engine.temper_together(engine.at_once + 1, 1, 1, run.wanted, reduction) is None  # which have no room
        of_all = engine.temper_together(several, 1, 1, run.wanted, reduction)
        engine.temper(1, 1)
        assert of_all is not None
        together, single = of_all(), measure(other, run.wanted, several, host)
        for k, expected in enumerate(single):
            for field in ("energy", "magnetization", "staggered_magnetization", "holder", "energy_by_term"):
                np.testing.assert_array_equal(getattr(together, field)[k], getattr(expected, field), field)
            np.testing.assert_equal([of_all[k] for of_all in together.correlations], list(expected.correlations))
        np.testing.assert_equal(together.exchange, single[-1].exchange)
        np.testing.assert_array_equal(together.spins(0, engine.replicas - 1), single[-1].spins(0, engine.replicas - 1))
        assert_same(reduction, host)

    def test_several_kinds_of_measurements_are_added_up_together(self, where: str) -> None:
        run = RUNS["overlaps-alone"]
        engine, reduced = begin(run, "cuda")
        reduction, host = engine.reduction(reduced), HostReduction(reduced)
        for wanted in (run.wanted, RUNS["glass"].wanted, run.wanted):
            for one in measure(engine, wanted, 3, reduction):
                host.add(one)
        assert_same(reduction, host)


@pytest.mark.emulated
@pytest.mark.usefixtures("emulated")
class TestMemory:
    """Memory of a device, which the emulation counts."""

    def test_measurements_that_stay_on_the_device_use_the_same_memory(self, monkeypatch: pytest.MonkeyPatch) -> None:
        import cupy

        run = RUNS["glass"]
        engine, reduced = begin(run, "cuda")
        reduction = engine.reduction(reduced)
        asked: list[str] = []

        def add(count: int) -> None:
            engine.temper_measured(count, 1, 1, run.wanted, reduction, [False] * count)

        add(3 * engine.at_once)
        for owner, name in ((cupy, "zeros"), (cupy, "empty"), (cupy, "asarray"), (cupy.cuda, "alloc_pinned_memory")):
            make = getattr(owner, name)
            monkeypatch.setattr(
                owner, name, lambda *given, _make=make, _name=name: asked.append(_name) or _make(*given)
            )
        add(5 * engine.at_once)
        assert not asked
        assert reduction.measurements == 8 * engine.at_once

    @pytest.mark.parametrize(
        ("free", "message"),
        [
            ([1000], "adding up measurements of cubic-4x4x4-pm-j needs .* on GPU 0 but 1000 B are free: choose"),
            ([2**30, 1000], "the lowest state of every sample needs .* but 1000 B are free"),
        ],
    )
    def test_sums_without_room_are_refused(
        self, free: list[int], message: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        import cupy

        engine, reduced = begin(RUNS["glass"], "cuda")
        monkeypatch.setattr(cupy.cuda.runtime, "memGetInfo", lambda: (free.pop(0), 0))
        with pytest.raises(InputError, match=message):
            engine.reduction(reduced)
