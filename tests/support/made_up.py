"""Tempering runs that took no simulation: independent numbers with known averages."""

from __future__ import annotations

import numpy as np

import spinsim as ss
from spinsim.jobs.temper.result import TemperResult, read
from spinsim.jobs.temper.settings import Temper
from spinsim.record import Array, Record
from spinsim.settings.config import build_config

CROSSING = 2.0
LADDER = np.linspace(1.8, 2.2, 8)
STATE = ("step", "sample", "copy", "temperature")
ATTRIBUTES = {
    "job": "temper", "command": "made up", "config_sha256": "0" * 64, "engine": "none", "spinsim_version": "0",
    "dynamics": "1", "created": "2020-01-01T00:00:00+00:00", "finished": "2020-01-01T00:00:00+00:00",
}  # fmt: skip


def tempered(
    model: ss.Ising, copies: int = 2, steps: int = 1024, ladder: np.ndarray = LADDER, seed: int = 1, every: int = 10
) -> TemperResult:
    """A finished run; |m| and |q| are 1 with a probability that falls with T, to 1/2 at CROSSING, and else 0.

    Their Binder cumulants, 1 - 1 / (3 probability), cross there: the larger the size, the steeper they fall.
    """
    random, sites = np.random.default_rng([seed, model.sites]), model.sites
    samples, pairs = model.samples, copies * (copies - 1) // 2
    state, between = (steps, samples, copies, len(ladder)), (steps, samples, pairs, len(ladder))
    ordered = np.clip(0.5 - 0.2 * np.sqrt(sites) * (ladder - CROSSING), 0.1, 0.95)

    def order_parameter(shape: tuple[int, ...]) -> np.ndarray:
        size = np.where(random.random(shape) < ordered, sites, sites % 2)
        return size * random.choice([-1, 1], shape)

    replicas = np.arange(copies * len(ladder)).reshape(copies, -1)
    permutation = np.random.default_rng(seed).permuted(np.tile(replicas, (steps, samples, 1, 1)), axis=-1)
    attempts = np.full((samples, len(ladder) - 1), steps * every)
    arrays = {
        "measurements/temperature": Array(ladder, ("temperature",)),
        "measurements/sweep": Array(every * np.arange(1, steps + 1), ("step",)),
        "measurements/energy": Array(np.rint(sites * (ladder - 4 + 0.3 * random.normal(size=state))), STATE),
        "measurements/magnetization": Array(order_parameter(state), STATE),
        "measurements/overlap": Array(order_parameter(between), ("step", "sample", "copy_pair", "temperature")),
        "tempering/permutation": Array(permutation, STATE),
        "tempering/attempts": Array(attempts, ("sample", "pair")),
        "tempering/accepts": Array(random.binomial(attempts, 0.4), ("sample", "pair")),
        "tempering/round_trips": Array(random.poisson(5, (samples, copies * len(ladder))), ("sample", "replica")),
    }
    settings = {"temperatures": "1.8:2.2:8", "sweeps": steps * every, "measure_every": every}
    config = build_config(Temper, {"temper": settings, "run": {"replicas": copies}})
    record = Record(ATTRIBUTES | {"config": config.json(None)})
    for path, array in arrays.items():
        record.put(path, array)
    return read(record, model)


def frozen(result: TemperResult) -> TemperResult:
    """The same, but nothing moves at the lowest temperature."""
    for series in (result.energy, result.magnetization, result.overlap):
        series[..., 0] = series[0, ..., 0]
    return result


def ferromagnet(side: int, **options) -> TemperResult:
    """Made up, of a square."""
    return tempered(ss.Ising(ss.square(side)), **options)


def glass(side: int, **options) -> TemperResult:
    """Made up, of a cube; six samples."""
    return tempered(ss.EdwardsAnderson(ss.cubic(side), samples=6, seed=side), **options)
