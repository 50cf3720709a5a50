"""Commands whose flags are the settings of a job, and flags that several commands share."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from functools import partial, wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any

import typer

from spinsim.errors import InputError
from spinsim.inputs.arguments import whole as as_whole
from spinsim.inputs.texts import RANDOM
from spinsim.settings.config import Config, tables_of
from spinsim.settings.setting import Setting


def whole(text: str, mend: str = ": give one such as 128") -> int:
    with contextlib.suppress(ValueError):
        return int(text)
    try:
        number: int = as_whole(float(text))
    except (TypeError, ValueError) as error:
        raise typer.BadParameter(f"{text!r} is not a whole number{mend}") from error
    return number


def seed(text: str) -> int | str:
    return RANDOM if text == RANDOM else whole(text, f", give digits such as 7, or {RANDOM}")


def real(text: str) -> float:
    from spinsim.inputs.checks import check_word  # loads NumPy

    try:
        number = float(text)
    except ValueError as error:
        raise typer.BadParameter(f"{text!r} is not a number: give one such as 0.5") from error
    check_word(str(text), "the number")  # a default is a number already
    return number


def check_repeats(repeats: int) -> None:
    if repeats < 1:
        raise InputError(f"repeats {repeats} are too few: give at least 1")


Whole = partial(typer.Option, parser=whole, metavar="INTEGER")
Seed = partial(typer.Option, parser=seed, metavar=f"INTEGER|{RANDOM}")
Real = partial(typer.Option, parser=real, metavar="FLOAT")


Flag = typer.Option

ConfigFile = Annotated[Path | None, Flag(help="TOML file with tables [model], [run] and the job's; flags win.")]
Overwrite = Annotated[bool, Flag("--overwrite", help="Replace existing outputs of the same kind.")]
Quiet = Annotated[bool, Flag("--quiet", help="No progress bar and no summary.")]
Given = dict[str, Any]
AsJson = Annotated[bool, Flag("--json", help="The summary as one JSON object.")]
AsJsonOfFiles = Annotated[bool, Flag("--json", help="Print one JSON object, a list of them for several files.")]
DryRun = Annotated[
    bool, Flag("--dry-run", help="Say how long the run will take and how large its file will be, alone.")
]


def taking(settings: Mapping[str, Setting]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make a command of a function whose parameter ``given`` is a dictionary of settings, each of them with a flag.

    Args:
        settings: By the names that they have in ``given``, where those that a user leaves out are None.
    """

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        @wraps(function)
        def run(**everything: Any) -> None:
            given = {name: everything.pop(name) for name in settings}
            function(given=given, **everything)

        parameters: list[Parameter] = []
        for one in signature(function, eval_str=True).parameters.values():
            if one.name == "given":
                parameters += [
                    Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=option(setting))
                    for name, setting in settings.items()
                ]
            else:
                parameters.append(one.replace(kind=Parameter.KEYWORD_ONLY))
        told: Any = run  # Typer makes flags of what it reads there
        told.__signature__ = Signature(parameters)
        told.__annotations__ = {one.name: one.annotation for one in parameters}
        return run

    return decorate


def filled(given: Given, settings: Mapping[str, Setting]) -> Given:
    values = {name: one.default if given[name] is None else given[name] for name, one in settings.items()}
    for name, one in settings.items():
        one.check(values[name])
    return values


def places_of(job: type[Config]) -> dict[str, tuple[str, Setting]]:
    """Settings that have flags, each with its table, by the names of parameters; those of the run come last."""
    places: dict[str, tuple[str, Setting]] = {}
    for table in ("model", job.job, "run"):
        for one in tables_of(job)[table].values():
            if not one.unused and (one.option is not None or one.is_argument):
                places[f"{table}_{one.name}" if one.name in places else one.name] = table, one
    return places


def option(one: Setting) -> Any:
    default = f"  [{one.default_text}]" if one.default_text else ""
    fresh = f", {RANDOM} for a fresh one" if one.is_seed else ""
    text = f"{one.described}{fresh}.{default}"
    if one.is_argument:
        return Annotated[one.kind | None, typer.Argument(help=text)]
    if one.kind is int:
        return Annotated[int | None, (Seed if one.is_seed else Whole)(one.option, help=text)]
    if one.kind is float:
        return Annotated[float | None, Real(one.option, help=text)]
    switch = f"{one.option}/--no-{one.name.replace('_', '-')}" if one.kind is bool else one.option
    return Annotated[one.kind | None, Flag(switch, help=text)]
