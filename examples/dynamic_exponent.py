"""Critical slowing down of Swendsen-Wang moves: autocorrelation times at T_c of the square Ising model, and tau ~ L^z.

    python examples/dynamic_exponent.py                    L = 32 to 256, some minutes
    python examples/dynamic_exponent.py --sizes 32,64,128,256,512,1024 --moves 20000 --spins 26   a GPU, if there is one
    python examples/dynamic_exponent.py --short            the form that the tests run

Integrated autocorrelation times of the energy and of m^2 at T_c, in Swendsen-Wang moves, for L = 32 to 1024 (second
command), with fits by powers of L (solid) and logarithms (dashed). The times only double while L grows 32 times.
Metropolis sweeps have z = 2.17. The exponent of Swendsen-Wang moves is so small that times of the energy also fit a
logarithm of L, up to L = 8192 (J. Du, B. Zheng, J.-S. Wang, J. Stat. Mech. P05004 (2006), arXiv:cond-mat/0603038).

What to learn here: moves applied to your own engine, without sweeps, and integrated autocorrelation times.
docs/tutorials/clusters.md introduces both.
"""

import sys

import matplotlib.style
import numpy as np
from matplotlib.figure import Figure

import spinsim as ss

matplotlib.style.use("spinsim.paper")  # one column of a paper


def option(name: str, otherwise: str) -> str:
    """Value after a flag on the command line, or ``otherwise``."""
    return sys.argv[sys.argv.index(name) + 1] if name in sys.argv else otherwise


short = "--short" in sys.argv
sizes = [int(side) for side in option("--sizes", "8,16" if short else "32,64,128,256").split(",")]
moves = int(option("--moves", "400" if short else "4000"))
spins = 2 ** int(option("--spins", "15" if short else "20"))  # of all replicas of a size
begin = moves // 20  # more than ten autocorrelation times
names = {"energy": r"$\tau_E$", "magnetization squared": r"$\tau_{m^2}$"}


def autocorrelation_times(side: int) -> list[tuple[float, float]]:
    """Integrated times, 1/2 + rho(1) + ..., of the energy and of m^2 with their errors, in moves."""
    replicas, move, critical = max(4, min(256, spins // side**2)), ss.SwendsenWang(), ss.onsager.CRITICAL_TEMPERATURE
    lattice = ss.Simulation(ss.Ising(ss.square(side)), critical, replicas, seed=1, start="up")
    series = np.empty((2, moves, replicas))
    for time in range(moves):
        lattice.apply(move)
        series[:, time] = lattice.energy[0], lattice.magnetization[0].astype(float) ** 2
    found = [ss.integrated_time(each[begin:], chain_axis=1) for each in series]
    return [(float(each.tau), float(each.error)) for each in found]


print(f"Swendsen-Wang moves of the square Ising model at T_c, {moves} moves of each size")
print("    L" + "".join(f"   tau of {name:<24s}" for name in names))
times = np.empty((len(sizes), 2, 2))
for k, side in enumerate(sizes):
    times[k] = autocorrelation_times(side)
    print(f"{side:5d}" + "".join(f"   {tau:8.3f} +- {error:<20.3f}" for tau, error in times[k]), flush=True)

tau, error, log_size = times[..., 0], times[..., 1], np.log(sizes)


def straight(values: np.ndarray, errors: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """Straight line of the values over ln L, the errors of its two parameters, and chi^2."""
    line, covariance = np.polyfit(log_size, values, 1, w=1 / errors, cov="unscaled")
    return line, np.sqrt(np.diag(covariance)), float((((values - np.polyval(line, log_size)) / errors) ** 2).sum())


power = [straight(np.log(tau[:, k]), error[:, k] / tau[:, k]) for k in range(len(names))]
logarithm = [straight(tau[:, k], error[:, k]) for k in range(len(names))]
for name, ((z, _), (z_error, _), chi), ((rise, level), _, chi_of_logarithm) in zip(
    names, power, logarithm, strict=True
):
    print(f"{name}: tau ~ L^z, z = {z:.4f} +- {z_error:.4f}, chi^2 = {chi:.1f} of {len(sizes) - 2} degrees of freedom")
    print(f"    tau = {level:.3f} + {rise:.3f} ln L, chi^2 = {chi_of_logarithm:.1f}")

if "--figure" in sys.argv:
    figure = Figure()
    axes = figure.subplots()
    for k, label in enumerate(names.values()):
        axes.errorbar(sizes, tau[:, k], error[:, k], fmt="os"[k], color=f"C{k}", label=label)
        x = np.linspace(log_size[0], log_size[-1])
        axes.plot(np.exp(x), np.exp(np.polyval(power[k][0], x)), color=f"C{k}")
        axes.plot(np.exp(x), np.polyval(logarithm[k][0], x), color=f"C{k}", linestyle="--")
    axes.plot([], [], color="0.5", label="power of $L$")
    axes.plot([], [], color="0.5", linestyle="--", label="logarithm")
    axes.set(xscale="log", xlabel="size $L$", ylabel="autocorrelation time (moves)")
    axes.set_xticks(sizes, [str(side) for side in sizes])
    axes.minorticks_off()
    axes.legend()
    figure.savefig(option("--figure", ""))
