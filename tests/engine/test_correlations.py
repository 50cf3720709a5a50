"""Overlaps, link overlaps and modes of copies at equal temperatures."""

from __future__ import annotations

from decimal import Decimal, getcontext

import numpy as np
import oracle
import pytest
from engines import ANY_ROWS, random_graph, random_signs

from spinsim.engine import Dynamics, create_engine
from spinsim.engine.measuring.correlations import OVERLAPS_ONLY, Correlations, Quantities
from spinsim.model.disorder import EdwardsAnderson
from spinsim.model.graph import Graph
from spinsim.model.ising import Ising
from spinsim.model.lattice import Lattice, chain, cubic, honeycomb, hypercubic, square, triangular, wave
from spinsim.model.trotter import trotter

MODELS = {
    "chain": (lambda: EdwardsAnderson(chain(7), samples=2), 5, 2),
    "open-chain": (lambda: EdwardsAnderson(chain(133, periodic=False), samples=3), 3, 3),
    "long-chain": (lambda: Ising(chain(2100)), 2, 2),
    "odd-square": (lambda: EdwardsAnderson(square(5, 3), samples=2), 6, 3),
    "wide-square": (lambda: EdwardsAnderson(square(48, 7), samples=2), 4, 2),
    "triangular": (lambda: EdwardsAnderson(triangular(5, 6), samples=2), 5, 3),
    "honeycomb": (lambda: EdwardsAnderson(honeycomb(5, 4), samples=2), 5, 2),
    "honeycomb-gaussian": (lambda: EdwardsAnderson(honeycomb(40, 3, periodic=False), couplings="gaussian"), 4, 2),
    "hypercubic": (lambda: EdwardsAnderson(hypercubic(3, 4, 2, 5), samples=2), 5, 2),
    "flat": (lambda: EdwardsAnderson(cubic(2, 1, 6), samples=2), 4, 4),
    "open-cubic": (lambda: EdwardsAnderson(cubic(3, 5, 4, periodic=False), samples=3), 9, 2),
    "full-block": (lambda: EdwardsAnderson(cubic(8), samples=3), 32, 4),
    "two-blocks": (lambda: EdwardsAnderson(cubic(6, 9, 5), samples=2), 45, 3),
    "deep-layers": (lambda: EdwardsAnderson(cubic(3, 60, 50)), 3, 2),
    "many-pairs": (lambda: EdwardsAnderson(square(4), samples=2), 40, 12),
    "one-copy": (lambda: EdwardsAnderson(cubic(4, 3, 5), samples=2), 7, 1),
    "field": (lambda: EdwardsAnderson(square(6, 9), samples=2, field=0.5), 6, 2),
    "graph": (lambda: Ising(Graph(9, [[i, (i + 1) % 9] for i in range(9)] + [[0, 4]])), 5, 3),
    "diagonals": (lambda: Ising(Graph(12, [[i, (i + 5) % 12] for i in range(12)], square(4, 3))), 5, 3),
    "gaussian-on-honeycomb": (lambda: Ising(Graph(12, [[0, 5], [9, 2]], honeycomb(3, 2)), [0.3, -1.2]), 3, 2),
    "no-bonds": (lambda: Ising(cubic(1, 1, 1), field=0.3), 3, 2),
    "gaussian": (lambda: EdwardsAnderson(cubic(4, 3, 5), samples=2, couplings="gaussian"), 5, 3),
    "gaussian-open": (lambda: EdwardsAnderson(square(9, 40, periodic=False), couplings="gaussian"), 35, 2),
    "gaussian-graph": (lambda: Ising(Graph(6, [[0, 1], [2, 5], [3, 5]]), [0.3, -1.2, 0.7]), 3, 2),
    "square-in-time": (lambda: trotter(EdwardsAnderson(square(3, 4), samples=2), 10), 5, 3),
    "many-slices": (lambda: trotter(EdwardsAnderson(square(2), samples=2), 256), 3, 2),
    "two-slices": (lambda: trotter(Ising(chain(5)), 2), 3, 2),
    "honeycomb-in-time": (lambda: trotter(EdwardsAnderson(honeycomb(3, 2), samples=2), 6), 3, 2),
    "triangular-in-time": (lambda: trotter(EdwardsAnderson(triangular(3), samples=2), 4), 3, 1),
    "hypercubic-in-time": (lambda: trotter(Ising(hypercubic(2)), 4), 3, 2),
    "graph-in-time": (lambda: trotter(random_signs(random_graph(7, 15, 1), 1), 8), 5, 2),
    "open-in-time": (lambda: trotter(EdwardsAnderson(chain(5, periodic=False)), 40), 3, 2),
    "gaussian-in-time": (lambda: trotter(EdwardsAnderson(square(3), samples=2, couplings="gaussian"), 6), 4, 2),
    "site-packed": (lambda: Ising(square(256, 6)), 3, 2),
    "site-packed-wide": (lambda: EdwardsAnderson(square(512, 70), samples=2), 2, 3),
    "site-packed-cubic": (lambda: EdwardsAnderson(cubic(256, 4, 6), samples=2), 3, 2),
    "site-packed-one-copy": (lambda: EdwardsAnderson(cubic(256, 2, 2)), 3, 1),
}


def found_on(device: str, name: str) -> tuple[Correlations, tuple[np.ndarray, ...]]:
    """What an engine finds after a few rounds, and what the oracle finds in its configurations."""
    make, temperatures, copies = MODELS[name]
    model = make()
    engine = create_engine(model, temperatures * copies, Dynamics(seed=3), device)
    engine.set_ladder(1 / np.geomspace(1.0, 2.0, temperatures), copies)
    engine.temper(3, 1)
    times = tuple(time for time in (1, 2, 5, 9) if time < model.graph.slices)
    even = len(times) > 0
    later, exchange = engine.begin_measurement(Quantities(times=times, even=even)), engine.begin_exchange()()
    spins = np.stack(
        [np.stack([engine.spins(k, r) for r in range(engine.replicas)], axis=-1) for k in range(model.samples)]
    )
    engine.temper(2, 1)  # what was asked for before is not disturbed
    again = engine.begin_measurement()
    found = later().correlations
    alone = engine.begin_measurement(OVERLAPS_ONLY)().correlations
    np.testing.assert_array_equal(again().correlations.overlap, alone.overlap)
    assert alone.link_overlap.size == alone.overlap_mode.size == alone.magnetization_mode.size == 0
    return found, oracle.correlations(model, spins, exchange.place, copies, times, even)


@pytest.mark.parametrize("name", MODELS)
def test_correlations_are_those_of_the_configurations(device: str, name: str) -> None:
    found, expected = found_on(device, name)
    for got, wanted in zip(found, expected, strict=True):
        assert got.shape == wanted.shape
        if got.dtype == np.int64:
            np.testing.assert_array_equal(got, wanted)
        else:
            np.testing.assert_allclose(got, wanted, rtol=1e-12, atol=1e-9)


@pytest.mark.parametrize("name", ANY_ROWS)
def test_correlations_of_rows_that_begin_within_words(any_rows: None, device: str, name: str, monkeypatch) -> None:
    monkeypatch.setitem(MODELS, name, (ANY_ROWS[name], 2, 2))
    test_correlations_are_those_of_the_configurations(device, name)


@pytest.mark.parametrize("name", ["one-copy", "many-pairs", "graph", "square-in-time", "site-packed-one-copy"])
def test_modes_of_spins_can_be_left_out(device: str, name: str) -> None:
    make, temperatures, copies = MODELS[name]
    engine = create_engine(make(), temperatures * copies, Dynamics(seed=3), device)
    engine.set_ladder(1 / np.geomspace(1.0, 2.0, temperatures), copies)
    times = (1, 2) if engine.model.graph.slices > 1 else ()
    wanted = Quantities(times=times, even=bool(times))
    whole = engine.begin_measurement(wanted)().correlations
    part = engine.begin_measurement(wanted._replace(magnetization_modes=False))().correlations
    assert part.magnetization_mode.shape == (*whole.magnetization_mode.shape[:-1], 0)
    for name, values in whole._asdict().items():
        if name != "magnetization_mode" and values.size:
            np.testing.assert_array_equal(getattr(part, name), values)


@pytest.mark.gpu
@pytest.mark.parametrize("name", MODELS)
def test_devices_find_the_same_bits(name: str) -> None:
    for one, other in zip(found_on("cpu", name)[0], found_on("cuda", name)[0], strict=True):
        assert one.tobytes() == other.tobytes()


@pytest.mark.gpu
def test_many_samples_are_compared_in_several_launches(monkeypatch: pytest.MonkeyPatch) -> None:
    from spinsim.engine.measuring import cuda_comparison as correlations

    monkeypatch.setattr(correlations, "SUMS_BYTES", 1)
    for name in ("open-cubic", "gaussian", "site-packed-cubic"):
        for one, other in zip(found_on("cpu", name)[0], found_on("cuda", name)[0], strict=True):
            assert one.tobytes() == other.tobytes()


@pytest.mark.parametrize("lattice", [chain(1), square(2, 1), cubic(3, 1, 2)], ids=lambda lattice: lattice.label)
def test_modes_of_short_sides(lattice: Lattice) -> None:
    """A side of 1 has its sum alone, a side of 2 the alternating sum."""
    model = Ising(lattice, field=0.1)
    engine = create_engine(model, 4, Dynamics(), "cpu")
    engine.set_ladder([0.9, 0.5], 2)
    modes = engine.begin_measurement()().correlations.magnetization_mode
    m = engine.counts().magnetization.reshape(1, 2, 2)
    for axis, side in enumerate(lattice.shape):
        if side == 1:
            np.testing.assert_array_equal(modes[..., axis], m**2)
        if side == 2:
            assert (modes[..., axis] == np.rint(modes[..., axis])).all()


@pytest.mark.parametrize("side", [1, 2, 3, 4, 6, 7, 16, 96, 1000])
def test_waves_are_rounded_from_exact_ones(side: int) -> None:
    found, exact = wave(side), _waves(side)
    tolerance = 2.0**-53 + 2.0**-64  # half a unit of the last place near 1, and the fixed point's own
    for got, wanted in zip(found.ravel(), exact, strict=True):
        assert abs(Decimal(float(got)) - wanted) <= Decimal(tolerance)
    if side % 4 == 0:
        assert found[0, side // 4] == 0
        assert found[1, side // 4] == 1


def _waves(side: int) -> list[Decimal]:
    """Cosines, then sines, to forty digits by their series."""
    getcontext().prec = 50
    pi = Decimal("3.14159265358979323846264338327950288419716939937510")

    def series(angle: Decimal, power: int) -> Decimal:
        term, total = (Decimal(1), angle)[power], Decimal(0)
        while abs(term) > Decimal(10) ** -45:
            total += term
            power += 2
            term *= -angle * angle / (power * (power - 1))
        return total

    angles = [2 * pi * x / side for x in range(side)]
    return [series(angle, power) for power in (0, 1) for angle in angles]
