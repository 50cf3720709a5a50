"""The transition of the two-dimensional quantum +-J spin glass: crossings in k, collapses and the dynamic exponent.

    python examples/quantum_glass_transition.py             24 samples of L = 4 and 6, two minutes on a laptop
    python examples/quantum_glass_transition.py --full      256 to 2,048 samples of L = 4 to 12, on a GPU
    python examples/quantum_glass_transition.py --short     the form that the tests run
    python examples/quantum_glass_transition.py --figure F  where the figure goes

Curves against k for L = 4, 6, 8, 10 and 12, with 256 to 2,048 samples (``--full``). Top: Binder cumulant of the overlap
over all of time, and xi / L. Bottom: Binder cumulant of the overlap within a slice, and correlation time over number of
slices. Curves of xi / L and of the cumulant within a slice cross between k = 0.28 and 0.31. The published value is near
k = 0.29, from L up to 24: M. Bernaschi et al., Nature 631, 749 (2024).

What to learn here: in the isotropic form k plays the part of 1 / T, with the transverse field -ln tanh(k) / (2 k). The
number of slices is large enough for the ground state: times the lowest gap of most samples it is far above 1, so more
slices change little. The cumulant within a slice and xi / L have such a limit, and are collapsed. The cumulant over all
of time has none, because longer times average the overlap away: its crossings depend on how the number of slices grows
with L. It has its largest value at few slices, from where z follows; z also follows from correlation times.
"""

import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import spinsim as ss


class Size(NamedTuple):
    """Settings for the runs of one size."""

    side: int
    slices: tuple[int, ...]  # one run for each
    samples: int
    ladder: tuple[float, float, int]
    thermalize: int
    sweeps: int


NEAR = 0.29
# Collapses use k in this window. With many samples chi^2 rejects wider ones: polynomials and corrections are too few.
WINDOW = (0.283, 0.297) if "--full" in sys.argv else (0.268, 0.31)
OMEGA = 1.0  # of corrections to scaling, where it is held
FAIR = 0.05  # probability of chi^2 from which on a fit serves
if "--short" in sys.argv:
    sizes = [Size(side, (8,), 4, (0.25, 0.32, 6), 300, 600) for side in (2, 3, 4)]
    shorter = [Size(side, (2, 4, 8), 4, (0.25, 0.32, 6), 100, 200) for side in (2, 3)]
elif "--full" in sys.argv:
    sizes = [
        Size(4, (64,), 2048, (0.25, 0.32, 32), 10_000, 20_000),
        Size(6, (144,), 2048, (0.25, 0.32, 32), 15_000, 30_000),
        Size(8, (256,), 512, (0.25, 0.32, 32), 40_000, 80_000),
        Size(10, (400,), 320, (0.26, 0.312, 32), 40_000, 80_000),
        Size(12, (576,), 256, (0.268, 0.306, 32), 60_000, 120_000),  # narrower, because its energies are wider apart
    ]
    shorter = [
        Size(6, (4, 6, 8, 12), 1024, (0.25, 0.32, 32), 5_000, 10_000),
        Size(8, (6, 8, 12, 18), 1024, (0.25, 0.32, 32), 5_000, 10_000),
        Size(12, (10, 16, 24, 36), 1024, (0.25, 0.32, 32), 5_000, 10_000),
    ]
else:
    sizes = [
        Size(4, (32,), 24, (0.24, 0.33, 8), 6_000, 12_000),
        Size(6, (48,), 24, (0.24, 0.33, 12), 6_000, 12_000),
    ]
    shorter = [Size(side, (4, 6, 8, 12), 24, (0.24, 0.33, 6), 500, 1_000) for side in (4, 6)]

began = time.perf_counter()


def measured(size: Size) -> list[ss.QuantumResult]:
    """Runs of one size, one for each number of slices."""
    model = ss.EdwardsAnderson(ss.square(size.side), samples=size.samples, seed=size.side)
    length: dict[str, Any] = {
        "sweeps": size.sweeps,
        "thermalize": size.thermalize,
        "measure_every": size.sweeps // 100,
    }
    # Four copies, with an overlap for each pair, fill the words of 128 lanes at 32 values of k.
    runs = [
        ss.quantum(model, np.linspace(*size.ladder), slices, replicas=4, correlation_times=1, **length)
        for slices in size.slices
    ]
    shown, at = ", ".join(map(str, size.slices)), time.perf_counter() - began
    print(f"L = {size.side}, {shown} slices, {size.samples} samples, {at:.0f} s since the beginning")
    for run in runs:
        rates, trips = run.swap_rate, run.round_trips.mean()
        print(f"    exchanges {rates.min():.2f} to {rates.max():.2f}, {trips:.1f} round trips of each replica")
        print(f"    {run.verdict}", flush=True)
    return runs


def collapsed(name: str, smallest: int, omega: float | str | None) -> Any:
    """Collapse from a smallest size on, printed; None where there is none."""
    form = "no corrections" if omega is None else "omega fitted" if omega == "fit" else f"omega = {omega:g}"
    start = f"{name} from L = {smallest} on, {form}"
    try:
        found = ss.collapse(results, name, near=NEAR, smallest=smallest, omega=omega, window=WINDOW, degree=3)
    except ss.InputError as error:
        print(f"{start}: {error}")
        return None
    exponents = {"nu": (found.nu, found.nu_error)} | ({"omega": (found.omega, found.omega_error)} if omega else {})
    shown = [
        f"{symbol} = {value:.2f} +- {error:.2f}" if error < value else f"{symbol} is not determined"
        for symbol, (value, error) in exponents.items()
        if error
    ]
    print(
        f"{start}: k_c = {found.critical:.4f} +- {found.critical_error:.4f}, {', '.join(shown)}, "
        f"chi^2 = {found.chi2:.1f} of {found.freedom}, probability {found.probability:.2g}",
        flush=True,
    )
    return found


def print_dynamic_exponents(
    sides: list[int], runs: list[ss.QuantumResult], at: float, name: str | None, words: str
) -> None:
    """Exponent z from each smallest size on that leaves two."""
    for smallest in sides[:-1]:
        start = f"z at k = {at:.4f} from {words}, L = {smallest} on"
        try:
            z = ss.dynamic_exponent(runs, at, name, smallest=smallest)
        except ss.InputError as error:
            print(f"{start}: {error}")
            continue
        times = ", ".join(f"{time:.1f} +- {error:.1f}" for time, error in zip(z.values, z.errors, strict=True))
        fair = f", probability {z.probability:.2g}" if z.freedom else ""
        print(f"{start}: {z.value:.2f} +- {z.error:.2f}{fair}, times {times} slices")


results = [run for size in sizes for run in measured(size)]
comparisons = ss.compare_sizes(results, "overlap", NEAR)
for comparison in comparisons:
    for pair in comparison.crossings:
        found, both = pair.crossing, " and ".join(pair.labels)
        field = -np.log(np.tanh(found.value)) / (2 * found.value)
        where = found.reason or f"k = {found.value:.4f} +- {found.error:.4f}, Gamma = {field:.3f}"
        print(f"{comparison.name} of {both}: {where}")

sides = [size.side for size in sizes]
fits = [
    collapsed(name, smallest, omega)
    for name in ("overlap_correlation_length_over_L", "slice_overlap_binder_cumulant")
    for omega, fewest in ((None, 2), (OMEGA, 3), ("fit", 4))  # sizes
    for smallest in sides[: max(len(sides) - fewest + 1, 0)]
]

# Times are compared at the k_c of xi / L that has the smallest error among fits with a fair chi^2, or at the published.
good = [
    fit for fit in fits
    if fit and fit.name == "overlap_correlation_length_over_L" and fit.probability > FAIR
    and WINDOW[0] < fit.critical - fit.critical_error and fit.critical + fit.critical_error < WINDOW[1]
]  # fmt: skip
best = min(good, key=lambda fit: fit.critical_error, default=None)
critical, off = (NEAR, 0.0) if best is None else (best.critical, best.critical_error)
for at in sorted({critical - off, critical, critical + off, NEAR}):
    print_dynamic_exponents(sides, results, at, "overlap_correlation_time_over_slices", "correlation times")
short_times = [run for size in shorter for run in measured(size)]
print_dynamic_exponents([size.side for size in shorter], short_times, critical, None, "largest cumulants")

figure = Path(tempfile.mkdtemp(prefix="spinsim-")) / "quantum_glass_transition.png"
if "--figure" in sys.argv:
    figure = Path(sys.argv[sys.argv.index("--figure") + 1])
ss.plot(results, "crossings", observable="overlap", near=NEAR)["crossings"].savefig(figure, dpi=300)
print(f"Figure in {figure}, {time.perf_counter() - began:.0f} s")
