"""Results of runs on a ladder, of temperatures or of points in space and time, and the contents of their files."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

import numpy as np
import numpy.typing as npt

from spinsim.acceptance import check_temperatures
from spinsim.analysis.barrier import Barrier, barrier
from spinsim.analysis.run_sums import RunSums
from spinsim.analysis.runs import Tempered, samples_in_words
from spinsim.analysis.statistics import choice_of, measurements_of
from spinsim.analysis.walks import Equilibrium, equilibrium
from spinsim.engine.measuring.reduction import Reduced
from spinsim.errors import InputError, MissingError
from spinsim.inputs.texts import count
from spinsim.model.ising import Ising
from spinsim.model.trotter import Points, general, isotropic
from spinsim.observables.moments import Ladder, reduced_run
from spinsim.observables.quantities import Choice, quantities_of
from spinsim.packing import States
from spinsim.record import Array, Record
from spinsim.result import POOLED
from spinsim.run.own_observables import measured_in
from spinsim.run.sums import run_sums_in
from spinsim.sampling.placement import Placement
from spinsim.saved import Configurations, configurations_in
from spinsim.store.contents import (
    DISORDER,
    ENERGY,
    INVERSE,
    MEASUREMENTS,
    STEP,
    TEMPERATURE,
    UNITS_OF_LADDERS,
    Series,
    group_of,
)
from spinsim.store.models import as_shown, best_in

if TYPE_CHECKING:
    import xarray

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_NONE: Final = np.empty(0)


@dataclass(frozen=True)
class Temperatures:
    """A ladder of temperatures, with the interface of ``Points``."""

    values: Floats  # from the lowest to the highest, in the unit of the couplings

    axis: ClassVar[str] = "temperature"
    slices: ClassVar[int] = 1
    is_general: ClassVar[bool] = False
    gamma: ClassVar[Floats] = _NONE
    k_time: ClassVar[Floats] = _NONE

    def __len__(self) -> int:
        return len(self.values)

    @property
    def couplings(self) -> Floats:
        return np.asarray(1.0 / self.values)

    def check(self, model: Ising) -> None:
        """Refuse temperatures that are too high for the couplings to matter, or so low that weights overflow."""
        check_temperatures(self.values, model.energy_scale)


Places = Temperatures | Points  # a ladder of either kind


TEMPERING: Final = "tempering"  # group of the exchanges
PLACEMENT: Final = "placement"  # group that records how the ladder was placed
POINTS: Final = "points"  # group with the points of the general form
EXCHANGES: Final = {name: f"{TEMPERING}/{name}" for name in ("attempts", "accepts", "round_trips")}
"""Paths of the exchange counts, by the attributes of a result."""
LOCAL: Final = "local"  # group of the sums for local susceptibilities
LOCAL_SUMS: Final = {name: f"{LOCAL}/{name}" for name in ("local_squares", "local_measurements")}
"""Paths of these sums, by the attributes of a result."""
_MANY: Final = 2**13  # samples times places from which on averages take longer than a display should
_IN_TERMS: Final = "A = E_s + E_tau in space and time, the weight being exp(-k E_s - k_time E_tau)"


def reduced_of_run(model: Ising, choice: Choice, ladder: Places) -> Reduced:
    """Return the sums of a run; some samples of a model have the sums that they have among all."""
    whole = reduced_run(model.whole or model, choice, Ladder(len(ladder), ladder.gamma, ladder.k_time))
    if model.whole is None:
        return whole
    return replace(whole, model=model, all_samples=model.whole.samples, by_energy=whole.energies or False)


def contents_of_run(
    model: Ising, choice: Choice, ladder: Places, placement: Placement | None = None, local: bool = False
) -> Record:
    """Return a record without rows; places begin at the coldest end, or at the end deepest in the ordered phase."""
    name, copies, times = ladder.axis, choice.copies, choice.wanted.times
    dimension = model.embedding.dimension if model.embedding else 0
    lengths = {
        "sample": model.samples,
        "axis": dimension,
        "copy": copies,
        "copy_pair": copies * (copies - 1) // 2,
        name: len(ladder),
        "pair": len(ladder) - 1,
        "replica": copies * len(ladder),
        "time": len(times),
        "site": model.sites // ladder.slices,
    }
    places = {name: coordinates_of(ladder)}
    in_time = {"time": Array(np.array(times, np.int64), ("time",), "time", "slices")} if times else {}
    groups = {
        MEASUREMENTS: group_of(_series_of(model, dimension, choice, ladder), lengths, places | in_time),
        TEMPERING: group_of(_exchanges(name), lengths, places),
    }
    if local:
        groups[LOCAL] = group_of(local_series(name), lengths, places)
    if placement is not None:
        groups[PLACEMENT] = _placement_group(placement)
    if ladder.is_general:
        groups[POINTS] = Record({}, places | _given_points(ladder))
    return Record({}, {}, groups)


def coordinates_of(ladder: Places) -> Array:
    return Array(ladder.values, (ladder.axis,), ladder.axis, UNITS_OF_LADDERS[ladder.axis])


def _series_of(model: Ising, dimension: int, choice: Choice, ladder: Places) -> list[Series]:
    series = [Series("sweep", (STEP,), np.int64, "sweeps done since thermalisation")]
    for one in choice.quantities(dimension):
        kind = one.counts
        if isinstance(kind, str):
            kind = np.int32 if getattr(model, kind) < 2**31 else np.int64
        words = (choice.wanted.times and one.words_in_time) or one.words
        if ladder.is_general and one.name == "action":
            words = _IN_TERMS
        axes = (STEP, "sample", one.per, ladder.axis, *filter(None, [one.axis]))
        series.append(Series(one.name, axes, kind, words, one.unit))
    return series


def _exchanges(axis: str) -> tuple[Series, ...]:
    return (
        Series("permutation", (STEP, "sample", "copy", axis), np.int32, f"replica at each {axis}"),
        Series("attempts", ("sample", "pair"), np.int64, "exchanges tried with the next one"),
        Series("accepts", ("sample", "pair"), np.int64, "of them accepted"),
        Series("round_trips", ("sample", "replica"), np.int64, "from hottest to coldest and back"),
    )


def _placement_group(placement: Placement) -> Record:
    ladders = "temperatures of each iteration of the pre-run, NaN past the last"
    rates = "mean probability there of an exchange with the next temperature"
    arrays = {
        "temperature": Array(placement.temperature, ("iteration", "rung"), ladders, TEMPERATURE),
        "swap_rate": Array(placement.swap_rate, ("iteration", "rung_pair"), rates),
    }
    return Record({}, arrays)


def _given_points(points: Places) -> dict[str, Array]:
    """Return arrays of the points of the general form, without the quantity along the ladder."""
    about = {
        "gamma": ("transverse field", ENERGY),
        "beta": ("inverse temperature", INVERSE),
        "k": ("step in time, beta / slices", INVERSE),
        "k_time": ("coupling of neighbours in time, -ln tanh(gamma k) / 2", "1"),
    }
    del about[points.axis]
    return {name: Array(getattr(points, name), (points.axis,), *words) for name, words in about.items()}


def local_series(axis: str) -> tuple[Series, ...]:
    squares = "sum over measurements of (sum over slices of a site's spin)^2"
    return (
        Series("local_squares", ("sample", "copy", axis, "site"), np.int64, squares),
        Series("local_measurements", ("sample",), np.int64, "measurements in the sums"),
    )


def all_series(record: Record, in_time: bool) -> dict[str, npt.NDArray[Any]]:
    """Return the rows of all quantities; an unmeasured quantity has zero pairs, copies or entries on the last axis."""
    rows, *shape = record[f"{TEMPERING}/permutation"].shape
    paths = {one: f"{MEASUREMENTS}/{one.name}" for one in quantities_of(in_time)}
    return {
        one.name: np.asarray(record[path]) if path in record else one.nothing(rows, tuple(shape))
        for one, path in paths.items()
    }


def ladder_in(record: Record, model: Ising) -> Places:
    """Return the ladder with which the run of a record began."""
    temperatures = record.get(f"{MEASUREMENTS}/temperature")
    return points_in(record, model) if temperatures is None else Temperatures(temperatures)


def points_in(record: Record, model: Ising) -> Points:
    slices = model.graph.slices
    if POINTS not in record.groups:
        return isotropic(record[f"{MEASUREMENTS}/k"], slices)
    group = record.groups[POINTS]
    return general(np.unique(group["gamma"]), np.unique(group["beta"]), slices)


def placement_of(record: Record) -> Placement | None:
    group = record.groups.get(PLACEMENT)
    return None if group is None else Placement(group["temperature"], group["swap_rate"])


@dataclass(frozen=True, repr=False, kw_only=True)
class LadderResult(Tempered):
    """Measurements of a run on a ladder, sorted by copy and place. ``sweep`` holds the times of the series.

    Subclasses have a keyword ``place``, the word for a place of their ladder, and list these attributes as well.

    Attributes:
        model: The simulated model; for quantum runs in space and time, with ``model.graph.slices`` slices.
        sweep: Sweeps between thermalisation and each measurement, ``int64`` (steps,).
        magnetization: Sums of spins (over sites and slices), integers (steps, samples, copies, places).
        overlap: Sums over sites (and slices) of the product of two copies' spins, integers (steps, samples, pairs of
            copies, places).
        permutation: Replica at each place, ``int32`` (steps, samples, copies, places).
        attempts: Attempted exchanges of each pair of neighbouring places, ``int64`` (samples, places - 1).
        accepts: Accepted exchanges of each pair, ``int64`` (samples, places - 1).
        round_trips: Round trips of each replica from the last place to the first and back, ``int64`` (samples,
            replicas).
        link_overlap: Sums over bonds of two copies' products s_i s_j, integers of the shape of ``overlap``; without
            pairs if it was not measured.
        overlap_mode: |sum over sites of (s_a s_b) exp(i k x)|^2, k = 2 pi / L along each axis of the lattice, time
            first, ``float64`` (steps, samples, pairs of copies, places, axes); without axes if it was not measured.
        magnetization_mode: |sum over sites of s exp(i k x)|^2, ``float64`` (steps, samples, copies, places, axes);
            without axes if it was not measured.
        placement: Pre-run that placed the ladder, in temperatures, 1 / k, Gamma or 1 / beta; None for a given ladder.
        best_energy: Lowest energy (for quantum runs, lowest action) of each replica at a measurement, ``float64``
            (samples, replicas), in the unit of the couplings and without ``model.offset``; None if the run was killed
            before its first checkpoint.
        best_spins: State of lowest energy at a measurement, ``int8`` (samples, sites), or None in the same case.
        configurations: Spins saved at measurements; None without ``save_configurations``.
        record: The whole run as named arrays, as stored in its file.
        measured: User-defined observables by name, each (steps, samples, copies, places) or with more axes.
        reduced: Sums over all measurements; None for a search and for older files.
        disorder: Number of the disorder sample of each of ``model.samples``, (samples,), if several pooled runs have
            a sample in common; else None.
        job: Name of the job, the command that makes such runs.
        series_group: Group of ``record`` that has the series.
    """

    def __init_subclass__(cls, place: str = "place", **given: Any) -> None:
        """Add the attributes of this class to the docstring of a job's result, which is all that ``help`` shows."""
        super().__init_subclass__(**given)
        shared = (LadderResult.__doc__ or "").partition("Attributes:\n")[2].rstrip()
        renamed = re.sub(r"\bplace(?=s?\b)", place, shared)
        cls.__doc__ = f"{(cls.__doc__ or '').rstrip()}\n{renamed}\n    "

    model: Ising
    record: Record = field(default_factory=Record)
    placement: Placement | None = None
    best_energy: Floats | None = None
    best_spins: npt.NDArray[np.int8] | States | None = None
    configurations: Configurations | None = None
    measured: dict[str, npt.NDArray[Any]] = field(default_factory=dict)

    @property
    def places(self) -> Places:
        """The ladder of the run from its coldest end on, ``Temperatures`` or, of a quantum run, ``Points``."""
        raise NotImplementedError

    @property
    def choice(self) -> Choice:
        """The quantities that were measured, and the number of copies."""
        return choice_of(self)

    @cached_property
    def verdict(self) -> str:
        """Verdict on equilibrium in words, as in ``spinsim show``; it begins with "in equilibrium" if positive.

        Raises:
            MissingError: for a run that is too short to analyse.
        """
        from spinsim.analysis.summary import summarize  # loads SciPy

        try:
            return summarize(self).verdict
        except InputError as error:
            raise MissingError(str(error)) from error

    def equilibrium(self) -> Equilibrium:
        """Autocorrelation times of each sample's replicas on their walk along the ladder, and the slow samples.

        The autocorrelation of a replica's place, averaged over replicas, is fitted by A exp(-t / tau_exp) from the
        integrated time tau_int on, or later where faster processes reach beyond it (R. Alvarez Banos et al., J. Stat.
        Mech. P06026 (2010), section 2.4). A run must span 10 of the longer time, 20 with fewer than 10 samples.

        Returns:
            An ``Equilibrium``, with ``tau_exp``, ``tau_exp_error`` and ``span`` of each sample, and ``slow``.

        Raises:
            InputError: for fewer than 16 measurements, and for a single place of the ladder.
        """
        return equilibrium(self)

    def barrier(self) -> Barrier:
        """Barrier of the ladder from the rejection rates of its exchanges, and round trips predicted and counted.

        Lambda is the sum of the rejection rates r of neighbours. If replicas forget their energies between exchanges,
        the replicas of a copy make 1 / (2 + 2 sum of r / (1 - r)) round trips a round in all (S. Syed, A.
        Bouchard-Cote, G. Deligiannidis, A. Doucet, J. R. Stat. Soc. B 84, 321 (2022)).

        Returns:
            A ``Barrier``, with its ``total``, ``local`` barriers, ``predicted`` and ``observed`` round trips.

        Raises:
            InputError: for a run that has counted no exchange.
        """
        return barrier(self)

    def to_arviz(self) -> xarray.Dataset:
        """Series of each copy as an xarray dataset with the axes chain and draw, which the functions of ArviZ take.

        A chain is a copy of the ladder, a draw a measurement; the axes ``sample`` and ``temperature`` follow.
        Overlaps, which belong to pairs of copies, are left out.

        Raises:
            InputError: where xarray is not installed.
        """
        series = self.dataset().rename({"copy": "chain", "step": "draw"})
        chains = series[[name for name, one in series.data_vars.items() if {"chain", "draw"} <= set(one.dims)]]
        numbers = {"chain": np.arange(chains.sizes["chain"]), "draw": np.arange(chains.sizes["draw"])}
        return chains.assign_coords(numbers).transpose("chain", "draw", ...)

    @property
    def _run_facts(self) -> dict[str, str]:
        measured, settings = measurements_of(self), self._settings
        done = {"steps": count(measured, "measurement")}
        if "measure_every" in settings and POOLED not in self.attributes:
            before = f" after {settings['thermalize']} to thermalize" if settings.get("thermalize") else ""
            done |= {"sweeps": count(measured * settings["measure_every"], "sweep") + before}
        values, name = self.axis.values, self.axis.name
        in_space = name == "temperature"
        kind, number = ("temperatures", count(len(values), name)) if in_space else ("points", f"{len(values)} {name}")
        ends = f"{number} from {values.min():g} to {values.max():g}"
        return {
            "samples": samples_in_words(self),
            "copies": count(self.permutation.shape[2], "copy"),
            kind: ends,
            **done,
        }

    @property
    def _is_large(self) -> bool:
        return super()._is_large or self.model.samples * len(self.axis.values) > _MANY

    @property
    def _findings(self) -> dict[str, str]:
        if self._is_large and "verdict" not in vars(self):
            return {}
        try:
            return {"verdict": self.verdict}
        except MissingError:
            return {"verdict": "none, too few measurements"}

    @classmethod
    def of(cls, record: Record, model: Ising, ladder: Places, **fields: Any) -> Self:
        """Return the result of a record, with its ladder, its model and the job's own fields."""
        energy = record.get("best/energy")
        if energy is not None and np.isfinite(energy).all():
            fields |= {"best_energy": energy, "best_spins": as_shown(best_in(record, model.sites)[1], model)}
        group = record.group(LOCAL)
        fields |= {name: group[name] for name in LOCAL_SUMS if name in group}
        fields |= {name: record[path] for name, path in EXCHANGES.items()}
        return cls(
            model=model,
            record=record,
            sweep=np.asarray(record[f"{MEASUREMENTS}/sweep"]),
            permutation=np.asarray(record[f"{TEMPERING}/permutation"]),
            placement=placement_of(record),
            configurations=configurations_in(record),
            measured=measured_in(record),
            reduced=_sums_in(record, model, ladder),
            disorder=record.get(DISORDER),
            **all_series(record, ladder.slices > 1),
            **fields,
        )


def _sums_in(record: Record, model: Ising, ladder: Places) -> RunSums | None:
    """Return the sums over all measurements in a record, or None if it keeps all series in full."""
    copies = record[f"{TEMPERING}/permutation"].shape[2]
    times = tuple(record[f"{MEASUREMENTS}/time"].tolist()) if ladder.slices > 1 else ()
    is_bipartite = not times and model.is_bipartite
    return run_sums_in(
        record, times, lambda wanted: reduced_of_run(model, Choice(copies, wanted, is_bipartite), ladder)
    )
