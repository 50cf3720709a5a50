"""Houdayer moves bring a three-dimensional Gaussian glass into equilibrium several times sooner.

    python examples/houdayer.py                    L = 6, a minute
    python examples/houdayer.py --size 10 --samples 64 --sweeps 2400000 --measure-every 1000   a GPU, if there is one
    python examples/houdayer.py --short            the form that the tests run

(a) Energy per site above its equilibrium value at T = 0.2 against sweeps, for 64 samples of L = 10 without moves and
with a move after every tenth sweep (second command). (b) <q^2>. With moves the energy comes equally close to
equilibrium after four to five times fewer sweeps.

The same samples are tempered from random spins with and without moves, and are measured from the beginning. The
equilibrium energy is the mean over the last half of both runs; the excess is averaged over logarithmic bins of time,
sample by sample. For Gaussian couplings energy and link overlap are related in equilibrium, so that
U + (z/2) (1 - q_l) / T falls to 0 (H. G. Katzgraber, M. Palassini, A. P. Young, Phys. Rev. B 63, 184422 (2001)).

What to learn here: the approach to equilibrium, compared between two runs of the same samples.
"""

import sys
from itertools import pairwise

import matplotlib.style
import numpy as np
from matplotlib.figure import Figure

import spinsim as ss

matplotlib.style.use("spinsim.paper")  # one column of a paper


def option(name: str, otherwise: str) -> str:
    """Value after a flag on the command line, or ``otherwise``."""
    return sys.argv[sys.argv.index(name) + 1] if name in sys.argv else otherwise


short = "--short" in sys.argv
side, samples = int(option("--size", "4" if short else "6")), int(option("--samples", "8" if short else "16"))
sweeps = int(option("--sweeps", "1000" if short else "10000"))
measure_every = int(option("--measure-every", "10"))
LEVELS = (1e-3, 3e-4, 1e-4)  # energies per site above the equilibrium value
names = {"0": "no moves", "10": "every 10 sweeps"}


def followed(every: str) -> np.ndarray:
    """Energy per site, residual U + (z/2) (1 - q_l) / T and q^2 at the lowest T, (3, measurements, samples)."""
    run = ss.temper(
        ss.EdwardsAnderson(ss.cubic(side), couplings="gaussian", samples=samples), "0.2:1.6:32", sweeps=sweeps,
        thermalize=0, replicas=4, measure_every=measure_every, houdayer=every, series="energy,overlap,link_overlap",
        series_limit=4000,
    )  # fmt: skip
    squared = (run.overlap[..., 0] / run.model.sites) ** 2
    energy, link = (
        run.energy[..., 0].mean(axis=2) / run.model.sites,
        run.link_overlap[..., 0].mean(axis=2) / run.model.bonds,
    )
    residual = energy + 3 * (1 - link) / run.temperature[0]  # z / 2 = 3
    return np.stack([energy, residual, squared.mean(axis=2)])


def first_below(excess: np.ndarray, level: float) -> float:
    """Sweeps after which a mean over samples, (bins,), is below a level."""
    k = int(np.argmax(excess < level))
    if k == 0:
        return np.nan
    share = (excess[k - 1] - level) / (excess[k - 1] - excess[k])
    return float(centre[k - 1] * (centre[k] / centre[k - 1]) ** share)


runs = np.stack([followed(every) for every in names])  # (runs, 3, measurements, samples)
count = runs.shape[2]
edges = np.unique(np.append((2 ** np.arange(0, np.log2(count), 0.5)).round(), count).astype(int))
bins = np.stack([runs[:, :, i:j].mean(axis=2) for i, j in pairwise(edges)], axis=2)
centre = measure_every * np.sqrt((edges[:-1] + 1) * edges[1:])
bins[:, 0] -= runs[:, 0, count // 2 :].mean(axis=(0, 1))
mean, error = bins.mean(axis=3), bins.std(axis=3, ddof=1) / np.sqrt(samples)

print(
    f"3D Gaussian, L = {side}, T = 0.2, {samples} samples, two runs of {sweeps} sweeps: {' and '.join(names.values())}"
)
print("  sweeps        energy above equilibrium             U + 3 (1 - q_l) / T                  <q^2>")
for k in range(len(centre)):
    of_runs = [f"{mean[run, one, k]:.5f}({error[run, one, k]:.5f})" for one in range(3) for run in range(2)]
    print(f"{centre[k]:8.0f}   " + "  ".join(f"{each:>17s}" for each in of_runs))
draws = np.random.default_rng(1).integers(samples, size=(400, samples))
for level in LEVELS:
    first = np.array([first_below(one, level) for one in mean[:, 0]])
    again = np.array([[first_below(one[:, draw].mean(axis=1), level) for one in bins[:, 0]] for draw in draws])
    if np.isfinite(first).all():
        ratio, scatter = first[0] / first[1], np.nanstd(np.log(again[:, 0] / again[:, 1]))
        sooner = f"{ratio:.1f}({ratio * scatter:.1f})"
        print(f"below {level:g} after {first[0]:.0f} and {first[1]:.0f} sweeps, {sooner} times as soon")

if "--figure" in sys.argv:
    figure = Figure(figsize=(3.4, 4.0))
    panels = figure.subplots(2, 1, sharex=True)
    labels = r"$e - e_\mathrm{eq}$ ($J$)", r"$\langle q^2 \rangle$"
    for axes, one, letter, label in zip(panels, (0, 2), "ab", labels, strict=True):
        for run, name in enumerate(names.values()):
            axes.errorbar(centre, mean[run, one], error[run, one], fmt="os"[run], label=name)
        axes.set(xscale="log", ylabel=label)
        axes.set_title(f"({letter})", loc="left")
    panels[0].axhline(0, color="0.5")
    panels[0].set_yscale("symlog", linthresh=3e-5)
    panels[0].set_ylim(bottom=-3e-5)
    panels[1].legend(title="Houdayer moves", loc="lower right")
    panels[1].set(xlabel="sweeps")
    figure.savefig(option("--figure", ""))
