"""A first-order transition from the density of states: a square lattice of pairs of opposed spins.

    python examples/first_order.py            some minutes
    python examples/first_order.py --short    the form that the tests run

Both spins of a place are joined to both spins of the four neighbouring places by J = 1, and to each other by J = -3.25.
The sum of a pair is the spin of a Blume-Capel model whose state 0 is two-fold. When it is cooled, the pairs align all
at once. Walkers visit all energies evenly; g(E) then gives the distribution of energies at any temperature, here where
both phases have equal weight. Its valley deepens with the size.

What to learn here: own graphs, multicanonical runs, latent heats and interfaces.
"""

import sys

import matplotlib.style
import numpy as np
from matplotlib.figure import Figure

import spinsim as ss

matplotlib.style.use("spinsim.paper")  # one column of a paper

short = "--short" in sys.argv
runs = {3: 2000, 4: 4000} if short else {6: 40_000, 8: 80_000, 10: 160_000}  # sweeps of each stage, by side


def pairs(side: int) -> ss.Ising:
    """Return the model: sites 0 to N - 1 are the first spins of all places, N to 2 N - 1 the second ones."""
    lattice = ss.square(side)
    places, bonds = np.arange(lattice.sites), lattice.edges()
    between = np.concatenate([bonds + shift for shift in lattice.sites * np.array([[0, 0], [0, 1], [1, 0], [1, 1]])])
    within = np.column_stack([places, places + lattice.sites])
    couplings = np.concatenate([np.ones(len(between)), np.full(len(within), -3.25)])
    return ss.Ising(ss.Graph(2 * lattice.sites, np.concatenate([between, within])), couplings, name=f"pairs-{side}")


figure = Figure()
axes = figure.subplots()
print("  L         T     latent heat     barrier   round trips")
for side, sweeps in runs.items():
    run = ss.multicanonical(pairs(side), sweeps, sweeps, progress=True)
    density = run.density
    found = density.transition
    if not found:
        print(f"{side:3d}   no two phases")
        continue
    names = ("transition_temperature", "latent_heat_per_site", "barrier")
    numbers = "   ".join(f"{found[name]:.4f} +- {found[name + '_error']:.4f}" for name in names)
    print(f"{side:3d}   {numbers}   {run.round_trips.sum():4d}")
    share = density.probability(found["transition_temperature"])[0]
    coarse, levels = np.histogram(density.energy / density.model.sites, 25, (-2.5, 0.0), weights=share, density=True)
    axes.semilogy(levels[:-1] + 0.05, coarse, label=f"$L = {side}$")  # neighbouring levels are added up
axes.set(xlabel="energy per spin", ylabel="probability density", xlim=(-2.5, -0.8), ylim=(1e-2, 10))
axes.legend()
if "--figure" in sys.argv:
    figure.savefig(sys.argv[sys.argv.index("--figure") + 1])
