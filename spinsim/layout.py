"""Which series the file of each job holds, their axes and units."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spinsim.model.ising import Ising
from spinsim.observables import Observable, observables

MEASUREMENTS, TEMPERING, SUMMARY_GROUP, PLACEMENT = "measurements", "tempering", "summary", "placement"
SPECTRUM, START = "spectrum", "start"
FIXED = tuple((TEMPERING, name) for name in ("attempts", "accepts", "round_trips"))
"""Datasets among series that are written again and again instead of growing."""

ENERGY, TEMPERATURE = "coupling unit", "coupling unit / k_B"
"""Units: those of the couplings as they were given, see docs/conventions.md."""


COORDINATES = ("temperature", "field", "sweep", "sample", "k", "k_time")
"""Series that say where a row stands: coordinates for xarray."""


class Series(NamedTuple):
    """A dataset with a row for each measurement.

    Attributes:
        name: Of the dataset.
        axes: Of a row.
        dtype: Of its numbers.
        long_name: For readers.
        units: Likewise.
        group: Where it stands.
    """

    name: str
    axes: tuple[str, ...]
    dtype: type
    long_name: str
    units: str = "1"
    group: str = MEASUREMENTS

    @property
    def path(self) -> str:
        """Of the dataset in the file."""
        return f"{self.group}/{self.name}"


class Sizes(NamedTuple):
    """How large a model is.

    Attributes:
        samples: Of disorder.
        sites: Of the graph.
        bonds: Likewise.
        dimension: Of the lattice, 0 where there is none.
    """

    samples: int
    sites: int
    bonds: int
    dimension: int

    @classmethod
    def of(cls, model: Ising) -> Sizes:
        """Those of a model."""
        return cls(model.samples, model.sites, model.bonds, model.lattice.dimension if model.lattice else 0)


class Placement(NamedTuple):
    """How the temperatures of a ladder were placed; rows of fewer temperatures end with NaN.

    Attributes:
        temperature: Ladder of each iteration, (iterations, most temperatures).
        swap_rate: How often its neighbours exchange, (iterations, most temperatures - 1).
    """

    temperature: npt.NDArray[np.float64]
    swap_rate: npt.NDArray[np.float64]


@dataclass(frozen=True)
class Layout:
    """What the file of a run holds beside its model.

    Attributes:
        scales: Values along each axis.
        units: Of axes that have some.
        series: Growing datasets; each group's first one is ``step``.
        sums: Datasets that are written again and again.
        given: Datasets that are written once, with their values.
        start: Initial configurations where they were given, ``int8`` (1 or samples, 1 or replicas, sites).
    """

    scales: Mapping[str, npt.NDArray[np.generic]]
    units: Mapping[str, str]
    series: tuple[Series, ...]
    sums: tuple[Series, ...] = ()
    given: tuple[tuple[Series, npt.NDArray[np.float64]], ...] = ()
    start: npt.NDArray[np.int8] | None = None

    @property
    def groups(self) -> list[str]:
        """Groups in the order of their first dataset."""
        return list(dict.fromkeys(s.group for s in self._all))

    def shape(self, series: Series) -> tuple[int, ...]:
        """Of a row."""
        return tuple(len(self.scales[axis]) for axis in series.axes)

    @property
    def row_bytes(self) -> int:
        """Size of a row of all series."""
        return sum(np.dtype(s.dtype).itemsize * prod(self.shape(s)) for s in self.series)

    def axes(self, group: str) -> list[str]:
        """Axes that a group's datasets have."""
        return list(dict.fromkeys(axis for s in self._all if s.group == group for axis in s.axes))

    def coordinates(self, group: str) -> list[str]:
        """Series of a group that say where its rows stand."""
        return [s.name for s in self.series if s.group == group and s.name in COORDINATES]

    @property
    def _all(self) -> tuple[Series, ...]:
        return *self.series, *self.sums, *(series for series, _ in self.given)


def anneal_layout(
    samples: int, replicas: int, in_field: bool = False, start: npt.NDArray[np.int8] | None = None
) -> Layout:
    """A row after each temperature of the schedule.

    Args:
        samples: Of the model.
        replicas: Of each.
        in_field: Whether a uniform field changes with the temperature.
        start: Initial configurations where they were given.
    """
    axes = "sample", "replica"
    fields = (Series("field", (), np.float64, "uniform field, added to the model's own", ENERGY),) if in_field else ()
    return Layout(
        {"sample": np.arange(samples), "replica": np.arange(replicas)},
        {},
        (
            Series("step", (), np.int64, "temperature step"),
            Series("temperature", (), np.float64, "temperature", TEMPERATURE),
            *fields,
            Series("energy", axes, np.float64, "total energy", ENERGY),
            Series("magnetization", axes, np.int64, "sum of spins"),
        ),
        start=start,
    )


def temper_layout(
    model: Ising,
    copies: int,
    temperatures: npt.NDArray[np.float64],
    correlations: bool = True,
    placement: Placement | None = None,
    start: npt.NDArray[np.int8] | None = None,
) -> Layout:
    """A row after every few sweeps, temperatures from the lowest to the highest.

    Args:
        model: What is simulated.
        copies: At each temperature.
        temperatures: The ladder.
        correlations: Whether link overlaps and modes are measured.
        placement: How the temperatures were placed, if they were.
        start: Initial configurations where they were given.
    """
    sizes = Sizes.of(model)
    layout = tempering_layout(sizes, copies, temperatures, correlations, placement)
    summary = summary_series(observables(model, copies, correlations))
    return replace(layout, sums=(*layout.sums, *summary), start=start)


def tempering_layout(
    model: Sizes,
    copies: int,
    temperatures: npt.NDArray[np.float64],
    correlations: bool,
    placement: Placement | None,
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


def summary_series(found: tuple[Observable, ...]) -> list[Series]:
    """Room for every observable, its error and its autocorrelation time: NaN until the run is analysed."""
    rows = []
    for name, what, units in found:
        rows += [
            Series(name, ("temperature",), np.float64, what, units, SUMMARY_GROUP),
            Series(
                f"{name}_error", ("temperature",), np.float64, f"standard error of the {what}", units, SUMMARY_GROUP
            ),
            Series(f"{name}_tau", ("temperature",), np.float64, "autocorrelation time", "sweeps", SUMMARY_GROUP),
        ]
    return rows


def transfer_layout(sites: int, bonds: int, sectors: tuple[str, ...], levels: int) -> Layout:
    """A row for each sample and temperature, all temperatures of a sample in succession."""
    state = "sector", "level"
    rows = [
        ("step", (), np.int64, "sample * temperatures + temperature", "1"),
        ("sample", (), np.int64, "disorder sample", "1"),
        ("k", (), np.float64, "1 / T, which multiplies the couplings of the layer", "k_B / coupling unit"),
        ("k_time", (), np.float64, "coupling between layers", "1"),
        ("log_eigenvalue", state, np.float64, "ln of the eigenvalue of the transfer matrix", "1"),
        ("residual", state, np.float64, "|T x - lambda x| / lambda", "1"),
        ("correlation_length", state, np.float64, "1 / ln(lambda_0 / lambda), in layers", "1"),
        ("gap", (), np.float64, "ln of the ratio of the two largest eigenvalues", "1"),
        ("free_energy_per_site", (), np.float64, "-ln(lambda_0) / (N k)", ENERGY),
        ("energy_per_site", (), np.float64, "energy per site, of bonds in the layer and to the next", ENERGY),
        ("products", ("sector",), np.int64, "products with the transfer matrix", "1"),
        ("sigma", ("level", "site"), np.float64, "<0| s_i |level>; level of the odd sector where there are two", "1"),
    ]
    if bonds:
        rows.append(("sigma_sigma", ("level", "bond"), np.float64, "<0| s_i s_j |level> of the first sector", "1"))
    scales = {
        "sector": np.array([name.encode() for name in sectors]),
        "level": np.arange(levels),
        "site": np.arange(sites),
        "bond": np.arange(bonds),
    }
    return Layout(scales, {}, tuple(Series(*row, SPECTRUM) for row in rows))
