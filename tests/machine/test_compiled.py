"""Numba is loaded where compiled functions are needed, and nowhere else."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from spinsim.engine import Dynamics, create_engine
from spinsim.engine.moves.metropolis.classes import Classes
from spinsim.engine.moves.metropolis.replica_packed.batches import Costs, build_batches
from spinsim.machine import compiled
from spinsim.model.disorder import EdwardsAnderson
from spinsim.model.graph import Graph, colouring
from spinsim.model.lattice import cubic

GPU_RUN = """
import sys
import spinsim.cli, spinsim.engine.moves.metropolis.replica_packed.cuda, spinsim.jobs.anneal.report
from spinsim.engine.dynamics import Dynamics
from spinsim.engine.moves.metropolis.replica_packed.update import ReplicaPlan
from spinsim.model.ising import read_instance

ReplicaPlan(read_instance("examples/data/G11.txt"), 128, Dynamics(seed=1), 256)
print([name for name in ("numba", "llvmlite", "scipy") if name in sys.modules])
"""


@pytest.mark.system
def test_a_run_on_a_gpu_loads_no_compiler() -> None:
    done = subprocess.run([sys.executable, "-c", GPU_RUN], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("costs", [None, Costs(32, 10, 3, 1, doubling=True)])
def test_python_and_numba_lay_out_the_same(costs: Costs | None, monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = np.random.default_rng(5).integers(0, 90, (400, 2))
    graph = Graph(90, pairs[pairs[:, 0] != pairs[:, 1]])
    found = []
    for steps in (2**40, -1):
        monkeypatch.setattr(compiled, "STEPS_BEFORE_LOADING", steps)
        monkeypatch.setattr(compiled, "STEPS_BEFORE_COMPILING", steps)
        colour = colouring(graph)
        classes = Classes.of(int(graph.degrees().max()), 1.0, 0.0)
        negative = np.arange(graph.bonds)[None] % 3 == 0
        found.append([colour, *build_batches(graph, colour, classes, negative, 20, costs, costs is not None)])
    for python, numba in zip(*found, strict=True):
        assert python.dtype == numba.dtype
        assert np.array_equal(python, numba)


@compiled.kernel
def first_half(values):  # type: ignore[no-untyped-def]
    return values[: values.size // 2]


@compiled.step
def itself(values):  # type: ignore[no-untyped-def]
    return values


@compiled.step
def sum_of_first_half(values):  # type: ignore[no-untyped-def]
    half = first_half(values)
    return half.sum()


@compiled.kernel
def calls_itself(values):  # type: ignore[no-untyped-def]
    return itself(values)[0]


@compiled.kernel
def calls_sum_of_first_half(values):  # type: ignore[no-untyped-def]
    return sum_of_first_half(values)


@pytest.mark.parametrize("caller", [calls_itself, calls_sum_of_first_half])
def test_a_step_that_returns_or_receives_an_array_is_refused(caller: compiled.Compiled) -> None:
    with pytest.raises(Exception, match="returns an array, which no step can"):
        caller(np.arange(4.0))


def test_no_reference_is_lost_or_kept() -> None:
    model = EdwardsAnderson(cubic(4), samples=1, field=0.5)
    engine = create_engine(model, 16, Dynamics(), "cpu", 1)
    engine.set_ladder(1 / np.linspace(1, 2, 16), 1)
    plan = engine._sweeper._plan  # type: ignore[attr-defined]
    arrays = [engine._sweeper._blocks.state, *plan.batches, *plan.counted[:-1]]  # type: ignore[attr-defined]
    engine.sweep(1)  # prepares the call that is kept
    before = [sys.getrefcount(array) for array in arrays]
    engine.temper(3, 2)
    engine.sweep(2)
    assert [sys.getrefcount(array) for array in arrays] == before
