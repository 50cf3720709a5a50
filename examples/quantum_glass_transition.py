"""The transition of the two-dimensional quantum +-J spin glass, from crossings in k of curves of several sizes.

    python examples/quantum_glass_transition.py             24 samples of L = 4 and 6, two minutes on a laptop
    python examples/quantum_glass_transition.py --full      256 to 1,024 samples of L = 4, 6, 8 and 12, on a GPU
    python examples/quantum_glass_transition.py --short     the form that the tests run
    python examples/quantum_glass_transition.py --figure F  where the figure goes

Curves against k for L = 4, 6, 8 and 12, with 256 to 1,024 samples (``--full``). Top: Binder cumulant of the overlap
over all of time, and xi / L. Bottom: Binder cumulant of the overlap within a slice, and correlation time over number of
slices. Curves of xi / L and of the cumulant within a slice cross between k = 0.28 and 0.31. The published value is near
k = 0.29, from L up to 24: M. Bernaschi et al., Nature 631, 749 (2024).

What to learn here: in the isotropic form k plays the part of 1 / T, with the transverse field -ln tanh(k) / (2 k). The
number of slices is large enough for the ground state: times the lowest gap of most samples it is far above 1, so more
slices change little. The cumulant within a slice and xi / L have such a limit. The cumulant over all of time has none,
because longer times average the overlap away: its crossings depend on how the number of slices grows with L.
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
    slices: int
    samples: int
    ladder: tuple[float, float, int]
    sweeps: int


NEAR = 0.29
if "--short" in sys.argv:
    sizes = [Size(side, 8, 4, (0.25, 0.32, 6), 600) for side in (2, 3)]
elif "--full" in sys.argv:
    sizes = [
        Size(4, 64, 1024, (0.25, 0.32, 32), 40_000),
        Size(6, 128, 1024, (0.25, 0.32, 32), 60_000),
        Size(8, 256, 512, (0.25, 0.32, 32), 80_000),
        Size(12, 512, 256, (0.265, 0.309, 32), 80_000),  # a narrower ladder, because its energies are wider apart
    ]
else:
    sizes = [Size(4, 32, 24, (0.24, 0.33, 8), 12_000), Size(6, 48, 24, (0.24, 0.33, 12), 12_000)]

began = time.perf_counter()
results = []
for size in sizes:
    model = ss.EdwardsAnderson(ss.square(size.side), samples=size.samples, seed=size.side)
    length: dict[str, Any] = {
        "sweeps": size.sweeps,
        "thermalize": size.sweeps // 2,
        "measure_every": size.sweeps // 100,
    }
    # Four copies, with an overlap for each pair, fill the words of 128 lanes at 32 values of k.
    run = ss.quantum(model, np.linspace(*size.ladder), size.slices, replicas=4, correlation_times=1, **length)
    results.append(run)
    rates, trips, at = run.swap_rate, run.round_trips.mean(), time.perf_counter() - began
    print(f"L = {size.side}, {size.slices} slices, {size.samples} samples, {at:.0f} s since the beginning")
    print(f"    exchanges {rates.min():.2f} to {rates.max():.2f}, {trips:.1f} round trips of each replica")
    print(f"    {run.verdict}", flush=True)

comparisons = ss.compare_sizes(results, "overlap", NEAR)
for comparison in comparisons:
    for pair in comparison.crossings:
        found, sides = pair.crossing, " and ".join(pair.labels)
        field = -np.log(np.tanh(found.value)) / (2 * found.value)
        where = found.reason or f"k = {found.value:.4f} +- {found.error:.4f}, Gamma = {field:.3f}"
        print(f"{comparison.name} of {sides}: {where}")

figure = Path(tempfile.mkdtemp(prefix="spinsim-")) / "quantum_glass_transition.png"
if "--figure" in sys.argv:
    figure = Path(sys.argv[sys.argv.index("--figure") + 1])
ss.plot(results, "crossings", observable="overlap", near=NEAR)["crossings"].savefig(figure, dpi=300)
print(f"Figure in {figure}, {time.perf_counter() - began:.0f} s")
