"""MaxCut graphs: ``n m``, then m lines ``i j w``, or ``i j`` of weight 1, sites from 1.

Sources: C. Helmberg, F. Rendl, SIAM J. Optim. 10, 673 (2000), for the G-set, made with G. Rinaldi's generator rudy;
A. Wiegele, Biq Mac Library (2007).
"""

from __future__ import annotations

import re
from typing import Final

import numpy as np

from spinsim.errors import InputError
from spinsim.model.formats.source import Source
from spinsim.model.formats.terms import Terms, check_sites, lines_of
from spinsim.model.problems.quadratic import SPIN, Ends, Quadratic, Values

HEADER: Final = re.compile(r"\s*([+-]?\d{1,18})\s+([+-]?\d{1,18})\s*", re.ASCII)


def recognises(source: Source) -> bool:
    """Whatever nothing else takes."""
    return True


def header_of(source: Source, number: int) -> tuple[int, int]:
    """The numbers of sites and of bonds that a line announces.

    Raises:
        InputError: where it is no such line.
    """
    match = HEADER.fullmatch(source.line(number))
    if not match:
        raise source.unknown(number)
    sites, bonds = (int(text) for text in match.groups())
    check_sites(source, number, sites, "n")
    if bonds < 0:
        raise source.refusal(number, f"m = {bonds} is not a number of bonds: give the number of lines i j w")
    return sites, bonds


def read(source: Source) -> Quadratic:
    """The problem of a file."""
    sites, bonds = header_of(source, source.first)
    terms = Terms(source, source.first, 1, sites, unweighted=True)
    terms.check_number(bonds)
    terms.demand(terms.ends[:, 0] != terms.ends[:, 1], "a bond joins two different sites: delete the line and lower m")
    terms.check_room(sites)
    return Quadratic(
        sites, terms.ends - 1, terms.values, labels=range(1, sites + 1), is_maxcut=True, name=source.model_name
    )


def write(problem: Quadratic) -> bytes:
    """The file of a problem without fields, a constant and labels.

    Raises:
        InputError: for others.
    """
    ends, weights = weights_of(problem)
    names = problem.names
    if not isinstance(names, range) or names.start not in (0, 1):
        raise InputError("a rudy file has no room for labels: give another suffix, such as .mtx or .edgelist")
    return f"{problem.sites} {len(weights)}\n{lines_of(ends + 1, weights)}".encode()


def weights_of(problem: Quadratic) -> tuple[Ends, Values]:
    """Ends and weights of the bonds of a problem that is one of a graph alone.

    Raises:
        InputError: for other problems.
    """
    _, linear, ends, weights = problem.split()
    if problem.vartype != SPIN or np.any(linear) or problem.offset:
        raise InputError(
            "a graph has no fields, no constant and no binary variables: give another suffix, such as .coo or .bqm"
        )
    return ends, weights
