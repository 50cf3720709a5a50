"""The picture of the README: spins at the transition, Binder cumulants that cross, and the overlaps of a spin glass.

    python examples/front_page.py --figure docs/images/front_page.png    a minute on a laptop
    python examples/front_page.py --short                                the form that the tests run

Left: spins of the square ferromagnet at T_c, L = 512, with domains of all sizes. Middle: Binder cumulants of L = 8, 16
and 32, which cross at T_c (dotted). Right: distribution P(q) of the overlap of the 3D +-J glass, L = 6, 64 samples. Its
two peaks sharpen and move apart as the temperature falls.

What to learn here: how to draw your own figure from the measurements of runs, with NumPy and Matplotlib alone.
"""

import sys
import tempfile
from pathlib import Path

import matplotlib.style
import numpy as np
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure

import spinsim as ss

matplotlib.style.use("spinsim.paper")  # one column of a paper

CRITICAL = 2 / np.log(1 + np.sqrt(2))  # Onsager 1944
short = "--short" in sys.argv
if short:
    side, ordering, sides, sweeps = 256, 10, [4, 6], 500
    glass_side, glass_samples, glass_sweeps = 3, 4, 500
else:
    side, ordering, sides, sweeps = 512, 20_000, [8, 16, 32], 40_000
    glass_side, glass_samples, glass_sweeps = 6, 64, 20_000

# One large lattice at its transition: domains of all sizes. The picture shows the last saved spins of the run.
large = ss.anneal(ss.Ising(ss.square(side)), [CRITICAL], sweeps=ordering, replicas=1, save_configurations=1)
saved = large.configurations
if saved is None:
    raise RuntimeError("the run has saved no configurations")
spins = saved[-1].reshape(side, side)

# Binder cumulants of several sizes: tempering gives all temperatures of a curve in one run.
ladder = np.linspace(2.17, 2.37, 17)
curves = {}
for length in sides:
    run = ss.temper(ss.Ising(ss.square(length)), ladder, sweeps, sweeps // 10, replicas=8, correlations=False)
    curves[length] = ss.table(run)[["binder_cumulant", "binder_cumulant_error"]].to_numpy().T

# A spin glass: the overlap of two copies of one sample has a broad distribution below the transition.
glass = ss.EdwardsAnderson(ss.cubic(glass_side), samples=glass_samples, seed=2026)
frozen = ss.temper(glass, np.geomspace(0.6, 2.0, 16), glass_sweeps, glass_sweeps // 4, replicas=4, correlations=False)
print(large, run, frozen, sep="\n")

# Without a field q and -q are equally likely. A total overlap is one of sites + 1 values; a bin holds seven of them.
edges = (14 * np.arange((glass.sites + 1) // 7 + 1) - glass.sites - 1) / glass.sites
densities = {}
for place in (0, 5, 10):
    q = frozen.overlap[..., place].ravel() / glass.sites
    densities[frozen.temperature[place]] = np.histogram(np.concatenate([q, -q]), edges, density=True)[0]


def draw(size: tuple[float, float], rows: int) -> Figure:
    """The three panels in one row or in three."""
    drawn = Figure(figsize=size)
    first, second, third = drawn.subplots(rows, 3 // rows)
    first.imshow(spins, cmap=ListedColormap(["#1f3a5f", "#f6f1e4"]), interpolation="nearest")
    first.set(xticks=[], yticks=[], title=rf"(a) ferromagnet at $T_c$, $L = {side}$")
    for (length, (binder, error)), marker in zip(curves.items(), "os^", strict=False):
        second.errorbar(ladder, binder, error, marker=marker, label=f"$L = {length}$")
    second.axvline(CRITICAL, color="0.5", linestyle=":", label="exact $T_c$")
    second.set(title="(b) Binder cumulant $U$", xlabel="temperature $T$ ($J$)")
    second.legend()
    for number, (temperature, density) in enumerate(densities.items()):
        third.stairs(density, edges, label=f"$T = {temperature:.2f}$", color=f"C{number}")
    third.set(title=rf"(c) $P(q)$, 3D $\pm J$ glass, $L = {glass_side}$", xlabel="overlap $q$")
    third.legend()
    return drawn


path = Path(tempfile.mkdtemp(prefix="spinsim-")) / "front_page.png"
if "--figure" in sys.argv:
    path = Path(sys.argv[sys.argv.index("--figure") + 1])
draw((7.0, 2.4), 1).savefig(path)
draw((3.4, 8.0), 3).savefig(path.with_stem(f"{path.stem}_tall"), dpi=200)  # for narrow windows
print(f"Figure in {path}")
