"""Ground states of the two-dimensional +-J glass, and their energy per site in the limit of large lattices.

    python examples/ground_states.py                    L = 6 to 12, a minute
    python examples/ground_states.py --sizes 20,30,40,60,80,100 --samples 100 --sweeps 50000   a GPU, if there is one
    python examples/ground_states.py --short            the form that the tests run

Lowest energies per site of periodic square lattices with +-J couplings against L^-2, for L = 20 to 100 (second
command). The fitted line leads to the limit e0 of large lattices; the horizontal line is the published limit
-1.401938(2) (C. K. Thomas, A. A. Middleton, Phys. Rev. B 76, 220406 (2007)). C. De Simone et al., J. Stat. Phys. 84,
1363 (1996), have e0 = -1.4015(8). Finite periodic lattices approach e0 faster than L^-2; a line in L^-2 is fitted.

Each size is tempered twice with different random numbers and Houdayer moves. If both runs find the same lowest energy
of a sample, it is hardly ever too high. Samples differ most in their share of frustrated plaquettes, 1/2 on average.
Lowest energies are therefore regressed on this share and taken at 1/2, which removes more than half of their variance.

What to learn here: lowest energies of a run, errors from the scatter of samples, and a control variate.
"""

import sys

import matplotlib.style
import numpy as np
from matplotlib.figure import Figure

import spinsim as ss

matplotlib.style.use("spinsim.paper")  # one column of a paper
PUBLISHED = -1.401938


def option(name: str, otherwise: str) -> str:
    """Value after a flag on the command line, or ``otherwise``."""
    return sys.argv[sys.argv.index(name) + 1] if name in sys.argv else otherwise


short = "--short" in sys.argv
sizes = [int(side) for side in option("--sizes", "4,6" if short else "6,8,12").split(",")]
samples, sweeps = (
    int(option("--samples", "16" if short else "128")),
    int(option("--sweeps", "300" if short else "2000")),
)


def lowest_energies(model: ss.Ising, side: int, seed: int) -> np.ndarray:
    """Lowest energy per site of each sample, (samples,)."""
    ladder = f"0.2:1.6:{32 * -(-side // 40)}"  # energies scatter as L, so neighbours must be closer
    run = ss.temper(
        model, ladder, sweeps=sweeps, replicas=4, houdayer="10", measure_every=max(10, sweeps // 200),
        correlations=False, seed=seed,
    )  # fmt: skip
    lowest: np.ndarray = np.asarray(run.best_energy).min(axis=1)
    return lowest / side**2


def frustrated(model: ss.Ising, side: int) -> np.ndarray:
    """Share of plaquettes with a negative product of couplings in each sample, (samples,)."""
    x, y = np.moveaxis(model.couplings.reshape(-1, side, side, 2), -1, 0)  # along each axis, by row and column
    negative: np.ndarray = x * y * np.roll(x, -1, axis=1) * np.roll(y, -1, axis=2) < 0
    return np.asarray(negative.mean(axis=(1, 2)))


print(f"+-J square lattices, {samples} samples of the largest, {sweeps} sweeps, twice")
print("    L  samples   both runs agree   lowest energy per site    at 1/2 frustrated")
means, errors = [], []
for side in sizes:
    of_side = samples * sizes[-1] ** 2 // side**2  # the scatter of samples falls as 1 / L
    model = ss.EdwardsAnderson(ss.square(side), samples=of_side, seed=side)
    one, other = (lowest_energies(model, side, seed) for seed in (1, 2))
    lowest, share = np.minimum(one, other), frustrated(model, side)
    slope, at_half = np.polyfit(share - 0.5, lowest, 1)
    scatter = lowest - slope * (share - 0.5)
    means.append(at_half)
    errors.append(scatter.std(ddof=2) / np.sqrt(of_side))
    plain = f"{lowest.mean():.5f} +- {lowest.std(ddof=1) / np.sqrt(of_side):.5f}"
    agree = f"{np.sum(one == other)} ({np.mean(one == other):.1%})"
    print(f"{side:5d} {of_side:8d} {agree:>17s}   {plain}   {at_half:.5f} +- {errors[-1]:.5f}", flush=True)

x = np.array(sizes, float) ** -2
(slope, limit), covariance = np.polyfit(x, means, 1, w=1 / np.array(errors), cov="unscaled")
print(f"e0 = {limit:.5f} +- {np.sqrt(covariance[1, 1]):.5f} for L to infinity")

if "--figure" in sys.argv:
    figure = Figure()
    axes = figure.subplots()
    line = np.array([0, x.max()])
    axes.axhline(PUBLISHED, color="0.5", linestyle=":", label=r"published, $L \to \infty$")
    axes.errorbar(1000 * x, means, errors, fmt="o", color="C0", label=r"2D $\pm J$ glass")
    axes.plot(1000 * line, limit + slope * line, color="C0", label="fitted line")
    axes.set(xlabel="$10^3 L^{-2}$", ylabel="lowest energy per site ($J$)")
    axes.legend(loc="upper left")
    figure.savefig(option("--figure", ""))
