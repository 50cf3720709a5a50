"""``ss.solve``: a portfolio whose bits depend on seed and sweeps alone, and what it says about its answer."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import spinsim as ss

GLASS = ss.EdwardsAnderson(ss.cubic(5), seed=3)


def graph(model: ss.Ising) -> ss.Ising:
    """The same model as a graph without a lattice."""
    return ss.Ising(ss.Graph(model.sites, model.graph.edges), model.couplings, name="graph")


def same(first, second) -> bool:
    """True if two runs are equal in all that does not measure time."""
    timed = {"elapsed", "seconds", "met_seconds", "improved_seconds"}
    one, two = (dict(run.record.paths()) for run in (first, second))
    names = {path for path in one if path.rpartition("/")[2] not in timed}
    return names <= set(two) and all(np.array_equal(one[path].values, two[path].values) for path in names)


def exhaustive(model: ss.Ising) -> float:
    states = np.array(list(itertools.product((-1, 1), repeat=model.sites)), np.int8)
    return float(model.energy(states.T[None]).min())


def test_bits_depend_on_seed_and_sweeps_alone(tmp_path) -> None:
    model = graph(GLASS)
    run = ss.solve(model, sweeps_limit=200, states=4, threads=1)
    assert same(run, ss.solve(model, sweeps_limit=200, states=4, threads=2, device="cpu"))
    assert not same(run, ss.solve(model, sweeps_limit=200, states=4, seed=2))
    path = tmp_path / "run.h5"
    assert same(run, ss.solve(model, sweeps_limit=200, states=4, out=path, checkpoint_every=0))
    assert same(run, ss.load(path))


def test_a_killed_run_ends_as_the_whole_one(tmp_path, monkeypatch) -> None:
    from spinsim.jobs.solve.run import SolveRun

    model, path = graph(GLASS), tmp_path / "run.h5"
    whole, take = ss.solve(model, sweeps_limit=300), SolveRun._take

    def interrupted(self, number: int, sweeps: int) -> None:
        take(self, number, sweeps)
        if self._done == 14:
            raise KeyboardInterrupt

    monkeypatch.setattr(SolveRun, "_take", interrupted)
    with pytest.raises(KeyboardInterrupt):
        ss.solve(model, sweeps_limit=300, out=path, checkpoint_every=0)
    monkeypatch.setattr(SolveRun, "_take", take)
    assert same(whole, ss.resume(path))


def test_a_longer_search_goes_on(tmp_path) -> None:
    model, path = graph(GLASS), tmp_path / "run.h5"
    first = ss.solve(model, 0.2, out=path)
    longer = ss.resume(path, time_limit=0.6)
    assert (longer.search.sweeps >= first.search.sweeps).all()
    assert longer.search.elapsed > 0.55
    assert longer.best_energy <= first.best_energy
    ss.solve(model, sweeps_limit=100, out=tmp_path / "b.h5")
    with pytest.raises(ss.InputError, match="without a time limit"):
        ss.resume(tmp_path / "b.h5", time_limit=1)
