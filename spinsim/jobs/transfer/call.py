"""``ss.transfer``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy.typing as npt

from spinsim.engine import resolve_device
from spinsim.grids import as_text
from spinsim.jobs.calls import OutFile, carried_out, config_of_call, identity_of_call, run_table
from spinsim.jobs.transfer.result import TransferResult
from spinsim.jobs.transfer.running import TransferPlan, transfer_in_memory
from spinsim.jobs.transfer.settings import Transfer
from spinsim.model.ising import Ising
from spinsim.rng import ROUNDS
from spinsim.transfer_matrix.lanczos import MOST_STEPS, TOLERANCE
from spinsim.transfer_matrix.points import positive

OnRows = Callable[[int], None]


def transfer(
    model: Ising,
    k: npt.ArrayLike | None = None,
    temperature: npt.ArrayLike | None = None,
    k_time: npt.ArrayLike | None = None,
    eigenvalues: int = 2,
    sector: str = "both",
    tolerance: float = TOLERANCE,
    method: str = "auto",
    basis: int | None = None,
    seed: int = 1,
    device: str = "auto",
    threads: int | None = None,
    most_steps: int = MOST_STEPS,
    on_rows: OnRows = lambda rows: None,
    out: OutFile | None = None,
    checkpoint_every: float = 60.0,
    progress: bool = False,
) -> TransferResult:
    """Leading eigenvalues of the transfer matrix whose layer is ``model``, for each of its samples.

    T = D B D with D = exp(k/2 (sum J s s + sum h s)) and bonds k_time between the layers.

    Args:
        model: One layer, of up to some 30 sites: a chain for strips, a square for bars, or any graph.
        k: 1 / T, one or many.
        temperature: Instead of k, in the unit of the couplings. Without both, the transition of the ferromagnet.
        k_time: Coupling between layers, a number without unit, one or as many; by default k times the |J| that all
            bonds of the layer share, 1 where they do not.
        eigenvalues: Levels of each sector.
        sector: ``even`` or ``odd`` under the flip of all spins, or ``both``; in a field there is one sector, ``all``.
        tolerance: Residual |T x - lambda x| / lambda at which a level has converged.
        method: How T is applied: ``butterfly``, ``kronecker`` or ``auto``.
        basis: Stored vectors, 0 for none (fewest memory, no matrix elements); by default as many as serve and fit.
        seed: Of the start vectors.
        device: ``auto`` (a GPU where there is one), ``cpu`` or ``cuda``; they agree to rounding.
        threads: CPU threads, by default all processors.
        most_steps: Products with T after which levels that have not converged are given up.
        on_rows: Called with the number of samples and points that were finished since the last call.
        out: File that the run is written to, with checkpoints; the same call, or ``resume``, completes it. Without one
            the run is kept in memory.
        checkpoint_every: Seconds between checkpoints.
        progress: Whether a bar on the terminal or in the notebook shows how far the run is.

    Returns:
        ln of the eigenvalues, residuals, correlation lengths, energies and matrix elements. With ``out``, levels that
        did not converge are NaN, with a warning, and ``resume`` tries them again.

    Raises:
        InputError: for couplings that overflow, a layer that does not fit, levels that do not converge where there is
            no ``out``, and a file that holds another run.
        KeyboardInterrupt: on Ctrl-C; a run with a file has saved itself.
    """
    points = {"k": k, "temperature": temperature, "k_time": k_time}
    table: dict[str, Any] = {
        name: None if values is None else as_text(positive(name, values)) for name, values in points.items()
    }
    table |= {"eigenvalues": eigenvalues, "sector": sector, "tolerance": tolerance, "method": method, "basis": basis}
    run = run_table(1, seed, ROUNDS, device, threads, out, checkpoint_every)
    config = config_of_call(Transfer, model, {"transfer": table | {"most_steps": most_steps}, "run": run})
    plan = TransferPlan(config, model, resolve_device(device), *identity_of_call(config, model))
    result: TransferResult = carried_out(plan, out, progress, on_rows, transfer_in_memory)
    return result
