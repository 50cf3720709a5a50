"""``ss.transfer``."""

from __future__ import annotations

from functools import partial
from typing import Any

from spinsim.jobs.calls import call_of, run_of_call
from spinsim.jobs.transfer.result import TransferResult
from spinsim.jobs.transfer.running import TransferPlan
from spinsim.jobs.transfer.settings import Transfer
from spinsim.model.ising import Ising
from spinsim.transfer_matrix.points import positive


@call_of(
    Transfer,
    "k temperature k_time eigenvalues sector tolerance method basis seed device threads most_steps on_rows out "
    "checkpoint_every progress",
)
def transfer(model: Ising, given: dict[str, Any]) -> TransferResult:  # noqa: D417  (the settings describe themselves)
    """Leading eigenvalues of the transfer matrix whose layer is ``model``, for each sample.

    T = D B D with D = exp(k/2 (sum J s s + sum h s)) and bonds k_time between the layers.

    Args:
        model: One layer, of up to some 30 sites: a chain for strips, a square for bars, or any graph.
        k: 1 / T, one or many, or text as the command line takes it, such as ``0.2:0.3:11``.
        temperature: Instead of k, in the unit of the couplings; by default the transition of the ferromagnet.
        k_time: Coupling between layers, without unit, one number or one for each k; by default k times the |J| that
            all bonds of the layer share (times 1 if they differ).
        sector: ``even`` or ``odd`` under the flip of all spins, or ``both``; in a field there is one sector, ``all``.
        tolerance: Residual |T x - lambda x| / lambda at which a level has converged, from 1e-14 to 0.1.
        basis: Stored vectors; 0 takes least memory and gives no matrix elements. By default as many as help and fit.
        on_rows: Called with the number of samples and points that were finished since the last call.

    Returns:
        ln of the eigenvalues, residuals, correlation lengths, energies and matrix elements. With ``out``, levels that
        did not converge are NaN, with a warning, and ``resume`` tries them again.

    Raises:
        InputError: for couplings that overflow, a layer that does not fit, levels that do not converge (without
            ``out``), and a file that holds another run.
        KeyboardInterrupt: on Ctrl-C; a run with ``out`` is saved first.
    """
    of_k, of_temperature, of_time = (partial(positive, name) for name in ("k", "temperature", "k_time"))
    found: TransferResult = run_of_call(
        Transfer, TransferPlan, model, given, k=of_k, temperature=of_temperature, k_time=of_time
    )
    return found
