"""The multicritical point of the +-J model on the Nishimori line, from collapses in the share p of positive bonds.

    python examples/nishimori.py                   the square lattice, two minutes on a laptop
    python examples/nishimori.py --full            2,000 samples of L = 8 to 32, on a GPU
    python examples/nishimori.py --full --cubic    the cubic lattice, L = 4 to 16
    python examples/nishimori.py --short           the form that the tests run
    python examples/nishimori.py --figure F        where the figure goes

On the line exp(2 / T) = p / (1 - p) the energy is known exactly, -(2 p - 1) a bond, and averages of the magnetisation
equal those of the overlap. It meets the boundary of the ferromagnet at the multicritical point. (a) xi / L on the line
against p. (b) The same against (p - p*) L^(1 / nu). Published: p* = 0.89078(8) of the square lattice (arXiv
2505.04298), 0.76820(4) of the cubic lattice (M. Hasenbusch et al., Phys. Rev. B 76, 184202 (2007)).

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

cubic = "--cubic" in sys.argv
lattice, near = (ss.cubic, 0.7682) if cubic else (ss.square, 0.8908)
sides: tuple[int, ...]
if "--short" in sys.argv:
    sides, samples, sweeps = (4, 6, 8), 32, 200
elif "--full" in sys.argv:
    sides, samples, sweeps = ((4, 6, 8, 12, 16) if cubic else (8, 12, 16, 24, 32)), 2000, 10_000
else:
    sides, samples, sweeps = ((4, 6, 8) if cubic else (6, 8, 12, 16)), 256, 2000

began, runs = time.perf_counter(), []
for side in sides:
    for k, share in enumerate(near + np.linspace(-0.3, 0.2, 6) / side ** (2 / 3)):
        on_line = 2 / np.log(share / (1 - share))
        # Different samples for each p: its points are independent, as the covariance of a fit takes them to be.
        model = ss.EdwardsAnderson(lattice(side), samples=samples, seed=1000 * side + k, bond_fraction=share)
        ladder = np.linspace(on_line, 2 * on_line, 8)  # replicas forget their states at the hot end
        runs.append(ss.temper(model, ladder, sweeps, sweeps, replicas=2, seed=k + 1, magnetization_modes=True))
    print(f"L = {side}: {time.perf_counter() - began:.0f} s since the beginning", flush=True)

sizes = ss.sizes_along(runs, "bond_fraction", at="nishimori")
bonds = 3 if cubic else 2  # a site
for size in sizes:
    energy = size.rows["energy_per_site"]
    away = (energy[0] + bonds * (2 * size.x - 1)) / energy[1:].std(axis=0)
    print(f"L = {size.side:g}: energies miss the exact ones by {np.abs(away).max():.1f} errors where they do most")

for name in ("overlap_correlation_length_over_L", "overlap_binder_cumulant"):
    for smallest in sides[: max(1, len(sides) - 2)]:
        found = ss.collapse(sizes, name, near=near, smallest=smallest)
        print(
            f"{name} from L = {smallest} on: p* = {found.critical:.5f} +- {found.critical_error:.5f}, "
            f"nu = {found.nu:.3f} +- {found.nu_error:.3f}, "
            f"chi^2 = {found.chi2:.1f} of {found.freedom}, probability {found.probability:.2g}"
        )

found = ss.collapse(sizes, near=near)
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
