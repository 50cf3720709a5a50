"""``ss.temper``: parallel tempering of a model, or a search for its low states."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence

from numpy.typing import ArrayLike

from spinsim.acceptance import check_temperatures
from spinsim.engine.moves.move import Move
from spinsim.inputs.arguments import judges
from spinsim.inputs.signatures import public
from spinsim.jobs.calls import run_of_call
from spinsim.jobs.temper.result import TemperResult
from spinsim.jobs.temper.settings import Temper
from spinsim.model.ising import Ising
from spinsim.run.functions import Measure


@public
@judges("model", "seed", none=True)
def temper(
    model: Ising,
    temperatures: ArrayLike | str | None = None,
    sweeps: int = 10_000,
    thermalize: int = 2000,
    replicas: int | None = None,
    measure_every: int = 10,
    swap_every: int = 1,
    seed: int | None = 1,
    start: str | ArrayLike = "random",
    zero_acceptance: float = 1 - 2**-6,
    rng_rounds: int = 10,
    device: str = "auto",
    threads: int | None = None,
    on_updates: Callable[[int], None] | None = None,
    moves: str | Sequence[tuple[Move, int]] | None = None,
    correlations: bool | None = None,
    target: ArrayLike | str | None = None,
    out: str | os.PathLike[str] | None = None,
    checkpoint_every: float = 60.0,
    progress: bool = False,
    measure: str | Mapping[str, Measure] | None = None,
    *,
    magnetization_modes: bool | None = None,
    clusters: str | None = None,
    clusters_every: int | None = None,
    houdayer: str | int | None = None,
    series: str = "all",
    series_limit: float = 256.0,
    groups: int | None = None,
    restart_after: int | None = None,
    time_limit: float | None = None,
    solution: str | os.PathLike[str] | None = None,
    gpus: str | None = None,
    save_configurations: int = 0,
) -> TemperResult:
    """Parallel tempering in equilibrium.

    Args:
        model: Model to simulate.
        temperatures: From the lowest to the highest, in the unit of the couplings, shape
            (temperatures,); or text as the command line takes it, such as ``auto:0.7:2.0``. By
            default 16 in equal ratios, for ferromagnets and antiferromagnets from 0.75 to 1.3 times
            the temperature of their transition, for glasses from 0.3 to 0.8 times the root mean
            square local field. Searches and graphs take 32 to 128 over the range of an anneal.
        sweeps: Measured sweeps; in a search the recorded sweeps, after which it goes on (a whole
            number from 1 to 10^12).
        thermalize: Sweeps before the first measurement; in a search before the first recorded row.
        replicas: Copies at each temperature (a whole number from 1 to 2^21), 2 by default. A search
            takes 1 to 8, so that a group has 128 replicas (1 for dense problems on a CPU), and
            several ``groups``; with a number given it has one group.
        measure_every: Sweeps between measurements.
        swap_every: Sweeps between exchanges of temperatures.
        seed: Seed of the dynamics, 64 bits (a whole number from 0 to 2^64 - 1); None draws a fresh
            one.
        start: Initial spins: ``random``, ``up``, or configurations of +1 and -1, shape (sites,),
            (samples, sites) or (samples, copies times temperatures, sites). Replica c T + k is copy
            c at temperature k of T.
        zero_acceptance: Acceptance of flips that cost nothing (a number above 0 and at most 1), by
            default 1 - 2^-6.
        rng_rounds: Philox rounds, 10 or 7.
        device: ``auto`` (a GPU if there is one), ``cpu``, ``cuda`` or ``gpu`` (the same as cuda).
        threads: CPU threads (a whole number from 1 to 4096), all by default. The result does not
            depend on their number, for a given number of groups.
        on_updates: Called now and then with the number of spin updates since its last call.
        moves: Moves, such as ``Houdayer``, ``SwendsenWang``, ``Wolff``, ``SeededClusters`` or
            objects of your own with a ``name`` and ``apply(batch)``, each with the number of sweeps
            between two moves: ``[(Houdayer(), 16)]`` or ``"houdayer:16"``. Moves of your own are
            given as objects.
        correlations: Measure link overlaps and the smallest Fourier modes. By default True, and
            False in searches.
        target: Search until this value is met, one for all samples or one for each: the cut of a
            MaxCut instance, else the energy with the constant of the problem.
        out: File for the run and its checkpoints; the same call, or ``resume``, completes an
            interrupted run. Without a file the run is kept in memory.
        checkpoint_every: Seconds between checkpoints, at least 0.
        progress: Show a progress bar on the terminal or in the notebook; elsewhere say when kernels
            are compiled.
        measure: Observables of your own, functions by name: ``{"parity": parity}``. Each takes a
            batch of spins (``spins``, ``grid``, ``axes``, ``model``, ``xp``) and returns floats or
            whole numbers of the shape (samples, copies, temperatures), with further axes if you
            like. As text: ``module:function``.
        magnetization_modes: Measure Fourier modes of the magnetisation too, for its correlation
            length. By default False for glasses with symmetric +-J or Gaussian couplings in zero
            field, where they are noise, else True.
        clusters: Cluster moves of Fortuin and Kasteleyn between sweeps: ``sw``, ``wolff`` or
            ``seeded``.
        clusters_every: Sweeps between cluster moves, 10 by default.
        houdayer: Sweeps between Houdayer moves, which exchange clusters between copies of one
            temperature. ``auto`` makes them where they pay, with two copies or more on graphs of up
            to three dimensions; 0 for none. By default none; in searches on graphs ``auto``.
        series: Series to keep: ``all``, ``none``, or names such as ``energy,overlap``; averages
            come from sums over all measurements.
        series_limit: Megabytes that series may take, at least 0.001. A longer run adds up all
            measurements and keeps every second, fourth, ... row, in at most a quarter of the limit.
        groups: Independent groups of copies in a search (a whole number from 1 to 2^18); series,
            exchanges and round trips are those of the first group. By default 1; in searches
            without ``replicas`` one for each CPU thread, or as many as fill a GPU.
        restart_after: Sweeps without a lower state after which a search restarts with new random
            numbers, twice as many after each restart (up to 10^12); 0 for never. By default 50000
            in searches, beyond 4000 sites 250 for each site.
        time_limit: Search for this many seconds, at least 0.001, not counting the compiling of
            kernels.
        solution: File for the lowest states by the labels of the problem, .txt or .json.
        gpus: GPUs that share the work: ``all``, how many, or a list of numbers such as ``0,2``; by
            default one for each process.
        save_configurations: Save all spins at every so many measurements (up to 10^12), a bit a
            spin; 0 saves none.

    Returns:
        Energies, magnetisations and overlaps of every copy at every temperature, and the rates of
        exchange.

    Raises:
        InputError: for bad temperatures, numbers out of range, too little memory, and a file that
            holds another run.
        KeyboardInterrupt: on Ctrl-C; a run with ``out`` is saved first.
    """
    result: TemperResult = run_of_call(Temper, model, locals(), temperatures=check_temperatures)
    return result
