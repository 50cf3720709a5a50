"""The data of a run so far, in memory, in the form of the record for its file or its result."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from spinsim.machine.memory import require
from spinsim.record import Array, Record
from spinsim.run import identity
from spinsim.store import files
from spinsim.store.contents import BEST, Arrays, every_of, has_rows, is_to_come, room_of_group, rows_in
from spinsim.store.models import record_of_model
from spinsim.store.sealed import SCHEMA
from spinsim.store.segments import LISTED, Segment, Stored, listed

if TYPE_CHECKING:
    from spinsim.run.plan import Plan

CHECKPOINT: Final = "checkpoint"  # group of the state from which a run continues
CONVENTIONS: Final = {
    "schema": SCHEMA,
    "hamiltonian": "H = - sum over bonds J s_i s_j - sum over sites h s_i, s = +1 or -1, each bond once",
    "units": "k_B = 1; energies (totals), fields and temperatures are in the unit in which the couplings are given",
    "site_order": "i = x + Lx * (y + Ly * z)",
    "bond_order": "bond d * i + a goes from site i along axis a; open boundaries leave bonds out",
    "maxcut": "J = -w; cut = (sum of weights - energy) / 2",
    "binder_cumulant": "U = 1 - <m^4> / (3 <m^2>^2), and likewise for the overlap q",
    "quantum": "couplings and fields are whole multiples of the attribute quantum of /model, so that local fields are "
    "exact sums; rounded says whether values as given were changed for that, rounding_error by how much at most",
    "correlation_length": "xi = sqrt(<m^2> / <|m(k)|^2> - 1) / (2 sin(k / 2)), k = 2 pi / L along the longest axes",
}
SEGMENTED: Final = 2**26  # bytes of a group's rows above which its file stores them in segments
_PENDING: Final = 2**28  # bytes of rows that wait for their segment
_OF_ATTRIBUTE: Final = 2**13  # bytes of an array of the state below which it is stored as an attribute, which is faster
_STATE: Final = "state to go on from, for spinsim itself"
ELSEWHERE: Final = "elsewhere"
"""Attribute with the paths of arrays of the state that are stored elsewhere in the record, to avoid a second copy."""


class TimedError(Exception):
    """Raised at the end of a run that is only timed and keeps nothing."""


class Recording:
    """Rows and sums of a run under way; ``save`` writes them into its file, if it has one.

    ``contents`` is the record of the run without its rows. Rows of large groups go into segments of the file.
    ``in_words`` is a word for rows in messages, and advice for having fewer. ``keeps_rows`` is False if a run is only
    timed.
    """

    def __init__(
        self,
        plan: Plan[Any],
        contents: Record,
        rows: int,
        about: Mapping[str, str],
        in_words: tuple[str, str] = ("rows", "give fewer"),
        keeps_rows: bool = True,
    ) -> None:
        self._plan, self._contents, self._planned, self._rows = plan, contents, rows, 0
        self._about, self._in_words, self._keeps_rows = {"created": files.stamp(), **about}, in_words, keeps_rows
        self._sums: dict[str, npt.NDArray[Any]] = {}  # by path
        self.file: files.RunFile | None = None
        self._growing = {name: group for name, group in contents.groups.items() if rows_in(group)}
        self._every = {name: every_of(group) for name, group in self._growing.items()}
        self._segmented: dict[str, _Pending] = {}
        self._kept: dict[str, dict[str, npt.NDArray[Any]]] = {}
        self._is_in_file = False
        self._attributes: dict[str, str] | None = None  # of the file in which the run continues

    @contextlib.contextmanager
    def in_file(self, stored: Record | None, thin: int = 1, in_segments: bool = True) -> Iterator[None]:
        """Record into the file of the plan: a new file if ``stored`` is None, otherwise its rows are taken over.

        For an extended run, one of ``thin`` rows is kept. ``in_segments`` is False if rows may be rewritten.
        """
        self._is_in_file = True
        for name, group in self._growing.items():
            if in_segments and room_of_group(group, self._planned) > SEGMENTED:
                self._segmented[name] = _Pending(name, group)
        self._make_room()
        if stored is None:
            context: Any = files.begin(self._plan.path, self.record())
        else:
            del self._about["created"]  # the file has its own
            context = identity.open_own(self._plan)
        with context as file:
            self.file = file
            if stored is not None:
                self._take_over(file.record, thin)
            yield

    def _make_room(self) -> None:
        planned = self._planned * self._keeps_rows
        whole = {name: group for name, group in self._growing.items() if name not in self._segmented}
        needed = 2 * sum(room_of_group(group, planned) for group in whole.values())
        require(needed, f"a record of {planned} {self._in_words[0]}", self._in_words[1])
        for name, group in whole.items():
            rows, arrays = planned // every_of(group), rows_in(group)
            self._kept[name] = {key: np.empty((rows, *a.values.shape[1:]), a.values.dtype) for key, a in arrays.items()}

    @property
    def rows(self) -> int:
        """Number of rows so far."""
        return self._rows

    def column(self, path: str) -> npt.NDArray[Any]:
        """All rows of the array at a path, including rows still to come."""
        group, _, name = path.rpartition("/")
        return self._kept[group][name]

    def write(self, row: Mapping[str, Any]) -> None:
        """Add row number ``row["step"]``, a value by name for each array with this row."""
        if not self._kept and not self._segmented:
            self._make_room()
        if not self._keeps_rows:
            return
        self._rows = max(self._rows, row["step"] + 1)
        for name, every in self._every.items():
            number, skipped = divmod(row["step"] + 1, every)
            if skipped:
                continue
            if name in self._segmented:
                pending = self._segmented[name]
                pending.append(row)
                if pending.nbytes > _PENDING:
                    self._flush(pending)
                continue
            for key, values in self._kept[name].items():
                values[number - 1] = row[key]

    def write_rows(self, first: int, series: Mapping[str, npt.NDArray[Any]]) -> None:
        """Add consecutive rows from number ``first`` on; arrays by name, (rows, ...)."""
        number = len(next(iter(series.values())))
        if self._segmented or any(every > 1 for every in self._every.values()):
            for k in range(number):
                self.write({"step": first + k, **{name: values[k] for name, values in series.items()}})
            return
        if not self._kept:
            self._make_room()
        if self._keeps_rows:
            self._rows = max(self._rows, first + number)
            for group in self._kept.values():
                for name, values in group.items():
                    values[first : first + number] = series[name]

    def save(self, state: Arrays, wait: bool = True) -> None:
        """Write all data so far into the file, with the state from which the run can continue."""
        if self.file is not None:
            self._take(state)
            for pending in self._segmented.values():
                self._flush(pending)
            self.file.write(self.record(state), wait)

    def _take(self, arrays: Arrays) -> None:
        """Add the arrays that are named by a path; they may not change later."""
        self._sums.update({path: array for path, array in arrays.items() if "/" in path})

    def end(self, arrays: Arrays, state: Arrays | None = None, is_finished: bool = True) -> Record:
        """Return the final record of the run, also written to its file; with ``state`` the run may be extended."""
        if not self._keeps_rows:
            raise TimedError
        self._take(arrays)
        if is_finished:
            self._about["finished"] = files.stamp()
        if self.file is None:
            return self.record(None)
        for pending in self._segmented.values():
            self._flush(pending)
        self.file.write(self.record(state), is_last=True)
        return files.read(self._plan.path) if self._segmented else self.file.record

    def _flush(self, pending: _Pending) -> None:
        if pending.waiting and self.file is not None:
            pending.segments.append(self.file.add_segment(pending.group, pending.taken(), pending.number))
            pending.number += 1

    def record(self, state: Arrays | None = None) -> Record:
        """Return all data so far as a record; of a run in a file, also its model and the state to continue from."""
        if not self._kept and not self._segmented:
            self._make_room()
        record = Record(self._root() if self._is_in_file else self._root)  # a file is written while these may change
        if self._is_in_file:
            record.groups["model"] = record_of_model(self._plan.model)
        for name, group in self._contents.groups.items():
            known = {key for key, one in group.arrays.items() if not is_to_come(one) and one.axes != (key,)}
            known |= {key for key in group.arrays if f"{name}/{key}" in self._sums}
            if known or (name == BEST and self._is_in_file):
                record.groups[name] = self._group(name, group)  # left out: sums of a run that has not begun
        if state is not None and self.file is not None:
            record.groups[CHECKPOINT] = checkpoint_group(state, record)
        return record

    def _root(self) -> dict[str, str]:
        own = self._plan.attributes if self._attributes is None else self._attributes
        return CONVENTIONS | own | self._about

    def _origin(self) -> dict[str, Any]:
        return {name: value for name, value in self._root().items() if name != "finished"}

    def _group(self, name: str, group: Record) -> Record:
        """Return a group with all data so far; the first group also has the run's attributes, for separate use."""
        attributes, segmented, arrays = group.attributes, self._segmented.get(name), dict[str, Array]()
        rows = self._rows // every_of(group)
        if segmented is not None:
            attributes, rows = attributes | {LISTED: json.dumps(segmented.segments)}, segmented.rows
        for key, array in group.arrays.items():
            values = self._sums.get(f"{name}/{key}", array.values)
            if has_rows(array) and segmented is not None:
                place = str(self._plan.path.absolute()), f"/{name}/{key}"
                shape = rows, *array.values.shape[1:]
                values = Stored(*place, shape, array.values.dtype, segmented.segments, is_virtual=True)
            elif has_rows(array):
                values = self._kept[name][key][:rows]
            elif values.dtype != array.values.dtype:
                values = values.astype(array.values.dtype)
            arrays[key] = array._replace(values=values)
        is_first = name == next(iter(self._growing), "")
        return Record((lambda: self._origin() | attributes) if is_first else attributes, arrays)

    def _take_over(self, stored: Record, thin: int) -> None:
        """Continue from the rows of a file; for an extended run, one of ``thin`` rows is kept."""
        named = () if self._plan.extends is None else ("config", "config_sha256", "history")
        attributes = files.text_attributes(stored) | {name: self._plan.attributes[name] for name in named}
        self._attributes = {name: value for name, value in attributes.items() if name != "finished"}
        self._about = {}
        for name, coming in self._growing.items():
            group, every = stored.group(name), every_of(coming)
            skipped = thin if every == 1 else 1
            there = {key: group.arrays[key].values for key in rows_in(coming)}
            rows = len(next(iter(there.values()))) // skipped
            self._rows = max(self._rows, rows * every)
            pending = self._segmented.get(name)
            if pending is not None and LISTED in group.attributes:
                pending.take_over(listed(group.attributes[LISTED]), keeps_rows=skipped == 1)
                if skipped == 1:
                    continue
            taken = {key: np.asarray(values[:])[skipped - 1 :: skipped][:rows] for key, values in there.items()}
            if thin > 1 and "measurement" in taken:  # saved configurations get the new numbers of their rows
                taken["measurement"] = (taken["measurement"] + 1) // thin - 1
            if pending is not None:
                for row in range(rows):
                    pending.append({key: values[row] for key, values in taken.items()})
            else:
                for key, values in taken.items():
                    self._kept[name][key][:rows] = values
        self._sums = {path: stored[path] for path, one in self._contents.paths() if is_to_come(one) and path in stored}

    def checkpoint(self) -> dict[str, npt.NDArray[Any]] | None:
        """Return the state from which the run of the file continues; None before the first checkpoint."""
        return None if self.file is None else checkpoint_of(self.file.record)


def _is_same(array: npt.NDArray[Any], other: Any) -> bool:
    is_array = isinstance(other, np.ndarray) and other.dtype == array.dtype
    return other is array or (is_array and np.array_equal(array, other))


def checkpoint_group(state: Arrays, record: Record) -> Record:
    """Return the group of a state, without arrays that are stored elsewhere in the record."""
    elsewhere = [name for name, array in state.items() if _is_same(array, record.get(name))]
    own = {name.replace("/", "."): np.asarray(array) for name, array in state.items() if name not in elsewhere}
    few = {name: array for name, array in own.items() if array.nbytes < _OF_ATTRIBUTE}
    arrays = {name: _named(array) for name, array in own.items() if name not in few}
    return Record({"long_name": _STATE, ELSEWHERE: " ".join(elsewhere), **few}, arrays)


def checkpoint_of(record: Record) -> dict[str, npt.NDArray[Any]] | None:
    """Return the state in a record, including arrays that are stored elsewhere in it; None without a checkpoint."""
    if CHECKPOINT not in record.groups:
        return None
    group = record.groups[CHECKPOINT]
    few = {name: value for name, value in group.attributes.items() if name not in ("long_name", ELSEWHERE)}
    own = few | {name: array.values for name, array in group.arrays.items()}
    saved = {name.replace(".", "/"): np.array(value) for name, value in own.items()}
    return saved | {path: np.array(record[path]) for path in str(group.attributes[ELSEWHERE]).split()}


class _Pending:
    """Rows of a group that wait for their segment."""

    def __init__(self, name: str, group: Record) -> None:
        self.group, self.waiting, self.nbytes = name, list[dict[str, Any]](), 0
        self._types = {key: one.values.dtype for key, one in rows_in(group).items()}
        self.segments: list[Segment] = []
        self.number = 0  # of the next segment

    @property
    def rows(self) -> int:
        return sum(one.rows for one in self.segments)

    def take_over(self, segments: list[Segment], keeps_rows: bool) -> None:
        """Continue after the segments of a file, which are not rewritten."""
        self.segments = segments if keeps_rows else []
        self.number = 1 + max((one.number for one in segments), default=-1)

    def append(self, row: Mapping[str, Any]) -> None:
        own: dict[str, npt.NDArray[Any]] = {name: np.array(row[name], kind) for name, kind in self._types.items()}
        self.waiting.append(own)
        self.nbytes += sum(value.nbytes for value in own.values())

    def taken(self) -> dict[str, npt.NDArray[Any]]:
        """Return the waiting rows, which must be written now, and forget them."""
        rows, self.waiting, self.nbytes = self.waiting, [], 0
        return {name: np.stack([row[name] for row in rows]) for name in self._types}


def _named(values: Any) -> Array:
    """Return an array of a checkpoint with axes named by their lengths, because netCDF requires names."""
    values = np.asarray(values)
    axes = []
    for axis, length in enumerate(values.shape):
        again = values.shape[:axis].count(length)
        axes.append(f"length_{length}" + (f"_{again + 1}" if again else ""))
    return Array(values, tuple(axes), "")
