"""The update, written as plainly as it can be: unpacked spins, one 64-bit uniform for each, no tricks."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from spinsim import rng
from spinsim.acceptance import acceptance
from spinsim.engine.exchange import FROM_COLD, FROM_HOT
from spinsim.engine.tables import COLUMN_PLANES, OWN_PLANES, PLANES, TAIL_PLANE
from spinsim.model.colouring import colouring
from spinsim.model.ising import Ising

U = np.uint64


def start(model: Ising, replicas: int, seed: int, rounds: int = 10) -> npt.NDArray[np.int8]:
    """Random initial spins (sample, site, replica)."""
    k, i, r = np.ogrid[: model.samples, : model.sites, :replicas]
    words = rng.draw(seed, rng.Stream.START, group=i, sample=k, block=r // 128, rounds=rounds)
    word = np.choose(r % 128 // 32, words)
    return (2 * (word >> (r % 32).astype(U) & U(1)).astype(np.int8) - 1).astype(np.int8)


def site_groups(model: Ising, i: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], ...]:
    """Colour, group in the colour and lane of sites ``i`` of a site-packed lattice."""
    width, height = model.lattice.shape[:2]
    x, y, z = i % width, i // width % height, i // (width * height)
    place = x // 2
    return (x + y + z) % 2, (y + height * z) * (width // 256) + place // 128, place % 128


def start_site(model: Ising, replicas: int, seed: int, rounds: int = 10) -> npt.NDArray[np.int8]:
    """Random initial spins (sample, site, replica) of a site-packed run."""
    k, i, r = np.ogrid[: model.samples, : model.sites, :replicas]
    colour, group, lane = site_groups(model, i)
    group = colour * (model.sites // 256) + group
    words = rng.draw(seed, rng.Stream.START, group=group, sample=k, block=r, rounds=rounds)
    word = np.choose(lane // 32, words)
    return (2 * (word >> (lane % 32).astype(U) & U(1)).astype(np.int8) - 1).astype(np.int8)


def uniform_site(model: Ising):
    """The 64-bit uniforms of the site-packed update, (sample, site, replica), as a function like ``uniform_packed``."""

    def uniform(seed, k, i, r, half_sweep, rounds, always, threshold):
        _, group, lane = site_groups(model, i.reshape(1, 1, -1))
        np.testing.assert_array_equal(lane[0, 0], np.arange(i.size) % 128)  # sites follow one another as lanes do
        always, threshold = np.swapaxes(always, 1, 2), np.swapaxes(threshold, 1, 2)
        u = uniform_lanes(seed, k, group, r.reshape(1, -1, 1), half_sweep, rounds, always, threshold)
        return np.swapaxes(u, 1, 2)

    return uniform


def uniform_packed(seed, k, i, r, half_sweep, rounds, always, threshold):
    """The 64-bit uniforms of the replica-packed update, (sample, site, replica)."""
    lanes = -(-r.size // 128) * 128
    r = np.arange(lanes)[None, None, :]
    pad = [(0, 0), (0, 0), (0, lanes - always.shape[2])]  # lanes past the last replica have nothing left to decide
    u = uniform_lanes(
        seed, k, i, r // 128, half_sweep, rounds, np.pad(always, pad, constant_values=True), np.pad(threshold, pad)
    )
    return u[..., : always.shape[2]]


def uniform_lanes(seed, sample, group, block, half_sweep, rounds, always, threshold):
    """The 64-bit uniforms of whole groups of 128 lanes, last axis: OWN_PLANES bits of planes that all lanes draw,
    COLUMN_PLANES bits for the first undecided lane of each column, the rest from the lane's own call.
    """
    lane = np.arange(always.shape[-1]) % 128
    counters = {"group": group, "sample": sample, "block": block, "half_sweep": half_sweep, "rounds": rounds}

    def bits(plane, word, bit):
        words = rng.draw(seed, rng.Stream.UPDATE, plane=plane, **counters)
        return np.choose(word, words) >> bit.astype(U) & U(1)

    top = U(0)
    for plane in range(OWN_PLANES):
        top = top << U(1) | bits(plane, lane // 32, lane % 32)
    undecided = ~always & (top == threshold >> U(64 - OWN_PLANES))
    columns = undecided.reshape(*undecided.shape[:-1], -1, 4, 32)
    occupant = (columns & (np.cumsum(columns, axis=-2) == 1)).reshape(undecided.shape)
    deeper = U(0)
    for j in range(COLUMN_PLANES):
        deeper = deeper << U(1) | bits(OWN_PLANES, np.full_like(lane, j), lane % 32)
    own = rng.draw(seed, rng.Stream.UPDATE, plane=TAIL_PLANE + lane, **counters)
    tail = own[0] << U(32) | own[1]
    shallow = top << U(64 - OWN_PLANES) | tail >> U(OWN_PLANES)
    deep = top << U(64 - OWN_PLANES) | deeper << U(64 - PLANES) | tail >> U(PLANES)
    return np.where(occupant, deep, shallow)


def uniform_general(seed, k, i, r, half_sweep, rounds, always, threshold):
    """The 64-bit uniform of the general update."""
    counters = {"group": i, "sample": k, "block": r // 128, "half_sweep": half_sweep, "rounds": rounds}
    halves = [
        np.choose(r % 4, rng.draw(seed, rng.Stream.UPDATE, plane=plane + r % 128 // 4, **counters)) for plane in (0, 32)
    ]
    return halves[0] << U(32) | halves[1]


def sweep(model, spins, beta, seed, sweeps, uniform, zero_acceptance=63 / 64, first=0, rounds=10):
    """Metropolis sweeps of ``spins`` (sample, site, replica), in place; ``beta`` is a number or one per replica."""
    colour = colouring(model.graph)
    k, _, r = np.ogrid[: model.samples, :1, : spins.shape[2]]
    ends = model.graph.edges
    couplings = np.stack([model.integer_couplings(s) for s in range(model.samples)])[:, :, None]
    fields = np.stack([model.integer_fields(s) for s in range(model.samples)])[:, :, None]
    for half_sweep in range(first * (colour.max() + 1), (first + sweeps) * (colour.max() + 1)):
        sites = np.flatnonzero(colour == half_sweep % (colour.max() + 1))
        local = np.broadcast_to(fields, spins.shape).astype(np.int64)
        np.add.at(local, (slice(None), ends[:, 0]), couplings * spins[:, ends[:, 1]])
        np.add.at(local, (slice(None), ends[:, 1]), couplings * spins[:, ends[:, 0]])
        cost = (2 * local * spins)[:, sites]
        always, threshold = acceptance(cost, np.asarray(beta) * model.quantum, zero_acceptance)
        always, threshold = np.broadcast_to(always, cost.shape), np.broadcast_to(threshold, cost.shape)
        u = uniform(seed, k, sites[None, :, None], r, half_sweep, rounds, always, threshold)
        flip = always | (u < threshold)
        spins[:, sites] = np.where(flip, -spins[:, sites], spins[:, sites])


def exchange(model, spins, beta, copies, state, round_, seed, rounds=10):
    """One round of exchanges of temperatures ``beta``; ``state`` are arrays like ``Exchange``, changed in place."""
    energy = np.rint(model.energy(spins) / model.quantum).astype(np.int64)
    last = beta.size - 1
    for k, first in np.ndindex(model.samples, copies):
        copy = slice(first * beta.size, (first + 1) * beta.size)
        at = first * beta.size + state.place[k, copy].argsort()
        for t in range(round_ % 2, last, 2):
            gap, step = energy[k, at[t + 1]] - energy[k, at[t]], (beta[t] - beta[t + 1]) * model.quantum
            always, threshold = acceptance(gap, step, 1.0)
            words = rng.draw(seed, rng.Stream.SWAP, group=first * last + t, sample=k, half_sweep=round_, rounds=rounds)
            accepted = always | (words[0] << U(32) | words[1] < threshold)
            state.attempts[k, t] += 1
            state.accepts[k, t] += accepted
            if accepted:
                state.place[k, at[t : t + 2]] = t + 1, t
        place, end = state.place[k, copy], state.last_end[k, copy]
        state.trips[k, copy] += (place == last) & (end == FROM_COLD)
        end[(place == 0) & (end == FROM_HOT)] = FROM_COLD
        end[place == last] = FROM_HOT


def overlaps(spins, place, copies):
    """Sums of s_a s_b of pairs of copies at equal temperatures, (samples, pairs, temperatures)."""
    at = place.reshape(len(place), copies, -1).argsort(axis=-1)
    by_copy = np.moveaxis(spins, 1, -1).reshape(*at.shape, -1).astype(np.int64)
    ordered = np.take_along_axis(by_copy, at[..., None], axis=2)
    pairs = [(a, b) for a in range(copies) for b in range(a + 1, copies)]
    products = [(ordered[:, a] * ordered[:, b]).sum(axis=-1) for a, b in pairs]
    return np.stack(products, axis=1) if pairs else np.empty((len(place), 0, at.shape[-1]), np.int64)


def correlations(model, spins, place, copies):
    """Overlaps and link overlaps (samples, pairs, temperatures), squared modes of overlaps and of magnetisations."""
    at = place.reshape(len(place), copies, -1).argsort(axis=-1)
    by_copy = np.moveaxis(spins, 1, -1).reshape(*at.shape, -1).astype(np.int64)
    ordered = np.take_along_axis(by_copy, at[..., None], axis=2)
    pairs = [(a, b) for a in range(copies) for b in range(a + 1, copies)]
    q = np.stack([ordered[:, a] * ordered[:, b] for a, b in pairs] or [ordered[:, 0]], axis=1)[:, : len(pairs)]
    links = (q[..., model.graph.edges[:, 0]] * q[..., model.graph.edges[:, 1]]).sum(axis=-1)
    return q.sum(axis=-1), links, squared_modes(model.lattice, q), squared_modes(model.lattice, ordered)


def squared_modes(lattice, values):
    """|sum over sites of v exp(2 pi i x / L)|^2 along each axis, (..., axes), of values (..., sites)."""
    found = np.empty((*values.shape[:-1], lattice.dimension if lattice else 0))
    stride = 1
    for axis, side in enumerate(lattice.shape if lattice else ()):
        x = np.arange(lattice.sites) // stride % side
        found[..., axis] = np.abs((values * np.exp(2j * np.pi * x / side)).sum(axis=-1)) ** 2
        stride *= side
    return found
