"""QUBO problems of the Biq Mac Library, suffix .sparse: minimise x' Q x.

Comments ``#``, then ``n m`` and m lines ``i j q`` with sites from 1. Q is symmetric and each of its pairs stands there
once: x_i x_j has the value 2 q.

Source: the input format of the Biq Mac solver; A. Wiegele, Biq Mac Library (2007).
"""

from __future__ import annotations

import re
from typing import Final

import numpy as np

from spinsim.model.formats.rudy import header_of
from spinsim.model.formats.source import Source, note_text
from spinsim.model.formats.terms import Terms, lines_of
from spinsim.model.problems.quadratic import BINARY, Quadratic

_COMMENT: Final = re.compile(r"^[ \t]*#.*", re.MULTILINE)


def recognises(source: Source) -> bool:
    """By the suffix: the lines are those of a MaxCut graph."""
    return source.suffix == ".sparse"


def read(source: Source) -> Quadratic:
    """The problem of a file."""
    header = source.first_beyond("#")
    sites, entries = header_of(source, header)
    terms = Terms(source, header, 1, sites, _COMMENT)
    terms.check_number(entries)
    terms.check_room(sites)
    low, high = np.sort(terms.ends, axis=1).T
    _, first = np.unique(low * (sites + 1) + high, return_index=True)
    again = np.ones(len(terms), np.bool_)
    again[first] = False
    terms.demand(~again, "this pair stands above already, and Q is symmetric: delete the line and lower m")
    values = np.where(low == high, terms.values, 2 * terms.values)
    return source.with_note(Quadratic(sites, terms.ends - 1, values, BINARY, labels=range(1, sites + 1)))


def write(problem: Quadratic) -> bytes:
    """The file of a problem, in binary variables."""
    binary = problem.of_vartype(BINARY)
    linear, ends, pairs = binary.added_up()
    at = np.flatnonzero(linear)
    every = np.concatenate([np.stack([at, at], axis=1), np.sort(ends, axis=1)]) + 1
    note = note_text(problem, "#", 1, **({"offset": binary.offset} if binary.offset else {}))
    body = lines_of(every, np.concatenate([linear[at], pairs / 2]))
    return f"{note}{problem.sites} {len(every)}\n{body}".encode()
