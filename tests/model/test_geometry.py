"""Lattices beyond the square one: bonds, colours, layers, momenta, and averages and ground states by enumeration."""

from __future__ import annotations

import numpy as np
import pytest
from exact import assert_agree, enumerate_states, replica_mean
from matplotlib.colors import to_rgba

import spinsim as ss
from spinsim.analysis.figures.paper import ORANGE
from spinsim.analysis.sizes import compare_sizes
from spinsim.engine.moves.exchange import copy_pairs
from spinsim.jobs.anneal.figures import configuration_figure
from spinsim.model.cells import CELLS
from spinsim.model.graph import colouring

LATTICES = {
    name: lattice
    for periodic in (True, False)
    for name, lattice in {
        f"triangular-3x5-{periodic}": ss.triangular(3, 5, periodic),
        f"triangular-6x3-{periodic}": ss.triangular(6, 3, periodic),
        f"triangular-1x4-{periodic}": ss.triangular(1, 4, periodic),
        f"honeycomb-4x3-{periodic}": ss.honeycomb(4, 3, periodic),
        f"honeycomb-1x2-{periodic}": ss.honeycomb(1, 2, periodic),
        f"hypercubic-3x2x1x2-{periodic}": ss.hypercubic(3, 2, 1, 2, periodic),
    }.items()
}


@pytest.mark.parametrize("lattice", LATTICES.values(), ids=LATTICES)
def test_bonds_and_colours(lattice: ss.Lattice) -> None:
    graph = ss.Graph.of_lattice(lattice)
    colour = colouring(graph)
    assert len(graph.edges) == lattice.bonds
    assert set(colour) == set(range(colour.max() + 1))
    assert not (colour[graph.edges[:, 0]] == colour[graph.edges[:, 1]]).any()
    if lattice.present_bonds() is None:
        assert set(np.bincount(graph.edges.ravel())) == {lattice.cell.coordination}
    sublattices = lattice.colours() if lattice.is_bipartite else None
    assert sublattices is None or set(sublattices[graph.edges].sum(axis=1)) <= {1}
    assert lattice.is_bipartite == (lattice.name != "triangular" and colour.max() < 2)


@pytest.mark.parametrize("lattice", LATTICES.values(), ids=LATTICES)
@pytest.mark.parametrize("at_once", [1, 7, 2**16])
def test_bonds_in_pieces_are_the_list(monkeypatch, lattice: ss.Lattice, at_once: int) -> None:
    monkeypatch.setattr("spinsim.model.lattice._BONDS_AT_ONCE", at_once)
    np.testing.assert_array_equal(np.concatenate(list(lattice.edges_in_pieces())), lattice.edges())


@pytest.mark.parametrize("make", [ss.triangular, ss.honeycomb, ss.hypercubic, ss.cubic])
def test_bonds_are_the_pairs_at_distance_one(make) -> None:
    """Of an open lattice by its positions; of a periodic one by those of all its images besides."""
    for periodic in (False, True):
        lattice = make(4, 5, periodic=periodic) if make in (ss.triangular, ss.honeycomb) else make(4, periodic=periodic)
        at = lattice.site_positions()
        shifts = np.array(np.meshgrid(*[(-1, 0, 1) if periodic else (0,)] * lattice.dimension)).reshape(
            lattice.dimension, -1
        )
        images = (shifts.T * lattice.shape) @ np.array(lattice.cell.vectors)
        near = sum(np.abs(((at[:, None] - at - image) ** 2).sum(axis=-1) - 1) < 1e-9 for image in images)
        bonds = np.zeros((lattice.sites, lattice.sites), int)
        np.add.at(bonds, tuple(lattice.edges().T), 1)
        np.testing.assert_array_equal(bonds + bonds.T, near)


@pytest.mark.parametrize("make", [ss.chain, ss.square, ss.triangular, ss.honeycomb, ss.hypercubic])
def test_modes_belong_to_the_smallest_wave_vector(make) -> None:
    """Phases of layers are those of a wave whose vector is perpendicular to all other axes."""
    lattice = make(6)
    waves = np.linalg.inv(np.array(lattice.cell.vectors)).T / 6
    for axis, (where, length) in enumerate(lattice.phases()):
        layers = lattice.layers(axis)
        assert sorted(layers.ravel()) == list(range(lattice.sites))
        phase = lattice.site_positions() @ waves[axis]
        np.testing.assert_allclose(phase[layers], np.broadcast_to(where[:, None] / length, layers.shape), atol=1e-12)


@pytest.mark.parametrize("make", [ss.chain, ss.square, ss.triangular, ss.honeycomb])
def test_momentum_is_the_wave_number_of_large_lattices(make) -> None:
    lattice = make(600)
    waves = 2 * np.pi * np.linalg.inv(np.array(lattice.cell.vectors)).T / 600
    for axis, wave in enumerate(waves):
        assert lattice.momentum(axis) == pytest.approx(np.linalg.norm(wave), rel=1e-4)
    assert ss.hypercubic(6).momentum(3) == pytest.approx(1)  # 2 sin(pi / 6)


def test_longest_sides_have_a_momentum_of_their_own() -> None:
    assert ss.triangular(6, 8).momentum(0) == pytest.approx(4 / np.sqrt(3) * np.sin(np.pi / 6))
    assert ss.triangular(6, 8).momentum(1) == pytest.approx(4 / np.sqrt(3) * np.sin(np.pi / 8))


MODELS = {
    "triangular": lambda: ss.Ising(ss.triangular(3)),
    "triangular odd": lambda: ss.EdwardsAnderson(ss.triangular(4, 3), samples=2, seed=3),
    "triangular open": lambda: ss.EdwardsAnderson(ss.triangular(3, 4, periodic=False), couplings="gaussian", seed=3),
    "honeycomb": lambda: ss.Ising(ss.honeycomb(2, 3)),
    "honeycomb open": lambda: ss.EdwardsAnderson(ss.honeycomb(3, 2, periodic=False), samples=2, seed=4),
    "hypercubic": lambda: ss.EdwardsAnderson(ss.hypercubic(2), seed=5),
    "hypercubic open": lambda: ss.Ising(ss.hypercubic(3, 2, 2, 1, periodic=False), field=0.25),
}


@pytest.mark.parametrize("name", MODELS)
def test_averages_against_enumeration(name: str) -> None:
    """Energy, m^2 and all that correlations measure; of 32 copies the overlaps of 16 pairs that share none."""
    model, temperature = MODELS[name](), 2.5
    ladder = [temperature, 1.4 * temperature]
    times = {"sweeps": 3000, "thermalize": 200, "measure_every": 5}
    result = ss.temper(model, ladder, replicas=32, seed=2, magnetization_modes=True, **times)
    apart = [k for k, (a, b) in enumerate(copy_pairs(32)) if a % 2 == 0 and b == a + 1]
    rows = []
    for k in range(model.samples):
        exact, n = enumerate_states(model, temperature, k), model.sites
        found = {
            "energy": result.energy[:, k, :, 0] / n,
            "magnetization_squared": (result.magnetization[:, k, :, 0] / n) ** 2,
            "overlap_squared": (result.overlap[:, k, apart, 0] / n) ** 2,
            "magnetization_mode": result.magnetization_mode[:, k, :, 0, 0] / n**2,
            "overlap_mode": result.overlap_mode[:, k, apart, 0, 1] / n**2,
            "link_overlap": result.link_overlap[:, k, apart, 0] / model.bonds,
        }
        for what, values in found.items():
            rows.append((f"{name}, sample {k}, {what}", *replica_mean(values), getattr(exact, what)))
        if model.is_bipartite and not model.fields.any():  # m_s is m of the couplings' negatives
            negative = enumerate_states(ss.Ising(model.graph, -1.0 * model.couplings), temperature, k)
            squares = (result.staggered_magnetization[:, k, :, 0] / n) ** 2
            rows.append((f"{name}, sample {k}, m_s^2", *replica_mean(squares), negative.magnetization_squared))
    assert_agree(rows)


@pytest.mark.parametrize("name", MODELS)
def test_ground_states_against_enumeration(name: str) -> None:
    model = MODELS[name]()
    states = np.arange(2**model.sites)
    spins = (2 * (states >> np.arange(model.sites)[:, None] & 1) - 1).astype(np.int8)
    result = ss.anneal(model, np.geomspace(4, 0.1, 40), sweeps=10, replicas=64, seed=1)
    for k in range(model.samples):
        one = ss.Ising(model.graph, model.couplings[k], model.fields[k % len(model.fields)])
        assert result.best_energy[k].min() == one.energy(spins[None]).min()


def test_files_hold_lattices(tmp_path) -> None:
    for number, make in enumerate(MODELS.values()):
        model, path = make(), tmp_path / f"{number}.h5"
        ss.anneal(model, [2.0], sweeps=1, replicas=2).save(path)
        read = ss.load(str(path)).model
        assert read.lattice == model.lattice
        assert read.content_sha256() == model.content_sha256()


def test_every_lattice_has_its_name() -> None:
    assert {ss.Lattice((2,) * cell.dimension, cell=cell).name for cell in CELLS.values()} == set(CELLS)
    with pytest.raises(ss.InputError, match="triangular lattices have 2 sides, not 3"):
        ss.Lattice((2, 2, 2), True, CELLS["triangular"])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "sides", "t_c"),
    [(ss.triangular, (12, 24, 48), 4 / np.log(3)), (ss.honeycomb, (12, 24, 48), 2 / np.log(2 + np.sqrt(3)))],
    ids=["triangular", "honeycomb"],
)
def test_transition_of_the_ferromagnet(make, sides: tuple[int, ...], t_c: float) -> None:
    """The crossings of the two largest sizes, of Binder cumulants and of xi / L, agree with the exact temperature."""
    ladder = np.linspace(0.97 * t_c, 1.03 * t_c, 9)
    runs = [
        ss.temper(
            ss.Ising(make(side)),
            ladder,
            sweeps=20_000,
            thermalize=4000,
            measure_every=20,
            swap_every=5,
            replicas=32,
            seed=side,
        )
        for side in sides
    ]
    for comparison in compare_sizes(runs, "magnetization", near=t_c):
        last = comparison.crossings[-1].crossing
        assert abs(last.value - t_c) < 4 * last.error + 5e-4 * t_c, comparison.name
        assert last.error < 2e-3 * t_c


@pytest.mark.parametrize("lattice", [ss.triangular(6, 4), ss.honeycomb(4, 3), ss.hypercubic(4, 3, 2, 2)])
def test_configurations_show_every_spin_at_its_place(lattice: ss.Lattice) -> None:
    model = ss.EdwardsAnderson(lattice, seed=2)
    result = ss.anneal(model, np.geomspace(3, 0.2, 5), sweeps=2, replicas=2)
    figure = configuration_figure(result)
    (axes,) = figure.axes
    if lattice.joins_layers:
        np.testing.assert_array_equal(axes.images[0].get_array(), result.best_spins[0][:12].reshape(3, 4))
        assert "z = w = 0" in figure.caption
    else:
        (discs,) = axes.collections
        np.testing.assert_allclose(discs.get_offsets(), lattice.site_positions())
        up = [tuple(colour) == to_rgba(ORANGE) for colour in discs.get_facecolor()]
        np.testing.assert_array_equal(up, result.best_spins[0] > 0)
