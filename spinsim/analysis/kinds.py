"""Kind of magnet by the couplings of a model, and a check that runs of different sizes are of one model."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from spinsim.analysis.jackknife import standard_error
from spinsim.analysis.runs import Run
from spinsim.errors import InputError
from spinsim.model.couplings import distinct
from spinsim.model.ising import Ising, described
from spinsim.model.trotter import first_slice
from spinsim.observables.quantities import in_space

_CLEAR: Final = 4.0  # standard errors by which a mean coupling must lie above 0
MOST_DEVIATIONS: Final = 4.0  # standard errors between averages of one kind of couplings; 1 pair in 16,000 exceeds it
SETTINGS: Final = ("couplings", "bond_fraction", "field")
LATER_SETTINGS: Final = ("dilution", "random_field", "couplings_along", "antiperiodic", "perturbation")
"""Settings that older runs lack; they count as 0 or none there."""


def is_ferromagnet(model: Ising) -> bool:
    """True if no coupling is negative, so that the magnetisation is the order parameter; some may be 0."""
    lowest, highest = model.extreme_couplings
    return lowest >= 0 and highest > 0


def is_antiferromagnet(model: Ising) -> bool:
    """True if no coupling is positive and all join two sublattices, so that the order parameter is staggered."""
    lowest, highest = model.extreme_couplings
    return model.is_bipartite and highest <= 0 and lowest < 0


def favours_parallel_spins(model: Ising) -> bool:
    """True if a field or a mean coupling clearly above 0 aligns spins; elsewhere |m| is noise of finite N."""
    if np.any(model.fields):
        return True
    couplings = model.couplings
    return couplings.size > 0 and bool(couplings.mean() > _CLEAR * couplings.std() / np.sqrt(couplings.size))


def is_symmetric_glass(model: Ising) -> bool:
    """Return True for drawn couplings that are even about 0, in zero field: <s_i s_j> then averages to 0 over disorder.

    The magnetisation of such a glass, and each of its modes, averages as for free spins. The settings by which
    couplings were drawn decide, so that all sizes of one model agree; given couplings never count as symmetric.
    """
    made = described(model)
    drawn = made.get("couplings") == "gaussian" or (made.get("couplings"), made.get("bond_fraction")) == ("pm-j", 0.5)
    return drawn and not np.any(distinct(model.fields))


def check_one_model(a: Run, b: Run) -> None:
    """Refuse runs of two models.

    Lattices must share name, boundary and ratio of sides. Couplings and fields must be of one kind. Settings decide
    this where both files have them; else the means of J, |J| and J^2 over all bonds of all samples decide, and the
    corresponding means of fields. Means of random numbers may differ by 4 standard errors.
    """
    apart = _lattices_differ(a, b) or _settings_differ(a, b)
    if apart:
        raise InputError(f"{a.model.name} and {b.model.name} are not one model in two sizes: {apart}, give such runs")


def _lattices_differ(a: Run, b: Run) -> str:
    """Say how lattices differ besides their size; empty where they do not."""
    one, other = in_space(a.model), in_space(b.model)
    if one is None or other is None:
        return "" if one is other else "one has a lattice, the other has none"
    if one.dimension != other.dimension:
        return f"they have {one.dimension} and {other.dimension} dimensions"
    if one.name != other.name:
        return f"their lattices are {one.name} and {other.name}"
    if one.periodic != other.periodic:
        return "one boundary is periodic, the other is open"
    if any(p * other.shape[0] != q * one.shape[0] for p, q in zip(one.shape, other.shape, strict=True)):
        sides = [" x ".join(map(str, lattice.shape)) for lattice in (one, other)]
        return f"the sides {sides[0]} and {sides[1]} have different ratios"
    return ""


def _settings_differ(a: Run, b: Run) -> str:
    """Say how couplings and fields differ; empty where they do not."""
    settings = [_settings(result) for result in (a, b)]
    if settings[0] and settings[1]:
        pairs = [(name, *(one.get(name) or 0.0 for one in settings if one)) for name in (*SETTINGS, *LATER_SETTINGS)]
        return " and ".join(f"{name} is {a} and {b}" for name, a, b in pairs if a != b)
    spaces = [first_slice(result.model) if result.model.graph.slices > 1 else result.model for result in (a, b)]
    for name in ("couplings", "fields"):
        one, other = (_means(getattr(space, name)) for space in spaces)
        for power, (p, p_error), (q, q_error) in zip(("x", "|x|", "x^2"), one, other, strict=True):
            chance = max(MOST_DEVIATIONS * float(np.hypot(p_error, q_error)), 1e-12 * abs(p))
            if (p_error == 0) != (q_error == 0) or abs(p - q) > chance:  # a constant and random numbers always differ
                symbol = power.replace("x", "J" if name == "couplings" else "h")
                return f"their {name} have mean {symbol} {p:.4g} and {q:.4g}"
    return ""


def _settings(result: Run) -> dict[str, Any] | None:
    """Coupling settings of a run from the command line; None for an instance file and for a Python call."""
    settings = result.config.get("model")
    if not isinstance(settings, dict) or settings.get("instance") is not None or not settings.keys() >= set(SETTINGS):
        return None
    return settings


def _means(rows: npt.NDArray[np.float64] | npt.NDArray[np.int8]) -> list[tuple[float, float]]:
    """Means of x, |x| and x^2 over couplings or fields, and their errors, 0 where all are equal."""
    values = np.asarray(rows[:1, :1] if rows.strides[-1] == 0 else rows, np.float64).ravel()
    if not len(values):
        return [(0.0, 0.0)] * 3
    return [
        (float(x[0]), 0.0) if np.all(x == x[0]) else (float(x.mean()), float(standard_error(x)))
        for x in (values, np.abs(values), values**2)
    ]
