"""Files of runs on a ladder: the quantities that they measure, exchanges, and the placing of the ladder."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from math import prod
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import h5py
import numpy as np
import numpy.typing as npt

from spinsim import store
from spinsim.sampling import TemperFrame
from spinsim.sampling.placement import Placement
from spinsim.store.forms import DamageError, axis_of, group_of, length_of
from spinsim.store.layout import Layout, Series, Sizes

TEMPERING: Final = "tempering"
"""The group of the exchanges."""
PLACEMENT: Final = "placement"
"""The group that says how temperatures were placed."""
SUMS: Final = {
    "attempts": f"{TEMPERING}/attempts",
    "accepts": f"{TEMPERING}/accepts",
    "trips": f"{TEMPERING}/round_trips",
}
"""Paths of what is written again and again, by the names under which checkpoints hold it."""
_PIECE_BYTES: Final = 2**24


def ladder_layout(
    measured: tuple[Series, ...],
    scales: Mapping[str, npt.NDArray[np.generic]],
    ladder: tuple[str, npt.NDArray[np.float64], str],
    copies: int,
    placement: Placement | None,
) -> Layout:
    """Returns the layout of a run on a ladder.

    Args:
        measured: Series of the file; the first two are step and sweep.
        scales: Values along axes that they have of their own, and the samples.
        ladder: Name, values and unit of the axis of the ladder.
        copies: Copies of the ladder in each sample.
        placement: How the temperatures were placed, if they were.
    """
    name, values, unit = ladder
    along = {
        "copy": np.arange(copies),
        "copy_pair": np.arange(copies * (copies - 1) // 2),
        name: values,
        "pair": np.arange(len(values) - 1),
        "replica": np.arange(copies * len(values)),
    }
    if placement is not None:
        iterations, rungs = placement.temperature.shape
        along |= {"iteration": np.arange(iterations), "rung": np.arange(rungs), "rung_pair": np.arange(rungs - 1)}
    return Layout(
        {**scales, **along},
        {name: unit},
        (
            *measured,
            Series("step", (), np.int64, "measurement", group=TEMPERING),
            Series("permutation", ("sample", "copy", name), np.int32, f"replica at each {name}", group=TEMPERING),
        ),
        (
            Series("attempts", ("sample", "pair"), np.int64, "exchanges tried with the next one", "1", TEMPERING),
            Series("accepts", ("sample", "pair"), np.int64, "of them accepted", "1", TEMPERING),
            Series("round_trips", ("sample", "replica"), np.int64, "from hottest to coldest and back", "1", TEMPERING),
        ),
        () if placement is None else _given(placement),
    )


def _given(placement: Placement) -> tuple[tuple[Series, npt.NDArray[np.float64]], ...]:
    """Datasets of a placement."""
    ladders = "temperatures of each iteration of the pre-run, NaN past the last"
    rates = "mean probability there of an exchange with the next temperature"
    return (
        (
            Series("temperature", ("iteration", "rung"), np.float64, ladders, "coupling unit / k_B", PLACEMENT),
            placement.temperature,
        ),
        (Series("swap_rate", ("iteration", "rung_pair"), np.float64, rates, "1", PLACEMENT), placement.swap_rate),
    )


def ladder_of(group: h5py.Group, name: str, rising: bool) -> npt.NDArray[np.float64]:
    """Returns the ladder of a file, from its coldest end.

    Raises:
        DamageError: where it is not positive or does not go one way.
    """
    ladder = axis_of(group, name, np.float64)
    steps = np.diff(ladder) if rising else -np.diff(ladder)
    if not (len(ladder) and np.isfinite(ladder).all() and (ladder > 0).all() and (steps > 0).all()):
        ends = "from the lowest to the highest" if rising else "from the largest to the smallest"
        raise DamageError(f"its values of {name} do not go {ends}")
    return ladder


def placement_outline(file: h5py.File) -> Placement | None:
    """Returns a placement of the sizes of a file's, without its numbers."""
    if PLACEMENT not in file:
        return None
    iterations, rungs = (length_of(group_of(file, PLACEMENT), name) for name in ("iteration", "rung"))
    return Placement(np.empty((iterations, rungs)), np.empty((iterations, max(0, rungs - 1))))


def placement_of(file: h5py.File) -> Placement | None:
    """How the temperatures of a file were placed; None where they were given."""
    group = file.get(PLACEMENT)
    return None if group is None else Placement(group["temperature"][...], group["swap_rate"][...])


def written_again(
    file: h5py.File, attributes: Mapping[str, str], more: Mapping[str, str] = MappingProxyType({})
) -> dict[str, Any]:
    """Numbers that a file holds of exchanges and, where it has them, of lowest states, by the names of a result.

    What else is written again in files of a job is ``more``, paths by such names, where the file has it.

    Of a run that is not finished it is that of the last checkpoint: another process may write what stands beside it.
    """
    saved = {} if "finished" in attributes else store.last_saved(file)
    paths = {name: f"{TEMPERING}/{name}" for name in ("attempts", "accepts", "round_trips")}
    paths |= {name: path for name, path in more.items() if path in file}
    found = {name: saved[path] if path in saved else file[path][...] for name, path in paths.items()}
    energy, spins = store.best_of(file, saved) if "best" in file else (np.full(1, np.inf), None)
    return found | ({"best_energy": energy, "best_spins": spins} if np.isfinite(energy).all() else {})


def read_permutation(file: h5py.File, rows: int) -> npt.NDArray[np.int64]:
    """Returns the replicas at each place of the ladder in the first rows of a file.

    Raises:
        DamageError: for replicas that do not exist.
    """
    permutation = file[TEMPERING]["permutation"][:rows]
    replicas = permutation.shape[2] * permutation.shape[3]
    if permutation.min(initial=0) < 0 or permutation.max(initial=0) >= replicas:
        raise DamageError("its permutation names replicas that do not exist")
    return np.asarray(permutation)


def check_permutation(file: h5py.File, rows: int) -> None:
    """Refuse a permutation that does not have every replica at one place.

    Raises:
        DamageError: for it.
    """
    series = file[TEMPERING]["permutation"]
    copies, places = series.shape[2:]
    replicas = np.arange(copies * places)
    piece = max(1, _PIECE_BYTES // max(1, series.dtype.itemsize * prod(series.shape[1:])))
    for first in range(0, rows, piece):
        found = series[first : min(first + piece, rows)].reshape(-1, len(replicas))
        if not (np.sort(found, axis=1) == replicas).all():
            raise DamageError("its permutation does not name every replica once")


class Measured(NamedTuple):
    """A quantity of every copy, or pair of copies, at every place of a ladder.

    Attributes:
        name: Name of its series in files and of the attribute of results.
        of: Finds it in a measurement.
        words: Formula in words.
        per: ``copy`` or ``copy_pair``, the axis between samples and places.
        counts: ``sites`` or ``bonds`` where it is a number of these at most, for integers as wide as these need; else a
            type.
        axis: Last axis, behind the places, if it has one.
        unit: Unit of its values.
        when: Which of the conditions of a run must hold for it to be measured, if any.
    """

    name: str
    of: Callable[[TemperFrame], npt.NDArray[Any]]
    words: str
    per: str = "copy"
    counts: str | type = "sites"
    axis: str = ""
    unit: str = ""
    when: str = ""


def series_of(table: Sequence[Measured], sizes: Sizes, place: str, holds: Container[str]) -> tuple[Series, ...]:
    """The series of a file, step and sweep first.

    Args:
        table: Quantities of the job.
        sizes: Sizes of the model.
        place: Name of the axis of the ladder.
        holds: Conditions that hold.
    """
    found = [
        Series("step", (), np.int64, "measurement"),
        Series("sweep", (), np.int64, "sweeps done since thermalisation"),
    ]
    for one in table:
        if not one.when or one.when in holds:
            kind = one.counts
            if isinstance(kind, str):
                kind = np.int32 if getattr(sizes, kind) < 2**31 else np.int64
            axes = ("sample", one.per, place, *filter(None, [one.axis]))
            found.append(Series(one.name, axes, kind, one.words, *filter(None, [one.unit])))
    return tuple(found)


def row_of(table: Sequence[Measured]) -> Callable[[TemperFrame], dict[str, Any]]:
    """Returns what makes a measurement a row of the file."""

    def row(frame: TemperFrame) -> dict[str, Any]:
        always = {"step": frame.step, "sweep": frame.sweep, "permutation": frame.holder}
        return always | {one.name: one.of(frame) for one in table}

    return row


def in_result(
    table: Sequence[Measured], found: Mapping[str, Any], rows: int, shape: tuple[int, int, int]
) -> dict[str, npt.NDArray[Any]]:
    """The first rows of all quantities, those that were not measured without pairs, copies or the last axis.

    Args:
        table: Quantities of the job.
        found: Series that there are.
        rows: How many.
        shape: Samples, copies, places.
    """
    samples, copies, places = shape
    between = {"copy": copies, "copy_pair": copies * (copies - 1) // 2}
    series = {}
    for one in table:
        if one.name in found:
            series[one.name] = found[one.name][:rows]
        elif one.axis:
            kind = np.int64 if isinstance(one.counts, str) else one.counts
            series[one.name] = np.empty((rows, samples, between[one.per], places, 0), kind)
        else:
            series[one.name] = np.empty((rows, samples, 0, places), np.int64)
    return series
