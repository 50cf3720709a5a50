"""``ss.quantum``: the transverse-field Ising model of a model in space."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence

from numpy.typing import ArrayLike

from spinsim.engine.moves.move import Move
from spinsim.inputs.arguments import judges
from spinsim.inputs.signatures import public
from spinsim.jobs.calls import run_of_call
from spinsim.jobs.quantum.result import QuantumResult
from spinsim.jobs.quantum.settings import Quantum, QuantumSettings
from spinsim.model.ising import Ising, check_model
from spinsim.model.trotter import trotter
from spinsim.run.functions import Measure


@public
@judges("model", "seed", none=True)
def quantum(
    model: Ising,
    k: ArrayLike | str | None = None,
    slices: int = 32,
    sweeps: int = 10_000,
    thermalize: int = 2000,
    replicas: int = 2,
    measure_every: int = 10,
    swap_every: int = 1,
    correlation_times: ArrayLike | str | None = None,
    even_correlations: bool = False,
    local_susceptibility: bool = False,
    seed: int | None = 1,
    start: str | ArrayLike = "random",
    zero_acceptance: float = 1 - 2**-6,
    rng_rounds: int = 10,
    device: str = "auto",
    threads: int | None = None,
    on_updates: Callable[[int], None] | None = None,
    out: str | os.PathLike[str] | None = None,
    checkpoint_every: float = 60.0,
    progress: bool = False,
    gamma: ArrayLike | str | None = None,
    beta: ArrayLike | str | None = None,
    measure: str | Mapping[str, Measure] | None = None,
    moves: str | Sequence[tuple[Move, int]] | None = None,
    *,
    clusters: str | None = None,
    clusters_every: int | None = None,
    houdayer: str | int | None = None,
    series: str = "all",
    series_limit: float = 256.0,
    magnetization_modes: bool = True,
    gpus: str | None = None,
    save_configurations: int = 0,
) -> QuantumResult:
    """The transverse-field Ising model in slices of imaginary time, tempered in k, Gamma or beta.

    In the isotropic form, the default, the weight is exp(-k A) with A = -(sum over slices of J s s
    over bonds, h s over sites and s(tau) s(tau + 1) over sites); the transverse field is Gamma =
    -ln tanh(k) / (2 k), the inverse temperature k times ``slices``. In the general form, with
    ``gamma`` and ``beta``, bonds and fields in space have the weight k = beta / ``slices``, and
    bonds in time -ln tanh(gamma k) / 2. Averages then are those of the quantum model at this gamma
    and beta, up to terms of order k^2.

    Args:
        model: Model in space.
        k: Steps in time of the isotropic form, shape (k,), in any order; or text as the command
            line takes it, such as ``auto:0.25:0.31``. By default ``0.2:0.3:16``.
        slices: Slices in time, an even number from 2 to 2^20.
        sweeps: Measured sweeps (a whole number from 1 to 10^12).
        thermalize: Sweeps before the first measurement.
        replicas: Copies at each k, two or more for overlaps (a whole number from 1 to 2^21).
        measure_every: Sweeps between measurements.
        swap_every: Sweeps between exchanges.
        correlation_times: Times in slices at which spins are correlated with themselves; 1 is
            always among them. By default 1, 2, 3, ... to half of the slices, 16 at most.
        even_correlations: Correlate products of neighbouring spins too, for gaps of even parity.
        local_susceptibility: Measure the local susceptibility of each site, from the square of its
            sum over slices.
        seed: Seed of the dynamics, 64 bits (a whole number from 0 to 2^64 - 1); None draws a fresh
            one.
        start: Initial spins: ``random``, ``up``, or configurations of +1 and -1 in space and time,
            shape (sites,), (samples, sites) or (samples, copies times points, sites). Replica c T +
            i is copy c at the i-th of T points, counted from the end deepest in the ordered phase.
        zero_acceptance: Acceptance of flips that cost nothing (a number above 0 and at most 1), by
            default 1 - 2^-6.
        rng_rounds: Philox rounds, 10 or 7.
        device: ``auto`` (a GPU if there is one), ``cpu``, ``cuda`` or ``gpu`` (the same as cuda).
        threads: CPU threads (a whole number from 1 to 4096), all by default. The result does not
            depend on their number.
        on_updates: Called now and then with the number of spin updates since its last call.
        out: File for the run and its checkpoints; the same call, or ``resume``, completes an
            interrupted run. Without a file the run is kept in memory.
        checkpoint_every: Seconds between checkpoints, at least 0.
        progress: Show a progress bar on the terminal or in the notebook; elsewhere say when kernels
            are compiled.
        gamma: Transverse fields of the general form in the unit of the couplings, one or several in
            any order, or text.
        beta: Inverse temperatures of the general form, likewise. At least one of gamma and beta is
            a single number.
        measure: Observables of your own, functions by name, as ``ss.temper`` takes them.
        moves: Moves in space and time, as ``ss.temper`` takes them.
        clusters: Cluster moves of Fortuin and Kasteleyn between sweeps: ``sw``, ``wolff`` or
            ``seeded``.
        clusters_every: Sweeps between cluster moves, 10 by default.
        houdayer: Sweeps between Houdayer moves, which exchange clusters between copies at one
            point. ``auto`` makes them where they pay, with two copies or more on graphs of up to
            three dimensions; 0 for none, the default.
        series: Series to keep: ``all``, ``none``, or names such as ``energy,overlap``; averages
            come from sums over all measurements.
        series_limit: Megabytes that series may take, at least 0.001. A longer run adds up all
            measurements and keeps every second, fourth, ... row, in at most a quarter of the limit.
        magnetization_modes: Measure Fourier modes of the magnetisation, for its correlation lengths
            in space and in time.
        gpus: GPUs that share the work: ``all``, how many, or a list of numbers such as ``0,2``; by
            default one for each process.
        save_configurations: Save all spins at every so many measurements (up to 10^12), a bit a
            spin; 0 saves none.

    Returns:
        Actions, magnetisations, correlations in time and overlaps of every copy at every point, and
        the rates of exchange.

    Raises:
        InputError: for bad points or slices, numbers out of range, too little memory, and a file
            that holds another run.
        KeyboardInterrupt: on Ctrl-C; a run with ``out`` is saved first.
    """
    given = dict(locals())
    in_time = trotter(check_model(model), slices or QuantumSettings.slices, by_term=gamma is not None)
    result: QuantumResult = run_of_call(Quantum, in_time, given)
    return result
