"""Single-spin flips one after the other: dynamics by name, which differ in the order of sites and in the acceptance.

A sweep has an attempt for each site. The order is that of the sites (typewriter), colour by colour (checkerboard), or a
site is drawn for each attempt (random-sequential, heat-bath). A flip that costs dE is accepted with probability
min(1, exp(-dE / T)), or ``zero_acceptance`` where dE = 0; by heat bath (R. J. Glauber, J. Math. Phys. 4, 294 (1963))
with 1 / (1 + exp(dE / T)).

Attempt a of replica r draws one Philox call of the stream ``SINGLE_SPIN``: group a, block r // 128, plane r % 128, and
the number of the sweep. Two words decide; the other two are a site, by the upper half of their product with the sites.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Final

import numpy as np
import numpy.typing as npt

from spinsim import rng
from spinsim.acceptance import LARGEST_EXPONENT, ZERO_ACCEPTANCE, exp_reduced
from spinsim.engine.dynamics import Dynamics
from spinsim.engine.moves.exchange import HALVES, TWO_64
from spinsim.engine.moves.metropolis.unpacked import UnpackedPlan
from spinsim.engine.moves.move import Batch, Moment
from spinsim.errors import InputError
from spinsim.inputs.texts import DYNAMICS
from spinsim.machine.compiled import kernel, part
from spinsim.machine.threads import Threads
from spinsim.packing import LANES, Packing

CHECKERBOARD: Final = DYNAMICS[0]  # what engines do themselves
HEAT_BATH: Final = "heat-bath"
STREAM: Final = np.uint64(rng.Stream.SINGLE_SPIN)


@part
def acceptance_of(half_cost, double_beta, zero_acceptance, heat_bath):  # type: ignore[no-untyped-def]
    """Return the acceptance probability of a flip that costs 2 ``half_cost`` quanta."""
    cost = np.float64(half_cost) * double_beta
    mantissa, power = exp_reduced(-min(abs(cost), LARGEST_EXPONENT))
    rare = mantissa * HALVES[np.int64(-power)]
    if heat_bath:
        return (rare if cost > 0.0 else 1.0) / (1.0 + rare)
    return zero_acceptance if half_cost == 0 else rare if half_cost > 0 else 1.0


@kernel
def sweep_once(  # type: ignore[no-untyped-def]
    spins, order, heat_bath, start, near, couplings, fields, double_beta, zero_acceptance, block, sweep, key, rounds
):
    """Do a sweep of up to 128 replicas, spins (replicas, sites); an empty ``order`` draws the sites."""
    sites = np.uint64(spins.shape[1])
    for lane in range(spins.shape[0]):
        spin, word3 = spins[lane], rng.counter_plane(sweep, STREAM, np.uint64(lane))
        for attempt in range(spins.shape[1]):
            x0, x1, x2, x3 = rng.philox(np.uint64(attempt), block, rng.low32(sweep), word3, key[0], key[1], rounds)
            if order.size:
                i = np.int64(order[attempt])
            else:
                i = np.int64((rng.low32(x3) * sites + (rng.low32(x2) * sites >> rng.SHIFT32)) >> rng.SHIFT32)
            local = np.int64(fields[i])
            for k in range(start[i], start[i + 1]):
                local += np.int64(couplings[k]) * np.int64(spin[near[k]])
            p = acceptance_of(local * spin[i], double_beta[lane], zero_acceptance, heat_bath)
            if p >= 1.0 or (rng.low32(x0) | (x1 << rng.SHIFT32)) < np.uint64(p * TWO_64):
                spin[i] = -spin[i]


@dataclass(frozen=True)
class SingleSpin:
    """A sweep of single-spin flips by the dynamics of a name, as a move; InputError for an unknown name."""

    fast_paths: ClassVar[Mapping[tuple[Packing, str], str]] = {
        (layout, "cuda"): f"{__name__}_cuda:of_move"
        for layout in (Packing.REPLICA, Packing.ANISOTROPIC, Packing.UNPACKED)
    }

    name: str  # one of ``DYNAMICS``
    zero_acceptance: float = ZERO_ACCEPTANCE  # of flips that cost nothing; in a heat bath it is 1/2
    rng_rounds: int = rng.ROUNDS
    threads: int | None = None  # of the CPU, None for all

    def __post_init__(self) -> None:
        if self.name not in DYNAMICS:
            raise InputError(f"dynamics {self.name!r} are unknown: choose one of {', '.join(DYNAMICS)}")

    def order_of(self, plan: UnpackedPlan) -> npt.NDArray[np.uint32]:
        """Return the order in which sites are visited; empty if they are drawn."""
        by_name = {"typewriter": np.arange(plan.order.size, dtype=np.uint32), CHECKERBOARD: plan.order}
        return by_name.get(self.name.removesuffix(f"-{HEAT_BATH}"), np.empty(0, np.uint32))

    def apply(self, batch: Batch) -> None:
        plan, pool = batch.model.once(UnpackedPlan), Threads(self.threads)
        key, order, heat_bath = rng.split_seed(batch.seed), self.order_of(plan), self.name.endswith(HEAT_BATH)
        double_beta = 2.0 * batch.model.quantum * batch.beta

        def sweep(sample: int, block: int) -> None:
            mine = slice(block * LANES, (block + 1) * LANES)
            beta, row = double_beta[sample, mine], [own[sample % len(own)] for own in (plan.couplings, plan.fields)]
            word = rng.counter_block(np.uint64(batch.first_sample + sample), np.uint64(block))
            sweep_once(
                batch.spins[sample, mine], order, heat_bath, plan.start, plan.neighbour, *row, beta,
                self.zero_acceptance, word, np.uint64(batch.time), key, self.rng_rounds,
            )  # fmt: skip

        samples, replicas, sites = batch.spins.shape
        blocks = range(-(-replicas // LANES))
        pool.run((partial(sweep, k, b) for k in range(samples) for b in blocks), samples * replicas * sites)


class InOrder:
    """An ``Engine`` that is swept by a ``SingleSpin``; a half-sweep is a whole sweep."""

    colours: Final = 1

    def __init__(self, engine: Any, move: SingleSpin, seed: int) -> None:
        self._engine, self._move, self._seed, self._beta, self.half_sweep = engine, move, seed, 0.0, 0

    def set_beta(self, beta: npt.ArrayLike) -> None:
        if np.ndim(beta):
            raise InputError(f"replicas of {self._move.name} dynamics have one temperature: give a number")
        self._beta = float(np.asarray(beta))
        self._engine.set_beta(self._beta)

    def sweep(self, count: int) -> None:
        self._engine.apply(self._move, Moment(self._beta, self.half_sweep, self._seed, times=count))
        self.half_sweep += count

    def snapshot(self) -> dict[str, npt.NDArray[np.generic]]:
        return {**self._engine.snapshot(), "half_sweep": np.array(self.half_sweep, np.int64)}

    def restore(self, saved: Mapping[str, npt.NDArray[np.generic]]) -> None:
        self._engine.restore(saved)
        self.half_sweep = int(saved["half_sweep"])

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_engine"], name)


def in_order(engine: Any, name: str, dynamics: Dynamics, threads: int | None) -> Any:
    """Return an engine whose sweeps are those of the dynamics of a name; the same engine for its own dynamics."""
    move = SingleSpin(name, dynamics.zero_acceptance, dynamics.rng_rounds, threads)
    return engine if name == CHECKERBOARD else InOrder(engine, move, dynamics.seed)
