"""Which runs are of one model in two sizes."""

from __future__ import annotations

import numpy as np
import pytest
from made_up import tempered, with_config

import spinsim as ss
from spinsim.analysis.kinds import check_one_model
from spinsim.analysis.sizes import compare_sizes
from spinsim.analysis.strips import length_crossings
from spinsim.model.trotter import trotter


def glass(lattice, samples=4, seed=1, **how):
    return ss.EdwardsAnderson(lattice, samples=samples, seed=seed, **how)


def gaussian(lattice, **how):
    return glass(lattice, couplings="gaussian", **how)


def uniform(lattice, samples=4):
    """Random couplings of another law, with the mean and the mean square of Gaussian ones."""
    bonds = ss.Ising(lattice).bonds
    return ss.Ising(lattice, np.random.default_rng(3).uniform(-np.sqrt(3), np.sqrt(3), (samples, bonds)))


ALIKE = {
    "ferromagnets": (ss.Ising(ss.square(4)), ss.Ising(ss.square(6))),
    "samples of one law": (glass(ss.cubic(4)), glass(ss.cubic(6), seed=2, samples=2)),
    "bond fraction": (glass(ss.square(4), bond_fraction=0.9), glass(ss.square(8), bond_fraction=0.9)),
    "Gaussian": (gaussian(ss.square(4)), gaussian(ss.square(8), samples=1)),
    "sides of one ratio": (glass(ss.cubic(2, 2, 4)), glass(ss.cubic(3, 3, 6))),
    "diluted": (glass(ss.square(8), dilution=0.3), glass(ss.square(6), seed=2, dilution=0.3)),
    "field": (ss.Ising(ss.square(4), 1.0, 0.5), ss.Ising(ss.square(6), 1.0, 0.5)),
    "slices in time": (trotter(glass(ss.square(4)), 32), trotter(glass(ss.square(6), seed=2), 48)),
}
DIFFERENT = {
    "bond fractions": (glass(ss.square(4), bond_fraction=0.5), glass(ss.square(6), bond_fraction=0.9), "mean J"),
    "one sample of each": (
        glass(ss.square(4), 1, bond_fraction=0.5), glass(ss.square(6), 1, bond_fraction=0.9), "mean J"),
    "ratios of sides": (glass(ss.cubic(4)), glass(ss.cubic(4, 4, 8)), "4 x 4 x 4 and 4 x 4 x 8 have different ratios"),
    "dimensions": (glass(ss.square(4)), glass(ss.cubic(4)), "2 and 3 dimensions"),
    "lattices": (glass(ss.square(4)), glass(ss.triangular(6)), "their lattices are square and triangular"),
    "dilution": (glass(ss.square(4)), glass(ss.square(6), dilution=0.5), r"mean \|J\| 1 and 0.5"),
    "random fields": (glass(ss.square(4)), glass(ss.square(6), random_field=1.0), "mean h"),
    "boundaries": (glass(ss.square(4)), glass(ss.square(6, periodic=False)), "one boundary is periodic"),
    "graphs": (ss.Ising(ss.square(4)), ss.Ising(ss.Graph(3, np.array([[0, 1], [1, 2]], np.int32))), "has a lattice"),
    "strengths": (ss.Ising(ss.square(4)), ss.Ising(ss.square(6), 2.0), "mean J 1 and 2"),
    "signs": (ss.Ising(ss.square(4)), ss.Ising(ss.square(6), -1.0), "mean J 1 and -1"),
    "randomness": (ss.Ising(ss.square(4)), glass(ss.square(6), bond_fraction=0.9), "mean J 1"),
    "laws": (glass(ss.square(6)), gaussian(ss.square(4)), r"mean \|J\|"),
    "laws of one variance": (gaussian(ss.square(16)), uniform(ss.square(24)), r"mean \|J\|"),
    "fields": (ss.Ising(ss.square(4), 1.0, 0.5), ss.Ising(ss.square(6), 1.0, 0.25), "mean h 0.5 and 0.25"),
    "slices of different kinds": (trotter(glass(ss.square(4)), 4), trotter(gaussian(ss.square(6)), 4), r"mean \|J\|"),
    "a field and none": (ss.Ising(ss.square(4), 1.0, 0.5), ss.Ising(ss.square(6)), "mean h"),
}  # fmt: skip


def made(model):
    return tempered(model, steps=4)


@pytest.mark.parametrize("models", ALIKE.values(), ids=ALIKE)
def test_alike(models) -> None:
    check_one_model(*map(made, models))


@pytest.mark.parametrize(("one", "other", "words"), DIFFERENT.values(), ids=DIFFERENT)
def test_different(one, other, words) -> None:
    for pair in ((one, other), (other, one)):
        with pytest.raises(ss.InputError, match="are not one model in two sizes"):
            check_one_model(*map(made, pair))
    with pytest.raises(ss.InputError, match=words):
        check_one_model(made(one), made(other))


def told(result, **settings):
    """As a run of the command line with these settings."""
    model = {"instance": None, "couplings": "pm-j", "bond_fraction": 0.5, "field": 0.0} | settings
    return with_config(result, {"model": model})


def test_settings_say_it_where_both_have_them() -> None:
    """Whatever the samples happen to be."""
    one, other = made(glass(ss.square(4), 1, bond_fraction=0.5)), made(glass(ss.square(6), 1, bond_fraction=0.6))
    check_one_model(one, other)
    check_one_model(told(one, bond_fraction=0.6), told(other, bond_fraction=0.6))
    with pytest.raises(ss.InputError, match=r"bond_fraction is 0.5 and 0.6, give such runs"):
        check_one_model(told(one), told(other, bond_fraction=0.6))
    check_one_model(told(one), other)


def test_many_pairs_of_one_law_pass() -> None:
    """Four standard errors refuse one pair in 16,000, so none of these."""
    for seed in range(100):
        for make in (glass, gaussian):
            check_one_model(made(make(ss.square(4), seed=seed)), made(make(ss.square(6), seed=1000 + seed)))


def test_both_comparisons_ask() -> None:
    with pytest.raises(ss.InputError, match="have different ratios"):
        compare_sizes([made(glass(ss.cubic(4))), made(glass(ss.cubic(4, 4, 8)))])
    strips = [
        ss.transfer(glass(ss.chain(width), bond_fraction=p, samples=20), temperature=[2, 3, 4, 5.0], device="cpu")
        for width, p in ((2, 0.5), (4, 0.9))
    ]
    with pytest.raises(ss.InputError, match="mean J"):
        length_crossings(strips)
