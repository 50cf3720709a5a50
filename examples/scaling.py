"""Finite-size scaling: the critical temperature and exponents of the square ferromagnet, and data that collapse.

    python examples/scaling.py            a minute
    python examples/scaling.py --short    the form that the tests run

(a) Binder cumulants of L = 16, 24 and 32 against temperature. (b) The same against (T - T_c) L^(1 / nu), with T_c and
nu from the collapse: one curve for all sizes. The exact values are T_c = 2.269185, nu = 1 and gamma / nu = 7 / 4.

What to learn here: ``ss.collapse`` and ``ss.quotients``, fits without the smallest sizes, and scaled data for a figure.
"""

import sys

import matplotlib.style
import numpy as np
from matplotlib.figure import Figure

import spinsim as ss

matplotlib.style.use("spinsim.paper")  # one column of a paper

short = "--short" in sys.argv
sides, sweeps = ((4, 6), 1000) if short else ((8, 16, 24, 32), 40_000)
ladder = np.linspace(2.18, 2.36, 10)

# Swendsen-Wang moves keep autocorrelation times short at all sizes; every copy of the ladder is independent.
models = {side: ss.Ising(ss.square(side)) for side in sides}
runs = [ss.temper(model, ladder, sweeps, sweeps // 10, replicas=8, clusters="sw") for model in models.values()]

# Corrections to scaling are not fitted: leave out the smallest sizes until nothing changes.
for name in ("binder_cumulant", "susceptibility"):
    for smallest in sides[:-1]:
        found = ss.collapse(runs, name, near=2.27, smallest=smallest)
        print(
            f"{name} from L = {smallest} on: T_c = {found.critical:.4f} +- {found.critical_error:.4f}, "
            f"nu = {found.nu:.3f} +- {found.nu_error:.3f}, p = {found.power:.3f} +- {found.power_error:.3f}, "
            f"chi^2 = {found.chi2:.1f} of {found.freedom}, probability {found.probability:.2g}"
        )
for pair in ss.quotients(runs, near=2.27):
    print(
        f"quotients of L = {pair.sides}: xi / L equal at T = {pair.crossing:.4f} +- {pair.crossing_error:.4f}, ", end=""
    )
    print(f"nu = {pair.nu:.2f} +- {pair.nu_error:.2f}, eta = {pair.eta:.3f}")

collapsed = ss.collapse(runs, "binder_cumulant", near=2.27, smallest=sides[-3] if len(sides) > 2 else 0)
figure = Figure(figsize=(3.4, 4.4))
upper, lower = figure.subplots(2, 1)
reach = []
for points, marker in zip(collapsed.points, "os^", strict=False):
    u, y, error = collapsed.scaled(points)
    upper.errorbar(
        points.x, points.y, np.sqrt(np.diag(points.covariance)), marker=marker, label=f"$L = {points.side:g}$"
    )
    lower.errorbar(u, y, error, fmt=marker)
    reach += [u.min(), u.max()]
grid = np.linspace(min(reach), max(reach), 200)
lower.plot(grid, np.polynomial.polynomial.polyval(grid, collapsed.coefficients), color="0.5", zorder=1, label="fit")
upper.axvline(ss.onsager.CRITICAL_TEMPERATURE, color="0.5", linestyle=":", label="exact $T_c$")
upper.set(xlabel="temperature $T$ ($J / k_B$)", ylabel="Binder cumulant $U$")
lower.set(xlabel=r"$(T - T_c) L^{1/\nu}$ ($J / k_B$)", ylabel="Binder cumulant $U$")
for panel, letter in ((upper, "a"), (lower, "b")):
    panel.legend()
    panel.set_title(f"({letter})", loc="left")
if "--figure" in sys.argv:
    figure.savefig(sys.argv[sys.argv.index("--figure") + 1])
