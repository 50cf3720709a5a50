"""dimod's COO files: ``# vartype=SPIN`` or ``# vartype=BINARY``, then ``i j value`` with sites from 0.

i = i is a linear term; other lines with ``#`` are comments. dimod minimises sum h s + sum J s s: our J and h are minus
its values. Where nearly all numbers up to the largest never occur, numbers are names, and only those that occur are
sites.

Source: ``dimod.serialization.coo``.
"""

from __future__ import annotations

import re
from typing import Any, Final

import numpy as np

from spinsim.model.formats.source import Source, note_text
from spinsim.model.formats.terms import MOST_SITES, Terms, lines_of
from spinsim.model.problems.quadratic import BINARY, SPIN, Quadratic

_SITES_UNASKED: Final = 2**16
_SITES_A_TERM: Final = 100
_HEADER: Final = re.compile(r"\s*#.*?\bvartype[:=]\s*(\w+)\s*", re.ASCII)
_COMMENT: Final = re.compile(r"^[ \t]*#.*", re.MULTILINE)


def recognises(source: Source) -> bool:
    """By the first character."""
    return source.line(source.first).lstrip()[0] == "#"


def read(source: Source) -> Quadratic:
    """The problem of a file."""
    header = source.first
    match = _HEADER.match(source.line(header))
    vartype = match[1].upper() if match else ""
    if vartype not in (SPIN, BINARY):
        raise source.unknown(header)
    terms = Terms(source, header, 0, MOST_SITES - 1, _COMMENT)
    if not len(terms):
        raise source.refusal(header, "no term follows: add lines i j value")
    sites, ends, labels = int(terms.ends.max()) + 1, terms.ends, None
    if sites > max(_SITES_UNASKED, _SITES_A_TERM * len(terms)):
        found, places = np.unique(ends, return_inverse=True)
        sites, ends, labels = len(found), places.reshape(-1, 2), tuple(found.tolist())
    terms.check_room(sites)
    loops = ends[:, 0] == ends[:, 1]
    is_maxcut = source.note.is_maxcut and vartype == SPIN and not terms.values[loops].any()
    return source.with_note(Quadratic(sites, ends, terms.values, vartype, labels=labels, is_maxcut=is_maxcut))


def write(problem: Quadratic) -> bytes:
    """The file of a problem; variables without a term have one of value 0, so that none is lost."""
    beside: dict[str, Any] = {"offset": problem.offset} if problem.offset else {}
    if problem.is_maxcut:
        beside["maxcut"] = True
    bare = np.setdiff1d(np.arange(problem.sites), problem.ends)
    ends = np.concatenate([problem.ends, np.stack([bare, bare], axis=1)])
    values = np.append(problem.values, np.zeros(len(bare)))
    note = note_text(problem, "#", 0, **beside)
    return f"# vartype={problem.vartype}\n{note}{lines_of(ends, values)}".encode()
