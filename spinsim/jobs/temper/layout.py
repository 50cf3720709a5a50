"""What the file of a tempering run holds, and what it must hold to be read."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import Final

import h5py
import numpy as np
import numpy.typing as npt

from spinsim.model.ising import Ising
from spinsim.observables import observables
from spinsim.sampling.placement import Placement
from spinsim.store.forms import DamageError, Form, axis_of, group_of, length_of
from spinsim.store.layout import ENERGY, MEASUREMENTS, STAGGERED, TEMPERATURE, Layout, Series, Sizes, summary_series

TEMPERING: Final = "tempering"
"""The group of the exchanges."""
PLACEMENT: Final = "placement"
"""The group that says how temperatures were placed."""
_PIECE_BYTES: Final = 2**24


def temper_layout(
    model: Ising,
    copies: int,
    temperatures: npt.NDArray[np.float64],
    correlations: bool = True,
    placement: Placement | None = None,
    start: npt.NDArray[np.int8] | None = None,
    staggered: bool | None = None,
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
    """
    measured = model.is_bipartite if staggered is None else staggered
    layout = tempering_layout(Sizes.of(model), copies, temperatures, correlations, placement, measured)
    summary = summary_series(observables(model, copies, correlations, staggered=measured))
    return replace(layout, sums=(*layout.sums, *summary), start=start)


def tempering_layout(
    model: Sizes,
    copies: int,
    temperatures: npt.NDArray[np.float64],
    correlations: bool,
    placement: Placement | None,
    staggered: bool,
) -> Layout:
    """The same without the summary of an analysis: what the sizes of a model are enough for."""
    axes = model.dimension if correlations else 0
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
    if axes:
        measured.append(Series("magnetization_mode", (*state, "axis"), np.float64, mode.format("spins")))
    if copies > 1:
        measured.append(Series("overlap", pairs, count, "sum over sites of the product of two copies' spins"))
        if axes:
            product = "the product of two copies' spins"
            measured.append(Series("overlap_mode", (*pairs, "axis"), np.float64, mode.format(product)))
        if correlations:
            what = "sum over bonds of the product of two copies' s_i s_j"
            measured.append(Series("link_overlap", pairs, links, what))
    scales = {
        "sample": np.arange(model.samples),
        "copy": np.arange(copies),
        "copy_pair": np.arange(copies * (copies - 1) // 2),
        "temperature": temperatures,
        "pair": np.arange(len(temperatures) - 1),
        "replica": np.arange(copies * len(temperatures)),
        "axis": np.arange(axes),
    }
    if placement is not None:
        iterations, rungs = placement.temperature.shape
        scales |= {"iteration": np.arange(iterations), "rung": np.arange(rungs), "rung_pair": np.arange(rungs - 1)}
    return Layout(
        scales,
        {"temperature": TEMPERATURE},
        (
            *measured,
            Series("step", (), np.int64, "measurement", group=TEMPERING),
            Series("permutation", state, np.int32, "replica at each temperature", group=TEMPERING),
        ),
        (
            Series("attempts", ("sample", "pair"), np.int64, "exchanges tried with the next one", "1", TEMPERING),
            Series("accepts", ("sample", "pair"), np.int64, "of them accepted", "1", TEMPERING),
            Series("round_trips", ("sample", "replica"), np.int64, "from hottest to coldest and back", "1", TEMPERING),
        ),
        () if placement is None else _given(placement),
    )


def _given(placement: Placement) -> tuple[tuple[Series, npt.NDArray[np.float64]], ...]:
    """Datasets of a placement."""
    ladders = "temperatures of each iteration of the pre-run, NaN past the last"
    rates = "mean probability there of an exchange with the next temperature"
    return (
        (
            Series("temperature", ("iteration", "rung"), np.float64, ladders, TEMPERATURE, PLACEMENT),
            placement.temperature,
        ),
        (Series("swap_rate", ("iteration", "rung_pair"), np.float64, rates, "1", PLACEMENT), placement.swap_rate),
    )


def _layout_of(file: h5py.File, sizes: Sizes) -> tuple[Layout, int]:
    """Returns the layout that a file should have, by its own axes, and the replicas of each sample."""
    group = group_of(file, MEASUREMENTS)
    copies, ladder = length_of(group, "copy"), axis_of(group, "temperature", np.float64)
    if not (len(ladder) and np.isfinite(ladder).all() and (ladder > 0).all() and (np.diff(ladder) > 0).all()):
        raise DamageError("its temperatures do not rise from the lowest to the highest")
    correlations = any(name in group for name in ("link_overlap", "magnetization_mode", "overlap_mode"))
    placement = None
    if PLACEMENT in file:
        iterations, rungs = (length_of(group_of(file, PLACEMENT), name) for name in ("iteration", "rung"))
        placement = Placement(np.empty((iterations, rungs)), np.empty((iterations, max(0, rungs - 1))))
    staggered = "staggered_magnetization" in group
    return tempering_layout(sizes, copies, ladder, correlations, placement, staggered), copies * len(ladder)


def _check_numbers(file: h5py.File, rows: int) -> None:
    """Refuse a permutation that does not have every replica at one temperature."""
    series = file[TEMPERING]["permutation"]
    copies, temperatures = file[MEASUREMENTS]["energy"].shape[2:]
    replicas = np.arange(copies * temperatures)
    piece = max(1, _PIECE_BYTES // max(1, series.dtype.itemsize * prod(series.shape[1:])))
    for first in range(0, rows, piece):
        found = series[first : min(first + piece, rows)].reshape(-1, len(replicas))
        if not (np.sort(found, axis=1) == replicas).all():
            raise DamageError("its permutation does not name every replica once")


FORM = Form(
    planned={"sweeps": (int,), "measure_every": (int,)},
    groups=(MEASUREMENTS, TEMPERING, PLACEMENT),
    layout=_layout_of,
    sums={
        "attempts": f"{TEMPERING}/attempts",
        "accepts": f"{TEMPERING}/accepts",
        "trips": f"{TEMPERING}/round_trips",
    },
    check_numbers=_check_numbers,
)
