"""The update, written as plainly as it can be: unpacked spins, one 64-bit uniform for each, no tricks.

Nothing here comes from the product but the model: its bonds, their terms, its couplings and fields in quanta, its
lattice's sides.
The generator, its streams and counters, the order of the colours, the thresholds, the planes and the exchanges are
stated anew, so that a mistake in the product's statement of them cannot hide. Where the two differ, neither is copied
from the other before it is understood which one is wrong.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spinsim.model.ising import Ising

U = np.uint64
LOW = U(0xFFFFFFFF)

# What a random number is for stands in bits 8 to 15 of the counter's last word.
UPDATE, START, SWAP, RESAMPLE = 1, 2, 4, 10

# Of the 64 bits that decide a flip of a packed update each lane has its own first five. The first undecided lane of a
# column takes its next four from a call that all columns share; every undecided lane takes the rest from its own call.
OWN_PLANES, COLUMN_PLANES, TAIL_PLANE = 5, 4, 128

# Which end of the ladder a replica has been at last; the coldest counts only after the hottest.
NOWHERE, FROM_HOT, FROM_COLD = 0, 1, 2


class State(NamedTuple):
    """Of the exchanges: temperature of each replica, attempts and successes of each pair, round trips, last ends."""

    place: npt.NDArray[np.int32]
    attempts: npt.NDArray[np.int64]
    accepts: npt.NDArray[np.int64]
    trips: npt.NDArray[np.int64]
    last_end: npt.NDArray[np.int8]


def philox(counter, key, rounds):
    """Philox4x32 (Salmon et al. 2011): four words of 32 bits from four and a key of two."""
    a, b, c, d = (np.asarray(word, U) for word in counter)
    left, right = (U(word) for word in key)
    for _ in range(rounds):
        one, other = U(0xD2511F53) * a, U(0xCD9E8D57) * c
        a, b, c, d = (other >> U(32)) ^ b ^ left, other & LOW, (one >> U(32)) ^ d ^ right, one & LOW
        left, right = (left + U(0x9E3779B9)) & LOW, (right + U(0xBB67AE85)) & LOW
    return np.broadcast_arrays(a, b, c, d)


def draw(seed, stream, group=0, sample=0, block=0, half_sweep=0, plane=0, rounds=10):
    """Four words for each of the broadcast counters.

    The counter is group; 18 bits of sample and 14 of block; the low 32 bits of the half-sweep; its high 16 bits, 8 of
    the stream, 8 of the plane. The key is the seed, its low word first.
    """
    group, sample, block, plane = (np.asarray(number).astype(U) for number in (group, sample, block, plane))
    time = (half_sweep >> 32) << 16 | stream << 8
    counter = group, sample << U(14) | block, U(half_sweep % 2**32), U(time) | plane
    return philox(counter, (seed % 2**32, seed >> 32), rounds)


def colouring(model: Ising) -> npt.NDArray[np.int64]:
    """Colour of each site: on the triangular lattice three where these serve; two where they do, the first site of each
    connected part having 0.

    Else the smallest that no neighbour has, site by site, those of most bonds first and of equally many the first one.
    """
    if model.lattice and model.lattice.name == "triangular":
        (width, height), i = model.lattice.shape, np.arange(model.sites)
        if not model.lattice.periodic or width % 3 == height % 3 == 0:
            return np.unique((i % width + 2 * (i // width)) % 3, return_inverse=True)[1]
    near = [[] for _ in range(model.sites)]
    for i, j in model.graph.edges.tolist():
        near[i].append(j)
        near[j].append(i)
    colour = [-1] * model.sites
    for first in range(model.sites):
        if colour[first] < 0:
            colour[first], waiting = 0, deque([first])
            while waiting:
                i = waiting.popleft()
                for j in near[i]:
                    if colour[j] < 0:
                        colour[j] = 1 - colour[i]
                        waiting.append(j)
    if any(colour[i] == colour[j] for i in range(model.sites) for j in near[i]):
        colour = [-1] * model.sites
        for i in sorted(range(model.sites), key=lambda i: -len(near[i])):
            taken = {colour[j] for j in near[i]}
            colour[i] = next(c for c in range(len(taken) + 1) if c not in taken)
    return np.array(colour)


def acceptance(cost, beta, zero_acceptance):
    """Whether a flip of this cost needs no random number, and else the 64-bit number that the uniform must stay below.

    The threshold is 2^64 exp(-beta cost) without its fraction. The library's exp may differ from the product's in its
    last bits, which decide one flip in 2^47; ``test_packing.py`` compares the product's own with exact numbers.
    """
    cost = np.asarray(cost)
    with np.errstate(over="ignore"):
        probability = np.exp(-(np.asarray(beta, np.float64) * np.maximum(cost, 0)))
    probability = np.where(cost == 0, zero_acceptance, probability)
    always = (cost < 0) | (probability >= 1)
    return always, np.floor(np.where(always, 0, probability) * 2.0**64).astype(U)


def acceptance_of_terms(costs, betas, zero_acceptance):
    """The same of costs and inverse temperatures of two terms, along the last axes.

    What costs 2^-30 or less, or gains no more, is accepted with ``zero_acceptance`` times the usual probability.
    """
    parts = np.asarray(betas, np.float64) * costs
    cost = parts[..., 0] + parts[..., 1]
    probability = np.exp(-np.clip(cost, 0, 1000))
    probability = np.where(abs(cost) <= 2.0**-30, zero_acceptance * probability, probability)
    always = probability >= 1
    return always, np.floor(np.where(always, 0, probability) * 2.0**64).astype(U)


def terms_of(model: Ising) -> npt.NDArray[np.bool_]:
    """Which bonds belong to each term of the energy, (terms, bonds); fields belong to the first term."""
    if model.terms is None:
        return np.ones((1, model.bonds), np.bool_)
    return np.stack([model.terms == 0, model.terms == 1])


def integers(model: Ising) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Couplings (sample, bond, 1) and fields (sample, site, 1) in quanta."""
    couplings = [model.integer_couplings(k) for k in range(model.samples)]
    fields = [model.integer_fields(k) for k in range(model.samples)]
    return np.stack(couplings)[:, :, None], np.stack(fields)[:, :, None]


def energies(model: Ising, spins: npt.NDArray[np.int8]) -> npt.NDArray[np.int64]:
    """Energies of each term in quanta (sample, replica, term) of spins (sample, site, replica)."""
    couplings, fields = integers(model)
    s, ends = spins.astype(np.int64), model.graph.edges
    of_bonds = couplings * s[:, ends[:, 0]] * s[:, ends[:, 1]]
    found = np.stack([-(of_bonds * mine[None, :, None]).sum(axis=1) for mine in terms_of(model)], axis=-1)
    found[..., 0] -= (fields * s).sum(axis=1)
    return found


def energy(model: Ising, spins: npt.NDArray[np.int8]) -> npt.NDArray[np.int64]:
    """Total energies in quanta (sample, replica) of spins (sample, site, replica)."""
    return energies(model, spins).sum(axis=-1)


def staggered(model: Ising, spins: npt.NDArray[np.int8]) -> npt.NDArray[np.int64]:
    """Sums over colour 0 less those over colour 1, (sample, replica), of spins (sample, site, replica).

    They are 0 off lattices, where an odd cycle leaves more than two colours, and in space and time.
    """
    colour = colouring(model)
    two = model.lattice and colour.max() < 2 and model.graph.slices == 1
    sign = np.where(colour == 0, 1, -1) if two else np.zeros(model.sites, np.int64)
    return np.asarray((sign[:, None] * spins.astype(np.int64)).sum(axis=1))


def start(model: Ising, replicas: int, seed: int, rounds: int = 10) -> npt.NDArray[np.int8]:
    """Random initial spins (sample, site, replica)."""
    k, i, r = np.ogrid[: model.samples, : model.sites, :replicas]
    words = draw(seed, START, group=i, sample=k, block=r // 128, rounds=rounds)
    word = np.choose(r % 128 // 32, words)
    return (2 * (word >> (r % 32).astype(U) & U(1)).astype(np.int8) - 1).astype(np.int8)


def site_groups(model: Ising, i: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], ...]:
    """Colour, group in the colour and lane of sites ``i`` of a site-packed lattice."""
    width, height = model.lattice.shape[:2]
    x, y, z = i % width, i // width % height, i // (width * height)
    number = (y + height * z) * (width // 2) + x // 2
    return (x + y + z) % 2, number // 128, number % 128


def start_site(model: Ising, replicas: int, seed: int, rounds: int = 10) -> npt.NDArray[np.int8]:
    """Random initial spins (sample, site, replica) of a site-packed run."""
    k, i, r = np.ogrid[: model.samples, : model.sites, :replicas]
    colour, group, lane = site_groups(model, i)
    group = colour * -(-model.sites // 256) + group
    words = draw(seed, START, group=group, sample=k, block=r, rounds=rounds)
    word = np.choose(lane // 32, words)
    return (2 * (word >> (lane % 32).astype(U) & U(1)).astype(np.int8) - 1).astype(np.int8)


def uniform_site(model: Ising):
    """The 64-bit uniforms of the site-packed update, (sample, site, replica), as a function like ``uniform_packed``."""

    def uniform(seed, k, i, r, half_sweep, rounds, always, threshold):
        _, group, lane = site_groups(model, i.reshape(-1))
        groups = -(-model.sites // 256)
        certain = np.ones((*always.shape[::2], 128 * groups), np.bool_)  # lanes that are no sites decide nothing
        thresholds = np.zeros(certain.shape, U)
        certain[..., 128 * group + lane] = np.swapaxes(always, 1, 2)
        thresholds[..., 128 * group + lane] = np.swapaxes(threshold, 1, 2)
        every = np.arange(128 * groups)[None, None] // 128
        u = uniform_lanes(seed, k, every, r.reshape(1, -1, 1), half_sweep, rounds, certain, thresholds)
        return np.swapaxes(u[..., 128 * group + lane], 1, 2)

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
        words = draw(seed, UPDATE, plane=plane, **counters)
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
    own = draw(seed, UPDATE, plane=TAIL_PLANE + lane, **counters)
    tail = own[0] << U(32) | own[1]
    shallow = top << U(64 - OWN_PLANES) | tail >> U(OWN_PLANES)
    planes = OWN_PLANES + COLUMN_PLANES
    deep = top << U(64 - OWN_PLANES) | deeper << U(64 - planes) | tail >> U(planes)
    return np.where(occupant, deep, shallow)


def uniform_general(seed, k, i, r, half_sweep, rounds, always, threshold):
    """The 64-bit uniform of the general update."""
    counters = {"group": i, "sample": k, "block": r // 128, "half_sweep": half_sweep, "rounds": rounds}
    halves = [np.choose(r % 4, draw(seed, UPDATE, plane=plane + r % 128 // 4, **counters)) for plane in (0, 32)]
    return halves[0] << U(32) | halves[1]


def sweep(model, spins, beta, seed, sweeps, uniform, zero_acceptance=63 / 64, first=0, rounds=10, in_pairs=False):
    """Metropolis sweeps of ``spins`` (sample, site, replica), in place; ``beta`` is a number or one per replica.

    Where it comes ``in_pairs``, one inverse temperature for each of two terms, these are along a last axis.
    """
    colour = colouring(model)
    colours = int(colour.max()) + 1
    k, _, r = np.ogrid[: model.samples, :1, : spins.shape[2]]
    ends = model.graph.edges
    couplings, fields = integers(model)
    for half_sweep in range(first * colours, (first + sweeps) * colours):
        sites = np.flatnonzero(colour == half_sweep % colours)
        costs = []
        for term, mine in enumerate(terms_of(model)):
            local = np.broadcast_to(fields if term == 0 else 0 * fields, spins.shape).astype(np.int64)
            own = couplings * mine[:, None]
            np.add.at(local, (slice(None), ends[:, 0]), own * spins[:, ends[:, 1]])
            np.add.at(local, (slice(None), ends[:, 1]), own * spins[:, ends[:, 0]])
            costs.append((2 * local * spins)[:, sites])
        cost, scaled = sum(costs), np.asarray(beta) * model.quantum
        if not in_pairs:
            always, threshold = acceptance(cost, scaled, zero_acceptance)
        else:
            always, threshold = acceptance_of_terms(np.stack(costs, axis=-1), scaled, zero_acceptance)
        always, threshold = np.broadcast_to(always, cost.shape), np.broadcast_to(threshold, cost.shape)
        u = uniform(seed, k, sites[None, :, None], r, half_sweep, rounds, always, threshold)
        flip = always | (u < threshold)
        spins[:, sites] = np.where(flip, -spins[:, sites], spins[:, sites])


def resample(exponent, family, populations, step, seed, rounds=10):
    """Who is whose parent, the change of ln Z and how many are copied, of populations whose weights are exp(exponent).

    Replicas are taken family by family. The k-th of R points (k + u) / R of the sum of weights, with a uniform u, lies
    on a parent. Parents keep their places; further copies go to the others' places, both in the order of replicas.
    """
    samples, replicas = family.shape
    size = replicas // populations
    parent = np.tile(np.arange(replicas), (samples, 1))
    change, copied = np.empty((samples, populations)), np.empty((samples, populations), np.int64)
    for k, p in np.ndindex(samples, populations):
        mine = list(range(p * size, (p + 1) * size))
        words = draw(seed, RESAMPLE, group=p, sample=k, half_sweep=step, rounds=rounds)
        uniform = (int(words[0]) // 2 + 0.5) / 2**31
        in_order = sorted(mine, key=lambda r: (family[k, r], r))
        largest = exponent[k, mine].max()
        weights = np.exp(exponent[k, in_order] - largest)
        ends, copies = np.cumsum(weights) * (size / weights.sum()), dict.fromkeys(mine, 0)
        for point in range(size):
            copies[in_order[int(np.searchsorted(ends, point + uniform, "right").clip(max=size - 1))]] += 1
        spare = [r for r in mine for _ in range(copies[r] - 1)]
        parent[k, [r for r in mine if not copies[r]]] = spare
        change[k, p], copied[k, p] = largest + np.log(weights.mean()), sum(count > 0 for count in copies.values())
    return parent, change, copied


def begin(samples: int, copies: int, temperatures: int) -> State:
    """Before the first exchange: replica c T + t, of copy c, is at temperature t of T, counted from the coldest."""
    place = np.tile(np.arange(temperatures, dtype=np.int32), (samples, copies))
    last_end = np.where(place == temperatures - 1, FROM_HOT, NOWHERE).astype(np.int8)
    pairs = np.zeros((samples, temperatures - 1), np.int64)
    return State(place, pairs, pairs.copy(), np.zeros(place.shape, np.int64), last_end)


def exchange(model, spins, beta, copies, state, round_, seed, rounds=10):
    """One round of exchanges of temperatures ``beta``, or of pairs of them; ``state`` is changed in place."""
    parts = energies(model, spins)
    count, last = len(beta), len(beta) - 1
    for k, first in np.ndindex(model.samples, copies):
        copy = slice(first * count, (first + 1) * count)
        at = first * count + state.place[k, copy].argsort()
        for t in range(round_ % 2, last, 2):
            gaps, steps = parts[k, at[t + 1]] - parts[k, at[t]], (beta[t] - beta[t + 1]) * model.quantum
            if np.ndim(beta) < 2:
                always, threshold = acceptance(gaps.sum(), steps, 1.0)
            else:
                always, threshold = acceptance_of_terms(gaps, steps, 1.0)
            words = draw(seed, SWAP, group=first * last + t, sample=k, half_sweep=round_, rounds=rounds)
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


def correlations(model, spins, place, copies, times=(), even=False):
    """Overlaps and link overlaps (samples, pairs, temperatures), squared modes of overlaps and of magnetisations.

    Of space and time also sums over slices of powers of both, correlations of spins with themselves in time, and with
    ``even`` those of products of neighbours in space, with their link overlap.
    """
    at = place.reshape(len(place), copies, -1).argsort(axis=-1)
    by_copy = np.moveaxis(spins, 1, -1).reshape(*at.shape, -1).astype(np.int64)
    ordered = np.take_along_axis(by_copy, at[..., None], axis=2)
    pairs = [(a, b) for a in range(copies) for b in range(a + 1, copies)]
    q = np.stack([ordered[:, a] * ordered[:, b] for a, b in pairs] or [ordered[:, 0]], axis=1)[:, : len(pairs)]
    links = (q[..., model.graph.edges[:, 0]] * q[..., model.graph.edges[:, 1]]).sum(axis=-1)
    modes = squared_modes(model.embedding, q), squared_modes(model.embedding, ordered)
    none = np.empty((*ordered.shape[:-1], 0), np.int64), np.empty((len(place), 0, at.shape[-1]), np.int64)
    products = (products_in_time(model, ordered, times), links_in_space(model, q)) if even else none
    of_slices = powers(model, q), powers(model, ordered), in_time(model, ordered, times)
    return q.sum(axis=-1), links, *modes, *of_slices, *products


def by_slice(model, values):
    """Values (..., sites) as (..., sites of space, slices), where the sites of a cell stand beside each other."""
    of_cell = model.lattice.cell.sites if model.lattice else 1
    slices = model.graph.slices
    cells = values.reshape(*values.shape[:-1], model.sites // slices // of_cell, slices, of_cell)
    return np.moveaxis(cells, -1, -2).reshape(*values.shape[:-1], model.sites // slices, slices)


def powers(model, values):
    """Sums over slices of second and fourth powers of the sums within each, (..., 2); none without time."""
    if model.graph.slices == 1:
        return np.empty((*values.shape[:-1], 0), np.int64)
    sums = by_slice(model, values).sum(axis=-2)
    return np.stack([(sums**2).sum(axis=-1), (sums**4).sum(axis=-1)], axis=-1)


def in_time(model, spins, times):
    """Sums over sites and slices of s(tau) s(tau + t), (..., times)."""
    s = by_slice(model, spins)
    found = [(s * np.roll(s, -time, axis=-1)).sum(axis=(-2, -1)) for time in times]
    return np.stack(found, axis=-1) if times else np.empty((*spins.shape[:-1], 0), np.int64)


def ends_in_space(model):
    """Both ends of each bond whose sites are in one slice, (bonds, 2)."""
    time = by_slice(model, np.arange(model.sites) * 0) + np.arange(model.graph.slices)
    slice_of = np.empty(model.sites, int)
    slice_of[by_slice(model, np.arange(model.sites))] = time
    return model.graph.edges[slice_of[model.graph.edges[:, 0]] == slice_of[model.graph.edges[:, 1]]]


def products_in_time(model, spins, times):
    """Sums over bonds in space and slices of (s_x s_y)(tau) (s_x s_y)(tau + t), (..., times)."""
    one, other = ends_in_space(model).T
    found = []
    for time in times:
        later = np.empty_like(spins)
        later[..., by_slice(model, np.arange(model.sites))] = np.roll(by_slice(model, spins), -time, axis=-1)
        found.append((spins[..., one] * spins[..., other] * later[..., one] * later[..., other]).sum(axis=-1))
    return np.stack(found, axis=-1)


def links_in_space(model, q):
    """Link overlaps of bonds in space, from products of two copies' spins."""
    one, other = ends_in_space(model).T
    return (q[..., one] * q[..., other]).sum(axis=-1)


def squared_modes(lattice, values):
    """|sum over sites of v exp(2 pi i x / L)|^2 along each axis, (..., axes), of values (..., sites)."""
    found = np.empty((*values.shape[:-1], lattice.dimension if lattice else 0))
    honeycomb = bool(lattice) and lattice.name.startswith("honeycomb")  # its second sites lie a third further
    stride = 1
    for axis, side in enumerate(lattice.shape if lattice else ()):
        i = np.arange(lattice.sites)
        is_time = lattice.name == "honeycomb-in-time" and axis == 0
        x = i // 2 // stride % side + (0 if is_time else i % 2 / 3) if honeycomb else i // stride % side
        found[..., axis] = np.abs((values * np.exp(2j * np.pi * x / side)).sum(axis=-1)) ** 2
        stride *= side
    return found
