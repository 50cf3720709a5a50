"""Settings in words: docstrings of the calls in Python, and their signatures."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from inspect import Parameter, cleandoc
from textwrap import wrap
from typing import Any, Final, NamedTuple, TypeVar

from spinsim.inputs.signatures import Lines, Plain
from spinsim.settings.setting import Setting

Function = TypeVar("Function", bound=Callable[..., Any])

_SECTIONS: Final = ("Args:", "Returns:", "Raises:")
_ITEM: Final = re.compile(r"    \w+: ")
_WIDTH: Final = 92  # width of docstrings, which ``help`` indents


class Argument(NamedTuple):
    """An argument of calls that is no setting, or that calls take in another form than files."""

    type: str = ""  # in words, empty for that of the setting
    default: Any = None
    words: str = ""  # a line of the docstring


def allowed(one: Setting) -> str:
    """Allowed values of a setting, in words, with powers in the place of long numbers."""
    return re.sub(r"\d{6,}", lambda number: _power(int(number[0])), one.allowed)


def _power(number: int) -> str:
    """A number as a power of ten or two where it is one, or one less."""
    digits, bits = len(str(number)) - 1, (number + 1).bit_length() - 1
    near = {10**digits: f"10^{digits}", 2**bits: f"2^{bits}", 2**bits - 1: f"2^{bits} - 1"}
    return near.get(number, str(number))


def documented(
    settings: Mapping[str, Setting], order: Sequence[str], others: Mapping[str, Argument]
) -> Callable[[Function], Function]:
    """Give a call a signature, and its docstring a line in the section ``Args`` for each argument.

    The first argument is the model. A line is the call's own, else that of ``others``, else that of the setting. The
    docstring comes out in lines that ``help`` can indent.

    Args:
        settings: Of the job; those that are not in ``order`` are keywords.
        order: Names of the arguments that may be given by position, behind the model; with a ``?`` behind those that
            may be None for their default.
        others: Arguments that are no settings, and settings that calls take in other forms than files.
    """

    def complete(function: Function) -> Function:
        head, args, tail = _split(cleandoc(function.__doc__ or "").splitlines())
        parameters = list(_parameters(settings, order, others))
        for one in parameters:
            words = others[one.name].words if one.name in others else ""
            line = words or (_sentence(settings[one.name]) if one.name in settings else "")
            head += args.get(one.name) or [f"    {one.name}: {line}"]
        told: Any = function
        told.__doc__ = "\n".join(wrapped([*head, *tail]))
        told.__signature__ = Lines(parameters, return_annotation=Plain(function.__annotations__["return"]))
        return function

    return complete


def _parameters(
    settings: Mapping[str, Setting], order: Sequence[str], others: Mapping[str, Argument]
) -> Iterable[Parameter]:
    yield Parameter("model", Parameter.POSITIONAL_OR_KEYWORD, annotation=Plain("Ising"))
    places = [name.removesuffix("?") for name in order]
    for name in dict.fromkeys([*places, *settings]):
        kind = Parameter.POSITIONAL_OR_KEYWORD if name in places else Parameter.KEYWORD_ONLY
        other = others.get(name, Argument())
        default = other.default
        if name in settings and default is None and not settings[name].shown:  # else it depends on others
            default = settings[name].default
        said = (other.type or _type(settings[name])) + (" | None" if f"{name}?" in order else "")
        yield Parameter(name, kind, default=default, annotation=Plain(said))


def _type(one: Setting) -> str:
    kind = "str | os.PathLike[str]" if one.is_path else one.kind.__name__
    if one.numbers is not None:
        kind = "ArrayLike | str"
    return f"{kind} | None" if one.optional or one.shown or one.is_seed else kind


def _sentence(one: Setting) -> str:
    rule = f" ({allowed(one)})" if one.allowed and not one.choices else ""
    rule += "; None draws a fresh one" if one.is_seed else ""
    default = f"; by default {one.shown}" if one.shown else ""
    return f"{one.described}{rule}{default}."


def _split(lines: list[str]) -> tuple[list[str], dict[str, list[str]], list[str]]:
    start = lines.index("Args:") + 1
    end = next((i for i in range(start, len(lines)) if not lines[i].strip()), len(lines))
    args: dict[str, list[str]] = {}
    for line in lines[start:end]:
        if line.startswith("     "):
            args[list(args)[-1]].append(line)
        else:
            args[line.split(":")[0].strip()] = [line]
    return lines[:start], args, lines[end:]


def wrapped(lines: list[str], width: int = _WIDTH) -> list[str]:
    """Returns the paragraphs and items of a docstring in lines of one width."""
    units: list[str] = []
    for line in lines:
        goes_on = units and units[-1] and units[-1] not in _SECTIONS and line.strip() and not _ITEM.match(line)
        if goes_on and line not in _SECTIONS:
            units[-1] += f" {line.strip()}"
        else:
            units.append(line.rstrip())
    whole: list[str] = []
    for unit in units:
        indent = unit[: len(unit) - len(unit.lstrip())] + "    " * bool(_ITEM.match(unit))
        whole += wrap(unit, width, subsequent_indent=indent, break_on_hyphens=False) or [""]
    return whole
