"""Configuration files: the tables ``[model]``, ``[run]`` and those of jobs, whose keys are the names of settings."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from spinsim.errors import InputError
from spinsim.machine.files import open_regular
from spinsim.settings.config import Config, tables_of
from spinsim.settings.setting import nearest

_LONGEST: Final = 2**20


def read_toml(path: str | Path, job: type[Config], jobs: Iterable[type[Config]]) -> dict[str, dict[str, Any]]:
    """The tables of a job's configuration file, their names and keys checked; those of other jobs are left out.

    Args:
        path: Of the file.
        job: Whose tables are wanted.
        jobs: All that there are, whose tables may stand in the same file.

    Raises:
        InputError: for a missing or malformed file and for unknown tables and keys, with the nearest valid name.
    """
    valid = {name: list(settings) for other in jobs for name, settings in tables_of(other).items()}
    tables = _parse(path)
    for name, table in tables.items():
        if name not in valid:
            raise InputError(f"configuration {path}: unknown table [{name}], {nearest(name, list(valid))}")
        if not isinstance(table, dict):
            raise InputError(f"configuration {path}: {name} must be a table: write [{name}] on a line of its own")
        for key in table:
            if key not in valid[name]:
                raise InputError(f"configuration {path}: unknown key {key!r} in [{name}], {nearest(key, valid[name])}")
    return {name: table for name, table in tables.items() if name in tables_of(job)}


def _parse(path: str | Path) -> dict[str, Any]:
    """What a TOML file holds.

    Raises:
        InputError: for a file that cannot be read and for one that is no TOML.
    """
    try:
        with open_regular(path) as file:
            text = file.read(_LONGEST + 1)
        if len(text) > _LONGEST:
            raise InputError(f"configuration {path} is longer than {_LONGEST} bytes: give a TOML file of settings")
        return tomllib.loads(text.decode())
    except InputError:
        raise
    except OSError as error:
        raise InputError(f"configuration {path} cannot be read ({error.strerror}): check its path") from error
    except UnicodeDecodeError as error:
        raise InputError(f"configuration {path} is no text in UTF-8: give a TOML file of settings") from error
    except (ValueError, RecursionError) as error:  # also integers of thousands of digits
        raise InputError(f"configuration {path} is not valid TOML ({error}): correct it there") from error
