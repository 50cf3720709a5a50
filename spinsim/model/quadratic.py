"""A quadratic problem as its caller states it: a sum to be minimised, over spins or binary variables.

An ``Ising`` is made from it and converted back to it, with the values, the labels and the kind of variables that were
given, not with values rounded to a quantum.
"""

from __future__ import annotations

import json
import re
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from math import fsum, isfinite
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from spinsim.errors import InputError, WrongTypeError
from spinsim.inputs.arguments import plain
from spinsim.inputs.numbers import LARGEST, check_whole
from spinsim.inputs.texts import shown
from spinsim.model.couplings import IN_CACHE, are_multiples, parts_of, sum_of

SPIN: Final = "SPIN"
BINARY: Final = "BINARY"
LARGEST_VALUE: Final = 1e300  # so that no sum of values overflows
Ends = npt.NDArray[np.int64]
Values = npt.NDArray[np.float64]
_TERMS_AT_ONCE: Final = 2**14
_PRODUCTS_AT_ONCE: Final = 2**21


def no_pair(key: Any) -> str:
    if isinstance(key, tuple | frozenset) and len(key) > 2:
        return (
            f"term {shown(key)} is of degree {len(key)}, but only pairs are taken: reduce it to pairs first, such as "
            "by dimod.make_quadratic"
        )
    return f"key {shown(key)} is no pair: give (u, v), and in a QUBO (u, u) for a linear term"


@dataclass(frozen=True, eq=False)
class Quadratic:
    """sum of a z_i + sum of b z_i z_j + offset, to be minimised, with z = +1, -1 or z = 0, 1."""

    sites: int  # number of variables
    ends: Ends = field(default_factory=lambda: np.empty((0, 2), np.int64))
    """Variables of each term, ``int64`` (terms, 2); i, i is a linear term. Terms of equal variables add."""
    values: Values = field(default_factory=lambda: np.empty(0))  # value of each term, (terms,)
    vartype: str = SPIN  # ``SPIN``, z = s, or ``BINARY``, z = x = (1 + s) / 2
    offset: float = 0.0  # the constant
    labels: Labels | None = None  # labels of the variables, in their order; None for 0, 1, 2, ...
    is_maxcut: bool = False  # True if values are the weights of a graph whose largest cut is wanted
    name: str = ""  # name of the model that is made of it

    @property
    def names(self) -> Labels:
        return self.labels or range(self.sites)

    def check(self, in_order: bool = False) -> Quadratic:
        """Return the problem after a check; ``in_order`` means that the order of variables in a term is not given."""
        wrong = np.flatnonzero(~(np.abs(self.values) < LARGEST_VALUE))
        if len(wrong):
            ends = self.ends[wrong[0]].tolist()
            first, second = (shown(self.names[site]) for site in (sorted(ends) if in_order else ends))
            term = first if first == second else f"({first}, {second})"
            value = self.values[wrong[0]]
            raise InputError(f"the value of {term} is {value:g}: every value must be finite and below 1e300")
        if not (isfinite(self.offset) and abs(self.offset) < LARGEST_VALUE):
            raise InputError(f"offset {self.offset:g} is none: give a finite number below 1e300")
        return self

    def is_same(self, other: Quadratic) -> bool:
        mine, others = ((one.sites, one.vartype, one.offset, one.labels, one.is_maxcut) for one in (self, other))
        return mine == others and np.array_equal(self.values, other.values) and np.array_equal(self.ends, other.ends)

    def split(self) -> tuple[npt.NDArray[np.int64], Values, Ends, Values]:
        """Variables and values of the linear terms, then ends and values of the others."""
        diagonal = self.ends[:, 0] == self.ends[:, 1]
        first = int(np.count_nonzero(diagonal))
        if diagonal[:first].all():  # nothing is copied
            return self.ends[:first, 0], self.values[:first], self.ends[first:], self.values[first:]
        return self.ends[diagonal, 0], self.values[diagonal], self.ends[~diagonal], self.values[~diagonal]

    def added_up(self) -> tuple[Values, Ends, Values]:
        """One linear value for each variable, then ends and value of each pair, in the order of first occurrence."""
        at, linear, ends, pairs = self.split()
        _, first, of_pair = np.unique(pair_numbers(ends, self.sites), return_index=True, return_inverse=True)
        order = np.argsort(first, kind="stable")
        sums, _ = sums_at(of_pair, pairs, len(first))
        return sums_at(at, linear, self.sites)[0], ends[first[order]], sums[order]

    def each_once(self) -> tuple[Ends, Values, int]:
        """Ends and values of linear terms that are not 0, then of pairs, each once; the number of linear terms."""
        linear, ends, pairs = self.added_up()
        at = np.flatnonzero(linear)
        return np.concatenate([np.stack([at, at], axis=1), ends]), np.concatenate([linear[at], pairs]), len(at)

    def with_each_pair_once(self) -> Quadratic:
        """This problem with one term for each pair, as one bond costs less than several."""
        numbers = pair_numbers(self.ends, self.sites)
        if (numbers[1:] > numbers[:-1]).all():  # as of a dense matrix
            return self
        numbers.sort()
        if (numbers[1:] > numbers[:-1]).all():
            return self
        ends, values, _ = self.each_once()
        return replace(self, ends=ends, values=values)

    def split_in(self, vartype: str) -> tuple[npt.NDArray[np.int64], Values, Ends, Values, float]:
        """``split`` of this problem in other variables, z = s or x = (1 + s) / 2, and its constant in them."""
        at, linear, ends, pairs = self.split()
        if vartype == self.vartype:
            return at, linear, ends, pairs, self.offset
        if vartype == SPIN:  # b x x' = b/4 (1 + s + s' + s s') and a x = a/2 (1 + s)
            linear, pairs = linear / 2, pairs / 4
            offset, of_ends = _total(self.offset, linear, pairs), pairs
        else:  # b s s' = b (4 x x' - 2 x - 2 x' + 1) and a s = a (2 x - 1)
            offset = _total(self.offset, -linear, pairs)
            linear, of_ends, pairs = 2 * linear, -2 * pairs, 4 * pairs
        return np.concatenate([at, *ends.T]), np.concatenate([linear, of_ends, of_ends]), ends, pairs, offset

    def of_vartype(self, vartype: str) -> Quadratic:
        """This problem in other variables; only its own has the values as given."""
        if vartype == self.vartype:
            return self
        at, linear, ends, pairs, offset = self.split_in(vartype)
        changed, values = np.concatenate([np.stack([at, at], axis=1), ends]), np.concatenate([linear, pairs])
        return replace(self, ends=changed, values=values, vartype=vartype, offset=offset, is_maxcut=False)

    def energies(self, states: npt.NDArray[np.int8]) -> Values:
        """Value of each state (states, sites) with the constant; only the result of the sum is rounded."""
        blocks: list[Values] = []
        of_sites = np.concatenate([states.T, np.ones((1, len(states)), np.int8)])  # the ones multiply linear terms
        for first in range(0, len(self.values), _TERMS_AT_ONCE):
            one, other = self.ends[first : first + _TERMS_AT_ONCE].T
            other = np.where(one == other, self.sites, other)
            parts = np.reshape(list(parts_of(self.values[first : first + _TERMS_AT_ONCE])), (-1, len(one)))
            sums, columns = np.empty((len(states), len(parts))), max(1, _PRODUCTS_AT_ONCE // len(one))
            for column in range(0, len(states), columns):
                some = of_sites[:, column : column + columns]
                sums[column : column + columns] = (parts @ (some[one] * some[other])).T
            blocks.append(sums)
        every = np.concatenate([np.full((len(states), 1), self.offset), *blocks], axis=1)
        return np.array([fsum(row) for row in every.tolist()])


def one_half(ends: Ends, values: Values) -> tuple[Ends, Values] | None:
    """Entries of a matrix with each pair once; None where halves share pairs but are not mirror images."""
    is_lower = ends[:, 0] > ends[:, 1]
    numbers, side = pair_numbers(ends, int(ends.max(initial=0)) + 1), []
    for half in (ends[:, 0] < ends[:, 1], is_lower):
        order = np.argsort(numbers[half], kind="stable")
        side.append((numbers[half][order], values[half][order]))
    (above, upper), (below, lower) = side
    if np.array_equal(above, below) and np.array_equal(upper, lower, equal_nan=True):
        return ends[~is_lower], values[~is_lower]
    return None if np.isin(above, below).any() else (ends, values)


def pair_numbers(ends: Ends, sites: int) -> npt.NDArray[np.int64]:
    """A number for each term, the same for both orders of a pair."""
    first, second = ends.T
    return np.asarray(np.minimum(first, second) * sites + np.maximum(first, second))


def sums_at(at: npt.NDArray[np.int64], values: Values, places: int) -> tuple[Values, bool]:
    """The sum of the values at each place, rounded once, whatever their order; and True if any sum was rounded."""
    sums = np.bincount(at, values, places).astype(np.float64)  # of nothing, bincount returns integers
    several = np.flatnonzero(np.bincount(at, minlength=places) > 1)
    largest = float(np.abs(values).sum())
    if not (len(several) and largest) or are_multiples(values, np.ldexp(1.0, np.frexp(largest)[1] - 52)):
        return sums, False  # every partial sum is exact
    most, rounded = max(places, IN_CACHE), False
    pieces = [slice(first, first + most) for first in range(0, len(values), most)]
    parts = [np.bincount(at[piece], part, places)[several] for piece in pieces for part in parts_of(values[piece])]
    for place, exact in zip(several.tolist(), np.transpose(parts).tolist(), strict=True):
        sums[place] = fsum(exact)
        rounded = rounded or fsum([*exact, -sums[place]]) != 0
    return sums, rounded


def _total(offset: float, *parts: Values) -> float:
    return sum_of(np.concatenate([[offset], *parts]))


def number_in(value: object, name: str, *labels: object) -> float:
    """A value as a float; errors refer to it by ``name`` and the labels of its term, if it has any."""
    if type(value) is float:
        return value
    try:
        if isinstance(plain(value), str | bytes | bytearray | complex | bool):
            raise TypeError
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError) as error:
        term = " ".join([name, *map(shown, labels)])
        raise WrongTypeError(f"{term} is {shown(value)}: give a finite number") from error
    if abs(number) >= LARGEST:
        check_whole(value, " ".join([name, *map(shown, labels)]))
    return number


def finite(value: float, name: str) -> float:
    if not isfinite(number_in(value, name)):
        raise InputError(f"{name} is {value}: give a finite number")
    return value


Labels = Sequence[Hashable]
_WORD: Final = re.compile(r"[^\W\d_][\w.:-]*")
_DEEPEST: Final = 100  # tuples within each other


def as_labels(labels: Any, sites: int) -> range | tuple[Hashable, ...]:
    """Distinct hashable labels of the sites in order, 0, 1, 2, ... for None; consecutive numbers become a ``range``."""
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
    except TypeError:  # reported below
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
    """The site of a label; a new label gets the next site and is added to ``known``."""
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
    """The label from a text of ``label_text``; for a label without a form in JSON, the text that Python showed."""
    try:
        return label_of(json.loads(text))
    except (ValueError, RecursionError) as error:
        raise InputError(f"label {shown(text)} is no JSON: give texts, numbers or lists of them") from error


def label_word(label: Hashable) -> str:
    """A label as people write it: a text of one word as it is, others as JSON, so that labels stay distinct."""
    if type(label) is str and _WORD.fullmatch(label):
        try:
            json.loads(label)
        except ValueError:
            return label
    return label_text(label)
