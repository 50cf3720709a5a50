"""A three-dimensional +-J spin glass in equilibrium, by parallel tempering.

    python examples/tempering.py            about a minute
    python examples/tempering.py --short    the form that the tests run

Binder cumulant of the overlap against temperature for L = 4 and 6, with errors from 64 disorder samples each. The two
curves cross near the published T_c = 1.1019 (dotted).

What to learn here: a ladder of temperatures, overlaps of copies, error bars over disorder samples, and how to tell
whether the run was long enough.
"""

import sys

import matplotlib.style
import numpy as np
from matplotlib.figure import Figure

import spinsim as ss

matplotlib.style.use("spinsim.paper")  # one column of a paper

short = "--short" in sys.argv
sides, samples, sweeps = ((3, 4), 8, 400) if short else ((4, 6), 64, 20_000)
ladder = np.geomspace(0.9, 2.0, 10)

curves = {}
for side in sides:
    model = ss.EdwardsAnderson(ss.cubic(side), samples=samples, seed=2026)

    # Two copies of the ladder in each sample: the overlap of two independent copies is the order parameter.
    result = ss.temper(model, ladder, sweeps=sweeps, thermalize=sweeps // 2, replicas=2, seed=1)
    table = ss.table(result, columns=["overlap_binder_cumulant"])

    print(f"L = {side}: {samples} samples, exchange rates {result.swap_rate.min():.2f} to {result.swap_rate.max():.2f}")
    print(f"  {result.verdict}")
    curves[side] = table.overlap_binder_cumulant, table.overlap_binder_cumulant_error

print("       T" + "".join(f"   U_q(L = {side})     error" for side in sides))
for k, temperature in enumerate(ladder):
    print(f"{temperature:8.4f}" + "".join(f"{value[k]:13.4f}{error[k]:10.4f}" for value, error in curves.values()))

figure = Figure()
axes = figure.subplots()
for (side, (value, error)), marker in zip(curves.items(), "os", strict=True):
    axes.errorbar(ladder, value, error, marker=marker, label=f"$L = {side}$")
axes.axvline(1.1019, color="0.5", linestyle=":", label="published $T_c$")  # M. Baity-Jesi et al. 2013
axes.set(xlabel="temperature $T$ ($J$)", ylabel="Binder cumulant of the overlap $U_q$")
axes.legend()
if "--figure" in sys.argv:
    figure.savefig(sys.argv[sys.argv.index("--figure") + 1])
