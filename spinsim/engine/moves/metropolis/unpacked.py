"""General Metropolis update: any integer couplings and fields on any graph, one replica per lane of the vector unit.

Replica r of a sample takes word r % 4 of the Philox call with plane (r % 128) // 4 of block r // 128. That 32-bit word
decides unless it equals the top half of the 64-bit threshold; then the same word of plane + 32 is the lower half.

On the CPU a chunk of replicas holds one byte per spin. The replicas of each word of the calls are contiguous, so that
loops over them vectorise:

    spins[site] = [ word 0 of all calls | word 1 of all calls | word 2 | word 3 ]

Most updates are decided by ``screen``: a float32 exponential with an error far below its margin. If a uniform lies
within the margin, the float64 exponential of acceptance.py decides. So the outcome never depends on the screen.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Final

import numpy as np
import numpy.typing as npt

from spinsim import packing, rng
from spinsim.acceptance import LARGEST_EXPONENT, NEARLY_NOTHING, ROUND, check_beta, check_betas, exp_reduced
from spinsim.engine.cpu import CpuEngine, CpuParts, CpuSweeper
from spinsim.engine.dynamics import Dynamics
from spinsim.engine.layouts.unpacked import WORDS, Chunks, InChunks, by_word, count_chunks, total_energies
from spinsim.engine.measuring.cpu import CpuReplicaComparison
from spinsim.engine.measuring.sums import Counts
from spinsim.engine.moves.exchange import CpuTempering, Ladder, Times, exchange
from spinsim.engine.update import Pace, Sizes, Update, by_sites, bytes_with_adjacency
from spinsim.machine.compiled import kernel, part
from spinsim.machine.threads import Threads
from spinsim.model.graph import MOST_TERMS, adjacency, adjacency_by_term, colouring
from spinsim.model.ising import Ising
from spinsim.packing import LANES, Packing


class UnpackedPlan:
    """Unpacked run of a model.

    Attributes:
        colour_start: Colour c has ``order[colour_start[c]:colour_start[c + 1]]``.
        start: The neighbours of site i are ``neighbour[start[i]:start[i + 1]]``.
        middle: Neighbours by bonds of term 0 come first, up to ``middle[i]``; with one term these are all.
        couplings: J of each neighbour in quanta, (1 or samples, neighbours), int32 if local fields fit, else int64.
        fields: h in quanta, (1 or samples, sites), of the same type.
        first: Sites of the first sublattice, which come first in the order; 0 if the model is not bipartite.
        terms: Number of terms of the energy: 2 if the model states them.
        bonds: The model's bonds, term 0 first.
    """

    def __init__(self, model: Ising) -> None:
        near = adjacency(model.graph)
        colour = colouring(model.graph)
        self.colours = int(colour.max()) + 1
        self.order = np.argsort(colour, kind="stable").astype(np.uint32)
        self.colour_start = np.searchsorted(colour[self.order], np.arange(self.colours + 1))
        self.first = int(self.colour_start[1]) if model.is_bipartite else 0
        self.terms = 1 if model.terms is None else MOST_TERMS
        self.start, self.middle = near.start, near.start[1:]
        self.bonds: slice | npt.NDArray[np.int64] = slice(None)
        self.of_first = model.bonds
        if model.terms is not None:
            near, self.middle = adjacency_by_term(model.graph, model.terms)
            self.bonds, self.of_first = np.argsort(model.terms, kind="stable"), int(np.count_nonzero(model.terms == 0))
        self.neighbour, self.edges = near.neighbour.astype(np.uint32), model.graph.edges[self.bonds]
        width = np.int32 if 2 * model.largest_local_field < 2**31 else np.int64
        rows = range(len(model.couplings)), range(len(model.fields))
        self.couplings = np.stack([model.integer_couplings(k)[near.bond].astype(width) for k in rows[0]])
        self.fields = np.stack([model.integer_fields(k).astype(width) for k in rows[1]])

    @staticmethod
    def double_beta(model: Ising, beta: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Twice ``beta`` times the quantum, (1 or samples, 1 or 2 terms, replicas padded to whole Philox calls).

        ``beta`` is (1 or samples, replicas) or, for both terms, (1 or samples, replicas, 2).
        """
        padding = np.repeat(beta[:, -1:], -beta.shape[1] % WORDS, axis=1)
        padded = np.append(beta, padding, axis=1).reshape(len(beta), beta.shape[1] + padding.shape[1], -1)
        return np.ascontiguousarray(2.0 * model.quantum * padded.swapaxes(1, 2))


def suits(_: Sizes, replicas: int) -> bool:
    return True


def needed_bytes(sizes: Sizes, replicas: int) -> int:
    unpacking = 3 * LANES * sizes.sites  # for the start of one block
    return unpacking + bytes_with_adjacency(sizes, replicas, LANES)


UPDATE: Final = Update(
    *(Packing.UNPACKED, suits, needed_bytes, by_sites, f"{__name__}:engine", f"{__name__}_cuda:engine"),
    pace=Pace(500, in_one_call=False),
)


STREAM: Final = np.uint64(rng.Stream.UPDATE)
REFINE: Final = np.uint64(LANES // 4)  # plane offset of the lower halves
TWO32: Final = 4294967296.0
EXPONENT_BIAS: Final = np.int64(1023 + 32)  # so that the scaled probability is p * 2^32
MANTISSA_BITS: Final = np.int64(52)

LOG2_E: Final = np.float32(1.44269504)
LN2_HIGH: Final = np.float32(0.693359375)  # exact in 9 bits
LN2_LOW: Final = np.float32(-2.12194440e-4)
ROUND_32: Final = np.float32(12582912.0)  # 1.5 * 2^23
LOWEST: Final = np.float32(-60.0)
BIAS_32: Final = np.int32(127 + 31)
MANTISSA_BITS_32: Final = np.int32(23)
TWO32_32: Final = np.float32(4294967296.0)
NOUGHT: Final = np.float32(0.0)
HALVE: Final = np.uint32(1)
SLACK: Final = np.float32(2.0)  # covers the integers dropped on the way to 2^-31
SERIES: Final = tuple(np.float32(1 / f) for f in (720, 120, 24, 6, 2, 1))
MARGIN: Final = np.float32(2.0**-16)  # four times the worst relative error, 22 * 1.5 * 2^-23, at exp(-22) = 2^-31


@part
def draw(uniform, site, block, half_sweep, k0, k1, rounds, first_call):  # type: ignore[no-untyped-def]
    """Draw the 32-bit uniform integers of a chunk, into ``uniform`` (4, calls)."""
    word3 = rng.counter_plane(half_sweep, STREAM, first_call)
    low_sweep = rng.low32(half_sweep)
    word_0, word_1, word_2, word_3 = uniform[0], uniform[1], uniform[2], uniform[3]
    for call in range(word_0.size):
        x0, x1, x2, x3 = rng.philox(site, block, low_sweep, word3 + np.uint64(call), k0, k1, rounds)
        word_0[call] = np.uint32(x0)
        word_1[call] = np.uint32(x1)
        word_2[call] = np.uint32(x2)
        word_3[call] = np.uint32(x3)


@part
def local_fields(local, field, spins, near, couplings):  # type: ignore[no-untyped-def]
    """Set ``local`` to the sum of J s over the neighbours plus h, for every replica, in the integers' own width."""
    for r in range(local.size):
        local[r] = field
    for k in range(near.size):
        coupling = couplings[k]
        row = spins[near[k]]
        for r in range(local.size):
            local[r] += coupling * row[r]


@part
def scaled_probabilities(spin, local, double_beta, zero_acceptance, mantissa, power, scaled):  # type: ignore[no-untyped-def]
    """Set ``scaled`` to 2^32 times the acceptance probability of every replica; 2^33 if the flip gains energy.

    ``scaled`` is the float view of ``power``: adding ``ROUND`` leaves the power of two in the lowest bits.
    """
    for r in range(local.size):
        y = -(np.float64(local[r] * spin[r]) * double_beta[r])
        y = y if y > -LARGEST_EXPONENT else -LARGEST_EXPONENT
        y = y if y < 1.0 else 1.0
        mantissa[r], n = exp_reduced(y)
        scaled[r] = n + ROUND
    for r in range(local.size):
        # ``power`` is the same memory. Its lowest bits are the integer n, which becomes the exponent of 2^(n + 32).
        power[r] = (power[r] + EXPONENT_BIAS) << MANTISSA_BITS
    for r in range(local.size):
        # exp(y) = mantissa 2^n; zero cost and gains of energy have their own values.
        half_cost = local[r] * spin[r]
        p = mantissa[r] * scaled[r]
        p = zero_acceptance * TWO32 if half_cost == 0 else p
        scaled[r] = 2.0 * TWO32 if half_cost < 0 else p


@part
def exp_32(y):  # type: ignore[no-untyped-def]
    """Return exp(y) times 2^31, y clipped between ``LOWEST`` and 0, as mantissa and float32 bits of a power of two."""
    y = y if y > LOWEST else LOWEST
    y = y if y < NOUGHT else NOUGHT
    # y = n ln 2 + x: adding and subtracting 1.5 2^23 rounds to an integer; ln 2 in two parts keeps x exact enough.
    n = (y * LOG2_E + ROUND_32) - ROUND_32
    x = (y - n * LN2_HIGH) - n * LN2_LOW
    # exp(x) by its series up to x^6.
    p = x * SERIES[0] + SERIES[1]
    p = p * x + SERIES[2]
    p = p * x + SERIES[3]
    p = p * x + SERIES[4]
    p = p * x + SERIES[5]
    return p * x + SERIES[5], (np.int32(n) + BIAS_32) << MANTISSA_BITS_32


@part
def screen(  # type: ignore[no-untyped-def]
    spin, local, double_beta, zero_acceptance, uniform, mantissa, power, scaled, flips
):
    """Decide flips as far as float32 allows, in units of 2^-31; return the number of undecided replicas."""
    for r in range(local.size):
        # exp(-beta dE) 2^31; ``scaled`` is the float view of ``power``, so that no conversion is needed.
        mantissa[r], power[r] = exp_32(-(np.float32(local[r] * spin[r]) * double_beta[r]))
    close = np.int64(0)
    for r in range(local.size):
        half_cost = local[r] * spin[r]
        p = mantissa[r] * scaled[r]
        p = zero_acceptance if half_cost == 0 else p
        # A gain of energy: twice the largest uniform, never close to it.
        p = TWO32_32 if half_cost < 0 else p
        # The upper 31 bits of the uniform: as int32 they convert to float in one instruction.
        u = np.float32(np.int32(uniform[r] >> HALVE))
        margin = p * MARGIN + SLACK
        flips[r] = u < p
        # Within the margin float32 cannot tell; the caller then decides all replicas exactly.
        close += np.int64((u < p + margin) & (u > p - margin))
    return close


@part
def decide(scaled, uniform, lower, flips):  # type: ignore[no-untyped-def]
    """Decide flips by all 64 bits: ``uniform`` and ``lower`` are the two halves of the uniform integer."""
    for r in range(flips.size):
        top = np.floor(scaled[r])
        u = np.float64(uniform[r])
        flips[r] = u < top or (u == top and np.float64(lower[r]) < np.floor((scaled[r] - top) * TWO32))


ROUNDING: Final = np.float32(2.0**-20)  # four times the error of x, relative to ``size``
CANCELLED: Final = np.float32(2.0**-17)  # |x| relative to ``size`` above which the margin holds; 8 times ROUNDING
NOTHING: Final = np.float32(NEARLY_NOTHING / 2)  # largest ``size`` that certainly costs nearly nothing
SOMETHING: Final = np.float32(2 * NEARLY_NOTHING)  # cost that is certainly above nearly nothing


@part
def screen_terms(  # type: ignore[no-untyped-def]
    spin, ones, others, double_beta, zero_acceptance, uniform, mantissa, power, scaled, cost, size, flips
):
    """Do ``screen`` for two terms, with local fields ``ones`` and ``others``; ``cost`` and ``size`` are scratch."""
    first_beta, other_beta = double_beta[0], double_beta[1]
    for r in range(ones.size):
        first = np.float32(ones[r] * spin[r]) * first_beta[r]
        other = np.float32(others[r] * spin[r]) * other_beta[r]
        x = first + other
        cost[r] = x
        size[r] = abs(first) + abs(other)
        mantissa[r], power[r] = exp_32(-x)
    close = np.int64(0)
    for r in range(ones.size):
        p = mantissa[r] * scaled[r]
        p = TWO32_32 if cost[r] < NOUGHT else p
        is_nothing = size[r] <= NOTHING
        p = zero_acceptance if is_nothing else p
        u = np.float32(np.int32(uniform[r] >> HALVE))
        margin = p * (MARGIN + size[r] * ROUNDING) + SLACK
        flips[r] = u < p
        known = is_nothing | (abs(cost[r]) > size[r] * CANCELLED + SOMETHING)
        close += np.int64((not known) | ((u < p + margin) & (u > p - margin)))
    return close


@part
def scaled_probabilities_of_terms(  # type: ignore[no-untyped-def]
    spin, ones, others, double_beta, zero_acceptance, mantissa, power, scaled, cost
):
    """Do ``scaled_probabilities`` for two terms; ``cost`` is scratch."""
    first_beta, other_beta = double_beta[0], double_beta[1]
    for r in range(ones.size):
        x = np.float64(ones[r] * spin[r]) * first_beta[r] + np.float64(others[r] * spin[r]) * other_beta[r]
        cost[r] = x
        y = -x if x < LARGEST_EXPONENT else -LARGEST_EXPONENT
        y = y if y < 0.0 else 0.0
        mantissa[r], n = exp_reduced(y)
        scaled[r] = n + ROUND
    for r in range(ones.size):
        power[r] = (power[r] + EXPONENT_BIAS) << MANTISSA_BITS
    for r in range(ones.size):
        p = mantissa[r] * scaled[r]
        certain = 2.0 * TWO32 if cost[r] < 0.0 else p
        scaled[r] = zero_acceptance * p if abs(cost[r]) <= NEARLY_NOTHING else certain


@kernel
def sweep_general(  # type: ignore[no-untyped-def]
    spins, order, colour_start, start, middle, near, couplings, fields, double_beta, zero_acceptance, block, first_call,
    key, rounds, half_sweep, sweeps,
):  # fmt: skip
    """Update a chunk of replicas of one sample.

    Args:
        spins: int8 (sites, 4 * calls), changed in place; position w * calls + c is the chunk's replica 4 c + w.
        middle: Neighbours of a site before ``middle[i]`` have bonds of term 0; None with one term.
        couplings: J of each of ``near`` in quanta, int32 or int64, wide enough for local fields; ``fields`` likewise.
        double_beta: Twice the inverse temperature times the quantum, for every position; with two terms (2, positions).
        zero_acceptance: Probability of a flip of zero cost; with two terms, the factor for a nearly zero cost.
        first_call: Philox call of the chunk's first replica within its block of 128.
    """
    # Replica 4 c + w of the chunk, at position w calls + c, in every array of the chunk's replicas:
    #
    #     spins[site], uniform    | word 0: calls 0, 1, ... | word 1: calls 0, 1, ... | word 2 | word 3 |
    #     upper (4, calls)        the same memory as ``uniform``, a row per word of the Philox calls
    #
    # ``scaled_32`` and ``scaled`` are views of ``power_32`` and ``power``, whose integers become powers of two.
    (k0, k1), replicas, width = key, spins.shape[1], couplings.dtype
    beta_32, zero_32 = double_beta.astype(np.float32), np.float32(zero_acceptance * 0.5 * TWO32)
    local, others, flips = np.empty(replicas, width), np.empty(replicas, width), np.empty(replicas, np.bool_)
    upper, lower = np.empty((4, replicas // 4), np.uint32), np.empty((4, replicas // 4), np.uint32)
    uniform, refined = upper.reshape(replicas), lower.reshape(replicas)
    mantissa_32, power_32 = np.empty(replicas, np.float32), np.empty(replicas, np.int32)
    cost_32, size_32 = np.empty(replicas, np.float32), np.empty(replicas, np.float32)
    mantissa, power, cost = np.empty(replicas), np.empty(replicas, np.int64), np.empty(replicas)
    scaled_32, scaled = power_32.view(np.float32), power.view(np.float64)
    for _ in range(sweeps):
        for colour in range(colour_start.size - 1):
            for i in order[colour_start[colour] : colour_start[colour + 1]]:
                spin, site = spins[i], np.uint64(i)
                if double_beta.ndim == 1:  # known at compile time, so that there is no branch
                    row = slice(start[i], start[i + 1])
                    local_fields(local, fields[i], spins, near[row], couplings[row])
                    draw(upper, site, block, half_sweep, k0, k1, rounds, first_call)  # while local fields are pending
                    close = screen(spin, local, beta_32, zero_32, uniform, mantissa_32, power_32, scaled_32, flips)
                else:
                    # Neighbours of term 0 come first; each term has its own local field and temperature.
                    first, other = slice(start[i], middle[i]), slice(middle[i], start[i + 1])
                    local_fields(local, fields[i], spins, near[first], couplings[first])
                    local_fields(others, 0, spins, near[other], couplings[other])
                    draw(upper, site, block, half_sweep, k0, k1, rounds, first_call)
                    close = screen_terms(spin, local, others, beta_32, zero_32, uniform, mantissa_32, power_32,
                                         scaled_32, cost_32, size_32, flips)  # fmt: skip
                # Rare: float64 probabilities, and the lower 32 bits of the uniforms of all replicas.
                if close:
                    if double_beta.ndim == 1:
                        scaled_probabilities(spin, local, double_beta, zero_acceptance, mantissa, power, scaled)
                    else:
                        scaled_probabilities_of_terms(spin, local, others, double_beta, zero_acceptance, mantissa,
                                                      power, scaled, cost)  # fmt: skip
                    draw(lower, site, block, half_sweep, k0, k1, rounds, first_call + REFINE)
                    decide(scaled, uniform, refined, flips)
                # A select instead of a branch, so that the loop vectorises.
                for r in range(replicas):
                    spin[r] = -spin[r] if flips[r] else spin[r]
            half_sweep += np.uint64(1)


@kernel
def temper_chunks(  # type: ignore[no-untyped-def]
    size, bonds, plan, middle, couplings, fields, double_beta, ladder, zero_acceptance, key, rng_rounds, memory, place,
    attempts, accepts, trips, last_end, first_sample, first_in_run, half_sweep, before, rounds, sweeps,
):  # fmt: skip
    """Do rounds: sweeps of all replicas of some samples, each followed by exchanges of their temperatures.

    Args:
        size: Replicas of each chunk but the last.
        bonds: Edges, term 0 first, the number of edges of term 0, and couplings and fields of 1 or all samples, in
            quanta.
        plan: ``UnpackedPlan``'s order, colour_start, start, neighbour; other arguments are as in ``sweep_general``.
        memory: int8 (samples, ...), chunks one after the other, changed in place, like the arrays of ``Exchange``.
        first_sample: Number of the first sample in the model; ``first_in_run`` is the model's first in the run.
    """
    (edges, of_first, bond_couplings, site_fields), (order, colour_start, start, near) = bonds, plan
    (steps, copies), replicas, terms, sites = ladder, place.shape[1], double_beta.shape[0], site_fields.shape[1]
    for k in range(memory.shape[0]):
        sample, now = first_sample + k, half_sweep
        number, of_bonds = first_in_run + sample, bond_couplings[sample % bond_couplings.shape[0]]
        mine, field = couplings[sample % couplings.shape[0]], fields[sample % fields.shape[0]]
        for done in range(rounds):
            energy = np.zeros((replicas, terms), np.int64)
            for first in range(0, replicas, size):
                calls = (min(size, replicas - first) + WORDS - 1) // WORDS
                width = WORDS * calls
                spins = memory[k, first * sites : (first + width) * sites].reshape((sites, width))
                beta = np.empty((terms, width))
                for position in range(width):
                    at = place[k, min(first + position % calls * WORDS + position // calls, replicas - 1)]
                    for term in range(terms):
                        beta[term, position] = double_beta[term, at]
                block = rng.counter_block(np.uint64(number), np.uint64(first // LANES))
                call = np.uint64(first % LANES // WORDS)
                if middle is None:
                    sweep_general(spins, order, colour_start, start, None, near, mine, field, beta[0], zero_acceptance,
                                  block, call, key, rng_rounds, now, sweeps)  # fmt: skip
                else:
                    sweep_general(spins, order, colour_start, start, middle, near, mine, field, beta, zero_acceptance,
                                  block, call, key, rng_rounds, now, sweeps)  # fmt: skip
                energies, magnetization = np.zeros((terms, width), np.int64), np.zeros(width, np.int64)
                total_energies(spins, edges, of_first if terms > 1 else edges.shape[0], of_bonds,
                               site_fields[sample % site_fields.shape[0]], energies, magnetization)  # fmt: skip
                for r in range(first, min(first + width, replicas)):
                    for term in range(terms):
                        energy[r, term] = energies[term, (r - first) % WORDS * calls + (r - first) // WORDS]
            exchange(energy, steps, copies, before + done, number, key, rng_rounds,
                     place[k], attempts[k], accepts[k], trips[k], last_end[k])  # fmt: skip
            now += np.uint64(sweeps * (colour_start.size - 1))


UPDATES_A_WORD = 8  # updates in the time of one packed word


def engine(model: Ising, replicas: int, dynamics: Dynamics, threads: int | None = None) -> CpuEngine:
    plan, pool = model.once(UnpackedPlan), Threads(threads)
    chunks = Chunks(model, replicas, dynamics, pool)
    sweeper, count = UnpackedSweeper(model, plan, dynamics, chunks), partial(counts, model, chunks, plan)
    parts = CpuParts(packing.Packing.UNPACKED, chunks, sweeper, count, CpuReplicaComparison(model).compare, pool)
    return CpuEngine(model, replicas, dynamics, parts._replace(temperatures=tuple(range(1, plan.terms + 1))))


def counts(model: Ising, chunks: Chunks, plan: UnpackedPlan, samples: slice | None = None) -> Counts:
    """Energies (by term too, if there are two) and magnetisations of every replica, for all or some samples."""
    mine, sublattice = range(model.samples)[samples or slice(None)], plan.order[: plan.first]
    counted = np.empty((plan.terms + 2, len(mine), chunks.replicas), np.int64)
    constants = plan.edges, plan.of_first, *model.once(_in_quanta, plan), sublattice, chunks.size

    def count(sample: int, stop: int, first: int, last: int) -> None:
        counted_here = counted[:, sample - mine.start : stop - mine.start]
        count_chunks(*constants, chunks.memory[sample:stop], sample, first, last, counted_here)

    if samples is None:
        chunks.each(lambda sample, first: count(sample, sample + 1, first, first + chunks.size))
    else:
        count(mine.start, mine.stop, 0, chunks.replicas)
    *energies, magnetization, of_first = counted
    staggered = 2 * of_first - magnetization if sublattice.size else of_first
    if plan.terms == 1:
        return Counts(energies[0], magnetization, staggered)
    return Counts(np.sum(energies, axis=0), magnetization, staggered, np.stack(energies, axis=-1))


def _in_quanta(model: Ising, plan: UnpackedPlan) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """J of each bond of the plan, (1 or samples, bonds), and h of each site, (1 or samples, sites), in quanta."""
    couplings = np.stack([model.integer_couplings(k)[plan.bonds] for k in range(len(model.couplings))])
    return couplings, np.stack([model.integer_fields(k) for k in range(len(model.fields))])


class ChunkSweeper(CpuSweeper):
    """Temperatures of ``terms`` terms, and rounds, of a ``CpuSweeper`` whose chunks are swept separately."""

    long_round: int  # updates of a sample from which each of its chunks gets a thread in every round

    def __init__(self, model: Ising, colours: int, terms: int, dynamics: Dynamics, chunks: InChunks) -> None:
        self.colours, self.tasks = colours, chunks.count
        self._model, self._terms, self._in_chunks = model, terms, chunks
        self._key, self._dynamics = rng.split_seed(dynamics.seed), dynamics
        self._double_beta: npt.NDArray[np.float64]

    @abstractmethod
    def _sweep_chunk(
        self, double_beta: npt.NDArray[np.float64], count: int, half_sweep: int, sample: int, first: int
    ) -> None:
        """Sweep the chunk of a sample that begins with replica ``first``.

        ``double_beta`` is the result of ``UnpackedPlan.double_beta``.
        """

    def set_beta(self, beta: npt.ArrayLike) -> None:
        check = check_betas if self._terms > 1 and np.ndim(beta) > 1 else check_beta
        self._double_beta = UnpackedPlan.double_beta(self._model, check(beta, self._in_chunks.replicas)[None])

    def set_places(self, ladder: Ladder, place: npt.NDArray[np.int32]) -> None:
        self._double_beta = UnpackedPlan.double_beta(self._model, ladder.beta[place])

    def sweep(self, count: int, half_sweep: int) -> None:
        self._in_chunks.each(partial(self._sweep_chunk, self._double_beta, count, half_sweep), count)

    def words_of_round(self, sweeps: int) -> int | None:
        """Return the cost of a round; None if each chunk of a sample gets a thread in every round."""
        model, chunks = self._model, self._in_chunks
        idle = model.samples < chunks.threads.count and len(chunks.firsts) > 1
        if idle and model.sites * chunks.replicas * sweeps >= self.long_round:
            return None
        return model.samples * model.sites * chunks.replicas * max(1, sweeps) // UPDATES_A_WORD


class UnpackedSweeper(ChunkSweeper):
    """A ``CpuSweeper`` of unpacked spins."""

    long_round = 2**17

    def __init__(self, model: Ising, plan: UnpackedPlan, dynamics: Dynamics, chunks: Chunks) -> None:
        super().__init__(model, plan.colours, plan.terms, dynamics, chunks)
        self._plan, self._chunks = plan, chunks
        self._rounds: tuple[CpuTempering, Callable[..., None]] | None = None

    def _sweep_chunk(
        self, double_beta: npt.NDArray[np.float64], count: int, half_sweep: int, sample: int, first: int
    ) -> None:
        plan = self._plan
        block, lane = divmod(first, packing.LANES)
        of_terms = double_beta[sample % len(double_beta), :, first : first + self._chunks.width(first)]
        of_chunk = np.ascontiguousarray(by_word(of_terms))
        sweep_general(
            self._chunks.of(sample, first), plan.order, plan.colour_start, plan.start,
            plan.middle if len(of_chunk) > 1 else None, plan.neighbour, plan.couplings[sample % len(plan.couplings)],
            plan.fields[sample % len(plan.fields)], of_chunk if len(of_chunk) > 1 else of_chunk[0],
            self._dynamics.zero_acceptance, self._dynamics.counter_block(sample, block), np.uint64(lane // WORDS),
            self._key, self._dynamics.rng_rounds, np.uint64(half_sweep), count,
        )  # fmt: skip

    def temper(self, tempering: CpuTempering, times: Times, half_sweep: int, samples: slice) -> None:
        model, plan, dynamics = self._model, self._plan, self._dynamics
        if self._rounds is None or self._rounds[0] is not tempering:
            double_beta = UnpackedPlan.double_beta(model, tempering.ladder.beta[None])[0]
            rounds = temper_chunks.given(
                self._chunks.size, (plan.edges, plan.of_first, *model.once(_in_quanta, plan)),
                (plan.order, plan.colour_start, plan.start, plan.neighbour),
                plan.middle if len(double_beta) > 1 else None, plan.couplings, plan.fields, double_beta,
                (tempering.steps, tempering.ladder.copies), dynamics.zero_acceptance, self._key, dynamics.rng_rounds,
            )  # fmt: skip
            self._rounds = tempering, rounds
        self._rounds[1](
            self._chunks.memory[samples], *[array[samples] for array in tempering.exchange], samples.start,
            dynamics.first_sample, np.uint64(half_sweep), *times,
        )  # fmt: skip
