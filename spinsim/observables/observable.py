"""The record of an observable, and the facts of a run that it may need."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spinsim.model.ising import Ising

Array = npt.NDArray[np.float64]

COPIES_IN_FIELD: Final = 4
"""Copies that the connected spin-glass susceptibility needs: squares of averages come from different pairs of them."""
_NONE: Final = np.empty(0)


class Facts(NamedTuple):
    """Facts that decide which observables a run has."""

    model: Ising
    copies: int  # replicas at each temperature
    correlations: bool  # link overlaps and Fourier modes were measured
    reference: str = ""
    """To what free energy and entropy between simulated temperatures are related: ``infinity``, or ``hottest`` for the
    highest temperature of the ladder; empty for all other averages."""
    staggered: bool = False  # staggered magnetisations were measured
    in_time: bool = False  # slices of a model of space and time were measured
    magnetization_modes: bool = True  # Fourier modes of the magnetisation are among the correlations

    @property
    def field(self) -> bool:
        """True if averages of m and q need not vanish."""
        return in_field(self.model)

    @property
    def modes(self) -> bool:
        """True if Fourier modes of a periodic lattice were measured."""
        return self.correlations and self.model.lattice is not None and self.model.lattice.periodic

    @property
    def isotropic(self) -> bool:
        """True if one number multiplies the action of space and time."""
        return self.in_time and self.model.terms is None


class Point(NamedTuple):
    """Numbers that formulas take beside averages."""

    model: Ising
    temperature: Array  # (temperatures,); of models of space and time the inverse of the step in time
    gamma: Array = _NONE  # transverse field of models of space and time, likewise; empty for all others
    k_time: Array = _NONE  # their coupling of neighbours in time, likewise


def in_field(model: Ising) -> bool:
    """Returns whether fields break the symmetry of all spins' reversal, so that averages of m and q need not vanish."""
    return model.uniform_field != 0


def is_uniform(model: Ising) -> bool:
    """Returns whether translations change nothing: one coupling and one field on a periodic lattice."""
    periodic = model.lattice is not None and model.lattice.periodic
    return periodic and model.uniform_field is not None and model.uniform_coupling is not None


NEEDS: Final[dict[str, Callable[[Facts], bool]]] = {
    "field": lambda run: run.field,
    "zero field": lambda run: not run.field,
    "uniform": lambda run: is_uniform(run.model),  # so that <m(k)> vanishes
    "staggered": lambda run: run.staggered,
    "like sublattices": lambda run: not run.field or is_uniform(run.model),  # m_s is distributed evenly about 0
    "modes": lambda run: run.modes,
    "spin modes": lambda run: run.modes and run.magnetization_modes,
    "links": lambda run: run.correlations and run.copies > 1,
    "classical": lambda run: not run.in_time,
    "in time": lambda run: run.in_time,
    "isotropic": lambda run: run.isotropic,
    "two copies": lambda run: run.copies > 1,
    "four copies": lambda run: run.copies >= COPIES_IN_FIELD,
    "from infinity": lambda run: run.reference == "infinity",
    "from the hottest": lambda run: run.reference == "hottest",
}
"""Conditions of an observable, by the name that its record has for it."""


@dataclass(frozen=True)
class Observable:
    """One observable, or its form with or without a field: two records of one name, of which a run has one at most."""

    name: str  # of its column in tables and of its dataset in the file's summary
    label: str  # the head of its column in printed tables
    symbol: str  # the label of its axis in figures
    formula: str  # what it is, in words; goes into the file
    of: str
    """Quantity that it averages: ``energy``, ``magnetization``, ``staggered_magnetization``, ``overlap``,
    ``link_overlap`` or ``free_energy``."""
    moments: tuple[str, ...]  # of whose averages it is a function, see moments.py
    needs: tuple[str, ...] = ()  # names of what a run must have, see NEEDS
    value: Callable[..., Array] = lambda _, moment: moment
    """The function. It takes a ``Point`` and the averages of ``moments`` in turn, (temperatures,) each, and returns
    that shape."""
    tau_of: str = ""
    """The moment whose autocorrelation time says how far its error can be trusted; empty for the first of its own."""
    units: str = "1"
    crosses: bool = False  # its curves of several sizes cross at a critical point, as it has no dimension
    sentence: str = ""  # said where all that it needs but the last is there: what it would take
    words: str = ""  # the formula as captions of figures have it, with mathtext, where it is not formula and symbol

    @property
    def series(self) -> str:
        return self.tau_of or self.moments[0]

    @property
    def caption(self) -> str:
        """Words for captions of figures."""
        _, dollar, rest = self.symbol.partition("$")
        formula = self.formula.replace("|", "").replace("/ L", "over side")
        return self.words or f"{formula} {dollar}{rest}".strip()

    def is_in(self, facts: Facts) -> bool:
        return all(NEEDS[need](facts) for need in self.needs)

    def is_missed_in(self, facts: Facts) -> bool:
        """Returns whether a run has all that it needs but the last."""
        return not self.is_in(facts) and all(NEEDS[need](facts) for need in self.needs[:-1])
