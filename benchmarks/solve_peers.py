"""Time to the best known value of instances with spinsim and with other programs, on the same machine in the same run.

    python -m pip install '.[bench]' && python benchmarks/solve_peers.py FILES... sk400 dense500 --out results.json

scripts/tables.py makes the tables of docs/benchmarks/optimisation.md from docs/benchmarks/results/solve-peers.json.

Each program is called in a process that has called it for a second before, until it has met the target, with fresh
random numbers; the median over seeds counts. spinsim has no setting but the target. The others get their best: their
own temperatures and those of spinsim, single reads again and again and numbers of reads that double, and sweeps by
factors of two are all tried on seeds of their own, and the fastest setting is used; that search for a setting costs
them nothing. Reading the instance and making the other programs' models of it are not timed, unless --fresh starts a
new process for each. Programs are timed in turns, each on one core; spinsim also on two.
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import json
import math
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from report import write

import spinsim as ss
from spinsim.benchmark.jobs import target_of
from spinsim.model.targets import value_name
from spinsim.sampling.temperatures import automatic_temperatures

PACKAGES = "dwave-samplers", "openjij", "simulated-bifurcation"
TUNING_SEEDS = (101, 102, 103)
SWEEPS = (1000, 500, 250, 125, 62, 31, 16, 2000, 4000, 8000, 16000)
MOST_READS = 1024
SLACK = 1.5  # how much longer than the best setting so far a setting may take before it is given up
FRESH = str(Path(__file__).with_name("fresh_process.py"))
IN_NEW_PROCESSES = ("spinsim anneal", "dwave-samplers", "OpenJij")
Setting = dict[str, Any]
Times = dict[str, list[float]]
Attempt = Callable[[Setting, int, float], bool]


class Problem(NamedTuple):
    """An instance: where it came from, its model, the target in its own terms, and the Ising energy that meets it."""

    name: str
    source: str
    model: ss.Ising
    target: float
    energy: float


class Program(NamedTuple):
    """A program: whether it met a target with a setting, a seed and a limit in seconds, and the settings to try."""

    name: str
    attempt: Attempt
    settings: list[Setting]


def sk_model(sites: int) -> ss.Ising:
    """The Sherrington-Kirkpatrick model: all pairs coupled, Gaussian of variance 1 / sites."""
    draw = np.random.default_rng(sites).normal(size=(sites, sites)) / math.sqrt(sites)
    return ss.Ising.from_matrix(np.triu(draw, 1))


def dense_model(sites: int) -> ss.Ising:
    """All pairs coupled by +1 or -1."""
    draw = np.random.default_rng(sites).choice([-1.0, 1.0], size=(sites, sites))
    return ss.Ising.from_matrix(np.triu(draw, 1))


MADE: dict[str, tuple[Callable[[], ss.Ising], float]] = {
    "sk400": (lambda: sk_model(400), -295.7565438742449),
    "dense500": (lambda: dense_model(500), -8450.0),
}
"""Dense models by seed, and the lowest energies known: long anneals by spinsim met them with most of their replicas."""


def problem_of(name: str, target: float | None) -> Problem:
    """The problem of a file, or of a name among ``MADE``."""
    if name in MADE:
        make, known = MADE[name]
        model, wanted = make(), known if target is None else target
    else:
        model = ss.read_instance(name)
        wanted = target_of(Path(name), model, target)
    energy = model.maxcut_weight - 2 * wanted if model.maxcut_weight is not None else wanted - model.offset
    return Problem(Path(name).stem if name not in MADE else name, name, model, wanted, energy)


def until_met(problem: Problem, setting: Setting, seed: int, limit: float, call: Callable[[int, int], float]) -> bool:
    """Call a sampler, with more reads each time if the setting doubles them, until its energy meets the target."""
    began, reads = time.perf_counter(), 1
    slack = 1e-9 * abs(problem.energy)  # sums of other programs are rounded
    for number in itertools.count():
        if call(reads, 100_000 * seed + number) <= problem.energy + slack:
            return True
        if time.perf_counter() - began > limit:
            return False
        reads = min(2 * reads, MOST_READS) if setting["doubling"] else 1
    return False


def spinsim_programs(problem: Problem, threads: int) -> Iterator[Program]:
    """Our own, with defaults: anneals that grow, tempering, and the portfolio, without exact solutions."""
    given: Setting = {"target": problem.target, "threads": threads}
    cores = "" if threads == 1 else f", {threads} cores"

    def anneals(setting: Setting, seed: int, limit: float) -> bool:
        found = ss.anneal(problem.model, time_limit=limit, seed=seed, **given).anneals
        return found is not None and found.is_met

    def tempering(setting: Setting, seed: int, limit: float) -> bool:
        found = ss.temper(problem.model, time_limit=limit, seed=seed, **given).search
        return found is not None and found.is_met

    def portfolio(setting: Setting, seed: int, limit: float) -> bool:
        return ss.solve(problem.model, limit, seed=seed, fix=False, **given).search.is_met

    yield Program(f"spinsim anneal{cores}", anneals, [{}])
    yield Program(f"spinsim temper{cores}", tempering, [{}])
    yield Program(f"spinsim solve{cores}", portfolio, [{}])


def annealing_settings() -> list[Setting]:
    """Settings of the simulated annealing of other programs that are tried."""
    return [
        {"own_range": own, "doubling": doubling, "sweeps": sweeps}
        for own in (False, True)  # what meets the target first bounds how long the rest is tried
        for doubling in (False, True)
        for sweeps in SWEEPS
    ]


def dwave_program(problem: Problem) -> Program:
    """Simulated annealing by dwave-samplers."""
    from dwave.samplers import SimulatedAnnealingSampler

    sampler, bqm = SimulatedAnnealingSampler(), problem.model.to_bqm()
    ends = [1 / temperature for temperature in automatic_temperatures(problem.model)[:2]]

    def attempt(setting: Setting, seed: int, limit: float) -> bool:
        ranged = {} if setting["own_range"] else {"beta_range": ends}

        def call(reads: int, number: int) -> float:
            found = sampler.sample(bqm, num_reads=reads, num_sweeps=setting["sweeps"], seed=number, **ranged)
            return float(found.record.energy.min()) - problem.model.offset

        return until_met(problem, setting, seed, limit, call)

    return Program("dwave-samplers", attempt, annealing_settings())


def tabu_program(problem: Problem) -> Program:
    """Tabu search by dwave-samplers, which stops at a threshold by itself.

    The threshold is compared without the constant that the problem has in binary variables.
    """
    from dwave.samplers import TabuSampler

    sampler, bqm = TabuSampler(), problem.model.to_bqm()
    constant = bqm.change_vartype("BINARY", inplace=False).offset
    wanted = problem.energy + problem.model.offset

    def attempt(setting: Setting, seed: int, limit: float) -> bool:
        threshold, milliseconds = wanted - constant + 1e-9 * abs(wanted), max(1, int(1e3 * limit))
        found = sampler.sample(bqm, timeout=milliseconds, energy_threshold=threshold, seed=seed)
        return float(found.record.energy.min()) <= wanted + 1e-9 * abs(wanted)

    return Program("dwave tabu", attempt, [{}])


def openjij_program(problem: Problem) -> Program:
    """Simulated annealing by OpenJij; a seed would make all reads of a call alike, so that it gets none."""
    import openjij

    sampler, bqm = openjij.SASampler(), problem.model.to_bqm()
    first, last = (1 / temperature for temperature in automatic_temperatures(problem.model)[:2])

    def attempt(setting: Setting, seed: int, limit: float) -> bool:
        ranged = {} if setting["own_range"] else {"beta_min": first, "beta_max": last}

        def call(reads: int, number: int) -> float:
            found = sampler.sample(bqm, num_reads=reads, num_sweeps=setting["sweeps"], **ranged)
            return float(found.record.energy.min()) - problem.model.offset

        return until_met(problem, setting, seed, limit, call)

    return Program("OpenJij", attempt, annealing_settings())


def bifurcation_program(problem: Problem) -> Program:
    """The package simulated-bifurcation, whose agents are what reads are to others."""
    import simulated_bifurcation
    import torch

    torch.set_num_threads(1)
    couplings = np.zeros((problem.model.sites,) * 2)
    couplings[tuple(problem.model.graph.edges.T)] = problem.model.couplings[0]
    matrix = torch.tensor(-couplings, dtype=torch.float32)

    def attempt(setting: Setting, seed: int, limit: float) -> bool:
        torch.manual_seed(seed)

        def call(reads: int, number: int) -> float:
            spins, _ = simulated_bifurcation.minimize(
                matrix, domain="spin", agents=setting["agents"], max_steps=setting["sweeps"], mode=setting["mode"],
                verbose=False, early_stopping=False,
            )  # fmt: skip
            return float(energies(problem.model, np.asarray(spins, np.float64)))

        return until_met(problem, setting, seed, limit, call)

    settings = [
        {"mode": mode, "agents": agents, "sweeps": steps, "doubling": False}
        for mode in ("ballistic", "discrete")
        for agents in (128, 32)
        for steps in (1000, 300, 100, 3000, 10000)
    ]
    return Program("simulated-bifurcation", attempt, settings)


def energies(model: ss.Ising, spins: Any) -> float:
    """The energy of a configuration (sites,), without the constant."""
    i, j = model.graph.edges.T
    return -float(model.couplings[0] @ (spins[i] * spins[j])) - float(model.fields[0] @ spins)


def programs_of(problem: Problem, cores: int) -> Iterator[Program]:
    """The programs that are installed and make sense for a problem."""
    yield from spinsim_programs(problem, 1)
    if cores > 1:
        yield from spinsim_programs(problem, 2)
    if importlib.util.find_spec("dwave") is not None:
        yield dwave_program(problem)
        yield tabu_program(problem)
    if importlib.util.find_spec("openjij") is not None:
        yield openjij_program(problem)
    dense = 4 * problem.model.bonds > problem.model.sites * (problem.model.sites - 1)
    if dense and importlib.util.find_spec("simulated_bifurcation") is not None:
        yield bifurcation_program(problem)


def seconds_of(program: Program, setting: Setting, seed: int, limit: float) -> float:
    """Seconds until a target was met, infinite where it was not."""
    began = time.perf_counter()
    met = program.attempt(setting, seed, limit)
    return time.perf_counter() - began if met else math.inf


def tuned(program: Program, limit: float, tries: int | None) -> Setting:
    """The setting that met the target first, in the median of seeds that are used for nothing else."""
    if len(program.settings) == 1:
        return program.settings[0]
    best, least = program.settings[0], math.inf
    for setting in program.settings[:tries]:
        allowed = min(limit, SLACK * least)
        times: list[float] = []
        for seed in TUNING_SEEDS:
            times.append(seconds_of(program, setting, seed, allowed))
            if sum(map(math.isinf, times)) * 2 > len(TUNING_SEEDS):
                break
        if len(times) == len(TUNING_SEEDS) and statistics.median(times) < least:
            best, least = setting, statistics.median(times)
    return best


def call_for_a_while(program: Program, setting: Setting) -> None:
    """Call a program for a second, as Python runs what it has run often faster, and others were called for tuning."""
    began = time.perf_counter()
    while time.perf_counter() - began < 1.0:
        seconds_of(program, setting, TUNING_SEEDS[0], 1.0)


def on_cores(cores: list[int], number: int) -> None:
    """Keep this process on so many of the cores that it may use, where the system can do that."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, cores[:number])


def solve(problem: Problem, asked: argparse.Namespace) -> Times:
    """Seconds of each program for each seed; in new processes if ``asked.fresh``."""
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else [0, 1]
    programs = [each for each in programs_of(problem, len(cores)) if not asked.fresh or each.name in IN_NEW_PROCESSES]
    settings, found = {}, {program.name: list[float]() for program in programs}
    for program in programs:
        on_cores(cores, 1)
        seconds_of(program, program.settings[0], TUNING_SEEDS[0], 1.0)  # what the first call of a process does
        settings[program.name] = tuned(program, asked.limit, asked.tries)
        call_for_a_while(program, settings[program.name])
        print(f"{problem.name}: {program.name} {settings[program.name]}", file=sys.stderr, flush=True)
    for seed in range(1, asked.seeds + 1):
        for program in programs:
            on_cores(cores, 2 if program.name.endswith("2 cores") else 1)
            setting = settings[program.name]
            timed = partial(in_new_process, problem) if asked.fresh else seconds_of
            found[program.name].append(timed(program, setting, seed, asked.limit))
    on_cores(cores, len(cores))
    medians = {name: round(statistics.median(times), 5) for name, times in found.items()}
    print(f"{problem.name}: seconds {medians}", file=sys.stderr, flush=True)
    return found


def in_new_process(problem: Problem, program: Program, setting: Setting, seed: int, limit: float) -> float:
    """Seconds of a process that imports what it needs, reads the instance and does the same."""
    ends = [1 / temperature for temperature in automatic_temperatures(problem.model)[:2]]
    asked = [problem.source, str(problem.target), json.dumps(setting | {"range": ends}), str(seed)]
    began = time.perf_counter()
    try:
        subprocess.run([sys.executable, FRESH, program.name, *asked], check=True, timeout=limit)  # noqa: S603
    except subprocess.TimeoutExpired:
        return math.inf
    return time.perf_counter() - began


def as_rows(results: list[tuple[Problem, Times]]) -> list[dict[str, Any]]:
    """The medians, as the results file has them; infinite times are null."""
    rows = []
    for problem, found in results:
        medians = {program: statistics.median(times) for program, times in found.items()}
        finite = {program: one if math.isfinite(one) else None for program, one in medians.items()}
        about = {"instance": problem.name, "sites": problem.model.sites, "value": value_name(problem.model)}
        rows.append(about | {"target": problem.target, "seconds": finite})
    return rows


def main() -> None:
    """Time everything and print the medians as JSON; the settings used go to standard error."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("instances", nargs="+", help=f"files, or {', '.join(MADE)}")
    parser.add_argument("--target", type=float, help="cut or energy, where no best value is known")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--limit", type=float, default=60.0, help="seconds after which a program gives up")
    parser.add_argument("--tries", type=int, help="settings of other programs that are tried, by default all")
    parser.add_argument("--fresh", action="store_true", help="a new process for each time")
    parser.add_argument("--out", type=Path, help="file for the results, by default standard output")
    given = parser.parse_args()
    problems = [problem_of(name, given.target) for name in given.instances]
    results = [(problem, solve(problem, given)) for problem in problems]
    versions = {
        name: version(name) for name in PACKAGES if importlib.util.find_spec(name.partition("-")[0]) is not None
    }
    words = (Path(word).name if Path(word).is_file() else word for word in sys.argv[1:])
    command = " ".join(["python", "benchmarks/solve_peers.py", *words])
    write(given.out, command, "cpu", as_rows(results), limit=given.limit, versions=versions)


if __name__ == "__main__":
    main()
