"""Series of bounded size: which rows of a long run on a ladder its file keeps, and sums over all measurements.

The group /reduced holds the arrays of ``engine.measuring.reduction``. Every statistic of such a run follows from them.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spinsim.analysis.run_sums import RunSums
from spinsim.engine.measuring.correlations import Quantities
from spinsim.engine.measuring.cpu_reduction import Best
from spinsim.engine.measuring.reduction import Reduced, empty_arrays
from spinsim.engine.protocols import Reduction
from spinsim.errors import InputError
from spinsim.packing import States, packed_spins
from spinsim.record import Array, Record
from spinsim.run.own_observables import own_sums_in
from spinsim.sampling.tempering import Adding
from spinsim.store.contents import (
    LABELS,
    MEASUREMENTS,
    REDUCED,
    STRIDE,
    Arrays,
    Series,
    group_of,
    has_rows,
    room_of,
    rows_in,
)
from spinsim.store.files import DamageError

ALL: Final = "all"
NONE: Final = "none"
_STORED: Final = {
    "block_sums": (("term", "block", "sample", "*"), "sums over copies or pairs and the measurements of a block"),
    "copy_sums": (("term_by_copy", "sample", "copy", "*"), "sums over all measurements of each copy"),
    "coldest_sums": (
        ("term_judged", "coldest_block", "sample", "chain"),
        "sums over the measurements of a block at the coldest place, of each copy or pair",
    ),
    "level_sums": (
        ("term_followed", "level_block", "level", "sample", "*"),
        "sums of sums over so many consecutive measurements, of their distance from the first value",
    ),
    "level_squares": (("term_followed", "level_block", "level", "sample", "*"), "sums of the squares of these sums"),
    "first_value": (("term_followed", "sample", "*"), "first values"),
    "walk_sums": (
        ("walk", "walk_block", "sample", "replica"),
        "sums of 2 place - places + 1 of each replica on the ladder over the measurements of a block",
    ),
    "walk_squares": (("sample",), "sums of the squares of the same"),
    "measurements": (("sample",), "measurements in the sums"),
    "overlap_histogram": (("sample", "*", "overlap_cell"), "pairs and measurements with an overlap in a cell"),
    "link_overlap_histogram": (("sample", "*", "link_overlap_cell"), "likewise of link overlaps"),
    "energy_range": (("sample", "lowest_highest"), "lowest and highest energy of a copy, in levels"),
    "energy_counts": (
        ("energy_count", "energy_block", "sample", "energy_bin"),
        "measurements of each copy, at all places, in bins of energy, and the sum of their levels",
    ),
    "energy_sums": (("energy_row", "energy_block", "sample", "energy_bin"), "sums of terms over the same"),
    "energy_pair_counts": (
        ("energy_pair_count", "energy_block", "sample", "energy_pair_bin"),
        "pairs and measurements in bins of the sum of two energies, and the sum of levels",
    ),
    "energy_pair_sums": (
        ("energy_pair_row", "energy_block", "sample", "energy_pair_bin"),
        "likewise of terms of pairs",
    ),
}
"""Arrays in a file, with their axes and descriptions; * stands for the axis of the ladder. Checkpoints hold further
arrays."""
_NAMED: Final = ("term", "term_by_copy", "term_followed", "term_judged", "energy_row", "energy_pair_row")
"""Axes along terms; the labels of the group list the names of the terms."""
_WANTED: Final = {"full": "correlations", "even": "even_correlations", "magnetization_modes": "magnetization_modes"}
"""Fields of ``Quantities``, each with the setting that requests it; the settings are attributes of the group."""
_ENERGIES: Final = ("energy", "action", "correlation_in_time")
"""Series that are always kept: the energy, or the parts of it in quantum runs, with the axis of times."""
_OF_LIMIT: Final = 4
"""Fraction of the limit for thinned series, as its inverse: statistics follow from the sums, rows are for viewing."""


class Keeping(NamedTuple):
    """Choice of the rows that a run keeps."""

    stride: int = 1  # measurements for each row, a power of two; 0 if no row is kept
    names: tuple[str, ...] | None = None  # series that are kept, None for all

    def has_row(self, number: int) -> bool:
        return self.stride > 0 and (number + 1) % self.stride == 0

    def rows(self, measurements: int) -> int:
        return measurements // self.stride if self.stride else 0

    def among(self, first: int, measurements: int) -> slice:
        """Slice of the measurements that have rows, among ``measurements`` ones from number ``first`` on."""
        return slice((-first - 1) % self.stride, measurements, self.stride) if self.stride else slice(0, 0, 1)


EVERYTHING: Final = Keeping()
"""All rows of all series."""


def keeping_of(contents: Record, measurements: int, series: str, limit: float | None, save_every: int) -> Keeping:
    """Return the rows that a new run keeps, of ``series`` (all, none or names) within ``limit`` megabytes."""
    if series == NONE:
        if save_every:
            raise InputError("series none keeps no rows for save_configurations: keep a series, or save none")
        return Keeping(0)
    names = None if series == ALL else _names(series, contents)
    kept = with_names(contents, names)
    room, most = room_of(kept, measurements), np.inf if limit is None else limit * 1e6
    return Keeping(_stride(1, kept, measurements, most, save_every) if room > most else 1, names)


def _stride(stride: int, contents: Record, measurements: int, most: float, save_every: int) -> int:
    """Return a multiple of a stride at which series take their fraction of the allowed bytes, ``most``."""
    while room_of(contents, measurements // stride) > most / _OF_LIMIT and not save_every % (2 * stride):
        stride *= 2
    return stride


def _names(series: str, contents: Record) -> tuple[str, ...]:
    known = [name for name, one in rows_in(contents.groups[MEASUREMENTS]).items() if len(one.axes) > 1]
    names = tuple(name.strip() for name in series.split(","))
    for name in names:
        if name not in known:
            raise InputError(f"series {name!r} is none of this run: choose all, none, or some of {', '.join(known)}")
    return names


def with_names(contents: Record, names: tuple[str, ...] | None) -> Record:
    """Return contents with only the named series, the coordinates of rows, and the series for energies."""
    if names is None:
        return contents
    wanted, some = {*names, *_ENERGIES}, contents.copy()
    measured = some.groups[MEASUREMENTS].arrays
    for name, one in list(measured.items()):
        if has_rows(one) and len(one.axes) > 1 and name not in wanted:
            del measured[name]
    return some


def sums_group(
    reduced: Reduced, stride: int, axis: str, ladder: Array, wanted: Quantities, measure_every: int
) -> Record:
    """Return the group of the sums before the first measurement; their last axis is that of the ladder."""
    names = [term.name for term in reduced.terms]
    energies = () if reduced.energies is None else reduced.energies.terms
    chosen = zip(
        _NAMED, (range(len(names)), reduced.by_copy, reduced.followed, reduced.judged, *energies), strict=False
    )
    labels: dict[str, list[Any]] = {one: [names[k] for k in rows] for one, rows in chosen}
    series, lengths = [], dict[str, int]()
    for name, (shape, kind) in _stored(reduced).items():
        axes, words = _STORED[name]
        axes = tuple(axis if one == "*" else one for one in axes)
        lengths |= zip(axes, shape, strict=True)
        series.append(Series(name, axes, kind, words))
    labels = {one: rows for one, rows in labels.items() if one in lengths}
    labels["level"] = [2**k for k in range(lengths["level"])]
    about = {STRIDE: stride, LABELS: json.dumps(labels), "measure_every": measure_every}
    about |= {"samples": reduced.samples_in_run, **{name: int(getattr(wanted, one)) for one, name in _WANTED.items()}}
    return group_of(series, lengths, {axis: ladder}, about)


def _where(name: str) -> str:
    """Return the path of an array in a file, or its name in checkpoints."""
    return f"{REDUCED}/{name}" if name in _STORED else f"{REDUCED}_{name}"


def _stored(reduced: Reduced) -> dict[str, tuple[tuple[int, ...], type]]:
    """Return the shapes and types of the arrays in a file, by name."""
    arrays = reduced.arrays()
    return {name: arrays[name] for name in _STORED if name in arrays}


def run_sums_in(record: Record, times: tuple[int, ...], reduced: Callable[[Quantities], Reduced]) -> RunSums | None:
    """Return the sums in a record for its result; None for a search and before the first checkpoint.

    ``reduced`` returns the sums of a run from its measured quantities; ``times`` are the record's correlation times. In
    pooled runs, the sizes of arrays follow from the samples of a single run.
    """
    if REDUCED not in record.groups:
        return None
    group = record.groups[REDUCED]
    about = group.attributes
    plan = reduced(Quantities(times=times, **{one: bool(about[name]) for one, name in _WANTED.items()}))
    if json.loads(about[LABELS])["term"] != [term.name for term in plan.terms]:
        raise DamageError("its sums are of other terms than those of its run")
    arrays = {name: np.asarray(group[name]) for name in _STORED if name in group}
    plan = replace(plan, all_samples=int(about["samples"]))
    return RunSums(plan, arrays, int(about["measure_every"]), int(about[STRIDE]), own_sums_in(record))


def keeping_in(record: Record) -> Keeping | None:
    """Return the rows that the run of a record keeps; None if it was interrupted before its first checkpoint."""
    if REDUCED not in record.groups:
        return None
    group, measured = record.groups[REDUCED], record.group(MEASUREMENTS).arrays
    names = tuple(name for name, one in measured.items() if len(one.axes) > 1)
    return Keeping(int(group.attributes[STRIDE]), names)


def longer(stored: Keeping, contents: Record, measurements: int, limit: float | None, save_every: int) -> Keeping:
    """Return the rows that an extended run keeps: all, or every second, fourth, ... of those in its file."""
    if not stored.stride or limit is None:
        return stored
    if stored.stride == 1 and room_of(contents, measurements) <= limit * 1e6:
        return stored
    return stored._replace(stride=_stride(stored.stride, contents, measurements, limit * 1e6, save_every))


class MeasurementSums:
    """Adds up the measurements of a run as they are made, once its ladder is set."""

    reduction: Reduction  # the engine's adder; set when tempering calls this object

    def __init__(self, reduced: Reduced, keeping: Keeping, all_frames: bool = False, together: bool = False) -> None:
        self.reduced, self._together = reduced, together
        self._is_yielded = (lambda number: True) if all_frames else keeping.has_row

    def __call__(self, engine: Any) -> Adding:
        """Return what tempering should do with the measurements of an engine, whose ladder is set."""
        self.reduction = engine.reduction(self.reduced)
        return Adding(self.reduction, self._is_yielded, self._together)

    def record_lowest(self, best: Best) -> None:
        """Copy the lowest states that were found at measurements to ``best``."""
        lowest = self.reduction.lowest()
        best.energy[...] = lowest.energy
        for sample in lowest.changed.tolist():
            if isinstance(best.spins, States):
                best.spins.bits[sample] = packed_spins(lowest.spins(sample))
            else:
                best.spins[sample] = lowest.spins(sample)

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Return all arrays; those stored in files are named by path."""
        begun = self.reduction.measurements > 0
        arrays = self.reduction.state() if begun else empty_arrays(self.reduced)
        return {_where(name): array for name, array in arrays.items()}

    def restore(self, saved: Arrays, best: Best) -> None:
        self.reduction.restore({name: saved[_where(name)] for name in self.reduced.arrays()})
        self.reduction.restore_lowest(best.energy, best.spins)
