"""Your own observables: domain walls and correlations of a ferromagnet, in a run that is saved and resumed.

    python examples/own_observable.py            about five seconds
    python examples/own_observable.py --short    the form that the tests run

Correlation G(r) of spins at distance r along x in a 16 x 16 ferromagnet, at eight temperatures. Below T_c = 2.269 it
tends to a constant; above, it decays with r, and the periodic boundary flattens it near r = L / 2.

What to learn here: a function of a batch of spins, and where its values appear in results.
"""

import sys
import tempfile
from pathlib import Path
from typing import Any

import matplotlib.style
from matplotlib import colormaps
from matplotlib.figure import Figure

import spinsim as ss
from spinsim.observables.distances import spin_correlation

matplotlib.style.use("spinsim.paper")  # one column of a paper

short = "--short" in sys.argv
side, sweeps = (6, 400) if short else (16, 10_000)


# One number for each configuration; batch.grid is an array of NumPy on a CPU and of CuPy on a GPU, with x as last axis.
def domain_walls(batch: Any) -> Any:
    """Return the share of neighbours along x that are opposite."""
    s = batch.grid
    return (s != batch.xp.roll(s, 1, axis=-1)).mean(axis=(-2, -1))


model, temperatures = ss.Ising(ss.square(side)), "1.8:3.0:8"
measure = {"domain_walls": domain_walls, "G": spin_correlation}
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "walls.h5"
    ss.temper(model, temperatures, sweeps // 2, thermalize=200, out=path, measure=measure)
    result = ss.resume(path, sweeps=sweeps, measure=measure)  # the functions are given again, by name

table = ss.table(result)
print(f"{side} x {side} ferromagnet: opposite neighbours along x, and G(r) along x at distances 0 to {side // 2}")
# A row for each temperature, axis and distance; the first axis is that of x.
correlation = ss.table(result, "G").query("G_axis_0 == 0")
g, g_error = (correlation[name].to_numpy().reshape(len(table), -1) for name in ("G", "G_error"))
for k, t in enumerate(result.temperature):
    walls, error = table["domain_walls"][k], table["domain_walls_error"][k]
    print(f"T = {t:.3f}   {walls:.4f} +- {error:.4f}   {' '.join(f'{value:.3f}' for value in g[k])}")

figure = Figure()
axes, colours = figure.subplots(), colormaps["viridis"]
for k, t in enumerate(result.temperature):
    axes.errorbar(range(len(g[k])), g[k], g_error[k], marker="o", color=colours(k / len(g)), label=f"${t:.2f}$")
axes.set(xlabel="distance $r$ along $x$ (lattice spacings)", ylabel="correlation $G(r)$", yscale="log")
figure.legend(title="temperature $T$ ($J$)", ncols=4, loc="outside upper center")
if "--figure" in sys.argv:
    figure.savefig(sys.argv[sys.argv.index("--figure") + 1])
