"""Critical slowing down of Swendsen-Wang moves: autocorrelation times at T_c of the square Ising model, and tau ~ L^z.

    python examples/dynamic_exponent.py                    L = 32 to 256, some minutes
    python examples/dynamic_exponent.py --sizes 32,64,128,256,512,1024 --figure F   a GPU, if there is one
    python examples/dynamic_exponent.py --short            the form that the tests run

Metropolis sweeps have z = 2.17. That of Swendsen-Wang moves is so small that the energy's times also fit a logarithm of
L, up to L = 8192 (J. Du, B. Zheng, J.-S. Wang, J. Stat. Mech. P05004 (2006), arXiv:cond-mat/0603038).

What to learn here: moves applied to an engine of one's own, without sweeps, and integrated autocorrelation times.
docs/tutorials/clusters.md introduces both.
"""

import sys
from pathlib import Path

import numpy as np

import spinsim as ss
from spinsim.analysis.autocorrelation import integrated_time
from spinsim.analysis.figures import save_figure
from spinsim.analysis.figures.paper import COLOURS, MARKERS, draw_legend, lay_panels
from spinsim.analysis.onsager import CRITICAL_TEMPERATURE
from spinsim.engine.moves.move import Moment

short = "--short" in sys.argv
sizes, moves, spins = ([8, 16], 400, 2**15) if short else ([32, 64, 128, 256], 4000, 2**20)
if "--sizes" in sys.argv:
    sizes = [int(side) for side in sys.argv[sys.argv.index("--sizes") + 1].split(",")]
begin = moves // 20  # more than ten autocorrelation times
names = {"energy": r"$\tau_E$", "magnetization squared": r"$\tau_{m^2}$"}


def autocorrelation_times(side: int) -> list[tuple[float, float]]:
    """Integrated times, 1/2 + rho(1) + ..., of the energy and of m^2 with their errors, in moves."""
    replicas, move, beta = max(4, min(256, spins // side**2)), ss.SwendsenWang(), 1 / CRITICAL_TEMPERATURE
    engine = ss.create_engine(ss.Ising(ss.square(side)), replicas, ss.Dynamics(seed=1, start="up"))
    engine.set_beta(beta)
    series = np.empty((2, moves, replicas))
    for time in range(moves):
        engine.apply(move, Moment(beta, time, seed=1))
        counts = engine.counts()
        series[:, time] = counts.energy[0], counts.magnetization[0].astype(float) ** 2
    found = [integrated_time(each[begin:], chain_axis=1) for each in series]
    return [(float(each.tau), float(each.error)) for each in found]


print(f"Swendsen-Wang moves of the square Ising model at T_c, {moves} moves of each size")
print("    L" + "".join(f"   tau of {name:<24s}" for name in names))
times = np.empty((len(sizes), 2, 2))
for k, side in enumerate(sizes):
    times[k] = autocorrelation_times(side)
    print(f"{side:5d}" + "".join(f"   {tau:8.3f} +- {error:<20.3f}" for tau, error in times[k]), flush=True)

tau, error = times[..., 0], times[..., 1]
weights, log_size = tau / error, np.log(sizes)
for k, name in enumerate(names):
    (z, _), covariance = np.polyfit(log_size, np.log(tau[:, k]), 1, w=weights[:, k], cov="unscaled")
    print(f"z = {z:.3f} +- {np.sqrt(covariance[0, 0]):.3f} of the {name}, all sizes in one power law")

if "--figure" in sys.argv:
    figure, (axes,) = lay_panels("single", 1, 2.4)
    for k, label in enumerate(names.values()):
        axes.errorbar(sizes, tau[:, k], error[:, k], color=COLOURS[k], marker=MARKERS[k], ls="", label=label)
        slope, level = np.polyfit(log_size, np.log(tau[:, k]), 1, w=weights[:, k])
        axes.plot(sizes, np.exp(level) * np.array(sizes) ** slope, color=COLOURS[k], lw=0.8)
    axes.set(xscale="log", yscale="log", xlabel="$L$", ylabel="autocorrelation time (moves)")
    draw_legend(figure, axes)
    figure.caption = f"Integrated autocorrelation times of Swendsen-Wang moves at $T_c$, {moves} moves, and power laws."
    save_figure(figure, Path(sys.argv[sys.argv.index("--figure") + 1]))
