"""Settings in words: the page docs/reference/settings.md, docstrings of the calls in Python and their signatures."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from inspect import Parameter, cleandoc, signature
from textwrap import wrap
from typing import Any, Final, NamedTuple, TypeVar

from spinsim.inputs.signatures import Lines, Plain
from spinsim.inputs.texts import RANDOM
from spinsim.settings.config import Config, kinds_of, tables_of
from spinsim.settings.setting import Setting, Table, settings_of

Function = TypeVar("Function", bound=Callable[..., Any])

_HEAD: Final = """\
# Settings

This page is made from the program: `python -m spinsim.settings > docs/reference/settings.md`. A setting is a key of a
table in a configuration file and a flag on the command line; calls in Python name it alike.

Lists of numbers are written `0.8:2:16` (evenly spaced), `0.8:2:16g` (geometric) or `0.8,1.0,1.3`, in files also as
numbers and lists of them. The coupling unit is the unit in which the couplings are given; k_B = 1.
"""
_STUB: Final = """\
# Calls of the jobs with all their settings, made from the program: python -m spinsim.settings --signatures
import os
from collections.abc import Callable, Mapping, Sequence

from numpy.typing import ArrayLike

from spinsim.engine.moves.move import Move
"""
_COLUMNS: Final = ("key", "flag", "what it is", "values", "unit", "default")
_SECTIONS: Final = ("Args:", "Returns:", "Raises:")
_ITEM: Final = re.compile(r"    \w+: ")
_WIDTH: Final = 92  # width of docstrings, which ``help`` indents


class Argument(NamedTuple):
    """An argument of calls that is no setting, or that calls take in another form than files."""

    type: str = ""  # in words, empty for that of the setting
    default: Any = None
    words: str = ""  # a line of the docstring


_TYPES: Final = {int: "a whole number", float: "a number", str: "text", bool: "true or false"}


def page(jobs: Iterable[type[Config]]) -> str:
    jobs = list(jobs)
    parts = [_HEAD]
    for name, kind in kinds_of(Config).items():
        parts += [_head(name, kind), _rows(settings_of(kind).values())]
        for job in jobs:
            parts += _variations(job, name, kind)
    for job in jobs:
        parts += [_head(job.job, kinds_of(job)[job.job]), _rows(tables_of(job)[job.job].values())]
    return "\n".join(parts)


def _head(name: str, kind: type[Table]) -> str:
    paragraphs = (" ".join(each.split()) for each in (kind.__doc__ or "").replace("``", "`").split("\n\n"))
    return f"## `[{name}]`\n\n" + "\n\n".join(paragraphs) + "\n"


def _rows(settings: Iterable[Setting]) -> str:
    rows = [_COLUMNS, ("---",) * len(_COLUMNS), *map(_row, settings)]
    return "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |\n" for row in rows)


def _row(one: Setting) -> tuple[str, ...]:
    flag = "`INSTANCE`" if one.is_argument else f"`{one.option}`" if one.option else ""
    return f"`{one.name}`", flag, one.help, _values(one), one.unit, _default(one)


def _values(one: Setting) -> str:
    if one.choices:
        return ", ".join(f"`{value}`" for value in one.choices)
    if one.numbers is not None:
        return f"text, {_TYPES[one.numbers.kind]} or a list of such"
    fresh = f", or `{RANDOM}` for a fresh one" if one.is_seed else ""
    return "a path" if one.is_path else (_allowed(one) or _TYPES[one.kind]) + fresh


def _allowed(one: Setting) -> str:
    """Allowed values of a setting, in words, with powers in the place of long numbers."""
    return re.sub(r"\d{6,}", lambda number: _power(int(number[0])), one.allowed)


def _power(number: int) -> str:
    """A number as a power of ten or two where it is one, or one less."""
    digits, bits = len(str(number)) - 1, (number + 1).bit_length() - 1
    near = {10**digits: f"10^{digits}", 2**bits: f"2^{bits}", 2**bits - 1: f"2^{bits} - 1"}
    return near.get(number, str(number))


def _default(one: Setting) -> str:
    if one.kind is bool and not one.shown:
        return f"`{str(one.default).lower()}`"
    in_words = one.shown and "<" not in one.shown
    return one.default_text if in_words or not one.default_text else f"`{one.default_text}`"


def _variations(job: type[Config], name: str, kind: type[Table]) -> list[str]:
    """Settings of a shared table that differ in a job, in words."""
    usual, lines = settings_of(kind), []
    for key, one in tables_of(job)[name].items():
        if one == usual[key]:
            continue
        if one.unused:
            lines.append(f"- `{key}` has no meaning there.\n")
        elif one.option is None and not one.is_argument:
            lines.append(f"- `{key}` has no flag.\n")
        else:
            default = f", by default {_default(one)}" if _default(one) else ""
            lines.append(f"- `{key}` (`{one.option}`): {one.described}{default}.\n")
    return [f"Of `{job.job}`:\n", "".join(lines)] if lines else []


def signatures(calls: Iterable[Callable[..., Any]]) -> str:
    """Calls with all their parameters and docstrings, as a stub from which editors complete and type checkers check."""
    calls = list(calls)
    results = {call.__annotations__["return"]: call.__module__.replace(".running", ".result") for call in calls}
    imports = [f"from {module} import {name}\n" for name, module in sorted(results.items(), key=lambda item: item[1])]
    return _STUB + "".join(
        [
            *imports,
            "from spinsim.model.ising import Ising\n",
            "from spinsim.run.own import Measure\n",
            *map(_with_docstring, calls),
        ]
    )


def _with_docstring(call: Callable[..., Any]) -> str:
    text = "\n".join(f"    {line}" if line else "" for line in (call.__doc__ or "").splitlines())
    head = re.sub(r"'([^']*)',$", r'"\1",', str(signature(call)), flags=re.MULTILINE)
    return f'\ndef {call.__name__}{head}:\n    """{text.strip()}\n    """\n'


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
        told.__doc__ = "\n".join(_wrapped([*head, *tail]))
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
    rule = f" ({_allowed(one)})" if one.allowed and not one.choices else ""
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


def _wrapped(lines: list[str]) -> list[str]:
    """Returns the paragraphs and items of a docstring in lines of one width."""
    units: list[str] = []
    for line in lines:
        goes_on = units and units[-1] and units[-1] not in _SECTIONS and line.strip() and not _ITEM.match(line)
        if goes_on and line not in _SECTIONS:
            units[-1] += f" {line.strip()}"
        else:
            units.append(line.rstrip())
    wrapped: list[str] = []
    for unit in units:
        indent = unit[: len(unit) - len(unit.lstrip())] + "    " * bool(_ITEM.match(unit))
        wrapped += wrap(unit, _WIDTH, subsequent_indent=indent, break_on_hyphens=False) or [""]
    return wrapped
