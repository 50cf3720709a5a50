"""Population annealing: replicas are resampled as the temperature changes, so that they remain in equilibrium.

When the inverse temperature changes from beta to beta', replica i of a population of R has the weight
w_i = exp(-(beta' - beta) E_i). It is copied n_i times, with n_i equal to R w_i / sum w rounded up or down. The n_i add
up to R and have exactly these means: one uniform number shifts the running sum of R w_i / sum w, and n_i counts the
whole numbers in the interval of replica i (systematic resampling). The mean of w estimates Z(beta') / Z(beta).
Populations begin at beta = 0, where Z = 2^sites is known, so the product of these means estimates Z without bias.

Sources: K. Hukushima, Y. Iba, AIP Conf. Proc. 690, 200 (2003); J. Machta, Phys. Rev. E 82, 026704 (2010); W. Wang,
J. Machta, H. G. Katzgraber, Phys. Rev. E 92, 063307 (2015).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from spinsim import rng
from spinsim.acceptance import natural_log
from spinsim.engine.moves.resample import choose_parents
from spinsim.engine.protocols import Engine
from spinsim.errors import InputError
from spinsim.inputs.arguments import public
from spinsim.inputs.numbers import geometric
from spinsim.inputs.texts import as_seed
from spinsim.model.ising import Ising

Array = npt.NDArray[np.float64]

_LN2: Final = 0.6931471805599453
_SQRT2: Final = 1.4142135623730951
_HOTTEST: Final = 2.0**20  # in units of 1 / b: beta + b minus b keeps eleven digits of beta


@public
class Population:
    """Families and partition functions of the replicas of every sample, in populations of equal size.

    Population p of P has the replicas from p R / P to before (p + 1) R / P of its sample. A family comprises all
    descendants of one replica at infinite temperature, and has its number.

    Args:
        engine: The replicas in random states, as they are at infinite temperature.
        count: Populations of each sample, a divisor of its replicas.
        seed: Key of the random numbers; None draws a fresh one.

    Attributes:
        family: Family of each replica, int32 (samples, replicas).
        log_partition: ln Z, (samples, populations).
        parents: Replicas of each population that were copied at the last resampling, int64 (samples, populations).
    """

    def __init__(self, engine: Engine, count: int = 1, seed: int | None = 1, rng_rounds: int = rng.ROUNDS) -> None:
        samples, replicas = engine.model.samples, engine.replicas
        check_populations(count, replicas)
        self._engine, self._key, self._rounds = engine, as_seed(seed), rng_rounds
        self.family = np.tile(np.arange(replicas, dtype=np.int32), (samples, 1))
        self.log_partition = np.full((samples, count), engine.model.sites * _LN2)
        self.parents = np.full((samples, count), replicas // count)

    def resample(self, step: int, exponent: Array) -> None:
        """Copy replicas with weights exp(exponent): beta E of each replica before the change minus after it."""
        samples, populations = self.parents.shape
        by_population = exponent.reshape(samples * populations, -1)
        largest = by_population.max(axis=1)
        parent, total = np.empty(by_population.shape, np.int64), np.empty(largest.size)
        copied = np.empty(largest.size, np.int64)
        choose_parents(
            by_population - largest[:, None], self.family.reshape(parent.shape), self._uniform(step), populations,
            parent, total, copied,
        )  # fmt: skip
        change = natural_log(total / parent.shape[1]) + largest
        self.log_partition = self.log_partition + change.reshape(samples, populations)
        self.parents = copied.reshape(samples, populations)  # the old array may still be on its way to a file
        of_samples = parent.reshape(samples, -1)
        self.family = np.take_along_axis(self.family, of_samples, axis=1)
        self._engine.copy_from(of_samples)

    def _uniform(self, step: int) -> Array:
        """Return a uniform number between 0 and 1 for each population, (samples * populations,).

        It has 32 bits, so that its difference from a number of replicas is exact.
        """
        samples, populations = self.parents.shape
        word, _, _, _ = rng.draw(
            self._key, rng.Stream.RESAMPLE, group=np.arange(populations), sample=np.arange(samples)[:, None],
            half_sweep=step, rounds=self._rounds,
        )  # fmt: skip
        return np.asarray((word.reshape(-1) | np.uint64(1)) * 2.0**-32)

    def state(self) -> dict[str, npt.NDArray[Any]]:
        return {"family": self.family, "log_partition": self.log_partition, "parents": self.parents}

    def restore(self, saved: Mapping[str, npt.NDArray[Any]]) -> None:
        self.family, self.log_partition, self.parents = (np.array(saved[name]) for name in self.state())


def temperatures_from_infinity(model: Ising, last: float, steps: int) -> Array:
    """Return temperatures from infinity down to ``last`` whose energies overlap about evenly between neighbours.

    A step of beta should be a constant fraction of the inverse standard deviation of the energy. For N sites with the
    root mean square local field s, the inverse is sqrt(N / 2) s at beta = 0, and sqrt(N) / beta at low temperatures
    where the heat capacity is 1 k_B a site. Therefore (beta + b), with b = sqrt(2) / s, grows by the same factor in all
    steps.
    """
    shift = check_last(model, last)
    temperatures = 1 / (geometric(shift, shift + 1 / last, steps + 1)[1:] - shift)
    temperatures[-1] = last
    return np.asarray(temperatures)


def check_last(model: Ising, last: float) -> float:
    """Refuse a last temperature that is too high for the couplings to matter; return the model's b."""
    shift = _SQRT2 / (model.energy_scale or 1.0)
    if last * shift > _HOTTEST:
        raise InputError(
            f"t_stop {last:g} of populations is as good as the infinite temperature at which they begin: give at most "
            f"{_HOTTEST / shift:.3g}, or temperatures"
        )
    return shift


def check_populations(count: int, replicas: int) -> None:
    if count < 1 or replicas % count:
        raise InputError(
            f"{replicas} replicas make no {count} populations of equal size: give a number that divides the replicas"
        )
