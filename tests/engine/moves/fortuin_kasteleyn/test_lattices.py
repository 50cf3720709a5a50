"""Fortuin-Kasteleyn clusters of single large lattices: every path equals the oracle, the energy at T_c is Onsager's."""

from __future__ import annotations

import lattice_oracle as oracle
import numpy as np
import numpy.typing as npt
import pytest
from engines import ANY_ROWS
from several import on_cpus

import spinsim as ss
from spinsim.analysis.autocorrelation import integrated_time
from spinsim.engine.moves.fortuin_kasteleyn import lattice, lattice_cuda
from spinsim.engine.moves.move import Batch, Moment
from spinsim.packing import Packing

MODELS = {
    "square": lambda: ss.Ising(ss.square(256, 34)),
    "narrow square": lambda: ss.Ising(ss.square(512, 2)),
    "cubic": lambda: ss.EdwardsAnderson(ss.cubic(256, 10, 2), seed=3),
    "deep cubic": lambda: ss.Ising(ss.cubic(256, 2, 10)),
    "two samples": lambda: ss.EdwardsAnderson(ss.square(256, 6), samples=2, seed=3),
    "in a field": lambda: ss.EdwardsAnderson(ss.square(256, 4), seed=3, field=1.0),
    "against a field": lambda: ss.Ising(ss.cubic(256, 2, 2), -1.0, field=-0.5),
}
MOVES = {move.name: move for move in (ss.SwendsenWang(), ss.Wolff(), ss.SeededClusters())}
LADDER = np.array([0.44, 0.2])
COPIES = 2


def configurations(engine: ss.engine.Engine) -> npt.NDArray[np.int8]:
    samples, replicas = range(engine.model.samples), range(engine.replicas)
    return np.stack([[engine.spins(k, r) for r in replicas] for k in samples])


@pytest.mark.parametrize("name", MODELS)
def test_same_as_oracle(name: str, device: str) -> None:
    model, moves = MODELS[name](), MOVES.values()
    engine = ss.create_engine(model, len(LADDER) * COPIES, ss.Dynamics(seed=3), device)
    assert engine.packing is Packing.SITE
    engine.set_ladder(LADDER, COPIES)
    for time, move in enumerate(moves):
        engine.temper(2, 1)
        before, place = configurations(engine), engine.begin_exchange()().place
        engine.apply(move, Moment(LADDER, time, 77))
        after, beta = configurations(engine), LADDER[place]
        for k in range(model.samples):
            expected = oracle.move(before[k], beta[k], model, move.name, 77, k, time)
            np.testing.assert_array_equal(after[k], expected)
        assert (after != before).any()
        batch = Batch(before, model, place, Moment(LADDER, time, 77))
        move.apply(batch)
        np.testing.assert_array_equal(batch.spins, after)


@pytest.mark.parametrize("name", ANY_ROWS)
def test_rows_that_begin_within_words(any_rows: None, device: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(MODELS, name, ANY_ROWS[name])
    test_same_as_oracle(name, device)


def log_partition(model: ss.Ising, beta: float) -> float:
    """The logarithm of the partition function of a lattice with few rows, by transfer matrices along x."""
    length, rows = model.lattice.shape[0], model.sites // model.lattice.shape[0]
    spins = 1 - 2 * (np.arange(2**rows)[:, None] >> np.arange(rows) & 1)
    couplings, field = np.broadcast_to(model.couplings[0], model.bonds), model.fields[0, 0]
    within, between = np.zeros((length, 2**rows)), np.zeros((length, 2**rows, 2**rows))
    for (i, j), coupling in zip(model.graph.edges.tolist(), couplings.tolist(), strict=True):
        (row, x), (other, behind) = divmod(i, length), divmod(j, length)
        if x == behind:
            within[x] += coupling * spins[:, row] * spins[:, other]
        else:
            at = x if (x + 1) % length == behind else behind
            mine, theirs = (row, other) if at == x else (other, row)
            between[at] += coupling * np.outer(spins[:, mine], spins[:, theirs])
    product, log = np.eye(2**rows), 0.0
    for x in range(length):
        product = product @ (
            np.exp(beta * (within[x] + field * spins.sum(axis=1)))[:, None] * np.exp(beta * between[x])
        )
        log += np.log(product.max())
        product /= product.max()
    return log + float(np.log(np.trace(product)))


@pytest.mark.parametrize("move", MOVES.values(), ids=list(MOVES))
@pytest.mark.parametrize(
    ("model", "beta"),
    [
        (ss.Ising(ss.square(256, 4)), 0.5),
        (ss.EdwardsAnderson(ss.square(256, 4), seed=3), 0.5),
        (ss.Ising(ss.cubic(256, 2, 2), -1.0, field=1.0), 0.15),
    ],
    ids=["ferromagnet", "glass", "antiferromagnet in a field"],
)
def test_energy_is_exact(model: ss.Ising, beta: float, move: ss.engine.moves.move.Move) -> None:
    """The antiferromagnet has double bonds along y and z."""
    step, series = 1e-4, []
    engine = ss.create_engine(model, 32, ss.Dynamics(seed=4), "cpu")
    engine.set_beta(beta)
    for time in range(250):
        engine.sweep(1)
        engine.apply(move, Moment(beta, time, 5))
        series.append(engine.counts().energy[0] * model.quantum)
    exact = (log_partition(model, beta - step) - log_partition(model, beta + step)) / (2 * step)
    found = integrated_time(np.array(series[50:]), chain_axis=1)
    assert abs(found.mean - exact) <= 4 * found.mean_error
    assert found.mean_error < 2e-3 * abs(exact)


def run(job: str, model: ss.Ising, device: str, **settings: object) -> npt.NDArray[np.int64]:
    """Energies of a run with moves after every sweep and every second one."""
    moves = [(ss.SwendsenWang(), 1), (ss.Wolff(), 2)]
    if job == "anneal":
        how = {"replicas": 3, "sweeps": 2, "seed": 5, "device": device}
        return ss.anneal(model, [3.0, 2.0], moves=moves, **how | settings).energy
    how = {"thermalize": 2, "sweeps": 6, "measure_every": 2, "seed": 5, "device": device, "replicas": 2}
    return ss.temper(model, [2.0, 3.0], moves=moves, **how | settings).energy


@pytest.mark.parametrize("job", ["anneal", "temper"])
def test_runs_move_lattices_where_they_lie(job: str, device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = ss.EdwardsAnderson(ss.square(256, 6), samples=2, seed=3)
    expected = run(job, model, "cpu")
    for engine in ("cpu", "cuda"):
        monkeypatch.delattr(f"spinsim.engine.{engine}.apply_in_host_memory")
    np.testing.assert_array_equal(run(job, model, device), expected)


@pytest.mark.parametrize("devices", [2, 4])
def test_split(devices: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of one replica slabs are moved, of more the replicas are shared out, or samples."""
    for samples, replicas in ((1, 1), (1, 4), (4, 1)):
        model = ss.EdwardsAnderson(ss.square(256, 8), samples=samples, seed=3)
        expected = run("anneal", model, "cpu", replicas=replicas)
        with monkeypatch.context() as patch:
            on_cpus(patch, devices)
            np.testing.assert_array_equal(run("anneal", model, "cpu", replicas=replicas), expected)


def test_several_lattices_at_a_time(emulated: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lattice_cuda, "SITES_AT_ONCE", 3 * 256 * 6)
    test_same_as_oracle("two samples", "cuda")


def test_too_many_sites(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lattice, "MOST_SITES", 1023)
    engine = ss.create_engine(MODELS["narrow square"](), 1, ss.Dynamics(), "cpu")
    with pytest.raises(ss.InputError, match="1024 sites"):
        engine.apply(ss.Wolff(), Moment(1.0, 0, 1))
