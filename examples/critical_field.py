"""The critical transverse field of the square lattice: where curves of xi / L cross, at infinitely many slices.

    python examples/critical_field.py             sizes 4 and 8, some minutes on a laptop
    python examples/critical_field.py --full      sizes 4, 8 and 16, two minutes on a GPU
    python examples/critical_field.py --short     the form that the tests run

What to learn here: a ladder in the transverse field, a clean model that fills the lanes and the samples of a run, and
how crossings at several steps in time Delta tau lead to that of the quantum model, by a line in Delta tau^2. In its
ground state the model orders below Gamma = 3.04438 J: H. W. J. Bloete, Y. Deng, Phys. Rev. E 66, 066110 (2002). Time
grows with the size, beta = L / 2 J, so that all sizes are of one shape in space and time.
"""

import itertools
import sys
import tempfile
from pathlib import Path

import matplotlib.style
import numpy as np

import spinsim as ss
from spinsim.analysis.figures import save_figure
from spinsim.analysis.figures.paper import COLOURS, GREY, MARKERS, PAPER, draw_legend, lay_panels
from spinsim.analysis.sizes import compare_sizes
from spinsim.analysis.summary import summarize

CRITICAL = 3.04438
sides, steps, samples, sweeps, every = [4, 8], [8, 12, 16], 16, 4000, 10  # steps: slices for each unit of beta
if "--short" in sys.argv:
    sides, steps, samples, sweeps = [2, 4], [4, 6, 8], 10, 400
elif "--full" in sys.argv:
    sides, steps, samples, sweeps, every = [4, 8, 16], [8, 12, 16, 24], 32, 60_000, 200

# The model is clean, yet has samples, all alike: they fill the device, and errors over them need no autocorrelation
# time. Eight copies of sixteen fields are the 128 replicas of a word.
gamma = np.linspace(2.8, 3.3, 16)
runs: dict[tuple[int, int], ss.QuantumResult] = {}
summaries = {}
for side in sides:
    model = ss.Ising(ss.square(side), np.ones((samples, 2 * side**2), np.int8))
    for step in steps:
        run = ss.quantum(
            model,
            gamma=gamma,
            beta=side / 2,
            slices=step * side // 2,
            sweeps=sweeps,
            thermalize=sweeps // 10,
            measure_every=every,
            swap_every=5,
            replicas=8,
            correlation_times=1,
            seed=1000 * side + step,
        )
        runs[side, step], summaries[side, step] = run, summarize(run)
        rate = run.swap_rate
        print(f"L = {side}, {run.slices} slices: exchanges {rate.min():.2f} to {rate.max():.2f}", flush=True)

# Where two sizes cross, at each step in time and, by a line in its square, without one.
squares = 1 / np.array(steps, float) ** 2
crossings: dict[tuple[str, int, int], list[tuple[float, float]]] = {}
for small, large in itertools.pairwise(sides):
    for step in steps:
        both = [(small, step), (large, step)]
        results, averages = [runs[one] for one in both], [summaries[one] for one in both]
        for comparison in compare_sizes(results, "magnetization", CRITICAL, averages):
            found = comparison.crossings[0].crossing
            crossings.setdefault((comparison.name, small, large), []).append((found.value, found.error))

lines = {}
for (name, small, large), pairs in crossings.items():
    value, error = np.array(pairs).T
    if not np.isfinite(value).all():
        print(f"{name} of L = {small} and {large}: some curves do not cross")
        continue
    line = np.stack([np.ones_like(squares), squares], axis=1) / error[:, None]
    spread = np.linalg.inv(line.T @ line)
    limit, slope = spread @ line.T @ (value / error)
    width, score = np.sqrt(spread[0, 0]), (((value - limit - slope * squares) / error) ** 2).sum()
    lines[name, small, large] = value, error, limit, width, slope
    each = ", ".join(f"{v:.4f}({e:.4f})" for v, e in pairs)
    off = f"{(limit - CRITICAL) / width:+.1f} errors from {CRITICAL}"
    print(f"{name} of L = {small} and {large}: Gamma = {each}")
    print(f"    at Delta tau = 0: {limit:.4f} +- {width:.4f}, {off}, chi^2 {score:.1f} of {len(steps) - 2}")

# The curves at the finest step, and how crossings move with the step.
SHOWN = {"correlation_length_over_L": r"$\xi/L$", "binder_cumulant": "$U$"}
with matplotlib.style.context(PAPER):
    figure, (left, right) = lay_panels("double", 2, 2.6)
    for side, colour, marker in zip(sides, COLOURS, MARKERS, strict=False):
        xi = summaries[side, steps[-1]].estimates["correlation_length_over_L"]
        left.errorbar(gamma, xi.value, xi.error, label=f"$L = {side}$", color=colour, marker=marker, ms=3, lw=0.8)
    shown = [key for key in lines if key[0] in SHOWN]
    for (name, small, large), colour, marker in zip(shown, COLOURS[::-1], MARKERS[::-1], strict=False):
        value, error, limit, width, slope = lines[name, small, large]
        label = f"{SHOWN[name]}, {small} and {large}"
        x, y, bars = [0, *squares], [limit, *value], [width, *error]
        right.errorbar(x, y, bars, label=label, color=colour, marker=marker, ms=3, ls="none", mfc="none")
        right.plot([0, squares[0]], [limit, limit + slope * squares[0]], color=colour, lw=0.6)
    left.axvline(CRITICAL, color=GREY, lw=0.6, ls="--")
    right.axhline(CRITICAL, color=GREY, lw=0.6, ls="--")
    left.set(xlabel=r"transverse field $\Gamma/J$", ylabel=rf"$\xi/L$ at $J\Delta\tau=1/{steps[-1]}$")
    right.set(xlabel=r"$(J\Delta\tau)^2$", ylabel=r"crossing in $\Gamma/J$")
    draw_legend(figure, left, right)
figure.caption = (
    "The transverse-field Ising model on the square lattice at beta = L / 2 J. Left: the correlation length over L at "
    "the finest step in time. Right: where curves of two sizes cross, of xi / L and of the Binder cumulant, and lines "
    f"in the squared step. Dashed: the critical field {CRITICAL} J. Bars are one standard error."
)
path = Path(tempfile.mkdtemp(prefix="spinsim-")) / "critical_field.png"
if "--figure" in sys.argv:
    path = Path(sys.argv[sys.argv.index("--figure") + 1])
save_figure(figure, path)
print(f"Figure in {path}")
