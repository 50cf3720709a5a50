"""The critical field of the two-dimensional quantum +-J glass in continuous time, from curves at several time steps.

    python examples/continuous_time.py             32 samples of L = 2 and 4, some minutes on a laptop
    python examples/continuous_time.py --full      256 to 1,024 samples of L = 4, 6 and 8, on a GPU
    python examples/continuous_time.py --short     the form that the tests run

(a) xi / L of the overlap against the transverse field Gamma for L = 4, 6 and 8 (``--full``), extrapolated to infinitely
many slices. (b) Fields at which curves of two sizes cross, at each time step Delta tau and in the limit. The cross is
the crossing of L = 4 and 8 in the isotropic form, whose time step is k = 0.2845 (examples/quantum_glass_transition.py).
The inverse temperature beta = L^2 / 2 J is large enough for the ground state of most samples.

What to learn here: the limit of infinitely many slices with ``ss.extrapolate``, by Delta tau^2 alone and with Delta
tau^4, and crossings of the curves in that limit.
"""

import itertools
import sys
import time

import matplotlib.style
import numpy as np
from matplotlib.figure import Figure

import spinsim as ss

matplotlib.style.use("spinsim.paper")  # one column of a paper
NAME = "overlap_correlation_length_over_L"
samples_of: dict[int, int] = {2: 32, 4: 32}
steps, points, sweeps, gamma = (2, 3, 4, 6), 16, 2000, (1.6, 3.0)  # slices for each unit of beta; fields
if "--short" in sys.argv:
    samples_of, points, sweeps = {2: 16, 3: 16}, 8, 200
elif "--full" in sys.argv:
    samples_of, points, sweeps, gamma = {4: 1024, 6: 512, 8: 256}, 32, 16_000, (1.8, 2.7)

fields, began, curves = np.linspace(*gamma, points), time.perf_counter(), {}
for side, samples in samples_of.items():
    model, runs = ss.EdwardsAnderson(ss.square(side), samples=samples, seed=side), []
    beta = side**2 / 2
    for step in steps:
        slices = 2 * round(step * beta / 2)
        run = ss.quantum(
            model, gamma=fields, beta=beta, slices=slices, sweeps=sweeps, thermalize=sweeps // 2, replicas=4,
            measure_every=sweeps // 100, correlation_times=1, series="none",
        )  # fmt: skip
        runs.append(run)
        rate, at = run.swap_rate.min(), time.perf_counter() - began
        print(f"L = {side}, {slices} slices, {at:.0f} s, exchanges {rate:.2f} or more: {run.verdict[:70]}", flush=True)
    tables = [ss.table(run, columns=[NAME]) for run in runs]
    at_steps = [(np.asarray(table[NAME]), np.asarray(table[f"{NAME}_error"])) for table in tables]
    limits = [ss.extrapolate(runs, order=order).estimates[NAME] for order in (2, 4)]
    curves[side] = [*at_steps, *((limit.value, limit.error) for limit in limits)]
    for order, limit in zip((2, 4), limits, strict=True):
        share = (limit.probability < 0.05).mean()
        print(f"L = {side}, up to Delta tau^{order}: {share:.0%} of points have a chi^2 of probability below 5%")


def crossing(one: tuple[np.ndarray, np.ndarray], other: tuple[np.ndarray, np.ndarray]) -> tuple[float, float]:
    """Field where two curves cross, by a cubic through their difference, and its error; NaN without a crossing."""
    apart, error = other[0] - one[0], np.hypot(one[1], other[1])
    fit = np.polynomial.Polynomial.fit(fields, apart, 3, w=1 / error)
    roots = [
        float(root.real)
        for root in np.asarray(fit.roots(), complex)
        if abs(root.imag) < 1e-9 and fields[0] < root.real < fields[-1]
    ]
    if not roots:
        return np.nan, np.nan
    root = min(roots, key=lambda each: abs(each - 2.2))
    # Points of a ladder share their samples: all of a curve moves together, by the error of a single point.
    return root, float(np.interp(root, fields, error) / abs(fit.deriv()(root)))


names = [*(f"Delta tau = 1/{step}" for step in steps), "limit by Delta tau^2", "limit with Delta tau^4"]
found = {
    pair: [crossing(*each) for each in zip(curves[pair[0]], curves[pair[1]], strict=True)]
    for pair in itertools.combinations(samples_of, 2)
}
for (small, large), values in found.items():
    for name, (value, error) in zip(names, values, strict=True):
        print(f"L = {small} and {large}, {name}: Gamma = {value:.3f} +- {error:.3f}")

figure = Figure(figsize=(3.4, 4.6))
above, below = figure.subplots(2, 1)
for (side, each), marker in zip(curves.items(), "os^", strict=False):
    above.errorbar(fields, *each[-1], fmt=marker, label=f"$L = {side}$")
squares = [*(1 / step**2 for step in steps), 0.0]
for number, ((small, large), values) in enumerate(found.items()):
    centres, errors = np.array([*values[:-2], values[-1]]).T
    below.errorbar(
        np.array(squares) + 0.003 * number, centres, errors, fmt="os^"[number], label=f"$L = {small}, {large}$"
    )
below.plot(0.2845**2, -np.log(np.tanh(0.2845)) / (2 * 0.2845), "kx", label="isotropic form")
above.set(xlabel=r"transverse field $\Gamma$ ($J$)", ylabel=r"$\xi_q / L$ at $\Delta\tau = 0$")
below.set(xlabel=r"$(J\Delta\tau)^2$", ylabel=r"$\Gamma$ where curves cross ($J$)")
for panel, letter in ((above, "a"), (below, "b")):
    panel.legend()
    panel.set_title(f"({letter})", loc="left")
if "--figure" in sys.argv:
    figure.savefig(sys.argv[sys.argv.index("--figure") + 1])
