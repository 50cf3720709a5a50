"""``ss.anneal``: an annealing run of one model, or of several."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from numpy.typing import ArrayLike

from spinsim.acceptance import check_temperatures
from spinsim.engine import resolve_device
from spinsim.engine.moves.move import Move
from spinsim.errors import InputError
from spinsim.inputs.arguments import judges
from spinsim.inputs.signatures import public
from spinsim.inputs.texts import seeds_of
from spinsim.jobs.anneal.result import AnnealResult
from spinsim.jobs.anneal.settings import Anneal, AnnealSettings
from spinsim.jobs.calls import run_of_call, start_of_call
from spinsim.machine.threads import WORTH_A_THREAD, Threads
from spinsim.model.ising import Ising
from spinsim.packing import LANES
from spinsim.run.functions import Measure
from spinsim.settings.setting import settings_of
from spinsim.settings.shared import RunSettings


@public
@judges("model", "seed", none=True)
def anneal(
    model: Ising,
    temperatures: ArrayLike | str | None = None,
    sweeps: int | None = None,
    replicas: int | None = None,
    seed: int | None = 1,
    start: str | ArrayLike = "random",
    zero_acceptance: float = 1 - 2**-6,
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
    steps: int | None = None,
    schedule: str | None = None,
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
    growing: bool | None = None,
    clusters: str | None = None,
    clusters_every: int | None = None,
    gpus: str | None = None,
    save_configurations: int = 0,
) -> AnnealResult:
    """Anneal replicas of a model through a list of temperatures.

    Args:
        model: Model to anneal, or a list of models. Model k of a list has the seed ``seed + k``.
        temperatures: In order of use, up or down, in the unit of the couplings, shape (steps,); or
            text as the command line takes it, such as ``3:0.1:100g``. By default they follow from
            ``t_start``, ``t_stop``, ``steps`` and ``schedule``.
        sweeps: Sweeps at each temperature, 100 by default (a whole number from 1 to 10^12).
        replicas: Replicas of each sample (a whole number from 1 to 2^21). By default 128, on a GPU
            as many as fill it (in searches up to 8192); in searches of dense problems on a CPU 16,
            in a quantum anneal 128, in populations at least 4096.
        seed: Seed of the dynamics, 64 bits (a whole number from 0 to 2^64 - 1); None draws a fresh
            one.
        start: Initial spins: ``random``, ``up``, or configurations of +1 and -1, shape (sites,),
            (samples, sites) or (samples, replicas, sites).
        zero_acceptance: Acceptance of flips that cost nothing (a number above 0 and at most 1), by
            default 1 - 2^-6.
        rng_rounds: Philox rounds, 10 or 7.
        device: ``auto`` (a GPU if there is one), ``cpu``, ``cuda`` or ``gpu`` (the same as cuda).
        threads: CPU threads (a whole number from 1 to 4096), all by default. The result does not
            depend on their number.
        on_updates: Called now and then with the number of spin updates since its last call.
        field: Uniform field at each temperature, shape (steps,), or text. It is added to the
            model's own fields and is part of the energies. A single temperature serves all fields.
        target: Search until this value is met, one for all samples or one for each: the cut of a
            MaxCut instance, else the energy with the constant of the problem.
        out: File for the run and its checkpoints; the same call, or ``resume``, completes an
            interrupted run. Without a file the run is kept in memory.
        checkpoint_every: Seconds between checkpoints, at least 0.
        progress: Show a progress bar on the terminal or in the notebook; elsewhere say when kernels
            are compiled.
        measure: Observables of your own, functions by name, as ``ss.temper`` takes them; they
            return floats or whole numbers of the shape (samples, replicas), with further axes if
            you like.
        moves: Moves, as ``ss.temper`` takes them: ``[(move, 10)]``.
        t_start: First temperature in the unit of the couplings, at least 1e-300. By default 1.5
            times the root mean square local field, on graphs where flips at local minima succeed
            with 0.15; with populations the first below infinity.
        t_stop: Last temperature, likewise. By default 0.05 times the same, on graphs where thermal
            energy is 1/64 of the height of minima.
        steps: Number of temperatures, 100 by default (a whole number from 1 to 10^9).
        schedule: Spacing of the temperatures: ``geometric``, the default, or ``linear``.
        populations: Population annealing: divide the replicas of each sample into this number of
            populations (up to 2^21), which are resampled when the temperature changes; 0 for none.
        overlap: Instead of ``steps``, the overlap of the energies of populations at neighbouring
            temperatures, from 0.1 to 0.99. A pre-run places them from infinity to ``t_stop``; each
            resampling then removes a share of 1 - overlap of the replicas.
        quantum: Simulated quantum annealing: turn down a transverse field in slices of imaginary
            time, by default at a constant temperature.
        gamma_start: First transverse field of a quantum anneal in the unit of the couplings, at
            least 1e-300; by default ``t_start`` of an anneal without it.
        gamma_stop: Last transverse field, likewise; by default ``t_stop``.
        slices: Slices in imaginary time, an even number from 2 to 2^20, 32 by default.
        beta: Inverse temperature of a quantum anneal without temperatures, from 1e-100 to 1e+100; a
            slice has the temperature slices / beta. By default slices / (t_start of an anneal
            without it / 3).
        best_states: Keep the lowest state of every replica, not only of every sample.
        solution: File for the lowest states by the labels of the problem, .txt or .json.
        time_limit: Search for this many seconds, at least 0.001, not counting the compiling of
            kernels.
        anneals: Largest number of anneals, each with random numbers of its own (a whole number from
            1 to 2^20); series are those of the first. By default 1, and any number with a target or
            a time limit.
        growing: Begin with a short anneal and double the length of each next one, up to the given
            length. By default True of searches without a length, else False.
        clusters: Cluster moves of Fortuin and Kasteleyn between sweeps: ``sw``, ``wolff`` or
            ``seeded``.
        clusters_every: Sweeps between cluster moves, 10 by default.
        gpus: GPUs that share the work: ``all``, how many, or a list of numbers such as ``0,2``; by
            default one for each process.
        save_configurations: Save all spins after every so many steps of the schedule (up to 10^12),
            a bit a spin; 0 saves none.

    Returns:
        Energies and magnetisations after each temperature, and the lowest states met; for a list of
        models a list of results, the same as of calls with one model each.

    Raises:
        InputError: for bad temperatures, numbers out of range, too little memory, and a file that
            holds another run.
        KeyboardInterrupt: on Ctrl-C; a run with ``out`` is saved first.
    """
    given = dict(locals())
    if isinstance(model, list | tuple):
        return _anneal_each(model, given)  # type: ignore[return-value]  # types tell the call of one model
    given["start"], spins = start_of_call(start, model, replicas)
    if replicas is None and spins is not None and spins.shape[1] > 1:
        given["replicas"] = spins.shape[1]
    result: AnnealResult = run_of_call(Anneal, model, given, spins, temperatures=check_temperatures)
    return result


def _anneal_each(models: Sequence[Any], given: dict[str, Any]) -> list[AnnealResult]:
    """Anneal several models and return the results, which have the bits of calls with one model each.

    Model k, from 0 on, has the seed ``seed + k``, modulo 2^64. Large models are annealed side by side on the CPU, each
    on one thread; small ones, and those on a GPU, one after the other.
    """
    if given["out"] is not None or given["solution"] is not None:
        raise InputError("out and solution name a file for one model: leave them out, and save each result")
    on_cpu = resolve_device(given["device"] or RunSettings.device, given["gpus"]) == "cpu"
    side_by_side = on_cpu and _are_worth_threads(models, given["replicas"], given["sweeps"])
    pool = Threads(given["threads"] if side_by_side else 1)
    if side_by_side:
        given["threads"] = 1
    results: list[Any] = [None] * len(models)

    def anneal_one(k: int, seed: Any) -> None:
        try:
            results[k] = anneal(**given | {"model": models[k], "seed": seed})
        except InputError as error:
            raise InputError(f"model {k} of the list: {error}") from error

    seed = given["seed"]
    first = seed if seed is None else settings_of(RunSettings)["seed"].typed(seed)
    # threads of small models would wait for each other in Python
    pool.run(partial(anneal_one, k, seed) for k, seed in enumerate(seeds_of(first, len(models))))
    return results


def _are_worth_threads(models: Sequence[Any], replicas: int | None, sweeps: int | None) -> bool:
    """Return True if a temperature of each model takes much longer in compiled code than in Python."""
    sizes = [getattr(model, "sites", 0) * getattr(model, "samples", 0) for model in models]
    work = min(sizes, default=0) * (replicas or LANES) * (sweeps or AnnealSettings.sweeps)
    return len(models) > 1 and work >= WORTH_A_THREAD * LANES
