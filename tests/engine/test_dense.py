"""The update of dense models against the oracle, bit for bit, and the choice of it."""

from __future__ import annotations

import numpy as np
import pytest
from engines import (
    DENSE,
    complete,
    configurations,
    ladder,
    normal,
    random_graph,
    random_signs,
    run_both,
    small,
    temper_both,
)

from spinsim.engine import Dynamics, create_engine
from spinsim.engine.choosing import update_of
from spinsim.engine.metropolis.dense import cuda
from spinsim.engine.metropolis.dense.matrix import matrix
from spinsim.engine.metropolis.dense.plan import DensePlan
from spinsim.engine.metropolis.dense.update import UPDATE
from spinsim.engine.metropolis.unpacked.update import UPDATE as UNPACKED

WIDTHS = {"small-integers": np.int16, "samples-field": np.int32, "wide-integers": np.int64, "several-bonds": np.int16}


@pytest.mark.parametrize("name", DENSE)
def test_kernels_equal_the_oracle(device: str, name: str) -> None:
    model, replicas = DENSE[name](), 37
    beta = np.linspace(0, 2, replicas) / model.energy_scale
    run_both(device, model, replicas, beta, (1, 2), zero_acceptance=0.7)
    assert update_of(model) is UPDATE
    assert DensePlan(model).double_couplings.dtype == WIDTHS[name]


KERNELS = {
    "signs": (lambda: random_signs(complete(130), 1), 0, 16),
    "pairs-without-bonds": (lambda: random_signs(random_graph(130, 8400, 3), 1), 1, 16),
    "three-bytes": (DENSE["samples-field"], 3, 32),
    "three-bytes-wide": (lambda: normal(complete(129), 1, 2.0**-24 * 5), 3, 16),
    "four-bytes": (lambda: normal(complete(129), 1, 2.0**-24, field=0.5), 4, 32),
    "eight-bytes": (DENSE["wide-integers"], 8, 16),
}


@pytest.mark.gpu
@pytest.mark.parametrize("name", KERNELS)
def test_kernels_of_all_couplings(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    check_kernel(name, monkeypatch)


def check_kernel(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """That a kernel of such couplings, and of groups of so many replicas, equals the oracle."""
    make, size, group = KERNELS[name]
    monkeypatch.setattr(cuda, "LARGE", 1 if group > 16 else 1024)
    model = make()
    assert matrix(DensePlan(model)).bytes == size
    run_both("cuda", model, 37, np.linspace(0, 2, 37) / model.energy_scale, (1,))


def test_tempering_and_snapshots(device: str) -> None:
    model = DENSE["samples-field"]()
    temper_both(device, model, ladder(0.5, 2.0, 3) / model.energy_scale, 2, [(2, 1), (1, 2)])
    engines = [update.on_cpu(model, 5, Dynamics(), 1) for update in (UPDATE, UNPACKED)]
    engines[0].set_beta(1 / model.energy_scale)
    engines[0].sweep(1)
    saved = engines[0].snapshot()
    for engine in engines:
        engine.set_beta(1 / model.energy_scale)
        engine.sweep(1)
        engine.restore(saved)
        engine.sweep(1)
    np.testing.assert_array_equal(*(configurations(engine) for engine in engines))


def test_dense_models_are_graphs_with_many_neighbours() -> None:
    assert update_of(small(complete(128))) is UNPACKED
    assert update_of(small(random_graph(2000, 140_000, 1))) is UNPACKED
    assert create_engine(DENSE["small-integers"](), 1, Dynamics()).packing is UPDATE.packing
