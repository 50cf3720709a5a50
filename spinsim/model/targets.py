"""Targets of searches in a problem's own terms: the cut of a MaxCut instance, else the energy with its constant."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from spinsim.errors import InputError
from spinsim.inputs.numbers import as_floats
from spinsim.model.ising import Ising

Array = npt.NDArray[np.float64]


def value_name(model: Ising) -> str:
    return "cut" if model.maxcut_weight is not None else "energy"


def value_of(model: Ising, energy: npt.ArrayLike) -> Array:
    if model.maxcut_weight is not None:
        return model.cut(energy)
    return np.asarray(energy, np.float64) + model.offset


def check_targets(model: Ising, targets: npt.ArrayLike) -> Array:
    given = np.atleast_1d(as_floats(targets, "target"))
    if given.shape not in ((1,), (model.samples,)):
        raise InputError(
            f"target has {given.size} values but {model.name} has {model.samples} samples: give one, or one a sample"
        )
    wanted = np.full(model.samples, given)
    if model.once(_is_whole) and not model.once(_is_exact):
        raise InputError(
            f"target {_digits(wanted[0])} cannot be told from its neighbours: the whole numbers of {model.name} have "
            f"sums too large for float64, so that energies are rounded to steps of {model.quantum:g}: divide all "
            "values by a common factor, or leave the target out"
        )
    for sample, value in enumerate(wanted.tolist()):
        best = model.once(_bound, sample)
        cannot = "more" if model.maxcut_weight is not None else "less"
        if not reached(model, best, value).all():
            raise InputError(
                f"target {_digits(value)} is {cannot} than any {value_name(model)} of {model.name}, whose bound is "
                f"{_digits(value_of(model, best))}: give one that a state can have"
            )
    return wanted


def _digits(value: npt.ArrayLike) -> str:
    """A value in 15 digits, a whole number in all of its own."""
    number = float(np.asarray(value))
    return f"{number:.0f}" if number.is_integer() and abs(number) < 2.0**63 else f"{number:.15g}"


def _bound(model: Ising, sample: int) -> float:
    """Energy below which no state of a sample can be: all bonds and fields satisfied."""
    sizes = np.abs(model.integer_couplings(sample)).sum() + np.abs(model.integer_fields(sample)).sum()
    return -float(sizes) * model.quantum


def reached(model: Ising, energy: npt.ArrayLike, target: npt.ArrayLike) -> npt.NDArray[np.bool_]:
    """True where energies of the Ising model meet targets: cuts as large, energies as low, or better.

    Values count as equal if they differ by less than rounding: rounding of the problem to the quantum, and rounding of
    the target, which may come from sums in another order. Whole numbers are compared exactly; ``check_targets`` refuses
    targets of problems whose sums of whole numbers are rounded.

    Energies (samples, ...) are without the constant, targets (samples,) or (1,) in the problem's own terms.
    """
    values = value_of(model, energy)
    wanted = np.asarray(target, np.float64).reshape(-1, *(1,) * (values.ndim - 1))
    slack = model.once(_rounding)
    if model.maxcut_weight is not None:
        return np.asarray(values >= wanted - slack / 2)
    return np.asarray(values <= wanted + slack)


def _is_whole(model: Ising) -> bool:
    """Return True if all values and the constant were given as whole numbers."""
    if model.problem is None:
        return bool(model.quantum >= 1 and model.offset == np.rint(model.offset))
    given = model.problem.values
    return bool((given == np.rint(given)).all() and model.problem.offset == np.rint(model.problem.offset))


def _is_exact(model: Ising) -> bool:
    constant = model.offset if model.maxcut_weight is None else model.maxcut_weight
    largest = abs(constant) - min(model.once(_bound, sample) for sample in range(model.samples))
    return bool(not model.rounded and constant % model.quantum == 0 and largest <= 2.0**53 * model.quantum)


def _rounding(model: Ising) -> float:
    """Largest difference of two computations of one energy with its constant; below that of levels, where known."""
    if model.once(_is_whole) and model.once(_is_exact):
        return 0.0
    constant = model.offset if model.maxcut_weight is None else model.maxcut_weight
    terms, largest = model.bonds + model.sites, abs(constant) + model.sites * model.energy_scale
    sums = terms * float(np.finfo(np.float64).eps) * largest
    sums = sums + terms / 2 * model.quantum if model.rounded else min(sums, model.quantum / 2)
    return max(sums, 2 * float(np.spacing(largest)))
