"""The gap of the 4 x 4 quantum spin glass, for many samples of its couplings.

    python examples/quantum_gap.py            100 samples, about half a minute
    python examples/quantum_gap.py --short    the form that the tests run

Distribution of ln(gap) over 100 samples of the +-J glass at three values of k. A larger k, which is a weaker transverse
field, lowers the gaps and broadens their distribution.

The layers of the transfer matrix are slices of imaginary time. In the isotropic form each slice has the couplings J of
the glass and ferromagnetic bonds to the next slice, all multiplied by k. The gap ln(lambda_e / lambda_o) between the
leading even and odd levels is the gap of the quantum Hamiltonian times the time step; it closes at a transition.

What to learn here: many samples in one call, and how much gaps differ between samples near a transition.
"""

import sys

import numpy as np
from matplotlib.figure import Figure

import spinsim as ss

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

figure = Figure(figsize=(6.4, 3.4), layout="constrained")
axes = figure.subplots()
edges = list(np.linspace(np.log(gap.min()), np.log(gap.max()), 16))
for k, gaps in zip(result.k, gap.T, strict=True):
    axes.hist(np.log(gaps), edges, histtype="step", label=f"$k = {k}$")
axes.set(xlabel="ln(gap)", ylabel="samples")
axes.legend()
if "--figure" in sys.argv:
    figure.savefig(sys.argv[sys.argv.index("--figure") + 1], dpi=150)
