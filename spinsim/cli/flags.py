"""Commands that take the settings of a job as flags, and flags that several commands share."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from functools import partial, wraps
from inspect import Parameter, Signature, getdoc, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer
from typer.core import TyperCommand, TyperGroup

from spinsim.errors import InputError
from spinsim.inputs.texts import RANDOM

if TYPE_CHECKING:
    from spinsim.settings.config import Config
    from spinsim.settings.setting import Setting

Function = TypeVar("Function", bound=Callable[..., None])


def whole(text: str, mend: str = ": give one such as 128") -> int:
    from spinsim.inputs.arguments import whole as as_whole

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
    from spinsim.inputs.numbers import check_word  # loads NumPy

    try:
        number = float(text)
    except ValueError as error:
        raise typer.BadParameter(f"{text!r} is not a number: give one such as 0.5") from error
    check_word(str(text), "the number")  # a default is a number already
    return number


def check_number_of(things: str, number: int) -> None:
    if number < 1:
        raise InputError(f"{things} {number} are too few: give at least 1")


Whole = partial(typer.Option, parser=whole, metavar="INTEGER")
Seed = partial(typer.Option, parser=seed, metavar=f"INTEGER|{RANDOM}")
Real = partial(typer.Option, parser=real, metavar="FLOAT")


Flag = typer.Option

ConfigFile = Annotated[Path | None, Flag(help="TOML file with tables [model], [run] and the job's; flags win.")]
Overwrite = Annotated[bool, Flag("--overwrite", help="Replace existing outputs of the same kind.")]
Quiet = Annotated[bool, Flag("--quiet", help="No progress bar and no summary.")]
Verbose = Annotated[bool, Flag("--verbose", help="Log engine, kernels that are compiled and checkpoints.")]
Given = dict[str, Any]
AsJson = Annotated[bool, Flag("--json", help="The summary as one JSON object.")]
AsJsonOfFiles = Annotated[bool, Flag("--json", help="Print one JSON object, a list of them for several files.")]
DryRun = Annotated[
    bool, Flag("--dry-run", help="Only print how long the run will take and how large its file will be.")
]


def taking(settings: Callable[[], Mapping[str, Setting]]) -> Callable[[Function], Function]:
    """Give a command a flag for each setting; its parameter ``given`` maps names to values, None for omitted flags.

    ``settings`` is called only when the command runs, because reading settings takes as long as starting the program.
    """

    def mark(function: Function) -> Function:
        setattr(function, "settings", settings)  # noqa: B010  (functions have no such attribute)
        return function

    return mark


def with_flags(function: Callable[..., None], used: set[str] | None = None) -> Callable[..., None]:
    """Return a function in the form that Typer reads, with a parameter for each of its settings instead of ``given``.

    With ``used``, only the settings with these flags get a parameter.
    """
    if not hasattr(function, "settings"):
        return function
    settings: Mapping[str, Setting] = function.settings()
    chosen = {n: one for n, one in settings.items() if used is None or one.is_argument or set(words_of(one)) & used}

    @wraps(function)
    def run(**everything: Any) -> None:
        given = {name: everything.pop(name, None) for name in settings}
        function(given=given, **everything)

    parameters: list[Parameter] = []
    for one in signature(function, eval_str=True).parameters.values():
        if one.name == "given":
            parameters += [
                Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=option(setting))
                for name, setting in chosen.items()
            ]
        else:
            parameters.append(one.replace(kind=Parameter.KEYWORD_ONLY))
    read_by_typer: Any = run
    read_by_typer.__signature__ = Signature(parameters)
    read_by_typer.__annotations__ = {one.name: one.annotation for one in parameters}
    return run


class Command(TyperCommand):
    """A command that builds its parameters on use, because the list of all commands needs only its first sentence.

    Typer takes a millisecond for each flag, so parsing a line builds only the flags in it.
    """

    def __init__(self, name: str, function: Callable[..., None]) -> None:
        super().__init__(name, help=getdoc(function), rich_markup_mode=None)
        self._function = function
        del self.params, self.callback  # access to these attributes then reaches __getattr__

    def __getattr__(self, name: str) -> Any:
        if name not in ("params", "callback"):
            raise AttributeError(name)
        self._make(None)
        return getattr(self, name)

    def _make(self, used: set[str] | None) -> None:
        alone = typer.Typer(add_completion=False)
        alone.command()(with_flags(self._function, used))
        whole: Any = typer.main.get_command(alone)
        self.params, self.callback = whole.params, whole.callback

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        used = {arg.partition("=")[0] for arg in args if arg.startswith("-")}
        if not ctx.resilient_parsing:  # set when a shell completes a line
            self._make(used)
        if not used <= {word for one in self.params for word in (*one.opts, *one.secondary_opts)}:
            self._make(None)  # help, a wrong flag, or a number below 0
        rest = super().parse_args(ctx, args)
        del self.params  # a later access builds all parameters
        return rest


def group_of(functions: Mapping[str, Callable[..., None]]) -> type[TyperGroup]:
    """Return the class of a group with a command for each function, for ``typer.Typer(cls=...)``."""

    class Group(TyperGroup):
        def __init__(self, *, commands: Any = None, **about: Any) -> None:
            own: dict[str, Any] = {name: Command(name, function) for name, function in functions.items()}
            super().__init__(commands=own | dict(commands or {}), **about)

    return Group


def filled(given: Given, settings: Mapping[str, Setting]) -> Given:
    values = {name: one.default if given[name] is None else given[name] for name, one in settings.items()}
    for name, one in settings.items():
        one.check(values[name])
    return values


def places_of(job: type[Config]) -> dict[str, tuple[str, Setting]]:
    """Settings with flags, each with its table, by the names of parameters; the settings of the run come last."""
    from spinsim.settings import config

    places = config.places_of(job).items()
    return {name: place for name, place in places if place[1].option is not None or place[1].is_argument}


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
    return Annotated[one.kind | None, Flag("/".join(words_of(one)), help=text)]


def words_of(one: Setting) -> list[str]:
    """Flag of a setting; for a switch, also the flag that turns it off."""
    words = [] if one.option is None else [one.option]
    return [*words, f"--no-{one.name.replace('_', '-')}"] if one.kind is bool else words
