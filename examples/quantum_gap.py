"""The gap of the 4 x 4 quantum spin glass, for many samples of its couplings.

    python examples/quantum_gap.py            100 samples, about half a minute
    python examples/quantum_gap.py --short    the form that the tests run

Share of 100 samples of the +-J glass whose gap is smaller than the abscissa, at three values of k. A larger k, which is
a weaker transverse field, lowers the gaps and broadens their distribution.

The layers of the transfer matrix are slices of imaginary time. In the isotropic form each slice has the couplings J of
the glass and ferromagnetic bonds to the next slice, all multiplied by k. The gap ln(lambda_e / lambda_o) between the
leading even and odd levels is the gap of the quantum Hamiltonian times the time step; it closes at a transition.

What to learn here: many samples in one call, and how much gaps differ between samples near a transition.
"""

import sys

import matplotlib.style
import numpy as np
from matplotlib.figure import Figure

import spinsim as ss

matplotlib.style.use("spinsim.paper")  # one column of a paper
short = "--short" in sys.argv
samples, couplings = (4, [0.27]) if short else (100, [0.25, 0.27, 0.29])

model = ss.EdwardsAnderson(ss.square(4), samples=samples, seed=2026)
result = ss.transfer(model, k=couplings, eigenvalues=1)

# (samples, couplings): both sectors have one level here
gap = result.levels[:, :, 0, 0] - result.levels[:, :, 1, 0]

print("       k   smallest      median     largest    transverse field")
for k, gaps in zip(result.k, gap.T, strict=True):
    field = -np.log(np.tanh(k)) / (2 * k)
    print(f"{k:8.3f} {gaps.min():10.5f} {np.median(gaps):11.5f} {gaps.max():11.5f} {field:12.4f}")

figure = Figure()
axes = figure.subplots()
for k, gaps, line in zip(result.k, gap.T, ("-", "--", ":"), strict=False):
    axes.ecdf(gaps, label=f"$k = {k}$", linestyle=line)
axes.set(
    xlabel=r"gap $\ln(\lambda_e / \lambda_o)$", xscale="log", ylabel="share of samples with a smaller gap", ylim=(0, 1)
)
axes.set_xticks([0.1, 0.2, 0.3, 0.5, 0.8], ["0.1", "0.2", "0.3", "0.5", "0.8"])
axes.minorticks_off()
axes.legend()
if "--figure" in sys.argv:
    figure.savefig(sys.argv[sys.argv.index("--figure") + 1])
