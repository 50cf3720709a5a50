"""Files of problems: text formats with a term a line, the table of all formats, and reading and writing of files."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spinsim.errors import InputError
from spinsim.inputs.numbers import check_word
from spinsim.inputs.texts import count
from spinsim.machine.files import write_outputs
from spinsim.machine.memory import require
from spinsim.model.formats import bqm_file
from spinsim.model.formats.source import (
    COMMENT,
    MOST_SITES,
    Source,
    Terms,
    by_suffix,
    check_sites,
    is_number,
    lines_of,
    note_text,
    number,
)
from spinsim.model.quadratic import (
    BINARY,
    LARGEST_VALUE,
    SPIN,
    Ends,
    Labels,
    Quadratic,
    Values,
    one_half,
    pair_numbers,
    plain_label,
    site_of,
)

_QBSOLV_COMMENT: Final = "[cC#]"  # c begins a comment, whatever follows it
_COO_SITES: Final = 2**16
_COO_SITES_A_TERM: Final = 100
_TWO_NUMBERS: Final = re.compile(r"\s*([+-]?\d{1,18})\s+([+-]?\d{1,18})\s*", re.ASCII)
_COO: Final = re.compile(r"\s*#.*?\bvartype[:=]\s*(\w+)\s*", re.ASCII)
_QBSOLV: Final = re.compile(r"\s*p\s+qubo\s+(?:0|unconstrained)((?:\s+\d{1,18}){3})\s*", re.ASCII | re.IGNORECASE)
_HEADER: Final = re.compile(
    r"\s*%%MatrixMarket\s+matrix\s+(coordinate|array)\s+(real|integer|double|pattern)\s+(general|symmetric)\s*",
    re.ASCII | re.IGNORECASE,
)
_QOBLIB: Final = re.compile(r"\s*#\s*(ObjectiveOffset|Vars Non-zeros)(?!\S)")
_VARTYPE: Final = re.compile(r"[ \t]*%.*?\bvartype[:=]\s*(\w+)", re.ASCII)
_SIZES: Final = re.compile(r"\s*(\d{1,18})\s+(\d{1,18})(?:\s+(\d{1,18}))?\s*", re.ASCII)


def announced(
    source: Source, header: int, comments: str = "", unweighted: bool = False, least: int = 1
) -> tuple[int, Terms]:
    """The number of sites, ``least`` or more, and the terms that a line ``n m`` announces, sites from 1."""
    match = _TWO_NUMBERS.fullmatch(source.line(header))
    if not match:
        raise source.unknown(header)
    sites, bonds = (int(text) for text in match.groups())
    check_sites(source, header, sites, "n", least)
    if bonds < 0:
        raise source.refusal(header, f"m = {bonds} is not a number of bonds: give the number of lines i j w")
    terms = Terms(source, header, 1, sites, comments, unweighted)
    terms.check_number(bonds)
    return sites, terms


def is_qoblib(source: Source) -> bool:
    return source.suffix == ".qs" or any(map(_QOBLIB.match, source.above()))


def read_biq_mac(source: Source) -> Quadratic:
    """A QUBO problem of the Biq Mac Library or of QOBLIB: minimise x' Q x plus a constant.

    Comments ``#``, of which ``# ObjectiveOffset c`` states the constant, then ``n m`` and m lines ``i j q`` with sites
    from 1. Q is symmetric and each of its pairs stands there once: x_i x_j has the value 2 q.

    Sources: the input format of the Biq Mac solver; A. Wiegele, Biq Mac Library (2007); T. Koch et al., Quantum
    Optimization Benchmarking Library (2025), whose files Zimpl writes.
    """
    sites, terms = announced(source, source.first_beyond(), COMMENT, least=0)
    terms.check_room(sites)
    terms.demand(
        ~repeated(terms.ends, sites), "this pair stands above already, and Q is symmetric: delete the line and lower m"
    )
    values = np.where(terms.ends[:, 0] == terms.ends[:, 1], terms.values, 2 * terms.values)
    return source.with_note(Quadratic(sites, terms.ends - 1, values, BINARY, labels=range(1, sites + 1)))


def repeated(ends: Ends, sites: int) -> npt.NDArray[np.bool_]:
    """True for each term whose pair occurs in a term above, in either order; sites count up to ``sites``."""
    again = np.ones(len(ends), np.bool_)
    again[np.unique(pair_numbers(ends, sites + 1), return_index=True)[1]] = False
    return again


def write_biq_mac(problem: Quadratic) -> bytes:
    binary = problem.of_vartype(BINARY)
    return (note_text(problem, "#", 1, offset=binary.offset) + _biq_mac(binary)).encode()


def write_qoblib(problem: Quadratic) -> bytes:
    binary = problem.of_vartype(BINARY)
    comments = f"{note_text(problem, '#', 1)}# ObjectiveOffset {number(binary.offset)}\n# Vars Non-zeros\n"
    return (comments + _biq_mac(binary)).encode()


def _biq_mac(binary: Quadratic) -> str:
    ends, values, diagonal = binary.each_once()
    values[diagonal:] /= 2
    return f"{binary.sites} {len(ends)}\n{lines_of(np.sort(ends, axis=1) + 1, values)}"


def _coo_header(source: Source) -> int | None:
    """Line of the comment above the first term that states the type of the variables; None without one."""
    return next((at for at, line in enumerate(source.above(), 1) if _COO.match(line)), None)


def read_coo(source: Source) -> Quadratic:
    """Dimod's COO file: ``# vartype=SPIN`` or ``# vartype=BINARY``, then ``i j value`` with sites from 0.

    i = i is a linear term; other lines with ``#`` are comments, of which ``# offset=c`` states the constant. dimod
    minimises sum h s + sum J s s: our J and h are minus its values. If few of the numbers up to the largest occur,
    numbers are labels, and only numbers that occur are sites.

    Source: ``dimod.serialization.coo``.
    """
    header = _coo_header(source) or source.first
    match = _COO.match(source.line(header))
    vartype = match[1].upper() if match else ""
    if vartype not in (SPIN, BINARY):
        raise source.unknown(header)
    terms = Terms(source, header, 0, MOST_SITES - 1, COMMENT)
    sites, ends, labels = int(terms.ends.max(initial=-1)) + 1, terms.ends, None
    if sites > max(_COO_SITES, _COO_SITES_A_TERM * len(terms)):
        numbers, places = np.unique(ends, return_inverse=True)
        sites, ends, labels = len(numbers), places.reshape(-1, 2), tuple(numbers.tolist())
    terms.check_room(sites)
    loops = ends[:, 0] == ends[:, 1]
    is_maxcut = source.note.is_maxcut and vartype == SPIN and not terms.values[loops].any()
    return source.with_note(Quadratic(sites, ends, terms.values, vartype, labels=labels, is_maxcut=is_maxcut))


def write_coo(problem: Quadratic) -> bytes:
    """The file of a problem; variables without a term have one of value 0, so that none is lost."""
    bare = np.setdiff1d(np.arange(problem.sites), problem.ends)
    ends = np.concatenate([problem.ends, np.stack([bare, bare], axis=1)])
    values = np.append(problem.values, np.zeros(len(bare)))
    note = note_text(problem, "#", 0, offset=problem.offset, maxcut=problem.is_maxcut)
    return f"# vartype={problem.vartype}\n{note}{lines_of(ends, values)}".encode()


def read_qbsolv(source: Source) -> Quadratic:
    """Qbsolv's QUBO file: comments ``c ...``, ``p qubo 0 maxNodes nDiagonals nElements``, then ``i j value``.

    Sites count from 0; i = j are diagonals, others are elements; elements of a pair add, in either order.

    Source: the README of github.com/dwavesystems/qbsolv.
    """
    header = source.first_beyond(_QBSOLV_COMMENT)
    match = _QBSOLV.fullmatch(source.line(header))
    if not match:
        raise source.unknown(header)
    sites, diagonals, elements = (int(text) for text in match[1].split())
    check_sites(source, header, sites, "maxNodes", least=0)
    terms = Terms(source, header, 0, sites - 1, _QBSOLV_COMMENT)
    first, second = terms.ends.T
    for name, announced, counted in (
        ("diagonal", diagonals, np.count_nonzero(first == second)),
        ("element", elements, np.count_nonzero(first != second)),
    ):
        if counted != announced:
            raise source.refusal(
                header,
                f"the number of {name} lines below is {counted}, not {announced}: correct the count or the lines",
            )
    terms.check_room(sites)
    return source.with_note(Quadratic(sites, terms.ends, terms.values, BINARY))


def write_qbsolv(problem: Quadratic) -> bytes:
    binary = problem.of_vartype(BINARY)
    ends, values, diagonals = binary.each_once()
    note = note_text(problem, "c", 0, offset=binary.offset)
    head = f"{note}p qubo 0 {problem.sites} {diagonals} {len(ends) - diagonals}\n"
    return f"{head}{lines_of(np.sort(ends, axis=1), values)}".encode()


def read_matrix_market(source: Source) -> Quadratic:
    """A matrix in the MatrixMarket form of NIST, which ``scipy.io`` reads and writes.

    By default the matrix holds the weights of a graph, a MaxCut instance: symmetric or triangular, without a diagonal.
    A comment ``% vartype=BINARY`` makes it a QUBO, x' Q x. ``% vartype=SPIN`` makes it a problem of spins as in COO
    files: each pair once, linear terms on the diagonal.
    Source: R. F. Boisvert, R. Pozo, K. A. Remington, NIST Interagency Report 5935 (1996).
    """
    first = source.first_beyond()
    header = _HEADER.fullmatch(source.line(first))
    if not header:
        raise source.refusal(
            first,
            "only real matrices are problems: write '%%MatrixMarket matrix coordinate real symmetric', or array for "
            "coordinate, integer or pattern for real, general for symmetric",
        )
    form, field, symmetry = (word.lower() for word in header.groups())
    at = source.first_beyond(f"{COMMENT}|%")
    sizes = _SIZES.fullmatch(source.line(at))
    if not sizes or (sizes[3] is None) != (form == "array") or (form == "array" and field == "pattern"):
        raise source.refusal(at, "it should hold the numbers of rows, columns and, of a coordinate file, entries")
    sites = int(sizes[1])
    if sites != int(sizes[2]):
        raise source.refusal(at, "the matrix of a problem is square: give as many columns as rows")
    check_sites(source, at, sites, "the number of rows", least=0)
    if form == "array":
        ends, values = _array(source, at, sites, symmetry == "symmetric")
    else:
        terms = Terms(source, at, 1, sites, "%", unweighted=field == "pattern")
        terms.check_number(int(sizes[3]))
        terms.check_room(sites)
        ends, values = terms.ends - 1, terms.values
    if symmetry == "symmetric" and (ends[:, 0] < ends[:, 1]).any() and (ends[:, 0] > ends[:, 1]).any():
        raise InputError(
            f"{source.name} is said to be symmetric but has entries on both sides of the diagonal: give those below it "
            "alone, or write general for symmetric"
        )
    kind = _kind(source, first)
    if kind != BINARY and symmetry == "general":
        half = one_half(ends, values)
        if half is None:
            raise InputError(
                f"{source.name} is neither symmetric nor triangular, though its pairs count once: give each once"
            )
        ends, values = half
    elif kind == BINARY and symmetry == "symmetric":
        values = np.where(ends[:, 0] == ends[:, 1], values, 2 * values)
    if not kind and (values[ends[:, 0] == ends[:, 1]] != 0).any():
        raise InputError(
            f"{source.name} has entries on the diagonal, but a graph has no bond from a site to itself: write "
            "'% vartype=BINARY' below its first line for a QUBO, '% vartype=SPIN' for spins"
        )
    return source.with_note(
        Quadratic(sites, ends, values, kind or SPIN, labels=range(1, sites + 1), is_maxcut=not kind)
    )


def _kind(source: Source, header: int) -> str:
    """The vartype that a comment below the header names, empty where there is none."""
    if source.note.vartype:
        return source.note.vartype
    for at, line in enumerate(source.lines[header:], header + 1):
        if line.strip() and line.lstrip()[0] != "%":
            break
        if match := _VARTYPE.match(line):
            if match[1].upper() not in (SPIN, BINARY):
                raise source.refusal(at, "this vartype is unknown: write SPIN or BINARY")
            return match[1].upper()
    return ""


def _array(source: Source, header: int, sites: int, symmetric: bool) -> tuple[Ends, Values]:
    """Entries of a dense matrix that are not 0: a value a line, column by column, from the diagonal on if symmetric."""
    many = sites * (sites + 1) // 2 if symmetric else sites**2
    body = source.below(header, "%")
    words = [(at, word) for at, line in enumerate(body, header + 1) for word in line.split()]
    if len(words) != many:
        raise source.refusal(header, f"{len(words)} of {many} values follow: correct the size or the values")
    for at, word in words:
        if not is_number(word) or not abs(float(word)) < LARGEST_VALUE:
            raise source.refusal(at, f"{word[:20]!r} is no value: write a finite number below 1e300")
        check_word(word, f"the value in line {at} of {source.name}")
    require(64.0 * many, f"reading {source.name}")
    columns, rows = np.triu_indices(sites) if symmetric else (part.ravel() for part in np.indices((sites, sites)))
    values = np.array([float(word) for _, word in words])
    present = values != 0
    return np.stack([rows, columns], axis=1)[present].astype(np.int64), values[present]


def write_matrix_market(problem: Quadratic) -> bytes:
    ends, values, diagonal = problem.each_once()
    ends, symmetry, vartype = np.sort(ends, axis=1), "general", f"% vartype={problem.vartype}\n"
    if problem.is_maxcut:
        ends, values, symmetry, vartype = ends[diagonal:, ::-1], values[diagonal:], "symmetric", ""
    note = note_text(problem, "%", 1, offset=problem.offset)
    head = f"%%MatrixMarket matrix coordinate real {symmetry}\n{vartype}{note}"
    return f"{head}{problem.sites} {problem.sites} {len(ends)}\n{lines_of(ends + 1, values)}".encode()


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
    """Ends and weights of the bonds of a problem; InputError unless it is a graph alone."""
    _, linear, ends, weights = problem.split()
    if problem.vartype != SPIN or np.any(linear) or problem.offset:
        raise InputError("a graph has no fields, constant or binary variables: give a suffix such as .coo or .bqm")
    return ends, weights


def read_edge_list(source: Source) -> Quadratic:
    """A MaxCut graph: lines ``u v`` or ``u v w`` of any words.

    Lines with ``#`` or ``%`` are comments. Words that are whole numbers are numbers, others are texts; sites stand in
    the order in which the lines name them first. ``{}`` behind the two words, which NetworkX writes, is ignored.
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
            raise source.refusal(at, "attributes in braces are not read: write it by networkx.write_weighted_edgelist")
        width = width or len(columns)
        if len(columns) != width or width not in (2, 3):
            raise source.refusal(at, "all lines of an edge list have two words and perhaps a weight: correct it")
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
    """The file of a problem without fields and a constant; a comment lists labels that words cannot express."""
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
    """Words that are read as these labels in this order; None where words cannot express them."""
    places, first = np.unique(ends, return_index=True)
    if len(places) < len(names) or (np.diff(first) <= 0).any():
        return None
    words = [name if type(name) is str else str(name) if type(name) is int else "" for name in names]
    fits = (_WORD.fullmatch(word) and _label(word) == name for word, name in zip(words, names, strict=True))
    return words if all(fits) else None


class Format(NamedTuple):
    """A format of instance files."""

    name: str  # in words
    suffixes: tuple[str, ...]  # suffixes of files that are written in it
    recognises: Callable[[Source], bool] | None  # returns True for a file of this format; None: by suffix
    read: Callable[[Source], Quadratic]  # the problem of such a file
    write: Callable[[Quadratic], bytes]  # the content of such a file

    def fits(self, source: Source) -> bool:
        return self.recognises(source) if self.recognises else source.suffix in self.suffixes


def _begins(pattern: str, comments: str = COMMENT) -> Callable[[Source], bool]:
    """Return a function that is True for files whose first line beyond comments begins with ``pattern``."""
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
    Format("edge list", (".edgelist", ".edges", ".el", ".wel"), None, read_edge_list, write_edge_list),
    Format("Biq Mac QUBO", (".sparse", ".bq"), None, read_biq_mac, write_biq_mac),
    Format("QOBLIB", (".qs",), is_qoblib, read_biq_mac, write_qoblib),
    Format("MatrixMarket", (".mtx", ".mm"), _begins("%"), read_matrix_market, write_matrix_market),
    Format("COO", (".coo",), lambda source: _coo_header(source) is not None, read_coo, write_coo),
    Format("qbsolv", (".qubo",), _begins(r"p\s+qubo\b", _QBSOLV_COMMENT), read_qbsolv, write_qbsolv),
    Format("DIMACS", (".dimacs", ".col", ".clq"), _begins(r"p\s"), read_dimacs, write_dimacs),
    Format("rudy", (".mc", ".rud", ".rudy", ".txt"), lambda _: True, read_rudy, write_rudy),
)
"""Formats in the order in which they are tried: the first that recognises a file reads it."""


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
