"""Instance files: MaxCut graphs in rudy form, Ising and QUBO models as dimod and qbsolv write them."""

from __future__ import annotations

import os
import re
from math import fsum
from pathlib import Path

import numpy as np
import numpy.typing as npt

from spinsim.errors import InputError
from spinsim.inputs.texts import printable
from spinsim.machine.files import open_regular
from spinsim.machine.memory import require
from spinsim.model.graph import Graph
from spinsim.model.ising import Ising
from spinsim.model.quanta import lowest_bit

_FORMATS = (
    "give a rudy / G-set / Biq Mac file ('n m', then lines 'i j w'), a dimod COO file ('# vartype=SPIN' or "
    "'# vartype=BINARY', then lines 'i j value') or a qbsolv file ('p qubo 0 maxNodes nDiagonals nElements', then "
    "lines 'i j value')"
)
_MAXCUT_HEADER = re.compile(r"\s*([+-]?\d{1,18})\s+([+-]?\d{1,18})\s*", re.ASCII)
_COO_HEADER = re.compile(r"\s*#.*?\bvartype[:=]\s*(\w+)\s*", re.ASCII)
_QBSOLV_HEADER = re.compile(r"\s*p\s+qubo\s+(?:0|unconstrained)((?:\s+\d{1,18}){3})\s*", re.ASCII | re.IGNORECASE)
_COO_COMMENT = re.compile(r"^[ \t]*#.*", re.MULTILINE)
_QBSOLV_COMMENT = re.compile(r"^[ \t]*[cC].*", re.MULTILINE)
_MOST_SITES = 2**31 - 1  # bonds hold their sites as int32
_ROOM_A_BYTE = 16  # of text, while it is read
_SITES_UNASKED = 2**20
_SITES_A_TERM = 100
_LARGEST_VALUE = 1e300  # so that no sum of values overflows


def read_instance(path: str | os.PathLike[str]) -> Ising:
    """Read an Ising, QUBO or MaxCut instance; the first line tells which of three text formats it is.

    * rudy, G-set, Biq Mac: ``n m``, then m lines ``i j w`` with sites from 1. A MaxCut instance: J = -w, and
      ``maxcut_weight`` is the sum W of all weights, so that a cut of weight c has energy W - 2c.
    * COO of dimod: ``# vartype=SPIN`` or ``# vartype=BINARY``, then ``i j value`` with sites from 0; i = i is a linear
      term, other lines with ``#`` are comments. dimod minimises sum h s + sum J s s: our J and h are minus its values.
    * qbsolv: comments ``c ...``, one line ``p qubo 0 maxNodes nDiagonals nElements``, then ``i j value`` with sites
      from 0, i = j for diagonals and i < j for elements.

    Binary variables are x = (1 + s) / 2; energy + ``offset`` of the model is the value of the QUBO. Repeated terms
    add: pairs as separate bonds, linear terms in one field. Bonds of value 0 are left out; their sites stay.
    Energies, fields and couplings are in the units of the file.

    Args:
        path: The file: UTF-8 text with any line ends; blank lines and trailing spaces are allowed.

    Returns:
        The model, named after the file without its last suffix.

    Raises:
        InputError: where the file cannot be read, is of another format or breaks a rule of its own; the sentence
            names the file and, where there is one, the line.

    Sources:
        C. Helmberg, F. Rendl, SIAM J. Optim. 10, 673 (2000), for the G-set, made with G. Rinaldi's generator rudy;
        A. Wiegele, Biq Mac Library (2007); ``dimod.serialization.coo``; the README of github.com/dwavesystems/qbsolv.
    """
    source = _Source(path)
    start = source.line(source.first).lstrip()[0]
    if start == "#":
        return _read_coo(source)
    return _read_qbsolv(source) if start in "cCpP" else _read_maxcut(source)


class _Source:
    """The text of an instance file, and refusals that quote its lines, counted from 1."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.name = str(path) if str(path) and str(path).isprintable() else repr(str(path))
        self.model_name = printable(Path(path).stem)
        self.text = _read_text(path, self.name).replace("\r\n", "\n").replace("\r", "\n")
        self._lines = self.text.split("\n")
        self.first = next((number for number, line in enumerate(self._lines, 1) if line.strip()), 0)
        if not self.first:
            raise InputError(f"instance file {self.name} is empty: {_FORMATS}")

    def line(self, number: int) -> str:
        return self._lines[number - 1]

    def first_beyond_comments(self) -> int:
        """First line that is neither blank nor a comment of qbsolv, or the first of all where there is none."""
        beyond = (number for number, line in enumerate(self._lines, 1) if line.strip() and line.lstrip()[0] not in "cC")
        return next(beyond, self.first)

    def refusal(self, number: int, rule: str) -> InputError:
        text = self.line(number).strip()
        shown = repr(text if len(text) <= 60 else text[:57] + "...")
        return InputError(f"line {number} of {self.name} reads {shown}, but {rule}")


def _read_text(path: str | os.PathLike[str], name: str) -> str:
    try:
        with open_regular(path) as file:
            require(_ROOM_A_BYTE * os.fstat(file.fileno()).st_size, f"reading {name}", "give a smaller instance")
            data = file.read()
    except FileNotFoundError as error:
        raise InputError(f"instance file {name} does not exist: check the path") from error
    except IsADirectoryError as error:
        raise InputError(f"{name} is a directory: give one instance file in it") from error
    except InputError:
        raise
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise InputError(
            f"instance file {name} cannot be read ({reason}): check the path and its permissions"
        ) from error
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        number, byte = data.count(b"\n", 0, error.start) + 1, data[error.start]
        raise InputError(
            f"line {number} of {name} has the byte 0x{byte:02x}, but instance files are UTF-8 text: {_FORMATS}"
        ) from error


class _Terms:
    """The lines ``i j value`` below a header.

    Attributes:
        ends: Both sites of each term as the file numbers them, ``int64`` (terms, 2).
        values: The value of each term, ``float64`` (terms,).
    """

    def __init__(self, source: _Source, header: int, low: int, high: int, comment: re.Pattern[str] | None) -> None:
        self._source = source
        self._header = header
        # blanked comments keep the line numbers
        text = comment.sub("", source.text) if comment else source.text
        self._body = text.split("\n")[header:]
        table = self._parse()
        self.values = table[:, 2]
        self.demand(np.abs(self.values) < _LARGEST_VALUE, "the value must be finite and below 1e300: correct it")
        first, second = table[:, 0], table[:, 1]
        self.demand(
            (np.rint(first) == first) & (np.rint(second) == second), "sites have whole numbers: correct the index"
        )
        inside = (np.minimum(first, second) >= low) & (np.maximum(first, second) <= high)
        self.demand(inside, f"sites are numbered {low} to {high}: correct the index or the header")
        self.ends = table[:, :2].astype(np.int64)

    def __len__(self) -> int:
        return len(self.values)

    def demand(self, good: npt.NDArray[np.bool_], rule: str) -> None:
        """Refuse the first term that is not good."""
        if not good.all():
            raise self._source.refusal(self.line_number(int(np.argmin(good))), rule)

    def line_number(self, term: int) -> int:
        """Line of a term; a slow search, for refusals only."""
        return [number for number, line in enumerate(self._body, self._header + 1) if line.strip()][term]

    def _parse(self) -> npt.NDArray[np.float64]:
        if not "".join(self._body).strip():
            return np.empty((0, 3))
        try:
            table = np.loadtxt(self._body, np.float64, comments=None, ndmin=2)
        except ValueError as error:
            raise self._malformed() from error
        if table.shape[1] != 3:
            raise self._malformed()
        return table

    def _malformed(self) -> InputError:
        """The refusal of the first line that is not three numbers."""
        for number, line in enumerate(self._body, self._header + 1):
            columns = line.split()
            if columns and len(columns) != 3:
                count = f"{len(columns)} column" + "s" * (len(columns) > 1)
                return self._source.refusal(number, f"it has {count}: write three, two sites and a value")
            for text in columns:
                if not _is_number(text):
                    return self._source.refusal(number, f"{text[:20]!r} is not a number: write two sites and a value")
        return self._source.refusal(self._header, f"the lines below it are not three numbers each: {_FORMATS}")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return text.isascii() and "_" not in text  # Python takes more than NumPy


def _read_maxcut(source: _Source) -> Ising:
    header = source.first
    match = _MAXCUT_HEADER.fullmatch(source.line(header))
    if not match:
        raise source.refusal(header, f"it is the header of no known format: {_FORMATS}")
    sites, bonds = (int(text) for text in match.groups())
    _check_sites(source, header, sites, "n")
    if bonds < 0:
        raise source.refusal(header, f"m = {bonds} is not a number of bonds: give the number of lines i j w")
    terms = _Terms(source, header, 1, sites, None)
    if len(terms) > bonds:
        raise source.refusal(
            terms.line_number(bonds),
            f"line {header} announces m = {bonds} and {len(terms)} bonds follow: correct m or delete the extra lines",
        )
    if len(terms) < bonds:
        raise source.refusal(
            header, f"only {len(terms)} of m = {bonds} bonds follow: correct m or add the missing lines"
        )
    terms.demand(terms.ends[:, 0] != terms.ends[:, 1], "a bond joins two different sites: delete the line and lower m")
    _check_room(source, sites, terms)
    weight = fsum(terms.values)
    return _create_model(source, sites, terms.ends - 1, -terms.values, maxcut_weight=weight)


def _read_coo(source: _Source) -> Ising:
    header = source.first
    match = _COO_HEADER.match(source.line(header))
    vartype = match[1].upper() if match else ""
    if vartype not in ("SPIN", "BINARY"):
        raise source.refusal(header, f"it is the header of no known format: {_FORMATS}")
    terms = _Terms(source, header, 0, _MOST_SITES - 1, _COO_COMMENT)
    if not len(terms):
        raise source.refusal(header, "no term follows: add lines i j value")
    return _quadratic_model(source, int(terms.ends.max()) + 1, terms, vartype == "BINARY")


def _read_qbsolv(source: _Source) -> Ising:
    header = source.first_beyond_comments()
    match = _QBSOLV_HEADER.fullmatch(source.line(header))
    if not match:
        raise source.refusal(header, f"it is the header of no known format: {_FORMATS}")
    sites, diagonals, elements = (int(text) for text in match[1].split())
    _check_sites(source, header, sites, "maxNodes")
    terms = _Terms(source, header, 0, sites - 1, _QBSOLV_COMMENT)
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
    return _quadratic_model(source, sites, terms, binary=True)


def _check_sites(source: _Source, header: int, sites: int, name: str) -> None:
    if not 1 <= sites <= _MOST_SITES:
        raise source.refusal(header, f"{name} = {sites} is not a number of sites: use 1 to {_MOST_SITES}")


def _check_room(source: _Source, sites: int, terms: _Terms) -> None:
    """Refuse numbers of sites that come of a slip in a number, and those that do not fit."""
    if sites > max(_SITES_UNASKED, _SITES_A_TERM * len(terms)):
        raise InputError(
            f"{source.name} with {sites} sites and only {len(terms)} lines below its header leaves nearly all sites "
            f"without a bond: correct the number of sites, at most {_SITES_A_TERM} a line where there are more than "
            f"{_SITES_UNASKED}"
        )
    require(64.0 * sites, f"{source.name} with {sites} sites")


def _quadratic_model(source: _Source, sites: int, terms: _Terms, binary: bool) -> Ising:
    """The model that minimises sum_i a_i z_i + sum_ij b_ij z_i z_j, z = s or, where binary, z = (1 + s) / 2."""
    _check_room(source, sites, terms)
    diagonal = terms.ends[:, 0] == terms.ends[:, 1]
    at, linear = terms.ends[diagonal, 0], terms.values[diagonal]
    ends, pairs = terms.ends[~diagonal], terms.values[~diagonal]
    offset = 0.0
    if binary:
        # b x x' = b/4 (1 + s + s' + s s') and a x = a/2 (1 + s)
        linear, pairs = linear / 2, pairs / 4
        offset = fsum(np.concatenate([linear, pairs]))
        at, linear = np.concatenate([at, *ends.T]), np.concatenate([linear, pairs, pairs])
    sums = _sums_per_site(at, linear, sites)
    field = 0.0 - sums if sums.any() else 0.0  # 0.0 - x, as -x would store -0.0
    return _create_model(source, sites, ends, -pairs, field, offset=offset)


def _sums_per_site(at: npt.NDArray[np.int64], values: npt.NDArray[np.float64], sites: int) -> npt.NDArray[np.float64]:
    """The sum of the values at each site, rounded once, whatever their order."""
    sums = np.bincount(at, values, sites).astype(np.float64)  # of nothing, bincount returns integers
    if not values.any() or np.abs(values).sum() < 2.0**52 * np.ldexp(1.0, lowest_bit(values)):
        return sums  # every partial sum is exact
    doubtful = np.flatnonzero((np.bincount(at, minlength=sites) > 2)[at])  # a sum of two is rounded once
    doubtful = doubtful[np.argsort(at[doubtful], kind="stable")]
    places, first = np.unique(at[doubtful], return_index=True)
    sums[places] = [fsum(part) for part in np.split(values[doubtful], first[1:])] if len(places) else []
    return sums


def _create_model(
    source: _Source,
    sites: int,
    ends: npt.NDArray[np.int64],
    couplings: npt.NDArray[np.float64],
    field: npt.ArrayLike = 0.0,
    *,
    offset: float = 0.0,
    maxcut_weight: float | None = None,
) -> Ising:
    present = couplings != 0
    graph = Graph(sites, ends[present].astype(np.int32))
    try:
        return Ising(
            graph, couplings[present], field, name=source.model_name, offset=offset, maxcut_weight=maxcut_weight
        )
    except InputError as error:
        raise InputError(f"instance file {source.name} cannot be held exactly: {error}") from error
