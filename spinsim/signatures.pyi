# Calls of the jobs with all their settings, made from the program: python -m spinsim.settings --signatures
import os
from collections.abc import Callable, Mapping, Sequence

from numpy.typing import ArrayLike

from spinsim.engine.moves.move import Move
from spinsim.jobs.anneal.result import AnnealResult
from spinsim.jobs.quantum.result import QuantumResult
from spinsim.jobs.temper.result import TemperResult
from spinsim.jobs.transfer.result import TransferResult
from spinsim.model.ising import Ising
from spinsim.run.own import Measure

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
        model: Model to anneal; or a list of models, of which model k has the seed ``seed + k``.
        temperatures: In order of use, up or down, in the unit of the couplings, shape (steps,);
            or text as the command line takes it, such as ``3:0.1:100g``. Without them the ends,
            their number and the spacing are settings.
        sweeps: Sweeps at each temperature (a whole number from 1 to 1000000000000).
        replicas: Replicas of each sample (a whole number from 1 to 2097152); by default 128, on
            a GPU as many as fill it, up to 8192 of searches; 16 of searches of dense problems
            on a CPU, 128 of a quantum anneal, at least 4096 of populations.
        seed: Seed of the dynamics, 64 bits (a whole number from 0 to 18446744073709551615);
            None draws a fresh one.
        start: Initial spins: ``random``, ``up``, or configurations of +1 and -1, shape
            (sites,), (samples, sites) or (samples, replicas, sites).
        zero_acceptance: Acceptance of flips that cost nothing (a number above 0 and at most 1);
            by default 1 - 2^-6.
        rng_rounds: Philox rounds: 10 or 7.
        device: Where it runs, auto for a GPU where there is one and gpu for cuda: auto, cpu,
            cuda or gpu.
        threads: CPU threads; no number changes the outcome (a whole number from 1 to 4096); by
            default all.
        on_updates: Called now and then with the number of spin updates since the last call.
        field: A uniform field for each temperature, (steps,) or text, which is added to the
            model's own fields and is part of the energies; one temperature alone serves all of
            them.
        target: Value of the problem that ends the search, one or one for each sample: the cut
            of a MaxCut instance, else the energy, with the constant of the problem.
        out: File that the run is written to, with checkpoints; the same call, or ``resume``,
            completes it. Without one the run is kept in memory.
        checkpoint_every: Seconds between checkpoints (a number of seconds, at least 0).
        progress: Whether a bar on the terminal or in the notebook shows how far the run is.
        measure: Observables of your own, functions by name, as ``ss.temper`` takes them; they
            return floats or whole numbers of the shape (samples, replicas), or with more axes
            behind these.
        moves: Moves, as ``ss.temper`` takes them: ``[(move, 10)]``.
        t_start: First temperature (a positive finite number, at least 1e-300); by default 1.5 x
            the root mean square local field, of dense problems 1 x the same; of populations the
            first below infinity.
        t_stop: Last temperature (a positive finite number, at least 1e-300); by default 0.05 x
            the same.
        steps: Number of temperatures (a whole number from 1 to 1000000000).
        schedule: Spacing: linear or geometric.
        populations: Populations of equal size into which the replicas of each sample are
            divided, each of which is resampled when the temperature changes: population
            annealing; 0 resamples nothing (a whole number from 0 to 2097152).
        overlap: Instead of steps, the part by which the energies of populations at neighbouring
            temperatures shall overlap, from infinity to t_stop: a pre-run finds where they lie;
            what is missing to 1 is the part of the replicas that each resampling removes (a
            number from 0.1 to 0.99).
        quantum: Turn a transverse field down in slices of imaginary time, at a constant
            temperature where none are given: simulated quantum annealing.
        gamma_start: First transverse field of a quantum anneal (a positive finite number, at
            least 1e-300); by default 1.5 x the root mean square local field.
        gamma_stop: Last transverse field (a positive finite number, at least 1e-300); by
            default 0.05 x the same.
        slices: Slices in imaginary time, an even number (a whole number from 2 to 1048576); by
            default 32.
        beta: Inverse temperature of a quantum anneal without temperatures; a slice by itself
            has the temperature slices / beta (a number from 1e-100 to 1e+100); by default
            slices / (0.5 x the root mean square local field).
        best_states: Keep the lowest state that every replica met, not that of each sample
            alone.
        solution: File for the lowest states by the labels of the problem, .txt or .json.
        time_limit: End after so long, without the compiling of kernels; until then the search
            goes on (a positive finite number, at least 0.001).
        anneals: Anneals at most, one after the other, each with random numbers of its own; the
            series are those of the first (a whole number from 1 to 1048576); by default 1, and
            any number with a target or a time limit.
        growing: Begin with a short anneal and double the length of each next one up to that
            given; where none is given, a target or a time limit does it.
        clusters: Cluster moves of Fortuin and Kasteleyn between sweeps: sw, wolff or seeded.
        clusters_every: Sweeps between cluster moves (a whole number, at least 1).
        gpus: GPUs that share out samples, replicas or slabs: all, how many, or their numbers
            such as 0,2; by default one for each process.
        save_configurations: Steps of the schedule for each one at whose end all spins are
            saved, a bit a spin; 0 saves none (a whole number from 0 to 1000000000000).

    Returns:
        Energies and magnetisations after each temperature, and the lowest states met; of a list
        of models a list, each as a call with that model alone returns it.

    Raises:
        InputError: for bad temperatures, numbers out of range, a run that does not fit in
            memory, and a file that holds another run.
        KeyboardInterrupt: on Ctrl-C; a run with a file has saved itself.
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
    houdayer: str | None = None,
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
        model: What to simulate.
        temperatures: From the lowest to the highest, in the unit of the couplings, shape
            (temperatures,); or text as the command line takes it, such as ``auto:0.7:2.0``. By
            default 16 in a geometric row from 0.3 to 0.8 times the root mean square local
            field; in a search and where there is no lattice 32 (64 beyond 4000 sites) from
            twice the last to 2/3 of the first temperature of an anneal; in a search beyond 4000
            sites 128 in equal steps from three times the last to half of the first.
        sweeps: Sweeps of the measured part; of a search only of the rows that are recorded: it
            goes on beyond them (a whole number from 1 to 1000000000000).
        thermalize: Sweeps before the first measurement; of a search only before the first row
            that is recorded (a whole number, at least 0).
        replicas: Copies at each temperature, 2 by default. A search has by default as many as
            make 128 replicas, 1 to 8 (1 of dense problems on a CPU), in several ``groups``;
            given a number it has one group.
        measure_every: Sweeps between measurements (a whole number, at least 1).
        swap_every: Sweeps between exchanges of temperatures (a whole number, at least 1).
        seed: Seed of the dynamics, 64 bits (a whole number from 0 to 18446744073709551615);
            None draws a fresh one.
        start: Initial spins: ``random``, ``up``, or configurations of +1 and -1, shape
            (sites,), (samples, sites) or (samples, copies times temperatures, sites), of which
            number c T + k is copy c at temperature k of T.
        zero_acceptance: Acceptance of flips that cost nothing (a number above 0 and at most 1);
            by default 1 - 2^-6.
        rng_rounds: Philox rounds: 10 or 7.
        device: Where it runs, auto for a GPU where there is one and gpu for cuda: auto, cpu,
            cuda or gpu.
        threads: CPU threads; no number changes the outcome of as many groups (a whole number
            from 1 to 4096); by default all.
        on_updates: Called now and then with the number of spin updates since the last call.
        moves: Moves, such as ``Houdayer``, ``SwendsenWang``, ``Wolff``, ``SeededClusters`` or
            objects of your own with a ``name`` and ``apply(batch)``, each with the number of
            sweeps after which it is applied: ``[(Houdayer(), 16)]``, also ``"houdayer:16"``.
            Names of your own moves as text are refused.
        correlations: Measure link overlaps and the smallest Fourier modes; by default not in
            searches.
        target: Value of the problem that ends the search, one or one for each sample: the cut
            of a MaxCut instance, else the energy, with the constant of the problem.
        out: File that the run is written to, with checkpoints; the same call, or ``resume``,
            completes it. Without one the run is kept in memory.
        checkpoint_every: Seconds between checkpoints (a number of seconds, at least 0).
        progress: Whether a bar on the terminal or in the notebook shows how far the run is.
        measure: Observables of your own, functions by name: ``{"parity": parity}``. Each takes
            a batch of spins (``spins``, ``grid``, ``axes``, ``model``, ``xp``) and returns
            floats or whole numbers of the shape (samples, copies, temperatures), or with more
            axes behind these. Text names them as ``module:function``.
        magnetization_modes: Measure Fourier modes of the magnetisation too, for its correlation
            length; by default no for glasses with symmetric +-J or Gaussian couplings in zero
            field, where they are noise; else yes.
        clusters: Cluster moves of Fortuin and Kasteleyn between sweeps: sw, wolff or seeded.
        clusters_every: Sweeps between cluster moves (a whole number, at least 1).
        houdayer: Sweeps between Houdayer moves, by which copies of one temperature exchange
            clusters; auto for moves where they pay, with two copies or more and up to 8 bonds a
            site; 0 for none; by default none; of searches on graphs auto.
        series: Series that are kept: all, none, or names such as energy,overlap; all averages
            follow from sums that are kept beside them.
        series_limit: Megabytes that series may take; of a longer run every second, fourth, ...
            row is kept, so that they take at most a quarter of it, no row where a single one
            takes more, and measurements are added up as they are made (a positive finite
            number, at least 0.001).
        groups: Groups of copies that search side by side, each with its own random numbers;
            series, exchanges and round trips are those of the first (a whole number from 1 to
            262144); by default 1; of searches without --replicas one for each CPU thread, or as
            many as fill a GPU.
        restart_after: Sweeps without a lower state after which a search begins anew with other
            random numbers, twice as many after each restart; 0 for never (a whole number from 0
            to 1000000000000); by default 50000 of searches, beyond 4000 sites 250 for each
            site.
        time_limit: End after so long, without the compiling of kernels; until then the search
            goes on (a positive finite number, at least 0.001).
        solution: File for the lowest states by the labels of the problem, .txt or .json.
        gpus: GPUs that share out samples, replicas or slabs: all, how many, or their numbers
            such as 0,2; by default one for each process.
        save_configurations: Measurements for each one whose spins are saved too, all of them, a
            bit a spin; 0 saves none (a whole number from 0 to 1000000000000).

    Returns:
        Energies, magnetisations and overlaps of every copy at every temperature, and what
        became of the exchanges.

    Raises:
        InputError: for bad temperatures, numbers out of range, a run that does not fit in
            memory, and a file that holds another run.
        KeyboardInterrupt: on Ctrl-C; a run with a file has saved itself.
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
    houdayer: str | None = None,
    series: str = "all",
    series_limit: float | None = 256.0,
    magnetization_modes: bool = True,
    gpus: str | None = None,
    save_configurations: int = 0,
) -> QuantumResult:
    """The transverse-field Ising model in slices of imaginary time, tempered in k, Gamma or beta.

    In the isotropic form, the default, the weight is exp(-k A) with A = -(sum over slices of J
    s s over bonds, h s over sites and s(tau) s(tau + 1) over sites); the transverse field is
    Gamma = -ln tanh(k) / (2 k), the inverse temperature k times ``slices``. In the general
    form, with ``gamma`` and ``beta``, bonds and fields of space have the weight k = beta /
    ``slices`` and bonds in time -ln tanh(gamma k) / 2: averages are those of the quantum model
    at any gamma and beta, up to terms of order k^2.

    Args:
        model: What to simulate, in space alone.
        k: Steps in time of the isotropic form, shape (k,), in any order; or text as the command
            line takes it, such as ``auto:0.25:0.31``. By default 0.2:0.3:16, where no ``gamma``
            is given.
        slices: Slices in time, an even number (a whole number from 2 to 1048576).
        sweeps: Sweeps of the measured part (a whole number from 1 to 1000000000000).
        thermalize: Sweeps before the first measurement (a whole number, at least 0).
        replicas: Copies at each k, two or more for overlaps (a whole number from 1 to 2097152).
        measure_every: Sweeps between measurements (a whole number, at least 1).
        swap_every: Sweeps between exchanges (a whole number, at least 1).
        correlation_times: Times in slices at which spins are correlated with themselves; 1 is
            always among them. By default 1, 2, 3, ... to half of the slices, 16 at most.
        even_correlations: Correlate products of neighbours in space at these times too, for
            gaps of even parity.
        local_susceptibility: Add up each site's (sum over slices of its spin)^2 at
            measurements, for the distribution of local responses.
        seed: Seed of the dynamics, 64 bits (a whole number from 0 to 18446744073709551615);
            None draws a fresh one.
        start: Initial spins: ``random``, ``up``, or configurations of +1 and -1 in space and
            time, shape (sites,), (samples, sites) or (samples, copies times points, sites), of
            which number c T + i is copy c at the i-th of T points from the end that is deepest
            in the ordered phase.
        zero_acceptance: Acceptance of flips that cost nothing (a number above 0 and at most 1);
            by default 1 - 2^-6.
        rng_rounds: Philox rounds: 10 or 7.
        device: Where it runs, auto for a GPU where there is one and gpu for cuda: auto, cpu,
            cuda or gpu.
        threads: CPU threads; no number changes the outcome (a whole number from 1 to 4096); by
            default all.
        on_updates: Called now and then with the number of spin updates since the last call.
        out: File that the run is written to, with checkpoints; the same call, or ``resume``,
            completes it. Without one the run is kept in memory.
        checkpoint_every: Seconds between checkpoints (a number of seconds, at least 0).
        progress: Whether a bar on the terminal or in the notebook shows how far the run is.
        gamma: Transverse fields of the general form in the unit of the couplings, one or
            several in any order, or text.
        beta: Its inverse temperatures, likewise; one of the two is a single number.
        measure: Observables of your own, functions by name, as ``ss.temper`` takes them.
        moves: Moves of configurations in space and time, likewise; clusters of ``Houdayer``
            moves grow in time too.
        clusters: Cluster moves of Fortuin and Kasteleyn between sweeps: sw, wolff or seeded.
        clusters_every: Sweeps between cluster moves (a whole number, at least 1).
        houdayer: Sweeps between Houdayer moves, by which copies of one temperature exchange
            clusters; auto for moves where they pay, with two copies or more and up to 8 bonds a
            site; 0 for none; by default none.
        series: Series that are kept: all, none, or names such as energy,overlap; all averages
            follow from sums that are kept beside them.
        series_limit: Megabytes that series may take; of a longer run every second, fourth, ...
            row is kept, so that they take at most a quarter of it, no row where a single one
            takes more, and measurements are added up as they are made (a positive finite
            number, at least 0.001).
        magnetization_modes: Measure Fourier modes of the magnetisation, for its correlation
            lengths in space and in time.
        gpus: GPUs that share out samples, replicas or slabs: all, how many, or their numbers
            such as 0,2; by default one for each process.
        save_configurations: Measurements for each one whose spins are saved too, all of them, a
            bit a spin; 0 saves none (a whole number from 0 to 1000000000000).

    Returns:
        Actions, magnetisations, correlations in time and overlaps of every copy at every point,
        and what became of the exchanges.

    Raises:
        InputError: for bad points or slices, numbers out of range, a run that does not fit in
            memory, and a file that holds another run.
        KeyboardInterrupt: on Ctrl-C; a run with a file has saved itself.
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
        model: One layer, of up to some 30 sites: a chain for strips, a square for bars, or any
            graph.
        k: 1 / T, one or many, or text as the command line takes it, such as ``0.2:0.3:11``.
        temperature: Instead of k, in the unit of the couplings. Without both, the transition of
            the ferromagnet.
        k_time: Coupling between layers, a number without unit, one or as many; by default k
            times the |J| that all bonds of the layer share, 1 where they do not.
        eigenvalues: Levels of each sector (a whole number from 1 to 1000).
        sector: ``even`` or ``odd`` under the flip of all spins, or ``both``; in a field there
            is one sector, ``all``.
        tolerance: Residual |T x - lambda x| / lambda at which a level has converged, from 1e-14
            to 0.1.
        method: How T is applied: butterfly, kronecker or auto.
        basis: Stored vectors, 0 for none (fewest memory, no matrix elements); by default as
            many as serve and fit.
        seed: Seed of the start vectors, 64 bits (a whole number from 0 to
            18446744073709551615); None draws a fresh one.
        device: Where it runs, auto for a GPU where there is one and gpu for cuda: auto, cpu,
            cuda or gpu.
        threads: CPU threads (a whole number from 1 to 4096); by default all.
        most_steps: Products with T after which levels are given up (a whole number, at least
            1).
        on_rows: Called with the number of samples and points that were finished since the last
            call.
        out: File that the run is written to, with checkpoints; the same call, or ``resume``,
            completes it. Without one the run is kept in memory.
        checkpoint_every: Seconds between checkpoints (a number of seconds, at least 0).
        progress: Whether a bar on the terminal or in the notebook shows how far the run is.
        gpus: GPUs that share each vector: all, how many, or their numbers such as 0,2; by
            default one for each process.

    Returns:
        ln of the eigenvalues, residuals, correlation lengths, energies and matrix elements.
        With ``out``, levels that did not converge are NaN, with a warning, and ``resume`` tries
        them again.

    Raises:
        InputError: for couplings that overflow, a layer that does not fit, levels that do not
            converge where there is no ``out``, and a file that holds another run.
        KeyboardInterrupt: on Ctrl-C; a run with a file has saved itself.
    """
