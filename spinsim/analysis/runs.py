"""Runs as statistics see them: the series of any job, and selections of their samples."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import Field, dataclass, field, replace
from functools import wraps
from typing import TYPE_CHECKING, Any, ClassVar, Concatenate, Final, NamedTuple, ParamSpec, TypeVar

import numpy as np
import numpy.typing as npt

from spinsim.analysis.jackknife import standard_error
from spinsim.errors import InputError, argument
from spinsim.inputs.texts import count
from spinsim.model.ising import Ising
from spinsim.observables.quantities import COPY, PAIR, QUANTITIES, quantities_of
from spinsim.result import Result
from spinsim.saved import SampledResult

if TYPE_CHECKING:
    from spinsim.analysis.run_sums import RunSums

Array = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

_SAMPLES_FIRST: Final = (
    "attempts accepts round_trips best_energy best_spins best_states local_squares local_measurements"
)
"""Attributes of results whose first axis counts the samples."""
_SAMPLES_SECOND: Final = {
    *(one.name for one in QUANTITIES),
    *("mean_slice_energy", "family", "population_free_energy", "parents", "permutation"),
}
"""Attributes of results whose second axis counts the samples."""
FEWEST_FOR_ERRORS: Final = 4  # numbers whose scatter gives an error; with two it covers 50 %, not 68, with three 58
FEWEST_STEPS: Final = 16  # measurements from which on averages are given
COPY_SERIES, PAIR_SERIES = (
    tuple(one.name for one in quantities_of(in_time=False) if one.per == per) for per in (COPY, PAIR)
)
"""Series of each copy of a tempering run, and of each pair, (steps, samples, copies or pairs of copies, ...)."""


class Axis(NamedTuple):
    """Axis along which the averages of a run are given."""

    name: str  # of the column
    symbol: str  # in sentences and labels
    values: Array  # from the coldest end of the ladder
    coldest: str  # position of that end, in words


def temperatures(values: Array) -> Axis:
    return Axis("temperature", "T", values, "the lowest temperature")


class Run(Result):
    """A run of a model, as a dataclass."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    if TYPE_CHECKING:  # fields of some results and properties of others

        @property
        def temperature(self) -> Array: ...  # in the unit of the couplings


class Annealed(Run, SampledResult):
    """Replicas after each step of a schedule, independent unless they are a population (``AnnealResult``)."""

    energy: Array
    magnetization: Integers
    staggered_magnetization: Integers | None
    field: Array | None
    family: npt.NDArray[np.int32] | None
    population_free_energy: Array | None


class Even(NamedTuple):
    """Products of neighbours in space, averaged over bonds in space and slices."""

    correlation: Array  # of (s_x s_y)(tau) (s_x s_y)(tau + t), (steps, samples, copies, temperatures, times)
    link_overlap: Array  # of two copies' s_x s_y, (steps, samples, pairs, temperatures): squares of averages, unbiased


class InTime(NamedTuple):
    """Measurements in time of a run of a model of space and time, per site or in units of full order."""

    times: Integers  # of correlations, in slices, (times,)
    gamma: Array  # transverse field at each point of the ladder, (temperatures,)
    k_time: Array  # coupling of neighbours in time there, likewise
    correlation: Array  # of s(tau) s(tau + t) over sites and slices, (steps, samples, copies, temperatures, times)
    energy: Array  # of the quantum model per site of space, by its estimator, (steps, samples, copies, temperatures)
    even: Even | None = None  # products of neighbours in space, None where they were not measured


@dataclass(frozen=True, repr=False, kw_only=True)
class Tempered(Run, SampledResult):
    """Series in equilibrium at several temperatures that replicas exchange (``LadderResult``)."""

    sweep: Integers
    magnetization: Integers
    overlap: Integers
    permutation: Integers
    attempts: Integers
    accepts: Integers
    round_trips: Integers
    link_overlap: Integers = field(default_factory=lambda: np.empty((0, 0, 0, 0), np.int64))
    overlap_mode: Array = field(default_factory=lambda: np.empty((0, 0, 0, 0, 0)))
    magnetization_mode: Array = field(default_factory=lambda: np.empty((0, 0, 0, 0, 0)))
    reduced: RunSums | None = None
    disorder: Integers | None = None

    if TYPE_CHECKING:  # fields of some results and properties of others

        @property
        def energy(self) -> Array: ...  # totals, of quantum runs the action, (steps, samples, copies, places)

        @property
        def staggered_magnetization(self) -> Integers: ...  # likewise; no copies where it was not measured

        @property
        def has_staggered(self) -> bool: ...  # true if staggered magnetisations were measured

    @property
    def axis(self) -> Axis:
        """Axis of averages, the temperature or the quantity in its place, with its ``name`` and its ``values``."""
        raise NotImplementedError

    @property
    def in_time(self) -> InTime | None:
        """Measurements in time, None for space alone."""
        raise NotImplementedError

    @property
    def swap_rate(self) -> Array:
        """Share of exchanges accepted for each pair of neighbours on the ladder, over all samples, (places - 1,)."""
        return np.asarray(self.accepts.sum(axis=0) / np.maximum(self.attempts.sum(axis=0), 1))

    @property
    def has_correlations(self) -> bool:
        """True if link overlaps and modes were measured."""
        return bool(self.link_overlap.shape[2] or self.magnetization_mode.shape[-1])

    @property
    def has_magnetization_modes(self) -> bool:
        """True if Fourier modes of the magnetisation were measured."""
        return bool(self.magnetization_mode.shape[-1])


class Strips(Run):
    """Levels of layers at several couplings (``TransferResult``)."""

    k: Array
    k_time: Array
    sectors: tuple[str, ...]
    correlation_length: Array

    @property
    def in_noise(self) -> Bools:
        """Marks of the correlation lengths that rounding may have changed by more than 1 %."""
        raise NotImplementedError


Given = ParamSpec("Given")
Found = TypeVar("Found")


def once(find: Callable[Concatenate[Tempered, Given], Found]) -> Callable[Concatenate[Tempered, Given], Found]:
    """Return a function that calls ``find`` once for each result with sums, and for further hashable arguments.

    What was found is kept with the result, and callers must not change it. Results without sums are analysed anew, as
    their series may be changed in place.
    """

    @wraps(find)
    def found_once(result: Tempered, /, *given: Given.args, **named: Given.kwargs) -> Found:
        if result.reduced is None:
            return find(result, *given, **named)
        kept: dict[Any, Found] = vars(result).setdefault("_found", {})
        key = find.__name__, given, tuple(named.items())
        if key not in kept:
            kept[key] = find(result, *given, **named)
        return kept[key]

    return found_once


def check_length(steps: int) -> None:
    """Refuse to analyse fewer than 16 measurements."""
    if steps < FEWEST_STEPS:
        settings = f"with a larger {argument('sweeps')} or a smaller {argument('measure_every')}"
        raise InputError(
            f"{steps} measurements are too few to analyse: give at least {FEWEST_STEPS}, {settings}, and leave out "
            f"{argument('target')}, which ends a run early"
        )


AnyRun = TypeVar("AnyRun", bound=Run)


def samples_in(result: Result) -> int:
    """Number of disorder samples of a run; a sample of several pooled runs counts once."""
    disorder = getattr(result, "disorder", None)
    return result.model.samples if disorder is None else len(np.unique(disorder))


def samples_in_words(result: Result) -> str:
    samples = count(samples_in(result), "sample")
    return samples if samples_in(result) == result.model.samples else f"{samples} in {result.model.samples} runs"


def model_of_samples(result: Run) -> Ising:
    """The model of a run with each disorder sample once."""
    disorder = getattr(result, "disorder", None)
    if disorder is None:
        return result.model
    return samples_of(result, np.unique(disorder, return_index=True)[1]).model


def sample_of(result: AnyRun, sample: int) -> AnyRun:
    """Run of one disorder sample; for pooled runs, all runs of this sample."""
    disorder = getattr(result, "disorder", None)
    if disorder is None:
        return samples_of(result, slice(sample, sample + 1))
    return samples_of(result, np.flatnonzero(disorder == sample))


def samples_of(result: AnyRun, chosen: slice | Integers) -> AnyRun:
    """Run of some of the samples; two or more samples need couplings or fields of their own."""
    model = result.model
    couplings, fields = (rows[chosen] if len(rows) > 1 else rows[0] for rows in (model.couplings, model.fields))
    kept = {name: getattr(model, name) for name in ("name", "offset", "maxcut_weight", "terms")}
    parts: dict[str, Any] = {"model": Ising(model.graph, couplings, fields, **kept)}
    for name in vars(result):
        value = getattr(result, name)  # reads arrays that the file holds until they are needed
        if name in _SAMPLES_FIRST.split() and value is not None:
            parts[name] = value[chosen]
        elif name in _SAMPLES_SECOND and value is not None:
            parts[name] = value[:, chosen]
        elif name == "measured":
            parts[name] = {own: series[:, chosen] for own, series in value.items()}
        elif name == "reduced" and value is not None:
            parts[name] = value.of_samples(chosen)
        elif name == "disorder" and value is not None:
            parts[name] = np.unique(value[chosen], return_inverse=True)[1]
        elif name == "configurations":
            parts[name] = None  # configurations are of all samples
    return replace(result, **parts)


class Lowest(NamedTuple):
    """Lowest energies that replicas reached."""

    per_site: Array  # of each sample, (samples,)
    hits: Integers  # replicas of each sample that reached its lowest energy, (samples,)
    mean: float  # over the samples, per site
    error: float  # its standard error over samples, NaN for fewer than four


def lowest(model: Ising, best_energy: Array) -> Lowest:
    """Lowest energies of each sample, from total energies ``best_energy`` (samples, replicas)."""
    least = best_energy.min(axis=1)
    per_site, samples = least / model.sites, len(least)
    error = float(standard_error(per_site)) if samples >= FEWEST_FOR_ERRORS else np.nan
    return Lowest(per_site, (best_energy == least[:, None]).sum(axis=1), float(per_site.mean()), error)
