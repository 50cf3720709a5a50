"""What statistics need of a run: series of any job that has them.

A job whose result has the attributes of one of these protocols can be analysed and drawn by all that takes it.
"""

from __future__ import annotations

from dataclasses import Field
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from spinsim.model.ising import Ising

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


class Axis(NamedTuple):
    """What the averages of a run stand against.

    Attributes:
        name: Of the column.
        symbol: In sentences and labels.
        values: From the coldest end of the ladder.
        coldest: Where that end is, in words.
    """

    name: str
    symbol: str
    values: Floats
    coldest: str


def temperatures(values: Floats) -> Axis:
    """Returns the axis of a ladder of temperatures."""
    return Axis("temperature", "T", values, "the lowest temperature")


class Run(Protocol):
    """A run of a model, as a dataclass."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    @property
    def model(self) -> Ising:
        """What was simulated, all samples."""

    @property
    def config(self) -> dict[str, Any]:
        """The run's settings by table, empty where they are unknown."""

    @property
    def temperature(self) -> Floats:
        """In the unit of the couplings."""


class Annealed(Run, Protocol):
    """Replicas after each step of a schedule, independent where they are no population."""

    @property
    def energy(self) -> Floats:
        """Totals, (steps, samples, replicas)."""

    @property
    def magnetization(self) -> Integers:
        """Sums of spins, likewise."""

    @property
    def staggered_magnetization(self) -> Integers | None:
        """Sums over the first sublattice less those over the second, likewise; None where they were not measured."""

    @property
    def field(self) -> Floats | None:
        """Uniform field of each step, (steps,); None where none changed."""

    @property
    def family(self) -> npt.NDArray[np.int32] | None:
        """Family of each replica of a population, (steps, samples, replicas); None where none were resampled."""

    @property
    def population_free_energy(self) -> Floats | None:
        """Free energy by each population, (steps, samples, populations), likewise."""

    @property
    def temperature(self) -> Floats:
        """Of each step, (steps,)."""


class Even(NamedTuple):
    """Products of neighbours in space, averaged over bonds in space and slices.

    Attributes:
        correlation: Of (s_x s_y)(tau) (s_x s_y)(tau + t), (steps, samples, copies, temperatures, times).
        link_overlap: Of the product of two copies' s_x s_y, (steps, samples, pairs, temperatures): without bias the
            square of an average.
    """

    correlation: Floats
    link_overlap: Floats


class InTime(NamedTuple):
    """What a run of a model of space and time has measured in time, per site or in units of full order.

    Attributes:
        times: Of correlations, in slices, (times,).
        gamma: Transverse field at each point of the ladder, (temperatures,).
        k_time: Coupling of neighbours in time there, likewise.
        correlation: Averages over sites and slices of s(tau) s(tau + t), (steps, samples, copies, temperatures, times).
        energy: Of the quantum model per site of space, by its estimator, (steps, samples, copies, temperatures).
        m_squared: Averages over slices of a slice's squared magnetisation, (steps, samples, copies, temperatures).
        m_fourth: Of its fourth power, likewise.
        q_squared: Averages over slices of the square of a slice's overlap, (steps, samples, pairs, temperatures).
        q_fourth: Of its fourth power, likewise.
        even: Products of neighbours in space, None where they were not measured.
    """

    times: Integers
    gamma: Floats
    k_time: Floats
    correlation: Floats
    energy: Floats
    m_squared: Floats
    m_fourth: Floats
    q_squared: Floats
    q_fourth: Floats
    even: Even | None = None


class Tempered(Run, Protocol):
    """Series in equilibrium at several temperatures that replicas exchange."""

    @property
    def axis(self) -> Axis:
        """What averages stand against: the temperature, or what stands in its place."""

    @property
    def in_time(self) -> InTime | None:
        """What was measured in time, None for space alone."""

    @property
    def sweep(self) -> Integers:
        """Sweeps done before each measurement, (steps,)."""

    @property
    def energy(self) -> Floats:
        """Totals, (steps, samples, copies, temperatures)."""

    @property
    def magnetization(self) -> Integers:
        """Sums of spins, likewise."""

    @property
    def staggered_magnetization(self) -> Integers:
        """Sums over the first sublattice less those over the second, likewise; no copies where it was not measured."""

    @property
    def overlap(self) -> Integers:
        """Sums over sites of two copies' product, (steps, samples, pairs of copies, temperatures)."""

    @property
    def link_overlap(self) -> Integers:
        """Sums over bonds of two copies' s_i s_j, likewise; no pairs where it was not measured."""

    @property
    def overlap_mode(self) -> Floats:
        """Smallest Fourier modes of the overlap, (steps, samples, pairs, temperatures, axes)."""

    @property
    def magnetization_mode(self) -> Floats:
        """The same of spins, (steps, samples, copies, temperatures, axes); no axes where it was not measured."""

    @property
    def has_magnetization_modes(self) -> bool:
        """True if Fourier modes of the magnetisation were measured."""

    @property
    def has_correlations(self) -> bool:
        """Whether link overlaps and modes were measured."""

    @property
    def has_staggered(self) -> bool:
        """Whether staggered magnetisations were measured."""

    @property
    def attempts(self) -> Integers:
        """Exchanges tried of each pair of neighbouring temperatures, (samples, temperatures - 1)."""

    @property
    def accepts(self) -> Integers:
        """Of them accepted, likewise."""

    @property
    def swap_rate(self) -> Floats:
        """Share of exchanges accepted over all samples, (temperatures - 1,)."""

    @property
    def round_trips(self) -> Integers:
        """Of each replica, (samples, replicas)."""

    @property
    def permutation(self) -> Integers:
        """Replica at each temperature, (steps, samples, copies, temperatures)."""

    @property
    def temperature(self) -> Floats:
        """From the lowest to the highest, (temperatures,)."""


class Strips(Run, Protocol):
    """Levels of layers at several couplings."""

    @property
    def k(self) -> Floats:
        """Coupling within the layer, likewise."""

    @property
    def k_time(self) -> Floats:
        """Coupling between layers, likewise."""

    @property
    def sectors(self) -> tuple[str, ...]:
        """Names of the sectors."""

    @property
    def correlation_length(self) -> Floats:
        """In layers, (samples, points, sectors, levels)."""

    @property
    def in_noise(self) -> npt.NDArray[np.bool_]:
        """Which correlation lengths rounding may have changed by more than 1 %, likewise."""

    @property
    def temperature(self) -> Floats:
        """1 / k, (points,)."""
