"""What the file of a quantum run holds, and what it must hold to be read."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import h5py
import numpy as np
import numpy.typing as npt

from spinsim.engine.measuring.reduction import Reduced
from spinsim.errors import InputError
from spinsim.jobs.quantum.local import LOCAL, LOCAL_SUMS, local_series
from spinsim.model.ising import Ising
from spinsim.model.trotter import FEWEST, Points, general, isotropic
from spinsim.observables import Facts, observables
from spinsim.observables.terms import Ladder, reduced_run
from spinsim.run.ladder_layout import (
    PLACEMENT,
    SUMS,
    TEMPERING,
    Measured,
    check_permutation,
    ladder_layout,
    ladder_of,
    placement_outline,
    series_of,
)
from spinsim.run.own import on_ladder, own_in_file, with_series
from spinsim.run.reducing import REDUCED, with_sums_of
from spinsim.run.reducing import SUMS as REDUCED_SUMS
from spinsim.sampling.placement import Placement
from spinsim.store.forms import DamageError, Form, axis_of, group_of, length_of
from spinsim.store.layout import ENERGY, INVERSE, MEASUREMENTS, Layout, Series, Sizes, summary_series

_MODE: Final = "|sum of {} exp(i k x)|^2, k = 2 pi / L along axis 0 (time), 1 (x), 2 (y) or 3 (z)"
_OF_SLICES: Final = "sum over slices of the {} power of the sum over sites of {}"
_PRODUCT: Final = "the product of two copies' spins"
_IN_TIME: Final = "sum over sites and slices of s(tau) s(tau + time)"
_EVEN: Final = "sum over bonds in space and slices of (s_x s_y)(tau) (s_x s_y)(tau + time)"
_LINKS: Final = "sum over bonds in space and slices of the product of two copies' s_x s_y"
_IN_TERMS: Final = "A = E_s + E_tau in space and time, the weight being exp(-k E_s - k_time E_tau)"
_OF_PAIRS: Final = {"per": "copy_pair", "when": "pairs"}
MEASURED: Final = (
    Measured("action", lambda f: f.energy, "action A, the weight being exp(-k A)", counts=np.float64, unit=ENERGY),
    Measured("magnetization", lambda f: f.magnetization, "sum of spins over sites and slices"),
    Measured("correlation_in_time", lambda f: f.in_time, _IN_TIME, axis="time"),
    Measured(
        "slice_magnetization_squared",
        lambda f: f.magnetization_powers[..., 0],
        _OF_SLICES.format("second", "spins"),
        counts=np.int64,
    ),
    Measured(
        "slice_magnetization_fourth",
        lambda f: f.magnetization_powers[..., 1],
        _OF_SLICES.format("fourth", "spins"),
        counts=np.int64,
    ),
    Measured("even_correlation_in_time", lambda f: f.even_in_time, _EVEN, counts="bonds", axis="time", when="even"),
    Measured(
        "magnetization_mode",
        lambda f: f.magnetization_mode,
        _MODE.format("spins"),
        counts=np.float64,
        axis="axis",
        when="modes",
    ),
    Measured("overlap", lambda f: f.overlap, f"sum over sites and slices of {_PRODUCT}", **_OF_PAIRS),
    Measured(
        "slice_overlap_squared",
        lambda f: f.overlap_powers[..., 0],
        _OF_SLICES.format("second", _PRODUCT),
        counts=np.int64,
        **_OF_PAIRS,
    ),
    Measured(
        "slice_overlap_fourth",
        lambda f: f.overlap_powers[..., 1],
        _OF_SLICES.format("fourth", _PRODUCT),
        counts=np.int64,
        **_OF_PAIRS,
    ),
    Measured(
        "link_overlap",
        lambda f: f.link_overlap,
        "sum over bonds of the product of two copies' s_i s_j",
        counts="bonds",
        **_OF_PAIRS,
    ),
    Measured(
        "link_overlap_in_space", lambda f: f.link_overlap_in_space, _LINKS, "copy_pair", "bonds", when="even pairs"
    ),
    Measured(
        "overlap_mode",
        lambda f: f.overlap_mode,
        _MODE.format(_PRODUCT),
        "copy_pair",
        np.float64,
        "axis",
        when="modes of pairs",
    ),
)
"""What a quantum run measures, in the order of its file."""
POINTS: Final = "points"
"""The group that has the points of the general form."""
UNITS: Final = {"k": INVERSE, "gamma": ENERGY, "beta": INVERSE}
"""Of what a ladder may go along."""


def quantum_layout(
    model: Ising,
    copies: int,
    points: Points,
    times: tuple[int, ...],
    placement: Placement | None = None,
    start: npt.NDArray[np.int8] | None = None,
    even: bool = False,
    local: bool = False,
    magnetization_modes: bool = True,
) -> Layout:
    """Returns a layout with a row after every few sweeps, points from the end that is deepest in the ordered phase.

    Args:
        model: Of space and time.
        copies: At each point.
        points: The ladder.
        times: Of correlations in time, in slices.
        placement: How the ladder was placed, if it was.
        start: Initial configurations where they were given.
        even: Whether products of neighbours in space are measured.
        local: Whether sums for local susceptibilities are kept.
        magnetization_modes: Whether modes of the magnetisation are measured.
    """
    wanted = even, local, magnetization_modes
    layout = measured_layout(Sizes.of(model), copies, points, times, placement, *wanted)
    facts = Facts(model, copies, correlations=True, in_time=True, magnetization_modes=magnetization_modes)
    summary = summary_series(observables(facts), points.axis)
    return replace(layout, sums=(*layout.sums, *summary), start=start)


def reduced_of_run(
    model: Ising, copies: int, points: Points, times: tuple[int, ...], even: bool, magnetization_modes: bool
) -> Reduced:
    """Return what a long run adds up, of the arguments of ``quantum_layout``."""
    facts = Facts(model, copies, correlations=True, in_time=True, magnetization_modes=magnetization_modes)
    return reduced_run(facts, Ladder(len(points), times, points.gamma, points.k_time, even))


def measured_layout(
    model: Sizes,
    copies: int,
    points: Points,
    times: tuple[int, ...],
    placement: Placement | None,
    even: bool = False,
    local: bool = False,
    magnetization_modes: bool = True,
) -> Layout:
    """The same without the summary of an analysis: what the sizes of a model are enough for."""
    conditions = {
        "even": even,
        "modes": model.dimension and magnetization_modes,
        "pairs": copies > 1,
        "even pairs": even and copies > 1,
        "modes of pairs": model.dimension and copies > 1,
    }
    measured = series_of(MEASURED, model, points.axis, [name for name, holds in conditions.items() if holds])
    if points.is_general:
        measured = tuple(one._replace(long_name=_IN_TERMS) if one.name == "action" else one for one in measured)
    scales = {
        "sample": np.arange(model.samples),
        "time": np.array(times, np.int64),
        "axis": np.arange(model.dimension if magnetization_modes or copies > 1 else 0),
        "site": np.arange(model.sites // points.slices),
    }
    ladder = (points.axis, points.values, UNITS[points.axis])
    layout = ladder_layout(measured, scales, ladder, copies, placement)
    given = (*layout.given, *_given(points)) if points.is_general else layout.given
    sums = (*layout.sums, *local_series(points.axis)) if local else layout.sums
    return replace(layout, units={**layout.units, "time": "slices"}, sums=sums, given=given)


def _given(points: Points) -> list[tuple[Series, npt.NDArray[np.float64]]]:
    """Datasets of the points of the general form, beside the one that the ladder goes along."""
    about = {
        "gamma": ("transverse field", ENERGY),
        "beta": ("inverse temperature", INVERSE),
        "k": ("step in time, beta / slices", INVERSE),
        "k_time": ("coupling of neighbours in time, -ln tanh(gamma k) / 2", "1"),
    }
    del about[points.axis]
    return [
        (Series(name, (points.axis,), np.float64, *words, POINTS), getattr(points, name))
        for name, words in about.items()
    ]


def points_of(file: h5py.File) -> Points:
    """Returns the ladder of a file.

    Raises:
        DamageError: where it is none.
    """
    slices = slices_of(file)
    if POINTS not in file:
        return isotropic(ladder_of(group_of(file, MEASUREMENTS), "k", rising=False), slices)
    group = group_of(file, POINTS)
    gamma, beta = (axis_of(group, name, np.float64) for name in ("gamma", "beta"))
    try:
        points = general(np.unique(gamma), np.unique(beta), slices)
    except InputError as error:
        raise DamageError("its gamma and beta are no ladder") from error
    if not len(gamma) or not (np.array_equal(points.gamma, gamma) and np.array_equal(points.beta, beta)):
        raise DamageError("its gamma and beta are no ladder")
    return points


def slices_of(file: h5py.File) -> int:
    """Returns the slices of a file's model.

    Raises:
        DamageError: where it has no time.
    """
    slices = int(group_of(file, "model").attrs.get("slices", 1))
    if slices < FEWEST:
        raise DamageError("its model has no slices in time")
    return slices


def _layout_of(file: h5py.File, sizes: Sizes) -> tuple[Layout, int]:
    """Returns the layout that a file should have, by its own axes, and the replicas of each sample."""
    group = group_of(file, MEASUREMENTS)
    copies, points = length_of(group, "copy"), points_of(file)
    times = axis_of(group, "time", np.int64)
    slices = slices_of(file)
    if not len(times) or times[0] != 1 or times[-1] >= slices or not (np.diff(times) > 0).all():
        raise DamageError(f"its times do not rise from 1 within its {slices} slices")
    wanted = "even_correlation_in_time" in group, LOCAL in file, "magnetization_mode" in group
    listed = tuple(map(int, times))
    layout = measured_layout(sizes, copies, points, listed, placement_outline(file), *wanted)
    layout = with_series(layout, *own_in_file(file, on_ladder(points.axis)))
    return with_sums_of(layout, file, points.axis), copies * len(points)


FORM = Form(
    planned={"sweeps": (int,), "measure_every": (int,)},
    groups=(MEASUREMENTS, TEMPERING, PLACEMENT, POINTS, REDUCED, LOCAL),
    layout=_layout_of,
    sums=SUMS | REDUCED_SUMS | LOCAL_SUMS,
    check_numbers=check_permutation,
)
