"""Wiring of a parallel tempering run."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from spinsim import store
from spinsim.acceptance import ZERO_ACCEPTANCE, check_temperatures
from spinsim.config import Temper, canonical_json, sha256
from spinsim.engine import Dynamics, Start, create_engine, resolve_device
from spinsim.engine.exchange import Exchange
from spinsim.layout import temper_layout
from spinsim.memory import require
from spinsim.model.ising import Ising
from spinsim.result import TemperResult
from spinsim.rng import ROUNDS
from spinsim.run.common import (
    OnUpdates,
    OnWarning,
    Plan,
    build_model,
    check_disk,
    engine_attributes,
    identify,
    provenance,
    to_file,
)
from spinsim.run.saving import Saving
from spinsim.sampling import TemperFrame, Times, tempering


class TemperPlan(Plan[Temper]):
    """A tempering run that is ready to begin."""

    @property
    def temperatures(self) -> npt.NDArray[np.float64]:
        """The ladder."""
        return self.config.temper.ladder()

    @property
    def replicas(self) -> int:
        """Replicas of each sample: copies times temperatures."""
        return self.config.run.replicas * len(self.temperatures)

    @property
    def updates(self) -> int:
        """Attempted spin updates of the whole run."""
        return self.model.sites * self.model.samples * self.replicas * self.config.temper.times().total


def plan_temper(config: Temper) -> TemperPlan:
    """Build the model, fill in the ladder and name the file.

    Raises:
        InputError: for anything that keeps the run from beginning.
    """
    device = resolve_device(config.run.device)
    most = len(config.temper.ladder()) if config.temper.temperatures else 1
    model = build_model(config.model, config.run.replicas * most)
    config = config.with_temperatures(model.energy_scale)
    return TemperPlan(config, model, device, *identify(config, model))


def _row(frame: TemperFrame) -> dict[str, Any]:
    """A frame as the file's row."""
    return {
        "step": frame.step,
        "sweep": frame.sweep,
        "energy": frame.energy,
        "magnetization": frame.magnetization,
        "overlap": frame.overlap,
        "permutation": frame.holder,
    }


def _sums(e: Exchange) -> dict[str, npt.NDArray[np.int64]]:
    """What the file holds of the exchange."""
    return {"tempering/attempts": e.attempts, "tempering/accepts": e.accepts, "tempering/round_trips": e.trips}


def temper_to_file(
    plan: TemperPlan,
    on_updates: OnUpdates = lambda updates: None,
    on_warning: OnWarning = lambda sentence: None,
) -> bool:
    """Run a plan into its file; False where the file already holds the finished run.

    A file of the same configuration that was cut short is completed from its last checkpoint.

    Raises:
        InputError: where the file belongs to another run or cannot be written.
    """

    def carry_out(plan: TemperPlan, begun: bool, saving: Saving) -> None:
        _carry_out(plan, begun, saving, on_updates, on_warning)

    return to_file(plan, carry_out)


def _carry_out(plan: TemperPlan, begun: bool, saving: Saving, on_updates: OnUpdates, on_warning: OnWarning) -> None:
    run, t, times = plan.config.run, plan.config.temper, plan.config.temper.times()
    dynamics = Dynamics(run.seed, t.start, t.zero_acceptance, run.rng_rounds)
    engine = create_engine(plan.model, plan.replicas, dynamics, plan.device, run.threads)
    frames = tempering(engine, plan.temperatures, times, run.replicas, on_updates, saving.due)
    if not begun:
        layout = temper_layout(plan.model.sites, plan.model.samples, run.replicas, plan.temperatures)
        check_disk(plan.path, plan.model, plan.replicas, layout, times.measurements)
        attributes = plan.attributes | engine_attributes(engine)
        store.create(plan.path, plan.model, layout, times.measurements, attributes, checkpoint=engine.snapshot())
    with store.open_to_append(plan.path) as file:
        saved, damaged = file.saved()
        if damaged:
            on_warning(damaged)
        file.forget_summary()
        if saved is not None:
            engine.restore(saved)
        for frame in frames:
            if frame is None:
                file.write_again(_sums(engine.begin_exchange()()))
                file.save(engine.snapshot())
                saving.saved()
            else:
                file.write(_row(frame))
        file.write_again(_sums(engine.begin_exchange()()))
        file.save(engine.snapshot())  # from which the run can be extended
        file.finish()


def temper(
    model: Ising,
    temperatures: npt.ArrayLike,
    sweeps: int,
    thermalize: int,
    replicas: int = 2,
    measure_every: int = 10,
    swap_every: int = 1,
    seed: int = 1,
    start: Start = "random",
    zero_acceptance: float = ZERO_ACCEPTANCE,
    rng_rounds: int = ROUNDS,
    device: str = "auto",
    threads: int | None = None,
    on_updates: OnUpdates = lambda updates: None,
) -> TemperResult:
    """Parallel tempering in equilibrium.

    Args:
        model: What to simulate.
        temperatures: From the lowest to the highest, in units of |J|, shape (temperatures,).
        sweeps: Sweeps of the measured part; a sweep attempts every spin once.
        thermalize: Sweeps before it.
        replicas: Copies of the ladder in each sample, two or more for overlaps.
        measure_every: Sweeps between measurements.
        swap_every: Sweeps between attempts to exchange temperatures.
        seed: 64-bit seed.
        start: Initial spins, ``random`` or ``up``.
        zero_acceptance: Acceptance probability of flips that cost nothing.
        rng_rounds: Philox rounds, 10 or 7.
        device: ``auto`` (a GPU where there is one), ``cpu`` or ``cuda``; it does not change the outcome.
        threads: CPU threads, by default all processors; no number changes the outcome.
        on_updates: Called now and then with the number of spin updates since the last call.

    Returns:
        Energies, magnetisations and overlaps of every copy at every temperature, and what became of the exchanges.

    Raises:
        InputError: for bad temperatures, numbers out of range or a run that does not fit in memory.
    """
    ladder, times = check_temperatures(temperatures), Times(thermalize, sweeps, measure_every, swap_every)
    dynamics = Dynamics(seed, start, zero_acceptance, rng_rounds)
    engine = create_engine(model, replicas * len(ladder), dynamics, device, threads)
    frames = tempering(engine, ladder, times, replicas, on_updates)
    row_bytes = temper_layout(model.sites, model.samples, replicas, ladder).row_bytes
    kept = 4 * row_bytes * times.measurements  # wider integers, and again when stacked
    require(kept, f"a record of {times.measurements} measurements", "measure less often")
    physics = {
        "model": model.name,
        "model_sha256": model.content_sha256(),
        "temperatures": ladder.tolist(),
        "thermalize": int(thermalize),
        "sweeps": int(sweeps),
        "measure_every": int(measure_every),
        "swap_every": int(swap_every),
        "replicas": int(replicas),
        "seed": dynamics.seed,
        "start": start,
        "zero_acceptance": float(zero_acceptance),
        "rng_rounds": int(rng_rounds),
    }
    text = canonical_json(physics)
    attributes = provenance("temper", text, sha256(text)) | engine_attributes(engine)
    kept_frames = [frame for frame in frames if frame is not None]
    last = kept_frames[-1].exchange

    def series(name: str) -> npt.NDArray[Any]:
        return np.stack([getattr(frame, name) for frame in kept_frames])

    return TemperResult(
        model=model,
        temperature=ladder,
        sweep=series("sweep"),
        energy=series("energy"),
        magnetization=series("magnetization"),
        overlap=series("overlap"),
        permutation=series("holder"),
        attempts=last.attempts,
        accepts=last.accepts,
        round_trips=last.trips,
        attributes=attributes | {"finished": store.stamp()},
    )
