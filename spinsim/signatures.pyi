# Calls of the jobs with all their settings, made from the program: python tests/support/settings_page.py --signatures
import os
from collections.abc import Callable, Mapping, Sequence

from numpy.typing import ArrayLike

from spinsim.engine.moves.move import Move
from spinsim.jobs.anneal.result import AnnealResult
from spinsim.jobs.quantum.result import QuantumResult
from spinsim.jobs.temper.result import TemperResult
from spinsim.jobs.transfer.result import TransferResult
from spinsim.model.ising import Ising
from spinsim.run.functions import Measure

def anneal(
    model: Ising,
    temperatures: ArrayLike | str | None = None,
    sweeps: int | None = 100,
    replicas: int | None = None,
    seed: int | None = 1,
    start: str | ArrayLike = "random",
    zero_acceptance: float = 0.984375,
    rng_rounds: int = 10,
    device: str = "auto",
    threads: int | None = None,
    on_updates: Callable[[int], None] | None = None,
    field: ArrayLike | str | None = None,
    target: ArrayLike | str | None = None,
    out: str | os.PathLike[str] | None = None,
    checkpoint_every: float = 60.0,
    progress: bool = False,
    measure: str | Mapping[str, Measure] | None = None,
    moves: str | Sequence[tuple[Move, int]] | None = None,
    *,
    t_start: float | None = None,
    t_stop: float | None = None,
    steps: int = 100,
    schedule: str = "geometric",
    populations: int = 0,
    overlap: float | None = None,
    quantum: bool = False,
    gamma_start: float | None = None,
    gamma_stop: float | None = None,
    slices: int | None = None,
    beta: float | None = None,
    best_states: bool = False,
    solution: str | os.PathLike[str] | None = None,
    time_limit: float | None = None,
    anneals: int | None = None,
    growing: bool = False,
    clusters: str | None = None,
    clusters_every: int = 10,
    gpus: str | None = None,
    save_configurations: int = 0,
) -> AnnealResult:
    """Anneal replicas of a model through a list of temperatures.

    Args:
        model: Model to anneal, or a list of models. Model k of a list has the seed ``seed + k``.
        temperatures: In order of use, up or down, in the unit of the couplings, shape (steps,); or text as the command
            line takes it, such as ``3:0.1:100g``. By default they follow from ``t_start``, ``t_stop``, ``steps`` and
            ``schedule``.
        sweeps: Sweeps at each temperature (a whole number from 1 to 10^12).
        replicas: Replicas of each sample (a whole number from 1 to 2^21); by default 128, on a GPU as many as fill it
            (in searches up to 8192); in searches of dense problems on a CPU 16, in a quantum anneal 128, in populations
            at least 4096.
        seed: Seed of the dynamics, 64 bits (a whole number from 0 to 2^64 - 1); None draws a fresh one.
        start: Initial spins: ``random``, ``up``, or configurations of +1 and -1, shape (sites,), (samples, sites) or
            (samples, replicas, sites).
        zero_acceptance: Acceptance of flips that cost nothing (a number above 0 and at most 1); by default 1 - 2^-6.
        rng_rounds: Philox rounds: 10 or 7.
        device: Device (auto takes a GPU if there is one, gpu means cuda): auto, cpu, cuda or gpu.
        threads: CPU threads; the result does not depend on their number (a whole number from 1 to 4096); by default
            all.
        on_updates: Function called now and then with the number of spin updates since its last call.
        field: Uniform field at each temperature, (steps,) or text. It is added to the model's own fields and is part of
            the energies. A single temperature serves all fields.
        target: Search until this value is met, one for all samples or one for each: the cut of a MaxCut instance, else
            the energy with the constant of the problem.
        out: File for the run and its checkpoints; the same call, or ``resume``, completes an interrupted run. Without a
            file the run is kept in memory.
        checkpoint_every: Seconds between checkpoints (a number of seconds, at least 0).
        progress: Show a progress bar on the terminal or in the notebook; elsewhere say when kernels are compiled.
        measure: Observables of your own, functions by name, as ``ss.temper`` takes them; they return floats or whole
            numbers of the shape (samples, replicas), with further axes if you like.
        moves: Moves, as ``ss.temper`` takes them: ``[(move, 10)]``.
        t_start: First temperature (a positive finite number, at least 1e-300); by default 1.5 x the root mean square
            local field, on graphs where flips at local minima succeed with 0.15; with populations the first below
            infinity.
        t_stop: Last temperature (a positive finite number, at least 1e-300); by default 0.05 x the same, on graphs
            where thermal energy is 1/64 of the height of minima.
        steps: Number of temperatures (a whole number from 1 to 10^9).
        schedule: Spacing: linear or geometric.
        populations: Population annealing: divide the replicas of each sample into this number of populations, which are
            resampled when the temperature changes; 0 for none (a whole number from 0 to 2^21).
        overlap: Instead of steps, the overlap of the energies of populations at neighbouring temperatures, which a
            pre-run places from infinity to t_stop; each resampling then removes a share of 1 - overlap of the replicas
            (a number from 0.1 to 0.99).
        quantum: Simulated quantum annealing: turn down a transverse field in slices of imaginary time, by default at a
            constant temperature.
        gamma_start: First transverse field of a quantum anneal (a positive finite number, at least 1e-300); by default
            t_start of an anneal without it.
        gamma_stop: Last transverse field (a positive finite number, at least 1e-300); by default t_stop likewise.
        slices: Slices in imaginary time, an even number (a whole number from 2 to 2^20); by default 32.
        beta: Inverse temperature of a quantum anneal without temperatures; a slice has the temperature slices / beta (a
            number from 1e-100 to 1e+100); by default slices / (t_start of an anneal without it / 3).
        best_states: Keep the lowest state of every replica, not only of every sample.
        solution: File for the lowest states by the labels of the problem, .txt or .json.
        time_limit: Search for this many seconds, not counting the compiling of kernels (a positive finite number, at
            least 0.001).
        anneals: Largest number of anneals, each with random numbers of its own; series are those of the first (a whole
            number from 1 to 2^20); by default 1, and any number with a target or a time limit.
        growing: Begin with a short anneal and double the length of each next one, up to the given length; the default
            of searches without a length.
        clusters: Cluster moves of Fortuin and Kasteleyn between sweeps: sw, wolff or seeded.
        clusters_every: Sweeps between cluster moves (a whole number, at least 1).
        gpus: GPUs that share the work: all, how many, or a list of numbers such as 0,2; by default one for each
            process.
        save_configurations: Save all spins after every so many steps of the schedule, a bit a spin; 0 saves none (a
            whole number from 0 to 10^12).

    Returns:
        Energies and magnetisations after each temperature, and the lowest states met; for a list of models a list of
        results, the same as of calls with one model each.

    Raises:
        InputError: for bad temperatures, numbers out of range, too little memory, and a file that holds another run.
        KeyboardInterrupt: on Ctrl-C; a run with ``out`` is saved first.
    """

def temper(
    model: Ising,
    temperatures: ArrayLike | str | None = None,
    sweeps: int = 10000,
    thermalize: int = 2000,
    replicas: int | None = None,
    measure_every: int = 10,
    swap_every: int = 1,
    seed: int | None = 1,
    start: str | ArrayLike = "random",
    zero_acceptance: float = 0.984375,
    rng_rounds: int = 10,
    device: str = "auto",
    threads: int | None = None,
    on_updates: Callable[[int], None] | None = None,
    moves: str | Sequence[tuple[Move, int]] | None = None,
    correlations: bool | None = True,
    target: ArrayLike | str | None = None,
    out: str | os.PathLike[str] | None = None,
    checkpoint_every: float = 60.0,
    progress: bool = False,
    measure: str | Mapping[str, Measure] | None = None,
    *,
    magnetization_modes: bool | None = None,
    clusters: str | None = None,
    clusters_every: int = 10,
    houdayer: str | int | None = None,
    series: str = "all",
    series_limit: float | None = 256.0,
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
        temperatures: From the lowest to the highest, in the unit of the couplings, shape (temperatures,); or text as
            the command line takes it, such as ``auto:0.7:2.0``. By default 16 in equal ratios, for ferromagnets and
            antiferromagnets from 0.75 to 1.3 times the temperature of their transition, for glasses from 0.3 to 0.8
            times the root mean square local field. Searches and graphs take 32 to 128 over the range of an anneal.
        sweeps: Measured sweeps; in a search the recorded sweeps, after which it goes on (a whole number from 1 to
            10^12).
        thermalize: Sweeps before the first measurement; in a search before the first recorded row (a whole number, at
            least 0).
        replicas: Copies at each temperature, 2 by default. A search takes 1 to 8, so that a group has 128 replicas (1
            for dense problems on a CPU), and several ``groups``; with a number given it has one group.
        measure_every: Sweeps between measurements (a whole number, at least 1).
        swap_every: Sweeps between exchanges of temperatures (a whole number, at least 1).
        seed: Seed of the dynamics, 64 bits (a whole number from 0 to 2^64 - 1); None draws a fresh one.
        start: Initial spins: ``random``, ``up``, or configurations of +1 and -1, shape (sites,), (samples, sites) or
            (samples, copies times temperatures, sites). Replica c T + k is copy c at temperature k of T.
        zero_acceptance: Acceptance of flips that cost nothing (a number above 0 and at most 1); by default 1 - 2^-6.
        rng_rounds: Philox rounds: 10 or 7.
        device: Device (auto takes a GPU if there is one, gpu means cuda): auto, cpu, cuda or gpu.
        threads: CPU threads; the result does not depend on their number, for a given number of groups (a whole number
            from 1 to 4096); by default all.
        on_updates: Function called now and then with the number of spin updates since its last call.
        moves: Moves, such as ``Houdayer``, ``SwendsenWang``, ``Wolff``, ``SeededClusters`` or objects of your own with
            a ``name`` and ``apply(batch)``, each with the number of sweeps between two moves: ``[(Houdayer(), 16)]`` or
            ``"houdayer:16"``. Moves of your own are given as objects.
        correlations: Measure link overlaps and the smallest Fourier modes; by default not in searches.
        target: Search until this value is met, one for all samples or one for each: the cut of a MaxCut instance, else
            the energy with the constant of the problem.
        out: File for the run and its checkpoints; the same call, or ``resume``, completes an interrupted run. Without a
            file the run is kept in memory.
        checkpoint_every: Seconds between checkpoints (a number of seconds, at least 0).
        progress: Show a progress bar on the terminal or in the notebook; elsewhere say when kernels are compiled.
        measure: Observables of your own, functions by name: ``{"parity": parity}``. Each takes a batch of spins
            (``spins``, ``grid``, ``axes``, ``model``, ``xp``) and returns floats or whole numbers of the shape
            (samples, copies, temperatures), with further axes if you like. As text: ``module:function``.
        magnetization_modes: Measure Fourier modes of the magnetisation too, for its correlation length; by default no
            for glasses with symmetric +-J or Gaussian couplings in zero field, where they are noise; else yes.
        clusters: Cluster moves of Fortuin and Kasteleyn between sweeps: sw, wolff or seeded.
        clusters_every: Sweeps between cluster moves (a whole number, at least 1).
        houdayer: Sweeps between Houdayer moves, which exchange clusters between copies of one temperature; auto makes
            them where they pay, with two copies or more on graphs of up to three dimensions; 0 for none; by default
            none; in searches on graphs auto.
        series: Series to keep: all, none, or names such as energy,overlap; averages come from sums over all
            measurements.
        series_limit: Megabytes that series may take; a longer run adds up all measurements and keeps every second,
            fourth, ... row, in at most a quarter of the limit (a positive finite number, at least 0.001).
        groups: Independent groups of copies in a search; series, exchanges and round trips are those of the first group
            (a whole number from 1 to 2^18); by default 1; in searches without --replicas one for each CPU thread, or as
            many as fill a GPU.
        restart_after: Sweeps without a lower state after which a search restarts with new random numbers, twice as many
            after each restart; 0 for never (a whole number from 0 to 10^12); by default 50000 in searches, beyond 4000
            sites 250 for each site.
        time_limit: Search for this many seconds, not counting the compiling of kernels (a positive finite number, at
            least 0.001).
        solution: File for the lowest states by the labels of the problem, .txt or .json.
        gpus: GPUs that share the work: all, how many, or a list of numbers such as 0,2; by default one for each
            process.
        save_configurations: Save all spins at every so many measurements, a bit a spin; 0 saves none (a whole number
            from 0 to 10^12).

    Returns:
        Energies, magnetisations and overlaps of every copy at every temperature, and the rates of exchange.

    Raises:
        InputError: for bad temperatures, numbers out of range, too little memory, and a file that holds another run.
        KeyboardInterrupt: on Ctrl-C; a run with ``out`` is saved first.
    """

def quantum(
    model: Ising,
    k: ArrayLike | str | None = None,
    slices: int = 32,
    sweeps: int = 10000,
    thermalize: int = 2000,
    replicas: int | None = 2,
    measure_every: int = 10,
    swap_every: int = 1,
    correlation_times: ArrayLike | str | None = None,
    even_correlations: bool = False,
    local_susceptibility: bool = False,
    seed: int | None = 1,
    start: str | ArrayLike = "random",
    zero_acceptance: float = 0.984375,
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
    clusters_every: int = 10,
    houdayer: str | int | None = None,
    series: str = "all",
    series_limit: float | None = 256.0,
    magnetization_modes: bool = True,
    gpus: str | None = None,
    save_configurations: int = 0,
) -> QuantumResult:
    """The transverse-field Ising model in slices of imaginary time, tempered in k, Gamma or beta.

    In the isotropic form, the default, the weight is exp(-k A) with A = -(sum over slices of J s s over bonds, h s over
    sites and s(tau) s(tau + 1) over sites); the transverse field is Gamma = -ln tanh(k) / (2 k), the inverse
    temperature k times ``slices``. In the general form, with ``gamma`` and ``beta``, bonds and fields in space have the
    weight k = beta / ``slices``, and bonds in time -ln tanh(gamma k) / 2. Averages then are those of the quantum model
    at this gamma and beta, up to terms of order k^2.

    Args:
        model: Model in space.
        k: Steps in time of the isotropic form, shape (k,), in any order; or text as the command line takes it, such as
            ``auto:0.25:0.31``; by default 0.2:0.3:16.
        slices: Slices in time, an even number (a whole number from 2 to 2^20).
        sweeps: Measured sweeps (a whole number from 1 to 10^12).
        thermalize: Sweeps before the first measurement (a whole number, at least 0).
        replicas: Copies at each k, two or more for overlaps (a whole number from 1 to 2^21).
        measure_every: Sweeps between measurements (a whole number, at least 1).
        swap_every: Sweeps between exchanges (a whole number, at least 1).
        correlation_times: Times in slices at which spins are correlated with themselves; 1 is always among them. By
            default 1, 2, 3, ... to half of the slices, 16 at most.
        even_correlations: Correlate products of neighbouring spins too, for gaps of even parity.
        local_susceptibility: Measure the local susceptibility of each site, from the square of its sum over slices.
        seed: Seed of the dynamics, 64 bits (a whole number from 0 to 2^64 - 1); None draws a fresh one.
        start: Initial spins: ``random``, ``up``, or configurations of +1 and -1 in space and time, shape (sites,),
            (samples, sites) or (samples, copies times points, sites). Replica c T + i is copy c at the i-th of T
            points, counted from the end deepest in the ordered phase.
        zero_acceptance: Acceptance of flips that cost nothing (a number above 0 and at most 1); by default 1 - 2^-6.
        rng_rounds: Philox rounds: 10 or 7.
        device: Device (auto takes a GPU if there is one, gpu means cuda): auto, cpu, cuda or gpu.
        threads: CPU threads; the result does not depend on their number (a whole number from 1 to 4096); by default
            all.
        on_updates: Function called now and then with the number of spin updates since its last call.
        out: File for the run and its checkpoints; the same call, or ``resume``, completes an interrupted run. Without a
            file the run is kept in memory.
        checkpoint_every: Seconds between checkpoints (a number of seconds, at least 0).
        progress: Show a progress bar on the terminal or in the notebook; elsewhere say when kernels are compiled.
        gamma: Transverse fields of the general form in the unit of the couplings, one or several in any order, or text.
        beta: Inverse temperatures of the general form, likewise. At least one of gamma and beta is a single number.
        measure: Observables of your own, functions by name, as ``ss.temper`` takes them.
        moves: Moves in space and time, as ``ss.temper`` takes them.
        clusters: Cluster moves of Fortuin and Kasteleyn between sweeps: sw, wolff or seeded.
        clusters_every: Sweeps between cluster moves (a whole number, at least 1).
        houdayer: Sweeps between Houdayer moves, which exchange clusters between copies of one temperature; auto makes
            them where they pay, with two copies or more on graphs of up to three dimensions; 0 for none; by default
            none.
        series: Series to keep: all, none, or names such as energy,overlap; averages come from sums over all
            measurements.
        series_limit: Megabytes that series may take; a longer run adds up all measurements and keeps every second,
            fourth, ... row, in at most a quarter of the limit (a positive finite number, at least 0.001).
        magnetization_modes: Measure Fourier modes of the magnetisation, for its correlation lengths in space and in
            time.
        gpus: GPUs that share the work: all, how many, or a list of numbers such as 0,2; by default one for each
            process.
        save_configurations: Save all spins at every so many measurements, a bit a spin; 0 saves none (a whole number
            from 0 to 10^12).

    Returns:
        Actions, magnetisations, correlations in time and overlaps of every copy at every point, and the rates of
        exchange.

    Raises:
        InputError: for bad points or slices, numbers out of range, too little memory, and a file that holds another
            run.
        KeyboardInterrupt: on Ctrl-C; a run with ``out`` is saved first.
    """

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
        model: One layer, of up to some 30 sites: a chain for strips, a square for bars, or any graph.
        k: 1 / T, one or many, or text as the command line takes it, such as ``0.2:0.3:11``.
        temperature: Instead of k, in the unit of the couplings; by default the transition of the ferromagnet.
        k_time: Coupling between layers, without unit, one number or one for each k; by default k times the |J| that all
            bonds of the layer share (times 1 if they differ).
        eigenvalues: Levels of each sector (a whole number from 1 to 1000).
        sector: ``even`` or ``odd`` under the flip of all spins, or ``both``; in a field there is one sector, ``all``.
        tolerance: Residual |T x - lambda x| / lambda at which a level has converged, from 1e-14 to 0.1.
        method: How T is applied: butterfly, kronecker or auto.
        basis: Stored vectors; 0 takes least memory and gives no matrix elements. By default as many as help and fit.
        seed: Seed of the start vectors, 64 bits (a whole number from 0 to 2^64 - 1); None draws a fresh one.
        device: Device (auto takes a GPU if there is one, gpu means cuda): auto, cpu, cuda or gpu.
        threads: CPU threads (a whole number from 1 to 4096); by default all.
        most_steps: Products with T after which levels are given up (a whole number, at least 1).
        on_rows: Called with the number of samples and points that were finished since the last call.
        out: File for the run and its checkpoints; the same call, or ``resume``, completes an interrupted run. Without a
            file the run is kept in memory.
        checkpoint_every: Seconds between checkpoints (a number of seconds, at least 0).
        progress: Show a progress bar on the terminal or in the notebook; elsewhere say when kernels are compiled.
        gpus: GPUs that share each vector: all, how many, or a list of numbers such as 0,2; by default one for each
            process.

    Returns:
        ln of the eigenvalues, residuals, correlation lengths, energies and matrix elements. With ``out``, levels that
        did not converge are NaN, with a warning, and ``resume`` tries them again.

    Raises:
        InputError: for couplings that overflow, a layer that does not fit, levels that do not converge (without
            ``out``), and a file that holds another run.
        KeyboardInterrupt: on Ctrl-C; a run with ``out`` is saved first.
    """
