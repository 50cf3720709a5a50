"""``ss.temper``."""

from __future__ import annotations

import numpy.typing as npt

from spinsim.acceptance import ZERO_ACCEPTANCE, check_temperatures
from spinsim.engine import resolve_device
from spinsim.grids import as_text
from spinsim.jobs.calls import OutFile, Start, carried_out, config_of_call, identity_of_call, run_table, start_of_call
from spinsim.jobs.temper.result import TemperResult
from spinsim.jobs.temper.running import TemperPlan, temper_in_memory
from spinsim.jobs.temper.settings import Temper
from spinsim.model.ising import Ising
from spinsim.rng import ROUNDS
from spinsim.run.common import OnUpdates


def temper(
    model: Ising,
    temperatures: npt.ArrayLike | str,
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
    correlations: bool = True,
    out: OutFile | None = None,
    checkpoint_every: float = 60.0,
    progress: bool = False,
) -> TemperResult:
    """Parallel tempering in equilibrium.

    Args:
        model: What to simulate.
        temperatures: From the lowest to the highest, in the unit of the couplings, shape (temperatures,); or text as
             the command line takes it, such as ``auto:0.7:2.0`` (``sampling/placement.py``).
        sweeps: Sweeps of the measured part; a sweep attempts every spin once.
        thermalize: Sweeps before it.
        replicas: Copies of the ladder in each sample, two or more for overlaps.
        measure_every: Sweeps between measurements.
        swap_every: Sweeps between attempts to exchange temperatures.
        seed: 64-bit seed.
        start: Initial spins: ``random``, ``up``, or configurations of +1 and -1, shape (sites,), (samples, sites) or
            (samples, copies times temperatures, sites), of which number c T + k is copy c at temperature k of T.
        zero_acceptance: Acceptance probability of flips that cost nothing.
        rng_rounds: Philox rounds, 10 or 7.
        device: ``auto`` (a GPU where there is one), ``cpu`` or ``cuda``; it does not change the outcome.
        threads: CPU threads, by default all processors; no number changes the outcome.
        on_updates: Called now and then with the number of spin updates since the last call.
        correlations: Whether link overlaps and the smallest Fourier modes are measured too, for xi / L.
        out: File that the run is written to, with checkpoints; the same call, or ``resume``, completes it. Without one
            the run is kept in memory.
        checkpoint_every: Seconds between checkpoints.
        progress: Whether a bar on the terminal or in the notebook shows how far the run is.

    Returns:
        Energies, magnetisations and overlaps of every copy at every temperature, and what became of the exchanges.

    Raises:
        InputError: for bad temperatures, numbers out of range, a run that does not fit in memory, and a file that holds
            another run.
        KeyboardInterrupt: on Ctrl-C; a run with a file has saved itself.
    """
    text = temperatures if isinstance(temperatures, str) else as_text(check_temperatures(temperatures))
    named, spins = start_of_call(start, model, None)
    table = {
        "start": named,
        "temperatures": text,
        "thermalize": thermalize,
        "sweeps": sweeps,
        "measure_every": measure_every,
        "swap_every": swap_every,
        "correlations": correlations,
        "zero_acceptance": zero_acceptance,
    }
    run = run_table(replicas, seed, rng_rounds, device, threads, out, checkpoint_every)
    config = config_of_call(Temper, model, {"temper": table, "run": run})
    plan = TemperPlan(config, model, resolve_device(device), *identity_of_call(config, model), start=spins)
    result: TemperResult = carried_out(plan, out, progress, on_updates, temper_in_memory)
    return result
