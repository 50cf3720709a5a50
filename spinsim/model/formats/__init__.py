"""Files of problems: by which format one is read into a ``Quadratic``, and written."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from spinsim.errors import InputError
from spinsim.machine.files import write_outputs
from spinsim.model.formats import bqm_file, text
from spinsim.model.formats.source import COMMENT, Source, by_suffix
from spinsim.model.quadratic import Quadratic


class Format(NamedTuple):
    """A format of instance files."""

    name: str  # in words
    suffixes: tuple[str, ...]  # suffixes of files that are written in it
    recognises: Callable[[Source], bool] | None  # returns True if a file is of it; None where the suffix says so
    read: Callable[[Source], Quadratic]  # the problem of such a file
    write: Callable[[Quadratic], bytes]  # the content of such a file

    def fits(self, source: Source) -> bool:
        return self.recognises(source) if self.recognises else source.suffix in self.suffixes


def _begins(pattern: str, comments: str = COMMENT) -> Callable[[Source], bool]:
    """Return a function that is True of files whose first line beyond comments begins so."""
    begin = re.compile(pattern, re.IGNORECASE)
    return lambda source: begin.match(source.line(source.first_beyond(comments)).lstrip()) is not None


FORMATS: Final = (
    Format(
        "BQM file of dimod",
        (".bqm",),
        lambda source: source.data.startswith(bqm_file.MAGIC),
        bqm_file.read,
        bqm_file.write,
    ),
    Format("edge list", (".edgelist", ".edges", ".el", ".wel"), None, text.read_edge_list, text.write_edge_list),
    Format("Biq Mac QUBO", (".sparse", ".bq"), None, text.read_biq_mac, text.write_biq_mac),
    Format("QOBLIB", (".qs",), text.is_qoblib, text.read_biq_mac, text.write_qoblib),
    Format("MatrixMarket", (".mtx", ".mm"), _begins("%"), text.read_matrix_market, text.write_matrix_market),
    Format("COO", (".coo",), text.is_coo, text.read_coo, text.write_coo),
    Format(
        "qbsolv",
        (".qubo",),
        _begins(r"p\s+qubo\b", text.QBSOLV_COMMENT),
        text.read_qbsolv,
        text.write_qbsolv,
    ),
    Format("DIMACS", (".dimacs", ".col", ".clq"), _begins(r"p\s"), text.read_dimacs, text.write_dimacs),
    Format("rudy", (".mc", ".rud", ".rudy", ".txt"), lambda _: True, text.read_rudy, text.write_rudy),
)
"""In the order in which a file is tried: the first that recognises it reads it."""


def read_problem(source: Source) -> Quadratic:
    return next(each for each in FORMATS if each.fits(source)).read(source)


def write_instance(problem: Quadratic, path: str | os.PathLike[str], overwrite: bool = False) -> None:
    """Write a problem, to the last digit, into a file of the format that its suffix names; .gz or .xz may follow it."""
    compression, plain = by_suffix(Path(path))
    suffix = plain.suffix.lower()
    chosen = next((each for each in FORMATS if suffix in each.suffixes), None)
    if chosen is None:
        known = ", ".join(f"{each.suffixes[0]} ({each.name})" for each in FORMATS)
        raise InputError(f"suffix {suffix!r} of {path} names no format of instances: choose one of {known}")
    content = chosen.write(problem)
    content = compression.compress(content) if compression else content
    write_outputs({Path(path): ("instance", content)}, overwrite)
