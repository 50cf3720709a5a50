"""The packed layout and the acceptance thresholds."""

from __future__ import annotations

from math import prod

import mpmath
import numpy as np
import pytest
from engines import ring_of_degree_five
from hypothesis import given
from hypothesis import strategies as st

from spinsim import packing
from spinsim.acceptance import LARGEST_EXPONENT, acceptance, exp_reduced
from spinsim.engine.dynamics import Dynamics
from spinsim.engine.moves.metropolis.classes import (
    COLD_CLEAR,
    PLANES,
    WARM_CLEAR,
    Classes,
    Kind,
    Limits,
    Tables,
    bits_up_to,
    build_tables,
    cheap_bits,
    distinct_of,
    empty_tables,
    kind_of,
    lay_one_temperature,
)
from spinsim.engine.moves.metropolis.replica_packed.update import ReplicaPlan
from spinsim.engine.moves.metropolis.site_packed.update import build_site_tables
from spinsim.model.disorder import EdwardsAnderson
from spinsim.model.graph import Graph, colouring
from spinsim.model.ising import Ising
from spinsim.model.lattice import Lattice, cubic


@given(st.integers(1, 3), st.integers(1, 5), st.integers(1, 300), st.integers(0, 2**32))
def test_pack_and_unpack(samples: int, sites: int, replicas: int, seed: int) -> None:
    spins = np.random.default_rng(seed).choice(np.array([-1, 1], np.int8), (samples, sites, replicas))
    words = packing.pack(spins)
    np.testing.assert_array_equal(packing.unpack(words, replicas), spins)
    r = replicas - 1
    np.testing.assert_array_equal(packing.unpack_replica(words[0], r), spins[0, :, r])
    assert not np.any(words & ~packing.lane_masks(replicas)[None, :, None, :])


def test_the_layout_statement() -> None:
    spins = -np.ones((1, 1, 200), np.int8)
    spins[0, 0, 128 + 64 + 5] = 1
    words = packing.pack(spins)
    assert words[0, 1, 0, 1] == 1 << 5
    assert words.sum() == 1 << 5


sides = st.integers(1, 3).map(lambda n: 2 * n)
rows = st.one_of(st.sampled_from([256, 512, 768]), st.integers(1, 150).map(lambda n: 2 * n))
lattices = st.one_of(st.tuples(rows, sides), st.tuples(rows, sides, sides))


@given(lattices, st.integers(1, 2), st.integers(1, 2), st.integers(0, 2**32))
def test_pack_and_unpack_sites(shape: tuple[int, ...], samples: int, replicas: int, seed: int) -> None:
    spins = np.random.default_rng(seed).choice(np.array([-1, 1], np.int8), (samples, replicas, prod(shape)))
    words = packing.pack_sites(spins, shape)
    assert words.shape == (samples, replicas, *packing.site_shape(shape))
    np.testing.assert_array_equal(packing.unpack_sites(words, shape), spins)
    bits = packing.packed_spins(spins[0, 0])
    np.testing.assert_array_equal(packing.of_site_packed(words[0, 0], shape), bits)


@given(lattices, st.data())
def test_the_site_packed_layout_statement(shape: tuple[int, ...], data: st.DataObject) -> None:
    site = data.draw(st.integers(0, prod(shape) - 1))
    spins = np.full(prod(shape), -1, np.int8)
    spins[site] = 1
    words = packing.pack_sites(spins, shape)
    width, height = shape[:2]
    x, y, z = site % width, site // width % height, site // (width * height)
    colour = colouring(Graph.of_lattice(Lattice(shape)))[site]
    i, first = divmod(x, 2)
    assert first == (y + z + colour) % 2
    number = (y + height * z) * width // 2 + i
    assert words[colour, number // 128, number % 128 // 64] == 1 << (number % 64)
    assert words.sum() == 1 << (number % 64)


@given(st.floats(-LARGEST_EXPONENT, 0))
def test_exp_is_good_to_a_rounding(y: float) -> None:
    mantissa, power = exp_reduced(np.float64(y))
    with mpmath.workprec(120):
        exact = mpmath.exp(mpmath.mpf(y))
        assert abs(mpmath.mpf(float(np.ldexp(mantissa, int(power)))) / exact - 1) < 2.0**-52


@given(st.integers(-50, 50), st.floats(0, 3))
def test_thresholds(cost: int, beta: float) -> None:
    always, threshold = acceptance(np.array(cost), beta, 63 / 64)
    if cost == 0:
        assert (bool(always), int(threshold)) == (False, 63 * 2**58)
    elif cost < 0 or beta * cost < 1e-17:
        assert always
    else:
        with mpmath.workprec(120):
            exact = mpmath.exp(-mpmath.mpf(beta) * cost) * 2**64
            rounding = exact * (1 + beta * cost) * 2.0**-52  # of the exponent and of exp
            assert abs(int(threshold) - exact) <= rounding + 1


def tables_of(classes: Classes, beta: np.ndarray, zero_acceptance: float = 63 / 64) -> Tables:
    """The tables of replicas at inverse temperatures ``beta``, in inverse quanta."""
    distinct, place = distinct_of(beta)
    return build_tables(Limits(*acceptance(classes.costs[..., None], distinct, zero_acceptance)), place)


@given(
    st.integers(1, 31),
    st.integers(0, 3).map(lambda h: h * 7),
    st.lists(st.floats(0, 2), min_size=1, max_size=150).map(np.array),
)
def test_tables_hold_the_acceptance_of_every_class(degree: int, field: int, beta: np.ndarray) -> None:
    classes = Classes.of(degree, 3, field)
    tables = tables_of(classes, beta)
    block, lane = divmod(len(beta) - 1, packing.LANES)
    block %= tables.always.shape[1]
    half, bit = divmod(lane, 64)
    costs = classes.costs
    for parity, c in ((0, 0), (1, costs.shape[1] - 1), (0, costs.shape[1] // 2)):
        always, threshold = acceptance(costs[parity, c], beta[-1], 63 / 64)
        assert (int(tables.always[0, block, parity, c, half]) >> bit & 1) == int(always)
        top = sum((int(tables.planes[0, block, parity, p, c, half]) >> bit & 1) << (63 - p) for p in range(PLANES))
        assert int(tables.thresholds[0, block, parity, c, lane]) == int(threshold)
        assert top == int(threshold) >> (64 - PLANES) << (64 - PLANES)


@given(
    st.sampled_from([4, 6]),
    st.integers(0, 3).map(lambda h: h * 7),
    st.lists(st.floats(0, 2), min_size=1, max_size=5).map(np.array),
)
def test_site_tables_hold_every_lane_of_the_others(degree: int, field: int, beta: np.ndarray) -> None:
    classes = Classes.of(degree, 3, field)
    site, lanes = build_site_tables(classes, beta[None], 63 / 64), tables_of(classes, beta)
    for r in range(len(beta)):
        bit = np.uint64(1) << np.uint64(r)
        np.testing.assert_array_equal(site.thresholds[0, r], lanes.thresholds[0, 0, 0, :, r])
        np.testing.assert_array_equal(site.always[0, r] != 0, lanes.always[0, 0, 0, :, 0] & bit != 0)
        np.testing.assert_array_equal(site.planes[0, r] != 0, lanes.planes[0, 0, 0, :, :, 0] & bit != 0)
    assert {*np.unique(site.always), *np.unique(site.planes)} <= {0, 2**32 - 1}


@pytest.mark.parametrize(
    ("hottest", "kind"), [(2.0, Kind.COLD), (2.3, Kind.COLD), (2.4, Kind.WARM), (4.3, Kind.WARM), (4.4, Kind.PLAIN)]
)
def test_kinds_say_where_thresholds_begin(hottest: float, kind: Kind) -> None:
    """Of the classes that cost energy, at all temperatures of a ladder."""
    plan = ReplicaPlan(EdwardsAnderson(cubic(4), seed=1), 4, Dynamics(), 64)
    beta = 1 / np.linspace(0.5, hottest, 4)
    assert kind_of(plan.classes, plan.dynamics.zero_acceptance, plan.limits(np.unique(beta))) is kind
    clear = {Kind.COLD: COLD_CLEAR, Kind.WARM: WARM_CLEAR}.get(kind, (0, 0, 0))
    for cls, planes in enumerate(clear):
        assert plan.limits(beta).thresholds[0, cls].max() < 2 ** (64 - planes)


@pytest.mark.parametrize(
    ("field", "odd", "shortened"),
    [(1.9, False, True), (2.0, False, False), (-1.9, False, True), (0.9, True, True), (1.0, True, False)],
)
def test_classes_in_a_weak_field_leave_out_what_gains_energy(field: float, odd: bool, shortened: bool) -> None:
    graph = ring_of_degree_five(20) if odd else cubic(4)
    plan = ReplicaPlan(Ising(graph, 1.0, field), 4, Dynamics(), 64, in_class=True)
    short = plan.classes.without_gains(*plan.used_tables)
    assert short.by_low_bits is shortened
    if shortened:
        kept = np.arange(16).reshape(2, 8)[:, :4].reshape(-1)
        np.testing.assert_array_equal(short.costs, plan.classes.costs[:, kept])
        inverse = np.array([0.0, 0.1, 0.3, 1.0]) * plan.model.quantum
        limits = [Limits(*acceptance(short.costs[..., None], beta[None], 63 / 64)) for beta in inverse]
        kinds = [kind_of(short, 63 / 64, each) for each in limits]
        assert kinds[:2] == [Kind.PLAIN] * 2
        assert kinds == sorted(kinds)


@pytest.mark.parametrize(("field", "zero_acceptance"), [(0, 63 / 64), (3, 1.0)])
def test_tables_of_one_temperature_are_those_of_a_ladder_of_one(field: int, zero_acceptance: float) -> None:
    """The kernel that lays them for annealing gives the bits of NumPy's tables, and the cheap classes too."""
    classes = Classes.of(40 if not field else 6, 5, field)
    for beta in (0.0, 1e-300, *np.geomspace(1e-4, 10.0, 40), 1e300):
        want = tables_of(classes, np.full(100, beta), zero_acceptance)
        found = empty_tables(classes, 1, 100)
        arrays = [(rows[0] for rows in (t.always, t.planes, t.thresholds)) for t in (found, want)]
        last = lay_one_temperature(classes.costs, zero_acceptance, *arrays[0], beta)
        for name in ("always", "planes", "thresholds"):
            np.testing.assert_array_equal(getattr(found, name), getattr(want, name), err_msg=f"{name} at {beta}")
        limits = Limits(*acceptance(classes.costs[..., None], beta, zero_acceptance))
        assert bits_up_to(last) == cheap_bits(limits)
