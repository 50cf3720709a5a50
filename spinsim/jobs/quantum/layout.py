"""What the file of a quantum run holds, and what it must hold to be read."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import h5py
import numpy as np
import numpy.typing as npt

from spinsim.model.ising import Ising
from spinsim.observables import observables
from spinsim.run.ladder_layout import (
    PLACEMENT,
    SUMS,
    TEMPERING,
    check_permutation,
    ladder_layout,
    ladder_of,
    placement_outline,
)
from spinsim.sampling.placement import Placement
from spinsim.store.forms import DamageError, Form, axis_of, group_of, length_of
from spinsim.store.layout import ENERGY, MEASUREMENTS, Layout, Series, Sizes, summary_series

UNIT_OF_K = "1 / coupling unit"
_EVEN: Final = "sum over bonds in space and slices of (s_x s_y)(tau) (s_x s_y)(tau + time)"
_LINKS: Final = "sum over bonds in space and slices of the product of two copies' s_x s_y"


def quantum_layout(
    model: Ising,
    copies: int,
    k: npt.NDArray[np.float64],
    times: tuple[int, ...],
    placement: Placement | None = None,
    start: npt.NDArray[np.int8] | None = None,
    even: bool = False,
) -> Layout:
    """A row after every few sweeps, k from the largest to the smallest.

    Args:
        model: Of space and time.
        copies: At each k.
        k: The ladder.
        times: Of correlations in time, in slices.
        placement: How the ladder was placed, if it was.
        start: Initial configurations where they were given.
        even: Whether products of neighbours in space are measured.
    """
    layout = measured_layout(Sizes.of(model), copies, k, times, placement, even)
    summary = summary_series(observables(model, copies, correlations=True, in_time=True), "k")
    return replace(layout, sums=(*layout.sums, *summary), start=start)


def measured_layout(
    model: Sizes,
    copies: int,
    k: npt.NDArray[np.float64],
    times: tuple[int, ...],
    placement: Placement | None,
    even: bool = False,
) -> Layout:
    """The same without the summary of an analysis: what the sizes of a model are enough for."""
    count, links = (np.int32 if items < 2**31 else np.int64 for items in (model.sites, model.bonds))
    state, pairs = ("sample", "copy", "k"), ("sample", "copy_pair", "k")
    mode = "|sum of {} exp(i k x)|^2, k = 2 pi / L along axis 0 (time), 1 (x), 2 (y) or 3 (z)"
    of_slices = "sum over slices of the {} power of the sum over sites of {}"
    spins, product = "spins", "the product of two copies' spins"
    measured = [
        Series("step", (), np.int64, "measurement"),
        Series("sweep", (), np.int64, "sweeps done since thermalisation"),
        Series("action", state, np.float64, "action A, the weight being exp(-k A)", ENERGY),
        Series("magnetization", state, count, "sum of spins over sites and slices"),
        Series("correlation_in_time", (*state, "time"), count, "sum over sites and slices of s(tau) s(tau + time)"),
        Series("slice_magnetization_squared", state, np.int64, of_slices.format("second", spins)),
        Series("slice_magnetization_fourth", state, np.int64, of_slices.format("fourth", spins)),
    ]
    if even:
        measured.append(Series("even_correlation_in_time", (*state, "time"), links, _EVEN))
    if model.dimension:
        measured.append(Series("magnetization_mode", (*state, "axis"), np.float64, mode.format(spins)))
    if copies > 1:
        measured += [
            Series("overlap", pairs, count, f"sum over sites and slices of {product}"),
            Series("slice_overlap_squared", pairs, np.int64, of_slices.format("second", product)),
            Series("slice_overlap_fourth", pairs, np.int64, of_slices.format("fourth", product)),
            Series("link_overlap", pairs, links, "sum over bonds of the product of two copies' s_i s_j"),
        ]
        if even:
            measured.append(Series("link_overlap_in_space", pairs, links, _LINKS))
        if model.dimension:
            measured.append(Series("overlap_mode", (*pairs, "axis"), np.float64, mode.format(product)))
    scales = {
        "sample": np.arange(model.samples),
        "time": np.array(times, np.int64),
        "axis": np.arange(model.dimension),
    }
    layout = ladder_layout(tuple(measured), scales, ("k", k, UNIT_OF_K), copies, placement)
    return replace(layout, units={**layout.units, "time": "slices"})


def _layout_of(file: h5py.File, sizes: Sizes) -> tuple[Layout, int]:
    """Returns the layout that a file should have, by its own axes, and the replicas of each sample."""
    group = group_of(file, MEASUREMENTS)
    copies, k = length_of(group, "copy"), ladder_of(group, "k", rising=False)
    times = axis_of(group, "time", np.int64)
    slices = int(group_of(file, "model").attrs.get("slices", 1))
    if slices < 2 or not len(times) or times[0] != 1 or times[-1] >= slices or not (np.diff(times) > 0).all():
        raise DamageError(f"its times do not rise from 1 within its {slices} slices")
    even = "even_correlation_in_time" in group
    layout = measured_layout(sizes, copies, k, tuple(map(int, times)), placement_outline(file), even)
    return layout, copies * len(k)


FORM = Form(
    planned={"sweeps": (int,), "measure_every": (int,)},
    groups=(MEASUREMENTS, TEMPERING, PLACEMENT),
    layout=_layout_of,
    sums=SUMS,
    check_numbers=check_permutation,
)
