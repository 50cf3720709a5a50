"""A MaxCut instance of the G-set: G11, with the best known cut 564.

    python examples/maxcut.py            about a second
    python examples/maxcut.py --short    the form that the tests run

Best cuts of 128 replicas of G11 after an anneal of 10,000 sweeps. One replica in eight finds the best known cut.

What to learn here: reading an instance file, temperatures in the instance's own units, cuts and partitions. The same
from the shell: spinsim anneal examples/data/G11.txt
"""

import sys
from pathlib import Path

import matplotlib.style
import numpy as np
from matplotlib.figure import Figure

import spinsim as ss

matplotlib.style.use("spinsim.paper")  # one column of a paper
short = "--short" in sys.argv
sweeps = 5 if short else 100

# A weight w between two sites becomes a coupling J = -w: an edge is cut where the spins differ.
model = ss.read_instance(Path(__file__).parent / "data" / "G11.txt")

# Temperatures are in the units of the weights; the root mean square local field sets their scale.
scale = model.energy_scale
result = ss.anneal(model, np.geomspace(1.5 * scale, 0.05 * scale, 100), sweeps=sweeps, replicas=128, seed=1)

print(f"{model.name}: {model.sites} sites, {model.bonds} edges")
print(f"best cut {result.cut:.0f} (best known: 564)")

# The sign of each spin is its side of the partition. The weight of the edges between both sides is the cut.
side = result.best_spins[0]
i, j = model.graph.edges.T
weight = -model.couplings[0]
print(
    f"sides of {int((side > 0).sum())} and {int((side < 0).sum())} sites; "
    f"weight of the edges between them {weight[side[i] != side[j]].sum():.0f}"
)

figure = Figure()
axes = figure.subplots()
cuts = (weight.sum() - result.best_energy[0]) / 2
axes.hist(cuts, list(np.arange(cuts.min() - 1, 566, 2)), rwidth=0.8, label=f"{model.name}, {sweeps * 100:,} sweeps")
axes.axvline(564, color="0.5", linestyle=":", label="best known")
axes.set(xlabel="best cut of a replica", ylabel="replicas", xticks=np.arange(cuts.min(), 565, 2))
axes.minorticks_off()
axes.legend(loc="upper left")
if "--figure" in sys.argv:
    figure.savefig(sys.argv[sys.argv.index("--figure") + 1])
