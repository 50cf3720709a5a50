"""QUBOs whose penalties are far larger than what a flip costs in a good state, made by seed."""

from __future__ import annotations

import numpy as np

import spinsim as ss

Terms = dict[tuple[int, int], float]


def independent_set(sites: int, density: float, penalty: float, seed: int) -> ss.Ising:
    """The largest independent set of a random graph; the energy of a set is minus its number of sites."""
    random = np.random.default_rng(seed)
    terms: Terms = {(i, i): -1.0 for i in range(sites)}
    terms |= {(i, j): penalty for i in range(sites) for j in range(i) if random.random() < density}
    return ss.Ising.from_qubo(terms)


def at_most_one(groups: int, size: int, penalty: float, seed: int) -> ss.Ising:
    """The heaviest member of each group, of weight 20, where no two of a group go together."""
    random = np.random.default_rng(seed)
    terms: Terms = {}
    for group in range(groups):
        members = range(group * size, (group + 1) * size)
        terms |= {(i, i): -20.0 if i == members[0] else -float(random.integers(1, 20)) for i in members}
        terms |= {(i, j): penalty for i in members for j in members if j < i}
    return ss.Ising.from_qubo(terms)


def assignment(size: int, penalty: float, seed: int) -> ss.Ising:
    """Each of ``size`` rows gets a column of its own, at costs of 1 to 99."""
    random = np.random.default_rng(seed)
    places = [(row, column) for row in range(size) for column in range(size)]
    terms: Terms = {(i, i): float(random.integers(1, 100)) - 2 * penalty for i in range(size * size)}
    for i, (row, column) in enumerate(places):
        for j, (other_row, other_column) in enumerate(places[:i]):
            if row == other_row or column == other_column:
                terms[i, j] = 2 * penalty
    return ss.Ising.from_qubo(terms)


def subset_sum(numbers: int, seed: int) -> ss.Ising:
    """Numbers up to 1,000 that add up to half of their sum: (sum a x - half)^2 without its constant."""
    random = np.random.default_rng(seed)
    a = random.integers(1, 1000, numbers).astype(float)
    half = a.sum() // 2
    terms: Terms = {(i, i): a[i] ** 2 - 2 * half * a[i] for i in range(numbers)}
    terms |= {(i, j): 2 * a[i] * a[j] for i in range(numbers) for j in range(i)}
    return ss.Ising.from_qubo(terms)


FAMILIES = {
    "independent set": lambda seed: independent_set(60, 0.4, 2.0, seed),
    "independent set, large penalty": lambda seed: independent_set(60, 0.4, 1e4, seed),
    "at most one": lambda seed: at_most_one(6, 10, 1e3, seed),
    "at most one, large penalty": lambda seed: at_most_one(6, 10, 1e6, seed),
    "assignment": lambda seed: assignment(6, 1e3, seed),
    "subset sum": lambda seed: subset_sum(30, seed),
}
