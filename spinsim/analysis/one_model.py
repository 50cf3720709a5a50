"""Whether runs of different sizes are of one model: only then do their curves cross at a transition."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spinsim.analysis.runs import Run
from spinsim.errors import InputError
from spinsim.model.trotter import first_slice
from spinsim.observables.moments import in_space

Rows = npt.NDArray[np.float64] | npt.NDArray[np.int8]

MOST_DEVIATIONS: Final = 4.0
"""By which averages of random couplings of one kind may differ, in standard errors: one pair in 16,000 does."""
SETTINGS: Final = ("couplings", "bond_fraction", "field")
LATER_SETTINGS: Final = ("dilution", "random_field", "couplings_along")
"""Settings that runs from before there were any have not, as if they were 0 or none."""


class Moment(NamedTuple):
    """A mean over couplings or fields with its standard error."""

    mean: float
    error: float


def check_one_model(a: Run, b: Run) -> None:
    """Refuse runs of two models.

    Lattices must be of one name, one boundary and one ratio of sides. Couplings and fields must be of one kind: by
    their settings where both files have these, else by the means of J, |J| and J^2 over all bonds of all samples, and
    of the fields likewise, which may differ by 4 standard errors where they are random.

    Raises:
        InputError: with what differs.
    """
    what = _lattices_differ(a, b) or _settings_differ(a, b)
    if what:
        raise InputError(
            f"{a.model.name} and {b.model.name} are not one model in two sizes: {what}, give runs that are"
        )


def _lattices_differ(a: Run, b: Run) -> str:
    """How lattices differ besides their size; empty where they do not."""
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
    """How couplings and fields differ; empty where they do not."""
    settings = [_settings(result) for result in (a, b)]
    if settings[0] and settings[1]:
        pairs = [(name, *(one.get(name) or 0.0 for one in settings if one)) for name in (*SETTINGS, *LATER_SETTINGS)]
        return " and ".join(f"{name} is {a} and {b}" for name, a, b in pairs if a != b)
    spaces = [first_slice(result.model) if result.model.graph.slices > 1 else result.model for result in (a, b)]
    for name in ("couplings", "fields"):
        one, other = (_moments(getattr(space, name)) for space in spaces)
        for power, p, q in zip(("x", "|x|", "x^2"), one, other, strict=True):
            if _differ(p, q):
                symbol = power.replace("x", "J" if name == "couplings" else "h")
                return f"their {name} have mean {symbol} {p.mean:.4g} and {q.mean:.4g}"
    return ""


def _settings(result: Run) -> dict[str, Any] | None:
    """What a run of the command line was told of its couplings; None of an instance and of a Python call."""
    settings = result.config.get("model")
    if not isinstance(settings, dict) or settings.get("instance") is not None or not settings.keys() >= set(SETTINGS):
        return None
    return settings


def _moments(rows: Rows) -> list[Moment]:
    """Means of the values, of their sizes and of their squares; one number that all bonds share has no error."""
    values = np.asarray(rows[:1, :1] if rows.strides[-1] == 0 else rows, np.float64).ravel()
    return [Moment(0.0, 0.0) if not len(x) else _moment(x) for x in (values, np.abs(values), values**2)]


def _moment(x: npt.NDArray[np.float64]) -> Moment:
    constant = bool(np.all(x == x[0]))
    return Moment(float(x[0]), 0.0) if constant else Moment(float(x.mean()), float(x.std(ddof=1) / np.sqrt(len(x))))


def _differ(one: Moment, other: Moment) -> bool:
    """Beyond chance; a constant and random numbers always do."""
    if (one.error == 0) != (other.error == 0):
        return True
    return abs(one.mean - other.mean) > max(
        MOST_DEVIATIONS * float(np.hypot(one.error, other.error)), 1e-12 * abs(one.mean)
    )
