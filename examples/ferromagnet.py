"""The two-dimensional ferromagnet through its transition, against Onsager's exact solution.

    python examples/ferromagnet.py            about ten seconds
    python examples/ferromagnet.py --short    the form that the tests run

Energy per site and mean |m| of a 64 x 64 ferromagnet against temperature, from 128 replicas. Lines are the exact energy
(Onsager) and magnetisation (Yang) of the infinite lattice. Both agree except near T_c = 2.269, where a finite lattice
has no sharp transition.

What to learn here: a model, a list of temperatures, one call, and error bars from independent replicas.
"""

import sys

import matplotlib.style
import numpy as np
from matplotlib.figure import Figure

import spinsim as ss

matplotlib.style.use("spinsim.paper")  # one column of a paper
short = "--short" in sys.argv
side, sweeps, replicas = (16, 50, 32) if short else (64, 400, 128)

# Cool slowly through T_c = 2.269, so that each temperature starts from equilibrium at the previous one.
temperatures = np.linspace(3.4, 1.4, 21)

# Every replica is a lattice of its own with its own random numbers; all start from random spins.
model = ss.Ising(ss.square(side))
result = ss.anneal(model, temperatures, sweeps=sweeps, replicas=replicas, seed=1)

# Measurements have the axes (step, sample, replica); a ferromagnet has a single sample.
e = result.energy[:, 0] / model.sites
m = np.abs(result.magnetization[:, 0]) / model.sites

exact_e, exact_m = ss.onsager.energy(temperatures), ss.onsager.magnetization(temperatures)

print(f"{side} x {side} ferromagnet, T_c = {ss.onsager.CRITICAL_TEMPERATURE:.4f}")
print("      T    energy per site     Onsager       <|m|>            Yang")
for k, t in enumerate(temperatures):
    # Replicas are independent, so the error of a mean is the scatter over sqrt(replicas).
    error_e, error_m = (x[k].std(ddof=1) / np.sqrt(replicas) for x in (e, m))
    print(
        f"{t:7.3f}  {e[k].mean():8.4f} +- {error_e:.4f}  {exact_e[k]:8.4f}  "
        f"{m[k].mean():7.4f} +- {error_m:.4f}  {exact_m[k]:7.4f}"
    )

# Far from T_c a finite lattice agrees with the infinite one; near T_c it cannot, which is finite-size scaling.

figure = Figure(figsize=(3.4, 3.6))
upper, lower = figure.subplots(2, 1, sharex=True)
# m falls like (T_c - T)^(1/8), so its curve needs points very close to T_c.
critical = ss.onsager.CRITICAL_TEMPERATURE
fine = np.sort(np.concatenate([np.linspace(1.35, 3.45, 500), critical - np.geomspace(1e-9, 0.1, 100), [critical]]))
for panel, values, exact, label in (
    (upper, e, ss.onsager.energy, "energy per site $e$ ($J$)"),
    (lower, m, ss.onsager.magnetization, r"magnetisation $\langle |m| \rangle$"),
):
    error = values.std(axis=1, ddof=1) / np.sqrt(replicas)
    panel.plot(fine, exact(fine), color="0.5", label=r"exact, $L = \infty$")
    panel.axvline(critical, color="0.5", linestyle=":", label="exact $T_c$")
    panel.errorbar(temperatures, values.mean(axis=1), error, fmt="o", label=f"$L = {side}$")
    panel.set(ylabel=label)
lower.set(xlabel="temperature $T$ ($J$)")
upper.legend()
upper.set_title("(a)", loc="left")
lower.set_title("(b)", loc="left")
if "--figure" in sys.argv:
    figure.savefig(sys.argv[sys.argv.index("--figure") + 1])
