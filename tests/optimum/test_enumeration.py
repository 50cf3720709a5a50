"""Lowest states and their number, by the compiled comparison and by NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from lowest import KINDS, energies, problem, states, values

import spinsim as ss
from spinsim.machine.threads import Threads
from spinsim.optimum import enumeration, enumeration_cuda
from spinsim.optimum.enumeration import MOST, lowest_states


def test_lowest_states_of_a_thousand_problems() -> None:
    rng = np.random.default_rng(1)
    for _ in range(1000):
        model, number = problem(rng), int(rng.integers(1, 12))
        found, of_all = lowest_states(model, number), energies(model)
        assert np.array_equal(found.energies, np.sort(of_all)[:number])
        assert found.ground_states == np.count_nonzero(of_all == of_all.min())
        assert len(np.unique(found.spins, axis=0)) == len(found.energies)
        assert np.array_equal(np.concatenate([model.energy(spins[None]) for spins in found.spins]), found.energies)


@pytest.mark.parametrize("field", [0.0, 1.0])
def test_states_do_not_depend_on_threads(field: float) -> None:
    """Of many ground states those of the lowest numbers are returned."""
    model = ss.EdwardsAnderson(ss.square(4), field=field)
    of_all, bits = energies(model), np.arange(2**16)
    assert np.array_equal(states(16)[0], 1 - 2 * (~bits & 1))
    ground = np.flatnonzero(of_all == of_all.min())
    first = np.sort(~ground & 2**16 - 1)[: 3 if field else 2]  # bits of spins down
    for count in (1, 3):
        found = lowest_states(model, 3, threads=Threads(count))
        assert found.ground_states == len(ground)
        numbers = (found.spins < 0) @ (1 << np.arange(16))
        assert numbers[: 3 : 1 if field else 2].tolist() == first.tolist()


@pytest.mark.parametrize("couplings", ["pm-j", "gaussian"])
def test_twenty_sites(couplings: str) -> None:
    model = ss.EdwardsAnderson(ss.square(4, 5), couplings=couplings)
    of_all, found = energies(model), lowest_states(model, 100)
    assert np.array_equal(found.energies, np.sort(of_all)[:100])
    assert found.ground_states == np.count_nonzero(of_all == of_all.min())


def test_one_site() -> None:
    assert lowest_states(ss.Ising(ss.Graph(1)), 5).spins.tolist() == [[1], [-1]]
    assert lowest_states(ss.Ising(ss.Graph(1), 1.0, -2.0)).spins.tolist() == [[-1]]


def test_too_many_sites_are_refused() -> None:
    with pytest.raises(ss.InputError, match=f"{MOST + 1} sites have too many states"):
        lowest_states(ss.Ising(ss.chain(MOST + 1)))


def on_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small problems, in chunks of several launches, equal those of the CPU."""
    rng = np.random.default_rng(2)
    for least, serial in ((enumeration.INNER, 3), (enumeration.INNER + 2, 4), (enumeration.INNER, 0)):
        for name, value in (("LEAST", least), ("SERIAL", serial)):
            monkeypatch.setattr(enumeration, name, value)
        monkeypatch.setattr(enumeration_cuda, "AT_ONCE", 8)
        for kind in KINDS:
            pairs = np.column_stack(np.triu_indices(14, 1))
            for field in (0.0, values(kind, 14, rng)):
                model = ss.Ising(ss.Graph(14, pairs), values(kind, len(pairs), rng), field)
                for number in (1, 5):
                    expected, found = lowest_states(model, number), lowest_states(model, number, gpu=0)
                    assert np.array_equal(found.energies, expected.energies)
                    assert np.array_equal(found.spins, expected.spins)
                    assert found.ground_states == expected.ground_states


@pytest.mark.system
@pytest.mark.usefixtures("emulated")
def test_emulated_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    on_gpu(monkeypatch)


@pytest.mark.gpu
def test_chunks_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    on_gpu(monkeypatch)
