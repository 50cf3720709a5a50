"""Pooling: runs that differ only in seeds and disorder, as one run of all their samples.

Samples with equal couplings and fields count as one sample, and each run is an independent chain of it. In anneals,
such runs become additional replicas of the sample. Runs on a ladder are concatenated along the axis of samples, and
the array ``DISORDER`` gives the disorder sample of each entry.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spinsim.errors import InputError
from spinsim.inputs.arguments import public
from spinsim.inputs.texts import enumerated
from spinsim.model.disorder import RANDOM_KINDS
from spinsim.model.ising import Ising, of_numbers
from spinsim.record import Array, Record
from spinsim.registry import job_of
from spinsim.result import POOLED, Result, load, result_of
from spinsim.settings.config import kinds_of, sha256
from spinsim.store.contents import BEST, DISORDER, MEASUREMENTS, REDUCED, STRIDE
from spinsim.store.files import CONFIGURATIONS, PARTS
from spinsim.store.segments import LISTED

Integers = npt.NDArray[np.int64]

_SAMPLE: Final = "sample"
_STEP: Final = "step"  # the axis of rows
_REPLICAS: Final = ("replica", "population", "group")  # axes that grow where several runs have the same sample
_FAMILY: Final = "family"  # an array that holds numbers of replicas
_NOT_POOLED: Final = ("model", "start", "checkpoint", "summary", "placement", DISORDER.partition("/")[0])
"""Groups that describe a single run; a pooled run lacks them or makes its own."""
_SEARCHES: Final = ("search", "anneals")
_FREE: Final = frozenset({"temperatures", "k", "gamma", "beta", "series", "series_limit"})
"""Settings of a job that may differ: ladders are compared by their values, and series follow from the length."""
_LENGTHS: Final = ("thermalize", "sweeps")
"""Settings that may differ too if a job has both, as runs on a ladder; the sweeps of an anneal are its schedule."""
_IDENTITY: Final = ("config_sha256", "samples", "seed", "disorder_seed")
"""What identifies a run in a pool, from which the SHA-256 of the pool follows."""
_MOST_NAMED: Final = 4  # up to this number, files and seeds of a pool are named one by one
_FEW_BONDS: Final = 64  # below this number of bonds, samples of two disorder seeds may be equal by chance


@public
def pool(runs: Iterable[Result | str | os.PathLike[str]]) -> Any:
    """Pool several runs, such as the files of an array of disorder jobs, into one run of all their samples.

    Averages, errors, P(q) and figures of the result refer to all these samples together. Runs of
    one sample with several seeds are independent chains of it: each of their measurements counts once,
    and each sample counts once. Runs on a ladder may differ in ``sweeps`` and ``thermalize``. If they
    do, the result has averages but no series (``energy`` and others are of length 0).

    Args:
        runs: Results or files of one job with the same lattice or graph, ladder and settings. Seeds,
            disorder, number of samples and, of runs on a ladder, ``sweeps``, ``thermalize`` and
            ``series`` may differ.

    Returns:
        The result of the job, such as a ``TemperResult``, with the samples in the order of the runs.

    Examples:
        >>> runs = [ss.temper(ss.EdwardsAnderson(ss.square(4), seed=k), "1:2:3", sweeps=200, seed=k) for k in (1, 2)]
        >>> ss.pool(runs).model.samples
        2

    Raises:
        InputError: if no runs are given, for searches, and for runs that differ in anything else.
    """
    given = list(runs)
    results = [run if isinstance(run, Result) else load(run) for run in given]
    files = ["" if isinstance(run, Result) else os.fspath(run) for run in given]
    if not results:
        raise InputError("there are no runs to pool: give results or files")
    for other in results[1:]:
        if reason := why_apart(results[0], other):
            raise InputError(
                f"{results[0].model.name} and {other.model.name} cannot be pooled, {reason}: give runs that differ in "
                "seeds and disorder alone"
            )
    return _pooled(results, files)


def _pooled(results: Sequence[Result], files: Sequence[str]) -> Any:
    """Return the run of all samples of compatible runs; InputError if a run is given twice."""
    results, files = _longest(results, files)
    if len(results) == 1:
        return results[0]
    runs = [run for result, file in zip(results, files, strict=True) for run in _runs_in(result, file)]
    for identity, times in Counter(run["config_sha256"] for run in runs).items():
        if times > 1:
            raise InputError(f"one run of {results[0].model.name}, {identity[:8]}, is given twice: give each once")
    record, disorder = results[0].record, _disorder(results)
    model = _model_of_all([result.model for result in results])
    if len(np.unique(disorder)) == len(disorder):
        pooled = _pooled_record(results)
    elif any("replica" in array.axes for array in record.group(MEASUREMENTS).arrays.values()):
        pooled = _with_more_replicas(results, disorder)
        first = np.unique(disorder, return_index=True)[1]
        model = _model_of_all([model.of_samples(int(k), int(k) + 1) for k in first])
        model.origin = _origin(results[0].model)
    else:
        pooled = _pooled_record(results)
        words = "disorder sample of each sample of each run"
        pooled.put(DISORDER, Array(disorder, (_SAMPLE,), words))
    whole = Record(lambda: _attributes(results, runs, model, pooled), groups=pooled.groups)
    return result_of(results[0].job, whole, model)


def _longest(results: Sequence[Result], files: Sequence[str]) -> tuple[list[Any], list[str]]:
    """Keep each sample of a run, some of whose samples went on alone, from its longest run only."""
    if all(one.model.numbers is None for one in results):
        return list(results), list(files)
    longest: dict[Any, tuple[int, int]] = {}  # sweeps and number of the run, by its origin and the sample
    keys = []
    for run, result in enumerate(results):
        model, settings = result.model, result.config[result.job]
        origin = (model.whole or model).content_sha256(), result.config["run"]["seed"], settings["thermalize"]
        numbers = range(model.samples) if model.numbers is None else model.numbers.tolist()
        keys.append([(origin, number) for number in numbers])
        for key in keys[run] if POOLED not in result.attributes else ():
            longest[key] = max(longest.get(key, (0, 0)), (settings["sweeps"], run))
    kept, names = list[Any](), list[str]()
    for run, own in enumerate(keys):
        if len(chosen := np.array([k for k, key in enumerate(own) if longest.get(key, (0, run))[1] == run], np.int64)):
            kept.append(_of_numbers(results[run], chosen))
            names.append(files[run])
    return kept, names


def _of_numbers(result: Result, numbers: Integers) -> Any:
    if len(numbers) == result.model.samples:
        return result
    return result_of(result.job, with_numbers(result.record, numbers), of_numbers(result.model, numbers))


def with_numbers(record: Record, numbers: Integers) -> Record:
    """Return a record with some of the samples in all its measurements; its model and checkpoint stay as they are."""
    own = record.copy()
    for path, axis in axes_of_samples(record).items():
        group, _, name = path.rpartition("/")
        array = record.group(group).arrays[name]
        if name == _SAMPLE:  # the numbers along the axis
            own.put(path, array._replace(values=np.arange(len(numbers))))
        elif array.values.shape[axis] > 1:  # initial configurations may be the same for all samples
            own.put(path, array._replace(values=np.asarray(array.values).take(numbers, axis)))
    for one in own.groups.values():
        one.attributes.pop(LISTED, None)  # segments of the other file
    return own


def axes_of_samples(record: Record) -> dict[str, int]:
    """Axis of the samples in each array of a record, by path, without its model and checkpoint."""
    paths = (
        (path, array.axes) for path, array in record.paths() if path.partition("/")[0] not in ("model", "checkpoint")
    )
    return {path: axes.index(_SAMPLE) for path, axes in paths if _SAMPLE in axes}


def _runs_in(result: Result, file: str = "") -> list[dict[str, Any]]:
    """Identity, number of samples, seeds, lengths and file of each run in a result; one entry if it is not pooled."""
    attributes, config = result.attributes, result.config
    if POOLED in attributes:
        return list(json.loads(attributes[POOLED]))
    seeds = {"seed": config["run"].get("seed"), "disorder_seed": config["model"].get("disorder_seed")}
    identity = {"config_sha256": attributes["config_sha256"], "samples": result.model.samples, **seeds}
    lengths = {name: config[result.job][name] for name in _lengths(config[result.job])}
    return [identity | lengths | ({"file": file} if file else {})]


def _lengths(settings: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the settings of a job that are lengths of its runs, in which the runs of a pool may differ."""
    return _LENGTHS if settings.keys() >= set(_LENGTHS) else ()


class Pool(NamedTuple):
    """The runs of a pool in words, for its description."""

    runs: int
    files: str  # their names, as far as they are known
    seeds: tuple[str | None, str | None]  # of the dynamics and of the disorder; None if there are none
    sweeps: str  # of a run on a ladder; empty for other jobs
    difference: str  # a sentence on lengths that differ, empty where none does


def pool_of(result: Result) -> Pool | None:
    """Describe the runs of a pooled result; None for a single run."""
    if POOLED not in result.attributes:
        return None
    runs = _runs_in(result)
    values = {
        name: [run[name] for run in runs if run.get(name) is not None] for name in (*_IDENTITY, *_LENGTHS, "file")
    }
    apart = [f"{name} ({_in_words(values[name])})" for name in _LENGTHS if len(set(values[name])) > 1]
    allowed = "which is allowed: each sample counts once, however long its runs are."
    difference = f"The pooled runs differ in {' and '.join(apart)}, {allowed}" if apart else ""
    files = list(dict.fromkeys(values["file"]))
    named = "" if not files else enumerated(files, "and") if len(files) <= _MOST_NAMED else f"{files[0]} to {files[-1]}"
    of_disorder = values["disorder_seed"] if _is_random(result) else []
    seeds = _in_words(values["seed"]) or None, _in_words(of_disorder) or None
    return Pool(len(runs), named, seeds, _in_words(values["sweeps"]), difference)


def _in_words(numbers: Iterable[int]) -> str:
    """Return different numbers in words, from the smallest: all of them if they are few, else both ends."""
    each = sorted(set(numbers))
    few = len(each) <= _MOST_NAMED
    return enumerated(each, "and") if few and each else f"{each[0]} to {each[-1]}" if each else ""


def _disorder(results: Sequence[Result]) -> Integers:
    """Number of the disorder sample of each sample of each run; within one run all numbers differ."""
    numbers: dict[Any, int] = {}
    found = []
    for result in results:
        model, seeds = result.model, [run["disorder_seed"] for run in _runs_in(result) for _ in range(run["samples"])]
        by_chance = model.bonds < _FEW_BONDS and _is_random(result)
        own, met = result.record.get(DISORDER), Counter[Any]()
        own = np.arange(model.samples) if own is None else np.asarray(own)
        of_own: dict[int, int] = {}
        for sample, number in enumerate(own.tolist()):
            if number not in of_own:
                key = _digest(model, sample), seeds[sample % len(seeds)] if by_chance else None
                met[key] += 1
                of_own[number] = numbers.setdefault((key, met[key]), len(numbers))
            found.append(of_own[number])
    return np.array(found)


def _digest(model: Ising, sample: int) -> bytes:
    """Digest of the couplings and fields of one sample."""
    digest = hashlib.sha256()
    for rows in (model.couplings, model.fields):
        row = np.asarray(rows[sample if len(rows) > 1 else 0])
        is_uniform = not any(row.strides) or (row == row[:1]).all()
        digest.update((row[:1] if is_uniform else row).astype(np.float64).tobytes())
    return digest.digest()


def _is_random(result: Result) -> bool:
    made = result.config["model"]
    return made.get("couplings") in RANDOM_KINDS or bool(made.get("dilution") or made.get("random_field"))


def groups_of(results: Sequence[Result]) -> list[list[int]]:
    """Numbers of the runs that can be pooled with each other, in groups ordered by their first runs."""
    groups: list[list[int]] = []
    for number, result in enumerate(results):
        for group in groups:
            if not why_apart(results[group[0]], result):
                group.append(number)
                break
        else:
            groups.append([number])
    return groups


def why_apart(a: Result, b: Result) -> str:
    """Reason why two runs cannot be pooled, in words that follow a comma; empty if they can."""
    if a.job != b.job:
        return f"as one is {job_of(a.job).a_run} and the other {job_of(b.job).a_run}"
    if any(name in result.record.groups for name in _SEARCHES for result in (a, b)):
        return "as searches end when they are done"
    if not _of_one_graph(a.model, b.model):
        return "as their lattices or graphs differ"
    if "histogram" in a.record.groups:
        return "as each has weights of its own"
    settings, others = (_compared(result) for result in (a, b))
    for name in {**settings, **others}:
        if settings.get(name) != others.get(name):
            return f"as {name} is {settings.get(name)} and {others.get(name)}"
    own, forms = _forms(a.record), _forms(b.record)
    for path in {**own, **forms}:
        if path not in own or path not in forms:
            return f"as only one of them has {path}"
        if own[path].shape != forms[path].shape:
            return f"as {path} has the shapes {own[path].shape} and {forms[path].shape}"
        if own[path].ndim == 1 and not np.array_equal(own[path], forms[path], equal_nan=own[path].dtype.kind == "f"):
            return f"as their values of {path} differ"
    return ""


def _of_one_graph(a: Ising, b: Ising) -> bool:
    if a.sites != b.sites or a.lattice != b.lattice or a.graph.slices != b.graph.slices:
        return False
    return a.lattice is not None or np.array_equal(a.graph.edges, b.graph.edges)


def _compared(result: Result) -> dict[str, Any]:
    """Settings that must be equal in all runs of a pool."""
    config = result.config
    kind = kinds_of(job_of(result.job).config)[result.job]
    own = kind.identity(config[result.job])
    free = {*_FREE, *_lengths(config[result.job])}
    model = {name: value for name, value in config["model"].items() if name in _OF_MODEL}
    return {name: value for name, value in own.items() if name not in free} | model


_OF_MODEL: Final = frozenset(
    {"couplings", "bond_fraction", "field", "dilution", "random_field", "couplings_along", "along", "boundary",
     "antiperiodic", "perturbation"}
)  # fmt: skip


def _forms(record: Record) -> dict[str, npt.NDArray[Any]]:
    """Arrays that must agree between pooled runs; an array with several axes is represented by its shape only.

    The axis of samples is left out.
    """
    forms: dict[str, npt.NDArray[Any]] = {}
    for path, array in record.paths():
        group = path.partition("/")[0]
        if group in _NOT_POOLED or path.endswith(f"/{_SAMPLE}") or group == CONFIGURATIONS:
            continue
        if REDUCED in record.groups and _STEP in array.axes and path.rpartition("/")[2] in (_STEP, "sweep"):
            continue  # lengths may differ, as statistics follow from sums
        free = {_SAMPLE, _STEP} if REDUCED in record.groups else {_SAMPLE}
        shape = tuple(n for axis, n in zip(array.axes, array.values.shape, strict=True) if axis not in free)
        is_plain = _SAMPLE not in array.axes and len(array.axes) == 1
        forms[path] = np.asarray(array.values) if is_plain else np.broadcast_to(np.zeros(()), shape)
    return forms


def _pooled_record(results: Sequence[Result]) -> Record:
    """Concatenate the samples of all runs; rows are dropped if they were not measured at the same sweeps."""
    records = [result.record for result in results]
    names = [name for name in records[0].groups if name not in _NOT_POOLED and all(name in r.groups for r in records)]
    sweeps, *others = (_sweeps(record) for record in records)
    has_rows = all(sweeps == other for other in others)
    if CONFIGURATIONS in names and not (has_rows and _are_alike([r.groups[CONFIGURATIONS] for r in records])):
        names.remove(CONFIGURATIONS)
    samples = sum(result.model.samples for result in results)
    groups = {name: _pooled_group([r.groups[name] for r in records], samples, has_rows) for name in names}
    if not has_rows:
        groups[REDUCED].attributes[STRIDE] = 0
    return Record({}, {}, groups)


def _sweeps(record: Record) -> tuple[list[int], int | None]:
    """Sweeps done before each row, and the number of measurements for each row."""
    sweeps = record.get(f"{MEASUREMENTS}/sweep")
    return [] if sweeps is None else np.asarray(sweeps).tolist(), record.group(REDUCED).attributes.get(STRIDE)


def _are_alike(groups: Sequence[Record]) -> bool:
    """True if groups of configurations have equal shapes, except for the number of samples."""

    def shapes(group: Record) -> dict[str, tuple[int, ...]]:
        return {
            name: tuple(n for axis, n in zip(array.axes, array.values.shape, strict=True) if axis != _SAMPLE)
            for name, array in group.arrays.items()
            if name != _SAMPLE
        }

    return all(shapes(group) == shapes(groups[0]) for group in groups[1:])


def _pooled_group(groups: Sequence[Record], samples: int, has_rows: bool) -> Record:
    arrays: dict[str, Array] = {}
    for name, array in groups[0].arrays.items():
        parts = [np.asarray(group.arrays[name].values) for group in groups if name in group.arrays]
        if len(parts) < len(groups):
            continue  # rows that some runs do not keep
        if not has_rows and _STEP in array.axes:
            parts = [part[(slice(None),) * array.axes.index(_STEP) + (slice(0),)] for part in parts]
        if array.axes == (_SAMPLE,) and name == _SAMPLE:
            arrays[name] = array._replace(values=np.arange(samples))
        elif _SAMPLE in array.axes:
            arrays[name] = array._replace(values=np.concatenate(parts, axis=array.axes.index(_SAMPLE)))
        else:
            arrays[name] = array._replace(values=parts[0])
    attributes = {name: value for name, value in groups[0].attributes.items() if name != LISTED}
    names = [name for name in groups[0].groups if all(name in group.groups for group in groups)]
    below = {name: _pooled_group([group.groups[name] for group in groups], samples, has_rows) for name in names}
    return Record(attributes, arrays, below)


def _with_more_replicas(results: Sequence[Result], disorder: Integers) -> Record:
    """Return the record of pooled anneals, in which several runs of one sample become more replicas of it.

    Raises:
        InputError: if samples have different numbers of runs.
    """
    pooled, numbers = _pooled_record(results), np.unique(disorder)
    rows = [np.flatnonzero(disorder == number) for number in numbers]
    if len(set(map(len, rows))) > 1:
        raise InputError(
            f"samples of {results[0].model.name} were annealed in {min(map(len, rows))} to {max(map(len, rows))} runs, "
            "so that they would have different numbers of replicas: give equally many runs of each"
        )
    order, runs = np.concatenate(rows), len(rows[0])
    best = pooled.groups[BEST].arrays if BEST in pooled.groups else {}
    lowest = order.reshape(-1, runs)
    if best:
        energy = np.asarray(best["energy"].values).min(axis=1)[lowest]
        lowest = np.take_along_axis(lowest, energy.argmin(axis=1)[:, None], axis=1)[:, 0]
    for path, array in list(pooled.paths()):
        values, axes, name = np.asarray(array.values), array.axes, path.rpartition("/")[2]
        if axes == (name,) and name in (_SAMPLE, *_REPLICAS):  # the numbers of samples or replicas
            values = np.arange(len(numbers) if name == _SAMPLE else runs * len(values))
        elif _SAMPLE in axes:
            at = axes.index(_SAMPLE)
            if axes[at + 1 : at + 2] in [(axis,) for axis in _REPLICAS]:
                values = _side_by_side(np.take(values, order, axis=at), at, runs, name == _FAMILY)
            else:
                values = np.take(values, lowest, axis=at)
        else:
            continue
        pooled.put(path, array._replace(values=values))
    return pooled


def _side_by_side(values: npt.NDArray[Any], at: int, runs: int, are_families: bool) -> npt.NDArray[Any]:
    """Put the replicas of each ``runs`` samples along axis ``at`` in one row; family numbers of runs stay distinct."""
    before, (samples, replicas), after = values.shape[:at], values.shape[at : at + 2], values.shape[at + 2 :]
    each = values.reshape(*before, samples // runs, runs, replicas, *after)
    if are_families:
        each = each + (replicas * np.arange(runs, dtype=values.dtype))[:, None]
    return each.reshape(*before, samples // runs, runs * replicas, *after)


def _attributes(
    results: Sequence[Result], runs: Sequence[dict[str, Any]], model: Ising, pooled: Record
) -> dict[str, Any]:
    """Root attributes of the first run, with the seeds and dates of all; such a run cannot be continued."""
    attributes: dict[str, Any] = dict(results[0].record.attributes)
    for name in (PARTS, "command", "history"):  # of the first run alone
        attributes.pop(name, None)
    for name, end in (("created", min), ("finished", max)):
        if dates := [result.attributes[name] for result in results if name in result.attributes]:
            attributes[name] = end(dates)
    config = results[0].config
    config["model"] |= {"samples": model.samples, "disorder_seed": None}
    config["run"] |= {"seed": None}
    energy = pooled.group(MEASUREMENTS).arrays.get("energy")
    if energy is not None and "replica" in energy.axes:
        config["run"] |= {"replicas": energy.values.shape[energy.axes.index("replica")]}
    identities = [{name: run[name] for name in _IDENTITY} for run in runs]
    digests = {"config_sha256": sha256(json.dumps(identities)), "model_sha256": model.content_sha256()}
    attributes |= digests | {"config": json.dumps(config), POOLED: json.dumps(runs)}
    if not all(result.finished for result in results):
        attributes.pop("finished", None)
    return attributes


def _model_of_all(models: Sequence[Ising]) -> Ising:
    """Return a model with all samples of several models of one graph."""
    first = models[0]

    def rows(name: str) -> npt.NDArray[Any]:
        each = [np.broadcast_to(getattr(one, name), (one.samples, getattr(one, name).shape[1])) for one in models]
        if all(not any(part.strides) and part.flat[:1] == each[0].flat[:1] for part in each if part.size):
            return np.broadcast_to(each[0].flat[:1], (sum(map(len, each)), each[0].shape[1]))
        return np.concatenate(each)

    others = {name: getattr(first, name) for name in ("offset", "maxcut_weight", "terms", "labels", "vartype")}
    fields = rows("fields")
    model = Ising(first.graph, rows("couplings"), fields if np.any(fields) else 0.0, name=first.name, **others)
    model.origin = _origin(first)
    return model


def _origin(model: Ising) -> dict[str, Any]:
    """Settings of a model that all runs of a pool share."""
    return {name: value for name, value in model.origin.items() if name in _OF_MODEL}


def gathered(files: Sequence[Path], results: Sequence[Result]) -> list[tuple[list[Path], Any]]:
    """Pool the runs of files where possible; return the files of each group with their run."""
    names = [str(file) for file in files]
    return [
        ([files[k] for k in group], _pooled([results[k] for k in group], [names[k] for k in group]))
        for group in groups_of(results)
    ]


def merge(files: Sequence[Path], out: Path, overwrite: bool = False) -> Result:
    """Write the pooled run of several files into one file, and return it.

    Raises:
        InputError: as ``pool``, for a single file, and if the new file exists.
    """
    if len(files) < 2:
        raise InputError(f"{files[0]} alone is one run already: give two files or more")
    result: Result = pool(files)
    result.save(out, overwrite)
    return result
