"""Edge lists, suffix .edgelist or .edges: lines ``u v`` or ``u v w`` of any words, a MaxCut graph.

Lines with ``#`` are comments. Words that are whole numbers are numbers, others are texts; sites stand in the order in
which the lines name them first. ``{}`` behind the two words, which NetworkX writes, says nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Hashable
from typing import Final

import numpy as np

from spinsim.inputs.checks import check_word
from spinsim.model.formats.lines import weights_of
from spinsim.model.formats.source import Source
from spinsim.model.formats.terms import is_number, number
from spinsim.model.problems.labels import Labels, plain_label, site_of
from spinsim.model.problems.quadratic import LARGEST_VALUE, Ends, Quadratic

_WHOLE: Final = re.compile(r"0|-?[1-9]\d{0,17}", re.ASCII)
_WORD: Final = re.compile(r"[^\s#{}]+")


def read(source: Source) -> Quadratic:
    labels = source.note.labels
    known: dict[Hashable, int] = {} if labels is None else {place: place for place in range(len(labels))}
    sites = len(known)
    terms, weights, width = [], [], 0
    for at, line in enumerate(source.lines, 1):
        columns = line.split()
        if not columns or columns[0][0] == "#":
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


def write(problem: Quadratic) -> bytes:
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
