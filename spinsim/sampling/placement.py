"""Placement of a ladder of temperatures, or of a similar parameter, so that all neighbours exchange equally often.

A short tempering run on a first ladder measures the exchange rate of each pair. The ladder is then placed anew with
equal distances between neighbours, and so on. The distance d of two temperatures follows from their exchange rate
erfc(d / 2): normally distributed energies exchange at this rate with d = sqrt(dbeta dE), and such distances add up
along a ladder. For any distribution, equal rates are equal distances, so only ladders with equal rates are left
unchanged. If the energy has two terms, dbeta dE is a sum over both.

Every bit follows from the model and the dynamics alone: runs of exact integers, plain IEEE operations, sums that do not
depend on their order, and temperatures of six digits. The pre-run has its own seeds (``rng.derived_seed``).

It takes 800 sweeps of 8 to 14 replicas at each temperature, for any following run. That is 7 % of the sweeps of a run
of default length, and 27 % of its updates for one sample of two copies, 3 % for eight samples, less for more.

Sources: D. A. Kofke, J. Chem. Phys. 117, 6911 (2002); N. Rathore, M. Chopra, J. J. de Pablo, J. Chem. Phys. 122, 024111
(2005), who find rates of 0.2 best; M. Lingenheil et al., Chem. Phys. Lett. 478, 80 (2009), who find 0.4 to 0.45 where
even and odd pairs take turns.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise, product, zip_longest
from math import ceil, fsum, ldexp, sqrt
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spinsim import rng
from spinsim.acceptance import LARGEST_EXPONENT, check_temperatures, exp_reduced
from spinsim.engine import Dynamics, create_engine
from spinsim.engine.measuring.correlations import Quantities
from spinsim.errors import InputError
from spinsim.inputs.arguments import public
from spinsim.model.ising import Ising
from spinsim.packing import LANES
from spinsim.sampling.annealing import temperature_schedule
from spinsim.sampling.measure import measure
from spinsim.sampling.population import Population, check_last
from spinsim.sampling.portions import OnUpdates, Pause, ignore
from spinsim.sampling.tempering import TemperFrame, Times, tempering_in_beta

Array = npt.NDArray[np.float64]

PREFIX: Final = "auto:"
ITERATIONS: Final = tuple(Times(thermalize, sweeps, 2) for thermalize, sweeps in ((50, 50), (50, 50), (50, 150)))
LAST: Final = Times(100, 300, 2)
MOST_SAMPLES: Final = 8  # samples of a model that take part
CHAINS: Final = 8  # least number of replicas at each temperature, copies times samples
RATE: Final = 0.3  # exchange rate for which the number of temperatures is chosen
MOST_TEMPERATURES: Final = 1000
_FIRST: Final = 16  # number of temperatures while it is undetermined
_LEAST_RATE: Final = 0.02  # too few exchanges to count below it: the distance then follows from mean energies
_SHIFTS: Final = 8  # number of shifts by which series of two temperatures are paired
_FARTHEST: Final = 13.0  # erfc(d / 2) < 1e-19
REPLICAS: Final = 1024  # replicas of the pre-run, of all samples together, which fill words
_SWEEPS: Final = 10
_HALVINGS: Final = 40
_MOST: Final = 10_000


class Placement(NamedTuple):
    """Ladders and exchange rates of each iteration of the placement; shorter rows end with NaN."""

    temperature: Array  # ladder of each iteration, (iterations, most temperatures)
    swap_rate: Array  # exchange rates of its neighbours, (iterations, most temperatures - 1)


@public
@dataclass(frozen=True)
class Range:
    """Ends of a ladder to be placed."""

    low: float  # lowest temperature, or other parameter
    high: float  # highest temperature, or other parameter
    count: int | None = None  # number of temperatures; None chooses it for a rate of ``RATE`` or a little above
    name: str = "temperatures"  # plural name of the parameter in messages
    given: str = ""  # original text of the range, if the parameter is not the temperature

    def __post_init__(self) -> None:
        low, high = temperature_schedule(self.low, self.high, 2, "linear")
        if not low < high:
            raise InputError(f"{self.name} {self} do not rise from the lowest to the highest: give the lower one first")
        if self.count is not None and not 2 <= self.count <= MOST_TEMPERATURES:
            raise InputError(f"{self.name} {self} cannot be placed: give a count from 2 to {MOST_TEMPERATURES}")

    def __str__(self) -> str:
        return self.given or f"{PREFIX}{self.low:g}:{self.high:g}" + ("" if self.count is None else f":{self.count}")

    @property
    def ends(self) -> str:
        return ":".join(str(self).removeprefix(PREFIX).split(":")[:2])


class PlacementResult(NamedTuple):
    """A placed ladder, with its history."""

    ladder: Array  # temperatures from the lowest to the highest
    history: Placement  # ladders and exchange rates of the iterations


Betas = Callable[[Array], Array]
"""Maps a ladder's temperatures or other parameters to inverse temperatures, (temperatures, 2) for two terms."""


def read_count(counts: Sequence[str]) -> int | None:
    if len(counts) > 1:
        raise ValueError(counts)
    return int(counts[0]) if counts else None


def read_range(text: str) -> Range:
    try:
        low, high, *counts = text.removeprefix(PREFIX).split(":")
        return Range(float(low), float(high), read_count(counts))
    except InputError:
        raise
    except (ValueError, TypeError) as error:
        form = f"give {PREFIX}LO:HI such as {PREFIX}0.7:2.0, or {PREFIX}LO:HI:COUNT"
        raise InputError(f"temperatures {text!r} cannot be read: {form}") from error


@public
def place(
    model: Ising,
    wanted: Range,
    dynamics: Dynamics,
    device: str = "auto",
    threads: int | None = None,
    on_updates: OnUpdates | None = None,
    on_stage: Callable[[str, int], None] | None = None,
    pause: Pause | None = None,
    betas: Betas | None = None,
) -> PlacementResult:
    """Place temperatures in a pre-run: at most ``MOST_SAMPLES`` samples, ``CHAINS`` replicas at each temperature.

    ``dynamics`` belongs to the run that follows; the pre-run derives its own seeds. Neither the device nor the number
    of threads changes the outcome. ``on_updates`` is called at intervals with the number of spin updates since the last
    call, ``on_stage`` with a name and the number of updates of each iteration. ``pause`` is called at intervals and
    returns True to give up. ``betas`` maps the points of a ladder to inverse temperatures; by default the points are
    temperatures.

    Raises:
        InputError: if energies do not differ or the ladder would have too many temperatures.
        KeyboardInterrupt: if ``pause`` returns True.
    """
    few, plan = first_samples(model), (*ITERATIONS, LAST)
    copies = -(-CHAINS // few.samples)
    ladder = temperature_schedule(wanted.low, wanted.high, wanted.count or _FIRST, "geometric")
    ladders, rates = [], []
    for k, times in enumerate(plan):
        own, replicas = replace(dynamics, seed=rng.derived_seed(dynamics.seed, k)), copies * len(ladder)
        engine = create_engine(few, replicas, own, device, threads, slabs=False, round_sweeps=times.swap_every)
        updates = few.sites * few.samples * replicas * times.total
        (on_stage or ignore)(f"placing {wanted.name}, {k + 1} of {len(plan)}", updates)
        beta = 1.0 / check_temperatures(ladder, few.energy_scale) if betas is None else betas(ladder)
        energy = _energies(tempering_in_beta(engine, beta, times, copies, on_updates, pause, Quantities(full=False)))
        del engine  # frees its memory before the next one is made
        ladders.append(ladder)
        steps = -np.diff(beta.reshape(len(beta), -1), axis=0)
        rates.append(exchange_rates(steps, energy))
        distances = _distances(steps, rates[-1], energy)
        ladder = _equally_far(wanted, ladder, distances, _count(wanted, fsum(distances)))
    history = Placement(*(np.array([*zip_longest(*rows, fillvalue=np.nan)]).T for rows in (ladders, rates)))
    return PlacementResult(ladder, history)


def _energies(frames: Iterable[TemperFrame | None]) -> Array:
    energies = []
    for frame in frames:
        if frame is None:
            raise KeyboardInterrupt
        energies.append(frame.energy_by_term)
    return np.stack(energies)


def first_samples(model: Ising) -> Ising:
    if model.samples <= MOST_SAMPLES:
        return model
    return Ising(model.graph, model.couplings[:MOST_SAMPLES], model.fields[:MOST_SAMPLES], terms=model.terms)


def exchange_rates(step: Array, energy: Array) -> Array:
    """Mean of min(1, exp(-dbeta dE)) for each pair of neighbours.

    ``step`` (temperatures - 1, terms) is the decrease to the next inverse temperature; ``energy`` is (steps, samples,
    copies, temperatures, terms). Replicas at two temperatures are independent, so each copy's series is paired with
    every copy's series, shifted by eighths of its length.

    Returns:
        Rates (temperatures - 1,), to a resolution of 2^-32.
    """
    steps, samples, copies, _, terms = energy.shape
    total = np.zeros(len(step), np.int64)
    for shift, one, other in product(range(_SHIFTS), range(copies), range(copies)):
        hot = np.roll(energy[:, :, other, 1:], shift * steps // _SHIFTS, axis=0)
        parts = step * (hot - energy[:, :, one, :-1])
        exponent = np.clip(parts[..., 0] if terms == 1 else parts[..., 0] + parts[..., 1], 0.0, LARGEST_EXPONENT)
        mantissa, power = exp_reduced(-exponent)
        total += np.ldexp(mantissa, power.astype(np.int64) + 32).astype(np.int64).sum(axis=(0, 1))
    return np.asarray(total / np.float64(_SHIFTS * copies**2 * steps * samples) / 2.0**32)


def _distances(steps: Array, rates: Array, energy: Array) -> list[float]:
    columns = np.moveaxis(energy, (-2, -1), (0, 1))
    means = [[fsum(term.flat) / term.size for term in column] for column in columns]
    distances = []
    for step, rate, here, there in zip(steps.tolist(), rates.tolist(), means, means[1:], strict=False):
        if rate >= _LEAST_RATE:
            distances.append(_distance(rate))
        else:
            parts = [of_term * (high - low) for of_term, low, high in zip(step, here, there, strict=True)]
            distances.append(max(sqrt(max(fsum(parts), 0.0)), _distance(_LEAST_RATE)))
    return distances


def _distance(rate: float) -> float:
    return _halved(_FARTHEST, 50, lambda d: _erfc(0.5 * d) > rate)[0]


def _halved(high: float, times: int, is_below: Callable[[float], bool]) -> tuple[float, float]:
    """Bisect between 0 and ``high`` for the point where ``is_below`` becomes False; return the final interval."""
    low = 0.0
    for _ in range(times):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if is_below(middle) else (low, middle)
    return low, high


def _erfc(x: float) -> float:
    """Complementary error function of x >= 0, to 2e-7, the same bits on all machines.

    Source: M. Abramowitz, I. A. Stegun, Handbook of Mathematical Functions (1964), 7.1.26.
    """
    t = 1.0 / (1.0 + 0.3275911 * x)
    series = ((((1.061405429 * t - 1.453152027) * t + 1.421413741) * t - 0.284496736) * t + 0.254829592) * t
    mantissa, power = exp_reduced(-min(x * x, LARGEST_EXPONENT))
    return min(1.0, series * ldexp(mantissa, int(power)))


def _count(wanted: Range, total: float) -> int:
    if total < 1e-3:
        raise InputError(
            f"{wanted.name} {wanted} cannot be placed, as all energies were equal there: "
            f"choose other ends, or give {wanted.ends}:COUNT"
        )
    if wanted.count is not None:
        return wanted.count
    count = max(2, 1 + ceil(total / _distance(RATE)))
    if count > MOST_TEMPERATURES:
        raise InputError(
            f"{wanted.name} {wanted} would be about {count}, more than {MOST_TEMPERATURES}: "
            f"choose a smaller lattice or nearer ends, or give {wanted}:COUNT"
        )
    return count


def _equally_far(wanted: Range, ladder: Array, distances: list[float], count: int) -> Array:
    """Return ``count`` temperatures at equal distances, with the distance interpolated linearly in ``ladder``."""
    old, ends = ladder.tolist(), list(accumulate(distances, initial=0.0))
    temperatures = [old[0]]
    for k in range(1, count - 1):
        goal = ends[-1] * (k / (count - 1))
        i = max(0, bisect_left(ends, goal) - 1)
        temperatures.append(six_digits(old[i] + (old[i + 1] - old[i]) * ((goal - ends[i]) / distances[i])))
    temperatures.append(old[-1])
    if any(one >= other for one, other in pairwise(temperatures)):
        raise InputError(
            f"{wanted.name} {wanted} at {count} points are nearer than six digits: choose fewer or other ends"
        )
    return np.asarray(temperatures)


def six_digits(value: float) -> float:
    return float(f"{value:.6g}")


def overlapping_temperatures(
    model: Ising, last: float, overlap: float, dynamics: Dynamics, device: str = "auto", threads: int | None = None
) -> Array:
    """Return temperatures from infinity down to ``last`` with an overlap of at least ``overlap`` between neighbours.

    The energies of a population at beta, in equilibrium, determine their overlap with those at beta'. With the
    normalised weights tau_i = R w_i / sum w, w_i = exp(-(beta' - beta) E_i), of the R replicas, the overlap of both
    distributions is the mean of min(1, tau_i). Resampling is expected to remove the share 1 - overlap of the replicas,
    so equal overlaps mean equal shares.

    A small population is annealed for this before the run, with its own random numbers. The temperatures then do not
    depend on the run's own replicas, so its estimate of Z has no bias. Weights are multiples of 2^-32 and temperatures
    have six digits, the same bits on all machines. All samples share the temperatures: at most eight take part, and the
    overlap is their mean. ``dynamics`` belongs to the run that follows.

    Sources: L. Yu. Barash, M. Weigel, M. Borovsky, W. Janke, L. N. Shchur, Comput. Phys. Commun. 220, 341 (2017);
    C. Amey, J. Machta, Phys. Rev. E 97, 033301 (2018).
    """
    check_last(model, last)
    few = first_samples(model)
    own = replace(dynamics, seed=rng.derived_seed(dynamics.seed, 0))
    replicas = REPLICAS // few.samples // LANES * LANES
    engine = create_engine(few, replicas, own, device, threads, slabs=False, round_sweeps=_SWEEPS)
    population = Population(engine, 1, own.seed, own.rng_rounds)
    temperatures: list[float] = []
    beta = 0.0
    while not temperatures or temperatures[-1] > last:
        energy = measure(engine).energy
        temperature = _next(energy, beta, last, overlap)
        if len(temperatures) == _MOST or (temperatures and temperature >= temperatures[-1]):
            raise InputError(f"overlap {overlap:g} takes too many temperatures down to {last:g}: give a smaller one")
        population.resample(len(temperatures), (beta - 1 / temperature) * energy)
        temperatures.append(temperature)
        beta = 1 / temperature
        engine.set_beta(beta)
        engine.sweep(_SWEEPS)
    return np.array(temperatures)


def _next(energy: Array, beta: float, last: float, overlap: float) -> float:
    above = energy - energy.min(axis=1, keepdims=True)
    far = 1 / last - beta
    if overlap_of(above, far) >= overlap:
        return last
    _, step = _halved(far, _HALVINGS, lambda step: overlap_of(above, step) >= overlap)
    return max(last, six_digits(1 / (beta + step)))


def overlap_of(above: Array, step: float) -> float:
    """Overlap of the energies at one inverse temperature with those at a larger one, mean over samples.

    ``above`` (samples, replicas) holds energies at the smaller one, relative to the lowest of their sample; ``step`` is
    the difference. The bits are the same on all machines.
    """
    mantissa, power = exp_reduced(-np.minimum(step * above, LARGEST_EXPONENT))
    weight = np.ldexp(mantissa, power.astype(np.int64) + 32).astype(np.int64)
    total, replicas = weight.sum(axis=1), above.shape[1]
    shared = np.minimum(replicas * weight, total[:, None]).sum(axis=1)
    return fsum((shared / (replicas * total)).tolist()) / len(above)
