"""qbsolv's QUBO files: comments ``c ...``, a line ``p qubo 0 maxNodes nDiagonals nElements``, then ``i j value``.

Sites count from 0; i = j are diagonals, elements have i < j.

Source: the README of github.com/dwavesystems/qbsolv.
"""

from __future__ import annotations

import re
from typing import Final

import numpy as np

from spinsim.model.formats.source import Source, note_text
from spinsim.model.formats.terms import Terms, check_sites, lines_of
from spinsim.model.problems.quadratic import BINARY, Quadratic

_HEADER: Final = re.compile(r"\s*p\s+qubo\s+(?:0|unconstrained)((?:\s+\d{1,18}){3})\s*", re.ASCII | re.IGNORECASE)
_COMMENT: Final = re.compile(r"^[ \t]*[cC].*", re.MULTILINE)


def recognises(source: Source) -> bool:
    """By the first character."""
    return source.line(source.first).lstrip()[0] in "cCpP"


def read(source: Source) -> Quadratic:
    """The problem of a file."""
    header = source.first_beyond("cC")
    match = _HEADER.fullmatch(source.line(header))
    if not match:
        raise source.unknown(header)
    sites, diagonals, elements = (int(text) for text in match[1].split())
    check_sites(source, header, sites, "maxNodes")
    terms = Terms(source, header, 0, sites - 1, _COMMENT)
    first, second = terms.ends.T
    terms.demand(first <= second, "an element of a qbsolv file has i < j: swap the two indices")
    for name, announced, found in (
        ("diagonal", diagonals, np.count_nonzero(first == second)),
        ("element", elements, np.count_nonzero(first < second)),
    ):
        if found != announced:
            raise source.refusal(
                header, f"the number of {name} lines below is {found}, not {announced}: correct the count or the lines"
            )
    terms.check_room(sites)
    return source.with_note(Quadratic(sites, terms.ends, terms.values, BINARY))


def write(problem: Quadratic) -> bytes:
    """The file of a problem, in binary variables."""
    binary = problem.of_vartype(BINARY)
    linear, ends, pairs = binary.added_up()
    at = np.flatnonzero(linear)
    note = note_text(problem, "c", 0, **({"offset": binary.offset} if binary.offset else {}))
    diagonals = lines_of(np.stack([at, at], axis=1), linear[at])
    elements = lines_of(np.sort(ends, axis=1), pairs)
    return f"{note}p qubo 0 {problem.sites} {len(at)} {len(pairs)}\n{diagonals}{elements}".encode()
