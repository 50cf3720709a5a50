"""A hysteresis loop: a ferromagnet below its transition in a field that goes up and down again.

    python examples/hysteresis.py            some seconds
    python examples/hysteresis.py --short    the form that the tests run

Magnetisation m of a 64 x 64 ferromagnet at T = 1.5, below T_c = 2.269, against a field that goes from -2 to 2 and back
with 2, 20 or 200 sweeps at each value. m lags behind the field; the slower the field, the narrower the loop.

What to learn here: a field for each step, your own initial spins, and the dependence of the loop on the speed.
"""

import sys

import matplotlib.style
import numpy as np
from matplotlib.figure import Figure

import spinsim as ss

matplotlib.style.use("spinsim.paper")  # one column of a paper
short = "--short" in sys.argv
side, replicas, points, speeds = (16, 32, 9, (10, 40)) if short else (64, 64, 41, (2, 20, 200))

# From -2 to 2 and back, at one temperature, well below T_c = 2.269.
up = np.linspace(-2, 2, points)
field = np.concatenate([up, up[::-1]])
model = ss.Ising(ss.square(side))
down_spins = -np.ones(model.sites)

figure = Figure()
axes = figure.subplots()
for sweeps in speeds:
    # The field is added to the model's own fields; each step starts from the spins of the previous one.
    loop = ss.anneal(model, 1.5, field=field, sweeps=sweeps, replicas=replicas, start=down_spins, seed=1)
    m = loop.magnetization[:, 0] / model.sites
    mean = m.mean(axis=1)
    axes.plot(field, mean, marker="o", markersize=2, label=sweeps)
    area = np.sum((mean[1:] + mean[:-1]) / 2 * np.diff(field))  # below 0, as m lags behind the field
    print(f"{sweeps} sweeps at each field: the loop encloses {-area:.4f}")
    print("      h       m going up           m going down")
    for k in range(0, points, max(1, points // 8)):
        there, back = m[k], m[2 * points - 1 - k]
        errors = [x.std(ddof=1) / np.sqrt(replicas) for x in (there, back)]
        print(f"{up[k]:7.3f}  {there.mean():8.4f} +- {errors[0]:.4f}   {back.mean():8.4f} +- {errors[1]:.4f}")

# The slower the field, the narrower the loop: the droplets that turn the magnetisation have time to appear.

axes.set(xlabel="field $h$ ($J$)", ylabel="magnetisation $m$")
axes.legend(title="sweeps at each $h$", loc="upper left")
if "--figure" in sys.argv:
    figure.savefig(sys.argv[sys.argv.index("--figure") + 1])
