"""Residual energy of one large three-dimensional +-J glass after anneals of growing length.

    python examples/residual_energy.py            64^3 spins, up to 30,000 sweeps, half a minute on a laptop
    python examples/residual_energy.py --full     10^6 spins, up to 3 x 10^6 sweeps, on a GPU
    python examples/residual_energy.py --short    the form that the tests run

Energy per spin above the ground state, -1.7876(3) (A. K. Hartmann, Europhys. Lett. 40, 429 (1997)), of one lattice at
the end of an anneal, against its sweeps (a) and its seconds (b). Temperatures fall linearly from 2.5 to 0.2, through
the transition at 1.10. The line in (a) is a power law through the last points. The dotted line in (b) is the time of
the same sweeps at 1,000 flips per ns, the rate published for networked p-bit computers of a million spins
(arXiv:2606.25313, 2026).

What to learn here: one lattice without copies fills a GPU from a million spins on, and the residual energy of a glass
falls slowly: ten times the sweeps take off half.
"""

import sys
import time

import matplotlib.style
import numpy as np
from matplotlib.figure import Figure

import spinsim as ss

matplotlib.style.use("spinsim.paper")  # one column of a paper
GROUND = -1.7876
PUBLISHED_RATE = 1e12  # flips per second

if "--short" in sys.argv:
    side, lengths = 8, [10, 30]
elif "--full" in sys.argv:
    side, lengths = 100, [10, 30, 100, 300, 1000, 3000, 10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000]
else:
    side, lengths = 64, [10, 30, 100, 300, 1000, 3000, 10_000, 30_000]

model = ss.EdwardsAnderson(ss.cubic(side), seed=1)
ss.anneal(model, [2.0], sweeps=1, replicas=1)  # compiles the kernels
residual, seconds = [], []
for length in lengths:
    steps = min(length, 1000)
    began = time.perf_counter()
    run = ss.anneal(model, np.linspace(2.5, 0.2, steps), sweeps=length // steps, replicas=1, seed=length)
    seconds.append(time.perf_counter() - began)
    residual.append(run.best_energy.min() / model.sites - GROUND)
    rate = model.sites * length / seconds[-1] / 1e9
    print(
        f"{length} sweeps: {residual[-1]:.5f} above the ground state, {seconds[-1]:.3g} s, {rate:.3g} flips/ns",
        flush=True,
    )

last = slice(min(len(lengths) // 2, len(lengths) - 2), None)
power, constant = np.polyfit(np.log(lengths[last]), np.log(residual[last]), 1)
print(f"L = {side}: residual energy falls as sweeps^{power:.3f}")

figure = Figure(figsize=(3.4, 4.0))
upper, lower = figure.subplots(2, 1)
upper.plot(lengths, residual, "o", label=f"spinsim, ${side}^3$ spins")
upper.plot(lengths, np.exp(constant) * np.array(lengths) ** power, color="0.5", label=f"sweeps$^{{{power:.2f}}}$")
lower.plot(seconds, residual, "o")
at_published = np.array(lengths) * model.sites / PUBLISHED_RATE
lower.plot(at_published, residual, ":", color="0.5", label="at 1,000 flips/ns")
lower.legend()
for panel, letter, name in ((upper, "a", "sweeps"), (lower, "b", "seconds")):
    panel.set(xscale="log", yscale="log", xlabel=name, ylabel=r"$(E - E_0) / N$")
    panel.set_title(f"({letter})", loc="left")
upper.legend()
if "--figure" in sys.argv:
    figure.savefig(sys.argv[sys.argv.index("--figure") + 1])
