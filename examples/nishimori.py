"""The multicritical point of the +-J model on the Nishimori line, from collapses in the share p of positive bonds.

    python examples/nishimori.py                   the square lattice, two minutes on a laptop
    python examples/nishimori.py --full            4,000 samples of L = 8 to 24, on a GPU
    python examples/nishimori.py --full --cubic    the cubic lattice, L = 4 to 12
    python examples/nishimori.py --short           the form that the tests run
    python examples/nishimori.py --figure F        where the figure goes

On the line exp(2 / T) = p / (1 - p) the energy is known exactly, -(2 p - 1) a bond, and averages of the magnetisation
equal those of the overlap. It meets the boundary of the ferromagnet at the multicritical point. (a) xi / L on the line
against p. (b) The same against (p - p*) L^(1 / nu). Published: p* = 0.89078(8) and nu about 1.5 of the square lattice
(arXiv 2505.04298), p* = 0.76820(4) and nu about 1 of the cubic lattice (M. Hasenbusch et al., Phys. Rev. B 76, 184202
(2007)).

What to learn here: ``ss.sizes_along`` compares sizes against a property of the model where each run has one value of
it, ladders that end at the temperature of interest, and a check against exact energies.
"""

import sys
import time

import matplotlib.style
import numpy as np
from matplotlib.figure import Figure

import spinsim as ss

matplotlib.style.use("spinsim.paper")  # one column of a paper

cubic, full = "--cubic" in sys.argv, "--full" in sys.argv
lattice, near, nu = (ss.cubic, 0.7682, 1.0) if cubic else (ss.square, 0.8908, 1.5)
sides: tuple[int, ...] = (4, 6, 8) if cubic else (6, 8, 12, 16)
samples, sweeps, widest, degree = 256, 2000, 0.25, 4  # p differs from ``near`` by up to widest / L^(1 / nu)
copies, temperatures, hottest = 2, 8, 2.0  # temperatures from that of the line to ``hottest`` times as much
if "--short" in sys.argv:
    sides, samples, sweeps = (4, 6, 8), 32, 200
elif full:
    # Many samples have small errors: close to the multicritical point a polynomial of lower degree serves.
    sides, samples, sweeps, widest, degree = ((4, 6, 8, 12) if cubic else (8, 12, 16, 24)), 4000, 12_000, 0.1, 3
    copies, temperatures, hottest = 4, 12, 1.35

began, runs = time.perf_counter(), []
for side in sides:
    for k, share in enumerate(near + np.linspace(-widest, widest, 6) / side ** (1 / nu)):
        on_line = 2 / np.log(share / (1 - share))
        # Different samples for each p: its points are independent, as the covariance of a fit takes them to be.
        model = ss.EdwardsAnderson(lattice(side), samples=samples, seed=1000 * side + k, bond_fraction=share)
        ladder = np.linspace(on_line, hottest * on_line, temperatures)  # replicas forget their states at the hot end
        runs.append(
            ss.temper(model, ladder, sweeps, sweeps, copies, seed=k + 1, series="none", magnetization_modes=True)
        )
    least = min(run.swap_rate.min() for run in runs[-6:])
    print(
        f"L = {side}: {time.perf_counter() - began:.0f} s since the beginning, exchanges {least:.2f} or more",
        flush=True,
    )

sizes = ss.sizes_along(runs, "bond_fraction", at="nishimori")
bonds = 3 if cubic else 2  # a site
for size in sizes:
    rows = size.rows
    known = -bonds * (2 * size.x - 1)
    equal = rows["overlap_binder_cumulant"] - rows["binder_cumulant"]
    off = [
        (each[0] - exact) / (each[1:].std(axis=0) + 1e-12)
        for each, exact in ((rows["energy_per_site"], known), (equal, 0))
    ]
    most = [np.abs(each).max() for each in off]
    print(f"L = {size.side:g}: energies miss the exact ones by {most[0]:.1f} errors where they do most")
    print(f"    cumulants of magnetisation and overlap differ by {most[1]:.1f}")

# Averages of the magnetisation equal those of the overlap, and need fewer sweeps.
lengths, cumulants = "correlation_length_over_L", "binder_cumulant"
for name in (lengths, cumulants, f"overlap_{lengths}", f"overlap_{cumulants}"):
    for smallest in sides[: max(1, len(sides) - 2)]:
        found = ss.collapse(sizes, name, near=near, smallest=smallest, degree=degree)
        print(
            f"{name} from L = {smallest} on: p* = {found.critical:.5f} +- {found.critical_error:.5f}, "
            f"nu = {found.nu:.3f} +- {found.nu_error:.3f}, "
            f"chi^2 = {found.chi2:.1f} of {found.freedom}, probability {found.probability:.2g}"
        )

found = ss.collapse(sizes, f"overlap_{lengths}", near=near, degree=degree)
figure = Figure(figsize=(3.4, 4.2))
above, below = figure.subplots(2, 1)
for points, marker in zip(found.points, "os^Dv", strict=False):
    above.errorbar(points.x, points.y, points.error, fmt=marker, label=f"$L = {points.side:g}$")
    below.errorbar(*found.scaled(points), fmt=marker)
ends = np.concatenate([found.scaled(points)[0] for points in found.points])
grid = np.linspace(ends.min(), ends.max(), 200)
below.plot(grid, np.polynomial.polynomial.polyval(grid, found.coefficients), color="0.5", zorder=1, label="fit")
above.axvline(near, color="0.5", linestyle=":", label="published $p^*$")
above.set(xlabel="share of positive bonds $p$", ylabel=r"$\xi_q / L$")
below.set(xlabel=r"$(p - p^*) L^{1/\nu}$", ylabel=r"$\xi_q / L$")
for panel, letter in ((above, "a"), (below, "b")):
    panel.legend()
    panel.set_title(f"({letter})", loc="left")
if "--figure" in sys.argv:
    figure.savefig(sys.argv[sys.argv.index("--figure") + 1])
