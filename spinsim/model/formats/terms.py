"""The lines ``i j value`` below the header of an instance file, read at once and written."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from spinsim.errors import InputError
from spinsim.inputs.checks import LARGEST, check_word
from spinsim.machine.memory import require
from spinsim.model.formats.source import FORMATS, Source
from spinsim.model.problems.quadratic import LARGEST_VALUE, Ends, Values

MOST_SITES: Final = 2**31 - 1  # bonds hold their sites as int32
_SITES_UNASKED: Final = 2**20
_SITES_A_TERM: Final = 100
_COLUMNS: Final = {2: "two, two sites", 3: "three, two sites and a value"}


class Terms:
    """The lines below a header.

    Args:
        source: The file.
        header: Number of its line.
        low: Least number of a site.
        high: Largest.
        comments: First characters of comments, which may stand among them.
        unweighted: Whether lines may also be ``i j`` alone, all of them; their values are 1.

    Attributes:
        ends: Both sites of each term as the file numbers them, ``int64`` (terms, 2).
        values: The value of each term, ``float64`` (terms,).

    Raises:
        InputError: for the first line that is no term.
    """

    def __init__(
        self,
        source: Source,
        header: int,
        low: int,
        high: int,
        comments: str = "",
        unweighted: bool = False,
    ) -> None:
        self._source = source
        self._header = header
        self._body = source.below(header, comments)
        first = next((line for line in self._body if line.strip()), "")
        self._columns = 2 if unweighted and len(first.split()) == 2 else 3
        table = self._parse()
        self.values = table[:, 2] if self._columns == 3 else np.ones(len(table))
        self.demand(np.abs(self.values) < LARGEST_VALUE, "the value must be finite and below 1e300: correct it")
        self._check_whole()
        one, other = table[:, 0], table[:, 1]
        self.demand((np.rint(one) == one) & (np.rint(other) == other), "sites have whole numbers: correct the index")
        inside = (np.minimum(one, other) >= low) & (np.maximum(one, other) <= high)
        self.demand(inside, f"sites are numbered {low} to {high}: correct the index or the header")
        self.ends = table[:, :2].astype(np.int64)

    def __len__(self) -> int:
        return len(self.values)

    def demand(self, good: npt.NDArray[np.bool_], rule: str) -> None:
        if not good.all():
            raise self._source.refusal(self.line_number(int(np.argmin(good))), rule)

    def _check_whole(self) -> None:
        """Refuse values that are whole numbers beyond those of float64."""
        for term in np.flatnonzero(np.abs(self.values) >= LARGEST).tolist() if self._columns == 3 else []:
            number = self.line_number(term)
            check_word(
                self._body[number - self._header - 1].split()[2], f"the value in line {number} of {self._source.name}"
            )

    def line_number(self, term: int) -> int:
        """Line of a term; a slow search, for refusals only."""
        return [number for number, line in enumerate(self._body, self._header + 1) if line.strip()][term]

    def check_number(self, announced: int) -> None:
        """Refuse another number of terms than the header announces as m."""
        if len(self) > announced:
            raise self._source.refusal(
                self.line_number(announced),
                f"line {self._header} announces m = {announced} and {len(self)} bonds follow: correct m or delete the "
                "extra lines",
            )
        if len(self) < announced:
            raise self._source.refusal(
                self._header, f"only {len(self)} of m = {announced} bonds follow: correct m or add the missing lines"
            )

    def check_room(self, sites: int) -> None:
        """Refuse numbers of sites that come of a slip in a number, and those that do not fit."""
        name = self._source.name
        if sites > max(_SITES_UNASKED, _SITES_A_TERM * len(self)):
            raise InputError(
                f"{name} with {sites} sites and only {len(self)} lines below its header leaves nearly all sites "
                f"without a bond: correct the number of sites, at most {_SITES_A_TERM} a line where there are more "
                f"than {_SITES_UNASKED}"
            )
        require(64.0 * sites, f"{name} with {sites} sites")

    def _parse(self) -> npt.NDArray[np.float64]:
        if not "".join(self._body).strip():
            return np.empty((0, self._columns))
        try:
            table = np.loadtxt(self._body, np.float64, comments=None, ndmin=2)
        except ValueError as error:
            raise self._malformed() from error
        if table.shape[1] != self._columns:
            raise self._malformed()
        return table

    def _malformed(self) -> InputError:
        """The refusal of the first line that is not so many numbers."""
        write = _COLUMNS[self._columns]
        for number, line in enumerate(self._body, self._header + 1):
            columns = line.split()
            if columns and len(columns) != self._columns:
                count = f"{len(columns)} column" + "s" * (len(columns) > 1)
                return self._source.refusal(number, f"it has {count}: write {write}")
            for text in columns:
                if not is_number(text):
                    return self._source.refusal(number, f"{text[:20]!r} is not a number: write {write.split(', ')[1]}")
        return self._source.refusal(self._header, f"the lines below it are not {write} each: {FORMATS}")


def is_number(text: str) -> bool:
    """Whether NumPy reads it as a number."""
    try:
        float(text)
    except ValueError:
        return False
    return text.isascii() and "_" not in text  # Python takes more than NumPy


def check_sites(source: Source, header: int, sites: int, name: str) -> None:
    if not 1 <= sites <= MOST_SITES:
        raise source.refusal(header, f"{name} = {sites} is not a number of sites: use 1 to {MOST_SITES}")


def lines_of(ends: Ends, values: Values | None = None) -> str:
    """Lines of terms; values to the last digit, without exponents, which not all readers know."""
    if values is None:
        return "".join(f"{i} {j}\n" for i, j in ends.tolist())
    return "".join(f"{i} {j} {number(value)}\n" for (i, j), value in zip(ends.tolist(), values.tolist(), strict=True))


def number(value: float) -> str:
    """The shortest decimal that is read as this value."""
    return np.format_float_positional(value, trim="-")
