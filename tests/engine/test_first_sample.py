"""An engine of some of the samples moves them as an engine of all samples does, on every device."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from engines import GENERAL, GENERAL_TERMS, PACKED, SITE, TERMS, configurations, ladder

from spinsim.engine import Dynamics, create_engine
from spinsim.model.ising import Ising
from spinsim.packing import Packing

MODELS: dict[Packing, Callable[[], Ising]] = {
    Packing.REPLICA: PACKED["cubic-samples"],
    Packing.SITE: SITE["square-signs-samples"][0],
    Packing.UNPACKED: GENERAL["gaussian-samples-field"],
    Packing.ANISOTROPIC: TERMS["cubic-space-time"][0],
}


def check_part(device: str, model: Ising, first: int, replicas: int = 4) -> None:
    """That samples from ``first`` on alone have the very states, counts and exchanges that they have among all."""
    dynamics, mine = Dynamics(seed=2**40 + 17), slice(first, model.samples)
    part = model.of_samples(first, model.samples)
    whole = create_engine(model, replicas, dynamics, device)
    some = create_engine(part, replicas, Dynamics(seed=dynamics.seed, first_sample=first), device)
    assert some.packing == whole.packing
    np.testing.assert_array_equal(configurations(some), configurations(whole)[mine])
    for engine in (whole, some):
        engine.set_beta(0.6)
        engine.sweep(2)
    np.testing.assert_array_equal(some.snapshot()["spins"], whole.snapshot()["spins"][mine])
    for engine in (whole, some):
        engine.set_ladder(ladder(0.8, 2.0, replicas // 2), 2)
        engine.temper(5, 1)
    for name, array in whole.snapshot().items():
        np.testing.assert_array_equal(some.snapshot()[name], array[mine] if array.ndim else array, name)
    np.testing.assert_array_equal(some.counts().energy, whole.counts().energy[mine])


@pytest.mark.parametrize("packing", MODELS)
def test_samples_alone(packing: Packing) -> None:
    model = MODELS[packing]()
    check_part("cpu", model, 1)
    assert create_engine(model, 4, Dynamics(), "cpu").packing == packing


def test_samples_alone_of_two_general_terms() -> None:
    check_part("cpu", GENERAL_TERMS["gaussian"][0](), 1)


@pytest.mark.system
@pytest.mark.usefixtures("emulated")
@pytest.mark.parametrize("packing", MODELS)
def test_samples_alone_on_a_gpu(packing: Packing) -> None:
    check_part("cuda", MODELS[packing](), 1)


def test_what_belongs_to_all_samples_stays() -> None:
    """A sample that would fit a faster update alone moves as the others do, in their quantum."""
    couplings = np.ones((2, 8))
    couplings[1] = np.arange(8) / 4 + 0.125
    model = Ising(PACKED["chain-8"]().graph, couplings, np.array([[0.5], [0.25]]) * np.ones(8))
    first = model.of_samples(0, 1)
    assert (first.samples, first.quantum, first.magnitude) == (1, model.quantum, None)
    check_part("cpu", model, 1)
    engine = create_engine(first, 4, Dynamics(), "cpu")
    assert engine.packing is Packing.UNPACKED
