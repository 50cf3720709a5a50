"""Small problems with the samplers of spinsim and dwave-samplers: milliseconds a call, side by side in one process.

    python -m pip install '.[bench]' && python benchmarks/small.py

Both make as many reads and sweeps between the same inverse temperatures, on one thread, and their calls take turns.
"call" is the whole call, from the model of dimod to the SampleSet; "anneal" leaves out what comes before and after the
sweeps. Of dwave-samplers that is its compiled function alone. "again" calls with the same problem, "new" with another
one each time. Times are least ones, of the processor and of the clock.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Callable
from typing import Any

import dimod
import numpy as np
from dwave.samplers import SimulatedAnnealingSampler
from dwave.samplers.sa import sampler as of_dwave

import spinsim.dimod

DEGREE = 6


def problem(sites: int, dense: bool, real: bool, seed: int) -> dimod.BinaryQuadraticModel:
    """A random regular graph or a complete one, with couplings +-1 or normal ones."""
    rng = np.random.default_rng(seed)
    if dense:
        pairs = list(itertools.combinations(range(sites), 2))
    else:
        steps = range(1, DEGREE // 2 + 1)
        order = rng.permutation(sites).tolist()
        pairs = [(order[i], order[(i + step) % sites]) for i in range(sites) for step in steps]
    values = rng.normal(size=len(pairs)) if real else rng.choice([-1.0, 1.0], len(pairs))
    found: dimod.BinaryQuadraticModel = dimod.BinaryQuadraticModel.from_ising(
        {}, dict(zip(pairs, values.tolist(), strict=True))
    )
    return found


class Stopwatch:
    """Least times of a function that another one calls, while it stands in for it."""

    def __init__(self, module: Any, name: str) -> None:
        self._function, self.took = getattr(module, name), 0.0
        setattr(module, name, self)

    def __call__(self, *args: Any, **others: Any) -> Any:
        """Call the function."""
        began = time.process_time()
        found = self._function(*args, **others)
        self.took = time.process_time() - began
        return found


def calling(sampler: Any, problems: list[dimod.BinaryQuadraticModel], options: dict[str, Any]) -> Callable[[], Any]:
    """A call that samples the next problem each time, the first again after the last."""
    turn = itertools.cycle(problems)
    return lambda: sampler.sample(next(turn), **options)


def least(calls: list[Callable[[], Any]], watches: list[Stopwatch], budget: float) -> list[list[float]]:
    """Milliseconds of calls that take turns: of the processor, of the clock, and of what is watched."""
    found = [[np.inf] * 3 for _ in calls]
    for call in calls:
        call()
    end, rounds = time.perf_counter() + budget, 0
    while rounds < 3 or (time.perf_counter() < end and rounds < 200):
        rounds += 1
        for times, call, watch in zip(found, calls, watches, strict=True):
            began, clock = time.process_time(), time.perf_counter()
            call()
            took = time.process_time() - began, time.perf_counter() - clock, watch.took
            times[:] = [min(1e3 * one, before) for one, before in zip(took, times, strict=True)]
    return found


def main() -> None:
    """Time everything and print the table."""
    parser = argparse.ArgumentParser(description="Small problems with spinsim and dwave-samplers.")
    parser.add_argument("--seconds", type=float, default=1.0, help="Of each line, about.")
    budget = parser.parse_args().seconds
    ours, theirs = spinsim.dimod.SpinsimSampler("cpu", threads=1), SimulatedAnnealingSampler()
    watches = [Stopwatch(spinsim.dimod, "anneal_reads"), Stopwatch(of_dwave, "simulated_annealing")]
    print(
        f"{'problem':29}{'':6}{'call: spinsim':>14}{'dwave':>9}{'ratio':>7}{'of clock':>9}"
        f"{'anneal: spinsim':>17}{'dwave':>9}{'ratio':>7}"
    )
    kinds = itertools.product((20, 100, 500), (False, True), (False, True), (1, 20), (100, 1000))
    for sites, dense, real, reads, sweeps in kinds:
        problems = [problem(sites, dense, real, seed) for seed in range(8)]
        scale = np.sqrt(sites - 1 if dense else DEGREE)
        options = {"num_reads": reads, "num_sweeps": sweeps, "beta_range": [0.2 / scale, 10 / scale], "seed": 3}
        named = f"{sites:4d} {'dense' if dense else 'sparse'} {'real' if real else '+-1'} {reads} x {sweeps}"
        for name, chosen in (("again", problems[:1]), ("new", problems)):
            calls = [calling(sampler, chosen, options) for sampler in (ours, theirs)]
            (cpu, clock, anneal), (their_cpu, their_clock, their_anneal) = least(calls, watches, budget / 2)
            print(
                f"{named:29}{name:6}{cpu:14.2f}{their_cpu:9.2f}{cpu / their_cpu:7.2f}{clock / their_clock:9.2f}"
                f"{anneal:17.2f}{their_anneal:9.2f}{anneal / their_anneal:7.2f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
