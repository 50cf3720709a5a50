"""Growth of the coherence length of a spin glass after a quench, against the law xi ~ t^(1 / z).

    python examples/coherence.py            8 samples of L = 16 for 10,000 sweeps, a minute or two on a laptop
    python examples/coherence.py --full     8 samples of L = 64 for 300,000 sweeps, on a GPU
    python examples/coherence.py --short    the form that the tests run

Coherence length xi_12 of the three-dimensional +-J glass at T = 0.7, after a quench from infinite temperature, against
time (``--full``). The solid line is the fit of xi_12 ~ t^(1 / z) to xi_12 > 3. The dotted line has the published z =
11.64(15), from L = 80 and up to 10^11 sweeps of heat bath: F. Belletti et al. (Janus), J. Stat. Phys. 135, 1121 (2009).

What to learn here: protocols out of equilibrium with ``ss.evolve``, C4(r) of pairs of replicas, and errors of exponents
by leaving samples out in turn.
"""

import sys
import time

import matplotlib.style
import numpy as np
from matplotlib.figure import Figure

import spinsim as ss

matplotlib.style.use("spinsim.paper")  # one column of a paper
PUBLISHED = 11.64
if "--short" in sys.argv:
    side, samples, replicas, last, least = 6, 4, 16, 100, 1.0
elif "--full" in sys.argv:
    side, samples, replicas, last, least = 64, 8, 128, 300_000, 3.0
else:
    side, samples, replicas, last, least = 16, 8, 64, 10_000, 2.0

# Even times, as flips that cost nothing are nearly always accepted: a spin in no local field flips at every sweep.
times = 2 * np.unique(np.geomspace(5, last / 2, 1 + int(4 * np.log10(last / 10))).round().astype(int))
began = time.perf_counter()
model = ss.EdwardsAnderson(ss.cubic(side), samples=samples, seed=1)
run = ss.evolve(model, f"T=0.7 for {last}", times=times, replicas=replicas, seed=2)
print(f"{model.name}, {samples} samples, {replicas} replicas each, {time.perf_counter() - began:.0f} s")
xi, _ = run.coherence_lengths
print("       t        xi_12")
for t, value, error in zip(run.sweep[1:], xi.value[1:], xi.error[1:], strict=True):
    print(f"{t:8d}   {value:6.4f} +- {error:.4f}")

# The fit is made without each sample in turn: values at different times come from the same samples.
fitted = xi.value > least
log_time = np.log(run.sweep[fitted])
c4 = np.asarray(run.overlap_correlation)[fitted].mean(axis=2)  # (times, samples, distances)
r = np.arange(c4.shape[-1])
spread = c4.std(axis=1, ddof=1) / np.sqrt(samples)
summed = np.cumsum(c4.mean(axis=1) < 3 * spread, axis=1) == 0  # up to where noise hides C4, without xi's tail


def exponent(kept: np.ndarray) -> float:
    """1 / z from the samples that are kept."""
    mean = np.where(summed, c4[:, kept].mean(axis=1), 0)
    length = (mean * r**2).sum(axis=1) / (mean * r).sum(axis=1)
    return float(np.polyfit(log_time, np.log(length), 1)[0])


every = np.arange(samples)
slope, without = exponent(every), [exponent(every[every != k]) for k in every]
slope_error = np.sqrt((samples - 1) * np.var(without))
z, z_error = 1 / slope, slope_error / slope**2
print(f"z = {z:.2f} +- {z_error:.2f} from xi_12 > {least:g}, {fitted.sum()} times; published {PUBLISHED}")

figure = Figure()
axes = figure.subplots()
axes.errorbar(run.sweep[1:], xi.value[1:], xi.error[1:], fmt="o", label=f"$L = {side}$")
t, anchor = run.sweep[fitted], np.exp(np.log(xi.value[fitted]).mean())
middle = np.exp(np.log(t).mean())
axes.plot(t, anchor * (t / middle) ** slope, color="C1", label=f"$z = {z:.1f}$")
axes.plot(t, anchor * (t / middle) ** (1 / PUBLISHED), ":", color="0.5", label="published $z$")
axes.set(xscale="log", yscale="log", xlabel="time $t$ after the quench (sweeps)", ylabel=r"coherence length $\xi_{12}$")
axes.legend()
if "--figure" in sys.argv:
    figure.savefig(sys.argv[sys.argv.index("--figure") + 1])
