"""Matrices in the MatrixMarket form of NIST, which ``scipy.io`` reads and writes.

Without more, the matrix is that of the weights of a graph, a MaxCut instance: symmetric or triangular, without a
diagonal. A comment ``% vartype=BINARY`` makes it a QUBO, x' Q x, and ``% vartype=SPIN`` the values of spins that COO
files have: each pair once, linear terms on the diagonal.

Source: R. F. Boisvert, R. Pozo, K. A. Remington, NIST Interagency Report 5935 (1996).
"""

from __future__ import annotations

import re
from typing import Final

import numpy as np

from spinsim.errors import InputError
from spinsim.inputs.checks import check_word
from spinsim.machine.memory import require
from spinsim.model.formats.source import Source, Terms, check_sites, is_number, lines_of, note_text
from spinsim.model.problems.quadratic import BINARY, LARGEST_VALUE, SPIN, Ends, Quadratic, Values, one_half

_HEADER: Final = re.compile(
    r"\s*%%MatrixMarket\s+matrix\s+(coordinate|array)\s+(real|integer|double|pattern)\s+(general|symmetric)\s*",
    re.ASCII | re.IGNORECASE,
)
_VARTYPE: Final = re.compile(r"[ \t]*%.*?\bvartype[:=]\s*(\w+)", re.ASCII)
_SIZES: Final = re.compile(r"\s*(\d{1,18})\s+(\d{1,18})(?:\s+(\d{1,18}))?\s*", re.ASCII)


def read(source: Source) -> Quadratic:
    header = _HEADER.fullmatch(source.line(source.first))
    if not header:
        raise source.refusal(
            source.first,
            "only real matrices are problems: write '%%MatrixMarket matrix coordinate real symmetric', or array for "
            "coordinate, integer or pattern for real, general for symmetric",
        )
    form, field, symmetry = (word.lower() for word in header.groups())
    at = source.first_beyond("%")
    sizes = _SIZES.fullmatch(source.line(at))
    if not sizes or (sizes[3] is None) != (form == "array") or (form == "array" and field == "pattern"):
        raise source.refusal(at, "it should hold the numbers of rows, columns and, of a coordinate file, entries")
    sites = int(sizes[1])
    if sites != int(sizes[2]):
        raise source.refusal(at, "the matrix of a problem is square: give as many columns as rows")
    check_sites(source, at, sites, "the number of rows")
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
    kind = _kind(source)
    if kind != BINARY and symmetry == "general":
        half = one_half(ends, values)
        if half is None:
            raise InputError(
                f"{source.name} is neither symmetric nor triangular, though its pairs count once: give each of them "
                "once"
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


def _kind(source: Source) -> str:
    """The vartype that a comment names, empty where there is none."""
    if source.note.vartype:
        return source.note.vartype
    for number, line in enumerate(source.lines, 1):
        if line.strip() and line.lstrip()[0] != "%":
            break
        if match := _VARTYPE.match(line):
            if match[1].upper() not in (SPIN, BINARY):
                raise source.refusal(number, "this vartype is unknown: write SPIN or BINARY")
            return match[1].upper()
    return ""


def _array(source: Source, header: int, sites: int, symmetric: bool) -> tuple[Ends, Values]:
    """Entries of a dense matrix that are not 0: a value a line, column by column, from the diagonal on if symmetric."""
    many = sites * (sites + 1) // 2 if symmetric else sites**2
    body = source.below(header, "%")
    words = [(number, word) for number, line in enumerate(body, header + 1) for word in line.split()]
    if len(words) != many:
        raise source.refusal(header, f"{len(words)} of {many} values follow: correct the size or the values")
    for number, word in words:
        if not is_number(word) or not abs(float(word)) < LARGEST_VALUE:
            raise source.refusal(number, f"{word[:20]!r} is no value: write a finite number below 1e300")
        check_word(word, f"the value in line {number} of {source.name}")
    require(64.0 * many, f"reading {source.name}")
    columns, rows = np.triu_indices(sites) if symmetric else (part.ravel() for part in np.indices((sites, sites)))
    values = np.array([float(word) for _, word in words])
    present = values != 0
    return np.stack([rows, columns], axis=1)[present].astype(np.int64), values[present]


def write(problem: Quadratic) -> bytes:
    """The file of a problem: weights of a graph as a symmetric matrix, others as an upper triangular one."""
    ends, values, diagonal = problem.each_once()
    ends, symmetry, vartype = np.sort(ends, axis=1), "general", f"% vartype={problem.vartype}\n"
    if problem.is_maxcut:
        ends, values, symmetry, vartype = ends[diagonal:, ::-1], values[diagonal:], "symmetric", ""
    note = note_text(problem, "%", 1, offset=problem.offset)
    head = f"%%MatrixMarket matrix coordinate real {symmetry}\n{vartype}{note}"
    return f"{head}{problem.sites} {problem.sites} {len(ends)}\n{lines_of(ends + 1, values)}".encode()
