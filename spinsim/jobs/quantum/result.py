"""What a quantum run gives back."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from spinsim import store
from spinsim.analysis.reduced import ReducedRun
from spinsim.analysis.runs import Axis, Even, InTime
from spinsim.analysis.sources import facts_of, measurements_of
from spinsim.bits import States
from spinsim.engine.measuring.reduction import Reduced
from spinsim.errors import MissingError, argument
from spinsim.inputs.texts import count
from spinsim.jobs.quantum.layout import MEASURED, points_of, quantum_layout, reduced_of_run
from spinsim.jobs.quantum.local import LOCAL_SUMS
from spinsim.model.ising import Ising
from spinsim.model.trotter import Points
from spinsim.observables.moments import transverse_magnetization
from spinsim.result import load_as
from spinsim.run.ladder_layout import in_result, placement_of, read_permutation, written_again
from spinsim.run.own import names_in_file, on_ladder, own_of_result, with_summary
from spinsim.run.reducing import reduced_in, with_sums_of_result
from spinsim.run.results import LadderResult
from spinsim.sampling.placement import Placement
from spinsim.saved import Configurations, in_file
from spinsim.store.layout import MEASUREMENTS, Layout

if TYPE_CHECKING:
    import h5py
    import xarray

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
_AXES: Final = {
    "k": ("k", "the largest k"),
    "gamma": ("Gamma", "the smallest Gamma"),
    "beta": ("beta", "the largest beta"),
}
"""Symbol of what a ladder goes along, and its coldest end in words."""


@dataclass(frozen=True, repr=False)
class QuantumResult(LadderResult):
    """Measurements of a quantum run, replicas sorted by copy and point.

    Attributes:
        model: Of space and time; ``model.graph.slices`` are its slices.
        points: Transverse fields, inverse temperatures and couplings from the end that is deepest in the ordered phase
            (``Points``), shape (points,) each.
        time: Times of correlations in time, in slices, (times,).
        sweep: Sweeps done before each measurement since thermalisation, (steps,).
        action: A, the sum of the energies in space and in time, ``float64`` (steps, samples, copies, points). The
            weight is exp(-k A) in the isotropic form, exp(-k action_in_space - k_time action_in_time) in the general.
        magnetization: Sums of spins over sites and slices, integers, likewise.
        correlation_in_time: Sums over sites and slices of s(tau) s(tau + t), (steps, samples, copies, points, times).
        slice_magnetization_squared: Sums over slices of (sum of the slice's spins)^2, (steps, samples, copies, points).
        slice_magnetization_fourth: Of its fourth power, likewise.
        permutation: Replica at each point, (steps, samples, copies, points).
        attempts: Exchanges tried of each pair of neighbouring points, (samples, points - 1).
        accepts: Of them accepted, likewise.
        round_trips: Of each replica from the last point to the first and back, (samples, replicas).
        overlap: Sums over sites and slices of two copies' spins' product, (steps, samples, pairs of copies, points).
        slice_overlap_squared: Sums over slices of the square of the slice's overlap, likewise.
        slice_overlap_fourth: Of its fourth power, likewise.
        link_overlap: Sums over bonds of two copies' products s_i s_j, likewise.
        overlap_mode: |sum over sites of (s_a s_b) exp(i k x)|^2, k = 2 pi / L along each axis, time first, ``float64``
            (steps, samples, pairs of copies, points, axes).
        magnetization_mode: The same of spins, (steps, samples, copies, points, axes); no axes where not measured.
        even_correlation_in_time: Sums over bonds in space and slices of (s_x s_y)(tau) (s_x s_y)(tau + t), of the shape
            of ``correlation_in_time``; no times where they were not asked for.
        link_overlap_in_space: Likewise over bonds in space alone, (steps, samples, pairs of copies, points); no pairs
            where products of neighbours were not asked for.
        local_squares: Sums over measurements of (sum over slices of a site's spin)^2, (samples, copies, points, sites
            of space); None where they were not asked for.
        local_measurements: How many measurements are in them, (samples,), likewise.
        placement: How the ladder was placed, in 1 / k, Gamma or 1 / beta; None where it was given.
        best_energy: Lowest action that each replica had at a measurement, (samples, replicas); None where a run was
            killed before its first checkpoint.
        best_spins: State of lowest action at a measurement, ``int8`` (samples, sites), likewise.
        configurations: Spins in space and time of every so many-th measurement; None where none were saved.
        attributes: Root attributes of its file: configuration, versions and so on.
        measured: Observables of the user's own by name, each (steps, samples, copies, points) or with more axes.
        reduced: Sums over all measurements, where the series have but some of them; None where these are whole.
    """

    job = "quantum"

    model: Ising
    points: Points
    time: Integers
    sweep: Integers
    action: Floats
    magnetization: Integers
    correlation_in_time: Integers
    slice_magnetization_squared: Integers
    slice_magnetization_fourth: Integers
    permutation: Integers
    attempts: Integers
    accepts: Integers
    round_trips: Integers
    overlap: Integers
    slice_overlap_squared: Integers
    slice_overlap_fourth: Integers
    link_overlap: Integers
    overlap_mode: Floats
    magnetization_mode: Floats
    even_correlation_in_time: Integers
    link_overlap_in_space: Integers
    local_squares: Integers | None = None
    local_measurements: Integers | None = None
    placement: Placement | None = None
    best_energy: Floats | None = None
    best_spins: npt.NDArray[np.int8] | States | None = None
    configurations: Configurations | None = None
    attributes: dict[str, str] = field(default_factory=dict)
    measured: dict[str, npt.NDArray[Any]] = field(default_factory=dict)
    reduced: ReducedRun | None = None

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
    def axis(self) -> Axis:
        """What its averages stand against."""
        name = self.points.axis
        symbol, coldest = _AXES[name]
        return Axis(name, symbol, self.points.values, coldest)

    @cached_property
    def in_time(self) -> InTime:
        """What was measured in time, per site or in units of full order."""
        sites, slices = self.model.sites, self.slices
        space = sites // slices
        of_field = self.gamma * transverse_magnetization(self.k_time, self.correlation_in_time[..., 0] / sites)
        return InTime(
            self.time,
            self.gamma,
            self.k_time,
            self.correlation_in_time / sites,
            self.action_in_space / sites - of_field,
            self.slice_magnetization_squared / (slices * space**2),
            self.slice_magnetization_fourth / (slices * space**4),
            self.slice_overlap_squared / (slices * space**2),
            self.slice_overlap_fourth / (slices * space**4),
            self._even,
        )

    @property
    def _even(self) -> Even | None:
        """Products of neighbours in space, if they were measured."""
        found = self.even_correlation_in_time
        if not found.shape[-1]:
            return None
        products = self.slices * len(self.model.graph.bonds_in_space())
        return Even(found / products, self.link_overlap_in_space / products)

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
            raise MissingError(
                f"the run has no local susceptibilities: make it with {argument('local_susceptibility', True)}"
            )
        measured = np.where(self.local_measurements > 0, self.local_measurements, np.nan)[:, None, None, None]
        return np.asarray(self.k[:, None] * self.local_squares / (measured * self.slices))

    @cached_property
    def _layout(self) -> Layout:
        times = tuple(map(int, self.time))
        even = (
            self.even_correlation_in_time.shape[-1] > 0 if self.reduced is None else "even C(1)" in self.reduced.names
        )
        wanted = even, self.local_squares is not None, facts_of(self).magnetization_modes
        layout = quantum_layout(self.model, self.action.shape[2], self.points, times, self.placement, None, *wanted)
        layout = with_summary(layout, *own_of_result(self.measured, on_ladder(self.points.axis)))
        return with_sums_of_result(layout, self, self.points.axis)

    def dataset(self) -> xarray.Dataset:
        """As ``LadderResult.dataset``, with the coordinates of each point."""
        others = {"k", "k_time", "gamma", "beta"} - {self.points.axis}
        return (
            super().dataset().assign_coords({name: (self.points.axis, getattr(self, name)) for name in sorted(others)})
        )

    @property
    def _run_facts(self) -> dict[str, str]:
        values = self.axis.values
        return {
            "slices": f"{self.slices} slices",
            "copies": f"{self.action.shape[2]} copies",
            "points": f"{len(self.points)} {self.axis.name} from {values.min():g} to {values.max():g}",
            "steps": count(measurements_of(self), "measurement"),
        }


def read(file: h5py.File, rows: int, attributes: dict[str, str]) -> QuantumResult:
    """The first rows of a file."""
    m, model, points = file[MEASUREMENTS], store.read_model(file), points_of(file)
    copies, times = m["action"].shape[2], tuple(map(int, m["time"][...]))
    return QuantumResult(
        model=model,
        points=points,
        time=m["time"][...],
        sweep=m["sweep"][:rows],
        **in_result(MEASURED, m, rows, m["action"].shape[1:]),
        permutation=read_permutation(file, rows),
        configurations=in_file(file, rows),
        placement=placement_of(file),
        **written_again(file, attributes, LOCAL_SUMS, model),
        attributes=attributes,
        measured={name: m[name][:rows] for name in names_in_file(file)},
        reduced=reduced_in(file, attributes, partial(_reduced_of, model, copies, points, times)),
    )


def _reduced_of(
    model: Ising, copies: int, points: Points, times: tuple[int, ...], settings: Mapping[str, Any]
) -> Reduced:
    """What a run with these settings adds up."""
    wanted = settings["even_correlations"], settings["magnetization_modes"]
    return reduced_of_run(model, copies, points, times, *wanted)


def load_quantum(path: str | os.PathLike[str]) -> QuantumResult:
    """Read a run back from its file; of an unfinished one, what it has.

    Raises:
        InputError: as ``spinsim.load``, and for a file of another job.
    """
    return load_as(QuantumResult, path)
