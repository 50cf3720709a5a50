"""Tempering runs that took no simulation: independent numbers with known averages."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np

import spinsim as ss
from spinsim.engine.measuring.correlations import Quantities
from spinsim.inputs.numbers import as_text
from spinsim.jobs.ladder.result import EXCHANGES, Temperatures, contents_of_run
from spinsim.jobs.temper.run import TemperResult, read
from spinsim.jobs.temper.settings import Temper
from spinsim.observables.quantities import Choice
from spinsim.run.plan import provenance
from spinsim.run.recording import Recording
from spinsim.settings.config import build_config
from spinsim.settings.shared import GIVEN_MODEL, ModelSettings

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
    series = {
        "energy": np.rint(sites * (ladder - 4 + 0.3 * random.normal(size=state))),
        "magnetization": order_parameter(state),
        "overlap": order_parameter(between),
        "permutation": permutation,
    }
    exchanges = {
        "attempts": attempts,
        "accepts": random.binomial(attempts, 0.4),
        "round_trips": random.poisson(5, (samples, copies * len(ladder))),
    }
    return in_record(model, ladder, copies, series, exchanges, every, seed)


def in_record(
    model: ss.Ising,
    ladder: np.ndarray,
    copies: int,
    series: dict[str, np.ndarray],
    exchanges: dict[str, np.ndarray],
    every: int,
    seed: int = 1,
) -> TemperResult:
    """The result of a finished run with these series and exchanges."""
    steps = len(series["energy"])
    settings = {"temperatures": as_text(ladder), "sweeps": steps * every, "measure_every": every}
    config = build_config(Temper, {"temper": settings, "run": {"seed": seed, "replicas": copies}})
    config = replace(config, model=ModelSettings(instance=f"{GIVEN_MODEL}{model.name}"))
    contents = contents_of_run(model, Choice(copies, Quantities(False)), Temperatures(ladder))
    plan = SimpleNamespace(model=model, attributes=provenance(config, model, ["made up"]), extends=None)
    recording = Recording(plan, contents, steps, {"engine": "none", "devices": "none"})
    for step in range(steps):
        recording.write(
            {"step": step, "sweep": every * (step + 1)} | {name: rows[step] for name, rows in series.items()}
        )
    return read(recording.end({EXCHANGES[name]: values for name, values in exchanges.items()}), model)


def with_config(result: TemperResult, tables: dict[str, dict[str, object]], **fields: object) -> TemperResult:
    """The same run with other settings in some tables of its configuration, and with other fields."""
    record = result.record.copy()
    config = result.config
    whole = {name: {**config[name], **tables.get(name, {})} for name in config}
    record.attributes["config"] = json.dumps(whole)
    return replace(result, record=record, **fields)


def frozen(result: TemperResult, place: int = 0) -> TemperResult:
    """The same, but nothing moves at the lowest temperature, or at another place."""
    for series in (result.energy, result.magnetization, result.overlap):
        series[..., place] = series[0, ..., place]
    return result


def ferromagnet(side: int, **options) -> TemperResult:
    """Made up, of a square."""
    return tempered(ss.Ising(ss.square(side)), **options)


def glass(side: int, **options) -> TemperResult:
    """Made up, of a cube; six samples."""
    return tempered(ss.EdwardsAnderson(ss.cubic(side), samples=6, seed=side), **options)
