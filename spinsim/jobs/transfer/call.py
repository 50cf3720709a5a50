"""``ss.transfer``: the transfer matrix of a layer."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import Any

from numpy.typing import ArrayLike

from spinsim.inputs.arguments import judges
from spinsim.inputs.signatures import public
from spinsim.jobs.calls import run_of_call
from spinsim.jobs.transfer.result import TransferResult
from spinsim.jobs.transfer.settings import Transfer
from spinsim.model.ising import Ising
from spinsim.transfer_matrix.layer import positive


@public
@judges("model", "seed", none=True)
def transfer(
    model: Ising,
    k: ArrayLike | str | None = None,
    temperature: ArrayLike | str | None = None,
    k_time: ArrayLike | str | None = None,
    eigenvalues: int = 2,
    sector: str = "both",
    tolerance: float = 1e-10,
    method: str = "auto",
    basis: int | None = None,
    seed: int | None = 1,
    device: str = "auto",
    threads: int | None = None,
    most_steps: int = 5000,
    on_rows: Callable[[int], None] | None = None,
    out: str | os.PathLike[str] | None = None,
    checkpoint_every: float = 60.0,
    progress: bool = False,
    *,
    gpus: str | None = None,
) -> TransferResult:
    """Leading eigenvalues of the transfer matrix whose layer is ``model``, for each sample.

    T = D B D with D = exp(k/2 (sum J s s + sum h s)) and bonds k_time between the layers.

    Args:
        model: One layer, of up to some 30 sites: a chain for strips, a square for bars, or any
            graph.
        k: 1 / T, one or many, or text as the command line takes it, such as ``0.2:0.3:11``.
        temperature: Instead of k, in the unit of the couplings; by default the transition of the
            ferromagnet.
        k_time: Coupling between layers, without unit, one number or one for each k; by default k
            times the |J| that all bonds of the layer share (times 1 if they differ).
        eigenvalues: Levels of each sector (a whole number from 1 to 1000).
        sector: ``even`` or ``odd`` under the flip of all spins, or ``both``; in a field there is
            one sector, ``all``.
        tolerance: Residual |T x - lambda x| / lambda at which a level has converged, from 1e-14 to
            0.1.
        method: How T is applied: ``butterfly``, ``kronecker`` or ``auto``.
        basis: Stored vectors; 0 takes least memory and gives no matrix elements. By default as many
            as help and fit.
        seed: Seed of the start vectors, 64 bits (a whole number from 0 to 2^64 - 1); None draws a
            fresh one.
        device: ``auto`` (a GPU if there is one), ``cpu``, ``cuda`` or ``gpu`` (the same as cuda).
        threads: CPU threads (a whole number from 1 to 4096), all by default.
        most_steps: Products with T after which levels are given up.
        on_rows: Called with the number of samples and points that were finished since the last
            call.
        out: File for the run and its checkpoints; the same call, or ``resume``, completes an
            interrupted run. Without a file the run is kept in memory.
        checkpoint_every: Seconds between checkpoints, at least 0.
        progress: Show a progress bar on the terminal or in the notebook; elsewhere say when kernels
            are compiled.
        gpus: GPUs that share each vector: ``all``, how many, or a list of numbers such as ``0,2``;
            by default one for each process.

    Returns:
        ln of the eigenvalues, residuals, correlation lengths, energies and matrix elements. With
        ``out``, levels that did not converge are NaN, with a warning, and ``resume`` tries them
        again.

    Raises:
        InputError: for couplings that overflow, a layer that does not fit, levels that do not
            converge (without ``out``), and a file that holds another run.
        KeyboardInterrupt: on Ctrl-C; a run with ``out`` is saved first.
    """
    given = dict(locals())
    checks: dict[str, Any] = {name: partial(positive, name) for name in ("k", "temperature", "k_time")}
    result: TransferResult = run_of_call(Transfer, model, given, **checks)
    return result
