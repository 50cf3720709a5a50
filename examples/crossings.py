"""From files to a crossing plot: curves of several sizes meet at a critical point.

    python examples/crossings.py                       simulates three sizes first, ten seconds
    python examples/crossings.py --short               the form that the tests run
    python examples/crossings.py L4.h5 L6.h5 L8.h5     files that `spinsim temper` wrote

Binder cumulant and xi / L of the square ferromagnet, L = 6, 10 and 16, against temperature. Diamonds mark the crossings
of each pair of sizes, which approach T_c = 2.2692 (dotted) as the sizes grow; insets
enlarge them.

What to learn here: files read back as a table (pandas), as named axes (xarray) and as a figure, and crossings with
errors. `spinsim plot L4.h5 L6.h5 L8.h5` draws the same figure. Named axes require the extra xarray
(`pip install '.[xarray]'`); without it, a line says so and the example goes on.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np

import spinsim as ss

short = "--short" in sys.argv
files = [Path(name) for name in sys.argv[1:] if name.endswith(".h5")]
made = not files
folder = Path(tempfile.mkdtemp(prefix="spinsim-crossings-"))

if made:
    # The square ferromagnet with the exact T_c = 2.2692. Tempering simulates many temperatures at once.
    sides, sweeps = ((3, 4), 400) if short else ((6, 10, 16), 40_000)
    for side in sides:
        model = ss.Ising(ss.square(side))
        result = ss.temper(model, np.linspace(2.1, 2.45, 8), sweeps=sweeps, thermalize=sweeps // 10, replicas=4)
        files.append(result.save(folder / f"L{side}.h5"))
    print(f"Square ferromagnet, T_c = {ss.onsager.CRITICAL_TEMPERATURE:.4f}; files in {folder}")

# A row for each temperature: averages, their errors (NaN where they cannot be trusted), autocorrelation times.
table = ss.table(files[-1])
print(table[["temperature", "energy_per_site", "energy_per_site_error", "binder_cumulant"]].to_string(index=False))

# Series with named axes: (step, sample, copy, temperature).
results = [ss.load(file) for file in files]
try:
    energy = results[-1].dataset()["energy"].mean(["step", "sample", "copy"])
    print(f"Mean energy at T = {float(energy['temperature'][0]):.4g}: {float(energy[0]):.2f}")
except ss.InputError as error:
    print(error)  # xarray is missing

# Quantities that do not depend on the size at T_c have curves that cross there; errors from 500 bootstrap resamples.
comparisons = ss.compare_sizes(results, near=ss.onsager.CRITICAL_TEMPERATURE if made else None)
for comparison in comparisons:
    for pair in comparison.crossings:
        found = pair.crossing
        where = f"T = {found.value:.4f} +- {found.error:.4f}" if pair.trusted else found.reason or "error unknown"
        print(f"{comparison.name} of {' and '.join(pair.labels)}: {where}")

figure = Path(sys.argv[sys.argv.index("--figure") + 1]) if "--figure" in sys.argv else folder / "crossings.pdf"
ss.plot(results, "crossings")["crossings"].savefig(figure, dpi=300)
print(f"Figure in {figure}")
