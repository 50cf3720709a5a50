"""Bonds of their own on the sites of a lattice: bonds decide, the lattice has positions and Fourier modes alone."""

from __future__ import annotations

import numpy as np
import pytest

import spinsim as ss
from spinsim.errors import InputError
from spinsim.model.graph import colouring
from spinsim.observables.distances import spin_correlation

LATTICE = ss.square(4)
DIAGONALS = np.concatenate([LATTICE.edges(), np.stack([np.arange(16), (np.arange(16) + 5) % 16], axis=1)])


def test_bonds_of_the_lattice_make_it_the_lattice() -> None:
    same = ss.Ising(ss.Graph(16, LATTICE.edges(), LATTICE), -1.0)
    assert same.lattice is same.embedding is LATTICE
    assert same.content_sha256() == ss.Ising(LATTICE, -1.0).content_sha256()
    assert same.name == LATTICE.label


@pytest.mark.parametrize(
    "edges",
    [DIAGONALS, DIAGONALS[:9], LATTICE.edges()[::-1], LATTICE.edges()[:, ::-1], DIAGONALS[16:], np.empty((0, 2), int)],
    ids=["more", "fewer", "in another order", "turned round", "as many", "none"],
)
def test_other_bonds_decide(edges: np.ndarray) -> None:
    """They took colours and bonds of the lattice: averages were wrong, and with more bonds runs hung."""
    graph = ss.Graph(16, edges, LATTICE)
    alone = ss.Graph(16, edges)
    assert graph.lattice is None
    assert graph.embedding is LATTICE
    assert graph.bonds == len(edges)
    np.testing.assert_array_equal(colouring(graph), colouring(alone))
    colour = colouring(graph)
    assert np.all(colour[graph.edges[:, 0]] != colour[graph.edges[:, 1]])
    one, other = (ss.Ising(each, -1.0) for each in (graph, alone))
    assert one.content_sha256() != other.content_sha256()  # one is measured with modes
    results = [ss.temper(model, [1.0, 2.0], sweeps=40, replicas=2, seed=4) for model in (one, other)]
    np.testing.assert_array_equal(results[0].energy, results[1].energy)
    np.testing.assert_array_equal(results[0].overlap, results[1].overlap)
    assert results[0].overlap_mode.shape[-1] == 2
    assert results[1].overlap_mode.size == 0


def test_positions_are_those_of_the_lattice() -> None:
    model = ss.Ising(ss.Graph(16, DIAGONALS, LATTICE), -1.0)
    result = ss.temper(model, [2.0], sweeps=20, seed=1, measure={"G": spin_correlation})
    assert result.measured["G"].shape[-2:] == (2, 3)


def test_a_file_keeps_the_lattice_and_the_bonds(tmp_path) -> None:
    model = ss.Ising(ss.Graph(16, DIAGONALS, LATTICE), -1.0)
    result = ss.temper(model, [1.0, 2.0], sweeps=40, seed=4)
    again = ss.load(result.save(tmp_path / "a.h5"))
    assert again.model.embedding == LATTICE
    assert again.model.lattice is None
    assert again.model.content_sha256() == model.content_sha256()
    np.testing.assert_array_equal(again.overlap_mode, result.overlap_mode)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: ss.Graph(9, [(0, 1)], LATTICE), "lattice square-4x4 has 16 sites, not 9"),
        (lambda: ss.Graph(16, None, ss.square(5)), "25 sites, not 16"),
        (lambda: ss.Graph(16, [(0, 1)], "square"), "lattice = 'square' has the wrong type: give a Lattice"),
        (lambda: ss.Graph(16, [(0, 16)], LATTICE), "edge end 16 is not a site"),
        (lambda: ss.Graph(16, [(3, 3)], LATTICE), "joins site 3 to itself"),
        (lambda: ss.Graph(16, [(0, 1)], slices=3), "16 sites do not fill 3 slices"),
        (lambda: ss.Graph(24, None, ss.square(4, 6), slices=6), "24 sites do not fill 6 slices"),
    ],
)
def test_a_lattice_that_does_not_fit_is_refused(make, words: str) -> None:
    with pytest.raises(InputError, match=words):
        make()
