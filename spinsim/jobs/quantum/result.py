"""The result of a quantum run."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np

from spinsim.analysis.runs import Axis, Even, InTime
from spinsim.errors import MissingError, argument
from spinsim.inputs.signatures import public
from spinsim.inputs.texts import count
from spinsim.jobs.ladder.result import Floats, Integers, LadderResult, points_in
from spinsim.model.ising import Ising
from spinsim.model.trotter import Points
from spinsim.observables.table import transverse_magnetization
from spinsim.record import Record

if TYPE_CHECKING:
    import xarray

_AXES: Final = {
    "k": ("k", "the largest k"),
    "gamma": ("Gamma", "the smallest Gamma"),
    "beta": ("beta", "the largest beta"),
}
"""Symbol of what a ladder goes along, and its coldest end in words."""


@public
@dataclass(frozen=True, repr=False, kw_only=True)
class QuantumResult(LadderResult):
    """Measurements of a quantum run, sorted by copy and point. ``LadderResult`` has more attributes.

    Attributes:
        points: Transverse fields, inverse temperatures and couplings of the ladder, from the end deepest in the ordered
            phase (``Points``), (points,) each.
        time: Times of correlations in time, in slices, (times,).
        action: A, the sum of the energies in space and in time, ``float64`` (steps, samples, copies, points). The
            weight is exp(-k A) in the isotropic form, exp(-k action_in_space - k_time action_in_time) in the general.
        correlation_in_time: Sums over sites and slices of s(tau) s(tau + t), (steps, samples, copies, points, times).
        slice_magnetization_squared: Sums over slices of (sum of the slice's spins)^2, (steps, samples, copies, points).
        slice_magnetization_fourth: Sums over slices of (sum of the slice's spins)^4, of the same shape.
        slice_overlap_squared: Sums over slices of the square of the slice's overlap, of the shape of ``overlap``.
        slice_overlap_fourth: Sums over slices of the fourth power of the slice's overlap, of the same shape.
        even_correlation_in_time: Sums over bonds in space and slices of (s_x s_y)(tau) (s_x s_y)(tau + t), of the shape
            of ``correlation_in_time``; no times if they were not measured.
        link_overlap_in_space: As ``link_overlap`` over bonds in space alone; no pairs without
            ``even_correlations``.
        local_squares: Sums over measurements of (sum over slices of a site's spin)^2, (samples, copies, points, sites
            of space); None without ``local_susceptibility``.
        local_measurements: Number of measurements in these sums, (samples,), or None.
    """

    job = "quantum"

    points: Points
    time: Integers
    action: Floats
    correlation_in_time: Integers
    slice_magnetization_squared: Integers
    slice_magnetization_fourth: Integers
    slice_overlap_squared: Integers
    slice_overlap_fourth: Integers
    even_correlation_in_time: Integers
    link_overlap_in_space: Integers
    local_squares: Integers | None = None
    local_measurements: Integers | None = None

    has_correlations = True
    has_staggered = False

    @property
    def energy(self) -> Floats:
        """The action, the energy of the classical model of space and time."""
        return self.action

    @property
    def staggered_magnetization(self) -> Integers:
        """Nothing: sublattices of space and time alternate in time too, which no order does."""
        steps, samples, _, places = self.action.shape
        return np.empty((steps, samples, 0, places), np.int64)

    @property
    def k(self) -> Floats:
        """Step in time at each point, the coupling of space, (points,)."""
        return self.points.k

    @property
    def k_time(self) -> Floats:
        """Coupling of neighbours in time at each point: k in the isotropic form."""
        return self.points.k_time

    @property
    def gamma(self) -> Floats:
        """Transverse field at each point, in the unit of the couplings."""
        return self.points.gamma

    @property
    def beta(self) -> Floats:
        """Inverse temperature of the quantum model at each point."""
        return self.points.beta

    @property
    def temperature(self) -> Floats:
        """1 / k, the temperature of the classical model of space and time."""
        return 1 / self.k

    @property
    def places(self) -> Points:
        return self.points

    @property
    def axis(self) -> Axis:
        name = self.points.axis
        symbol, coldest = _AXES[name]
        return Axis(name, symbol, self.points.values, coldest)

    @cached_property
    def in_time(self) -> InTime:
        """Measurements in time, per site or in units of full order."""
        sites = self.model.sites
        of_field = self.gamma * transverse_magnetization(self.k_time, self.correlation_in_time[..., 0] / sites)
        correlation, energy = self.correlation_in_time / sites, self.action_in_space / sites - of_field
        return InTime(self.time, self.gamma, self.k_time, correlation, energy, self._even)

    @property
    def _even(self) -> Even | None:
        even = self.even_correlation_in_time
        if not even.shape[-1]:
            return None
        products = self.slices * len(self.model.graph.bonds_in_space())
        return Even(even / products, self.link_overlap_in_space / products)

    @property
    def slices(self) -> int:
        """Slices in time."""
        return self.model.graph.slices

    @property
    def action_in_time(self) -> Integers:
        """The part of the action that bonds in time have, (steps, samples, copies, points)."""
        return np.asarray(-self.correlation_in_time[..., 0].astype(np.int64))

    @property
    def action_in_space(self) -> Floats:
        """The rest of the action: of the bonds and fields of space, likewise."""
        return np.asarray(self.action - self.action_in_time)

    @property
    def local_susceptibility(self) -> Floats:
        """Each site's response to a field along z there, k <(sum over slices of s)^2> / slices, of ``local_squares``.

        Shape (samples, copies, points, sites of space), in 1 / unit of the couplings; NaN before the first measurement.

        Raises:
            InputError: where it was not measured.
        """
        if self.local_squares is None or self.local_measurements is None:
            asked = argument("local_susceptibility", True)
            raise MissingError(f"the run has no local susceptibilities: make it with {asked}")
        measured = np.where(self.local_measurements > 0, self.local_measurements, np.nan)[:, None, None, None]
        return np.asarray(self.k[:, None] * self.local_squares / (measured * self.slices))

    @property
    def _times(self) -> tuple[tuple[int, ...], bool]:
        run, even = self.reduced, self.even_correlation_in_time
        return tuple(map(int, self.time)), bool(even.shape[-1]) if run is None else "even C(1)" in run.names

    def dataset(self) -> xarray.Dataset:
        """As ``LadderResult.dataset``, with the coordinates of each point."""
        others = {"k", "k_time", "gamma", "beta"} - {self.points.axis}
        coordinates = {name: (self.points.axis, getattr(self, name)) for name in sorted(others)}
        return super().dataset().assign_coords(coordinates)

    @property
    def _run_facts(self) -> dict[str, str]:
        return {"slices": count(self.slices, "slice"), **super()._run_facts}


def read(record: Record, model: Ising) -> QuantumResult:
    """Returns the run of a record."""
    points = points_in(record, model)
    return QuantumResult.of(record, model, points, points=points, time=record["measurements/time"])
