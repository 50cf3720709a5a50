"""The page docs/reference/settings.md: ``python tests/support/settings_page.py > docs/reference/settings.md``."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from typing import Final

import spinsim  # noqa: F401  (which enters the jobs' records)
from spinsim.inputs.texts import RANDOM
from spinsim.registry import FOLDERS, job_of
from spinsim.settings.config import Config, kinds_of, tables_of
from spinsim.settings.setting import Setting, Table, settings_of

_HEAD: Final = """\
# Settings

This page is made from the program: `python tests/support/settings_page.py > docs/reference/settings.md`. A setting is a
key of a table in a configuration file and a flag on the command line; calls in Python name it alike.

Lists of numbers are written `0.8:2:16` (evenly spaced), `0.8:2:16g` (geometric) or `0.8,1.0,1.3`, in files also as
numbers and lists of them. The coupling unit is the unit in which the couplings are given; k_B = 1.
"""
_COLUMNS: Final = ("key", "flag", "what it is", "values", "unit", "default")
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
        number = _TYPES[one.numbers.kind]
        return f"text, {number} or a list of such" if one.takes_lists else f"text or {number}"
    fresh = f", or `{RANDOM}` for a fresh one" if one.is_seed else ""
    return "a path" if one.is_path else (allowed(one) or _TYPES[one.kind]) + fresh


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


def allowed(one: Setting) -> str:
    """Allowed values of a setting, in words, with powers in the place of long numbers."""
    return re.sub(r"\d{6,}", lambda number: _power(int(number[0])), one.allowed)


def _power(number: int) -> str:
    """A number as a power of ten or two where it is one, or one less."""
    digits, bits = len(str(number)) - 1, (number + 1).bit_length() - 1
    near = {10**digits: f"10^{digits}", 2**bits: f"2^{bits}", 2**bits - 1: f"2^{bits} - 1"}
    return near.get(number, str(number))


if __name__ == "__main__":
    sys.stdout.write(page(job_of(name).config for name in FOLDERS))
