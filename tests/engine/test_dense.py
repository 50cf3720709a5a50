"""The update of dense models against the oracle, bit for bit, and the choice of it."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from dense import KERNELS, check_kernel
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
from numba import njit

import spinsim as ss
from spinsim.acceptance import LARGEST_EXPONENT
from spinsim.engine import Dynamics, create_engine
from spinsim.engine.choosing import update_of
from spinsim.engine.moves.metropolis.dense import ON_CPU, UPDATE, DensePlan, form_of
from spinsim.engine.moves.metropolis.dense_cpu import MARGIN, log_bounds
from spinsim.engine.moves.metropolis.unpacked import UPDATE as UNPACKED
from spinsim.model.ising import repeated
from spinsim.packing import Packing

WIDTHS = {"small-integers": np.int16, "samples-field": np.int32, "wide-integers": np.int64, "several-bonds": np.int16}


@pytest.mark.parametrize("name", DENSE)
def test_kernels_equal_the_oracle(device: str, name: str) -> None:
    model, replicas = DENSE[name](), 37
    beta = np.linspace(0, 2, replicas) / model.energy_scale
    run_both(device, model, replicas, beta, (1, 2), zero_acceptance=0.7)
    assert update_of(model) is UPDATE
    assert DensePlan(model).double_couplings.dtype == WIDTHS[name]


def test_forms_are_made_once_for_the_same_arrays() -> None:
    """Copies in groups share a form; other fields have their own, and so has a model whose arrays may be changed."""
    model = DENSE["small-integers"]()
    form = form_of(model, DensePlan)
    assert form_of(model, DensePlan) is form
    assert form_of(repeated(model, 3), DensePlan) is form
    assert form_of(model.in_field(1.0), DensePlan) is not form
    first = form_of(model, DensePlan)
    changeable = repeated(model, 1).of_samples(0, model.samples)
    changeable.couplings = model.couplings.copy()
    assert form_of(changeable, DensePlan) is not first
    for copied in (changeable, pickle.loads(pickle.dumps(model))):  # noqa: S301  (our own)
        assert copied.couplings.flags.writeable
        assert form_of(copied, DensePlan) is form_of(copied, DensePlan)


def test_forms_of_large_models_are_not_kept() -> None:
    """One coupling for all bonds is a read-only array of any size."""
    large = ss.Ising(ss.Graph(2_100, np.stack(np.triu_indices(2_100, 1), axis=1)), -1.0)
    assert not large.couplings.flags.writeable
    assert form_of(large, _new_object) is not form_of(large, _new_object)


def _new_object(_: ss.Ising) -> object:
    return object()


def test_close_calls() -> None:
    """Of the millions of uniforms of a long run some hundred lie within the margin, where all 64 bits decide."""
    model = DENSE["small-integers"]()
    states = []
    for update, replicas in ((UPDATE, 125), (UNPACKED, 128)):
        engine = update.on_cpu(model, replicas, Dynamics(seed=5), 1)
        engine.set_beta(np.linspace(0, 3, 128)[:replicas] / model.energy_scale)
        engine.sweep(200)
        states.append(configurations(engine)[..., :125])
    np.testing.assert_array_equal(*states)


def test_bounds_are_logarithms() -> None:
    @njit
    def bounds(uniform: np.ndarray) -> None:
        log_bounds(uniform)

    numbers = np.unique(np.concatenate([2.0 ** np.arange(31), np.random.default_rng(1).integers(1, 2**31, 10_000)]))
    found = np.append(0, numbers).astype(np.float32)
    expected = -np.log(found[1:].astype(np.float64) / 2**31)
    bounds(found)
    assert found[0] > LARGEST_EXPONENT + MARGIN
    np.testing.assert_allclose(found[1:] - MARGIN, expected, rtol=0, atol=MARGIN / 8)


@pytest.mark.gpu
@pytest.mark.parametrize("name", KERNELS)
def test_kernels_of_all_couplings(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    check_kernel(name, monkeypatch)


@pytest.mark.emulated
@pytest.mark.usefixtures("emulated")
@pytest.mark.parametrize("name", KERNELS)
def test_emulated_kernels_of_all_couplings(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    check_kernel(name, monkeypatch)


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
    assert update_of(small(complete(128))) is ON_CPU
    assert update_of(normal(complete(41), 1, 2.0**-20)) is ON_CPU
    assert update_of(normal(complete(40), 1, 2.0**-20)) is UNPACKED
    assert update_of(random_signs(complete(100), 1)).packing is Packing.REPLICA
    assert update_of(small(random_graph(2000, 140_000, 1))) is UNPACKED
    assert create_engine(DENSE["small-integers"](), 1, Dynamics()).packing is UPDATE.packing
