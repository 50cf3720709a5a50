"""Files of problems: by which format one is read into a ``Quadratic``, and written."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from spinsim.errors import InputError
from spinsim.machine.outputs import write_outputs
from spinsim.model.formats import bqm_file, edge_list, lines, matrix_market
from spinsim.model.formats.source import Source
from spinsim.model.problems.quadratic import Quadratic


class Format(NamedTuple):
    """A format of instance files.

    Attributes:
        name: In words.
        suffixes: Of files that are written in it.
        recognises: Whether a file is of it.
        read: The problem of such a file.
        write: The content of such a file.
    """

    name: str
    suffixes: tuple[str, ...]
    recognises: Callable[[Source], bool]
    read: Callable[[Source], Quadratic]
    write: Callable[[Quadratic], bytes]


def _begins(characters: str) -> Callable[[Source], bool]:
    return lambda source: source.line(source.first).lstrip()[0] in characters


def _ends(*suffixes: str) -> Callable[[Source], bool]:
    return lambda source: source.suffix in suffixes


FORMATS: Final = (
    Format(
        "BQM file of dimod",
        (".bqm",),
        lambda source: source.data.startswith(bqm_file.MAGIC),
        bqm_file.read,
        bqm_file.write,
    ),
    Format("edge list", (".edgelist", ".edges"), _ends(".edgelist", ".edges"), edge_list.read, edge_list.write),
    Format("Biq Mac QUBO", (".sparse",), _ends(".sparse"), lines.read_biq_mac, lines.write_biq_mac),
    Format("MatrixMarket", (".mtx", ".mm"), _begins("%"), matrix_market.read, matrix_market.write),
    Format("COO", (".coo",), _begins("#"), lines.read_coo, lines.write_coo),
    Format("qbsolv", (".qubo",), _begins("cCpP"), lines.read_qbsolv, lines.write_qbsolv),
    Format("rudy", (".mc", ".rud", ".rudy", ".txt"), lambda _: True, lines.read_rudy, lines.write_rudy),
)
"""In the order in which a file is tried: the first that recognises it reads it."""


def write_instance(problem: Quadratic, path: str | os.PathLike[str], overwrite: bool = False) -> None:
    """Write a problem into a file of the format that its suffix names.

    Args:
        problem: With all it has: values to the last digit, the constant and the labels.
        path: Of the file.
        overwrite: Whether an instance file that is there may be replaced.
    """
    suffix = Path(path).suffix.lower()
    found = next((each for each in FORMATS if suffix in each.suffixes), None)
    if found is None:
        known = ", ".join(f"{each.suffixes[0]} ({each.name})" for each in FORMATS)
        raise InputError(f"suffix {suffix!r} of {path} names no format of instances: choose one of {known}")
    write_outputs({Path(path): ("instance", found.write(problem))}, overwrite)
