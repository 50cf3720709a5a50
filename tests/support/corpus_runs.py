"""Small runs of every job, whose tables, counters and verdicts ``corpus.py`` freezes.

Together they have each way in which a run is stored and averaged: copies, samples, thinned rows, sums alone, moves,
placed ladders, populations, searches, slices in time, sectors. Each takes a fraction of a second.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from places import DATA

import spinsim as ss
from spinsim.result import Result

GLASS: Final = "1:2:3g"  # temperatures of small glasses in two dimensions
TARGET: Final = -900.0  # energy that a search takes some hundred sweeps to meet


def temper(model: ss.Ising, temperatures: str | None = GLASS, **settings: Any) -> ss.TemperResult:
    """Temper for 800 sweeps on the CPU, measured every 5."""
    shared = {"sweeps": 800, "thermalize": 100, "measure_every": 5, "seed": 11, "device": "cpu"}
    return ss.temper(model, temperatures, **shared | settings)


def anneal(model: ss.Ising, temperatures: str | None = None, **settings: Any) -> ss.AnnealResult:
    """Anneal 24 replicas in 12 steps of 4 sweeps on the CPU."""
    length = {} if temperatures else {"steps": 12}
    shared = {"sweeps": 4, "replicas": 24, "seed": 12, "device": "cpu"}
    return ss.anneal(model, temperatures, **shared | length | settings)


def search(**settings: Any) -> ss.TemperResult:
    """Search for a low state of a glass in three dimensions by two groups of two copies."""
    model = ss.EdwardsAnderson(ss.cubic(8), couplings="pm-j", seed=5)
    how = {"target": TARGET, "replicas": 2, "groups": 2, "thermalize": 20, "measure_every": 10}
    return temper(model, "0.6:1.8:6g", **how | settings)


def quantum(model: ss.Ising, **settings: Any) -> ss.QuantumResult:
    """Temper 8 slices in time for 800 sweeps on the CPU, measured every 4."""
    shared = {"slices": 8, "sweeps": 800, "thermalize": 100, "measure_every": 4, "seed": 13, "device": "cpu"}
    return ss.quantum(model, **shared | settings)


def transfer(model: ss.Ising, **settings: Any) -> ss.TransferResult:
    """Find two levels of each sector on the CPU."""
    return ss.transfer(model, **{"eigenvalues": 2, "seed": 14, "device": "cpu"} | settings)


def glass(samples: int = 1, couplings: str = "pm-j", side: int = 4, **settings: Any) -> ss.Ising:
    """Spin glass on a square lattice."""
    return ss.EdwardsAnderson(ss.square(side), couplings=couplings, samples=samples, seed=5, **settings)


def instance() -> ss.Ising:
    """Read a graph of 100 sites and 495 couplings."""
    return ss.read_instance(DATA / "pm1s_100.0.mc")


def halves() -> np.ndarray:
    """Return the start of two copies at two temperatures, the second copy with two domains that take long to go."""
    up = np.ones((24, 24), np.int8)
    domains = np.where(np.arange(24)[:, None] < 12, up, -up)
    return np.stack([up, up, domains, domains]).reshape(1, 4, -1)


def row_correlation(batch: ss.Batch) -> Any:
    """Return the correlation along x at distances 0, 1 and 2."""
    spins = batch.grid.astype(batch.xp.float64)
    return batch.xp.stack([(spins * batch.xp.roll(spins, r, axis=-1)).mean(axis=(-2, -1)) for r in range(3)], axis=-1)


def spins_up(batch: ss.Batch) -> Any:
    """Return the number of spins that are up, a whole number."""
    return (batch.spins > 0).sum(axis=-1, dtype=batch.xp.int64)


OWN: Final = {"row_correlation": row_correlation, "spins_up": spins_up}

RUNS: Final[dict[str, Callable[[], Result]]] = {
    "temper-ferromagnet": lambda: temper(ss.Ising(ss.square(6)), "2:3:3"),
    "temper-antiferromagnet": lambda: temper(ss.Ising(ss.square(4), -1.0), "2:3:2"),
    "temper-glass": lambda: temper(glass(5)),
    "temper-three-copies": lambda: temper(glass(), "1:2:2", replicas=3),
    "temper-one-copy": lambda: temper(glass(4), "1:2:2", replicas=1),
    "temper-one-temperature": lambda: temper(ss.Ising(ss.square(4)), "2.5"),
    "temper-gaussian": lambda: temper(glass(4, "gaussian"), "1:2:2"),
    "temper-in-field": lambda: temper(glass(4, field=0.5), "1:2:2", replicas=4),
    "temper-open": lambda: temper(ss.EdwardsAnderson(ss.square(4, periodic=False), seed=5), "1:2:2"),
    "temper-honeycomb": lambda: temper(ss.Ising(ss.honeycomb(4)), "1.2:2:2"),
    "temper-instance": lambda: temper(instance(), "3:5:3g"),
    "temper-houdayer": lambda: temper(glass(), "1:2:2", houdayer=10),
    "temper-clusters": lambda: temper(ss.Ising(ss.square(6)), "2:3:2", clusters="sw", clusters_every=5),
    "temper-own": lambda: temper(ss.Ising(ss.square(4)), "2:3:2", measure=OWN),
    "temper-no-series": lambda: temper(glass(4), series="none"),
    "temper-energies-alone": lambda: temper(ss.Ising(ss.square(6)), "2:3:2", series="energy"),
    "temper-thinned": lambda: temper(glass(2), "1:2:2", sweeps=2000, series_limit=0.03),
    "temper-thinned-own": lambda: temper(ss.Ising(ss.square(4)), "2:3:3", measure=OWN, series_limit=0.03),
    "temper-few-rows": lambda: temper(ss.Ising(ss.square(4)), "2:3:3", measure=OWN, series_limit=0.02),
    "temper-placed": lambda: temper(glass(2), "auto:0.9:2.4", sweeps=400),
    "temper-configurations": lambda: temper(glass(), "1:2:2", sweeps=200, save_configurations=4),
    "temper-not-in-equilibrium": lambda: temper(ss.Ising(ss.square(24)), "1.3:1.4:2", thermalize=0, start=halves()),
    "temper-search": lambda: search(restart_after=50),
    "anneal": lambda: anneal(glass(4)),
    "anneal-ferromagnet": lambda: anneal(ss.Ising(ss.square(6)), "4:1:12"),
    "anneal-one-replica": lambda: anneal(glass(1, "gaussian"), replicas=1),
    "anneal-in-field": lambda: anneal(glass(3), "2:0.4:6", field="1:0:6", save_configurations=2),
    "anneal-own": lambda: anneal(ss.Ising(ss.square(4)), measure=OWN),
    "anneal-population": lambda: anneal(glass(3), populations=2, replicas=200),
    "anneal-search": lambda: anneal(instance(), target=128, anneals=3, sweeps=2, best_states=True),
    "anneal-quantum": lambda: anneal(glass(3), quantum=True, slices=8),
    "quantum-k": lambda: quantum(ss.Ising(ss.chain(4)), k="0.25:0.4:3", even_correlations=True),
    "quantum-glass": lambda: quantum(glass(4), k="0.25:0.4:2"),
    "quantum-gamma": lambda: quantum(ss.Ising(ss.chain(4)), gamma="0.6:1.4:2", beta=2.0, local_susceptibility=True),
    "quantum-beta": lambda: quantum(glass(1, "gaussian"), gamma=1.0, beta="0.5:1.5:2"),
    "quantum-no-series": lambda: quantum(
        ss.Ising(ss.chain(4)), k="0.25:0.4:2", series="none", local_susceptibility=True
    ),
    "transfer-chain": lambda: transfer(ss.Ising(ss.chain(6)), k="0.3:0.5:3"),
    "transfer-square": lambda: transfer(ss.EdwardsAnderson(ss.square(3), samples=2, seed=5), temperature=[2.0, 3.0]),
    "transfer-even": lambda: transfer(ss.Ising(ss.chain(6)), k="0.3:0.5:2", sector="even"),
    "transfer-in-field": lambda: transfer(ss.Ising(ss.chain(6), field=0.2), k="0.3:0.5:2", k_time=0.3),
}
"""Runs by their names."""

SAVED: Final = [
    "temper-glass", "temper-one-copy", "temper-in-field", "temper-own", "temper-no-series", "temper-energies-alone",
    "temper-thinned", "temper-thinned-own", "temper-placed", "temper-configurations", "temper-search", "anneal",
    "anneal-in-field", "anneal-own", "anneal-population", "anneal-search", "anneal-quantum", "quantum-k",
    "quantum-no-series", "transfer-square", "transfer-in-field",
]  # fmt: skip
"""Runs whose files must say the same: one for each form in which numbers are stored."""
REWEIGHTED: Final = ["temper-ferromagnet", "temper-glass", "temper-gaussian", "temper-no-series", "temper-thinned"]
"""Runs whose averages are reweighted to another temperature, from series or from sums over energy."""

SHORT: Final = "--sweeps 400 --thermalize 100 --measure-every 5 --seed 15"
COMMANDS: Final = {
    "temper": f"temper --size 4 --couplings pm-j --samples 4 --disorder-seed 5 --temperatures 1:2:2 {SHORT}",
    "anneal": "anneal --size 4 --couplings pm-j --samples 4 --disorder-seed 5 --steps 8 --sweeps 4 --replicas 24",
    "quantum": f"quantum --size 4 --k 0.25:0.4:2 --slices 4 {SHORT}",
    "transfer": "transfer --width 6 --k 0.3:0.5:3",
}
"""Command lines of each job, without their device and file."""
