"""Critical coupling of the cubic Ising model, from crossings of the Binder ratios of sizes L and 2 L.

    python examples/critical_coupling.py                    L = 8 to 32, some minutes
    python examples/critical_coupling.py --sizes 16,32,64,128,256 --spins 30 --seconds 80   a GPU, if there is one
    python examples/critical_coupling.py --short            the form that the tests run

Couplings K = J / T at which the Binder ratios R = <m^4> / <m^2>^2 of L and 2 L cross, against L = 16 to 128 (second
command). The line is the published value 0.221654626(5) of A. M. Ferrenberg, J. Xu, D. P. Landau, Phys. Rev. E 97,
043301 (2018). The crossings converge to it as L^-(1/nu + omega) = L^-2.42, faster than other estimates from two sizes.

All sizes are simulated by Swendsen-Wang moves alone, at the published coupling. The derivative of R by K follows from
the covariance of m^2 and m^4 with the energy, so no other coupling is needed. All sizes together give K_c, R at K_c and
the amplitude b of R(K) = R_c + b L^-0.83 + R'(K) (K - K_c) by linear least squares.

What to learn here: your own loop for a given number of seconds, reweighting, and errors from independent replicas.
"""

import sys
import time

import matplotlib.style
import numpy as np
from matplotlib.figure import Figure

import spinsim as ss

matplotlib.style.use("spinsim.paper")  # one column of a paper
COUPLING, OMEGA, THERMALIZE = 0.221654626, 0.83, 150


def option(name: str, otherwise: str) -> str:
    """Value after a flag on the command line, or ``otherwise``."""
    return sys.argv[sys.argv.index(name) + 1] if name in sys.argv else otherwise


short = "--short" in sys.argv
sizes = [int(side) for side in option("--sizes", "4,8" if short else "8,16,32").split(",")]
seconds = float(option("--seconds", "0.5" if short else "60"))  # for the largest sizes; small ones need less
spins = 2 ** int(option("--spins", "18" if short else "22"))  # of all replicas of a size


def measure(side: int) -> tuple[np.ndarray, int]:
    """Averages of E, m^2, m^4, E m^2 and E m^4 of each replica, (5, replicas), E in units of J, and the moves made."""
    replicas = max(32, min(1024, spins // side**3))
    lattice = ss.Simulation(ss.Ising(ss.cubic(side)), 1 / COUPLING, replicas, seed=1, start="up")
    move, sums, moves, end = ss.SwendsenWang(), np.zeros((5, replicas)), 0, np.inf
    while moves < 2 * THERMALIZE or time.perf_counter() < end:
        lattice.apply(move)
        moves += 1
        if moves == THERMALIZE:
            end = time.perf_counter() + seconds * min(1, 2 * side / sizes[-1])
        if moves > THERMALIZE:
            energy, squared = lattice.energy[0], (lattice.magnetization[0] / side**3) ** 2
            sums += energy, squared, squared**2, energy * squared, energy * squared**2
    return sums / (moves - THERMALIZE), moves


def ratio_and_slope(averages: np.ndarray) -> np.ndarray:
    """Ratio <m^4> / <m^2>^2 and its derivative by K, from d<A>/dK = <A> <E> - <A E>."""
    energy, squared, fourth, with_squared, with_fourth = averages
    squared_slope, fourth_slope = squared * energy - with_squared, fourth * energy - with_fourth
    return np.array([fourth / squared**2, fourth_slope / squared**2 - 2 * fourth * squared_slope / squared**3])


print(f"Cubic Ising model at K = {COUPLING}, Swendsen-Wang moves for {seconds:g} s, of small sizes less")
print("    L    moves  replicas   <m4>/<m2>^2               slope in K")
found = np.empty((len(sizes), 2, 2))
for k, side in enumerate(sizes):
    averages, moves = measure(side)
    replicas = averages.shape[1]
    # Jackknife: each estimate omits one replica.
    without = ratio_and_slope((averages.sum(axis=1, keepdims=True) - averages) / (replicas - 1))
    found[k] = without.mean(axis=1), np.sqrt((replicas - 1) * without.var(axis=1))
    (ratio, slope), (of_ratio, of_slope) = found[k]
    print(
        f"{side:5d} {moves:8d} {replicas:9d}   {ratio:.6f} +- {of_ratio:.6f}   {slope:10.1f} +- {of_slope:.1f}",
        flush=True,
    )

(ratio, slope), (error, _) = np.moveaxis(found, 0, -1)
# Errors of slopes do not matter, as all curves cross very near COUPLING.
crossing = COUPLING + (ratio[:-1] - ratio[1:]) / (slope[1:] - slope[:-1])
crossing_error = np.hypot(error[:-1], error[1:]) / np.abs(slope[1:] - slope[:-1])
for k in range(len(sizes) - 1):
    print(f"K where {sizes[k]} and {sizes[k + 1]} cross: {crossing[k]:.8f} +- {crossing_error[k]:.8f}")
if len(sizes) > 2:
    terms = np.stack([np.ones(len(sizes)), np.array(sizes, float) ** -OMEGA, -slope], axis=1) / error[:, None]
    covariance = np.linalg.inv(terms.T @ terms)
    fitted, errors = covariance @ terms.T @ (ratio / error), np.sqrt(np.diag(covariance))
    chi = ((ratio / error - terms @ fitted) ** 2).sum()
    print(
        f"all sizes: K_c = {COUPLING + fitted[2]:.8f} +- {errors[2]:.8f}, R = {fitted[0]:.5f} +- {errors[0]:.5f} there,"
    )
    print(f"chi^2 = {chi:.1f} of {len(sizes) - 3} degrees of freedom")

if "--figure" in sys.argv:
    figure = Figure()
    axes = figure.subplots()
    axes.axhline(0, color="0.5", linestyle=":", label=f"published $K_c = {COUPLING}$")
    axes.errorbar(sizes[:-1], 1e6 * (crossing - COUPLING), 1e6 * crossing_error, fmt="o", label="$L$ and $2L$ cross")
    axes.set(xlabel="smaller size $L$", ylabel="$10^6 (K - K_c)$", xscale="log")
    axes.set_xticks(sizes[:-1], [str(side) for side in sizes[:-1]])
    axes.minorticks_off()
    axes.legend()
    figure.savefig(option("--figure", ""))
