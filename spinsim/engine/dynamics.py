"""Rules of the dynamics, the part of a run's configuration that every engine takes, and initial spins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
import numpy.typing as npt

from spinsim import rng
from spinsim.acceptance import ZERO_ACCEPTANCE, check_zero_acceptance
from spinsim.errors import InputError
from spinsim.inputs.arguments import as_stated, judges, public
from spinsim.inputs.texts import as_seed
from spinsim.machine.compiled import kernel

Start = Literal["random", "up"]
NO_TEMPERATURE: Final = "no temperature is set: call set_beta before sweep"
STARTS: Final[tuple[Start, ...]] = ("random", "up")


class _Seed:
    """Dataclass field of a seed: None draws a fresh seed, and the field then holds its number."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: object | None, owner: type) -> int:
        return 1 if instance is None else int(vars(instance)[self._name])

    def __set__(self, instance: object, seed: int | None) -> None:
        vars(instance)[self._name] = rng.check_seed(as_seed(as_stated("seed", seed, "int | None")))


@public
@judges("seed")
@dataclass(frozen=True)
class Dynamics:
    """Seed, start and rules of the dynamics; part of a run's configuration.

    Attributes:
        seed: Key of every random number of the run, 64 bits; None draws a fresh one.
        start: Initial spins, ``random`` or all ``up``.
        zero_acceptance: Acceptance probability of flips of zero cost.
        rng_rounds: Philox rounds, 10 or 7.
        first_sample: Number in the whole run of the model's first sample, if the engine has only some samples.
        first_block: Number in the whole run of the first block of replicas, if the engine has only some replicas. A
            block has 128 replicas, or ``Update.together``.
    """

    seed: _Seed = _Seed()
    start: Start = "random"
    zero_acceptance: float = ZERO_ACCEPTANCE
    rng_rounds: int = rng.ROUNDS
    first_sample: int = 0
    first_block: int = 0

    def __post_init__(self) -> None:
        check_zero_acceptance(self.zero_acceptance)
        if self.start not in STARTS:
            raise InputError(f"start {self.start!r} is unknown: choose random or up")
        if self.rng_rounds not in (rng.FEWER_ROUNDS, rng.ROUNDS):
            raise InputError(f"rng rounds {self.rng_rounds} are not supported: choose 10 or 7")

    def counter_block(self, sample: int, block: int) -> np.uint64:
        """Counter word 1, for a block of replicas of one of the model's samples."""
        where = np.uint64(self.first_sample + sample), np.uint64(self.first_block + block)
        word: np.uint64 = rng.counter_block(*where)
        return word


START = np.uint64(rng.Stream.START)


@kernel
def _fill_random(state, lanes, first, block, key, rounds):  # type: ignore[no-untyped-def]
    word3 = rng.counter_plane(np.uint64(0), START, np.uint64(0))
    for i in range(state.shape[0]):
        x0, x1, x2, x3 = rng.philox(first + np.uint64(i), block, np.uint64(0), word3, key[0], key[1], rounds)
        state[i, 0] = (rng.low32(x0) | (x1 << np.uint64(32))) & lanes[0]
        state[i, 1] = (rng.low32(x2) | (x3 << np.uint64(32))) & lanes[1]


def fill_start(
    state: npt.NDArray[np.uint64], lanes: npt.NDArray[np.uint64], dynamics: Dynamics, sample: int, block: int,
    first: int = 0,
) -> None:  # fmt: skip
    """Set a block of packed spins of one sample, uint64 (groups, 2), to their initial state.

    ``first`` is the number of the first of these groups in the block.
    """
    if dynamics.start == "up":
        state[:] = lanes
    else:
        counter = dynamics.counter_block(sample, block)
        _fill_random(state, lanes, np.uint64(first), counter, rng.split_seed(dynamics.seed), dynamics.rng_rounds)
