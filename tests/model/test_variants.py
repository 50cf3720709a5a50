"""Models with the same disorder: antiperiodic boundaries and perturbed couplings."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from harness import run

import spinsim as ss
from spinsim.errors import InputError


@pytest.mark.parametrize(
    "lattice", [ss.chain(5), ss.square(4, 3), ss.square(2, 3), ss.cubic(3, 2, 4), ss.triangular(3, 4), ss.honeycomb(3)]
)
def test_bonds_across_a_boundary_change_sign(lattice) -> None:
    """Energies equal those with images s(x + L) = -s(x)."""
    model = ss.EdwardsAnderson(lattice, samples=2, seed=3)
    spins = np.random.default_rng(1).choice(np.array([-1, 1]), (2, lattice.sites))
    for axis, side in enumerate(lattice.shape):
        made = ss.antiperiodic(model, axis)
        energy = np.zeros(2)
        bonds = (bond for _ in range(np.prod(lattice.shape)) for bond in lattice.cell.bonds)
        cells = (c[::-1] for c in product(*map(range, lattice.shape[::-1])) for _ in lattice.cell.bonds)
        for number, (cell, bond) in enumerate(zip(cells, bonds, strict=True)):
            there = cell[axis] + bond.step[axis]
            i, j = lattice.edges()[number]
            sign = 1 if 0 <= there < side else -1
            energy -= model.couplings[:, number] * sign * spins[:, i] * spins[:, j]
        assert np.array_equal(made.energy(spins), energy)
        assert made.content_sha256() != model.content_sha256()
        assert np.array_equal(ss.antiperiodic(made, axis).couplings, model.couplings)


def test_pm_j_bonds_flip_with_their_probability_and_gaussian_ones_keep_their_law() -> None:
    glass = ss.EdwardsAnderson(ss.square(64), samples=4, seed=3, dilution=0.2)
    flipped = np.count_nonzero(ss.perturbed(glass, 0.1, 5).couplings != glass.couplings)
    there = np.count_nonzero(glass.couplings)
    assert abs(flipped - 0.1 * there) < 4 * np.sqrt(0.09 * there)
    assert np.array_equal(ss.perturbed(glass, 1.0).couplings, -glass.couplings)
    assert np.array_equal(ss.perturbed(glass, 0.0).couplings, glass.couplings)
    one = ss.perturbed(ss.EdwardsAnderson(ss.square(64), samples=2, seed=3, dilution=0.2), 0.1, 5)
    assert np.array_equal(one.couplings, ss.perturbed(glass, 0.1, 5).couplings[:2])
    gauss = ss.EdwardsAnderson(ss.square(64), samples=4, seed=3, couplings="gaussian")
    j, k = gauss.couplings.ravel(), ss.perturbed(gauss, 0.5, 5).couplings.ravel()
    assert abs(k.std() - 1) < 4 / np.sqrt(2 * j.size)
    assert abs((j * k).mean() - 1 / np.sqrt(1.25)) < 4 * np.sqrt((1 + 1 / 1.25) / j.size)


def test_commands_make_the_same_models(tmp_path, capsys, monkeypatch) -> None:
    path = tmp_path / "a.h5"
    words = "--lattice cubic --size 4 --couplings gaussian --samples 2 --disorder-seed 3 --antiperiodic 1 --sweeps 20"
    run(capsys, monkeypatch, "temper", *words.split(), "--perturbation", 0.25, "--perturbation-seed", 6, "--out", path)
    model = ss.EdwardsAnderson(ss.cubic(4), samples=2, seed=3, couplings="gaussian")
    result = ss.load(path)
    assert result.model.content_sha256() == ss.antiperiodic(ss.perturbed(model, 0.25, 6), 1).content_sha256()
    assert result.config["model"]["antiperiodic"] == 1


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: ss.antiperiodic(ss.Ising(ss.square(4, periodic=False))), "no periodic boundary"),
        (lambda: ss.antiperiodic(ss.Ising(ss.square(4)), 2), "along axis 2"),
        (lambda: ss.antiperiodic(ss.Ising(ss.square(4, 1)), 1), "along axis 1"),
        (lambda: ss.perturbed(ss.EdwardsAnderson(ss.square(4)), 1.5), "from 0 to 1"),
        (lambda: ss.perturbed(ss.Ising(ss.chain(3), [1.0, 2.0, 3.0]), 0.5), "cannot be perturbed"),
    ],
)
def test_refusals(make, words) -> None:
    with pytest.raises(InputError, match=words):
        make()
