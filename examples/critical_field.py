"""The critical transverse field of the square lattice, from crossings of xi / L at infinitely many slices.

    python examples/critical_field.py             sizes 4 and 8, some minutes on a laptop
    python examples/critical_field.py --full      sizes 4, 8 and 16, two minutes on a GPU
    python examples/critical_field.py --short     the form that the tests run

(a) xi / L of the transverse-field Ising model with L = 4, 8 and 16 against the field Gamma, at the finest time step
Delta tau (``--full``). (b) Fields at which curves of two sizes cross, for xi / L and the Binder cumulant U, against
Delta tau^2. Straight lines extrapolate them to Delta tau = 0. Dotted: Gamma = 3.04438 J, below which the ground state
orders: H. W. J. Bloete, Y. Deng, Phys. Rev. E 66, 066110 (2002). The inverse temperature beta = L / 2 J grows with the
size, so that all sizes have the same shape in space and time.

What to learn here: a ladder in the transverse field, a clean model that fills a run as several equal samples, and
extrapolation of crossings to continuous time.
"""

import itertools
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import matplotlib.style
import numpy as np
from matplotlib.figure import Figure

import spinsim as ss

matplotlib.style.use("spinsim.paper")  # one column of a paper
CRITICAL = 3.04438
GAMMA = np.linspace(2.8, 3.3, 16)


class Limit(NamedTuple):
    """Crossings of two sizes at each time step, and at Delta tau = 0."""

    values: np.ndarray
    errors: np.ndarray
    value: float
    error: float
    slope: float
    chi2: float


Runs = dict[tuple[int, int], ss.QuantumResult]
Limits = dict[tuple[str, int, int], Limit]


def simulate(sides: list[int], steps: list[int], samples: int, sweeps: int, every: int, thermalize: int) -> Runs:
    """Run every size at every time step; ``steps`` are the numbers of slices for each unit of beta."""
    # The model is clean, but is run as several equal samples: they fill the device, and errors from their scatter need
    # no autocorrelation time. Eight copies of sixteen fields are the 128 replicas of a word.
    runs = {}
    for side, step in itertools.product(sides, steps):
        run = ss.quantum(
            ss.Ising(ss.square(side), np.ones((samples, 2 * side**2), np.int8)),
            gamma=GAMMA,
            beta=side / 2,
            slices=step * side // 2,
            sweeps=sweeps,
            thermalize=thermalize,
            measure_every=every,
            swap_every=5,
            replicas=8,
            correlation_times=1,
            seed=1000 * side + step,
        )
        runs[side, step] = run
        rate = run.swap_rate
        print(f"L = {side}, {run.slices} slices: exchanges {rate.min():.2f} to {rate.max():.2f}", flush=True)
    return runs


def find_limits(runs: Runs, sides: list[int], steps: list[int]) -> Limits:
    """Find the crossings of two sizes at each time step, and their limit at step 0 by a line in its square."""
    crossings: dict[tuple[str, int, int], list[tuple[float, float]]] = {}
    for (small, large), step in itertools.product(itertools.pairwise(sides), steps):
        for comparison in ss.compare_sizes([runs[small, step], runs[large, step]], "magnetization", CRITICAL):
            found = comparison.crossings[0].crossing
            crossings.setdefault((comparison.name, small, large), []).append((found.value, found.error))
    squares = 1 / np.array(steps, float) ** 2
    limits = {}
    for (name, small, large), pairs in crossings.items():
        values, errors = np.array(pairs).T
        if not np.isfinite(values).all():
            print(f"{name} of L = {small} and {large}: some curves do not cross")
            continue
        line = np.stack([np.ones_like(squares), squares], axis=1) / errors[:, None]
        spread = np.linalg.inv(line.T @ line)
        value, slope = spread @ line.T @ (values / errors)
        chi2, freedom = (((values - value - slope * squares) / errors) ** 2).sum(), len(steps) - 2
        error = np.sqrt(spread[0, 0] * max(1, chi2 / freedom))  # wider where terms of Delta tau^4 show
        limits[name, small, large] = Limit(values, errors, value, error, slope, chi2)
        each = ", ".join(f"{v:.4f}({e:.4f})" for v, e in pairs)
        off = f"{(value - CRITICAL) / error:+.1f} errors from {CRITICAL}"
        print(f"{name} of L = {small} and {large}: Gamma = {each}")
        print(f"    at Delta tau = 0: {value:.4f} +- {error:.4f}, {off}, chi^2 {chi2:.1f} of {freedom}")
    return limits


def draw(runs: Runs, limits: Limits, sides: list[int], steps: list[int]) -> Figure:
    """Draw the curves at the finest step, and the crossings against the squared step."""
    shown_as = {"correlation_length_over_L": r"$\xi/L$", "binder_cumulant": "$U$"}
    squares = 1 / np.array(steps, float) ** 2
    figure = Figure(figsize=(3.4, 4.8))
    upper, lower = figure.subplots(2, 1)
    for side, marker in zip(sides, "os^", strict=False):
        table = ss.table(runs[side, steps[-1]], columns=["correlation_length_over_L"])
        values = table.correlation_length_over_L, table.correlation_length_over_L_error
        upper.errorbar(GAMMA, *values, label=f"$L = {side}$", marker=marker)
    shown = [key for key in limits if key[0] in shown_as]
    for number, ((name, small, large), marker) in enumerate(zip(shown, "oDvP", strict=False)):
        found, colour = limits[name, small, large], f"C{number}"
        x, y, bars = [0, *squares], [found.value, *found.values], [found.error, *found.errors]
        label = f"{shown_as[name]} of {small} and {large}"
        lower.errorbar(x, y, bars, label=label, color=colour, fmt=marker, mfc="none")
        lower.plot([0, squares[0]], [found.value, found.value + found.slope * squares[0]], color=colour)
    upper.axvline(CRITICAL, color="0.5", linestyle=":", label=r"published $\Gamma_c$")
    lower.axhline(CRITICAL, color="0.5", linestyle=":", label=r"published $\Gamma_c$")
    upper.set(xlabel=r"transverse field $\Gamma$ ($J$)", ylabel=rf"$\xi/L$ at $J\Delta\tau=1/{steps[-1]}$")
    lower.set(xlabel=r"$(J\Delta\tau)^2$", ylabel=r"$\Gamma$ where curves cross ($J$)")
    for panel, letter in ((upper, "a"), (lower, "b")):
        panel.legend()
        panel.set_title(f"({letter})", loc="left")
    return figure


if __name__ == "__main__":
    sides, steps, samples, sweeps, every = [4, 8], [8, 12, 16], 16, 4000, 10
    if "--short" in sys.argv:
        sides, steps, samples, sweeps = [2, 4], [4, 6, 8], 10, 400
    elif "--full" in sys.argv:
        sides, steps, samples, sweeps, every = [4, 8, 16], [8, 12, 16, 24], 32, 60_000, 200
    runs = simulate(sides, steps, samples, sweeps, every, thermalize=sweeps // 10)
    path = Path(tempfile.mkdtemp(prefix="spinsim-")) / "critical_field.png"
    if "--figure" in sys.argv:
        path = Path(sys.argv[sys.argv.index("--figure") + 1])
    draw(runs, find_limits(runs, sides, steps), sides, steps).savefig(path)
    print(f"Figure in {path}")
