"""Interface free energy of the square ferromagnet, from periodic and antiperiodic boundaries, against Onsager.

    python examples/interface.py            a minute
    python examples/interface.py --short    the form that the tests run

Free energy of an interface per length, dF / L, against temperature for three sizes. Below T_c it tends to Onsager's
interface tension, sigma = 2 J + T ln tanh(J / T), which vanishes at T_c = 2.269; above T_c it vanishes as L grows.

What to learn here: ``ss.antiperiodic``, a ladder that reaches infinite temperature, and ``ss.interface``.
"""

import sys

import matplotlib.style
import numpy as np
from matplotlib.figure import Figure

import spinsim as ss

matplotlib.style.use("spinsim.paper")  # one column of a paper

short = "--short" in sys.argv
sides, sweeps = ((4,), 5000) if short else ((4, 8, 16), 80_000)
ladder = np.concatenate([np.linspace(1.4, 3.2, 19), np.geomspace(3.5, 16, 9)])

figure = Figure()
axes = figure.subplots()
for side, marker in zip(sides, "os^", strict=False):
    model = ss.Ising(ss.square(side))
    both = [ss.temper(one, ladder, sweeps, clusters="sw", seed=1) for one in (model, ss.antiperiodic(model))]
    found = ss.interface(*both)["mean"]
    cold = ladder < 3.3
    for t, value, error in list(zip(ladder, found.value / side, found.error / side, strict=True))[:19:6]:
        print(f"L = {side:2d}, T = {t:.1f}: dF / L = {value:.4f} +- {error:.4f}")
    axes.errorbar(ladder[cold], found.value[cold] / side, found.error[cold] / side, fmt=marker, label=f"$L = {side}$")
grid = np.linspace(1.4, ss.onsager.CRITICAL_TEMPERATURE, 100)
axes.plot(grid, 2 + grid * np.log(np.tanh(1 / grid)), color="0.5", zorder=1, label=r"exact, $L = \infty$")
axes.set(xlabel="temperature $T$ ($J / k_B$)", ylabel=r"free energy of the interface $\Delta F / L$ ($J$)")
figure.legend(ncols=4, loc="outside upper center")
if "--figure" in sys.argv:
    figure.savefig(sys.argv[sys.argv.index("--figure") + 1])
