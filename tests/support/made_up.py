"""Tempering runs that took no simulation: independent numbers with known averages."""

from __future__ import annotations

import numpy as np

import spinsim as ss
from spinsim.jobs.temper.result import TemperResult
from spinsim.record import Record

CROSSING = 2.0
LADDER = np.linspace(1.8, 2.2, 8)


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
    return TemperResult(
        model=model,
        temperature=ladder,
        sweep=every * np.arange(1, steps + 1),
        energy=np.rint(sites * (ladder - 4 + 0.3 * random.normal(size=state))),
        magnetization=order_parameter(state),
        overlap=order_parameter(between),
        permutation=permutation,
        attempts=attempts,
        accepts=random.binomial(attempts, 0.4),
        round_trips=random.poisson(5, (samples, copies * len(ladder))),
        record=Record({
            "job": "temper", "config": "{}", "command": "made up", "config_sha256": "0" * 64, "engine": "none",
            "spinsim_version": "0", "dynamics": "1", "finished": "2020-01-01T00:00:00+00:00",
        }),
    )  # fmt: skip


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
