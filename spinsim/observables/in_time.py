"""Observables of models of space and time: what the isotropic Suzuki-Trotter form says of the quantum model.

The weight of a bond in time is exp(k s s') = const <s| exp(k Gamma sigma_x) |s'>, so that tanh(k Gamma) = exp(-2 k).
The estimator of <sigma_x> is d ln <s| exp(a sigma_x) |s'> / da at a = k Gamma: tanh(a) where s = s' and coth(a) where
not, on average cosh(2 k) - C(1) sinh(2 k), C(1) the mean of s s' over bonds in time.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from spinsim.observables.formulas import binder_cumulant, time_over_slices
from spinsim.observables.observable import Observable, Point, in_time, modes, two_copies, zero_field

Array = npt.NDArray[np.float64]


def transverse_magnetization(at: Point, first: Array) -> Array:
    """<sigma_x> from C(1)."""
    k = 1 / at.temperature
    return np.asarray(np.cosh(2 * k) - first * np.sinh(2 * k))


def transverse_field(at: Point) -> Array:
    """Gamma = -ln tanh(k) / (2 k), in the unit of the couplings."""
    k = 1 / at.temperature
    return np.asarray(-np.log(np.tanh(k)) / (2 * k))


IN_TIME: Final = (
    Observable(
        "space_energy_per_site", "e_s", "$e_s$", "energy of bonds and fields in space per site and slice",
        of="energy", moments=("e_s",), series="e_s", units="coupling unit", needs=(in_time,),
    ),
    Observable(
        "transverse_magnetization", "<sigma_x>", r"$\langle\sigma^x\rangle$",
        "transverse magnetisation <sigma_x> = cosh(2 k) - C(1) sinh(2 k)",
        of="energy", moments=("C(1)",), series="C(1)", needs=(in_time,), value=transverse_magnetization,
    ),
    Observable(
        "quantum_energy_per_site", "E/N", "energy per site $E/N$",
        "energy of the quantum model per site of space, e_s - Gamma <sigma_x>",
        of="energy", moments=("e_s", "C(1)"), series="e_s", units="coupling unit", needs=(in_time,),
        value=lambda at, space, first: space - transverse_field(at) * transverse_magnetization(at, first),
    ),
    Observable(
        "correlation_in_time_1", "C(1)", "$C(1)$", "correlation C(1) of neighbouring slices",
        of="energy", moments=("C(1)",), series="C(1)", needs=(in_time,),
    ),
    Observable(
        "action_per_site", "A/N", "action $A/N$", "action per site and slice",
        of="energy", moments=("energy",), series="energy", units="coupling unit", needs=(in_time,),
    ),
    Observable(
        "action_heat", "k^2 var A/N", r"$k^2\,\mathrm{var}(A)/N$",
        "k^2 times the variance of the action per site and slice",
        of="energy", moments=("(E - <E>)^2",), series="energy", needs=(in_time,),
        value=lambda at, squares: at.model.sites * squares / at.temperature**2,
    ),
    Observable(
        "slice_magnetization_squared", "<m_eq^2>", r"$\langle m_\mathrm{eq}^2\rangle$",
        "squared magnetisation of a slice",
        of="magnetization", moments=("m_eq^2",), series="m_eq^2", needs=(in_time,),
    ),
    Observable(
        "slice_binder_cumulant", "U_meq", r"Binder cumulant $U_{m_\mathrm{eq}}$",
        "Binder cumulant of the magnetisation of a slice",
        of="magnetization", moments=("m_eq^2", "m_eq^4"), series="m_eq^2", needs=(in_time, zero_field), crosses=True,
        value=lambda _, second, fourth: binder_cumulant(second, fourth),
    ),
    Observable(
        "correlation_time_over_slices", "xi_t/L_t", r"$\xi_\tau/L_\tau$",
        "second-moment correlation length of spins in time / slices",
        of="magnetization", moments=("m^2", "|m(k_time)|^2"), series="m^2", needs=(in_time, zero_field, modes),
        crosses=True, value=lambda at, zero, smallest: time_over_slices(at.model, zero, smallest),
    ),
    Observable(
        "slice_overlap_squared", "<q_eq^2>", r"$\langle q_\mathrm{eq}^2\rangle$", "squared overlap of equal slices",
        of="overlap", moments=("q_eq^2",), series="q_eq^2", needs=(in_time, two_copies),
    ),
    Observable(
        "slice_overlap_fourth", "<q_eq^4>", r"$\langle q_\mathrm{eq}^4\rangle$",
        "fourth power of the overlap of equal slices",
        of="overlap", moments=("q_eq^4",), series="q_eq^2", needs=(in_time, two_copies),
    ),
    Observable(
        "slice_overlap_binder_cumulant", "U_qeq", r"Binder cumulant $U_{q_\mathrm{eq}}$",
        "Binder cumulant of the overlap of equal slices",
        of="overlap", moments=("q_eq^2", "q_eq^4"), series="q_eq^2", needs=(in_time, two_copies, zero_field),
        crosses=True, value=lambda _, second, fourth: binder_cumulant(second, fourth),
    ),
    Observable(
        "overlap_correlation_time_over_slices", "xi_qt/L_t", r"$\xi_{q,\tau}/L_\tau$",
        "second-moment correlation length of the overlap in time / slices",
        of="overlap", moments=("q^2", "|q(k_time)|^2"), series="q^2", needs=(in_time, two_copies, zero_field, modes),
        crosses=True, value=lambda at, zero, smallest: time_over_slices(at.model, zero, smallest),
    ),
)  # fmt: skip
"""Observables of runs that have measured slices in time."""
