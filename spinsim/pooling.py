"""Runs that differ in seeds and disorder alone, as one run: its samples are those of all of them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from spinsim.errors import InputError
from spinsim.inputs.arguments import public
from spinsim.model.ising import Ising
from spinsim.record import Array, Record
from spinsim.registry import job_of
from spinsim.result import POOLED, Result, load, result_of
from spinsim.settings.config import kinds_of, sha256
from spinsim.store.files import PARTS
from spinsim.store.segments import LISTED

_SAMPLE: Final = "sample"
_NOT_POOLED: Final = ("model", "start", "checkpoint", "summary", "placement")
"""Groups of a single run, of which a pooled one has others or none."""
_SEARCHES: Final = ("search", "anneals")
_FREE: Final = frozenset({"sweeps", "thermalize", "temperatures", "k", "gamma", "beta", "series", "series_limit"})
"""Settings of a job that may differ: ladders are compared by their values, and lengths by what was measured."""


@public
def pool(runs: Iterable[Result | str | os.PathLike[str]]) -> Any:
    """One run of all samples of several runs, such as the files of an array of disorder jobs.

    Averages, errors, P(q) and figures of the result are those of one run of all these samples.

    Args:
        runs: Results or files of one job that differ in seeds and disorder alone: the same lattice or
            graph, ladder and settings.

    Returns:
        The result of the job, such as a ``TemperResult``, with the samples in the order of the runs.

    Examples:
        >>> runs = [ss.temper(ss.EdwardsAnderson(ss.square(4), seed=k), "1:2:3", sweeps=200, seed=k) for k in (1, 2)]
        >>> ss.pool(runs).model.samples
        2

    Raises:
        InputError: for no runs, searches, and runs that are not of one kind.
    """
    results = [run if isinstance(run, Result) else load(run) for run in runs]
    if not results:
        raise InputError("there are no runs to pool: give results or files")
    for other in results[1:]:
        if reason := why_apart(results[0], other):
            raise InputError(
                f"{results[0].model.name} and {other.model.name} cannot be pooled, {reason}: give runs that differ in "
                "seeds and disorder alone"
            )
    return _pooled(results)


def _pooled(results: Sequence[Result]) -> Any:
    """The run of all samples of runs that are of one kind; InputError where one is given twice."""
    if len(results) == 1:
        return results[0]
    seen: set[str] = set()
    for result in results:
        identity = result.attributes["config_sha256"]
        if identity in seen:
            raise InputError(f"one run of {result.model.name}, {identity[:8]}, is given twice: give each once")
        seen.add(identity)
    model = _model_of_all([result.model for result in results])
    return result_of(results[0].job, _pooled_record(results, model), model)


def groups_of(results: Sequence[Result]) -> list[list[int]]:
    """Numbers of the runs that can be pooled with each other, group by group, in the order of their first ones."""
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
    """Why two runs are not of one kind, in words that follow a comma; empty where they are."""
    if a.job != b.job:
        return f"as one is {job_of(a.job).a_run} and the other {job_of(b.job).a_run}"
    if any(name in result.record.groups for name in _SEARCHES for result in (a, b)):
        return "as searches end when they are done"
    if not _of_one_graph(a.model, b.model):
        return "as their lattices or graphs differ"
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
    """Settings of a run that all runs of a pool share."""
    config = result.config
    kind = kinds_of(job_of(result.job).config)[result.job]
    own = kind.identity(config[result.job])
    model = {name: value for name, value in config["model"].items() if name in _OF_MODEL}
    return {name: value for name, value in own.items() if name not in _FREE} | model


_OF_MODEL: Final = frozenset(
    {"couplings", "bond_fraction", "field", "dilution", "random_field", "couplings_along", "along", "boundary"}
)


def _forms(record: Record) -> dict[str, npt.NDArray[Any]]:
    """Arrays that runs of a pool have alike, but for the number of samples; of those along samples the first one."""
    forms: dict[str, npt.NDArray[Any]] = {}
    for path, array in record.paths():
        group = path.partition("/")[0]
        if group in _NOT_POOLED or path.endswith(f"/{_SAMPLE}") or group == "configurations":
            continue
        along = array.axes.index(_SAMPLE) if _SAMPLE in array.axes else None
        shape = tuple(n for k, n in enumerate(array.values.shape) if k != along)
        is_plain = along is None and len(array.axes) == 1
        forms[path] = np.asarray(array.values) if is_plain else np.broadcast_to(np.zeros(()), shape)
    return forms


def _pooled_record(results: Sequence[Result], model: Ising) -> Record:
    first = results[0].record
    groups = {
        name: _pooled_group([result.record.groups[name] for result in results], model.samples)
        for name in first.groups
        if name not in _NOT_POOLED
    }
    return Record(lambda: _attributes(results, model), {}, groups)


def _pooled_group(groups: Sequence[Record], samples: int) -> Record:
    arrays: dict[str, Array] = {}
    for name, array in groups[0].arrays.items():
        if array.axes == (_SAMPLE,) and name == _SAMPLE:
            arrays[name] = array._replace(values=np.arange(samples))
        elif _SAMPLE in array.axes:
            parts = [np.asarray(group.arrays[name].values) for group in groups]
            arrays[name] = array._replace(values=np.concatenate(parts, axis=array.axes.index(_SAMPLE)))
        else:
            arrays[name] = array
    attributes = {name: value for name, value in groups[0].attributes.items() if name != LISTED}
    below = {name: _pooled_group([group.groups[name] for group in groups], samples) for name in groups[0].groups}
    return Record(attributes, arrays, below)


def _attributes(results: Sequence[Result], model: Ising) -> dict[str, Any]:
    """Root attributes of the first run, with the seeds of all; nobody can go on with such a run."""
    attributes: dict[str, Any] = dict(results[0].record.attributes)
    attributes.pop(PARTS, None)
    config, each = results[0].config, []
    for result in results:
        own = result.config
        seeds = {"seed": own["run"].get("seed"), "disorder_seed": own["model"].get("disorder_seed")}
        each.append({"config_sha256": result.attributes["config_sha256"], "samples": result.model.samples, **seeds})
    config["model"] |= {"samples": model.samples, "disorder_seed": None}
    config["run"] |= {"seed": None}
    digests = {"config_sha256": sha256(json.dumps(each)), "model_sha256": model.content_sha256()}
    attributes |= digests | {"config": json.dumps(config), POOLED: json.dumps(each)}
    if not all(result.finished for result in results):
        attributes.pop("finished", None)
    return attributes


def _model_of_all(models: Sequence[Ising]) -> Ising:
    """The model of all samples of several models of one graph."""
    first = models[0]

    def rows(name: str) -> npt.NDArray[Any]:
        each = [np.broadcast_to(getattr(one, name), (one.samples, getattr(one, name).shape[1])) for one in models]
        if all(not any(part.strides) and part.flat[:1] == each[0].flat[:1] for part in each if part.size):
            return np.broadcast_to(each[0].flat[:1], (sum(map(len, each)), each[0].shape[1]))
        return np.concatenate(each)

    others = {name: getattr(first, name) for name in ("offset", "maxcut_weight", "terms", "labels", "vartype")}
    fields = rows("fields")
    model = Ising(first.graph, rows("couplings"), fields if np.any(fields) else 0.0, name=first.name, **others)
    model.origin = {name: value for name, value in first.origin.items() if name in _OF_MODEL}
    return model


def gathered(files: Sequence[Path], results: Sequence[Result]) -> list[tuple[list[Path], Any]]:
    """Runs of files, pooled where they can be: the files of each group and their run."""
    return [([files[k] for k in group], _pooled([results[k] for k in group])) for group in groups_of(results)]


def merge(files: Sequence[Path], out: Path, overwrite: bool = False) -> Path:
    """Write the pooled run of several files into one, and return its path.

    Raises:
        InputError: as ``pool``, for a single file, and where the new one exists.
    """
    if len(files) < 2:
        raise InputError(f"{files[0]} alone is one run already: give two files or more")
    result: Result = pool(files)
    return result.save(out, overwrite)
