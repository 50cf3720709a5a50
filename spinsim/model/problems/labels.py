"""Labels of sites: any hashable objects, in the order given; in sentences, in JSON and as words."""

from __future__ import annotations

import json
import re
from collections.abc import Hashable, Iterable, Sequence
from typing import Any, Final

import numpy as np

from spinsim.errors import InputError, WrongTypeError
from spinsim.inputs.texts import shown

Labels = Sequence[Hashable]
_WORD: Final = re.compile(r"[^\W\d_][\w.:-]*")
_DEEPEST: Final = 100  # tuples within each other


def as_labels(labels: Any, sites: int) -> range | tuple[Hashable, ...]:
    """Different hashable labels of the sites in order, 0, 1, 2, ... for None: a ``range`` of whole numbers in a row."""
    if labels is None:
        return range(sites)
    if isinstance(labels, range) and len(labels) == sites and labels.step == 1:
        return labels
    if isinstance(labels, str | bytes) or not isinstance(labels, Iterable):
        raise WrongTypeError(f"labels of type {type(labels).__name__} are no list: give one label for each site")
    names = tuple(labels)
    for label in names:
        if isinstance(label, tuple):
            _check_depth(label)
    if len(names) != sites:
        raise InputError(f"{len(names)} labels do not fit {sites} sites: give one label for each site")
    try:
        are_different = len(set(names)) == len(names)
    except TypeError:  # told below
        are_different = False
    if not are_different:
        known: dict[Hashable, int] = {}
        for place, label in enumerate(names):
            if site_of(known, label) < place:
                raise InputError(f"label {shown(label)} stands for two sites: give different labels")
    if all(type(label) is int or isinstance(label, np.integer) for label in names):
        first = int(names[0]) if names else 0
        if names == tuple(range(first, first + sites)):
            return range(first, first + sites)
    return names


def _check_depth(label: tuple[Any, ...]) -> None:
    """Refuse a tuple of tuples of tuples ... that no file could hold."""
    depth, level = 0, [label]
    while level:
        depth += 1
        level = [part for one in level for part in one if isinstance(part, tuple)]
        if depth > _DEEPEST:
            raise InputError(f"label {shown(label)} is nested more than {_DEEPEST} deep: give flatter tuples, or texts")


def site_of(known: dict[Hashable, int], label: Any) -> int:
    """The site of a label, which gets the next one where it is new; it is added to those known."""
    try:
        return known.setdefault(label, len(known))
    except TypeError as error:
        raise WrongTypeError(f"label {shown(label)} is not hashable: give texts, numbers or tuples of them") from error


def plain_label(label: Any) -> Any:
    """A label as JSON has it: texts, numbers, true, false and null as they are, tuples as lists."""
    if isinstance(label, np.generic):
        label = label.item()
    if isinstance(label, tuple):
        return [plain_label(part) for part in label]
    if label is None or type(label) in (str, bool, int) or (type(label) is float and np.isfinite(label)):
        return label
    if isinstance(label, str):
        return str(label)
    raise InputError(f"label {shown(label)} has no form in a file: name sites by texts, numbers or tuples of them")


def label_of(plain: Any) -> Hashable:
    if isinstance(plain, list):
        return tuple(label_of(part) for part in plain)
    if isinstance(plain, dict) or (isinstance(plain, float) and not np.isfinite(plain)):
        raise InputError(f"label {shown(plain)} is none: give texts, numbers or lists of them")
    known: Hashable = plain
    return known


def plain_or_shown(label: Hashable) -> Any:
    """A label as JSON has it, or the text that Python shows of it where it has no form there."""
    try:
        return plain_label(label)
    except InputError:
        return repr(label)


def label_text(label: Hashable) -> str:
    """A label as a text of ASCII characters, the JSON of ``plain_or_shown``."""
    return json.dumps(plain_or_shown(label))


def label_in(text: str) -> Hashable:
    """The label that ``label_text`` made a text of; of one without a form in JSON what Python showed."""
    try:
        return label_of(json.loads(text))
    except (ValueError, RecursionError) as error:
        raise InputError(f"label {shown(text)} is no JSON: give texts, numbers or lists of them") from error


def label_word(label: Hashable) -> str:
    """A label as people write it: a text of one word as it is, others as JSON, which tells them apart."""
    if type(label) is str and _WORD.fullmatch(label):
        try:
            json.loads(label)
        except ValueError:
            return label
    return label_text(label)
