"""Observables of models of space and time: what the Suzuki-Trotter form says of the quantum model.

The weight of a bond in time is exp(K_tau s s') = const <s| exp(a sigma_x) |s'> with a = Gamma Delta tau, so that
tanh(a) = exp(-2 K_tau). The estimator of <sigma_x> is d ln <s| exp(a sigma_x) |s'> / da: tanh(a) where s = s' and
coth(a) where not, on average cosh(2 K_tau) - C(1) sinh(2 K_tau), C(1) the mean of s s' over bonds in time. In the
isotropic form K_tau is k.

The estimator of the energy per site, H = e_s - Gamma sigma_x with this sigma_x, is -d ln(weight) / d beta of a
configuration per site. Its fluctuations and its own derivative give the specific heat: with N sites of space and L
slices

    C / N = beta^2 [N var(H) - 2 (Gamma^2 / L) (1 - C(1) cosh(2 a)) / sinh(2 a)^2],

where 1 / sinh(2 a) = sinh(2 K_tau) and cosh(2 a) / sinh(2 a) = cosh(2 K_tau).
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from spinsim.observables.formulas import binder_cumulant, time_over_slices
from spinsim.observables.observable import (
    Observable,
    Point,
    in_time,
    isotropic,
    modes,
    spin_modes,
    two_copies,
    zero_field,
)

Array = npt.NDArray[np.float64]


def transverse_magnetization(k_time: Array, first: Array) -> Array:
    """Returns <sigma_x>, which follows from the coupling in time and C(1)."""
    return np.asarray(np.cosh(2 * k_time) - first * np.sinh(2 * k_time))


def quantum_specific_heat(at: Point, fluctuations: Array, first: Array) -> Array:
    """Returns the specific heat per site from the variance of the energy per site and C(1)."""
    slices = at.model.graph.slices
    beta, sinh, cosh = slices / at.temperature, np.sinh(2 * at.k_time), np.cosh(2 * at.k_time)
    own_slope = 2 * at.gamma**2 / slices * sinh * (sinh - first * cosh)
    return np.asarray(beta**2 * (at.model.sites // slices * fluctuations - own_slope))


IN_TIME: Final = (
    Observable(
        "space_energy_per_site", "e_s", "$e_s$", "energy of bonds and fields in space per site and slice",
        of="energy", moments=("e_s",), series="e_s", units="coupling unit", needs=(in_time,),
        words=r"energy $e_s$ of bonds and fields in space per site and slice",
    ),
    Observable(
        "transverse_magnetization", "<sigma_x>", r"$\langle\sigma^x\rangle$",
        "transverse magnetisation <sigma_x> = cosh(2 k_time) - C(1) sinh(2 k_time)",
        of="energy", moments=("C(1)",), series="C(1)", needs=(in_time,),
        value=lambda at, first: transverse_magnetization(at.k_time, first),
        words=r"transverse magnetisation $\langle\sigma^x\rangle$",
    ),
    Observable(
        "quantum_energy_per_site", "E/N", "energy per site $E/N$",
        "energy of the quantum model per site of space, e_s - Gamma <sigma_x>",
        of="energy", moments=("e_s", "C(1)"), series="e_s", units="coupling unit", needs=(in_time,),
        value=lambda at, space, first: space - at.gamma * transverse_magnetization(at.k_time, first),
        words=r"energy of the quantum model per site $E/N = e_s - \Gamma\langle\sigma^x\rangle$",
    ),
    Observable(
        "correlation_in_time_1", "C(1)", "$C(1)$", "correlation C(1) of neighbouring slices",
        of="energy", moments=("C(1)",), series="C(1)", needs=(in_time,),
        words=r"correlation $C(1)$ of neighbouring slices",
    ),
    Observable(
        "action_per_site", "A/N", "action $A/N$", "action per site and slice",
        of="energy", moments=("energy",), series="energy", units="coupling unit", needs=(isotropic,),
        words=r"action per site and slice $A/N$",
    ),
    Observable(
        "action_heat", "k^2 var A/N", r"$k^2\,\mathrm{var}(A)/N$",
        "k^2 times the variance of the action per site and slice",
        of="energy", moments=("(E - <E>)^2",), series="energy", needs=(isotropic,),
        value=lambda at, squares: at.model.sites * squares / at.temperature**2,
        words=r"$k^2$ times the variance of the action per site and slice",
    ),
    Observable(
        "slice_magnetization_squared", "<m_eq^2>", r"$\langle m_\mathrm{eq}^2\rangle$",
        "squared magnetisation of a slice",
        of="magnetization", moments=("m_eq^2",), series="m_eq^2", needs=(in_time,),
        words=r"squared magnetisation of a slice $\langle m_\mathrm{eq}^2\rangle$",
    ),
    Observable(
        "slice_binder_cumulant", "U_meq", r"Binder cumulant $U_{m_\mathrm{eq}}$",
        "Binder cumulant of the magnetisation of a slice",
        of="magnetization", moments=("m_eq^2", "m_eq^4"), series="m_eq^2", needs=(in_time, zero_field), crosses=True,
        value=lambda _, second, fourth: binder_cumulant(second, fourth),
        words=r"Binder cumulant $U_{m_\mathrm{eq}}$ of the magnetisation of a slice",
    ),
    Observable(
        "correlation_time_over_slices", "xi_t/L_t", r"$\xi_\tau/L_\tau$",
        "second-moment correlation length of spins in time / slices",
        of="magnetization", moments=("m^2", "|m(k_time)|^2"), series="m^2", needs=(in_time, zero_field, spin_modes),
        crosses=True, value=lambda at, zero, smallest: time_over_slices(at.model, zero, smallest),
        words=r"second-moment correlation length in time over slices $\xi_\tau/L_\tau$",
    ),
    Observable(
        "slice_overlap_squared", "<q_eq^2>", r"$\langle q_\mathrm{eq}^2\rangle$", "squared overlap of equal slices",
        of="overlap", moments=("q_eq^2",), series="q_eq^2", needs=(in_time, two_copies),
        words=r"squared overlap of equal slices $\langle q_\mathrm{eq}^2\rangle$",
    ),
    Observable(
        "slice_overlap_fourth", "<q_eq^4>", r"$\langle q_\mathrm{eq}^4\rangle$",
        "fourth power of the overlap of equal slices",
        of="overlap", moments=("q_eq^4",), series="q_eq^2", needs=(in_time, two_copies),
        words=r"fourth power of the overlap of equal slices $\langle q_\mathrm{eq}^4\rangle$",
    ),
    Observable(
        "slice_overlap_binder_cumulant", "U_qeq", r"Binder cumulant $U_{q_\mathrm{eq}}$",
        "Binder cumulant of the overlap of equal slices",
        of="overlap", moments=("q_eq^2", "q_eq^4"), series="q_eq^2", needs=(in_time, two_copies, zero_field),
        crosses=True, value=lambda _, second, fourth: binder_cumulant(second, fourth),
        words=r"Binder cumulant $U_{q_\mathrm{eq}}$ of the overlap of equal slices",
    ),
    Observable(
        "overlap_correlation_time_over_slices", "xi_qt/L_t", r"$\xi_{q,\tau}/L_\tau$",
        "second-moment correlation length of the overlap in time / slices",
        of="overlap", moments=("q^2", "|q(k_time)|^2"), series="q^2", needs=(in_time, two_copies, zero_field, modes),
        crosses=True, value=lambda at, zero, smallest: time_over_slices(at.model, zero, smallest),
        words=r"second-moment correlation length of the overlap in time over slices $\xi_{q,\tau}/L_\tau$",
    ),
    Observable(
        "quantum_specific_heat", "C/N", r"specific heat $C/(Nk_\mathrm{B})$",
        "specific heat of the quantum model per site of space",
        of="energy", moments=("(H - <H>)^2", "C(1)"), series="e_s", units="k_B", needs=(in_time,),
        value=quantum_specific_heat,
        words=r"specific heat of the quantum model per site $C/(Nk_\mathrm{B})$",
    ),
)  # fmt: skip
"""Observables of runs that have measured slices in time."""
