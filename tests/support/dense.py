"""A model for each kernel of dense models, beside the oracle."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from engines import DENSE, complete, normal, random_graph, random_signs, run_both

from spinsim.engine.metropolis.dense import cuda_bytes
from spinsim.engine.metropolis.dense.matrix import matrix
from spinsim.engine.metropolis.dense.plan import DensePlan
from spinsim.engine.metropolis.dense.signs import signs as of_signs
from spinsim.model.ising import Ising

KERNELS = {
    "signs": (lambda: random_signs(complete(130), 1), None, 16),
    "signs-samples-field": (lambda: Ising(complete(131), 2.0 * signs(8515, 2), np.arange(131) % 3), None, 16),
    "signs-and-zeros": (lambda: Ising(complete(141), np.arange(9870) % 3 - 1.0), None, 16),
    "pairs-without-bonds": (lambda: random_signs(random_graph(130, 8400, 3), 1), 1, 16),
    "three-bytes": (DENSE["samples-field"], 3, 32),
    "three-bytes-wide": (lambda: Ising(complete(140), 8_355_711 - np.arange(9730) % 3 * 8_355_000), 3, 16),
    "four-bytes": (lambda: normal(complete(129), 1, 2.0**-24, field=0.5), 4, 32),
    "eight-bytes": (DENSE["wide-integers"], 8, 16),
}
"""Models, bytes of a coupling, None of such as are 0 or of one magnitude, and replicas of a group."""


def signs(bonds: int, samples: int) -> npt.NDArray[np.float64]:
    """Random ones, (samples, bonds)."""
    return np.random.default_rng(7).choice([-1.0, 1.0], (samples, bonds))


def check_kernel(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """That a kernel of such couplings, and of groups of so many replicas, equals the oracle."""
    make, size, group = KERNELS[name]
    monkeypatch.setattr(cuda_bytes, "LARGE", 1 if group > 16 else 1024)
    model = make()
    plan = DensePlan(model)
    assert (matrix(plan).bytes if of_signs(plan) is None else None) == size
    run_both("cuda", model, 37, np.linspace(0, 2, 37) / model.energy_scale, (1, 2), zero_acceptance=0.7)
