"""Critical temperatures of four lattices, from crossings of two sizes, beside exact or published values.

    python examples/lattices.py            two minutes
    python examples/lattices.py --short    the form that the tests run

Crossings of the Binder cumulant and of xi / L of two sizes of the square, triangular, honeycomb and cubic ferromagnet,
divided by the exact T_c of the infinite lattice; for the cubic lattice by the published T_c = 4.511523 (A. M.
Ferrenberg, J. Xu, D. P. Landau, Phys. Rev. E 97, 043301 (2018)). Corrections to scaling are larger for small sizes: the
cumulant of the cubic lattice crosses low.

What to learn here: the same analysis for several lattices, and crossings with errors from ``ss.compare_sizes``.
"""

import sys
from collections.abc import Callable

import matplotlib.style
import numpy as np
from matplotlib.figure import Figure

import spinsim as ss

matplotlib.style.use("spinsim.paper")  # one column of a paper

short = "--short" in sys.argv
sweeps = 400 if short else 30_000
exact = dict(ss.onsager.CRITICAL_TEMPERATURES) | {"cubic": 4.511523}
lattices: dict[str, tuple[Callable[[int], ss.Lattice], tuple[int, int], tuple[float, float]]] = {
    "square": (ss.square, (16, 32), (2.2, 2.34)),
    "triangular": (ss.triangular, (12, 24), (3.55, 3.75)),
    "honeycomb": (ss.honeycomb, (12, 24), (1.47, 1.57)),
    "cubic": (ss.cubic, (8, 12), (4.4, 4.6)),
}

figure = Figure()
axes = figure.subplots()
for number, (name, (lattice, sides, ends)) in enumerate(lattices.items()):
    sizes = (4, 6) if short else sides
    ladder = np.linspace(*ends, 15)
    runs = [ss.temper(ss.Ising(lattice(side)), ladder, sweeps, sweeps // 10, replicas=8) for side in sizes]
    print(f"{name}, L = {sizes[0]} and {sizes[1]}, T_c = {exact[name]:.6f}")
    for k, comparison in enumerate(ss.compare_sizes(runs, near=exact[name])):
        found = comparison.crossings[0].crossing
        print(f"    {comparison.name} crosses at T = {found.value:.4f} +- {found.error:.4f}")
        label = ("Binder cumulant", r"$\xi / L$")[k] if number == 0 else None
        place, bar = found.value / exact[name], found.error / exact[name]
        axes.errorbar([place], [number + 0.1 - 0.2 * k], xerr=[bar], fmt="os"[k], color=f"C{k}", label=label)
axes.axvline(1, color="0.5", linestyle=":")
axes.set(xlabel="temperature of the crossing / $T_c$", ylim=(-0.5, 4.2))
axes.set_yticks(range(len(lattices)), list(lattices))
axes.minorticks_off()
axes.legend(ncols=2, loc="upper center")
if "--figure" in sys.argv:
    figure.savefig(sys.argv[sys.argv.index("--figure") + 1])
