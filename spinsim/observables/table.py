"""Table of observables: to add one that follows from measured quantities, add its record here.

``needs_met`` has the conditions that a run must meet for an observable. Columns of files and tables are in the order of
the table, so that new records must come last.

Models of space and time: the weight of a bond in time is exp(K_tau s s') = const <s| exp(a sigma_x) |s'> with
a = Gamma Delta tau, so that tanh(a) = exp(-2 K_tau). The estimator of <sigma_x> is d ln <s| exp(a sigma_x) |s'> / da:
tanh(a) where s = s' and coth(a) where not, on average cosh(2 K_tau) - C(1) sinh(2 K_tau), C(1) the mean of s s' over
bonds in time. In the isotropic form K_tau is k.

The estimator of the energy per site, H = e_s - Gamma sigma_x with this sigma_x, is -d ln(weight) / d beta of a
configuration per site. Its fluctuations and own derivative give the specific heat, of N sites of space and L slices:

    C / N = beta^2 [N var(H) - 2 (Gamma^2 / L) (1 - C(1) cosh(2 a)) / sinh(2 a)^2],

where 1 / sinh(2 a) = sinh(2 K_tau) and cosh(2 a) / sinh(2 a) = cosh(2 K_tau).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spinsim.errors import InputError, argument
from spinsim.inputs.numbers import real_array
from spinsim.model.ising import Ising
from spinsim.observables.quantities import Choice, in_field, in_space, is_uniform

Array = npt.NDArray[np.float64]
COPIES_IN_FIELD: Final = 4  # for the connected chi_SG: squares of averages come from different pairs of copies
_NONE: Final = np.empty(0)
_NOT_EVEN: Final = (
    "In a field m and q are not distributed evenly about 0: their Binder cumulants and the correlation length of "
    "the overlap are left out, as they would take connected moments and phases of modes that no file holds."
)
_ENERGY, _INVERSE = "coupling unit", "1 / coupling unit"


class Point(NamedTuple):
    """Numbers that formulas take in addition to averages."""

    model: Ising
    temperature: Array  # (temperatures,); of models of space and time the inverse of the step in time
    gamma: Array = _NONE  # transverse field of models of space and time, likewise; empty for all others
    k_time: Array = _NONE  # their coupling of neighbours in time, likewise


def binder_cumulant(second: npt.ArrayLike, fourth: npt.ArrayLike) -> Array:
    """Binder cumulant U = 1 - <m^4> / (3 <m^2>^2): 2/3 in an ordered phase, 0 for a Gaussian of mean 0.

    NaN where the second moment is not positive. Source: K. Binder, Z. Phys. B 43, 119 (1981). The cumulant of the
    energy tends to 2/3 as sizes grow; at a transition of first order its minimum stays below: M. S. S. Challa, D. P.
    Landau, K. Binder, Phys. Rev. B 34, 1841 (1986). This is the only definition here; spin-glass papers often plot 3/2
    of it.
    """
    square = _positive_or_nan(real_array(second, "second moment"))
    return np.asarray(1 - real_array(fourth, "fourth moment") / (3 * square**2))


def correlation_length(chi_zero: npt.ArrayLike, chi_min: npt.ArrayLike, momentum: float) -> Array:
    """Second-moment correlation length, xi = sqrt(chi(0) / chi(k_min) - 1) / K, in distances of nearest neighbours.

    k_min is the smallest wave vector along an axis of the periodic lattice, K its lattice momentum in inverse distances
    of nearest neighbours (``Lattice.momentum``), 2 sin(pi / side) on chains, square and cubic lattices. NaN where
    chi(0) <= chi(k_min), by noise, and where chi(k_min) is not positive. Source: F. Cooper, B. Freedman, D. Preston,
    Nucl. Phys. B 210, 210 (1982); for spin glasses M. Palassini, S. Caracciolo, Phys. Rev. Lett. 82, 5128 (1999).
    """
    if not momentum > 0:
        raise InputError(f"momentum {momentum} belongs to no wave vector but 0: give a positive one")
    zero, smallest = real_array(chi_zero, "chi(0)"), real_array(chi_min, "chi(k_min)")
    excess = _positive_or_nan(zero / _positive_or_nan(smallest) - 1)
    return np.asarray(np.sqrt(excess) / momentum)


def _positive_or_nan(values: Array) -> Array:
    return np.where(values > 0, values, np.nan)


def length_over_side(at: Point, zero: Array, smallest: Array) -> Array:
    """Return xi / L of the longest axes in space from chi(0) and chi(k_min); NaN where they are open or of side 1."""
    lattice = in_space(at.model)
    side = max(lattice.shape) if lattice and lattice.periodic else 1
    if lattice is None or side == 1:
        return np.full_like(zero, np.nan)
    return correlation_length(zero, smallest, lattice.momentum(lattice.shape.index(side))) / side


def time_over_slices(at: Point, zero: Array, smallest: Array) -> Array:
    """Return the correlation length in time over the slices, from chi(0) and chi at the smallest frequency."""
    slices = at.model.graph.slices
    return correlation_length(zero, smallest, 2 * np.sin(np.pi / slices)) / slices


def total(at: Point, squares: Array) -> Array:
    return np.asarray(at.model.sites * squares)


def susceptibility(at: Point, squares: Array) -> Array:
    return np.asarray(at.model.sites * squares / at.temperature)


def heat(at: Point, squares: Array) -> Array:
    return np.asarray(at.model.sites * squares / at.temperature**2)


def transverse_magnetization(k_time: Array, first: Array) -> Array:
    """Return <sigma_x>, which follows from the coupling in time and C(1)."""
    return np.asarray(np.cosh(2 * k_time) - first * np.sinh(2 * k_time))


def quantum_specific_heat(at: Point, fluctuations: Array, first: Array) -> Array:
    """Return the specific heat per site from the variance of the energy per site and C(1)."""
    slices = at.model.graph.slices
    beta, sinh, cosh = slices / at.temperature, np.sinh(2 * at.k_time), np.cosh(2 * at.k_time)
    own_slope = 2 * at.gamma**2 / slices * sinh * (sinh - first * cosh)
    return np.asarray(beta**2 * (at.model.sites // slices * fluctuations - own_slope))


def needs_met(model: Ising, measured: Choice, reference: str = "") -> set[str]:
    """Return the names of those conditions of observables that a run meets."""
    wanted, field, in_time = measured.wanted, in_field(model), bool(measured.wanted.times)
    modes = wanted.full and model.embedding is not None and model.embedding.periodic
    conditions = {
        "field": field,
        "zero field": not field,
        "uniform": modes and field and is_uniform(model),  # so that <m(k)> vanishes
        "staggered": measured.staggered,
        # m_s is distributed evenly about 0
        "like sublattices": measured.staggered and (not field or is_uniform(model)),
        "modes": modes,
        "spin modes": modes and wanted.magnetization_modes,
        "links": wanted.full and measured.copies > 1,
        "classical": not in_time,
        "in time": in_time,
        "isotropic": in_time and model.terms is None,  # one number multiplies the action of space and time
        "two copies": measured.copies > 1,
        "four copies": measured.copies >= COPIES_IN_FIELD,
        "from infinity": reference == "infinity",
        "from the hottest": reference == "hottest",
    }
    return {name for name, is_met in conditions.items() if is_met}


@dataclass(frozen=True)
class Observable:
    """One observable, or its form with or without a field: of two records of one name a run has one at most."""

    name: str  # of its column in tables and of its dataset in the file's summary
    label: str  # the head of its column in printed tables
    symbol: str  # the label of its axis in figures
    formula: str  # definition in words; goes into the file
    of: str
    """Quantity that it averages: ``energy``, ``magnetization``, ``staggered_magnetization``, ``overlap``,
    ``link_overlap`` or ``free_energy``."""
    moments: tuple[str, ...]  # moments from whose averages it follows, see ``moments.MOMENTS``
    needs: tuple[str, ...] = ()  # names of the conditions that a run must meet, see ``needs_met``
    value: Callable[..., Array] = lambda _, moment: moment
    """Takes a ``Point`` and the averages of ``moments`` in turn, (temperatures,) each, and returns that shape."""
    tau_of: str = ""  # moment whose autocorrelation time decides if its error is trusted; empty for its first moment
    units: str = "1"
    crosses: bool = False  # its curves of several sizes cross at a critical point, as it has no dimension
    sentence: str = ""  # note on the missing condition, given where all conditions but the last are met
    words: str = ""  # formula in captions of figures, with mathtext, where it is not formula and symbol

    @property
    def series(self) -> str:
        return self.tau_of or self.moments[0]

    @property
    def caption(self) -> str:
        _, dollar, rest = self.symbol.partition("$")
        formula = self.formula.replace("|", "").replace("/ L", "over side")
        return self.words or f"{formula} {dollar}{rest}".strip()


def _binder(
    name: str, label: str, symbol: str, whose: str, of: str, letter: str, *needs: str, **more: Any
) -> Observable:
    """Return the record of a Binder cumulant U of the moments ``letter``^2 and ^4."""
    head, moments = f"Binder cumulant $U_{symbol}$", (f"{letter}^2", f"{letter}^4")
    formula, words = f"Binder cumulant of {whose}", f"{head} of {whose}"
    return Observable(
        name, f"U_{label}", head, formula, of, moments, needs, lambda _, *of: binder_cumulant(*of), words=words, **more
    )


TABLE: Final = (
    Observable("energy_per_site", "E/N", "energy per site $E/N$", "energy per site", "energy", ("energy",),
               ("classical",), units=_ENERGY),
    Observable("specific_heat", "C/N", r"specific heat $C/(Nk_\mathrm{B})$", "specific heat per site", "energy",
               ("(E - <E>)^2",), ("classical",), heat, tau_of="energy", units="k_B"),
    Observable("abs_magnetization", "<|m|>", r"magnetisation $\langle|m|\rangle$", "|magnetisation| per site",
               "magnetization", ("|m|",), tau_of="m^2"),
    Observable("magnetization_squared", "<m^2>", r"$\langle m^2\rangle$", "squared magnetisation per site",
               "magnetization", ("m^2",)),
    Observable("susceptibility", "chi", r"susceptibility $\chi$", "susceptibility N <m^2> / T",
               "magnetization", ("m^2",), ("zero field",), susceptibility, units=_INVERSE,
               words=r"susceptibility $\chi = N\langle m^2\rangle/T$"),
    Observable("susceptibility_abs", "chi_|m|", r"susceptibility $\chi_{|m|}$",
               "susceptibility of |m|, N (<m^2> - <|m|>^2) / T",
               "magnetization", ("(|m| - <|m|>)^2",), ("zero field",), susceptibility, tau_of="m^2", units=_INVERSE,
               words=r"susceptibility $\chi_{|m|} = N(\langle m^2\rangle - \langle|m|\rangle^2)/T$"),
    _binder("binder_cumulant", "m", "m", "the magnetisation", "magnetization", "m", "zero field",
            sentence=_NOT_EVEN, crosses=True),
    Observable("magnetization", "<m>", r"magnetisation $\langle m\rangle$", "magnetisation per site",
               "magnetization", ("m",), ("field",)),
    Observable("susceptibility", "chi", r"susceptibility $\chi$", "connected susceptibility N [<m^2> - <m>^2] / T",
               "magnetization", ("(m - <m>)^2",), ("field",), susceptibility, tau_of="m", units=_INVERSE,
               words=r"connected susceptibility $\chi = N[\langle m^2\rangle - \langle m\rangle^2]/T$"),
    Observable("correlation_length_over_L", "xi_m/L", r"$\xi/L$", "second-moment correlation length / L",
               "magnetization", ("m^2", "|m(k)|^2"), ("zero field", "spin modes"), length_over_side, crosses=True),
    Observable("correlation_length_over_L", "xi_m/L", r"$\xi/L$",
               "second-moment correlation length / L, of <m^2> - <m>^2 and <|m(k)|^2>",
               "magnetization", ("(m - <m>)^2", "|m(k)|^2"), ("field", "spin modes", "uniform"), length_over_side,
               tau_of="m", crosses=True, words=r"connected second-moment correlation length over side $\xi/L$",
               sentence="The correlation length is left out: with disorder in a field it takes <m(k)> of each sample, "
               "and the file holds |m(k)|^2 alone."),
    Observable("overlap_squared", "<q^2>", r"$\langle q^2\rangle$", "squared overlap",
               "overlap", ("q^2",), ("two copies",)),
    Observable("overlap", "<q>", r"overlap $\langle q\rangle$", "overlap", "overlap", ("q",), ("field", "two copies")),
    Observable("spin_glass_susceptibility", "chi_SG", r"susceptibility $\chi_\mathrm{SG}$",
               "connected spin-glass susceptibility, sum over i and j of [(<s_i s_j> - <s_i><s_j>)^2] / N",
               "overlap", ("connected q^2",), ("field", "four copies"), total,
               words=r"connected spin-glass susceptibility $\chi_\mathrm{SG} = \sum_{ij}[(\langle s_is_j\rangle - "
               r"\langle s_i\rangle\langle s_j\rangle)^2]/N$",
               sentence="The spin-glass susceptibility is left out: in a field its connected form takes "
               f"{COPIES_IN_FIELD} copies, run with {COPIES_IN_FIELD} replicas."),
    Observable("spin_glass_susceptibility", "chi_SG", r"susceptibility $\chi_\mathrm{SG}$",
               "spin-glass susceptibility N <q^2>", "overlap", ("q^2",), ("two copies", "zero field"), total,
               words=r"spin-glass susceptibility $\chi_\mathrm{SG} = N\langle q^2\rangle$"),
    _binder("overlap_binder_cumulant", "q", "q", "the overlap", "overlap", "q", "two copies", "zero field",
            sentence=_NOT_EVEN, crosses=True),
    Observable("overlap_correlation_length_over_L", "xi_q/L", r"$\xi_q/L$",
               "second-moment correlation length of the overlap / L",
               "overlap", ("q^2", "|q(k)|^2"), ("two copies", "modes", "zero field"), length_over_side,
               crosses=True, sentence=_NOT_EVEN),
    Observable("link_overlap", "q_link", r"link overlap $\langle q_\ell\rangle$", "link overlap per bond",
               "link_overlap", ("q_link",), ("links",), words=r"link overlap $\langle q_\ell\rangle$"),
    _binder("energy_binder_cumulant", "E", "E", "the energy", "energy", "E", "classical", tau_of="energy"),
    Observable("abs_overlap", "<|q|>", r"overlap $\langle|q|\rangle$", "|overlap|", "overlap", ("|q|",),
               ("two copies",), tau_of="q^2"),
    Observable("abs_staggered_magnetization", "<|m_s|>", r"staggered $\langle|m_\mathrm{s}|\rangle$",
               "|staggered magnetisation| per site", "staggered_magnetization", ("|m_s|",), ("staggered",),
               tau_of="m_s^2"),
    Observable("staggered_magnetization_squared", "<m_s^2>", r"$\langle m_\mathrm{s}^2\rangle$",
               "squared staggered magnetisation per site", "staggered_magnetization", ("m_s^2",), ("staggered",)),
    Observable("staggered_susceptibility", "chi_s", r"susceptibility $\chi_\mathrm{s}$",
               "staggered susceptibility N <m_s^2> / T", "staggered_magnetization", ("m_s^2",),
               ("staggered", "like sublattices"), susceptibility, units=_INVERSE,
               words=r"staggered susceptibility $\chi_\mathrm{s} = N\langle m_\mathrm{s}^2\rangle/T$"),
    _binder("staggered_binder_cumulant", "s", r"\mathrm{s}", "the staggered magnetisation", "staggered_magnetization",
            "m_s", "staggered", "like sublattices", crosses=True),
    Observable("free_energy_per_site", "F/N", "free energy per site $F/N$", "free energy per site",
               "free_energy", ("ln Z", "ln Z at infinity"), ("from infinity",),
               lambda at, here, infinity: -at.temperature * (here - infinity + np.log(2)),
               tau_of="energy", units=_ENERGY),
    Observable("entropy_per_site", "S/N", "entropy per site $S/N$", "entropy per site",
               "free_energy", ("entropy", "entropy of the hottest"), ("from infinity",),
               lambda _, here, hottest: here + hottest + np.log(2), tau_of="energy", units="k_B"),
    Observable("free_energy_over_T_difference", "F/NT - ...", r"$\Delta F/(NT)$",
               "free energy per site over T, less that of the highest temperature",
               "free_energy", ("ln Z",), ("from the hottest",), lambda _, here: -here, tau_of="energy",
               words=r"free energy per site over temperature $\Delta F/(NT)$, less that of the highest temperature"),
    Observable("entropy_difference", "S/N - ...", r"$\Delta S/N$",
               "entropy per site, less that of the highest temperature",
               "free_energy", ("entropy",), ("from the hottest",), tau_of="energy", units="k_B",
               words=r"entropy per site $\Delta S/N$, less that of the highest temperature"),
    Observable("space_energy_per_site", "e_s", "$e_s$", "energy of bonds and fields in space per site and slice",
               "energy", ("e_s",), ("in time",), units=_ENERGY,
               words=r"energy $e_s$ of bonds and fields in space per site and slice"),
    Observable("transverse_magnetization", "<sigma_x>", r"$\langle\sigma^x\rangle$",
               "transverse magnetisation <sigma_x> = cosh(2 k_time) - C(1) sinh(2 k_time)",
               "energy", ("C(1)",), ("in time",), lambda at, first: transverse_magnetization(at.k_time, first),
               words=r"transverse magnetisation $\langle\sigma^x\rangle$"),
    Observable("quantum_energy_per_site", "E/N", "energy per site $E/N$",
               "energy of the quantum model per site of space, e_s - Gamma <sigma_x>",
               "energy", ("e_s", "C(1)"), ("in time",),
               lambda at, space, first: space - at.gamma * transverse_magnetization(at.k_time, first), units=_ENERGY,
               words=r"energy of the quantum model per site $E/N = e_s - \Gamma\langle\sigma^x\rangle$"),
    Observable("correlation_in_time_1", "C(1)", "$C(1)$", "correlation C(1) of neighbouring slices",
               "energy", ("C(1)",), ("in time",), words=r"correlation $C(1)$ of neighbouring slices"),
    Observable("action_per_site", "A/N", "action $A/N$", "action per site and slice",
               "energy", ("energy",), ("isotropic",), units=_ENERGY),
    Observable("action_heat", "k^2 var A/N", r"$k^2\,\mathrm{var}(A)/N$",
               "k^2 times the variance of the action per site and slice",
               "energy", ("(E - <E>)^2",), ("isotropic",), heat, tau_of="energy",
               words=r"$k^2$ times the variance of the action per site and slice"),
    Observable("slice_magnetization_squared", "<m_eq^2>", r"$\langle m_\mathrm{eq}^2\rangle$",
               "squared magnetisation of a slice", "magnetization", ("m_eq^2",), ("in time",)),
    _binder("slice_binder_cumulant", "meq", r"{m_\mathrm{eq}}", "the magnetisation of a slice", "magnetization",
            "m_eq", "in time", "zero field", crosses=True),
    Observable("correlation_time_over_slices", "xi_t/L_t", r"$\xi_\tau/L_\tau$",
               "second-moment correlation length of spins in time / slices",
               "magnetization", ("m^2", "|m(k_time)|^2"), ("in time", "zero field", "spin modes"), time_over_slices,
               crosses=True, words=r"second-moment correlation length in time over slices $\xi_\tau/L_\tau$"),
    Observable("slice_overlap_squared", "<q_eq^2>", r"$\langle q_\mathrm{eq}^2\rangle$",
               "squared overlap of equal slices", "overlap", ("q_eq^2",), ("in time", "two copies")),
    Observable("slice_overlap_fourth", "<q_eq^4>", r"$\langle q_\mathrm{eq}^4\rangle$",
               "fourth power of the overlap of equal slices", "overlap", ("q_eq^4",), ("in time", "two copies"),
               tau_of="q_eq^2"),
    _binder("slice_overlap_binder_cumulant", "qeq", r"{q_\mathrm{eq}}", "the overlap of equal slices", "overlap",
            "q_eq", "in time", "two copies", "zero field", crosses=True),
    Observable("overlap_correlation_time_over_slices", "xi_qt/L_t", r"$\xi_{q,\tau}/L_\tau$",
               "second-moment correlation length of the overlap in time / slices",
               "overlap", ("q^2", "|q(k_time)|^2"), ("in time", "two copies", "zero field", "modes"),
               time_over_slices, crosses=True,
               words=r"second-moment correlation length of the overlap in time over slices $\xi_{q,\tau}/L_\tau$"),
    Observable("quantum_specific_heat", "C/N", r"specific heat $C/(Nk_\mathrm{B})$",
               "specific heat of the quantum model per site of space",
               "energy", ("(H - <H>)^2", "C(1)"), ("in time",), quantum_specific_heat, tau_of="e_s", units="k_B",
               words=r"specific heat of the quantum model per site $C/(Nk_\mathrm{B})$"),
)  # fmt: skip
"""Every observable. Free energies and entropies come from reweighting alone, quantities of slices from quantum runs."""

LABELS: Final = {o.name: o.label for o in TABLE}  # heads of printed columns by name
SYMBOLS: Final = {o.name: o.symbol for o in TABLE}  # labels of axes by name
MAIN: Final = {
    "magnet": "energy_per_site specific_heat abs_magnetization binder_cumulant correlation_length_over_L",
    "antiferromagnet": "energy_per_site specific_heat abs_staggered_magnetization staggered_binder_cumulant",
    "glass": "energy_per_site overlap_squared overlap_binder_cumulant overlap_correlation_length_over_L specific_heat",
    "field": "energy_per_site specific_heat magnetization susceptibility correlation_length_over_L "
    "spin_glass_susceptibility",
    "quantum magnet": "space_energy_per_site transverse_magnetization slice_magnetization_squared binder_cumulant "
    "correlation_length_over_L",
    "quantum glass": "space_energy_per_site transverse_magnetization slice_overlap_squared overlap_binder_cumulant "
    "overlap_correlation_length_over_L",
}
"""Columns that are printed by default and lead in tables of all columns, by the kind of model (``main_columns``).

The most important are first. Reports print the first four (``MOST_COLUMNS`` of ``jobs/ladder/report.py``), as 80
characters hold no more.
"""
DRAWN: Final = {
    "energy": (("energy_per_site", "quantum_energy_per_site"), ("specific_heat", "transverse_magnetization")),
    "magnetization": (
        ("slice_magnetization_squared", "magnetization", "abs_magnetization"),
        ("susceptibility_abs", "susceptibility"),
    ),
    "staggered_magnetization": (("abs_staggered_magnetization",), ("staggered_susceptibility",)),
    "overlap": (("slice_overlap_squared", "overlap", "link_overlap"), ("spin_glass_susceptibility",)),
}
"""Panels of thermodynamics, for any run ("energy") and by order parameter; the first name that a run has is drawn."""
CROSSING: Final = {
    of: tuple(dict.fromkeys(o.name for o in TABLE if o.crosses and o.of == of))
    for of in ("overlap", "magnetization", "staggered_magnetization")
}
"""Observables whose curves of several sizes cross, by their order parameter."""


def observables(model: Ising, measured: Choice, reference: str = "") -> tuple[Observable, ...]:
    """Return the observables of a summary, in order; in a field all susceptibilities and lengths are connected.

    ``reference`` is the reference of free energy and entropy between simulated temperatures: ``infinity``, or
    ``hottest`` for the highest temperature of the ladder; empty for all other averages.
    """
    met = needs_met(model, measured, reference)
    return tuple(o for o in TABLE if met.issuperset(o.needs))


def moments_of(records: Iterable[Observable]) -> list[str]:
    return list(dict.fromkeys(name for o in records for name in o.moments))


def series_of(records: Iterable[Observable]) -> list[str]:
    return list(dict.fromkeys(o.series for o in records))


def own_observables(names: Iterable[str]) -> tuple[Observable, ...]:
    """Return records of the user's own observables, which are averages of their series."""
    return tuple(Observable(name, name, name, f"average of {name}", name, (name,)) for name in names)


def left_out(model: Ising, measured: Choice, modes_matter: bool = True) -> list[str]:
    """Return sentences on missing observables for which a run meets nearly all conditions.

    Modes of the magnetisation are mentioned only where they matter.
    """
    met, there = needs_met(model, measured), observables(model, measured)
    missed = [o for o in TABLE if o not in there and met.issuperset(o.needs[:-1])]
    said = list(dict.fromkeys(o.sentence for o in missed if o.sentence))
    with_modes = measured._replace(wanted=measured.wanted._replace(magnetization_modes=True))
    if not modes_matter or observables(model, with_modes) == there:
        return said
    modes = "The correlation length of the magnetisation is left out: its Fourier modes were not measured"
    return [*said, f"{modes}, run with {argument('magnetization_modes', True)}."]


def printed_order(names: list[str]) -> list[str]:
    """Return names of observables by quantity, the mean of an order parameter before functions of it."""
    of = {name: name for name in names} | {o.name: o.of for o in TABLE}  # the user's own come last
    groups = list(dict.fromkeys([*(o.of for o in TABLE), *names]))
    return sorted(names, key=lambda name: (groups.index(of[name]), name != of[name]))
