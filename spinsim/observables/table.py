"""The table of observables: to add one that follows from what is measured, add its record here.

Columns of files and tables stand in this order, so that new ones come after those that are there.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np

from spinsim.errors import argument
from spinsim.model.ising import Ising
from spinsim.observables.formulas import binder_cumulant, length_over_side
from spinsim.observables.in_time import IN_TIME
from spinsim.observables.observable import (
    COPIES_IN_FIELD,
    Facts,
    Observable,
    a_field,
    classical,
    four_copies,
    from_infinity,
    from_the_hottest,
    like_sublattices,
    links,
    modes,
    spin_modes,
    staggered,
    two_copies,
    uniform,
    zero_field,
)

_NOT_EVEN: Final = (
    "In a field m and q are not distributed evenly about 0: their Binder cumulants and the correlation length of "
    "the overlap are left out, as they would take connected moments and phases of modes that no file holds."
)

TABLE: Final = (
    Observable(
        "energy_per_site", "E/N", "energy per site $E/N$", "energy per site",
        of="energy", moments=("energy",), series="energy", units="coupling unit", needs=(classical,),
        words=r"energy per site $E/N$",
    ),
    Observable(
        "specific_heat", "C/N", r"specific heat $C/(Nk_\mathrm{B})$", "specific heat per site",
        of="energy", moments=("(E - <E>)^2",), series="energy", units="k_B", needs=(classical,),
        value=lambda at, squares: at.model.sites * squares / at.temperature**2,
        words=r"specific heat per site $C/(Nk_\mathrm{B})$",
    ),
    Observable(
        "abs_magnetization", "<|m|>", r"magnetisation $\langle|m|\rangle$", "|magnetisation| per site",
        of="magnetization", moments=("|m|",), series="m^2",
        words=r"magnetisation per site $\langle|m|\rangle$",
    ),
    Observable(
        "magnetization_squared", "<m^2>", r"$\langle m^2\rangle$", "squared magnetisation per site",
        of="magnetization", moments=("m^2",), series="m^2",
        words=r"squared magnetisation per site $\langle m^2\rangle$",
    ),
    Observable(
        "susceptibility", "chi", r"susceptibility $\chi$", "susceptibility N <m^2> / T",
        of="magnetization", moments=("m^2",), series="m^2", units="1 / coupling unit", needs=(zero_field,),
        value=lambda at, squares: at.model.sites * squares / at.temperature,
        words=r"susceptibility $\chi = N\langle m^2\rangle/T$",
    ),
    Observable(
        "susceptibility_abs", "chi_|m|", r"susceptibility $\chi_{|m|}$",
        "susceptibility of |m|, N (<m^2> - <|m|>^2) / T",
        of="magnetization", moments=("(|m| - <|m|>)^2",), series="m^2", units="1 / coupling unit", needs=(zero_field,),
        value=lambda at, squares: at.model.sites * squares / at.temperature,
        words=r"susceptibility $\chi_{|m|} = N(\langle m^2\rangle - \langle|m|\rangle^2)/T$",
    ),
    Observable(
        "binder_cumulant", "U_m", "Binder cumulant $U_m$", "Binder cumulant of the magnetisation",
        of="magnetization", moments=("m^2", "m^4"), series="m^2", needs=(zero_field,), sentence=_NOT_EVEN, crosses=True,
        value=lambda _, second, fourth: binder_cumulant(second, fourth),
        words=r"Binder cumulant $U_m$ of the magnetisation",
    ),
    Observable(
        "magnetization", "<m>", r"magnetisation $\langle m\rangle$", "magnetisation per site",
        of="magnetization", moments=("m",), series="m", needs=(a_field,),
        words=r"magnetisation per site $\langle m\rangle$",
    ),
    Observable(
        "susceptibility", "chi", r"susceptibility $\chi$", "connected susceptibility N [<m^2> - <m>^2] / T",
        of="magnetization", moments=("(m - <m>)^2",), series="(m - <m>)^2", units="1 / coupling unit", needs=(a_field,),
        value=lambda at, squares: at.model.sites * squares / at.temperature,
        words=r"connected susceptibility $\chi = N[\langle m^2\rangle - \langle m\rangle^2]/T$",
    ),
    Observable(
        "correlation_length_over_L", "xi_m/L", r"$\xi/L$", "second-moment correlation length / L",
        of="magnetization", moments=("m^2", "|m(k)|^2"), series="m^2", needs=(zero_field, spin_modes), crosses=True,
        value=lambda at, zero, smallest: length_over_side(at.model, zero, smallest),
        words=r"second-moment correlation length over side $\xi/L$",
    ),
    Observable(
        "correlation_length_over_L", "xi_m/L", r"$\xi/L$",
        "second-moment correlation length / L, of <m^2> - <m>^2 and <|m(k)|^2>",
        of="magnetization", moments=("(m - <m>)^2", "|m(k)|^2"), series="(m - <m>)^2",
        needs=(a_field, spin_modes, uniform), crosses=True,
        value=lambda at, zero, smallest: length_over_side(at.model, zero, smallest),
        sentence="The correlation length is left out: with disorder in a field it takes <m(k)> of each sample, and the "
        "file holds |m(k)|^2 alone.",
        words=r"connected second-moment correlation length over side $\xi/L$",
    ),
    Observable(
        "overlap_squared", "<q^2>", r"$\langle q^2\rangle$", "squared overlap",
        of="overlap", moments=("q^2",), series="q^2", needs=(two_copies,),
        words=r"squared overlap $\langle q^2\rangle$",
    ),
    Observable(
        "overlap", "<q>", r"overlap $\langle q\rangle$", "overlap",
        of="overlap", moments=("q",), series="q", needs=(a_field, two_copies),
        words=r"overlap $\langle q\rangle$",
    ),
    Observable(
        "spin_glass_susceptibility", "chi_SG", r"susceptibility $\chi_\mathrm{SG}$",
        "connected spin-glass susceptibility, sum over i and j of [(<s_i s_j> - <s_i><s_j>)^2] / N",
        of="overlap", moments=("connected q^2",), series="connected q^2", needs=(a_field, four_copies),
        value=lambda at, squares: at.model.sites * squares,
        sentence=f"The spin-glass susceptibility is left out: in a field its connected form takes {COPIES_IN_FIELD} "
        f"copies, run with {COPIES_IN_FIELD} replicas.",
        words=r"connected spin-glass susceptibility $\chi_\mathrm{SG} = \sum_{ij}[(\langle s_is_j\rangle - "
        r"\langle s_i\rangle\langle s_j\rangle)^2]/N$",
    ),
    Observable(
        "spin_glass_susceptibility", "chi_SG", r"susceptibility $\chi_\mathrm{SG}$",
        "spin-glass susceptibility N <q^2>",
        of="overlap", moments=("q^2",), series="q^2", needs=(two_copies, zero_field),
        value=lambda at, squares: at.model.sites * squares,
        words=r"spin-glass susceptibility $\chi_\mathrm{SG} = N\langle q^2\rangle$",
    ),
    Observable(
        "overlap_binder_cumulant", "U_q", "Binder cumulant $U_q$", "Binder cumulant of the overlap",
        of="overlap", moments=("q^2", "q^4"), series="q^2", needs=(two_copies, zero_field), sentence=_NOT_EVEN,
        crosses=True,
        value=lambda _, second, fourth: binder_cumulant(second, fourth),
        words=r"Binder cumulant $U_q$ of the overlap",
    ),
    Observable(
        "overlap_correlation_length_over_L", "xi_q/L", r"$\xi_q/L$",
        "second-moment correlation length of the overlap / L",
        of="overlap", moments=("q^2", "|q(k)|^2"), series="q^2", needs=(two_copies, modes, zero_field),
        sentence=_NOT_EVEN, crosses=True,
        value=lambda at, zero, smallest: length_over_side(at.model, zero, smallest),
        words=r"second-moment correlation length of the overlap over side $\xi_q/L$",
    ),
    Observable(
        "link_overlap", "q_link", r"link overlap $\langle q_\ell\rangle$", "link overlap per bond",
        of="link_overlap", moments=("q_link",), series="q_link", needs=(links,),
        words=r"link overlap $\langle q_\ell\rangle$",
    ),
    Observable(
        "energy_binder_cumulant", "U_E", "Binder cumulant $U_E$", "Binder cumulant of the energy",
        of="energy", moments=("E^2", "E^4"), series="energy", needs=(classical,),
        value=lambda _, second, fourth: binder_cumulant(second, fourth),
        words=r"Binder cumulant $U_E$ of the energy",
    ),
    Observable(
        "abs_overlap", "<|q|>", r"overlap $\langle|q|\rangle$", "|overlap|",
        of="overlap", moments=("|q|",), series="q^2", needs=(two_copies,),
        words=r"overlap $\langle|q|\rangle$",
    ),
    Observable(
        "abs_staggered_magnetization", "<|m_s|>", r"staggered $\langle|m_\mathrm{s}|\rangle$",
        "|staggered magnetisation| per site",
        of="staggered_magnetization", moments=("|m_s|",), series="m_s^2", needs=(staggered,),
        words=r"staggered magnetisation per site $\langle|m_\mathrm{s}|\rangle$",
    ),
    Observable(
        "staggered_magnetization_squared", "<m_s^2>", r"$\langle m_\mathrm{s}^2\rangle$",
        "squared staggered magnetisation per site",
        of="staggered_magnetization", moments=("m_s^2",), series="m_s^2", needs=(staggered,),
        words=r"squared staggered magnetisation per site $\langle m_\mathrm{s}^2\rangle$",
    ),
    Observable(
        "staggered_susceptibility", "chi_s", r"susceptibility $\chi_\mathrm{s}$",
        "staggered susceptibility N <m_s^2> / T",
        of="staggered_magnetization", moments=("m_s^2",), series="m_s^2", units="1 / coupling unit",
        needs=(staggered, like_sublattices),
        value=lambda at, squares: at.model.sites * squares / at.temperature,
        words=r"staggered susceptibility $\chi_\mathrm{s} = N\langle m_\mathrm{s}^2\rangle/T$",
    ),
    Observable(
        "staggered_binder_cumulant", "U_s", r"Binder cumulant $U_\mathrm{s}$",
        "Binder cumulant of the staggered magnetisation",
        of="staggered_magnetization", moments=("m_s^2", "m_s^4"), series="m_s^2", needs=(staggered, like_sublattices),
        crosses=True,
        value=lambda _, second, fourth: binder_cumulant(second, fourth),
        words=r"Binder cumulant $U_\mathrm{s}$ of the staggered magnetisation",
    ),
    Observable(
        "free_energy_per_site", "F/N", "free energy per site $F/N$", "free energy per site",
        of="free_energy", moments=("ln Z", "ln Z at infinity"), series="energy", units="coupling unit",
        needs=(from_infinity,),
        value=lambda at, here, infinity: -at.temperature * (here - infinity + np.log(2)),
        words=r"free energy per site $F/N$",
    ),
    Observable(
        "entropy_per_site", "S/N", "entropy per site $S/N$", "entropy per site",
        of="free_energy", moments=("entropy", "entropy of the hottest"), series="energy", units="k_B",
        needs=(from_infinity,),
        value=lambda _, here, hottest: here + hottest + np.log(2),
        words=r"entropy per site $S/N$",
    ),
    Observable(
        "free_energy_over_T_difference", "F/NT - ...", r"$\Delta F/(NT)$",
        "free energy per site over T, less that of the highest temperature",
        of="free_energy", moments=("ln Z",), series="energy", needs=(from_the_hottest,),
        value=lambda _, here: -here,
        words=r"free energy per site over temperature $\Delta F/(NT)$, less that of the highest temperature",
    ),
    Observable(
        "entropy_difference", "S/N - ...", r"$\Delta S/N$", "entropy per site, less that of the highest temperature",
        of="free_energy", moments=("entropy",), series="energy", units="k_B", needs=(from_the_hottest,),
        words=r"entropy per site $\Delta S/N$, less that of the highest temperature",
    ),
    *IN_TIME,
)  # fmt: skip
"""Every observable. Free energies and entropies are those of reweighting alone."""

LABELS: Final = {o.name: o.label for o in TABLE}
"""Heads of printed columns by name."""
SYMBOLS: Final = {o.name: o.symbol for o in TABLE}
"""Labels of axes by name."""
MAIN: Final = {
    "magnet": (
        "energy_per_site",
        "specific_heat",
        "abs_magnetization",
        "binder_cumulant",
        "correlation_length_over_L",
    ),
    "antiferromagnet": (
        "energy_per_site",
        "specific_heat",
        "abs_staggered_magnetization",
        "staggered_binder_cumulant",
    ),
    "glass": (
        "energy_per_site",
        "overlap_squared",
        "overlap_binder_cumulant",
        "overlap_correlation_length_over_L",
        "specific_heat",
    ),
    "field": (
        "energy_per_site",
        "specific_heat",
        "magnetization",
        "susceptibility",
        "correlation_length_over_L",
        "spin_glass_susceptibility",
    ),
    "quantum magnet": (
        "space_energy_per_site",
        "transverse_magnetization",
        "slice_magnetization_squared",
        "binder_cumulant",
        "correlation_length_over_L",
    ),
    "quantum glass": (
        "space_energy_per_site",
        "transverse_magnetization",
        "slice_overlap_squared",
        "overlap_binder_cumulant",
        "overlap_correlation_length_over_L",
    ),
}
"""What is printed unless other columns are asked for, the most important first, by the kind of model."""
DRAWN: Final = {
    "energy": (("energy_per_site", "quantum_energy_per_site"), ("specific_heat", "transverse_magnetization")),
    "magnetization": (
        ("slice_magnetization_squared", "magnetization", "abs_magnetization"),
        ("susceptibility_abs", "susceptibility"),
    ),
    "staggered_magnetization": (("abs_staggered_magnetization",), ("staggered_susceptibility",)),
    "overlap": (("slice_overlap_squared", "overlap", "link_overlap"), ("spin_glass_susceptibility",)),
}
"""Panels of the thermodynamics, of any run and by the order parameter: the first name that a run has is drawn."""
CROSSING: Final = {
    of: tuple(dict.fromkeys(o.name for o in TABLE if o.crosses and o.of == of))
    for of in ("overlap", "magnetization", "staggered_magnetization")
}
"""Observables whose curves of several sizes cross, by the order parameter that they are of."""


def observables(
    model: Ising,
    copies: int,
    correlations: bool,
    reference: str = "",
    staggered: bool = False,
    in_time: bool = False,
    magnetization_modes: bool = True,
) -> tuple[Observable, ...]:
    """Returns what the summary of a run has, in its order; in a field all susceptibilities and lengths are connected.

    Args:
        model: What was simulated.
        copies: Replicas at each temperature.
        correlations: Whether link overlaps and Fourier modes were measured.
        reference: Of reweighted averages, see ``Facts``.
        staggered: Whether staggered magnetisations were measured.
        in_time: Whether slices in time were measured.
        magnetization_modes: Whether Fourier modes of the magnetisation were, beside those of overlaps.
    """
    facts = Facts(model, copies, correlations, reference, staggered, in_time, magnetization_modes)
    return tuple(o for o in TABLE if o.is_in(facts))


def own_observables(names: Iterable[str]) -> tuple[Observable, ...]:
    """Returns records of the user's own observables, which are averages of their series."""
    return tuple(Observable(name, name, name, f"average of {name}", name, (name,), name) for name in names)


def left_out(model: Ising, copies: int, correlations: bool, magnetization_modes: bool) -> list[str]:
    """Returns what a run cannot have though it has nearly all that it takes: sentences that say what is missing."""
    facts = Facts(model, copies, correlations, magnetization_modes=magnetization_modes)
    said = dict.fromkeys(o.sentence for o in TABLE if o.sentence and o.is_missed_in(facts))
    whole = facts._replace(magnetization_modes=True)
    fewer = any(o.is_in(whole) and not o.is_in(facts) for o in TABLE)
    if not fewer:
        return list(said)
    what = "The correlation length of the magnetisation is left out: its Fourier modes were not measured"
    return [*said, f"{what}, run with {argument('magnetization_modes', True)}."]


def printed_order(names: list[str]) -> list[str]:
    """Returns names of observables by what they are of, the mean of an order parameter before what is made of it."""
    of = {name: name for name in names} | {o.name: o.of for o in TABLE}  # the user's own come last
    groups = list(dict.fromkeys([*(o.of for o in TABLE), *names]))
    return sorted(names, key=lambda name: (groups.index(of[name]), name != of[name]))
