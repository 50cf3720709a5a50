"""Energies of two terms on every device against the oracle, bit for bit."""

from __future__ import annotations

import pytest
from engines import TERMS, TERMS_TEMPERED, around, run_both, temper_both

from spinsim.engine import choose_packing
from spinsim.packing import Packing


@pytest.mark.parametrize("name", TERMS)
def test_kernels_equal_the_oracle(name: str) -> None:
    make, pair = TERMS[name]
    model = make()
    assert choose_packing(model) is Packing.ANISOTROPIC
    run_both("cpu", model, 130, around(pair, 130), (1, 9))


@pytest.mark.parametrize(
    ("beta", "options"),
    [
        (0.5, {"rng_rounds": 7}),
        ([[0.5, 0.3]], {"zero_acceptance": 1.0}),
        ([0.0, 0.4, 3.0], {}),
        ([[0.0, 0.4], [0.4, 0.0], [40.0, 1e-9]], {"zero_acceptance": 0.7}),
    ],
)
def test_options(beta: list[float], options: dict[str, object]) -> None:
    run_both("cpu", TERMS["square-signs-odd"][0](), 3, beta, (4,), **options)


@pytest.mark.parametrize("name", TERMS_TEMPERED)
def test_tempering_equals_the_oracle(name: str) -> None:
    make, beta, copies = TERMS_TEMPERED[name]
    state = temper_both("cpu", make(), beta, copies, [(1, 1), (4, 2), (3, 1)])
    assert 0 < state.accepts.sum() < state.attempts.sum()
