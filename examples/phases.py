"""A small neural network learns the two phases of the square ferromagnet from saved configurations.

    python examples/phases.py            half a minute
    python examples/phases.py --short    the form that the tests run

Probability of the ordered phase, as given by the network, for 16 x 16 spins against temperature. It was trained only
below T = 2.0 and above T = 2.6. The probability falls through 1/2 near T = 2.31; the exact T_c = 2.269 is dotted.

What to learn here: saving configurations, reading them with their labels, and applying a classifier to temperatures
that it has never seen. Source: J. Carrasquilla, R. G. Melko, Nature Physics 13, 431 (2017).
"""

import sys
import tempfile
from pathlib import Path

import matplotlib.style
import numpy as np
from matplotlib.figure import Figure

import spinsim as ss

matplotlib.style.use("spinsim.paper")  # one column of a paper
short = "--short" in sys.argv
side, sweeps = (8, 4000) if short else (16, 20_000)

# A ladder through the transition, T_c = 2.269. With measurements every 10 sweeps and every fifth of them saved,
# configurations of one replica are 50 sweeps apart; one bit per spin keeps the file small.
model = ss.Ising(ss.square(side))
temperatures = np.linspace(1.5, 3.0, 16)
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "phases.h5"
    ss.temper(model, temperatures, sweeps=sweeps, thermalize=sweeps // 10, save_configurations=5, seed=1, out=path)
    saved = ss.configurations(path)
    spins, temperature, sweep = saved[:], saved.temperature, saved.sweep
print(f"{len(saved)} configurations of {side} x {side} spins, {np.mean(saved.parity == 1):.0%} of them of even parity")

# Train on the first half of the run, test on the second: successive configurations are correlated.
first = sweep <= sweeps // 2
far = (temperature < 2.0) | (temperature > 2.6)  # only configurations far from T_c have a label

try:
    from sklearn.neural_network import MLPClassifier
except ImportError:
    print("scikit-learn is missing: python -m pip install scikit-learn to train the classifier")
else:
    # Reversing all spins does not change the phase, and doubles the training data.
    lessons, is_cold = spins[first & far], temperature[first & far] < ss.onsager.CRITICAL_TEMPERATURE
    network = MLPClassifier((32,), alpha=0.1, max_iter=1000, early_stopping=True, random_state=1)
    network.fit(np.concatenate([lessons, -lessons]), np.concatenate([is_cold, is_cold]))
    ordered = network.predict_proba(spins[~first])[:, 1]
    probability = np.array([ordered[temperature[~first] == t].mean() for t in temperatures])
    print("      T   probability of the ordered phase")
    for t, p in zip(temperatures, probability, strict=True):
        print(f"{t:7.3f}  {p:7.3f}  {'#' * round(40 * p)}")

    # The phases change where the network is undecided; the larger the lattice, the closer to T_c.
    k = int(np.argmax(probability < 0.5))
    share = (probability[k - 1] - 0.5) / (probability[k - 1] - probability[k])
    crossing = temperatures[k - 1] + share * (temperatures[k] - temperatures[k - 1])
    print(f"undecided at T = {crossing:.3f}; the infinite lattice changes at {ss.onsager.CRITICAL_TEMPERATURE:.3f}")

    figure = Figure()
    axes = figure.subplots()
    axes.plot(temperatures, probability, "o-", label=f"$L = {side}$")
    axes.axvline(ss.onsager.CRITICAL_TEMPERATURE, color="0.5", linestyle=":", label="exact $T_c$")
    axes.axvspan(2.0, 2.6, color="0.9", label="not trained")
    axes.set(xlabel="temperature $T$ ($J$)", ylabel="probability of the ordered phase")
    axes.legend()
    if "--figure" in sys.argv:
        figure.savefig(sys.argv[sys.argv.index("--figure") + 1])
