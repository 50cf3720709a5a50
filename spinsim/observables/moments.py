"""Moments, which are averaged over time, copies and samples, from terms that a run adds up.

In a field the averages of m and q do not vanish, and susceptibilities are connected: averages are subtracted within
each sample, never from the average over samples. Products of such averages come from different, independent copies, so
that they are free of bias however long the autocorrelation time is.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from spinsim.engine.measuring.reduction import ABSOLUTE, CONNECTED, Reduced, Source, Term
from spinsim.model.ising import Ising
from spinsim.observables.quantities import PAIR, QUANTITIES, Choice, longest_axes
from spinsim.observables.table import Array, moments_of, observables, series_of

_OTHERS: Final = (
    "(E - <E>)^2", "(m - <m>)^2", "(|m| - <|m|>)^2", "e_s", "(H - <H>)^2", "C(1)", "|m(k_time)|^2",
)  # fmt: skip
_OTHERS_OF_PAIRS: Final = ("connected q^2", "|q(k_time)|^2")
MOMENTS: Final = {
    **{name: one.per == PAIR for one in QUANTITIES for name in one.moments if name},
    **dict.fromkeys(_OTHERS, False),
    **dict.fromkeys(_OTHERS_OF_PAIRS, True),
}
"""Every moment by name, from records of quantities or added here; true for moments of pairs of copies."""


VARIANCES: Final = {
    "(E - <E>)^2": ("energy", "E^2"),
    "(m - <m>)^2": ("m", "m^2"),
    "(|m| - <|m|>)^2": ("|m|", "m^2"),
    "(H - <H>)^2": ("H", "H^2"),
}
"""Terms whose averages give each variance: a quantity and its square."""
_ALWAYS_FOLLOWED: Final = ("energy", "e_s", "q^2", "q_link")
"""Terms by which a run is judged, in addition to those that errors of observables need."""

_OF_ENERGY: Final = {"energy", "E^2", "E^4", "connected q^2"}
"""Terms without sums over energy: powers of the energy, and a term that would need weights of four copies."""


class Ladder(NamedTuple):
    """Places of a ladder, with fields and couplings that models of space and time need."""

    places: int  # number of places
    gamma: Array = np.empty(0)  # transverse field at each place, (places,); empty for space alone
    k_time: Array = np.empty(0)  # coupling of neighbours in time, likewise


def correlation_name(number: int, even: bool = False) -> str:
    """Return the name of the term that averages to the correlation at a time, by its number among the times."""
    return f"{'even ' if even else ''}C({number})"


def reduced_run(model: Ising, measured: Choice, ladder: Ladder) -> Reduced:
    """Return the sums of a run from which all its observables follow, with their autocorrelation."""
    records, times, even = observables(model, measured), measured.wanted.times, measured.wanted.even
    wanted = dict.fromkeys(_ALWAYS_FOLLOWED)
    wanted |= dict.fromkeys(term for name in moments_of(records) for term in VARIANCES.get(name, (term_name(name),)))
    wanted |= dict.fromkeys(
        correlation_name(k, of_bonds) for of_bonds in (False, True)[: 1 + even] for k in range(len(times))
    )
    wanted["q^4"] = None  # with q^2 it gives the number of independent overlaps in P(q), in a field too
    if even and measured.copies > 1:
        wanted["q_link in space"] = None
    followed = {term_name(name) for name in series_of(records)}
    varying = {VARIANCES[name][0] for name in moments_of(records) if name in VARIANCES}
    followed |= set(_ALWAYS_FOLLOWED) | (varying if measured.copies == 1 else set())  # how well one copy knows its mean
    by_copy = {"energy", "e_s"} | varying
    over_energy = set() if times else set(wanted) - _OF_ENERGY
    known = _known_terms(model, measured, ladder)
    terms = [
        known[name]._replace(
            followed=name in followed,
            by_copy=name in by_copy,
            is_judged=name in _ALWAYS_FOLLOWED,
            over_energy=name in over_energy,
        )
        for name in wanted
        if name in known
    ]
    return Reduced(model, measured.copies, ladder.places, tuple(terms))


def term_name(moment: str) -> str:
    return correlation_name(0) if moment == "C(1)" else moment


def _known_terms(model: Ising, measured: Choice, ladder: Ladder) -> dict[str, Term]:
    """Return every term that a run can add up, by name."""
    times, places, known = measured.wanted.times, ladder.places, dict[str, Term]()

    def add(name: str, source: Source, unit: float, power: int, of_pairs: bool) -> None:
        known[name] = Term(name, (source,), np.full((1, places), unit), np.zeros(places), power, of_pairs)

    for one in measured.quantities(len(longest_axes(model))):
        along, of_pairs, full = one.elements(model) if one.elements else (), one.per == PAIR, one.full(model)
        for name, power in zip(one.moments, (1, ABSOLUTE, 2, 4), strict=False):
            if name:
                add(name, one.taken_from(along), 1 / max(1, len(along)) / full, power, of_pairs)
        if one.axis == "time":
            for k in range(len(times)):
                add(correlation_name(k, one.name.startswith("even")), one.taken_from((k,)), 1 / full, 1, of_pairs)
        if one.axis == "axis" and times:
            add("|q(k_time)|^2" if of_pairs else "|m(k_time)|^2", one.taken_from((0,)), 1 / full, 1, of_pairs)
    if measured.copies > 1:
        add("connected q^2", Source("overlap"), 1 / model.sites**2, CONNECTED, True)
    return known | (_energies_in_time(model.sites, ladder) if times else {})


def _energies_in_time(sites: int, ladder: Ladder) -> dict[str, Term]:
    """Return the terms of the energy of space and of the quantum model, from the action and correlations in time.

    e_s is the action without its bonds in time, and H = e_s - Gamma (cosh(2 K_tau) - C(1) sinh(2 K_tau)).
    """
    sources, ones = (Source("energy"), Source("in_time", (0,))), np.ones(ladder.places)
    shift, slope = -ladder.gamma * np.cosh(2 * ladder.k_time), ladder.gamma * np.sinh(2 * ladder.k_time)
    in_space = np.stack([ones, ones]) / sites, np.zeros(ladder.places)
    whole = np.stack([ones, 1 + slope]) / sites, shift
    forms = ("e_s", in_space, 1), ("H", whole, 1), ("H^2", whole, 2)
    return {name: Term(name, sources, *scales, power) for name, scales, power in forms}
