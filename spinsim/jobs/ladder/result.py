"""Results of runs on a ladder, of temperatures or of points in space and time, and the contents of their files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, ClassVar, Final, Self

import h5py
import numpy as np
import numpy.typing as npt

from spinsim import store
from spinsim.analysis.reduced import ReducedRun
from spinsim.analysis.runs import Tempered
from spinsim.analysis.sources import facts_of, measurements_of
from spinsim.bits import States
from spinsim.engine.measuring.correlations import Wanted
from spinsim.engine.measuring.reduction import Reduced
from spinsim.errors import InputError, MissingError
from spinsim.inputs.texts import count
from spinsim.model.ising import Ising
from spinsim.model.trotter import FEWEST, Points, general, isotropic
from spinsim.observables.measured import Choice, quantities_of
from spinsim.observables.moments import Ladder, reduced_run
from spinsim.observables.table import observables
from spinsim.run import search
from spinsim.run.own import names_in_file, on_ladder, own_in_file, own_of_result, with_series, with_summary
from spinsim.run.reducing import REDUCED, reduced_in, with_sums_of, with_sums_of_result
from spinsim.run.reducing import SUMS as REDUCED_SUMS
from spinsim.sampling.placement import Placement
from spinsim.saved import Configurations, in_file
from spinsim.store.contents import (
    ENERGY,
    INVERSE,
    MEASUREMENTS,
    SUMMARY_GROUP,
    TEMPERATURE,
    Contents,
    DamageError,
    Form,
    Series,
    Sizes,
    axis_of,
    group_of,
    length_of,
    summary_series,
)
from spinsim.store.datasets import pieces

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_NONE: Final = np.empty(0)


@dataclass(frozen=True)
class Temperatures:
    """A ladder of temperatures, with what ``Points`` has."""

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


Places = Temperatures | Points  # a ladder of either kind


TEMPERING: Final = "tempering"  # the group of the exchanges
PLACEMENT: Final = "placement"  # the group that says how the ladder was placed
POINTS: Final = "points"  # the group that has the points of the general form
UNITS: Final = {"temperature": TEMPERATURE, "k": INVERSE, "gamma": ENERGY, "beta": INVERSE}
"""Quantities along which a ladder may go."""
EXCHANGES: Final = {name: f"{TEMPERING}/{name}" for name in ("attempts", "accepts", "round_trips")}
"""Paths of what is written again and again, by the names of a result."""
SUMS: Final = dict(zip(("attempts", "accepts", "trips"), EXCHANGES.values(), strict=True))
"""The same by the names under which checkpoints hold it."""
LOCAL: Final = "local"  # the group of the sums for local susceptibilities
LOCAL_SUMS: Final = {name: f"{LOCAL}/{name}" for name in ("local_squares", "local_measurements")}
"""Their paths, by the names under which checkpoints and results hold them."""
_IN_TERMS: Final = "A = E_s + E_tau in space and time, the weight being exp(-k E_s - k_time E_tau)"


def contents_of_run(
    model: Ising,
    choice: Choice,
    ladder: Places,
    placement: Placement | None = None,
    start: npt.NDArray[np.int8] | None = None,
    local: bool = False,
) -> Contents:
    """Returns contents with a row for each measurement, places from the coldest end or deepest in the ordered phase."""
    contents = measured_contents(Sizes.of(model), choice, ladder, placement, local)
    summary = model.once(_summary, choice, ladder.axis)
    return replace(contents, sums=(*contents.sums, *summary), start=start)


def _summary(model: Ising, choice: Choice, axis: str) -> list[Series]:
    return summary_series(observables(choice.facts(model)), axis)


def reduced_of_run(model: Ising, choice: Choice, ladder: Places) -> Reduced:
    wanted = choice.wanted
    places = Ladder(len(ladder), wanted.times, ladder.gamma, ladder.k_time, wanted.even)
    return reduced_run(choice.facts(model), places)


def measured_contents(
    sizes: Sizes, choice: Choice, ladder: Places, placement: Placement | None, local: bool = False
) -> Contents:
    """Returns the same without the summary of an analysis: what the sizes of a model are enough for."""
    name, copies, times = ladder.axis, choice.copies, choice.wanted.times
    measured = _series_of(sizes, choice, ladder)
    scales = {
        "sample": np.arange(sizes.samples),
        "axis": np.arange(sizes.dimension if any("axis" in one.axes for one in measured) else 0),
        "copy": np.arange(copies),
        "copy_pair": np.arange(copies * (copies - 1) // 2),
        name: ladder.values,
        "pair": np.arange(len(ladder) - 1),
        "replica": np.arange(copies * len(ladder)),
    }
    units = {name: UNITS[name]}
    if times:
        scales |= {"time": np.array(times, np.int64), "site": np.arange(sizes.sites // ladder.slices)}
        units["time"] = "slices"
    if placement is not None:
        iterations, rungs = placement.temperature.shape
        scales |= {"iteration": np.arange(iterations), "rung": np.arange(rungs), "rung_pair": np.arange(rungs - 1)}
    return Contents(
        scales,
        units,
        (
            *measured,
            Series("step", (), np.int64, "measurement", group=TEMPERING),
            Series("permutation", ("sample", "copy", name), np.int32, f"replica at each {name}", group=TEMPERING),
        ),
        (
            Series("attempts", ("sample", "pair"), np.int64, "exchanges tried with the next one", "1", TEMPERING),
            Series("accepts", ("sample", "pair"), np.int64, "of them accepted", "1", TEMPERING),
            Series("round_trips", ("sample", "replica"), np.int64, "from hottest to coldest and back", "1", TEMPERING),
            *(local_series(name) if local else ()),
        ),
        (*(() if placement is None else _given(placement)), *(_given_points(ladder) if ladder.is_general else ())),
    )


def _series_of(sizes: Sizes, choice: Choice, ladder: Places) -> list[Series]:
    series = [
        Series("step", (), np.int64, "measurement"),
        Series("sweep", (), np.int64, "sweeps done since thermalisation"),
    ]
    for one in choice.quantities(sizes.dimension):
        kind = one.counts
        if isinstance(kind, str):
            kind = np.int32 if getattr(sizes, kind) < 2**31 else np.int64
        words = (choice.wanted.times and one.words_in_time) or one.words
        axes = ("sample", one.per, ladder.axis, *filter(None, [one.axis]))
        series.append(Series(one.name, axes, kind, words, one.unit))
    if ladder.is_general:
        series = [one._replace(long_name=_IN_TERMS) if one.name == "action" else one for one in series]
    return series


def _given(placement: Placement) -> tuple[tuple[Series, npt.NDArray[np.float64]], ...]:
    words = "temperatures of each iteration of the pre-run, NaN past the last"
    ladders = Series("temperature", ("iteration", "rung"), np.float64, words, TEMPERATURE, PLACEMENT)
    words = "mean probability there of an exchange with the next temperature"
    rates = Series("swap_rate", ("iteration", "rung_pair"), np.float64, words, "1", PLACEMENT)
    return (ladders, placement.temperature), (rates, placement.swap_rate)


def _given_points(points: Places) -> list[tuple[Series, npt.NDArray[np.float64]]]:
    """Returns datasets of the points of the general form, beside the one that the ladder goes along."""
    about = {
        "gamma": ("transverse field", ENERGY),
        "beta": ("inverse temperature", INVERSE),
        "k": ("step in time, beta / slices", INVERSE),
        "k_time": ("coupling of neighbours in time, -ln tanh(gamma k) / 2", "1"),
    }
    del about[points.axis]
    return [
        (Series(name, (points.axis,), np.float64, *words, POINTS), getattr(points, name))
        for name, words in about.items()
    ]


def local_series(axis: str) -> tuple[Series, ...]:
    squares = "sum over measurements of (sum over slices of a site's spin)^2"
    return (
        Series("local_squares", ("sample", "copy", axis, "site"), np.int64, squares, "1", LOCAL),
        Series("local_measurements", ("sample",), np.int64, "measurements in the sums", "1", LOCAL),
    )


def all_series(
    in_time: bool, series: Mapping[str, Any], rows: int, shape: tuple[int, int, int]
) -> dict[str, npt.NDArray[Any]]:
    """Returns the first rows of all quantities, those that were not measured without pairs, copies or the last axis."""
    return {
        one.name: series[one.name][:rows] if one.name in series else one.nothing(rows, shape)
        for one in quantities_of(in_time)
    }


def temperatures_in(file: h5py.File) -> Temperatures:
    return Temperatures(_values_of(group_of(file, MEASUREMENTS), "temperature", rising=True))


def points_in(file: h5py.File) -> Points:
    slices = int(group_of(file, "model").attrs.get("slices", 1))
    if slices < FEWEST:
        raise DamageError("its model has no slices in time")
    if POINTS not in file:
        return isotropic(_values_of(group_of(file, MEASUREMENTS), "k", rising=False), slices)
    group = group_of(file, POINTS)
    gamma, beta = (axis_of(group, name, np.float64) for name in ("gamma", "beta"))
    try:
        points = general(np.unique(gamma), np.unique(beta), slices)
    except InputError as error:
        raise DamageError("its gamma and beta are no ladder") from error
    if not len(gamma) or not (np.array_equal(points.gamma, gamma) and np.array_equal(points.beta, beta)):
        raise DamageError("its gamma and beta are no ladder")
    return points


def times_in(file: h5py.File, slices: int) -> tuple[int, ...]:
    """Returns the times of correlations that a file has, none of space alone; DamageError where they do not rise."""
    if slices == 1:
        return ()
    times = axis_of(group_of(file, MEASUREMENTS), "time", np.int64)
    if not len(times) or times[0] != 1 or times[-1] >= slices or not (np.diff(times) > 0).all():
        raise DamageError(f"its times do not rise from 1 within its {slices} slices")
    return tuple(map(int, times))


def _values_of(group: h5py.Group, name: str, rising: bool) -> npt.NDArray[np.float64]:
    ladder = axis_of(group, name, np.float64)
    steps = np.diff(ladder) if rising else -np.diff(ladder)
    if not (len(ladder) and np.isfinite(ladder).all() and (ladder > 0).all() and (steps > 0).all()):
        ends = "from the lowest to the highest" if rising else "from the largest to the smallest"
        raise DamageError(f"its values of {name} do not go {ends}")
    return ladder


def placement_outline(file: h5py.File) -> Placement | None:
    if PLACEMENT not in file:
        return None
    iterations, rungs = (length_of(group_of(file, PLACEMENT), name) for name in ("iteration", "rung"))
    return Placement(np.empty((iterations, rungs)), np.empty((iterations, max(0, rungs - 1))))


def placement_of(file: h5py.File) -> Placement | None:
    group = file.get(PLACEMENT)
    return None if group is None else Placement(group["temperature"][...], group["swap_rate"][...])


def written_again(file: h5py.File, attributes: Mapping[str, str]) -> dict[str, Any]:
    """Exchanges, sums and lowest states that a file holds, by the names of a result.

    Of a run that is not finished it is that of the last checkpoint: another process may write what stands beside it.
    """
    saved = {} if "finished" in attributes else store.last_saved(file)
    paths = EXCHANGES | {name: path for name, path in LOCAL_SUMS.items() if path in file}
    arrays = {name: saved[path] if path in saved else file[path][...] for name, path in paths.items()}
    energy, spins = store.best_of(file, saved) if "best" in file else (np.full(1, np.inf), None)
    return arrays | ({"best_energy": energy, "best_spins": spins} if np.isfinite(energy).all() else {})


def read_permutation(file: h5py.File, rows: int) -> npt.NDArray[np.int64]:
    permutation = file[TEMPERING]["permutation"][:rows]
    replicas = permutation.shape[2] * permutation.shape[3]
    if permutation.min(initial=0) < 0 or permutation.max(initial=0) >= replicas:
        raise DamageError("its permutation names replicas that do not exist")
    return np.asarray(permutation)


def check_permutation(file: h5py.File, rows: int) -> None:
    series = file[TEMPERING]["permutation"]
    copies, places = series.shape[2:]
    replicas = np.arange(copies * places)
    for piece in pieces([series], rows):
        holders = series[piece].reshape(-1, len(replicas))
        if not (np.sort(holders, axis=1) == replicas).all():
            raise DamageError("its permutation does not name every replica once")


def _contents_in(places_in: Callable[[h5py.File], Places], file: h5py.File, sizes: Sizes) -> tuple[Contents, int]:
    group = group_of(file, MEASUREMENTS)
    copies, ladder = length_of(group, "copy"), places_in(file)
    times = times_in(file, ladder.slices)
    modes = "magnetization_mode" in group
    full = bool(times) or modes or any(name in group for name in ("link_overlap", "overlap_mode"))
    wanted = Wanted(full, times, "even_correlation_in_time" in group, magnetization_modes=modes)
    choice = Choice(copies, wanted, "staggered_magnetization" in group)
    contents = measured_contents(sizes, choice, ladder, placement_outline(file), bool(times) and LOCAL in file)
    contents = with_series(contents, *own_in_file(file, on_ladder(ladder.axis)))
    contents = with_sums_of(contents, file, ladder.axis)
    return contents if times else search.with_search_of(file, contents), copies * len(ladder)


def _form(places_in: Callable[[h5py.File], Places], groups: tuple[str, ...], sums: Mapping[str, str]) -> Form:
    return Form(
        planned={"sweeps": (int,), "measure_every": (int,)},
        groups=(MEASUREMENTS, TEMPERING, PLACEMENT, REDUCED, *groups),
        contents=partial(_contents_in, places_in),
        sums={**SUMS, **REDUCED_SUMS, **sums},
        check_numbers=check_permutation,
    )


TEMPER_FORM: Final = _form(temperatures_in, (search.GROUP,), {**search.SUMS, "restarts": search.RESTARTS})
QUANTUM_FORM: Final = _form(points_in, (POINTS, LOCAL), LOCAL_SUMS)
"""Properties of the files of both jobs that the store must know."""


@dataclass(frozen=True, repr=False, kw_only=True)
class LadderResult(Tempered):
    """Measurements of a run on a ladder, replicas sorted by copy and place; series are those of ``sweep``.

    Attributes:
        model: Model that was simulated; for quantum runs in space and time, with ``model.graph.slices`` slices.
        sweep: Sweeps done before each measurement since thermalisation, (steps,).
        magnetization: Sums of spins (over sites and slices), integers (steps, samples, copies, places).
        overlap: Sums over sites (and slices) of the product of two copies' spins, (steps, samples, pairs of copies,
            places).
        permutation: Replica at each place, (steps, samples, copies, places).
        attempts: Attempted exchanges of each pair of neighbouring places, (samples, places - 1).
        accepts: Accepted exchanges of each pair, (samples, places - 1).
        round_trips: Round trips of each replica from the last place to the first and back, (samples, replicas).
        link_overlap: Sums over bonds of two copies' products s_i s_j, of the shape of ``overlap``; no pairs if it was
            not measured.
        overlap_mode: |sum over sites of (s_a s_b) exp(i k x)|^2, k = 2 pi / L along each axis of the lattice, time
            first, ``float64`` (steps, samples, pairs of copies, places, axes); no axes if it was not measured.
        magnetization_mode: The same for spins, (steps, samples, copies, places, axes), likewise.
        placement: Pre-run that placed the ladder, in temperatures, 1 / k, Gamma or 1 / beta; None if you gave the
            ladder.
        best_energy: Lowest energy (for quantum runs action) of each replica at a measurement, (samples, replicas); None
            if the run was killed before its first checkpoint.
        best_spins: State of lowest energy at a measurement, ``int8`` (samples, sites), likewise.
        configurations: Spins saved at measurements; None without ``save_configurations``.
        attributes: Root attributes of its file: configuration, versions and so on.
        measured: Observables of your own by name, each (steps, samples, copies, places) or with more axes.
        reduced: Sums over all measurements, if the series have only some of them; else None.
    """

    model: Ising
    placement: Placement | None = None
    best_energy: Floats | None = None
    best_spins: npt.NDArray[np.int8] | States | None = None
    configurations: Configurations | None = None
    attributes: dict[str, str] = field(default_factory=dict)
    measured: dict[str, npt.NDArray[Any]] = field(default_factory=dict)

    @property
    def places(self) -> Places:
        """The ladder."""
        raise NotImplementedError

    @property
    def choice(self) -> Choice:
        facts, (times, even) = facts_of(self), self._times
        wanted = Wanted(facts.correlations, times, even, magnetization_modes=facts.magnetization_modes)
        return Choice(self.permutation.shape[2], wanted, facts.staggered)

    @cached_property
    def verdict(self) -> str:
        """Verdict on equilibrium in words, as ``spinsim show`` prints it; begins with "in equilibrium" if it was.

        Raises:
            MissingError: for a run that is too short to analyse.
        """
        from spinsim.analysis.summary import summarize  # which loads SciPy

        try:
            return summarize(self).verdict
        except InputError as error:
            raise MissingError(str(error)) from error

    @property
    def _times(self) -> tuple[tuple[int, ...], bool]:
        """Times of correlations in time, and whether products of neighbours have them too."""
        return (), False

    @property
    def _rows(self) -> int:
        return len(self.sweep)

    @property
    def _planned(self) -> int:
        run = self.config.get(self.job, {})
        planned = run["sweeps"] // run["measure_every"] if run else 0
        if self.reduced is not None:
            return planned // self.reduced.stride if self.reduced.stride else 0
        return planned

    @property
    def _contents(self) -> Contents:
        ladder, local = self.places, getattr(self, "local_squares", None) is not None
        contents = contents_of_run(self.model, self.choice, ladder, self.placement, local=local)
        contents = with_summary(contents, *own_of_result(self.measured, on_ladder(ladder.axis)))
        return with_sums_of_result(contents, self, ladder.axis)

    def _written_again(self, contents: Contents) -> dict[str, npt.NDArray[Any]]:
        others = SUMMARY_GROUP, search.GROUP, REDUCED
        datasets = {s.path: getattr(self, s.name) for s in contents.sums if s.group not in others}
        arrays = {} if self.reduced is None else self.reduced.arrays
        return datasets | {s.path: arrays[s.name] for s in contents.sums if s.group == REDUCED}

    @property
    def _run_facts(self) -> dict[str, str]:
        done = {"steps": count(measurements_of(self), "measurement")}
        values, name = self.axis.values, self.axis.name
        in_space = name == "temperature"
        kind, number = ("temperatures", count(len(values), name)) if in_space else ("points", f"{len(values)} {name}")
        ends = f"{number} from {values.min():g} to {values.max():g}"
        return {"copies": count(self.permutation.shape[2], "copy"), kind: ends, **done}

    @classmethod
    def read(cls, file: h5py.File, rows: int, attributes: dict[str, str], ladder: Places, **fields: Any) -> Self:
        """Returns the run of the first rows of a file, with its ladder, its model and the fields of the job."""
        m = file[MEASUREMENTS]
        fields |= all_series(ladder.slices > 1, m, rows, file[f"{TEMPERING}/permutation"].shape[1:])
        return cls(
            sweep=m["sweep"][:rows],
            permutation=read_permutation(file, rows),
            placement=placement_of(file),
            **written_again(file, attributes),
            configurations=in_file(file, rows),
            attributes=attributes,
            measured={name: m[name][:rows] for name in names_in_file(file)},
            reduced=reduced_of_file(file, fields["model"], attributes, ladder),
            **fields,
        )


def reduced_of_file(file: h5py.File, model: Ising, attributes: Mapping[str, str], ladder: Places) -> ReducedRun | None:
    """Returns the sums over all measurements that a file holds, None where it keeps all series in full."""
    copies, times = file[f"{TEMPERING}/permutation"].shape[2], times_in(file, ladder.slices)

    def reduced(settings: Mapping[str, Any]) -> Reduced:
        full, even = settings.get("correlations", True), settings.get("even_correlations", False)
        wanted = Wanted(full, times, even, magnetization_modes=settings.get("magnetization_modes", True))
        return reduced_of_run(model, Choice(copies, wanted, not times and model.is_bipartite), ladder)

    return reduced_in(file, attributes, reduced)
