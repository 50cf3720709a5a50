"""What the file of a tempering run holds, and what it must hold to be read."""

from __future__ import annotations

from dataclasses import replace

import h5py
import numpy as np
import numpy.typing as npt

from spinsim.model.ising import Ising
from spinsim.observables import Facts, observables
from spinsim.run import search
from spinsim.run.ladder_layout import (
    PLACEMENT,
    SUMS,
    TEMPERING,
    check_permutation,
    ladder_layout,
    ladder_of,
    placement_outline,
)
from spinsim.run.own import on_ladder, own_in_file, with_series
from spinsim.run.search import layout_with_search_of
from spinsim.sampling.placement import Placement
from spinsim.store.forms import Form, group_of, length_of
from spinsim.store.layout import ENERGY, MEASUREMENTS, STAGGERED, TEMPERATURE, Layout, Series, Sizes, summary_series


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
    count, links = (np.int32 if items < 2**31 else np.int64 for items in (model.sites, model.bonds))
    state, pairs = ("sample", "copy", "temperature"), ("sample", "copy_pair", "temperature")
    mode = "|sum of {} exp(i k x)|^2, k = 2 pi / L along axis 0 (x), 1 (y) or 2 (z)"
    measured = [
        Series("step", (), np.int64, "measurement"),
        Series("sweep", (), np.int64, "sweeps done since thermalisation"),
        Series("energy", state, np.float64, "total energy", ENERGY),
        Series("magnetization", state, count, "sum of spins"),
    ]
    if staggered:
        measured.append(Series("staggered_magnetization", state, count, STAGGERED))
    if axes and magnetization_modes:
        measured.append(Series("magnetization_mode", (*state, "axis"), np.float64, mode.format("spins")))
    if copies > 1:
        measured.append(Series("overlap", pairs, count, "sum over sites of the product of two copies' spins"))
        if axes:
            product = "the product of two copies' spins"
            measured.append(Series("overlap_mode", (*pairs, "axis"), np.float64, mode.format(product)))
        if correlations:
            what = "sum over bonds of the product of two copies' s_i s_j"
            measured.append(Series("link_overlap", pairs, links, what))
    scales = {"sample": np.arange(model.samples), "axis": np.arange(axes)}
    return ladder_layout(tuple(measured), scales, ("temperature", temperatures, TEMPERATURE), copies, placement)


def _layout_of(file: h5py.File, sizes: Sizes) -> tuple[Layout, int]:
    """Returns the layout that a file should have, by its own axes, and the replicas of each sample."""
    group = group_of(file, MEASUREMENTS)
    copies, ladder = length_of(group, "copy"), ladder_of(group, "temperature", rising=True)
    correlations = any(name in group for name in ("link_overlap", "magnetization_mode", "overlap_mode"))
    others = "staggered_magnetization" in group, "magnetization_mode" in group
    layout = tempering_layout(sizes, copies, ladder, correlations, placement_outline(file), *others)
    return layout_with_search_of(file, with_series(layout, *own_in_file(file, on_ladder("temperature")))), copies * len(
        ladder
    )


FORM = Form(
    planned={"sweeps": (int,), "measure_every": (int,)},
    groups=(MEASUREMENTS, TEMPERING, PLACEMENT, search.GROUP),
    layout=_layout_of,
    sums={**SUMS, **search.SUMS, "restarts": search.RESTARTS},
    check_numbers=check_permutation,
)
