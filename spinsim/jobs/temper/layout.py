"""What the file of a tempering run holds, and what it must hold to be read."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import h5py
import numpy as np
import numpy.typing as npt

from spinsim.engine.measuring.reduction import Reduced
from spinsim.model.ising import Ising
from spinsim.observables import Facts, observables
from spinsim.observables.terms import Ladder, reduced_run
from spinsim.run import search
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
from spinsim.run.search import layout_with_search_of
from spinsim.sampling.placement import Placement
from spinsim.store.forms import Form, group_of, length_of
from spinsim.store.layout import ENERGY, MEASUREMENTS, STAGGERED, TEMPERATURE, Layout, Series, Sizes, summary_series

_MODE: Final = "|sum of {} exp(i k x)|^2, k = 2 pi / L along axis 0 (x), 1 (y) or 2 (z)"
_PRODUCT: Final = "the product of two copies' spins"
MEASURED: Final = (
    Measured("energy", lambda f: f.energy, "total energy", counts=np.float64, unit=ENERGY),
    Measured("magnetization", lambda f: f.magnetization, "sum of spins"),
    Measured("staggered_magnetization", lambda f: f.staggered_magnetization, STAGGERED, when="staggered"),
    Measured(
        "magnetization_mode",
        lambda f: f.magnetization_mode,
        _MODE.format("spins"),
        counts=np.float64,
        axis="axis",
        when="modes",
    ),
    Measured("overlap", lambda f: f.overlap, f"sum over sites of {_PRODUCT}", "copy_pair", when="pairs"),
    Measured(
        "overlap_mode",
        lambda f: f.overlap_mode,
        _MODE.format(_PRODUCT),
        "copy_pair",
        np.float64,
        "axis",
        when="modes of pairs",
    ),
    Measured(
        "link_overlap",
        lambda f: f.link_overlap,
        "sum over bonds of the product of two copies' s_i s_j",
        "copy_pair",
        "bonds",
        when="links",
    ),
)
"""What a tempering run measures, in the order of its file."""


def temper_layout(
    model: Ising,
    copies: int,
    temperatures: npt.NDArray[np.float64],
    correlations: bool = True,
    placement: Placement | None = None,
    start: npt.NDArray[np.int8] | None = None,
    staggered: bool | None = None,
    magnetization_modes: bool = True,
) -> Layout:
    """A row after every few sweeps, temperatures from the lowest to the highest.

    Args:
        model: What is simulated.
        copies: At each temperature.
        temperatures: The ladder.
        correlations: Whether link overlaps and modes are measured.
        placement: How the temperatures were placed, if they were.
        start: Initial configurations where they were given.
        staggered: Whether staggered magnetisations are measured; by default where the model is bipartite.
        magnetization_modes: Whether modes of the magnetisation are among the correlations.
    """
    measured = model.is_bipartite if staggered is None else staggered
    sizes, which = Sizes.of(model), (correlations, measured, magnetization_modes)
    layout = tempering_layout(sizes, copies, temperatures, correlations, placement, measured, magnetization_modes)
    return replace(layout, sums=(*layout.sums, *model.once(_summary, copies, *which)), start=start)


def reduced_of_run(
    model: Ising,
    copies: int,
    places: int,
    correlations: bool = True,
    magnetization_modes: bool = True,
    staggered: bool | None = None,
) -> Reduced:
    """Return what a long run adds up, of the arguments of ``temper_layout`` and ``places`` temperatures."""
    measured = model.is_bipartite if staggered is None else staggered
    facts = Facts(model, copies, correlations, staggered=measured, magnetization_modes=magnetization_modes)
    return reduced_run(facts, Ladder(places))


def _summary(model: Ising, copies: int, correlations: bool, staggered: bool, modes: bool) -> list[Series]:
    """Room for what an analysis finds."""
    facts = Facts(model, copies, correlations, staggered=staggered, magnetization_modes=modes)
    return summary_series(observables(facts))


def tempering_layout(
    model: Sizes,
    copies: int,
    temperatures: npt.NDArray[np.float64],
    correlations: bool,
    placement: Placement | None,
    staggered: bool,
    magnetization_modes: bool,
) -> Layout:
    """The same without the summary of an analysis: what the sizes of a model are enough for."""
    axes = model.dimension if correlations and (magnetization_modes or copies > 1) else 0
    conditions = {
        "staggered": staggered,
        "modes": axes and magnetization_modes,
        "pairs": copies > 1,
        "modes of pairs": axes and copies > 1,
        "links": correlations and copies > 1,
    }
    measured = series_of(MEASURED, model, "temperature", [name for name, holds in conditions.items() if holds])
    scales = {"sample": np.arange(model.samples), "axis": np.arange(axes)}
    return ladder_layout(measured, scales, ("temperature", temperatures, TEMPERATURE), copies, placement)


def _layout_of(file: h5py.File, sizes: Sizes) -> tuple[Layout, int]:
    """Returns the layout that a file should have, by its own axes, and the replicas of each sample."""
    group = group_of(file, MEASUREMENTS)
    copies, ladder = length_of(group, "copy"), ladder_of(group, "temperature", rising=True)
    correlations = any(name in group for name in ("link_overlap", "magnetization_mode", "overlap_mode"))
    others = "staggered_magnetization" in group, "magnetization_mode" in group
    layout = tempering_layout(sizes, copies, ladder, correlations, placement_outline(file), *others)
    layout = with_series(layout, *own_in_file(file, on_ladder("temperature")))
    return layout_with_search_of(file, with_sums_of(layout, file, "temperature")), copies * len(ladder)


FORM = Form(
    planned={"sweeps": (int,), "measure_every": (int,)},
    groups=(MEASUREMENTS, TEMPERING, PLACEMENT, REDUCED, search.GROUP),
    layout=_layout_of,
    sums={**SUMS, **REDUCED_SUMS, **search.SUMS, "restarts": search.RESTARTS},
    check_numbers=check_permutation,
)
