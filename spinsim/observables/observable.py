"""What a record of the table of observables holds, and what an observable may need of a run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spinsim.model.ising import Ising

Array = npt.NDArray[np.float64]

COPIES_IN_FIELD: Final = 4
"""Copies that the connected spin-glass susceptibility needs."""


class Facts(NamedTuple):
    """What decides which observables a run has.

    Attributes:
        model: What was simulated.
        copies: Replicas at each temperature.
        correlations: Whether link overlaps and Fourier modes were measured.
        reference: Of averages between the temperatures that were simulated: what free energy and entropy are related
            to, ``infinity`` or ``hottest`` for the highest temperature of the ladder; empty for all others.
        staggered: Whether staggered magnetisations were measured.
        in_time: Whether the model is one of space and time whose slices were measured.
        magnetization_modes: Whether Fourier modes of the magnetisation are among the correlations.
    """

    model: Ising
    copies: int
    correlations: bool
    reference: str = ""
    staggered: bool = False
    in_time: bool = False
    magnetization_modes: bool = True


_NONE: Final = np.empty(0)


class Point(NamedTuple):
    """What formulas take beside averages.

    Attributes:
        model: What was simulated.
        temperature: Of the averages, (temperatures,); of models of space and time the inverse of the step in time.
        gamma: Transverse field of models of space and time, likewise; empty for all others.
        k_time: Their coupling of neighbours in time, likewise.
    """

    model: Ising
    temperature: Array
    gamma: Array = _NONE
    k_time: Array = _NONE


def in_field(model: Ising) -> bool:
    """Returns whether fields break the symmetry of all spins' reversal, so that averages of m and q need not vanish."""
    return model.uniform_field != 0


def is_uniform(model: Ising) -> bool:
    """Returns whether translations change nothing: one coupling and one field on a periodic lattice."""
    periodic = model.lattice is not None and model.lattice.periodic
    return periodic and model.uniform_field is not None and model.uniform_coupling is not None


Need = Callable[[Facts], bool]
"""Tells whether a run has something that an observable cannot do without."""


def a_field(facts: Facts) -> bool:
    """Returns whether the averages of m and q need not vanish."""
    return in_field(facts.model)


def zero_field(facts: Facts) -> bool:
    """Returns whether m and q are distributed evenly about 0."""
    return not in_field(facts.model)


def uniform(facts: Facts) -> bool:
    """Returns whether all sites are alike, so that <m(k)> vanishes."""
    return is_uniform(facts.model)


def staggered(facts: Facts) -> bool:
    """Returns whether staggered magnetisations of two sublattices were measured."""
    return facts.staggered


def like_sublattices(facts: Facts) -> bool:
    """Returns whether m_s is distributed evenly about 0: no field, or one that favours neither sublattice."""
    return zero_field(facts) or uniform(facts)


def modes(facts: Facts) -> bool:
    """Returns whether Fourier modes of a periodic lattice were measured."""
    return facts.correlations and facts.model.lattice is not None and facts.model.lattice.periodic


def spin_modes(facts: Facts) -> bool:
    """Returns whether modes of the magnetisation are among them."""
    return modes(facts) and facts.magnetization_modes


def links(facts: Facts) -> bool:
    """Returns whether link overlaps were measured, of two copies or more."""
    return facts.correlations and facts.copies > 1


def classical(facts: Facts) -> bool:
    """Returns whether the energy is that of a classical model."""
    return not facts.in_time


def in_time(facts: Facts) -> bool:
    """Returns whether slices in time were measured."""
    return facts.in_time


def isotropic(facts: Facts) -> bool:
    """Returns whether space and time have one coupling, so that one number multiplies the action."""
    return facts.in_time and facts.model.terms is None


def two_copies(facts: Facts) -> bool:
    """Returns whether overlaps were measured."""
    return facts.copies > 1


def four_copies(facts: Facts) -> bool:
    """Returns whether the squares of a sample's averages can be taken from different pairs of copies."""
    return facts.copies >= COPIES_IN_FIELD


def from_infinity(facts: Facts) -> bool:
    """Returns whether free energies are absolute ones."""
    return facts.reference == "infinity"


def from_the_hottest(facts: Facts) -> bool:
    """Returns whether free energies are less those of the ladder's highest temperature."""
    return facts.reference == "hottest"


def _itself(_: Point, moment: Array) -> Array:
    """Returns the average of the only moment."""
    return moment


@dataclass(frozen=True)
class Observable:
    """One observable, or its form with or without a field: two records of one name, of which a run has one at most.

    Attributes:
        name: Of its column in tables and of its dataset in the file's summary.
        label: The head of its column in printed tables.
        symbol: The label of its axis in figures.
        formula: What it is, in words; goes into the file.
        of: What it is an average of: ``energy``, ``magnetization``, ``staggered_magnetization``, ``overlap``,
            ``link_overlap`` or ``free_energy``.
        moments: Names of the moments whose averages it is a function of, see ``moments.py``.
        series: The moment whose autocorrelation time says how far its error can be trusted.
        value: The function. It takes a ``Point`` and the averages of ``moments`` in turn, (temperatures,) each, and
            returns that shape. The average of the only moment by default.
        units: Of its values.
        needs: What a run must have for it.
        sentence: Said where all that it needs but the last is there: what it would take. Empty where it needs no words.
        crosses: Whether its curves of several sizes cross at a critical point, as it has no dimension.
        words: The formula as captions of figures have it, with mathtext; empty where the formula has no symbols.
    """

    name: str
    label: str
    symbol: str
    formula: str
    of: str
    moments: tuple[str, ...]
    series: str
    value: Callable[..., Array] = _itself
    units: str = "1"
    needs: tuple[Need, ...] = ()
    sentence: str = ""
    crosses: bool = False
    words: str = ""

    @property
    def caption(self) -> str:
        """Words for captions of figures."""
        return self.words or self.formula

    def is_in(self, facts: Facts) -> bool:
        """Returns whether a run has it."""
        return all(need(facts) for need in self.needs)

    def is_missed_in(self, facts: Facts) -> bool:
        """Returns whether a run has all that it needs but the last."""
        return bool(self.needs) and all(need(facts) for need in self.needs[:-1]) and not self.needs[-1](facts)
