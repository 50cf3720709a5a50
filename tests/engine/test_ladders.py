"""Tempering on every device against the oracle, bit for bit."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from engines import ALONE, TEMPERED, configurations, ladder, overlaps, temper_both

from spinsim.engine import Dynamics, create_engine
from spinsim.engine.measuring.correlations import OVERLAPS_ONLY, WITHOUT_TIMES, Quantities
from spinsim.engine.protocols import LadderMeasurement
from spinsim.errors import InputError
from spinsim.model.disorder import EdwardsAnderson
from spinsim.model.ising import Ising
from spinsim.model.lattice import cubic, square


@pytest.mark.parametrize("name", TEMPERED)
def test_tempering_equals_the_oracle(device: str, name: str) -> None:
    make, beta, copies = TEMPERED[name]
    state = temper_both(device, make(), beta, copies, [(1, 1), (4, 2), (3, 1)])
    assert 0 < state.accepts.sum() < state.attempts.sum()


@pytest.mark.parametrize("name", ["cubic-samples", "gaussian", "site-packed"])
def test_one_temperature_is_a_ladder_without_exchanges(device: str, name: str) -> None:
    make, beta, copies = TEMPERED[name]
    state = temper_both(device, make(), beta[:1], copies, [(1, 1), (3, 2)])
    assert state.attempts.shape == (len(state.trips), 0)
    assert not state.trips.any()


@pytest.mark.parametrize("name", ALONE)
def test_a_replica_alone_is_measured(device: str, name: str) -> None:
    make, beta = ALONE[name]
    temper_both(device, make(), np.array([beta]), 1, [(2, 1), (3, 2), (1, 0)])
    one, other = (create_engine(make(), 1, Dynamics(), where) for where in (device, "cpu"))
    for engine in (one, other):
        engine.set_ladder([beta], 1)
    asked = [*one.temper_measured(12, 1, 1, OVERLAPS_ONLY), *one.temper_measured(2, 3, 2, OVERLAPS_ONLY)]
    one.temper(2, 1)  # what was asked for is not disturbed
    for k, begun in enumerate(asked):
        other.temper(*((1, 1) if k < 12 else (3, 2)))
        for found, expected in zip(flat(begun()), flat(other.begin_measurement(OVERLAPS_ONLY)()), strict=True):
            np.testing.assert_array_equal(found, expected)
    other.temper(2, 1)
    np.testing.assert_equal(one.counts(), other.counts())
    np.testing.assert_array_equal(configurations(one), configurations(other))


@pytest.mark.parametrize("rng_rounds", [7, 10])
@pytest.mark.parametrize("couplings", ["pm-j", "gaussian"])
def test_tempering_counts_round_trips(device: str, couplings: str, rng_rounds: int) -> None:
    model = EdwardsAnderson(square(4), samples=2, couplings=couplings, seed=1)
    state = temper_both(device, model, ladder(0.8, 2.0, 3), 4, [(40, 1), (25, 2)], rng_rounds=rng_rounds)
    assert state.trips.min() > 0


@pytest.mark.gpu
@pytest.mark.parametrize("model", [lambda: EdwardsAnderson(cubic(26), seed=1), lambda: Ising(square(131, 129))])
def test_tempering_from_global_memory(not_spread: None, model: Callable[[], Ising]) -> None:
    temper_both("cuda", model(), ladder(2.0, 2.2, 3), 2, [(2, 1), (3, 2)])


@pytest.mark.gpu
@pytest.mark.parametrize("name", ["cubic-samples", "cubic-shared-signs", "hot", "open-square", "field", "graph"])
def test_tempering_by_a_kernel_for_each_step(not_spread: None, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from spinsim.engine.moves.metropolis.replica_packed import cuda_rounds

    monkeypatch.setattr(cuda_rounds, "LADDER_BYTES", 2**30)
    monkeypatch.setattr(cuda_rounds, "suits_global_rounds", lambda *_: False)
    make, beta, copies = TEMPERED[name]
    temper_both("cuda", make(), beta, copies, [(3, 1), (2, 2)])


REPLICA_TEMPERED = [name for name in TEMPERED if TEMPERED[name][0]().magnitude]


@pytest.mark.gpu
@pytest.mark.parametrize("name", REPLICA_TEMPERED)
def test_tempering_of_few_samples_in_shared_memory(not_spread: None, name: str) -> None:
    make, beta, copies = TEMPERED[name]
    temper_both("cuda", make(), beta, copies, [(3, 1), (2, 2)])


@pytest.mark.gpu
@pytest.mark.parametrize("name", REPLICA_TEMPERED)
def test_tempering_of_small_lattices_from_global_memory(
    not_spread: None, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from spinsim.engine.moves.metropolis.replica_packed import cuda_lattices

    monkeypatch.setattr(cuda_lattices, "shared_threads", lambda *_: 0)
    make, beta, copies = TEMPERED[name]
    temper_both("cuda", make(), beta, copies, [(3, 1), (2, 2)])


@pytest.mark.gpu
@pytest.mark.parametrize("side", [16, 30])
def test_tempering_of_a_sample_that_is_spread(side: int) -> None:
    temper_both("cuda", EdwardsAnderson(cubic(side), seed=1), ladder(1.0, 2.2, 32), 4, [(4, 1), (3, 2)])


@pytest.mark.gpu
@pytest.mark.parametrize("copies", [2, 3])
def test_devices_agree_after_a_thousand_rounds(copies: int) -> None:
    model = EdwardsAnderson(cubic(6), samples=3, seed=1)
    engines = [create_engine(model, copies * 20, Dynamics(), device) for device in ("cpu", "cuda")]
    for engine in engines:
        engine.set_ladder(ladder(0.5, 2.0, 20), copies)
        engine.temper(1000, 1)
    for one, other in zip(*(engine.begin_exchange()() for engine in engines), strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(*(overlaps(engine) for engine in engines))
    np.testing.assert_array_equal(*(configurations(engine) for engine in engines))


SPLIT = {
    "packed": lambda: EdwardsAnderson(cubic(4), samples=2, seed=1),
    "site": lambda: Ising(square(256, 2)),
    "general": lambda: EdwardsAnderson(square(4), couplings="gaussian", seed=1),
}


@pytest.mark.parametrize("name", SPLIT)
def test_tempering_in_parts_changes_nothing(device: str, name: str) -> None:
    beta = ladder(1.0, 2.4, 4)
    whole, parts = (create_engine(SPLIT[name](), 8, Dynamics(), device) for _ in range(2))
    for engine in (whole, parts):
        engine.set_ladder(beta, 2)
    whole.temper(6, 2)
    parts.temper(2, 2)
    parts.temper(0, 2)
    early = parts.begin_exchange()  # fetched late
    begun = parts.begin_measurement(OVERLAPS_ONLY)
    parts.temper(4, 2)
    for one, other in zip(whole.begin_exchange()(), parts.begin_exchange()(), strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(overlaps(whole), overlaps(parts))
    np.testing.assert_array_equal(configurations(whole), configurations(parts))
    assert (early().attempts.sum(axis=1) == 2 * (2 + 1)).all()
    assert begun().correlations.overlap.shape == (whole.model.samples, 1, 4)


def flat(m: LadderMeasurement) -> list[np.ndarray]:
    spins = [m.spins(k, r) for k in range(len(m.energy)) for r in range(m.energy[0].size)]
    return [m.energy, m.magnetization, m.holder, *m.exchange, *m.correlations, *spins]


@pytest.mark.parametrize("wanted", [OVERLAPS_ONLY, WITHOUT_TIMES])
@pytest.mark.parametrize("name", SPLIT)
def test_measurements_in_succession_are_those_of_single_ones(device: str, name: str, wanted: Quantities) -> None:
    one, other = (create_engine(SPLIT[name](), 9, Dynamics(), where) for where in (device, "cpu"))
    for engine in (one, other):
        engine.set_ladder(ladder(1.0, 2.4, 3), 3)
        engine.temper(1, 1)
    asked = [*one.temper_measured(3, 2, 1, wanted), *one.temper_measured(2, 1, 2, wanted)]
    one.temper(3, 1)  # what was asked for is not disturbed
    for k, begun in enumerate(asked):
        other.temper(2 if k < 3 else 1, 1 if k < 3 else 2)
        for found, expected in zip(flat(begun()), flat(other.begin_measurement(wanted)()), strict=True):
            assert found.dtype == expected.dtype
            np.testing.assert_array_equal(found, expected)
    other.temper(3, 1)
    np.testing.assert_equal(one.counts(), other.counts())
    np.testing.assert_array_equal(configurations(one), configurations(other))


@pytest.mark.parametrize("name", SPLIT)
def test_a_launch_takes_as_many_measurements_as_it_has_rounds(
    device: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three of two rounds each where a launch has five, so that two launches make them."""
    monkeypatch.setattr("spinsim.engine.cuda.LaunchedRounds.most", lambda *_: 5)
    test_measurements_in_succession_are_those_of_single_ones(device, name, OVERLAPS_ONLY)


@pytest.mark.parametrize("name", SPLIT)
def test_a_ladder_and_given_temperatures_take_turns(device: str, name: str) -> None:
    beta = ladder(1.0, 2.4, 4)
    engines = [create_engine(SPLIT[name](), 8, Dynamics(), where) for where in ("cpu", device)]
    for engine in engines:
        with pytest.raises(InputError, match="no ladder of temperatures is set: call set_ladder first"):
            engine.temper(1, 1)
        engine.set_beta(0.4)
        engine.sweep(2)
        engine.set_ladder(beta, 2)
        engine.temper(3, 1)
        engine.sweep(2)  # at the temperatures of their places
        engine.set_beta(np.tile(beta, 2))
        engine.sweep(2)
        for ask in (engine.begin_exchange, engine.begin_measurement):
            with pytest.raises(InputError, match="no ladder"):
                ask()
        engine.set_ladder(beta[:2], 4)
        engine.temper(2, 1)
    for one, other in zip(*(engine.begin_exchange()() for engine in engines), strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(*(configurations(engine) for engine in engines))
