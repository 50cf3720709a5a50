"""Simulated annealing of one problem on the CPU: whole schedules in one compiled call, replica by replica.

The other updates process many replicas at once. With few replicas, or on a small graph, they spend most of their time
on words and vectors that are nearly empty. These kernels compute the same trajectories, bit for bit, in another order:

    draw    the random numbers of sweeps, as vectors of all sites in the order of their visits
    visit   all sites of each replica in turn: cost of the flip, comparison, and after a flip the neighbours' fields

A visit compares x = beta dE in float32 with -ln u. The first bits of the uniform u give two bounds of -ln u: below both
the flip is accepted, above both it is rejected, and in between all bits decide, as in the updates themselves.

Arrays of a replica are contiguous, with sites in the order of their visits:

    spins   int8 (replicas, sites), +1 or -1
    local   int32 or int64 (replicas, sites), sum of J s over the neighbours plus h, in units
    energy  int64 (replicas,), in units, updated at each flip

All couplings and fields are multiples of the unit, which is a whole number of quanta.
"""

from __future__ import annotations

import math
from functools import partial
from itertools import pairwise
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spinsim import packing, rng
from spinsim.acceptance import LARGEST_EXPONENT, exp_reduced
from spinsim.engine.choosing import check_run, choose_packing, update_of
from spinsim.engine.dynamics import Dynamics, fill_start
from spinsim.engine.given import as_spins
from spinsim.engine.layouts.unpacked import WORDS
from spinsim.engine.moves.metropolis.classes import COLUMN_PLANES, OWN_PLANES, TAIL_PLANE
from spinsim.engine.moves.metropolis.dense_cpu import MARGIN, SURE, decide, draw_bounds, word_of_call
from spinsim.engine.moves.metropolis.unpacked import REFINE, STREAM
from spinsim.machine.compiled import kernel, part
from spinsim.machine.intrinsics import borrowed
from spinsim.machine.memory import require
from spinsim.machine.threads import Threads
from spinsim.model.graph import adjacency, colouring
from spinsim.model.ising import Ising
from spinsim.packing import LANES, Packing

ONE: Final = np.uint64(1)
SHIFT: Final = np.uint64(32)
LANES_OF_WORD: Final = 32
MOST_VISITS: Final = 512  # most visits drawn at once, so that they stay in the nearest cache
COLUMNS: Final = np.uint64(OWN_PLANES)  # plane of the call shared by the lanes of a column
TAIL: Final = np.uint64(TAIL_PLANE)
LOGS: Final = tuple(np.float32(-math.log(k / 2**OWN_PLANES) if k else np.inf) for k in range(2**OWN_PLANES + 1))
"""-ln of the uniforms at which their first bits change; the first entry is for 0."""
HALVES: Final = np.ldexp(1.0, -np.arange(67))  # exp(-LARGEST_EXPONENT) > 2^-66
TWO64: Final = 2.0**64
NEAR: Final = np.float32(2.0**-16)  # far above the rounding of x where logarithms are finite: x is below 4


@part
def flip(k, spins, local, matrix, start, near, doubled):  # type: ignore[no-untyped-def]
    """Flip the k-th spin and update the local fields of its neighbours, by a row of the matrix if there is one."""
    up = spins[k] > 0
    spins[k] = -spins[k]
    if matrix.size:
        row = borrowed(matrix[k])
        if up:
            for j in range(row.size):
                local[j] -= row[j]
        else:
            for j in range(row.size):
                local[j] += row[j]
    else:
        for e in range(start[k], start[k + ONE]):
            local[near[e]] -= doubled[e] if up else -doubled[e]


@part
def look(energy, spins, best_energy, best_spins):  # type: ignore[no-untyped-def]
    """Keep the states that are lower than all before."""
    for r in range(energy.size):
        if energy[r] < best_energy[r]:
            best_energy[r] = energy[r]
            best_spins[r] = spins[r]


@kernel
def begin(spins, fields, bonds, local, energy):  # type: ignore[no-untyped-def]
    """Set local fields and energies of configurations."""
    matrix, start, near, doubled = bonds
    for r in range(spins.shape[0]):
        of_replica, total = local[r], np.int64(0)
        for k in range(fields.size):
            total_field = np.int64(0)
            if matrix.size:
                for j in range(fields.size):
                    total_field += np.int64(matrix[k, j]) * spins[r, j]
            else:
                for e in range(start[k], start[k + 1]):
                    total_field += np.int64(doubled[e]) * spins[r, near[e]]
            of_replica[k] = total_field // 2 + fields[k]
            total += spins[r, k] * (np.int64(of_replica[k]) + fields[k])
        energy[r] = -(total // 2)


@part
def several_sweeps(order, colour, colours, most, sweeps):  # type: ignore[no-untyped-def]
    """Sites and times of the visits of the sweeps that are drawn at once; times count from the first sweep.

    Several sweeps make vectors longer on a small graph. ``most`` is the largest number of visits that fits.
    """
    total = np.int64(0)
    for count in sweeps:
        total += count
    together = max(1, min(most // order.size, total))
    sites, times = np.empty(together * order.size, np.uint32), np.empty(together * order.size, np.uint32)
    for sweep in range(together):
        for k in range(order.size):
            sites[sweep * order.size + k] = order[k]
            times[sweep * order.size + k] = sweep * colours + colour[k]
    return sites, times


@kernel
def anneal_unpacked(  # type: ignore[no-untyped-def]
    state, best, bonds, visits, unit, double_beta, sweeps, looks, zero_acceptance, counter, key, half_sweep
):
    """Sweep some replicas of a model through inverse temperatures like the unpacked update.

    Args:
        state: Spins, local fields and energies of the replicas, changed in place.
        best: Lowest energies seen at looks, int64 (replicas,), and their spins.
        bonds: Fields of ``Bonds``.
        visits: Sites in order, the colour of each, and the number of colours.
        double_beta: Twice the inverse temperatures times the quantum, (steps,); ``looks``: steps after which energies
            are recorded.
        counter: Counter word 1, and the first replica within its block of 128, a multiple of ``WORDS``.
    """
    (spins, local, energy), (best_energy, best_spins), (block, first), (k0, k1, rounds) = state, best, counter, key
    matrix, start, near, doubled = borrowed(bonds[0]), borrowed(bonds[1]), borrowed(bonds[2]), borrowed(bonds[3])
    order, colour, colours = borrowed(visits[0]), borrowed(visits[1]), visits[2]
    calls = (energy.size + WORDS - 1) // WORDS
    drawn = several_sweeps(order, colour, colours, MOST_VISITS // calls, sweeps)
    bounds, zero_exponent = np.empty((calls, WORDS, drawn[0].size), np.float32), np.float32(-math.log(zero_acceptance))
    done = drawn[0].size
    for step in range(double_beta.size):
        beta = double_beta[step]
        beta_32 = np.float32(beta * unit)
        for _ in range(sweeps[step]):
            if done == drawn[0].size:
                done = 0
                for number in range(calls):
                    of_call = np.uint64(first // WORDS + number)
                    draw_bounds(drawn[0].size, bounds[number], *drawn, block, half_sweep, k0, k1, rounds, of_call)
            for r in range(energy.size):
                call, word = np.uint64((first + r) // WORDS), r % WORDS
                mine, fields, gained = borrowed(spins[r]), borrowed(local[r]), np.int64(0)
                upper = borrowed(bounds[r // WORDS, word, done : done + order.size])
                for k in range(np.uint64(order.size)):
                    half_cost = fields[k] * mine[k]
                    x = np.float32(half_cost) * beta_32 if half_cost else zero_exponent
                    accepted = x < min(upper[k] - np.float32(2) * MARGIN, SURE)
                    if not accepted and not x > upper[k]:
                        site, time = np.uint64(order[k]), half_sweep + np.uint64(colour[k])
                        high = word_of_call(word, site, block, time, call, k0, k1, rounds)
                        low = word_of_call(word, site, block, time, call + REFINE, k0, k1, rounds)
                        accepted = decide(np.int64(half_cost) * unit, beta, zero_acceptance, high, low)
                    if accepted:
                        gained += half_cost
                        flip(k, mine, fields, matrix, start, near, doubled)
                energy[r] += 2 * gained
            half_sweep += np.uint64(colours)
            done += order.size
        if looks[step]:
            look(energy, spins, best_energy, best_spins)


@part
def draw_planes(planes, prefix, words, visits, block, half_sweep, k0, k1, rounds):  # type: ignore[no-untyped-def]
    """Draw the first bits of all lanes of all visits, uint32 (4, ``OWN_PLANES``, visits), for ``words`` = 1 or 4 words.

    ``prefix`` is scratch, uint64 (5, visits), for the part of Philox that the planes of a visit share.
    """
    order, colour = visits
    s0, s1, s2, s3, s4 = prefix[0], prefix[1], prefix[2], prefix[3], prefix[4]
    for k in range(order.size):
        low_time = rng.low32(half_sweep + np.uint64(colour[k]))
        s0[k], s1[k], s2[k], s3[k], s4[k] = rng.philox_prefix(np.uint64(order[k]), block, low_time, k0, k1)
    for plane in range(OWN_PLANES):
        of_0, of_1, of_2, of_3 = planes[0, plane], planes[1, plane], planes[2, plane], planes[3, plane]
        if words == 1:
            for k in range(order.size):
                word3 = rng.counter_plane(half_sweep + np.uint64(colour[k]), STREAM, np.uint64(plane))
                x0, _, _, _ = rng.philox_finish(s0[k], s1[k], s2[k], s3[k], s4[k], word3, k0, k1, rounds)
                of_0[k] = np.uint32(x0)
        else:
            for k in range(order.size):
                word3 = rng.counter_plane(half_sweep + np.uint64(colour[k]), STREAM, np.uint64(plane))
                x0, x1, x2, x3 = rng.philox_finish(s0[k], s1[k], s2[k], s3[k], s4[k], word3, k0, k1, rounds)
                of_0[k], of_1[k], of_2[k], of_3[k] = np.uint32(x0), np.uint32(x1), np.uint32(x2), np.uint32(x3)


@part
def first_bits(bits, planes, lane, done):  # type: ignore[no-untyped-def]
    """Set ``bits`` to one lane's first bits, as numbers, for the visits of the sweep that begins at visit ``done``."""
    of_word, bit = planes[lane // LANES_OF_WORD], np.uint32(lane % LANES_OF_WORD)
    now = slice(done, done + bits.size)
    p0, p1, p2 = of_word[0, now], of_word[1, now], of_word[2, now]
    p3, p4 = of_word[3, now], of_word[4, now]
    for k in range(bits.size):
        one = np.uint32(1)
        high = (p0[k] >> bit & one) << np.uint32(4) | (p1[k] >> bit & one) << np.uint32(3)
        low = (p2[k] >> bit & one) << np.uint32(2) | (p3[k] >> bit & one) << np.uint32(1)
        bits[k] = high | low | (p4[k] >> bit & one)


@part
def decide_lane(  # type: ignore[no-untyped-def]
    half_cost, beta, zero_acceptance, bits, lane, taken, k, site, block, time, key
):
    """Return True if a lane flips, by all bits of its uniform; the first of them are ``bits``.

    ``taken`` (sites,) has a bit for each column of lanes, set if a lower lane has used the column's bits. The word of
    the sites' time is that of steps.py.
    """
    # Bits of a uniform, highest first:
    #
    #     | ``bits``, OWN_PLANES of them | COLUMN_PLANES, if no lower lane used the column's | 64 of the lane's own |
    if half_cost < 0:
        return True
    probability = zero_acceptance
    if half_cost:
        mantissa, power = exp_reduced(-min(beta * np.float64(2 * half_cost), LARGEST_EXPONENT))
        probability = mantissa * HALVES[-np.int64(power)]
    if probability >= 1.0:
        return True
    threshold = np.uint64(probability * TWO64)
    first = np.int64(threshold >> np.uint64(64 - OWN_PLANES))
    if bits != first:
        return bits < first
    k0, k1, rounds = key
    low_time, depth = rng.low32(time), np.uint64(OWN_PLANES)
    column = np.uint64(lane % LANES_OF_WORD)
    # The first undecided lane of a column has the right to its four bits.
    if not np.uint64(taken[k]) >> column & ONE:
        taken[k] |= np.uint32(ONE << column)
        word3 = rng.counter_plane(time, STREAM, COLUMNS)
        x0, x1, x2, x3 = rng.philox(site, block, low_time, word3, k0, k1, rounds)
        drawn = (x0 >> column & ONE) << np.uint64(3) | (x1 >> column & ONE) << np.uint64(2)
        drawn |= (x2 >> column & ONE) << ONE | (x3 >> column & ONE)
        next_bits = threshold >> np.uint64(64 - OWN_PLANES - COLUMN_PLANES) & np.uint64(2**COLUMN_PLANES - 1)
        if drawn != next_bits:
            return drawn < next_bits
        depth += np.uint64(COLUMN_PLANES)
    # Still equal: 64 more bits against the rest of the threshold.
    word3 = rng.counter_plane(time, STREAM, TAIL + np.uint64(lane))
    x0, x1, _, _ = rng.philox(site, block, low_time, word3, k0, k1, rounds)
    return (x0 << SHIFT | rng.low32(x1)) < threshold << depth


@kernel
def anneal_packed(  # type: ignore[no-untyped-def]
    state, best, bonds, visits, unit, betas, sweeps, looks, zero_acceptance, counter, key, half_sweep
):
    """Do ``anneal_unpacked`` like replica-packed updates.

    ``betas`` are inverse temperatures times the quantum. Lanes of a column share bits, so the replicas must be a whole
    block of 128, or any if the model has at most 32.
    """
    # planes[w, plane, visit]    bit b is one bit of the uniform of lane 32 w + b, plane 0 the highest
    # bits[k]                    the first OWN_PLANES bits of one lane at visit k, as a number
    # lower, upper               bounds of -ln u for each such number:  accept | all bits decide | reject
    (spins, local, energy), (best_energy, best_spins), (block, first), (k0, k1, rounds) = state, best, counter, key
    matrix, start, near, doubled = borrowed(bonds[0]), borrowed(bonds[1]), borrowed(bonds[2]), borrowed(bonds[3])
    order, colour, colours = borrowed(visits[0]), borrowed(visits[1]), visits[2]
    words = (first + energy.size + LANES_OF_WORD - 1) // LANES_OF_WORD
    drawn = several_sweeps(order, colour, colours, MOST_VISITS, sweeps)
    planes, prefix = np.empty((4, OWN_PLANES, drawn[0].size), np.uint32), np.empty((5, drawn[0].size), np.uint64)
    bits, taken = np.empty(order.size, np.uint32), np.empty(order.size, np.uint32)
    done = drawn[0].size
    zero_exponent = np.float32(-math.log(zero_acceptance))
    lower, upper = np.empty(1 << OWN_PLANES, np.float32), np.empty(1 << OWN_PLANES, np.float32)
    for k in range(lower.size):
        lower[k], upper[k] = LOGS[k + 1] - NEAR, LOGS[k] + NEAR
    for step in range(betas.size):
        beta = betas[step]
        beta_32 = np.float32(2.0 * beta * unit)
        for _ in range(sweeps[step]):
            # Planes of several sweeps are drawn together, for long loops.
            if done == drawn[0].size:
                draw_planes(planes, prefix, words, drawn, block, half_sweep, k0, k1, rounds)
                done = 0
            taken[:] = 0
            for r in range(energy.size):
                first_bits(bits, planes, first + r, done)
                mine, fields, gained = borrowed(spins[r]), borrowed(local[r]), np.int64(0)
                for k in range(np.uint64(order.size)):
                    half_cost, number = fields[k] * mine[k], bits[k]
                    x = np.float32(half_cost) * beta_32 if half_cost else zero_exponent
                    # Most visits end here, with one of two comparisons.
                    accepted = x < lower[number]
                    if not accepted and not x > upper[number]:
                        accepted = decide_lane(
                            np.int64(half_cost) * unit, beta, zero_acceptance, np.int64(number), first + r, taken, k,
                            np.uint64(order[k]), block, half_sweep + np.uint64(colour[k]), key,
                        )  # fmt: skip
                    if accepted:
                        # The energy is updated once a sweep, from the sum of half costs.
                        gained += half_cost
                        flip(k, mine, fields, matrix, start, near, doubled)
                energy[r] += 2 * gained
            half_sweep += np.uint64(colours)
            done += order.size
        if looks[step]:
            look(energy, spins, best_energy, best_spins)


MOST_IN_MATRIX: Final = 2048  # most sites for a matrix of couplings, of at most 32 MB
SPARSEST: Final = 8  # most sites for a matrix, as a multiple of the mean number of bonds of a site
LANES_APART: Final = 32
"""Most replicas without a shared column of lanes (classes.py); up to this number, threads may divide them."""
ATTEMPTS: Final = 8
"""Attempts that take as long as 128 spins of other updates, the unit of work for threads."""
Quanta = npt.NDArray[np.int64]
_ALL_LANES: Final = packing.lane_masks(LANES)[0]


class Bonds(NamedTuple):
    """Twice the couplings of a model, in units, with sites in the order of their visits."""

    matrix: npt.NDArray[np.signedinteger]  # all pairs, (sites, sites); empty if most would be 0
    start: npt.NDArray[np.int64]  # where each site's neighbours begin, (sites + 1,); one number with a matrix
    near: npt.NDArray[np.uint32]  # the neighbours
    doubled: npt.NDArray[np.signedinteger]  # 2 J of each neighbour


class ReplicaByReplica:
    """Problem of one sample in the form for annealing, independent of replicas.

    Attributes:
        unit: Largest common unit of all couplings and fields, in quanta.
        fields: h in units, (sites,), in the order of visits.
        is_packed: True if it moves like the replica-packed update, else like the unpacked one.
    """

    def __init__(self, model: Ising) -> None:
        colour = colouring(model.graph)
        self.is_packed = choose_packing(model) is Packing.REPLICA
        self.order = np.argsort(colour, kind="stable").astype(np.uint32)
        self.colour = colour[self.order].astype(np.uint32)
        self.colours = int(colour.max()) + 1
        couplings, fields = model.integer_couplings(0), model.integer_fields(0)
        self.unit = max(1, int(np.gcd(np.gcd.reduce(couplings), np.gcd.reduce(fields))))
        doubled = 2 * couplings // self.unit
        width: type[np.signedinteger] = np.int32 if self._are_narrow(model, couplings, fields) else np.int64
        self.fields = (fields // self.unit)[self.order].astype(width)
        self.bonds = self._bonds(model, doubled.astype(width))

    def _are_narrow(self, model: Ising, couplings: Quanta, fields: Quanta) -> bool:
        """Return True if ``int32`` holds twice every local field, in units; for most models rough bounds suffice."""
        sizes, limit = np.abs(couplings), 2**31
        if 2 * (int(sizes.sum()) + int(np.abs(fields).max())) // self.unit < limit:
            return True
        is_wide = 2 * int(sizes.max(initial=0)) // self.unit >= limit
        return not is_wide and 2 * model.largest_local_field // self.unit < limit

    def _bonds(self, model: Ising, doubled: npt.NDArray[np.signedinteger]) -> Bonds:
        sites, place = model.sites, np.argsort(self.order).astype(np.uint32)
        if sites <= MOST_IN_MATRIX and sites**2 <= SPARSEST * 2 * model.bonds:
            one, other = place.astype(np.intp)[model.graph.edges].T
            matrix = np.zeros((sites, sites), doubled.dtype)
            np.add.at(matrix.reshape(-1), one * sites + other, doubled)
            matrix += matrix.T
            return Bonds(matrix, np.zeros(1, np.int64), np.empty(0, np.uint32), np.empty(0, doubled.dtype))
        rows = adjacency(model.graph)
        degree = np.diff(rows.start)[self.order]
        start = np.concatenate([[0], np.cumsum(degree)])
        at = np.repeat(rows.start[self.order] - start[:-1], degree) + np.arange(start[-1])
        return Bonds(np.empty((0, 0), doubled.dtype), start, place[rows.neighbour[at]], doubled[rows.bond[at]])


def suits(model: Ising, replicas: int, sweeps: float) -> bool:
    """Return True if this is faster than an engine that does ``sweeps`` sweeps at each temperature.

    The times are rough, from an EPYC with AVX-512 (docs/benchmarks/performance.md); no bit depends on them.
    """
    kind = choose_packing(model, replicas)
    if model.samples > 1 or kind not in (Packing.REPLICA, Packing.UNPACKED) or model.terms is not None:
        return False
    colours = model.once(ReplicaByReplica).colours
    sites, degree, blocks = model.sites, 2 * model.bonds / model.sites, packing.block_count(replicas)
    own = 8.0 * sites * replicas
    if kind is Packing.REPLICA:
        engine = 20_000 / sweeps + blocks * (500.0 * colours + (sites / 8 + colours / 2) * (150 + 12 * degree))
    elif update_of(model, replicas).one_by_one:
        own *= 1 + sites / 256
        engine = 40_000 / sweeps + 11.5 * sites * replicas
    else:
        engine = 40_000 / sweeps + sites * (100 * blocks + 1.4 * replicas)
    return own <= engine


class Annealer:
    """Replicas of a problem of one sample that pass through inverse temperatures, with the lowest state of each.

    Args:
        start: Initial configurations as in ``create_engine``; None for the start of ``dynamics``.

    Raises:
        InputError: for a run that does not fit its memory or random counters, and a start that does not fit the model.
    """

    device_name, devices = "cpu", 1

    def __init__(
        self, model: Ising, replicas: int, dynamics: Dynamics, threads: int | None = None,
        start: npt.ArrayLike | None = None,
    ) -> None:  # fmt: skip
        check_run(model, replicas, 0, 1)
        self.model, self.replicas, self._dynamics, self._threads = model, replicas, dynamics, Threads(threads)
        self._plan = plan = model.once(ReplicaByReplica)
        self.colours, self.half_sweep = plan.colours, 0
        require((4 * plan.fields.itemsize + 4) * replicas * model.sites, f"{replicas} replicas of {model.sites} sites")
        self._spins = np.empty((replicas, model.sites), np.int8)
        if start is None:
            self._begin_as_stated()
        else:
            self._spins[:] = as_spins(start, model, replicas)[0][:, plan.order]
        self._local = np.empty((replicas, model.sites), plan.fields.dtype)
        self._energy = np.empty(replicas, np.int64)
        self._best_energy, self._best_spins = np.full(replicas, np.iinfo(np.int64).max), np.empty_like(self._spins)
        begin(self._spins, plan.fields, plan.bonds, self._local, self._energy)
        self._parts = self._shared_out()

    def _begin_as_stated(self) -> None:
        sites = self.model.sites
        for first in range(0, self.replicas, LANES):
            words, lanes = np.empty((sites, 2), np.uint64), min(LANES, self.replicas - first)
            fill_start(words, _ALL_LANES, self._dynamics, 0, first // LANES)
            up = np.unpackbits(words.astype("<u8", copy=False).view(np.uint8), axis=1, count=lanes, bitorder="little")
            self._spins[first : first + lanes] = 2 * up.view(np.int8)[self._plan.order].T - 1

    def _shared_out(self) -> list[tuple[int, int]]:
        """Return the first replica, and the last plus one, of each task."""
        apart = not self._plan.is_packed or self.replicas <= LANES_APART
        size = min(LANES, -(-self.replicas // (WORDS * self._threads.count)) * WORDS) if apart else LANES
        ends = {*range(0, self.replicas, size), *range(0, self.replicas, LANES), self.replicas}
        return list(pairwise(sorted(ends)))

    def anneal(
        self, betas: npt.NDArray[np.float64], sweeps: npt.NDArray[np.int64], looks: npt.NDArray[np.bool_]
    ) -> None:
        """Sweep at each inverse temperature in turn, and record lower energies after the steps marked by ``looks``."""
        attempts = int(sweeps.sum()) * self.model.sites * self.replicas
        tasks = (partial(self._anneal_part, betas, sweeps, looks, *ends) for ends in self._parts)
        self._threads.run(tasks, attempts // ATTEMPTS)
        self.half_sweep += int(sweeps.sum()) * self.colours

    def _anneal_part(self, betas: Any, sweeps: Any, looks: Any, first: int, stop: int) -> None:
        plan, dynamics, mine = self._plan, self._dynamics, slice(first, stop)
        block, lane = divmod(first, LANES)
        scaled = betas * self.model.quantum
        (anneal_packed if plan.is_packed else anneal_unpacked)(
            (self._spins[mine], self._local[mine], self._energy[mine]),
            (self._best_energy[mine], self._best_spins[mine]), plan.bonds, (plan.order, plan.colour, plan.colours),
            plan.unit, scaled if plan.is_packed else 2.0 * scaled, sweeps, looks, dynamics.zero_acceptance,
            (dynamics.counter_block(0, block), lane), (*rng.split_seed(dynamics.seed), dynamics.rng_rounds),
            np.uint64(self.half_sweep),
        )  # fmt: skip

    def look(self) -> None:
        lower = self._energy < self._best_energy
        self._best_energy[lower], self._best_spins[lower] = self._energy[lower], self._spins[lower]

    def present(self) -> npt.NDArray[np.int8]:
        """Return the present configurations, +1 and -1, (replicas, sites)."""
        return self._in_order_of_sites(self._spins)

    def states(self) -> npt.NDArray[np.int8]:
        """Return the configurations of lowest energy seen at looks, +1 and -1, (replicas, sites)."""
        return self._in_order_of_sites(self._best_spins)

    def _in_order_of_sites(self, spins: npt.NDArray[np.int8]) -> npt.NDArray[np.int8]:
        ordered = np.empty_like(spins)
        ordered[:, self._plan.order] = spins
        return ordered
