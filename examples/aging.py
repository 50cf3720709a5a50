"""Aging of a spin glass: the longer it waits after a quench, the more slowly it forgets its state.

    python examples/aging.py            half a minute
    python examples/aging.py --short    the form that the tests run

Autocorrelation C(t, t_w) of the three-dimensional +-J glass, L = 12, after a quench from infinite temperature to
T = 0.6, below T_c = 1.10. Curves are for three waiting times t_w. The longer the glass has waited, the more slowly C
decays with the time t. Error bars come from 8 samples of 64 replicas each.

What to learn here: your own protocol with ``ss.Simulation``, which sets a temperature, sweeps and measures.
"""

import sys

import matplotlib.style
import numpy as np
from matplotlib.figure import Figure

import spinsim as ss

matplotlib.style.use("spinsim.paper")  # one column of a paper
short = "--short" in sys.argv
side, samples, replicas, ages, longest = (4, 4, 64, (4, 16), 32) if short else (12, 8, 64, (10, 100, 1000), 10_000)

# A start from random spins is a quench from infinite temperature, here to well below T_c = 1.10.
model = ss.EdwardsAnderson(ss.cubic(side), samples=samples, seed=1)
# Even times, as flips that cost nothing are nearly always accepted: a spin in no local field flips at every sweep.
times = 2 * np.unique(np.geomspace(1, longest / 2, 8 if short else 13).round().astype(int))


def correlation(age: int) -> np.ndarray:
    """C(t, age) = (1 / N) sum over sites of s(age) s(age + t), (times, samples), the mean over replicas."""
    glass = ss.Simulation(model, temperature=0.6, replicas=replicas, seed=2)
    glass.sweep(age)
    before, found = glass.spins(), []
    for t in times:
        glass.sweep(age + t - glass.sweeps)
        found.append(glass.overlap(before).mean(axis=1) / model.sites)
    return np.array(found)


print(f"C(t, t_w) of {model.name} at T = 0.6, {samples} samples of {replicas} replicas, errors from samples")
of_age = {age: correlation(age) for age in ages}
print("       t" + "".join(f"        t_w = {age:<6d}" for age in ages))
for k, t in enumerate(times):
    means = [(found[k].mean(), found[k].std(ddof=1) / np.sqrt(samples)) for found in of_age.values()]
    print(f"{t:8d}" + "".join(f"   {mean:8.4f} +- {error:.4f}" for mean, error in means))

# In equilibrium the columns would agree. Here C stays up until t is about t_w: at t = t_w it hardly depends on t_w.
for age, found in of_age.items():
    at = np.array([np.interp(np.log(age), np.log(times), each) for each in found.T])
    print(f"C(t_w, t_w) = {at.mean():.4f} +- {at.std(ddof=1) / np.sqrt(samples):.4f} for t_w = {age}")

figure = Figure()
axes, markers = figure.subplots(), iter("os^")
for age, found in of_age.items():
    error = found.std(axis=1, ddof=1) / np.sqrt(samples)
    axes.errorbar(times, found.mean(axis=1), error, marker=next(markers), label=f"$t_w = {age}$")
axes.set(xlabel="time $t$ after waiting (sweeps)", ylabel="autocorrelation $C(t, t_w)$", xscale="log")
axes.legend()
if "--figure" in sys.argv:
    figure.savefig(sys.argv[sys.argv.index("--figure") + 1])
