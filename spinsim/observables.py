"""What an analysis of tempering finds in a run: which observables, by what formula, and which it cannot have."""

from __future__ import annotations

from typing import Final, NamedTuple

from spinsim.model.ising import Ising

COPIES_IN_FIELD: Final = 4
"""Copies that the connected spin-glass susceptibility needs."""


class Observable(NamedTuple):
    """A column of a run's summary.

    Attributes:
        name: Of the column.
        what: What it is, with its formula.
        units: Of its values.
    """

    name: str
    what: str
    units: str = "1"


_ENERGY: Final = (
    Observable("energy_per_site", "energy per site", "coupling unit"),
    Observable("specific_heat", "specific heat per site", "k_B"),
)
_MAGNETIZATION: Final = (
    Observable("abs_magnetization", "|magnetisation| per site"),
    Observable("magnetization_squared", "squared magnetisation per site"),
)
_ZERO_FIELD: Final = (
    Observable("susceptibility", "susceptibility N <m^2> / T", "1 / coupling unit"),
    Observable("susceptibility_abs", "susceptibility of |m|, N (<m^2> - <|m|>^2) / T", "1 / coupling unit"),
    Observable("binder_cumulant", "Binder cumulant of the magnetisation"),
)
_IN_FIELD: Final = (
    Observable("magnetization", "magnetisation per site"),
    Observable("susceptibility", "connected susceptibility N [<m^2> - <m>^2] / T", "1 / coupling unit"),
)
_LENGTH: Final = Observable("correlation_length_over_L", "second-moment correlation length / L")
_CONNECTED_LENGTH: Final = Observable(
    "correlation_length_over_L", "second-moment correlation length / L, of <m^2> - <m>^2 and <|m(k)|^2>"
)
_OVERLAP: Final = Observable("overlap_squared", "squared overlap")
_OVERLAP_ZERO_FIELD: Final = (
    Observable("spin_glass_susceptibility", "spin-glass susceptibility N <q^2>"),
    Observable("overlap_binder_cumulant", "Binder cumulant of the overlap"),
)
_OVERLAP_LENGTH: Final = Observable(
    "overlap_correlation_length_over_L", "second-moment correlation length of the overlap / L"
)
_MEAN_OVERLAP: Final = Observable("overlap", "overlap")
_CONNECTED_SPIN_GLASS: Final = Observable(
    "spin_glass_susceptibility",
    "connected spin-glass susceptibility, sum over i and j of [(<s_i s_j> - <s_i><s_j>)^2] / N",
)
_LINK: Final = Observable("link_overlap", "link overlap per bond")


def in_field(model: Ising) -> bool:
    """Whether fields break the symmetry of all spins' reversal, so that averages of m and q need not vanish."""
    return model.uniform_field != 0


def is_uniform(model: Ising) -> bool:
    """Whether translations change nothing: one coupling and one field on a periodic lattice."""
    periodic = model.lattice is not None and model.lattice.periodic
    return periodic and model.uniform_field is not None and model.uniform_coupling is not None


def observables(model: Ising, copies: int, correlations: bool) -> tuple[Observable, ...]:
    """What the summary of a run has, in its order; in a field all susceptibilities and lengths are connected.

    Args:
        model: What was simulated.
        copies: At each temperature.
        correlations: Whether link overlaps and Fourier modes were measured.
    """
    field = in_field(model)
    lengths = correlations and model.lattice is not None and model.lattice.periodic
    found = [*_ENERGY, *_MAGNETIZATION, *(_IN_FIELD if field else _ZERO_FIELD)]
    if lengths and (is_uniform(model) or not field):
        found.append(_CONNECTED_LENGTH if field else _LENGTH)
    if copies > 1:
        found.append(_OVERLAP)
        if field:
            found += [_MEAN_OVERLAP, *([_CONNECTED_SPIN_GLASS] if copies >= COPIES_IN_FIELD else [])]
        else:
            found += [*_OVERLAP_ZERO_FIELD, *([_OVERLAP_LENGTH] if lengths else [])]
        if correlations:
            found.append(_LINK)
    return tuple(found)


def left_out(model: Ising, copies: int, correlations: bool) -> list[str]:
    """What a run in a field cannot have, a sentence each that says what it would take."""
    if not in_field(model):
        return []
    sentences = [
        "In a field m and q are not distributed evenly about 0: their Binder cumulants and the correlation length of "
        "the overlap are left out, as they would take connected moments and phases of modes that no file holds."
    ]
    if correlations and model.lattice is not None and model.lattice.periodic and not is_uniform(model):
        sentences.append(
            "The correlation length is left out: with disorder in a field it takes <m(k)> of each sample, and the "
            "file holds |m(k)|^2 alone."
        )
    if copies < COPIES_IN_FIELD:
        sentences.append(
            f"The spin-glass susceptibility is left out: in a field its connected form takes {COPIES_IN_FIELD} copies "
            f"at each temperature, run with --replicas {COPIES_IN_FIELD}."
        )
    return sentences
