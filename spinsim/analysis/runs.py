"""Runs as statistics see them: series of any job that has them, their samples one by one."""

from __future__ import annotations

from dataclasses import Field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from spinsim.analysis.jackknife import standard_error
from spinsim.errors import InputError, argument
from spinsim.model.ising import Ising
from spinsim.observables.measured import COPY, MEASURED, PAIR, quantities_of

if TYPE_CHECKING:
    from spinsim.analysis.reduced import ReducedRun

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_SAMPLES_FIRST: Final = (
    "attempts accepts round_trips best_energy best_spins best_states local_squares local_measurements"
)
"""Attributes of results whose first axis is that of the samples."""
_SAMPLES_SECOND: Final = {
    *(one.name for one in MEASURED),
    *("mean_slice_energy", "family", "population_free_energy", "parents", "permutation"),
}
"""Attributes of results whose second axis is that of the samples."""
FEWEST_FOR_ERRORS: Final = 4
"""Independent numbers from which on their scatter gives an error; of two it covers 50 % in place of 68, of three 58."""
FEWEST_STEPS: Final = 16
"""Measurements from which on averages are given."""
COPY_SERIES, PAIR_SERIES = (
    tuple(one.name for one in quantities_of(in_time=False) if one.per == per) for per in (COPY, PAIR)
)
"""Series of each copy of a tempering run, and of each pair, (steps, samples, copies or pairs of copies, ...)."""


class Axis(NamedTuple):
    """Axis that the averages of a run stand against."""

    name: str  # of the column
    symbol: str  # in sentences and labels
    values: Floats  # from the coldest end of the ladder
    coldest: str  # where that end is, in words


def temperatures(values: Floats) -> Axis:
    return Axis("temperature", "T", values, "the lowest temperature")


class Run(Protocol):
    """A run of a model, as a dataclass."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    @property
    def model(self) -> Ising: ...  # what was simulated, all samples

    @property
    def config(self) -> dict[str, Any]: ...  # the run's settings by table, empty where they are unknown

    @property
    def temperature(self) -> Floats: ...  # in the unit of the couplings


class Annealed(Run, Protocol):
    """Replicas after each step of a schedule, independent where they are no population."""

    @property
    def energy(self) -> Floats: ...  # totals, (steps, samples, replicas)

    @property
    def magnetization(self) -> Integers: ...  # sums of spins, likewise

    @property
    def staggered_magnetization(self) -> Integers | None:
        """Sums over the first sublattice less those over the second, likewise; None where they were not measured."""

    @property
    def field(self) -> Floats | None: ...  # uniform field of each step, (steps,); None where none changed

    @property
    def family(self) -> npt.NDArray[np.int32] | None:
        """Family of each replica of a population, (steps, samples, replicas); None where none were resampled."""

    @property
    def population_free_energy(self) -> Floats | None:
        """Free energy by each population, (steps, samples, populations), likewise."""

    @property
    def temperature(self) -> Floats: ...  # of each step, (steps,)


class Even(NamedTuple):
    """Products of neighbours in space, averaged over bonds in space and slices."""

    correlation: Floats  # of (s_x s_y)(tau) (s_x s_y)(tau + t), (steps, samples, copies, temperatures, times)
    link_overlap: Floats
    """Averages of the product of two copies' s_x s_y, (steps, samples, pairs, temperatures): the square of an average
    without bias."""


class InTime(NamedTuple):
    """Measurements in time of a run of a model of space and time, per site or in units of full order."""

    times: Integers  # of correlations, in slices, (times,)
    gamma: Floats  # transverse field at each point of the ladder, (temperatures,)
    k_time: Floats  # coupling of neighbours in time there, likewise
    correlation: Floats
    """Averages over sites and slices of s(tau) s(tau + t), (steps, samples, copies, temperatures, times)."""
    energy: Floats  # of the quantum model per site of space, by its estimator, (steps, samples, copies, temperatures)
    even: Even | None = None  # products of neighbours in space, None where they were not measured


class Tempered(Run, Protocol):
    """Series in equilibrium at several temperatures that replicas exchange."""

    @property
    def reduced(self) -> ReducedRun | None:
        """Sums over all measurements, from which all statistics then come; None where series say everything."""

    @property
    def axis(self) -> Axis: ...  # what averages stand against: the temperature, or what stands in its place

    @property
    def in_time(self) -> InTime | None: ...  # what was measured in time, None for space alone

    @property
    def sweep(self) -> Integers: ...  # sweeps done before each measurement, (steps,)

    @property
    def energy(self) -> Floats: ...  # totals, (steps, samples, copies, temperatures)

    @property
    def magnetization(self) -> Integers: ...  # sums of spins, likewise

    @property
    def staggered_magnetization(self) -> Integers:
        """Sums over the first sublattice less those over the second, likewise; no copies where it was not measured."""

    @property
    def overlap(self) -> Integers:
        """Sums over sites of two copies' product, (steps, samples, pairs of copies, temperatures)."""

    @property
    def link_overlap(self) -> Integers:
        """Sums over bonds of two copies' s_i s_j, likewise; no pairs where it was not measured."""

    @property
    def overlap_mode(self) -> Floats:
        """Smallest Fourier modes of the overlap, (steps, samples, pairs, temperatures, axes)."""

    @property
    def magnetization_mode(self) -> Floats:
        """The same of spins, (steps, samples, copies, temperatures, axes); no axes where it was not measured."""

    @property
    def has_magnetization_modes(self) -> bool: ...  # true if Fourier modes of the magnetisation were measured

    @property
    def has_correlations(self) -> bool: ...  # whether link overlaps and modes were measured

    @property
    def has_staggered(self) -> bool: ...  # whether staggered magnetisations were measured

    @property
    def attempts(self) -> Integers:
        """Exchanges tried of each pair of neighbouring temperatures, (samples, temperatures - 1)."""

    @property
    def accepts(self) -> Integers: ...  # of them accepted, likewise

    @property
    def swap_rate(self) -> Floats: ...  # share of exchanges accepted over all samples, (temperatures - 1,)

    @property
    def round_trips(self) -> Integers: ...  # of each replica, (samples, replicas)

    @property
    def permutation(self) -> Integers: ...  # replica at each temperature, (steps, samples, copies, temperatures)

    @property
    def temperature(self) -> Floats: ...  # from the lowest to the highest, (temperatures,)


class Strips(Run, Protocol):
    """Levels of layers at several couplings."""

    @property
    def k(self) -> Floats: ...  # coupling within the layer, likewise

    @property
    def k_time(self) -> Floats: ...  # coupling between layers, likewise

    @property
    def sectors(self) -> tuple[str, ...]: ...  # names of the sectors

    @property
    def correlation_length(self) -> Floats: ...  # in layers, (samples, points, sectors, levels)

    @property
    def in_noise(self) -> npt.NDArray[np.bool_]:
        """Which correlation lengths rounding may have changed by more than 1 %, likewise."""

    @property
    def temperature(self) -> Floats: ...  # 1 / k, (points,)


def check_length(steps: int) -> None:
    """Refuse to analyse fewer than 16 measurements."""
    if steps < FEWEST_STEPS:
        settings = f"{argument('sweeps')} or a smaller {argument('measure_every')}"
        raise InputError(
            f"{steps} measurements are too few to analyse: give at least {FEWEST_STEPS}, with a larger {settings}"
        )


AnyRun = TypeVar("AnyRun", bound=Run)


def sample_of(result: AnyRun, sample: int) -> AnyRun:
    return samples_of(result, slice(sample, sample + 1))


def samples_of(result: AnyRun, chosen: slice) -> AnyRun:
    """The run of some of the samples, two or more of which need couplings or fields of their own."""
    model = result.model
    couplings, fields = (rows[chosen] if len(rows) > 1 else rows[0] for rows in (model.couplings, model.fields))
    kept = {name: getattr(model, name) for name in ("name", "offset", "maxcut_weight", "terms")}
    parts: dict[str, Any] = {"model": Ising(model.graph, couplings, fields, **kept)}
    for name, value in vars(result).items():
        if name in _SAMPLES_FIRST.split() and value is not None:
            parts[name] = value[chosen]
        elif name in _SAMPLES_SECOND and value is not None:
            parts[name] = value[:, chosen]
        elif name == "measured":
            parts[name] = {own: series[:, chosen] for own, series in value.items()}
        elif name == "reduced" and value is not None:
            parts[name] = value.of_samples(chosen)
        elif name == "configurations":
            parts[name] = None  # which are of all samples
    return replace(result, **parts)


class Lowest(NamedTuple):
    """The lowest energies that replicas met."""

    per_site: Floats  # of each sample, (samples,)
    hits: npt.NDArray[np.int64]  # how many of a sample's replicas met it, (samples,)
    mean: float  # over the samples, per site
    error: float  # its standard error over samples, NaN for fewer than four


def lowest(model: Ising, best_energy: Floats) -> Lowest:
    """Lowest energies of each sample, from total energies ``best_energy`` (samples, replicas)."""
    least = best_energy.min(axis=1)
    per_site, samples = least / model.sites, len(least)
    error = float(standard_error(per_site)) if samples >= FEWEST_FOR_ERRORS else np.nan
    return Lowest(per_site, (best_energy == least[:, None]).sum(axis=1), float(per_site.mean()), error)
