"""Settings in words: the page ``docs/settings.md`` and the docstrings of the calls in Python."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from inspect import Parameter, signature
from typing import Any, Final, TypeVar

from spinsim.inputs.seeds import RANDOM
from spinsim.settings.config import Config, kinds_of, tables_of
from spinsim.settings.setting import Setting, Table, settings_of

Function = TypeVar("Function", bound=Callable[..., Any])

_HEAD: Final = """\
# Settings

This page is made from the program: `python -m spinsim.settings > docs/settings.md`. A setting is a key of a table in a
configuration file and a flag on the command line; calls in Python name it alike.

Lists of numbers are written `0.8:2:16` (evenly spaced), `0.8:2:16g` (geometric) or `0.8,1.0,1.3`, in files also as
numbers and lists of them. The coupling unit is the unit in which the couplings are given; k_B = 1.
"""
_COLUMNS: Final = ("key", "flag", "what it is", "values", "unit", "default")
_TYPES: Final = {int: "a whole number", float: "a number", str: "text", bool: "true or false"}


def page(jobs: Iterable[type[Config]]) -> str:
    """The page that has every setting once, as Markdown."""
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
    """A table of settings, a row each."""
    rows = [_COLUMNS, ("---",) * len(_COLUMNS), *map(_row, settings)]
    return "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |\n" for row in rows)


def _row(one: Setting) -> tuple[str, ...]:
    flag = "`INSTANCE`" if one.is_argument else f"`{one.option}`" if one.option else ""
    return f"`{one.name}`", flag, one.help, _values(one), one.unit, _default(one)


def _values(one: Setting) -> str:
    """Which values there are."""
    if one.choices:
        return ", ".join(f"`{value}`" for value in one.choices)
    if one.numbers is not None:
        return f"text, {_TYPES[one.numbers.kind]} or a list of such"
    fresh = f", or `{RANDOM}` for a fresh one" if one.is_seed else ""
    return "a path" if one.is_path else (one.allowed or _TYPES[one.kind]) + fresh


def _default(one: Setting) -> str:
    if one.kind is bool:
        return f"`{str(one.default).lower()}`"
    in_words = one.shown and "<" not in one.shown
    return one.default_text if in_words or not one.default_text else f"`{one.default_text}`"


def _variations(job: type[Config], name: str, kind: type[Table]) -> list[str]:
    """What settings of a shared table are in a job, where they differ there."""
    usual, lines = settings_of(kind), []
    for key, one in tables_of(job)[name].items():
        if one == usual[key]:
            continue
        if one.unused:
            lines.append(f"- `{key}` means nothing there.\n")
        elif one.option is None and not one.is_argument:
            lines.append(f"- `{key}` has no flag.\n")
        else:
            default = f", by default {_default(one)}" if _default(one) else ""
            lines.append(f"- `{key}` (`{one.option}`): {one.described}{default}.\n")
    return [f"Of `{job.job}`:\n", "".join(lines)] if lines else []


def documented(settings: Mapping[str, Setting]) -> Callable[[Function], Function]:
    """Complete the docstring of a call: arguments that it does not describe are settings.

    Its section ``Args`` has lines for the others; all come out in the order of the signature, and those that it has no
    parameters for at its ``**settings``.
    """

    def complete(function: Function) -> Function:
        head, args, tail = _split(function.__doc__ or "")
        lines, parameters = [], signature(function).parameters
        for name, parameter in parameters.items():
            if parameter.kind is Parameter.VAR_KEYWORD:
                others = {key: one for key, one in settings.items() if key not in parameters}
                lines += [f"        **{name}: Further settings of the command line."] if others else []
                lines += [f"            {key}: {_sentence(one)}" for key, one in others.items()]
            else:
                lines += args.get(name) or [f"        {name}: {_sentence(settings[name])}"]
        function.__doc__ = "\n".join([*head, *lines, *tail])
        return function

    return complete


def _sentence(one: Setting) -> str:
    """A setting as an argument's description."""
    rule = f" ({one.allowed})" if one.allowed and not one.choices else ""
    rule += "; None draws a fresh one" if one.is_seed else ""
    default = f"; by default {one.shown}" if one.shown and one.default is None else ""
    return f"{one.described}{rule}{default}."


def _split(text: str) -> tuple[list[str], dict[str, list[str]], list[str]]:
    """Lines of a docstring up to ``Args:``, the arguments' own by their names, and the lines after these."""
    lines = text.splitlines()
    start = next(i for i, line in enumerate(lines) if line.strip() == "Args:") + 1
    end = next((i for i in range(start, len(lines)) if not lines[i].strip()), len(lines))
    args: dict[str, list[str]] = {}
    for line in lines[start:end]:
        if line.startswith("        ") and not line.startswith("         "):
            args[line.split(":")[0].strip()] = [line]
        else:
            args[list(args)[-1]].append(line)
    return lines[:start], args, lines[end:]
