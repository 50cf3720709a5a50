"""The critical point and the conformal charge of the square ferromagnet, from strips of a few sites.

    python examples/strips.py            some ten seconds
    python examples/strips.py --short    the form that the tests run

Temperatures at which xi / L of strips of widths L - 1 and L + 1 cross, against 1 / L^3 for L = 5 to 15, before and
after a correction of order L^-3 is removed. Both converge to the exact T_c (dotted), the corrected ones much faster.

What to learn here: transfer matrices, phenomenological renormalisation, and how fast finite-size estimates converge.
"""

import sys

import matplotlib.style
import numpy as np
from matplotlib.figure import Figure
from scipy.optimize import brentq

import spinsim as ss
from spinsim.analysis.strips import conformal_charges, extrapolate

matplotlib.style.use("spinsim.paper")  # one column of a paper

short = "--short" in sys.argv
widths = np.arange(4, 11 if short else 17, 2)


def scaled_length(width: int, temperature: float) -> float:
    """Correlation length over width of a strip of the ferromagnet."""
    result = ss.transfer(ss.Ising(ss.chain(width)), temperature=temperature, eigenvalues=1, tolerance=1e-12)
    return float(result.correlation_length[0, 0, 1, 0]) / width


# At the transition xi is proportional to the width, so xi / L of two widths cross there, up to corrections L^-3.
crossings = [
    brentq(lambda t, w=width: scaled_length(w, t) - scaled_length(w + 2, t), 2.1, 2.4, xtol=1e-12)
    for width in map(int, widths[:-1])
]
middle = widths[:-1] + 1
better = extrapolate(middle, crossings, 3)
best = extrapolate(middle[1:], better, 5)

print("  widths     crossing   without L^-3   and L^-5")
for i, width in enumerate(widths[:-1]):
    more = "".join(f"{value:13.7f}" for value in ([better[i - 1]] if i else []) + ([best[i - 2]] if i > 1 else []))
    print(f"{width:4d},{width + 2:3d} {crossings[i]:13.7f}{more}")
print(f"T_c = {best[-1]:.5f}, exact {ss.onsager.CRITICAL_TEMPERATURE:.5f}\n")

# At T_c the free energy of a strip differs from the plane's by pi c / (6 L^2), with the conformal charge c.
critical = ss.onsager.CRITICAL_TEMPERATURE
levels = [
    float(
        ss.transfer(ss.Ising(ss.chain(int(w))), temperature=ss.onsager.CRITICAL_TEMPERATURE).log_eigenvalue["even"][0]
    )
    for w in widths
]
charges = conformal_charges(widths, levels)
print("  widths    charge")
for width, charge in zip(widths, charges, strict=False):
    print(f"{width:4d},{width + 2:3d} {charge:10.6f}")
print(f"c = {extrapolate(middle, charges, 2)[-1]:.4f}, exact 1/2")

figure = Figure()
axes = figure.subplots()
axes.plot(1 / middle.astype(float) ** 3, crossings, "o", label="crossings of two widths")
axes.plot(1 / middle[1:].astype(float) ** 3, better, "s", label="without $L^{-3}$")
axes.axhline(ss.onsager.CRITICAL_TEMPERATURE, color="0.5", linestyle=":", label="exact $T_c$")
axes.set(xlabel="$L^{-3}$", ylabel=r"temperature where $\xi / L$ crosses ($J$)")
axes.legend()
if "--figure" in sys.argv:
    figure.savefig(sys.argv[sys.argv.index("--figure") + 1])
