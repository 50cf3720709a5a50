"""Points of the transverse-field Ising model, each a field Gamma and an inverse temperature, and their couplings.

With the step in time Delta tau = beta / slices the weight of a configuration is exp(- K_s E_s - K_tau E_tau), where
E_s is the energy in space and E_tau = - sum of s(tau) s(tau + 1), K_s = Delta tau and
K_tau = -ln tanh(Gamma Delta tau) / 2: the general Suzuki-Trotter form. In the isotropic form both couplings are one
number k, which sets Gamma and beta. Source: M. Suzuki, Prog. Theor. Phys. 56, 1454 (1976).
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal, localcontext
from typing import Final

import numpy as np
import numpy.typing as npt

from spinsim.errors import InputError

Floats = npt.NDArray[np.float64]

LEAST_TURN: Final = 1e-9
"""Gamma Delta tau below which no spin would turn against its neighbours in time."""
MOST_TURN: Final = 10.0
"""Gamma Delta tau above which neighbours in time would not know of each other."""
LEAST_STEP: Final = 1e-9
"""Step in time of the isotropic form below which neither space nor time would order anything."""
MOST_STEP: Final = 10.0
"""Step in time of the isotropic form above which no spin would turn against its neighbours in time."""
_DIGITS: Final = 40


@dataclass(frozen=True, eq=False)
class Points:
    """A ladder of points, arrays of shape (points,), from the end that is deepest in the ordered phase.

    Attributes:
        axis: What the ladder goes along: ``k`` in the isotropic form, ``gamma`` or ``beta`` in the general one.
        slices: In time.
        gamma: Transverse field, in the unit of the couplings.
        beta: Inverse temperature, in its inverse.
        k: Step in time, which is the coupling K_s of space, likewise.
        k_time: Coupling K_tau of neighbours in time.
    """

    axis: str
    slices: int
    gamma: Floats
    beta: Floats
    k: Floats
    k_time: Floats

    def __len__(self) -> int:
        return len(self.k)

    @property
    def is_general(self) -> bool:
        return self.axis != "k"

    @property
    def values(self) -> Floats:
        return {"k": self.k, "gamma": self.gamma, "beta": self.beta}[self.axis]

    @property
    def couplings(self) -> Floats:
        """Inverse temperatures of the model of space and time: (points,), or (points, 2) where it has two terms."""
        return np.stack([self.k, self.k_time], axis=1) if self.is_general else self.k


def isotropic(k: Floats, slices: int) -> Points:
    """Returns the points of the isotropic form, k from the largest to the smallest."""
    with np.errstate(over="ignore"):  # what is too large is refused as a temperature 1 / k
        return Points("k", slices, np.asarray(-np.log(np.tanh(k)) / (2 * k)), k * slices, k, k)


def general(gamma: Floats, beta: Floats, slices: int) -> Points:
    """Returns the points of the general form, sorted: Gamma rises, or beta falls.

    Args:
        gamma: Transverse fields above 0, one or several.
        beta: Inverse temperatures above 0, likewise; one of the two is a single number.
        slices: In time.
    """
    if len(gamma) > 1 and len(beta) > 1:
        raise InputError(
            f"{len(gamma)} values of gamma and {len(beta)} of beta are no ladder: give one number for one of them"
        )
    axis = "beta" if len(beta) > 1 else "gamma"
    gamma, beta = np.sort(gamma), np.sort(beta)[::-1]
    for name, values in (("gamma", gamma), ("beta", beta)):
        twice = values[1:][np.diff(values) == 0]
        if twice.size:
            raise InputError(f"{name} {twice[0]:g} stands there twice: give each value once")
    gamma, beta = (np.array(values) for values in np.broadcast_arrays(gamma, beta))
    step = beta / slices
    for field, one in zip(gamma.tolist(), step.tolist(), strict=True):
        check_turn(field, one)
    k_time = np.array([coupling_in_time(field, one) for field, one in zip(gamma.tolist(), step.tolist(), strict=True)])
    return Points(axis, slices, gamma, beta, step, k_time)


def check_steps(k: Floats) -> None:
    """Refuse steps in time of the isotropic form at which spins are frozen in time or hardly feel anything."""
    for value in k.tolist():
        if not LEAST_STEP <= value <= MOST_STEP:
            what = "leaves no spin free in time" if value > MOST_STEP else "leaves spins that do not interact"
            raise InputError(f"k {value:g} {what}: give values from {LEAST_STEP:g} to {MOST_STEP:g}")


def check_turn(gamma: float, step: float) -> None:
    """Refuse a field and a step in time whose coupling in time would be too strong or too weak."""
    turn = gamma * step
    if not LEAST_TURN <= turn <= MOST_TURN:
        what = "leaves no spin free in time" if turn < LEAST_TURN else "leaves slices that do not interact"
        mend = "fewer slices" if turn < LEAST_TURN else "more slices"
        raise InputError(
            f"gamma {gamma:g} times the step in time beta / slices = {step:g} is {turn:.3g}, which {what}: "
            f"give {mend}, for a product from {LEAST_TURN:g} to {MOST_TURN:g}"
        )


def coupling_in_time(gamma: float, step: float) -> float:
    """K_tau = -ln tanh(Gamma Delta tau) / 2, with the same bits on every machine: logarithms of libraries differ."""
    with localcontext() as context:
        context.prec = _DIGITS
        turned = (-2 * Decimal(gamma) * Decimal(step)).exp()
        return float(((1 + turned) / (1 - turned)).ln() / 2)
