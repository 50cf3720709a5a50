"""Finite-size scaling: the critical temperature and exponents of the square ferromagnet from L = 8 to 128.

    python examples/scaling.py            ten minutes on two cores
    python examples/scaling.py --short    the form that the tests run

(a) Correlation length over L against temperature. (b) The same against (T - T_c) L^(1 / nu), with T_c and nu from the
collapse: one curve for all sizes. (c) T where xi / L of L and 2 L is equal, against 1 / L. The exact values are
T_c = 2.269185, nu = 1 and eta = 1 / 4.

What to learn here: ladders that are narrower for larger sizes, ``ss.collapse`` and ``ss.quotients``, fits without the
smallest sizes, and scaled data for a figure.
"""

import sys
from typing import Any

import matplotlib.style
import numpy as np
from matplotlib.figure import Figure

import spinsim as ss

matplotlib.style.use("spinsim.paper")  # one column of a paper

short = "--short" in sys.argv
sides, sweeps = ((4, 6, 8), 1000) if short else ((8, 16, 32, 64, 128), 20_000)

# Curves of all sizes have their slope within |T - T_c| L of order 1; about where T_c lies, a first run has told.
ladders = {side: 2.27 + np.linspace(-1.5, 1.5, 9) / side for side in sides}

# Swendsen-Wang moves keep autocorrelation times short at all sizes; every copy of the ladder is independent.
runs = [
    ss.temper(ss.Ising(ss.square(side)), ladder, sweeps, sweeps // 10, replicas=8, clusters="sw", clusters_every=2)
    for side, ladder in ladders.items()
]

for name in ("correlation_length_over_L", "binder_cumulant", "susceptibility"):
    for smallest in sides[:-1]:  # leave out the smallest sizes until nothing changes
        found = ss.collapse(runs, name, near=2.27, smallest=smallest)
        print(
            f"{name} from L = {smallest} on: T_c = {found.critical:.5f} +- {found.critical_error:.5f}, "
            f"nu = {found.nu:.3f} +- {found.nu_error:.3f}, p = {found.power:.4f} +- {found.power_error:.4f}, "
            f"chi^2 = {found.chi2:.1f} of {found.freedom}, probability {found.probability:.2g}"
        )
pairs = ss.quotients(runs, near=2.27)
for pair in pairs:
    eta_error = pair.power_errors["susceptibility"]
    print(
        f"quotients of L = {pair.sides[0]:g}, {pair.sides[1]:g}: xi / L equal at T = {pair.crossing:.5f} +- "
        f"{pair.crossing_error:.5f}, nu = {pair.nu:.3f} +- {pair.nu_error:.3f}, eta = {pair.eta:.4f} +- {eta_error:.4f}"
    )

every, found = ss.collapse(runs, near=2.27), ss.collapse(runs, near=2.27, smallest=sides[-3])
figure = Figure(figsize=(3.4, 6.0))
above, middle, below = figure.subplots(3, 1)
looks: dict[float, Any] = {
    side: {"fmt": marker, "color": f"C{k}"} for k, (side, marker) in enumerate(zip(sides, "os^Dv", strict=False))
}
for points in every.points:
    above.errorbar(points.x, points.y, points.error, label=f"$L = {points.side:g}$", **looks[points.side])
for points in found.points:
    middle.errorbar(*found.scaled(points), **looks[points.side])
grid = np.linspace(-1.6, 1.6, 200)
middle.plot(grid, np.polynomial.polynomial.polyval(grid, found.coefficients), color="0.5", zorder=1, label="fit")
inverse = [1 / pair.side for pair in pairs]
below.errorbar(inverse, [pair.crossing for pair in pairs], [pair.crossing_error for pair in pairs], fmt="o")
above.axvline(ss.onsager.CRITICAL_TEMPERATURE, color="0.5", linestyle=":", label="exact $T_c$")
below.axhline(ss.onsager.CRITICAL_TEMPERATURE, color="0.5", linestyle=":", label="exact $T_c$")
above.set(xlabel="temperature $T$ ($J / k_B$)", ylabel=r"$\xi / L$")
middle.set(xlabel=r"$(T - T_c) L^{1/\nu}$ ($J / k_B$)", ylabel=r"$\xi / L$")
below.set(xlabel=r"inverse size $1 / L$", ylabel=r"$T$ of equal $\xi / L$")
for panel, letter in ((above, "a"), (middle, "b"), (below, "c")):
    panel.legend()
    panel.set_title(f"({letter})", loc="left")
if "--figure" in sys.argv:
    figure.savefig(sys.argv[sys.argv.index("--figure") + 1])
