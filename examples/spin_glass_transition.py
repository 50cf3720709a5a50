"""The transition of the three-dimensional +-J spin glass, from crossings, collapses and quotients of several sizes.

    python examples/spin_glass_transition.py              64 samples of L = 4 and 6, half a minute on a laptop
    python examples/spin_glass_transition.py --laptop     600 samples of L = 4, 6 and 8, ten minutes
    python examples/spin_glass_transition.py --full       4,000 samples of L = 4 to 12, 1,000 of L = 16, on a GPU
    python examples/spin_glass_transition.py --short      the form that the tests run

Binder cumulant of the overlap and xi / L against temperature for L = 4 to 16 (``--full``). Diamonds mark crossings.
The published T_c = 1.1019(29) is dotted. It comes with nu = 2.45(15) and eta = -0.375(10) (M. Baity-Jesi et al., Phys.
Rev. B 88, 224416 (2013)). Crossings of xi / L of small sizes are expected somewhat above it.

What to learn here: xi / L and the Binder cumulant of the overlap do not depend on L at the transition, so curves of two
sizes cross near it. A collapse fits all sizes at once, with corrections to scaling if wanted; quotients give exponents
where xi / L of two sizes is equal.
"""

import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import spinsim as ss


class Size(NamedTuple):
    """Settings for one size; half as many sweeps as the measured ones come first."""

    side: int
    samples: int
    sweeps: int


CRITICAL, OMEGA = 1.1019, 1.12  # the published exponent of corrections to scaling is 1.12(10)
low, high, count, window = 0.95, 1.6, 16, None
if "--short" in sys.argv:
    sizes = [Size(side, 64, 400) for side in (2, 3, 4)]
elif "--full" in sys.argv:
    sizes = [Size(4, 4000, 20_000), Size(6, 4000, 30_000), Size(8, 4000, 40_000), Size(10, 4000, 50_000)]
    sizes += [Size(12, 4000, 60_000), Size(16, 1000, 200_000)]
    low, count, window = 0.98, 32, (1.0, 1.35)
elif "--laptop" in sys.argv:
    sizes = [Size(side, 600, 10_000) for side in (4, 6, 8)]
else:
    low, high = 0.85, 1.7
    sizes = [Size(side, 64, 10_000) for side in (4, 6)]

# Replicas of one sample share words of 128 bits: four copies of 32 temperatures cost no more than two would.
began, results = time.perf_counter(), []
for size in sizes:
    model = ss.EdwardsAnderson(ss.cubic(size.side), samples=size.samples, seed=size.side)
    length: dict[str, Any] = {
        "sweeps": size.sweeps,
        "thermalize": size.sweeps // 2,
        "measure_every": size.sweeps // 200,
    }
    run = ss.temper(model, np.linspace(low, high, count), replicas=4, series="none", **length)
    results.append(run)
    rates, trips, at = run.swap_rate, run.round_trips.mean(), time.perf_counter() - began
    print(f"L = {size.side}, {size.samples} samples, {at:.0f} s since the beginning: {run.verdict}")
    print(f"    exchanges {rates.min():.2f} to {rates.max():.2f}, {trips:.0f} round trips of each replica", flush=True)

comparisons = ss.compare_sizes(results, near=CRITICAL)
for comparison in comparisons:
    for pair in comparison.crossings:
        found = pair.crossing
        off = f"{(found.value - CRITICAL) / CRITICAL:+.1%} from T_c = {CRITICAL}"
        where = found.reason or f"T = {found.value:.3f} +- {found.error:.3f}, {off}"
        print(f"{comparison.name} of {' and '.join(pair.labels)}: {where}")

if len(sizes) > 2:
    for each in ss.quotients(results, near=CRITICAL):
        print(
            f"quotients of L = {each.sides[0]:g}, {each.sides[1]:g}: T = {each.crossing:.4f} +- "
            f"{each.crossing_error:.4f}, nu = {each.nu:.2f} +- {each.nu_error:.2f}, "
            f"eta = {each.eta:.3f} +- {next(iter(each.power_errors.values())):.3f}"
        )
    for name in ("overlap_correlation_length_over_L", "overlap_binder_cumulant"):
        for omega in (None, OMEGA):
            fewest = 2 if omega is None else 3  # sizes
            for smallest in [size.side for size in sizes[: len(sizes) - fewest]]:
                fit = ss.collapse(results, name, near=CRITICAL, window=window, smallest=smallest, omega=omega)
                print(
                    f"{name} from L = {smallest} on, {f'omega = {omega}' if omega else 'no corrections'}: "
                    f"T_c = {fit.critical:.4f} +- {fit.critical_error:.4f}, nu = {fit.nu:.2f} +- {fit.nu_error:.2f}, "
                    f"chi^2 = {fit.chi2:.1f} of {fit.freedom}, probability {fit.probability:.2g}"
                )

figure = Path(tempfile.mkdtemp(prefix="spinsim-")) / "spin_glass_transition.png"
if "--figure" in sys.argv:
    figure = Path(sys.argv[sys.argv.index("--figure") + 1])
drawn = ss.plot(results, "crossings", near=CRITICAL, mark=CRITICAL)["crossings"]
drawn.savefig(figure, dpi=300)
print(f"Figure in {figure}")
