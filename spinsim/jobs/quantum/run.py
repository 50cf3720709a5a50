"""Runs of the transverse-field Ising model in slices of imaginary time: ``ss.quantum``, its result, its plan."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import ArrayLike

from spinsim.analysis.runs import Axis, Even, InTime
from spinsim.engine.measuring.correlations import Quantities
from spinsim.engine.moves.move import Move
from spinsim.errors import MissingError, argument
from spinsim.inputs.arguments import judges, public
from spinsim.inputs.texts import count
from spinsim.jobs.calls import run_of_call
from spinsim.jobs.ladder.result import Floats, Integers, LadderResult, points_in
from spinsim.jobs.ladder.run import LadderPlan, with_usual_moves
from spinsim.jobs.quantum.settings import Quantum, QuantumSettings
from spinsim.model.ising import Ising, check_model
from spinsim.model.trotter import Points, trotter
from spinsim.observables.table import transverse_magnetization
from spinsim.record import Record
from spinsim.run.own_observables import Measure
from spinsim.run.plan import build_model

if TYPE_CHECKING:
    import xarray


_AXES: Final = {
    "k": ("k", "the largest k"),
    "gamma": ("Gamma", "the smallest Gamma"),
    "beta": ("beta", "the largest beta"),
}
"""Symbol of the ladder's axis, and its coldest end in words."""


@public
@dataclass(frozen=True, repr=False, kw_only=True)
class QuantumResult(LadderResult, place="point"):
    """Measurements of a quantum run, sorted by copy and point.

    Attributes:
        points: Transverse fields, inverse temperatures and couplings of the ladder, from the end deepest in the ordered
            phase (``Points``), (points,) each.
        time: Times of correlations in time, in slices, ``int64`` (times,).
        action: A, the sum of the energies in space and in time, in the unit of the couplings, ``float64`` (steps,
            samples, copies, points). The weight is exp(-k A) in the isotropic form, exp(-k action_in_space - k_time
            action_in_time) in the general.
        correlation_in_time: Sums over sites and slices of s(tau) s(tau + t), integers (steps, samples, copies, points,
            times).
        slice_magnetization_squared: Sums over slices of (sum of the slice's spins)^2, integers (steps, samples, copies,
            points).
        slice_magnetization_fourth: Sums over slices of (sum of the slice's spins)^4, of the same shape.
        slice_overlap_squared: Sums over slices of the square of the slice's overlap, of the shape of ``overlap``.
        slice_overlap_fourth: Sums over slices of the fourth power of the slice's overlap, of the shape of ``overlap``.
        even_correlation_in_time: Sums over bonds in space and slices of (s_x s_y)(tau) (s_x s_y)(tau + t), of the shape
            of ``correlation_in_time``; without times if they were not measured.
        link_overlap_in_space: As ``link_overlap`` and of the same shape, but only over bonds in space; without pairs if
            there are no ``even_correlations``.
        local_squares: Sums over measurements of (sum over slices of a site's spin)^2, (samples, copies, points, sites
            of space); None without ``local_susceptibility``.
        local_measurements: Number of measurements in ``local_squares``, (samples,), or None.
        has_correlations: True, as for tempering runs with ``correlations``.
        has_staggered: False, as staggered magnetisations are not measured.
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
        """``action``, the energy of the classical space-time model, (steps, samples, copies, points)."""
        return self.action

    @property
    def staggered_magnetization(self) -> Integers:
        """Always empty, (steps, samples, 0, points), because sublattices alternate in time too."""
        steps, samples, _, places = self.action.shape
        return np.empty((steps, samples, 0, places), np.int64)

    @property
    def k(self) -> Floats:
        """Step in time at each point, (points,), in 1 / unit of the couplings; also the coupling in space."""
        return self.points.k

    @property
    def k_time(self) -> Floats:
        """Coupling of neighbours in time at each point, (points,), which is k in the isotropic form."""
        return self.points.k_time

    @property
    def gamma(self) -> Floats:
        """Transverse field at each point, (points,), in the unit of the couplings."""
        return self.points.gamma

    @property
    def beta(self) -> Floats:
        """Inverse temperature of the quantum model at each point, (points,), in 1 / unit of the couplings."""
        return self.points.beta

    @property
    def temperature(self) -> Floats:
        """1 / k, the temperature of the classical space-time model, (points,), in the unit of the couplings."""
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
        """Measurements in time, per site or relative to full order, each (steps, samples, copies, points, ...)."""
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
        """Number of slices in time."""
        return self.model.graph.slices

    @property
    def action_in_time(self) -> Integers:
        """Action of the bonds in time, a whole number, (steps, samples, copies, points)."""
        return np.asarray(-self.correlation_in_time[..., 0].astype(np.int64))

    @property
    def action_in_space(self) -> Floats:
        """Action of the bonds and fields in space, in the unit of the couplings, (steps, samples, copies, points)."""
        return np.asarray(self.action - self.action_in_time)

    @property
    def local_susceptibility(self) -> Floats:
        """Response of each site to its field along z, k <(sum over slices of s)^2> / slices, from ``local_squares``.

        Shape (samples, copies, points, sites of space), in 1 / unit of the couplings; NaN before the first measurement.

        Raises:
            InputError: if it was not measured.
        """
        if self.local_squares is None or self.local_measurements is None:
            asked = argument("local_susceptibility", True)
            raise MissingError(f"the run has no local susceptibilities: make it with {asked}")
        measured = np.where(self.local_measurements > 0, self.local_measurements, np.nan)[:, None, None, None]
        return np.asarray(self.k[:, None] * self.local_squares / (measured * self.slices))

    def dataset(self) -> xarray.Dataset:
        """Return ``LadderResult.dataset`` with the coordinates of each point added."""
        others = {"k", "k_time", "gamma", "beta"} - {self.points.axis}
        coordinates = {name: (self.points.axis, getattr(self, name)) for name in sorted(others)}
        return super().dataset().assign_coords(coordinates)

    @property
    def _run_facts(self) -> dict[str, str]:
        return {"slices": count(self.slices, "slice"), **super()._run_facts}


def read(record: Record, model: Ising) -> QuantumResult:
    """Return the result of a record."""
    points = points_in(record, model)
    return QuantumResult.of(record, model, points, points=points, time=record["measurements/time"])


class QuantumPlan(LadderPlan[Quantum]):
    """A quantum run that is ready to begin; its model is the space-time model."""

    @classmethod
    def model_of(cls, config: Quantum, device: str) -> Ising:
        q = config.quantum
        return build_model(config.model, config.run.number_of_replicas * q.places, q.slices, q.is_general)

    @classmethod
    def filled_in(cls, config: Quantum, model: Ising, device: str) -> Quantum:
        return with_usual_moves(config, model, config.run.number_of_replicas)

    @property
    def wanted(self) -> Quantities:
        q = self.config.quantum
        return Quantities(True, q.time_list, q.even_correlations, magnetization_modes=q.magnetization_modes)


@public
@judges("model", "seed", none=True)
def quantum(
    model: Ising,
    k: ArrayLike | str | None = None,
    slices: int = 32,
    sweeps: int = 10_000,
    thermalize: int = 2000,
    replicas: int = 2,
    measure_every: int = 10,
    swap_every: int = 1,
    correlation_times: ArrayLike | str | None = None,
    even_correlations: bool = False,
    local_susceptibility: bool = False,
    seed: int | None = 1,
    start: str | ArrayLike = "random",
    zero_acceptance: float = 1 - 2**-6,
    rng_rounds: int = 10,
    device: str = "auto",
    threads: int | None = None,
    on_updates: Callable[[int], None] | None = None,
    out: str | os.PathLike[str] | None = None,
    checkpoint_every: float = 60.0,
    progress: bool = False,
    gamma: ArrayLike | str | None = None,
    beta: ArrayLike | str | None = None,
    measure: str | Mapping[str, Measure] | None = None,
    moves: str | Sequence[tuple[Move, int]] | None = None,
    *,
    clusters: str | None = None,
    clusters_every: int | None = None,
    houdayer: str | int | None = None,
    series: str = "all",
    series_limit: float = 256.0,
    magnetization_modes: bool = True,
    gpus: str | None = None,
    save_configurations: int = 0,
) -> QuantumResult:
    """Temper the transverse-field Ising model, in slices of imaginary time, in k, Gamma or beta.

    In the isotropic form, the default, the weight is exp(-k A) with A = -(sum over slices of J s s
    over bonds, h s over sites and s(tau) s(tau + 1) over sites); the transverse field is Gamma =
    -ln tanh(k) / (2 k), the inverse temperature k times ``slices``. In the general form, with
    ``gamma`` and ``beta``, bonds and fields in space have the weight k = beta / ``slices``, and
    bonds in time -ln tanh(gamma k) / 2. Averages then equal those of the quantum model at this
    gamma and beta, up to terms of order k^2.

    Args:
        model: Model in space.
        k: Steps in time of the isotropic form, shape (k,), in any order; or text in the notation of
            the command line, such as ``auto:0.25:0.31``. By default ``0.2:0.3:16``.
        slices: Slices in time, an even number from 2 to 2^20.
        sweeps: Measured sweeps (a whole number from 1 to 10^12).
        thermalize: Sweeps before the first measurement.
        replicas: Copies at each k, two or more for overlaps (a whole number from 1 to 2^21).
        measure_every: Sweeps between measurements.
        swap_every: Sweeps between exchanges.
        correlation_times: Times, in slices, for the autocorrelation of spins; 1 is always included.
            By default 1, 2, 3, ... to half of the slices, at most 16 times.
        even_correlations: Also correlate products of neighbouring spins, for gaps of even parity.
        local_susceptibility: Measure the local susceptibility of each site, from the square of its
            sum over slices.
        seed: Seed of the dynamics, 64 bits (a whole number from 0 to 2^64 - 1); None draws a fresh
            one.
        start: Initial spins: ``random``, ``up``, or configurations of +1 and -1 in space and time,
            shape (sites,), (samples, sites) or (samples, copies times points, sites). Replica c T +
            i is copy c at the i-th of T points, counted from the end deepest in the ordered phase.
        zero_acceptance: Acceptance of flips that cost no energy (a number above 0 and at most 1),
            by default 1 - 2^-6.
        rng_rounds: Philox rounds, 10 or 7.
        device: ``auto`` (a GPU if there is one), ``cpu``, ``cuda`` or ``gpu`` (the same as cuda).
        threads: CPU threads (a whole number from 1 to 4096), all by default. The result does not
            depend on their number.
        on_updates: Called at intervals with the number of spin updates since its last call.
        out: File for the run and its checkpoints; the same call, or ``resume``, completes an
            interrupted run. Without a file the run is kept in memory.
        checkpoint_every: Seconds between checkpoints, at least 0.
        progress: Show a progress bar on the terminal or in the notebook; elsewhere say when kernels
            are compiled.
        gamma: Transverse fields of the general form in the unit of the couplings, one or several in
            any order, or text.
        beta: Inverse temperatures of the general form, in the same notation. At least one of gamma
            and beta is a single number.
        measure: User-defined observables, functions by name, as in ``ss.temper``.
        moves: Moves in space and time, as in ``ss.temper``.
        clusters: Cluster moves of Fortuin and Kasteleyn between sweeps: ``sw``, ``wolff`` or
            ``seeded``.
        clusters_every: Sweeps between cluster moves, 10 by default.
        houdayer: Sweeps between Houdayer moves, which exchange clusters between copies at the same
            point. ``auto`` makes them where they pay, with two copies or more on graphs of up to
            three dimensions; 0 for none, the default.
        series: Series to keep: ``all``, ``none``, or names such as ``energy,overlap``; averages
            always come from sums over all measurements.
        series_limit: Largest size of the series in megabytes, at least 0.001. A longer run adds up
            all measurements and keeps every second, fourth, ... row, in at most a quarter of the
            limit.
        magnetization_modes: Measure Fourier modes of the magnetisation, for its correlation lengths
            in space and in time.
        gpus: GPUs that share the work: ``all``, a count, or a list of numbers such as ``0,2``; by
            default one for each process.
        save_configurations: Measurements between configurations that are saved (up to 10^12), one
            bit per spin; 0 saves none.

    Returns:
        Actions, magnetisations, correlations in time and overlaps of every copy at every point, and
        the acceptance rates of exchanges.

    Raises:
        InputError: for bad points or slices, numbers out of range, too little memory, and if the
            file holds another run.
        KeyboardInterrupt: on Ctrl-C; a run with ``out`` is saved first.
    """
    given = dict(locals())
    in_time = trotter(check_model(model), slices or QuantumSettings.slices, by_term=gamma is not None)
    result: QuantumResult = run_of_call(Quantum, in_time, given)
    return result
