"""The transition of the three-dimensional +-J spin glass, from crossings of xi / L of several sizes.

    python examples/spin_glass_transition.py              64 samples of L = 4 and 6, half a minute on a laptop
    python examples/spin_glass_transition.py --laptop     600 samples of L = 4, 6 and 8, ten minutes
    python examples/spin_glass_transition.py --full       2,000 samples of L = 4, 6 and 8: best on a GPU
    python examples/spin_glass_transition.py --short      the form that the tests run

Binder cumulant of the overlap and xi / L against temperature for L = 4, 6 and 8, 2,000 samples each (``--full``).
Diamonds mark crossings. The published T_c = 1.1019(29) is dotted (M. Baity-Jesi et al., Phys. Rev. B 88, 224416
(2013)). Crossings of xi / L of small sizes are expected somewhat above it.

What to learn here: xi / L and the Binder cumulant of the overlap do not depend on L at the transition, so curves of two
sizes cross near it.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np

import spinsim as ss

CRITICAL = 1.1019
low, high = 0.85, 1.7
if "--short" in sys.argv:
    sides, samples, count, thermalize, sweeps, every = [2, 3], 4, 6, 200, 400, 10
elif "--full" in sys.argv:
    sides, samples, count, thermalize, sweeps, every = [4, 6, 8], 2000, 24, 50_000, 100_000, 1000
elif "--laptop" in sys.argv:
    sides, samples, count, thermalize, sweeps, every = [4, 6, 8], 600, 16, 5000, 10_000, 100
    low, high = 0.95, 1.6
else:
    sides, samples, count, thermalize, sweeps, every = [4, 6], 64, 16, 2000, 10_000, 50

# Replicas of one sample share words of 128 bits: four copies of 24 temperatures cost no more than two would.
results = []
for side in sides:
    model = ss.EdwardsAnderson(ss.cubic(side), samples=samples, seed=side)
    ladder = np.linspace(low, high, count)
    result = ss.temper(model, ladder, sweeps, thermalize, replicas=4, measure_every=every)
    results.append(result)
    print(f"L = {side}: {result.verdict}")
    print(f"L = {side}: exchanges {result.swap_rate.min():.2f} to {result.swap_rate.max():.2f}")

comparisons = ss.compare_sizes(results, near=CRITICAL)
for comparison in comparisons:
    for pair in comparison.crossings:
        found = pair.crossing
        off = f"{(found.value - CRITICAL) / CRITICAL:+.1%} from T_c = {CRITICAL}"
        where = found.reason or f"T = {found.value:.3f} +- {found.error:.3f}, {off}"
        print(f"{comparison.name} of {' and '.join(pair.labels)}: {where}")

figure = Path(tempfile.mkdtemp(prefix="spinsim-")) / "spin_glass_transition.png"
if "--figure" in sys.argv:
    figure = Path(sys.argv[sys.argv.index("--figure") + 1])
drawn = ss.plot(results, "crossings", near=CRITICAL, mark=CRITICAL)["crossings"]
drawn.savefig(figure, dpi=300)
print(f"Figure in {figure}")
