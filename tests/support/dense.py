"""A model for each kernel of dense models, beside the oracle."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from engines import DENSE, complete, normal, random_graph, random_signs, run_both

from spinsim.engine.moves.metropolis import dense_cuda as cuda
from spinsim.engine.moves.metropolis import dense_cuda as cuda_bytes
from spinsim.engine.moves.metropolis.dense import DensePlan
from spinsim.engine.moves.metropolis.dense_cuda import matrix
from spinsim.engine.moves.metropolis.dense_cuda import signs as of_signs
from spinsim.model.ising import Ising

KERNELS = {
    "signs": (lambda: random_signs(complete(130), 1), None, 16, 1),
    "signs-samples-field": (lambda: Ising(complete(131), 2.0 * signs(8515, 2), np.arange(131) % 3), None, 16, 1),
    "signs-and-zeros": (lambda: Ising(complete(141), np.arange(9870) % 3 - 1.0), None, 16, 1),
    "pairs-without-bonds": (lambda: random_signs(random_graph(130, 8400, 3), 1), 1, 16, 1),
    "three-bytes": (DENSE["samples-field"], 3, 32, 1),
    "three-bytes-two-blocks": (DENSE["samples-field"], 3, 16, 2),
    "three-bytes-wide": (lambda: Ising(complete(140), 8_355_711 - np.arange(9730) % 3 * 8_355_000), 3, 16, 1),
    "three-bytes-wide-two-blocks": (lambda: Ising(complete(300), gaussian_integers(44850)), 3, 16, 2),
    "four-bytes": (lambda: normal(complete(129), 1, 2.0**-24, field=0.5), 4, 32, 1),
    "four-bytes-two-blocks": (lambda: normal(complete(129), 1, 2.0**-24, field=0.5), 4, 16, 2),
    "eight-bytes": (DENSE["wide-integers"], 8, 16, 1),
}
"""Models, bytes of a coupling (None of signs), replicas of a thread block, blocks of a cluster."""


def gaussian_integers(bonds: int) -> npt.NDArray[np.float64]:
    """Random ones of 24 bits."""
    return np.rint(np.random.default_rng(5).normal(0, 2**20, bonds))


def signs(bonds: int, samples: int) -> npt.NDArray[np.float64]:
    """Random ones, (samples, bonds)."""
    return np.random.default_rng(7).choice([-1.0, 1.0], (samples, bonds))


def check_kernel(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """That a kernel of such couplings and groups of replicas equals the oracle."""
    make, size, group, cluster = KERNELS[name]
    monkeypatch.setattr(cuda_bytes, "LARGE", 1 if group > 16 else 1024)
    monkeypatch.setattr(cuda, "has_clusters", lambda device: cluster > 1)
    model = make()
    plan = DensePlan(model)
    if of_signs(plan) is None:
        couplings = matrix(plan)
        assert couplings.bytes == size
        assert cuda_bytes.groups(couplings, model.sites, 40, 2**18, cluster > 1) == (group, cluster)
    else:
        assert size is None
    run_both("cuda", model, 37, np.linspace(0, 2, 37) / model.energy_scale, (1, 2), zero_acceptance=0.7)
