"""Quantities that runs on a ladder measure, one record each; rows, series, results and terms follow from it.

To add a quantity, add its record here, count it on both devices (``engine/measuring/``) and describe it in the
docstring of the result (``jobs/ladder/result.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spinsim.engine.measuring.correlations import Quantities
from spinsim.engine.measuring.reduction import Source
from spinsim.model.ising import Ising
from spinsim.model.lattice import Lattice, space_of

COPY, PAIR = "copy", "copy_pair"  # axes of quantities of every copy, and of every pair of copies


def bonds_of_slices(model: Ising) -> int:
    """Return the number of bonds in space of all slices, at least 1."""
    return max(1, model.graph.slices * len(model.graph.bonds_in_space()))


def square_of_sites(model: Ising) -> int:
    return model.sites**2


def powers_of_slices(power: int, model: Ising) -> int:
    """Return the sum over slices of a power of a slice's sites."""
    return int(model.graph.slices * (model.sites // model.graph.slices) ** power)


def in_space(model: Ising) -> Lattice | None:
    """Return the lattice on which a model lies in space, without time; None where it lies on none."""
    return space_of(model.embedding) if model.embedding and model.graph.slices > 1 else model.embedding


def longest_axes(model: Ising) -> tuple[int, ...]:
    """Return the axes of the largest length in space, as modes number them; none without a lattice."""
    space = in_space(model)
    if space is None or model.embedding is None:
        return ()
    first = model.embedding.dimension - len(space.shape)  # 1 where time comes first
    return tuple(first + axis for axis, side in enumerate(space.shape) if side == max(space.shape))


def in_field(model: Ising) -> bool:
    """Return True if fields break the symmetry under a flip of all spins, so that <m> and <q> need not vanish."""
    return model.uniform_field != 0


def is_uniform(model: Ising) -> bool:
    """Return True if translations change nothing: one coupling and one field on a periodic lattice."""
    periodic = model.lattice is not None and model.lattice.periodic
    return periodic and model.uniform_field is not None and model.uniform_coupling is not None


class Quantity(NamedTuple):
    """A quantity of every copy, or pair of copies, at every place of a ladder."""

    name: str  # name of its series in files and of its attribute in results
    words: str  # its formula in words
    source: str = ""  # field of ``LadderMeasurement`` or of its ``correlations`` that holds it; empty for its own name
    element: int | None = None  # position along the last axis of that field, if the field holds several quantities
    per: str = COPY  # ``copy`` or ``copy_pair``, the axis between samples and places
    counts: str | type = "sites"
    """``sites`` or ``bonds`` if it is an integer up to their number, which sets the width; else a type."""
    axis: str = ""  # its last axis, behind the places, if it has one
    unit: str = "1"  # unit of its values
    needs: tuple[str, ...] = ()  # conditions for a run to measure it, see ``Choice.quantities``
    words_in_time: str = ""  # its formula in models of space and time, where that is another one
    moments: tuple[str, ...] = ()  # names of averages of x, |x|, x^2, x^4, x = quantity over ``full``; empty for none
    full: Callable[[Ising], int] = lambda model: model.sites  # returns the value that stands for full order
    elements: Callable[[Ising], tuple[int, ...]] | None = None
    """Return the positions along its last axis whose numbers x averages; None without a last axis to average."""

    @property
    def field(self) -> str:
        """Field of a measurement that holds the quantity."""
        return self.source or self.name

    def of(self, fields: Mapping[str, npt.NDArray[Any]]) -> npt.NDArray[Any]:
        """Return the quantity from the fields of a measurement and of its correlations."""
        values = fields[self.field]
        return values if self.element is None else values[..., self.element]

    def taken_from(self, elements: tuple[int, ...] = ()) -> Source:
        """Return the source from which sums take the quantity, or some numbers along its last axis."""
        return Source(self.field, elements if self.element is None else (self.element,))

    def nothing(self, rows: int, shape: tuple[int, int, int]) -> npt.NDArray[Any]:
        """Return rows of a run (samples, copies, places) without the quantity: its copies, pairs or last axis are 0."""
        samples, copies, places = shape
        if not self.axis:
            return np.empty((rows, samples, 0, places), np.int64)
        each = copies if self.per == COPY else copies * (copies - 1) // 2
        kind = np.int64 if isinstance(self.counts, str) else self.counts
        return np.empty((rows, samples, each, places, 0), kind)


_MODE: Final = "|sum of {} exp(i k x)|^2, k = 2 pi / L along axis 0 (x), 1 (y) or 2 (z)"
_MODE_IN_TIME: Final = "|sum of {} exp(i k x)|^2, k = 2 pi / L along axis 0 (time), 1 (x), 2 (y) or 3 (z)"
_OF_SLICES: Final = "sum over slices of the {} power of the sum over sites of {}"
_PRODUCT: Final = "the product of two copies' spins"
STAGGERED: Final = "sum of spins over the first sublattice, that of site 0, less that over the second"

QUANTITIES: Final = (
    Quantity("energy", "total energy", counts=np.float64, unit="coupling unit", needs=("classical",),
             moments=("energy", "", "E^2", "E^4")),
    Quantity("action", "action A, the weight being exp(-k A)", "energy", counts=np.float64, unit="coupling unit",
             needs=("in time",), moments=("energy", "", "E^2", "E^4")),
    Quantity("magnetization", "sum of spins", words_in_time="sum of spins over sites and slices",
             moments=("m", "|m|", "m^2", "m^4")),
    Quantity("staggered_magnetization", STAGGERED, needs=("classical", "staggered"),
             moments=("", "|m_s|", "m_s^2", "m_s^4")),
    Quantity("correlation_in_time", "sum over sites and slices of s(tau) s(tau + time)", "in_time", axis="time",
             needs=("in time",)),
    Quantity("slice_magnetization_squared", _OF_SLICES.format("second", "spins"), "magnetization_powers", 0,
             counts=np.int64, needs=("in time",), moments=("m_eq^2",), full=partial(powers_of_slices, 2)),
    Quantity("slice_magnetization_fourth", _OF_SLICES.format("fourth", "spins"), "magnetization_powers", 1,
             counts=np.int64, needs=("in time",), moments=("m_eq^4",), full=partial(powers_of_slices, 4)),
    Quantity("even_correlation_in_time", "sum over bonds in space and slices of (s_x s_y)(tau) (s_x s_y)(tau + time)",
             "even_in_time", counts="bonds", axis="time", needs=("in time", "even"), full=bonds_of_slices),
    Quantity("magnetization_mode", _MODE.format("spins"), counts=np.float64, axis="axis",
             words_in_time=_MODE_IN_TIME.format("spins"), needs=("correlations", "lattice", "spin modes"),
             moments=("|m(k)|^2",), full=square_of_sites, elements=longest_axes),
    Quantity("overlap", f"sum over sites of {_PRODUCT}", per=PAIR, needs=("pairs",),
             words_in_time=f"sum over sites and slices of {_PRODUCT}", moments=("q", "|q|", "q^2", "q^4")),
    Quantity("slice_overlap_squared", _OF_SLICES.format("second", _PRODUCT), "overlap_powers", 0, PAIR, np.int64,
             needs=("in time", "pairs"), moments=("q_eq^2",), full=partial(powers_of_slices, 2)),
    Quantity("slice_overlap_fourth", _OF_SLICES.format("fourth", _PRODUCT), "overlap_powers", 1, PAIR, np.int64,
             needs=("in time", "pairs"), moments=("q_eq^4",), full=partial(powers_of_slices, 4)),
    Quantity("overlap_mode", _MODE.format(_PRODUCT), per=PAIR, counts=np.float64, axis="axis",
             words_in_time=_MODE_IN_TIME.format(_PRODUCT), needs=("correlations", "lattice", "pairs"),
             moments=("|q(k)|^2",), full=square_of_sites, elements=longest_axes),
    Quantity("link_overlap", "sum over bonds of the product of two copies' s_i s_j", per=PAIR, counts="bonds",
             needs=("correlations", "pairs"), moments=("q_link",), full=lambda model: max(1, model.bonds)),
    Quantity("link_overlap_in_space", "sum over bonds in space and slices of the product of two copies' s_x s_y",
             per=PAIR, counts="bonds", needs=("in time", "even", "pairs"), moments=("q_link in space",),
             full=bonds_of_slices),
)  # fmt: skip
"""Every quantity."""


class Choice(NamedTuple):
    """Choice of quantities that a run measures."""

    copies: int  # of the ladder: replicas at each place
    wanted: Quantities  # correlations of copies at equal temperatures
    staggered: bool = False  # true if staggered magnetisations are measured

    def quantities(self, dimension: int) -> list[Quantity]:
        """Return the measured quantities of a model on a lattice of some dimension, 0 for none."""
        wanted = self.wanted
        met: Mapping[str, object] = {
            "classical": not wanted.times,
            "in time": wanted.times,
            "correlations": wanted.full,
            "even": wanted.even,
            "lattice": dimension,
            "pairs": self.copies > 1,
            "spin modes": wanted.magnetization_modes,
            "staggered": self.staggered,
        }
        return [one for one in QUANTITIES if all(met[need] for need in one.needs)]


def quantities_of(in_time: bool) -> list[Quantity]:
    """Return all quantities that runs may measure, of models of space and time or of other models."""
    other = "classical" if in_time else "in time"
    return [one for one in QUANTITIES if other not in one.needs]
