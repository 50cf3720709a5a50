"""Multicanonical runs: bits of the walkers against a plain program, files, resuming, commands."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from harness import run as command

import spinsim as ss
from spinsim import rng
from spinsim.errors import InputError
from spinsim.sampling.multicanonical import Walkers

SHORT = {"sweeps": 60, "wang_landau": 40, "replicas": 3, "seed": 4}


def model() -> ss.Ising:
    return ss.EdwardsAnderson(ss.square(3), samples=2, seed=5, field=0.5)


def plain_walker(one: ss.Ising, sample: int, walker: int, walkers: Walkers) -> tuple[np.ndarray, np.ndarray]:
    """Spins and visits of a walker after ``SHORT`` with its production weights, in plain Python and exact energies."""
    spins, density = walkers.spins[sample, walker].astype(int), walkers.density[sample, walker]
    energies = list(walkers.energies[sample])
    visits = np.zeros(len(energies), np.int64)
    for sweep in range(int(walkers.sweep), int(walkers.sweep) + SHORT["sweeps"]):
        for k in range(one.sites):
            draw = rng.draw(
                SHORT["seed"], rng.Stream.MULTICANONICAL, group=k, sample=sample, block=walker, half_sweep=sweep
            )
            site, low, high = (int(word) for word in draw[:3])
            flipped = spins.copy()
            flipped[site * one.sites >> 32] *= -1
            both = np.broadcast_to(np.stack([spins, flipped], axis=1), (one.samples, one.sites, 2))
            here, there = (energies.index(energy) for energy in one.energy(both)[sample])
            accepted = density[there] <= density[here]
            if not accepted:
                accepted = (high << 32 | low) < math.exp(density[here] - density[there]) * 2.0**64
            if accepted:
                spins, here = flipped, there
            visits[here] += 1
    return spins, visits


def test_walkers_are_those_of_a_plain_program() -> None:
    walkers = Walkers(model(), 3, SHORT["seed"], 100, 1)
    walkers.advance(40, learns=True)
    walkers.fix_weights()
    wanted = {(k, w): plain_walker(model(), k, w, walkers) for k in range(2) for w in (0, 2)[: 2 - k]}
    walkers.advance(60, learns=False)
    for (k, w), (spins, visits) in wanted.items():
        assert (walkers.spins[k, w] == spins).all()
        assert (walkers.visits[k, w] == visits).all()
    assert (walkers.energy == model().energy(walkers.spins.swapaxes(1, 2))).all()
    assert (walkers.visits.sum(axis=2) == 60 * 9).all()


def same(a: ss.MulticanonicalResult, b: ss.MulticanonicalResult) -> bool:
    arrays = {path: one.values for path, one in a.record.paths() if path.startswith(("measurements/", "histogram/"))}
    assert len(arrays) == 6
    return all(np.array_equal(values, b.record[path]) for path, values in arrays.items())


def test_no_bit_depends_on_threads() -> None:
    assert same(ss.multicanonical(model(), **SHORT, threads=1), ss.multicanonical(model(), **SHORT, threads=3))


@pytest.mark.parametrize("stop", [10, 70])
def test_a_resumed_run_has_the_bits_of_an_uninterrupted_one(stop: int, tmp_path: Path, monkeypatch) -> None:
    """Stopped in the Wang-Landau stage, and in production."""
    whole, path, advance = ss.multicanonical(model(), **SHORT), tmp_path / "run.h5", Walkers.advance

    def stopping(self: Walkers, sweeps: int, learns: bool) -> None:
        if self.sweep >= stop:
            raise KeyboardInterrupt
        advance(self, sweeps, learns)

    monkeypatch.setattr(Walkers, "advance", stopping)
    with pytest.raises(KeyboardInterrupt):
        ss.multicanonical(model(), **SHORT, out=path, checkpoint_every=0)
    unfinished = ss.load(path)
    assert not unfinished.finished
    if stop < 40:
        with pytest.raises(InputError, match="still in its Wang-Landau stage"):
            ss.density_of_states(unfinished)
    monkeypatch.setattr(Walkers, "advance", advance)
    assert same(whole, ss.resume(path))
    assert same(whole, ss.load(path))


def test_a_longer_run_goes_on_from_the_file(tmp_path: Path) -> None:
    whole, path = ss.multicanonical(model(), **SHORT), tmp_path / "run.h5"
    ss.multicanonical(model(), **SHORT | {"sweeps": 30}, out=path)
    assert same(whole, ss.resume(path, sweeps=60))


def test_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def spinsim(line: str, status: int = 0) -> str:
        done = command(capsys, monkeypatch, *line.split())
        assert done.status == status, done
        return done.out + done.err

    monkeypatch.chdir(tmp_path)
    run = "multicanonical --size 6 --sweeps 2000 --wang-landau 1000 --replicas 8 --out a.h5"
    assert "updates/ns" in spinsim("multicanonical --size 4 --sweeps 10 --wang-landau 10 --dry-run")
    assert "Round trips" in spinsim(run)
    assert "2000 of 2000 sweeps" in spinsim("show a.h5")
    numbers = json.loads(spinsim("analyze a.h5 --density --json --csv g.csv --reweight 2:3:3"))
    assert numbers["averages"]["temperature"] == [2.0, 2.5, 3.0]
    assert numbers["density"]["energy"][0] == -72
    assert (tmp_path / "g.csv").read_text().startswith("energy,log_density,log_density_error\n-72.0,0.")
    spinsim("plot a.h5 --what density")
    assert "specific heat" in (tmp_path / "a-density.txt").read_text()
    assert "with --density" in spinsim("analyze a.h5", status=2)
    assert "leave other options out" in spinsim("analyze a.h5 --density --scaling", status=2)


def test_runs_with_weights_of_their_own_are_not_pooled() -> None:
    with pytest.raises(InputError, match="weights of its own"):
        ss.pool([ss.multicanonical(model(), **SHORT | {"seed": seed}) for seed in (1, 2)])


def test_a_table_has_a_line_for_each_energy() -> None:
    run = ss.multicanonical(model(), **SHORT)
    table = ss.table(run, by="energy")
    assert "specific_heat_error" in ss.table(run)
    assert (table["log_density"] == run.density.log_density[np.isfinite(run.density.log_density)]).all()
