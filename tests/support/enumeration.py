"""Every observable of a run's summary by enumeration of all states of small models."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

import spinsim as ss

Array = npt.NDArray[np.float64]


class Thermal:
    """Averages of one sample at one temperature over all 2^N states; overlaps over all 4^N pairs of them.

    Args:
        model: Of at most 10 sites or so.
        temperature: In the unit of the couplings.
        sample: Which of its samples.
        k_time: Coupling of neighbours in time of a model of space and time, 1 / temperature where it is not given.
    """

    def __init__(self, model: ss.Ising, temperature: float, sample: int = 0, k_time: float | None = None) -> None:
        states = np.arange(2**model.sites)
        self.spins = (2.0 * (states >> np.arange(model.sites)[:, None] & 1)) - 1
        rows = model.couplings[sample % len(model.couplings)], model.fields[sample % len(model.fields)]
        energy = ss.Ising(model.graph, *rows).energy(self.spins[None].astype(np.int8))[0]
        lines = model.graph.world_lines()
        self.in_time = -(self.spins[lines] * self.spins[np.roll(lines, -1, axis=1)]).sum(axis=(0, 1))
        self.k_time = 1 / temperature if k_time is None else k_time
        action = energy / temperature + (self.k_time - 1 / temperature) * self.in_time
        weight = np.exp(-(action - action.min()))
        self.model, self.temperature, self.energy = model, temperature, energy / model.sites
        self.weight = weight / weight.sum()
        self.m = self.spins.mean(axis=0)
        self.m_s = sublattices(model) @ self.spins / model.sites
        self.q = self.spins.T @ self.spins / model.sites
        self.pair = np.outer(self.weight, self.weight)
        self.of_site = self.spins @ self.weight
        self.of_sites = (self.spins * self.weight) @ self.spins.T

    def mean(self, values: Array) -> float:
        """Average over the states, or over pairs of them."""
        return float((values * (self.weight if values.ndim == 1 else self.pair)).sum())

    def mode(self, correlation: Array) -> float:
        """Mean over axes of the sum of a correlation (sites, sites) times cos(k (x_i - x_j)), over N^2."""
        lattice, found = self.model.embedding, []
        assert lattice is not None
        for axis, side in enumerate(lattice.shape):
            x = np.arange(self.model.sites) // int(np.prod(lattice.shape[:axis])) % side
            found.append((correlation * np.cos(2 * np.pi * (x[:, None] - x) / side)).mean())
        return float(np.mean(found))


def sublattices(model: ss.Ising) -> Array:
    """+1 and -1 on the two sublattices of a lattice with right angles, by the parity of x + y + z, from 0 on.

    A graph has none.
    """
    lattice, rest, parity = model.embedding, np.arange(model.sites), np.zeros(model.sites, int)
    if lattice is None:
        return np.zeros(model.sites)
    for side in lattice.shape:
        parity += rest % side
        rest //= side
    return 1.0 - 2 * (parity % 2)


def exact_summary(samples: list[Thermal]) -> dict[str, float]:
    """Every observable that a summary may have, by name, of samples at one temperature; all axes are equally long."""
    model, temperature = samples[0].model, samples[0].temperature
    assert model.embedding is not None
    sites, side, field = model.sites, model.embedding.shape[0], bool(model.fields.any())

    def over(of) -> float:
        return float(np.mean([of(sample) for sample in samples]))

    def length(zero: float, smallest: float) -> float:
        ratio = max(0.0, zero / smallest - 1)  # of antiferromagnets, which have no such length
        return float(np.sqrt(ratio) / (2 * np.sin(np.pi / side)) / side)

    squares = over(lambda s: s.mean(s.m**2))
    connected = over(lambda s: s.mean(s.m**2) - s.mean(s.m) ** 2)
    overlaps, ends = over(lambda s: s.mean(s.q**2)), model.graph.edges
    both = over(lambda s: float(((s.of_sites - np.outer(s.of_site, s.of_site)) ** 2).sum()) / sites)
    second = connected if field else squares
    staggered = over(lambda s: s.mean(s.m_s**2))
    found = {
        "energy_per_site": over(lambda s: s.mean(s.energy)),
        "specific_heat": sites * over(lambda s: s.mean(s.energy**2) - s.mean(s.energy) ** 2) / temperature**2,
        "energy_binder_cumulant": 1
        - over(lambda s: s.mean(s.energy**4)) / (3 * over(lambda s: s.mean(s.energy**2)) ** 2),
        "magnetization": over(lambda s: s.mean(s.m)),
        "abs_magnetization": over(lambda s: s.mean(np.abs(s.m))),
        "magnetization_squared": squares,
        "susceptibility": sites * second / temperature,
        "susceptibility_abs": sites * (squares - over(lambda s: s.mean(np.abs(s.m)) ** 2)) / temperature,
        "binder_cumulant": 1 - over(lambda s: s.mean(s.m**4)) / (3 * squares**2),
        "correlation_length_over_L": length(second, over(lambda s: s.mode(s.of_sites))),
        "abs_staggered_magnetization": over(lambda s: s.mean(np.abs(s.m_s))),
        "staggered_magnetization_squared": staggered,
        "staggered_susceptibility": sites * staggered / temperature,
        "staggered_binder_cumulant": 1 - over(lambda s: s.mean(s.m_s**4)) / (3 * staggered**2),
        "overlap": over(lambda s: s.mean(s.q)),
        "abs_overlap": over(lambda s: s.mean(np.abs(s.q))),
        "overlap_squared": overlaps,
        "spin_glass_susceptibility": both if field else sites * overlaps,
        "overlap_binder_cumulant": 1 - over(lambda s: s.mean(s.q**4)) / (3 * overlaps**2),
        "link_overlap": over(lambda s: float((s.of_sites[ends[:, 0], ends[:, 1]] ** 2).mean())),
    }
    if not field:
        found["overlap_correlation_length_over_L"] = length(overlaps, over(lambda s: s.mode(s.of_sites**2)))
    return found


def exact_in_time(samples: list[Thermal]) -> dict[str, float]:
    """Every observable that chains in time have differently, of samples at one 1 / k; slices are neighbours."""
    model, k = samples[0].model, 1 / samples[0].temperature
    slices = model.graph.slices
    space, sites = model.sites // slices, model.sites
    lines = np.arange(sites).reshape(space, slices)

    def over(of) -> float:
        return float(np.mean([of(sample) for sample in samples]))

    def slice_power(s: Thermal, power: int) -> float:
        return s.mean((s.spins[lines].mean(axis=0) ** power).mean(axis=0))

    def overlap_power(s: Thermal, power: int) -> float:
        found = [s.spins[line].T @ s.spins[line] / space for line in lines.T]
        return s.mean(np.mean([q**power for q in found], axis=0))

    x, tau = np.divmod(np.arange(sites), slices)

    def length(zero: float, where: Array, side: int, power: int) -> float:
        wave = np.cos(2 * np.pi * (where[:, None] - where) / side)
        ratio = zero / over(lambda s: float((s.of_sites**power * wave).mean()))
        excess = ratio - 1 if ratio - 1 > 1e-12 else np.nan  # rounding is no correlation length
        return float(np.sqrt(excess) / (2 * np.sin(np.pi / side)) / side)

    first = over(lambda s: correlation(s, 1))
    action = over(lambda s: s.mean(s.energy))
    k_time = samples[0].k_time
    transverse = float(np.cosh(2 * k_time) - first * np.sinh(2 * k_time))
    gamma = float(np.arctanh(np.exp(-2 * k_time))) / k
    squares, overlaps = over(lambda s: s.mean(s.m**2)), over(lambda s: s.mean(s.q**2))
    m2, m4 = (over(lambda s, n=n: slice_power(s, n)) for n in (2, 4))
    q2, q4 = (over(lambda s, n=n: overlap_power(s, n)) for n in (2, 4))
    return {
        "space_energy_per_site": action + first,
        "transverse_magnetization": transverse,
        "quantum_energy_per_site": action + first - gamma * transverse,
        "quantum_specific_heat": over(lambda s: specific_heat(s, gamma)),
        "correlation_in_time_1": first,
        "action_per_site": action,
        "action_heat": k**2 * sites * over(lambda s: s.mean(s.energy**2) - s.mean(s.energy) ** 2),
        "slice_magnetization_squared": m2,
        "slice_binder_cumulant": 1 - m4 / (3 * m2**2),
        "correlation_time_over_slices": length(squares, tau, slices, 1),
        "correlation_length_over_L": length(squares, x, space, 1),
        "slice_overlap_squared": q2,
        "slice_overlap_fourth": q4,
        "slice_overlap_binder_cumulant": 1 - q4 / (3 * q2**2),
        "overlap_correlation_time_over_slices": length(overlaps, tau, slices, 2),
        "overlap_correlation_length_over_L": length(overlaps, x, space, 2),
    }


def specific_heat(sample: Thermal, gamma: float) -> float:
    """Beta^2 d^2 ln Z / d beta^2 of the quantum model per site of space, by differences."""
    slices = sample.model.graph.slices
    beta, step = slices / sample.temperature, 2e-3

    def log_partition(b: float) -> float:
        turn = gamma * b / slices
        action = b / slices * (sample.energy * sample.model.sites - sample.in_time)
        action -= np.log(np.tanh(turn)) / 2 * sample.in_time
        constant = sample.model.sites * np.log(np.sinh(2 * turn) / 2) / 2
        return float(np.log(np.exp(-action).sum()) + constant)

    second = log_partition(beta * (1 + step)) - 2 * log_partition(beta) + log_partition(beta * (1 - step))
    return second / step**2 / (sample.model.sites // slices)


def correlation(sample: Thermal, time: int) -> float:
    """The mean of s(tau) s(tau + time) over sites and slices."""
    slices = sample.model.graph.slices
    lines = np.arange(sample.model.sites).reshape(-1, slices)
    return float(sample.of_sites[lines, np.roll(lines, -time, axis=1)].mean())


def neighbours(sample: Thermal) -> tuple[list[float], float]:
    """Of a ring in space: the mean of (s_x s_x+1)(tau) (s_x s_x+1)(tau + t) at t = 0, 1, ...; that of <s_x s_x+1>^2."""
    spins = sample.spins.reshape(-1, sample.model.graph.slices, sample.spins.shape[1])
    products = spins * np.roll(spins, -1, axis=0)
    correlations = [
        sample.mean((products * np.roll(products, -t, axis=1)).mean(axis=(0, 1))) for t in range(len(spins[0]))
    ]
    return correlations, float(((products @ sample.weight) ** 2).mean())
