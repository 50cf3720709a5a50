"""Sums over energy: a ring of bins that widens, integers that halve, and the room that they take."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from reductions import RUNS, begin, check_reduction, measure, oracle

import spinsim as ss
from spinsim.engine.measuring import reduction as over_energy
from spinsim.engine.measuring import reduction as reducing
from spinsim.engine.measuring.correlations import Quantities
from spinsim.engine.measuring.cpu_reduction import HostReduction
from spinsim.engine.measuring.reduction import Reduced, Source, Term, shift_of, spacing_of
from spinsim.jobs.ladder.result import Temperatures, reduced_of_run
from spinsim.observables.quantities import Choice

FEW_BINS = ["glass", "ferromagnet", "field", "many-samples", "one-copy"]


@pytest.fixture
def _few_bins(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bins and blocks are merged after few measurements."""
    for name in ("MOST_BINS", "_MOST_FINE"):
        monkeypatch.setattr(over_energy, name, 4)
    monkeypatch.setattr(reducing, "_BLOCKS", (4,))


@pytest.mark.usefixtures("_few_bins")
@pytest.mark.parametrize("name", FEW_BINS)
def test_few_bins_hold_plain_sums(name: str) -> None:
    engine, reduced = begin(RUNS[name], "cpu")
    host = engine.reduction(reduced)
    expected = oracle(reduced, measure(engine, RUNS[name].wanted, 23, host))
    low, high = expected["energy_range"].T
    assert reduced.energies is not None
    assert shift_of(low[0], high[0], 4) > shift_of(0, int(spacing_of(reduced.model)), 2)
    for key, array in host.state().items():
        if key.startswith("energy"):
            np.testing.assert_allclose(array, expected[key], rtol=1e-12, atol=200 if key.endswith("sums") else 0)


@pytest.mark.usefixtures("_few_bins")
@pytest.mark.parametrize("name", FEW_BINS)
def test_few_bins_have_the_bits_of_the_host(device: str, name: str) -> None:
    check_reduction(RUNS[name], device, (1, 2, 5, 9))


def one_term(copies: int = 2, places: int = 3) -> Reduced:
    model = ss.Ising(ss.square(16))
    term = Term("m", (Source("magnetization"),), np.full((1, places), 1 / 256), np.zeros(places), 1, over_energy=True)
    return Reduced(model, copies, places, (term,))


def add(reduction: HostReduction, energy: np.ndarray, moment: np.ndarray) -> None:
    copies, places = energy.shape
    place = np.tile(np.arange(places), (1, copies)).astype(np.int32)
    measured = {"energy": energy[None], "magnetization": moment[None], "exchange": SimpleNamespace(place=place)}
    reduction.add_numbers(SimpleNamespace(**measured, correlations=None))  # type: ignore[arg-type]


def test_a_range_that_grows_on_both_sides() -> None:
    """Whatever comes first: the same bins, each with what fell into it."""
    random = np.random.default_rng(5)
    energy = (random.normal(0, 1, (60, 2, 3)) * np.arange(1, 61)[:, None, None] ** 1.6).astype(int) * 4.0
    moment = random.integers(-256, 257, energy.shape)
    states = []
    for order in (np.arange(60), np.arange(60)[::-1]):
        reduction = HostReduction(one_term())
        for step in order:
            add(reduction, energy[step], moment[step])
        states.append(reduction.state())
    one, other = states
    for name in ("energy_range", "energy_counts"):
        assert np.array_equal(
            one[name].sum(axis=min(1, one[name].ndim - 2)), other[name].sum(axis=min(1, one[name].ndim - 2))
        )
    energies = one_term().energies
    assert energies is not None
    binned = energies.of_sample(one, 60, 0, "energy")
    edges = np.floor(energy / binned.width)
    found = [(energy[edges == edge].sum(), moment[edges == edge].sum() / 256) for edge in np.unique(edges)]
    np.testing.assert_allclose(binned.energy.sum(axis=0), [each[0] for each in found])
    np.testing.assert_allclose(binned.sums.sum(axis=(0, 1)), [each[1] for each in found], atol=1e-9)
    assert binned.counts.sum() == energy.size


@pytest.mark.parametrize("sign", [1, -1])
def test_sums_of_the_largest_values_do_not_overflow(sign: int) -> None:
    """All measurements in one bin with moments of size 1, at numbers where many have come before."""
    for before in (0, 1, 2**20, 2**40 - 1):
        reduction = HostReduction(one_term())
        assert reduction.reduced.energies is not None
        unit = 2.0 ** -reduction.reduced.energies.exponent(before)
        assert (before + 1) * 6 / unit <= 2**61
        assert unit < 1e-3


def test_room_decides_over_bins(monkeypatch: pytest.MonkeyPatch) -> None:
    """Levels of a model have bins of their own while there is room; fewer than 4 sqrt(N) bins are none."""
    monkeypatch.setattr(reducing, "_OF_OTHERS", 1000)
    small, glass = ss.EdwardsAnderson(ss.cubic(6), samples=64, seed=1), ss.EdwardsAnderson(ss.cubic(16), seed=1)
    fine, bins = ss.EdwardsAnderson(ss.cubic(4), samples=2, couplings="gaussian"), []
    for model, size in ((small, 2**26), (glass, 2**26), (fine, 2**26), (small, 2**20), (small, 2**18)):
        monkeypatch.setattr(reducing, "_ENERGY_BYTES", size)
        _, reduced = begin(RUNS["glass"]._replace(make=lambda model=model: model), "cpu")
        bins.append(reduced.energies and reduced.energies.bins)
    assert bins == [512, 1024, 512, 64, None]
    assert [spacing_of(model) for model in (small, fine, ss.Ising(ss.square(3, periodic=False), 2.0))] == [4, 0, 4]


@pytest.mark.parametrize(
    ("size", "samples", "temperatures", "copies", "bins", "megabytes"),
    [(16, 128, 32, 4, 1024, 30), (6, 4096, 16, 4, 64, 60), (6, 4096, 16, 8, 64, 85), (16, 2048, 32, 4, 256, 240)],
)
def test_bins_of_large_runs(
    size: int, samples: int, temperatures: int, copies: int, bins: int, megabytes: float
) -> None:
    model = ss.EdwardsAnderson(ss.cubic(size), samples=samples, seed=1)
    ladder = Temperatures(np.linspace(0.8, 2.0, temperatures))
    choice = Choice(copies, Quantities(True, magnetization_modes=False), model.is_bipartite)
    energies = reduced_of_run(model, choice, ladder).energies
    assert energies is not None
    assert energies.bins == bins
    assert sum(8 * np.prod(shape) for shape, _ in energies.arrays(samples, copies).values()) < megabytes * 1e6
