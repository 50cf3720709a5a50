"""Formats of graphs whose largest cut is wanted: rudy, DIMACS and lists of edges."""

from __future__ import annotations

import json
import re
from collections.abc import Hashable
from typing import Final

import numpy as np

from spinsim.errors import InputError
from spinsim.inputs.checks import check_word
from spinsim.inputs.texts import count
from spinsim.model.formats.lines import announced, repeated
from spinsim.model.formats.source import COMMENT, Source, Terms, check_sites, is_number, lines_of, note_text, number
from spinsim.model.problems.labels import Labels, plain_label, site_of
from spinsim.model.problems.quadratic import LARGEST_VALUE, SPIN, Ends, Quadratic, Values, one_half

_DIMACS: Final = re.compile(r"\s*p\s+(?:edges?|col|clq)\s+(\d{1,18})\s+(\d{1,18})\s*", re.ASCII | re.IGNORECASE)
_WHOLE: Final = re.compile(r"0|-?[1-9]\d{0,17}", re.ASCII)
_WORD: Final = re.compile(r"[^\s#%{}][^\s#{}]*")


def read_rudy(source: Source) -> Quadratic:
    """A MaxCut graph: ``n m``, then m lines ``i j w``, or ``i j`` of weight 1, sites from 1; comments stand above.

    Sources: C. Helmberg, F. Rendl, SIAM J. Optim. 10, 673 (2000), for the G-set, made with G. Rinaldi's generator rudy;
    A. Wiegele, Biq Mac Library (2007).
    """
    sites, terms = announced(source, source.first_beyond(), unweighted=True)
    terms.demand(
        terms.ends[:, 0] != terms.ends[:, 1],
        "a bond of a graph joins two different sites: give a QUBO of the Biq Mac Library the suffix .sparse or .bq, in "
        "a graph delete the line and lower m",
    )
    terms.check_room(sites)
    return Quadratic(
        sites, terms.ends - 1, terms.values, labels=range(1, sites + 1), is_maxcut=True, name=source.model_name
    )


def write_rudy(problem: Quadratic) -> bytes:
    ends, weights = weights_of(problem)
    names = problem.names
    if not isinstance(names, range) or names.start not in (0, 1):
        raise InputError("a rudy file has no room for labels: give another suffix, such as .mtx or .edgelist")
    return f"{problem.sites} {len(weights)}\n{lines_of(ends + 1, weights)}".encode()


def read_dimacs(source: Source) -> Quadratic:
    """A graph of the DIMACS challenges: ``p edge n m``, or ``p col``, then lines ``e i j``, sites from 1.

    Edges have weight 1, or a weight behind the sites, all of them. Each counts once, also in files that list all of
    them in both directions; m may be the number of edges or twice that number, as both are in use.

    Source: D. S. Johnson, M. A. Trick (editors), Cliques, Coloring, and Satisfiability (1996).
    """
    header = source.first_beyond()
    match = _DIMACS.fullmatch(source.line(header))
    if not match:
        raise source.unknown(header)
    sites, edges = (int(text) for text in match.groups())
    check_sites(source, header, sites, "n")
    terms = Terms(source, header, 1, sites, COMMENT, unweighted=True, mark="e")
    terms.demand(terms.ends[:, 0] != terms.ends[:, 1], "an edge joins two different sites: delete the line and lower m")
    ends, values = one_half(terms.ends, terms.values) or (terms.ends, terms.values)
    is_counted = terms.ends[:, 0] < terms.ends[:, 1] if len(ends) < len(terms) else np.ones(len(terms), np.bool_)
    is_again = np.zeros(len(terms), np.bool_)
    is_again[is_counted] = repeated(ends, sites)
    terms.demand(~is_again, "this edge stands above already: delete the line and lower m")
    if edges not in (len(ends), 2 * len(ends)):
        raise source.refusal(header, f"m = {edges} does not fit {count(len(ends), 'edge')}: correct m or the lines")
    terms.check_room(sites)
    return source.with_note(Quadratic(sites, ends - 1, values, labels=range(1, sites + 1), is_maxcut=True))


def write_dimacs(problem: Quadratic) -> bytes:
    ends, weights = weights_of(problem)
    terms = lines_of(ends + 1, None if (weights == 1).all() else weights, "e ")
    return f"{note_text(problem, 'c', 1)}p edge {problem.sites} {len(weights)}\n{terms}".encode()


def weights_of(problem: Quadratic) -> tuple[Ends, Values]:
    """Ends and weights of the bonds of a problem that is one of a graph alone."""
    _, linear, ends, weights = problem.split()
    if problem.vartype != SPIN or np.any(linear) or problem.offset:
        raise InputError(
            "a graph has no fields, no constant and no binary variables: give another suffix, such as .coo or .bqm"
        )
    return ends, weights


def read_edge_list(source: Source) -> Quadratic:
    """A MaxCut graph: lines ``u v`` or ``u v w`` of any words.

    Lines with ``#`` or ``%`` are comments. Words that are whole numbers are numbers, others are texts; sites stand in
    the order in which the lines name them first. ``{}`` behind the two words, which NetworkX writes, says nothing.
    """
    labels = source.note.labels
    known: dict[Hashable, int] = {} if labels is None else {place: place for place in range(len(labels))}
    sites = len(known)
    terms, weights, width = [], [], 0
    for at, line in enumerate(source.lines, 1):
        columns = line.split()
        if not columns or columns[0][0] in "#%":
            continue
        if columns[2:] == ["{}"]:
            del columns[2:]
        if len(columns) > 2 and columns[2][0] == "{":
            raise source.refusal(
                at, "attributes in braces are not read: write the file by networkx.write_weighted_edgelist"
            )
        width = width or len(columns)
        if len(columns) != width or width not in (2, 3):
            raise source.refusal(
                at, "lines of an edge list have two words and perhaps a weight, all of them: correct it"
            )
        if width == 3 and not (is_number(columns[2]) and abs(float(columns[2])) < LARGEST_VALUE):
            raise source.refusal(at, f"{columns[2][:20]!r} is no weight: write a finite number below 1e300")
        check_word(columns[-1] if width == 3 else "", f"the weight in line {at} of {source.name}")
        first, second = (site_of(known, _label(word)) for word in columns[:2])
        if first == second:
            raise source.refusal(at, "a bond joins two different sites: delete the line")
        if labels is not None and len(known) > sites:
            raise source.refusal(at, f"sites are numbered 0 to {sites - 1} where labels are listed: correct the index")
        terms.append((first, second))
        weights.append(float(columns[2]) if width == 3 else 1.0)
    if not known:
        raise source.refusal(source.first, "no bond follows: add lines u v")
    ends = np.array(terms, np.int64).reshape(-1, 2)
    problem = Quadratic(len(known), ends, np.array(weights), labels=tuple(known), is_maxcut=True)
    return source.with_note(problem)


def _label(word: str) -> Hashable:
    return int(word) if _WHOLE.fullmatch(word) else word


def write_edge_list(problem: Quadratic) -> bytes:
    """The file of a problem without fields and a constant; a comment lists labels that words cannot tell."""
    ends, weights = weights_of(problem)
    words, note = _words(problem.names, ends), ""
    if words is None:
        note = f"# spinsim: {json.dumps({'labels': [plain_label(name) for name in problem.names]})}\n"
        words = [str(place) for place in range(problem.sites)]
    if (weights == 1).all():
        return (note + "".join(f"{words[i]} {words[j]}\n" for i, j in ends.tolist())).encode()
    pairs = zip(ends.tolist(), weights.tolist(), strict=True)
    return (note + "".join(f"{words[i]} {words[j]} {number(value)}\n" for (i, j), value in pairs)).encode()


def _words(names: Labels, ends: Ends) -> list[str] | None:
    """Words that are read as these labels in this order; None where there are none."""
    places, first = np.unique(ends, return_index=True)
    if len(places) < len(names) or (np.diff(first) <= 0).any():
        return None
    words = [name if type(name) is str else str(name) if type(name) is int else "" for name in names]
    fits = (_WORD.fullmatch(word) and _label(word) == name for word, name in zip(words, names, strict=True))
    return words if all(fits) else None
