"""Calls in Python, of all jobs: the plan of a command whose model is given, carried out in memory or a file.

Their signatures and docstrings are made from the settings.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial, wraps
from inspect import Parameter, Signature, cleandoc
from pathlib import Path
from textwrap import wrap
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from spinsim.acceptance import ZERO_ACCEPTANCE
from spinsim.engine import resolve_device
from spinsim.engine.given import as_spins, name_of
from spinsim.engine.moves.move import Move, text_of
from spinsim.errors import InputError, WrongTypeError, warn_caller
from spinsim.inputs.arguments import as_stated
from spinsim.inputs.checks import as_floats
from spinsim.inputs.grids import as_text
from spinsim.inputs.signatures import Lines, Plain, public
from spinsim.inputs.texts import RANDOM
from spinsim.inputs.words import nearest
from spinsim.jobs import job_of
from spinsim.model.ising import Ising, check_model
from spinsim.result import Result, load
from spinsim.run.common import OnUpdates, Plan, Watch, plan_resume, provenance, to_file
from spinsim.run.functions import text_of_measure
from spinsim.run.identity import tables_of_file
from spinsim.run.progress import compiling_told
from spinsim.settings.config import AnyConfig, Config, build_config, tables_of
from spinsim.settings.setting import Setting
from spinsim.settings.shared import GIVEN_MODEL, ModelSettings, RunSettings

Start = str | npt.ArrayLike
OutFile = str | os.PathLike[str]
Tables = dict[str, dict[str, Any]]
Check = Callable[[npt.NDArray[np.float64]], npt.NDArray[np.float64]]
Given = dict[str, Any]
Returned = TypeVar("Returned")
_NO_FILE: Final = Path(os.devnull)
_NO_SETTINGS: Final = {"on_updates", "on_rows", "progress"}  # arguments of calls that are no settings
_SECTIONS: Final = ("Args:", "Returns:", "Raises:")
_ITEM: Final = re.compile(r"    \w+: ")
_WIDTH: Final = 92  # width of docstrings, which ``help`` indents


class _Argument(NamedTuple):
    """An argument of calls that is no setting, or that calls take in another form than files."""

    type: str = ""  # in words, empty for that of the setting
    default: Any = None
    words: str = ""  # a line of the docstring


_ARGUMENTS: Final = {
    "zero_acceptance": _Argument("float", ZERO_ACCEPTANCE),
    "start": _Argument("str | ArrayLike"),
    "moves": _Argument("str | Sequence[tuple[Move, int]] | None"),
    "measure": _Argument("str | Mapping[str, Measure] | None"),
    "on_updates": _Argument(
        "Callable[[int], None] | None",
        words="Function called now and then with the number of spin updates since its last call.",
    ),
    "on_rows": _Argument("Callable[[int], None] | None"),
    "progress": _Argument(
        "bool",
        False,
        "Show a progress bar on the terminal or in the notebook; elsewhere say when kernels are compiled.",
    ),
    "out": _Argument(
        words="File for the run and its checkpoints; the same call, or ``resume``, completes an interrupted run. "
        "Without a file the run is kept in memory."
    ),
}
"""Arguments of calls that are no settings, or that they take in other forms than files."""


@public
def resume(
    path: str | os.PathLike[str],
    sweeps: int | None = None,
    most_steps: int | None = None,
    device: str | None = None,
    threads: int | None = None,
    checkpoint_every: float | None = None,
    gpus: str | None = None,
    progress: bool = False,
    time_limit: float | None = None,
    anneals: int | None = None,
    on_updates: OnUpdates | None = None,
    moves: Sequence[tuple[Move, int]] = (),
    measure: Mapping[str, Callable[[Any], Any]] | None = None,
    drop_added: bool = False,
) -> Any:
    """Complete the run of a file from its last checkpoint, or make a run or a search longer.

    Args:
        path: File that a command, or a call with ``out``, has written.
        sweeps: Total number of measured sweeps of a longer tempering or quantum run.
        most_steps: Products with T after which levels of a transfer-matrix run are given up.
        device: Device to continue on, if another; the outcome is the same.
        threads: CPU threads, if another number.
        checkpoint_every: Seconds between checkpoints, if another number.
        gpus: GPUs that share the work, if others: ``all``, how many, or numbers such as ``0,2``.
        progress: True shows a progress bar on the terminal or in the notebook, and elsewhere says
            when kernels are compiled.
        time_limit: Largest duration of a search in seconds, from its beginning. A search that has
            met its target stays as it is.
        anneals: Largest number of anneals of a search, from its beginning.
        on_updates: Called now and then with the number of spin updates since the last call.
        moves: Moves of your own that the run was given, each with its number of sweeps, by the
            same names.
        measure: Functions of your own that the run was given in Python, by name.
        drop_added: True goes on where another program has added to the file, without what it added.

    Returns:
        The whole run; one that is finished already is read as it is.

    Raises:
        InputError: if the file holds no run that can be continued, or cannot have that length.
        KeyboardInterrupt: on Ctrl-C; the run has saved itself.
    """
    how = {"device": device, "gpus": gpus, "threads": threads, "checkpoint_every": checkpoint_every}
    lengths = {"sweeps": sweeps, "most_steps": most_steps, "time_limit": time_limit, "anneals": anneals}
    plan = plan_resume(Path(path), lengths, how, moves, measure, drop_added)
    return carried_out(plan, path, progress, on_updates)


@public
def recount(run: Result | OutFile, device: str = RunSettings.device, threads: int | None = RunSettings.threads) -> Any:
    """Count everything that a run has measured again, from the configurations that it has saved.

    Args:
        run: A result, or a file of a run with ``save_configurations``.
        device: Where it is counted: ``auto``, ``cpu`` or ``cuda``.
        threads: CPU threads, None for all.

    Returns:
        The run with the rows alone at which configurations were saved; its energies,
        magnetisations, overlaps and modes come from the spins. They are the very numbers that were
        recorded.

    Raises:
        InputError: as ``load``, and for a run that has saved no configurations.
    """
    result = run if isinstance(run, Result) else load(run)
    return job_of(result.job).recounted(result, resolve_device(device), threads)


def call_of(job: type[Config], order: str) -> Callable[[Callable[[Ising, Given], Returned]], Callable[..., Returned]]:
    """Make a job's call of a function that takes a model and the arguments that were given, by their names.

    Args:
        job: The class of its configurations, whose settings are arguments.
        order: Names of the arguments that may be given by position, as ``_document`` takes them.
    """
    settings = {key: one for table in (job.job, "run") for key, one in tables_of(job)[table].items() if not one.unused}
    names = order.replace("?", "").split()
    kind = Parameter.POSITIONAL_OR_KEYWORD
    free = Signature([Parameter(name, kind, default=None) for name in names])

    def make(function: Callable[[Ising, Given], Returned]) -> Callable[..., Returned]:
        @wraps(function)
        def call(model: Ising, *args: Any, **keywords: Any) -> Returned:
            return function(model, as_settings(job, by_name(job, free, args, keywords)))

        _document(call, settings, order.split())
        return call

    return make


def by_name(job: type[Config], places: Signature, args: Sequence[Any], keywords: Given) -> Given:
    """Return the arguments of a call by their names; keywords that ``places`` lacks are left to ``as_settings``.

    Raises:
        WrongTypeError: for more arguments than places, and for one that is given twice.
    """
    placed = {name: value for name, value in keywords.items() if name in places.parameters}
    try:
        return places.bind(*args, **placed).arguments | keywords
    except TypeError as error:
        rule = "give each argument once, and all but the model by name"
        raise WrongTypeError(f"ss.{job.job} was given {error}: {rule}") from error


def as_settings(job: type[Config], given: Given) -> Given:
    """Return the arguments of a call by their names, in the types of its settings; numbers are left to the run."""
    settings = {**tables_of(job)["run"], **tables_of(job)[job.job]}
    typed: Given = {}
    for name, value in given.items():
        if name not in settings and name not in _NO_SETTINGS:
            raise WrongTypeError(f"ss.{job.job} has no setting {name!r}: {nearest(name, settings)}")
        if value is not None and _ARGUMENTS.get(name, _Argument()).type:
            value = as_stated(name, value, _ARGUMENTS[name].type)
        elif value is not None and not settings[name].takes_lists:
            value = settings[name].typed(os.fspath(value) if isinstance(value, os.PathLike) else value)
        typed[name] = value
    return typed


def allowed(one: Setting) -> str:
    """Allowed values of a setting, in words, with powers in the place of long numbers."""
    return re.sub(r"\d{6,}", lambda number: _power(int(number[0])), one.allowed)


def _power(number: int) -> str:
    """A number as a power of ten or two where it is one, or one less."""
    digits, bits = len(str(number)) - 1, (number + 1).bit_length() - 1
    near = {10**digits: f"10^{digits}", 2**bits: f"2^{bits}", 2**bits - 1: f"2^{bits} - 1"}
    return near.get(number, str(number))


def _document(call: Any, settings: Mapping[str, Setting], order: Sequence[str]) -> None:
    """Give a call a signature, and its docstring a line in the section ``Args`` for each argument.

    The first argument is the model. A line is the call's own, else that of ``_ARGUMENTS``, else that of the setting.
    The docstring comes out in lines that ``help`` can indent. ``order`` has the names of the arguments that may be
    given by position, behind the model, with a ``?`` behind those that may be None for their default; other settings
    are keywords.
    """
    units = _units(cleandoc(call.__doc__ or "").splitlines())
    first = units.index("Args:") + 1
    last = units.index("", first)
    own = {unit.split(":")[0].strip(): unit for unit in units[first:last]}
    parameters = list(_parameters(settings, order))
    for name in (one.name for one in parameters):
        words = _ARGUMENTS.get(name, _Argument()).words or (_sentence(settings[name]) if name in settings else "")
        own.setdefault(name, f"    {name}: {words}")
    units[first:last] = [own[one.name] for one in parameters]
    call.__doc__ = "\n".join(wrapped(units))
    call.__signature__ = Lines(parameters, return_annotation=Plain(call.__annotations__["return"]))


def _parameters(settings: Mapping[str, Setting], order: Sequence[str]) -> Iterable[Parameter]:
    yield Parameter("model", Parameter.POSITIONAL_OR_KEYWORD, annotation=Plain("Ising"))
    places = [name.removesuffix("?") for name in order]
    for name in dict.fromkeys([*places, *settings]):
        kind = Parameter.POSITIONAL_OR_KEYWORD if name in places else Parameter.KEYWORD_ONLY
        other = _ARGUMENTS.get(name, _Argument())
        default = other.default
        if name in settings and default is None and not settings[name].shown:  # else it depends on others
            default = settings[name].default
        said = (other.type or _type(settings[name])) + (" | None" if f"{name}?" in order else "")
        yield Parameter(name, kind, default=default, annotation=Plain(said))


def _type(one: Setting) -> str:
    kind = "str | os.PathLike[str]" if one.is_path else one.kind.__name__
    if one.numbers is not None:
        kind = "ArrayLike | str" if one.takes_lists else "str | int"
    return f"{kind} | None" if one.optional or one.shown or one.is_seed else kind


def _sentence(one: Setting) -> str:
    rule = f" ({allowed(one)})" if one.allowed and not one.choices else ""
    rule += "; None draws a fresh one" if one.is_seed else ""
    default = f"; by default {one.shown}" if one.shown else ""
    return f"{one.described}{rule}{default}."


def _units(lines: list[str]) -> list[str]:
    """Returns the paragraphs and items of a docstring, a line each, with the empty lines between them."""
    units: list[str] = []
    for line in lines:
        goes_on = units and units[-1] and units[-1] not in _SECTIONS and line.strip() and not _ITEM.match(line)
        if goes_on and line not in _SECTIONS:
            units[-1] += f" {line.strip()}"
        else:
            units.append(line.rstrip())
    return units


def wrapped(lines: list[str], width: int = _WIDTH) -> list[str]:
    """Returns the paragraphs and items of a docstring in lines of one width."""
    whole: list[str] = []
    for unit in _units(lines):
        indent = unit[: len(unit) - len(unit.lstrip())] + "    " * bool(_ITEM.match(unit))
        whole += wrap(unit, width, subsequent_indent=indent, break_on_hyphens=False) or [""]
    return whole


def run_of_call(
    job: type[Config], model: Ising, given: Given, spins: npt.NDArray[np.int8] | None = None, **checks: Check
) -> Any:
    """Carry out the run of a call whose model is given, in memory or in its file, and return what it comes to."""
    plan_type: Any = job_of(job.job).plan_type
    given, moves, own = dict(given), given.get("moves"), dict[str, Any]()
    if "start" in given:
        given["start"], given_spins = start_of_call(given["start"], model, None)
        own["start"] = given_spins if spins is None else spins
    if "moves" in given:
        own["moves"] = () if moves is None or isinstance(moves, str) else tuple(moves)
        given["moves"] = moves if isinstance(moves, str) else text_of(own["moves"])
    if "measure" in given:
        own["measure"] = None if isinstance(given["measure"], str) else given["measure"]
        given["measure"] = text_of_measure(given["measure"])
    config = config_of_call(job, model, given, **checks)
    where = resolve_device(config.run.device, config.run.gpus)
    config = plan_type.filled_in(config, model, where)
    path = Path(config.run.out) if config.run.out else _NO_FILE
    attributes: Any = partial(provenance, config, model, tuple(sys.argv))
    plan = plan_type(config, model, where, path, attributes, **own)
    on_done = given.get("on_rows") or given.get("on_updates")
    return carried_out(plan, given.get("out"), bool(given.get("progress")), on_done)


def config_of_call(job: type[AnyConfig], model: Ising, given: Given, **checks: Check) -> AnyConfig:
    """Returns the configuration of a call whose model is given.

    ``given`` has the arguments of the call as ``as_settings`` returns them; None stands for the default, of a seed for
    a fresh one.
    ``checks`` are those of numbers, as ``text_of_call`` takes them.
    """
    of_run, of_job = (tables_of(job)[table] for table in ("run", job.job))
    tables: Tables = {"run": {}, job.job: {}}
    for key, value in given.items():
        if key in _NO_SETTINGS:
            continue
        if key in of_job and of_job[key].takes_lists:
            value = text_of_call(key, value, checks.get(key, np.asarray))
        if value is None:
            if not (key in of_run and of_run[key].is_seed):
                continue
            value = RANDOM
        tables[job.job if key in of_job else "run"][key] = value
    return replace(build_config(job, tables, begun=tables_of_file), model=_given_model(check_model(model).name))


@lru_cache(maxsize=32)
def _given_model(name: str) -> ModelSettings:
    return ModelSettings(instance=f"{GIVEN_MODEL}{name}")


def text_of_call(name: str, values: npt.ArrayLike | str | None, check: Check) -> str | None:
    """Returns the text of a configuration for numbers that a call gives as text, one or many.

    ``check`` refuses numbers by a sentence that names the first wrong one; a text would be quoted whole.
    """
    if values is None or isinstance(values, str):
        return values
    numbers = np.atleast_1d(as_floats(as_stated(name, values, "ArrayLike | str"), name))
    if numbers.ndim != 1 or not numbers.size:
        raise InputError(f"{name} has shape {numbers.shape}: give one number, or a list of them")
    bad = numbers[~np.isfinite(numbers)]
    if bad.size:
        raise InputError(f"{name} {bad[0]} is not finite: give numbers such as 0.5")
    return as_text(check(numbers))


def start_of_call(start: Start, model: Ising, replicas: int | None) -> tuple[str, npt.NDArray[np.int8] | None]:
    """Returns what stands for a start in a configuration, and its spins where they are given."""
    check_model(model)
    if isinstance(start, str):
        return start, None
    spins = as_spins(start, model, replicas)
    return name_of(spins), spins


def carried_out(plan: Plan[Any], out: OutFile | None, progress: bool, on_updates: OnUpdates | None) -> Any:
    with compiling_told(silent=not progress), job_of(plan.config.job).progress(silent=not progress) as bar:

        def advance(done: int) -> None:
            bar.advance(done)
            if on_updates is not None:
                on_updates(done)

        watch = Watch(bar.begin, advance, warn_caller, bar.watch_parts, bar.note)
        if out is None:
            if plan.model.caution:
                watch.on_warning(plan.model.caution)
            return plan.in_memory(watch)
        try:
            return to_file(plan, watch)[0]
        except KeyboardInterrupt:
            if not plan.path.exists():
                raise
            how = f"ss.resume({str(plan.path)!r}) completes the run from its last checkpoint"
            raise KeyboardInterrupt(f"the run was saved: {how}") from None
