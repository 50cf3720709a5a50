"""The ground state of a three-dimensional +-J spin glass by simulated annealing.

    python examples/spin_glass.py            a few seconds
    python examples/spin_glass.py --short    the form that the tests run

Lowest state of one sample of 6^3 spins that 128 annealed replicas found, layer by layer: +1 orange, -1 blue. No order
is visible.

What to learn here: disorder samples, the lowest state met, and how to tell whether it is likely the ground state.
"""

import sys

import matplotlib.style
import numpy as np
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure

import spinsim as ss

matplotlib.style.use("spinsim.paper")  # one column of a paper
short = "--short" in sys.argv
side, samples, sweeps = (4, 2, 20) if short else (6, 4, 500)

# Couplings +1 or -1 at random: bonds cannot all be satisfied, and the energy has very many valleys.
# The disorder has a seed of its own: the same samples can be annealed again with other random numbers.
model = ss.EdwardsAnderson(ss.cubic(side), samples=samples, seed=2026)

# 128 replicas of every sample cool side by side, one bit per spin.
result = ss.anneal(model, np.geomspace(3.0, 0.2, 100), sweeps=sweeps, replicas=128, seed=1)

print(f"{samples} samples of the {side}^3 +-J spin glass, 128 replicas each")
for k in range(samples):
    lowest = result.best_energy[k].min()
    hits = int((result.best_energy[k] == lowest).sum())
    print(f"sample {k}: lowest energy {lowest:.0f} ({lowest / model.sites:.4f} per site), met by {hits} replicas")

    # The state itself is kept: its energy can be checked against the definition, bond by bond.
    spins = result.best_spins[k].astype(int)
    i, j = model.graph.edges.T
    if -(model.couplings[k] * spins[i] * spins[j]).sum() != lowest:
        raise RuntimeError("the stored state does not have the stored energy")

# If many replicas end at the lowest energy, it is likely the ground state; if only one does, use more sweeps.
# For large sides the published value is about -1.787 per site.

figure = Figure(figsize=(3.4, 0.4 + 3.4 * -(-side // 3) / 3))
layers = result.best_spins[0].reshape(side, side, side)
panels = figure.subplots(-(-side // 3), 3).flat
for z, panel in enumerate(panels):
    if z == side:
        panel.remove()
        break
    panel.imshow(layers[z], vmin=-1, vmax=1, cmap=ListedColormap(["#0072B2", "#E69F00"]))
    panel.set(xticks=[], yticks=[], title=f"$z = {z}$")
if "--figure" in sys.argv:
    figure.savefig(sys.argv[sys.argv.index("--figure") + 1])
