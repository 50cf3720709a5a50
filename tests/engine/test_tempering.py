"""Parallel tempering: exact averages, the exchange itself, its files."""

from __future__ import annotations

import numpy as np
import pytest
from exact import assert_agree, enumerate_states
from frames import LADDER, check_frames, check_room, state
from scipy import stats

import spinsim as ss
from spinsim.analysis.autocorrelation import integrated_time
from spinsim.engine import Dynamics, create_engine
from spinsim.engine.moves.exchange import holders
from spinsim.model.ising import Ising

NISHIMORI = 1 / np.arctanh(0.5)  # +-J with three of four bonds positive: E / N = -d / 2


def mean_and_error(series: np.ndarray) -> tuple[float, float]:
    """Of independent chains (steps, chains)."""
    found = integrated_time(series, chain_axis=1)
    return float(found.mean), float(found.mean_error)


@pytest.mark.parametrize("couplings", ["pm-j", "gaussian"])
def test_against_enumeration(device: str, couplings: str) -> None:
    """Energies, moments, modes and link overlaps of two samples at twelve temperatures; the z-scores are normal.

    Standard errors of energies are some 1e-3, of overlaps 3e-3: four times as much is seen in any of the rows.
    """
    model = ss.EdwardsAnderson(ss.square(4), samples=2, couplings=couplings, seed=21)
    times = {"sweeps": 8000, "thermalize": 1000, "measure_every": 4}
    result = ss.temper(model, LADDER, replicas=4, seed=3, device=device, magnetization_modes=True, **times)
    m, q = result.magnetization / model.sites, result.overlap[:, :, [0, 5]] / model.sites  # pairs (0, 1) and (2, 3)
    mode = result.magnetization_mode[..., 0] / model.sites**2
    overlap_mode = result.overlap_mode[..., 1][:, :, [0, 5]] / model.sites**2
    links = result.link_overlap[:, :, [0, 5]] / model.bonds
    rows = []
    for k in range(model.samples):
        for t, temperature in enumerate(LADDER):
            exact = enumerate_states(model, temperature, k)
            for name, series, value in (
                ("E/N", result.energy[:, k, :, t] / model.sites, exact.energy),
                ("m^2", m[:, k, :, t] ** 2, exact.magnetization_squared),
                ("q^2", q[:, k, :, t] ** 2, exact.overlap_squared),
                ("|m(k)|^2", mode[:, k, :, t], exact.magnetization_mode),
                ("|q(k)|^2", overlap_mode[:, k, :, t], exact.overlap_mode),
                ("q_link", links[:, k, :, t], exact.link_overlap),
            ):
                rows.append((f"{couplings} {k}, T = {temperature:.3f}: {name}", *mean_and_error(series), value))
    scores = [(value - exact) / error for _, value, error, exact in rows if error > 1e-9]
    assert stats.kstest(scores, "norm").pvalue > 0.001
    assert_agree([row for row in rows if row[2] > 1e-9])
    assert len(scores) > 0.95 * len(rows)


def nishimori(lattice: ss.Lattice, samples: int, sweeps: int, device: str) -> tuple[float, float]:
    """Energy per site of the disorder average and its error."""
    model = ss.EdwardsAnderson(lattice, samples=samples, seed=5, bond_fraction=0.75)
    ladder = NISHIMORI * np.geomspace(1, 2, 8)
    result = ss.temper(model, ladder, sweeps, thermalize=sweeps // 2, device=device)
    energy = result.energy[..., 0].mean(axis=(0, 2)) / model.sites
    return float(energy.mean()), float(energy.std(ddof=1) / np.sqrt(samples))


def test_nishimori_line(device: str) -> None:
    assert_agree([("2D, L = 12", *nishimori(ss.square(12), 40, 1000, device), -1.0)], largest_error=0.02)


@pytest.mark.slow
@pytest.mark.parametrize(("lattice", "exact"), [(ss.square(12), -1.0), (ss.cubic(6), -1.5)], ids=["2D", "3D"])
def test_nishimori_line_of_many_samples(device: str, lattice: ss.Lattice, exact: float) -> None:
    assert_agree([(str(lattice), *nishimori(lattice, 200, 4000, device), exact)], largest_error=0.01)


@pytest.mark.parametrize(
    "model",
    [
        ss.EdwardsAnderson(ss.cubic(4), samples=2, seed=1),
        ss.EdwardsAnderson(ss.square(5, 3, periodic=False), seed=1, field=0.3),
        ss.EdwardsAnderson(ss.square(4), couplings="gaussian", seed=1),
        ss.EdwardsAnderson(ss.square(256, 2), seed=1),
    ],
    ids=["pm-j", "field", "gaussian", "site-packed"],
)
def test_parts_make_the_whole(device: str, model: Ising) -> None:
    whole, parts = (create_engine(model, 9, Dynamics(seed=8), device) for _ in range(2))
    for engine in (whole, parts):
        engine.set_ladder(1 / np.array([0.9, 1.3, 2.0]), copies=3)
    whole.temper(7, 2)
    for rounds in (1, 4, 2):
        parts.temper(rounds, 2)
    for one, other in zip(state(whole), state(parts), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("couplings", ["pm-j", "gaussian"])
@pytest.mark.parametrize("times", [(0, 21, 3, 1), (6, 24, 6, 2)])
def test_portions_and_pauses_change_nothing(device: str, monkeypatch, couplings, times) -> None:
    model = ss.EdwardsAnderson(ss.square(4), samples=2, couplings=couplings, seed=1)
    check_frames(monkeypatch, device, model, ss.sampling.Times(*times), [4, 7, 1000])


@pytest.mark.parametrize("couplings", ["pm-j", "gaussian"])
def test_measurements_without_room_are_refused_before_the_first_sweep(monkeypatch, couplings: str) -> None:
    engine = create_engine(ss.EdwardsAnderson(ss.square(4), couplings=couplings), 6, Dynamics(), "cpu")
    monkeypatch.setattr("spinsim.machine.memory._ALWAYS_THERE", 0)
    monkeypatch.setattr("spinsim.machine.memory.available_bytes", lambda: 3 * 16 * 6)
    check_room(engine)


def test_a_large_lattice_is_swept_in_parts_with_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spinsim.machine.threads.WORTH_A_THREAD", 1)
    model = ss.EdwardsAnderson(ss.cubic(4), samples=2, seed=1)
    engines = []
    for split in (2**14, 1):
        monkeypatch.setattr("spinsim.engine.moves.metropolis.replica_packed.cpu.SPLIT_SITES", split)
        engine = create_engine(model, 10, Dynamics(seed=8), "cpu", threads=6)
        engine.set_ladder(1 / np.geomspace(0.8, 2.0, 5), copies=2)
        engine.temper(6, 2)
        engines.append(engine)
    for one, other in zip(*map(state, engines), strict=True):
        np.testing.assert_array_equal(one, other)


def test_unpacked_rounds_in_one_call_have_the_bits_of_rounds_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks of 32 replicas in the first engine, of 128 in the second, and a last one that is not full."""
    model = ss.EdwardsAnderson(ss.cubic(3), samples=2, couplings="gaussian", seed=1, field=0.2)
    engines = []
    for long_round, threads in ((0, 6), (2**60, 6), (0, 1)):
        monkeypatch.setattr("spinsim.engine.moves.metropolis.unpacked.UnpackedSweeper.long_round", long_round)
        engine = create_engine(model, 135, Dynamics(seed=8), "cpu", threads=threads)
        engine.set_ladder(1 / np.geomspace(0.3, 2.0, 45), copies=3)
        engine.temper(3, 2)
        engine.temper(4, 1)
        engine.sweep(1)  # at the temperatures of the last exchange
        engines.append(engine)
    for others in engines[1:]:
        for one, other in zip(state(engines[0]), state(others), strict=True):
            np.testing.assert_array_equal(one, other)


def test_overlaps_and_observables_belong_to_their_temperatures(device: str) -> None:
    """What a frame says, from the configurations themselves."""
    model = ss.EdwardsAnderson(ss.square(6), samples=2, seed=4)
    engine = create_engine(model, 70 * 3, Dynamics(seed=2), device)  # copies lie across blocks of 128 replicas
    ladder = np.geomspace(0.6, 2.5, 70)
    *_, frame = ss.sampling.tempering(engine, ladder, ss.sampling.Times(20, 30, 10), copies=3)
    spins = np.stack([[engine.spins(k, r) for r in range(210)] for k in range(2)]).astype(np.int64)
    sorted_spins = np.take_along_axis(spins, frame.holder.reshape(2, -1, 1), axis=1).reshape(2, 3, 70, -1)
    np.testing.assert_array_equal(frame.magnetization, sorted_spins.sum(axis=-1))
    by_site = np.moveaxis(sorted_spins.reshape(2, 210, -1), 1, -1)
    np.testing.assert_array_equal(frame.energy.reshape(2, -1), model.energy(by_site.astype(np.int8)))
    pairs = [(0, 1), (0, 2), (1, 2)]
    overlaps = np.stack([(sorted_spins[:, a] * sorted_spins[:, b]).sum(axis=-1) for a, b in pairs], axis=1)
    np.testing.assert_array_equal(frame.overlap, overlaps)


def test_equal_energies_mix_uniformly(device: str) -> None:
    """Without couplings every exchange is accepted: each replica visits each temperature equally often."""
    model = Ising(ss.square(4), np.zeros(32))
    ladder = np.geomspace(1.0, 4.0, 6)
    result = ss.temper(model, ladder, sweeps=2400, thermalize=0, measure_every=1, device=device)
    visits = np.array([(result.permutation[:, 0] == r).sum(axis=(0, 1)) for r in range(12)])
    assert stats.chisquare(visits, axis=1).pvalue.min() > 0.01
    assert (result.attempts == result.accepts).all()
    assert (result.round_trips > 150).all()


def test_exchange_rates_are_those_of_the_energies() -> None:
    """Accepted exchanges of a pair: the mean of min(1, exp(dbeta dE)) over what was met.

    Forty copies for a thousand sweeps: 22,000 attempts of each pair, so that 0.02 too many or too few are seen.
    """
    model = ss.EdwardsAnderson(ss.square(4), seed=2)
    ladder = np.array([0.7, 1.0, 1.5])
    result = ss.temper(model, ladder, 1000, thermalize=100, replicas=40, measure_every=1, correlations=False)
    step = -np.diff(1 / ladder)
    rate = np.minimum(1, np.exp(-step * np.diff(result.energy[:, 0], axis=-1)))
    rows = []
    for pair in range(2):
        mean, error = mean_and_error(rate[..., pair])
        rows.append((f"pair {pair}", float(result.swap_rate[pair]), 2 * error, mean))
    assert_agree(rows)


def test_every_replica_is_at_one_temperature() -> None:
    model = ss.EdwardsAnderson(ss.square(4), samples=3, seed=2)
    result = ss.temper(model, LADDER, sweeps=100, thermalize=0)
    found = np.sort(result.permutation, axis=-1) - np.arange(12)
    assert (found == np.array([0, 12])[:, None]).all()
    place = np.tile(np.arange(12, dtype=np.int32)[::-1], (3, 2))
    np.testing.assert_array_equal(holders(place, 2)[0, 1], np.arange(12)[::-1] + 12)
