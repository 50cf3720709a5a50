"""``ss.anneal``."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from spinsim.acceptance import ZERO_ACCEPTANCE, check_temperatures
from spinsim.engine import resolve_device
from spinsim.errors import InputError
from spinsim.grids import as_text
from spinsim.jobs.anneal.result import AnnealResult
from spinsim.jobs.anneal.running import AnnealPlan, anneal_in_memory
from spinsim.jobs.anneal.settings import Anneal
from spinsim.jobs.calls import OutFile, Start, carried_out, config_of_call, identity_of_call, run_table, start_of_call
from spinsim.model.ising import Ising
from spinsim.rng import ROUNDS
from spinsim.run.common import OnUpdates
from spinsim.sampling.annealing import check_fields


def anneal(
    model: Ising,
    temperatures: npt.ArrayLike,
    sweeps: int = 10,
    replicas: int = 128,
    seed: int = 1,
    start: Start = "random",
    zero_acceptance: float = ZERO_ACCEPTANCE,
    rng_rounds: int = ROUNDS,
    device: str = "auto",
    threads: int | None = None,
    on_updates: OnUpdates = lambda updates: None,
    field: npt.ArrayLike | None = None,
    out: OutFile | None = None,
    checkpoint_every: float = 60.0,
    progress: bool = False,
) -> AnnealResult:
    """Anneal replicas of a model through a list of temperatures.

    Args:
        model: What to anneal.
        temperatures: In order of use, up or down, in the unit of the couplings, shape (steps,).
        sweeps: Sweeps at each temperature; a sweep attempts every spin once.
        replicas: Independent configurations of each sample.
        seed: 64-bit seed. Replica r of sample k depends on (seed, k, r) alone.
        start: Initial spins: ``random``, ``up``, or configurations of +1 and -1, shape (sites,), (samples, sites) or
            (samples, replicas, sites).
        zero_acceptance: Acceptance probability of flips that cost nothing.
        rng_rounds: Philox rounds, 10 or 7.
        device: ``auto`` (a GPU where there is one), ``cpu`` or ``cuda``; it does not change the outcome.
        threads: CPU threads, by default all processors; no number changes the outcome.
        on_updates: Called now and then with the number of spin updates since the last call.
        field: A uniform field for each temperature, (steps,), which is added to the model's own fields and is part of
            the energies; one temperature alone serves all of them.
        out: File that the run is written to, with checkpoints; the same call, or ``resume``, completes it. Without one
            the run is kept in memory.
        checkpoint_every: Seconds between checkpoints.
        progress: Whether a bar on the terminal or in the notebook shows how far the run is.

    Returns:
        Energies and magnetisations after each temperature, and the lowest states met.

    Raises:
        InputError: for bad temperatures, numbers out of range, a run that does not fit in memory, and a file that holds
            another run.
        KeyboardInterrupt: on Ctrl-C; a run with a file has saved itself.
    """
    ladder = check_temperatures(temperatures)
    fields = None if field is None else np.atleast_1d(np.asarray(_numbers("field", field)))
    if fields is not None and len(ladder) == 1:
        ladder = np.repeat(ladder, fields.size)
    named, spins = start_of_call(start, model, replicas)
    table = {
        "start": named,
        "temperatures": as_text(ladder),
        "sweeps": sweeps,
        "zero_acceptance": zero_acceptance,
        "field": None if fields is None else as_text(check_fields(fields, len(ladder))),
    }
    run = run_table(replicas, seed, rng_rounds, device, threads, out, checkpoint_every)
    config = config_of_call(Anneal, model, {"anneal": table, "run": run}).with_temperatures(model.energy_scale)
    plan = AnnealPlan(config, model, resolve_device(device), *identity_of_call(config, model), start=spins)
    result: AnnealResult = carried_out(plan, out, progress, on_updates, anneal_in_memory)
    return result


def _numbers(name: str, values: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Returns values as float64."""
    try:
        return np.asarray(values, np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} {values!r} cannot be read as numbers: give a list of floats") from error
