"""Results of runs out of equilibrium, and the contents of their files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field as default
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from spinsim.analysis.aging import Mean, coherence_lengths, mean_of
from spinsim.errors import InputError, MissingError
from spinsim.inputs.arguments import public
from spinsim.inputs.texts import count
from spinsim.model.ising import Ising
from spinsim.observables.quantities import STAGGERED
from spinsim.packing import States
from spinsim.record import Array, Record
from spinsim.run.own_observables import REPLICAS, measured_in
from spinsim.saved import Configurations, SampledResult, configurations_in
from spinsim.solution import Lowest
from spinsim.store.contents import ENERGY, MEASUREMENTS, STEP, TEMPERATURE, Series, group_of
from spinsim.store.models import as_shown, best_in

Floats = npt.NDArray[np.float64]

_OF_REPLICAS: Final = STEP, *REPLICAS
_C4: Final = "average of q(x) q(x + r) along the longest axes, q = s s' of replicas of a group and their next ones"
_SERIES: Final = (
    Series("sweep", (STEP,), np.int64, "sweeps from the beginning of the protocol", "sweeps"),
    Series("temperature", (STEP,), np.float64, "temperature of the last sweep", TEMPERATURE),
    Series("field", (STEP,), np.float64, "uniform field of the last sweep, added to the model's own", ENERGY),
    Series("energy", _OF_REPLICAS, np.float64, "total energy", ENERGY),
    Series("magnetization", _OF_REPLICAS, np.int64, "sum of spins"),
    Series("staggered_magnetization", _OF_REPLICAS, np.int64, STAGGERED),
    Series("correlation", (*_OF_REPLICAS, "waiting"), np.float64, "average over sites of s(waiting) s(now)"),
    Series("overlap_correlation", (STEP, "sample", "group", "distance"), np.float64, _C4),
)


def contents_of(lengths: Mapping[str, int], is_bipartite: bool, waiting: npt.NDArray[np.int64]) -> Record:
    """Return an empty record, without series of which an axis in ``lengths`` has length 0."""
    series = [one for one in _SERIES if all(lengths.get(axis, 1) for axis in one.axes)]
    series = [one for one in series if is_bipartite or one.name != "staggered_magnetization"]
    times = Array(waiting, ("waiting",), "sweeps before each reference configuration", "sweeps")
    return Record({}, {}, {MEASUREMENTS: group_of(series, lengths, {"waiting": times} if len(waiting) else {})})


@public
@dataclass(frozen=True, repr=False)
class EvolveResult(SampledResult):
    """Measurements of replicas on their way through a protocol out of equilibrium.

    Attributes:
        model: The simulated model.
        sweep: Sweeps from the beginning of the protocol at each measurement, ``int64`` (measurements,).
        temperature: Temperature of the last sweep before each measurement, (measurements,), in the unit of the
            couplings.
        field: Uniform field of that sweep, added to the model's own, (measurements,), in the unit of the couplings.
        energy: Total energies, in the unit of the couplings, (measurements, samples, replicas).
        magnetization: Sums of spins, ``int64`` (measurements, samples, replicas).
        best_energy: Lowest energy met at a measurement, without the field of the protocol, (samples, replicas).
        best_spins: State of lowest energy met at a measurement, ``int8`` (samples, sites).
        staggered_magnetization: Sum of spins on the sublattice of site 0 minus the sum on the other, ``int64`` of the
            shape of ``magnetization``. None if the lattice is not bipartite.
        waiting: Waiting times in sweeps, ``int64`` (waiting times,).
        correlation: C(t, t_w), the average over sites of s(t_w) s(t_w + t) of each replica, (measurements, samples,
            replicas, waiting times); NaN before t_w.
        overlap_correlation: C4(r) along the longest axes, the average over sites of q(x) q(x + r), q = s s' of two
            replicas, (measurements, samples, groups, L / 2 + 1). A single sample has up to 16 groups of replicas, which
            are independent of each other; several samples have one group each. None without pairs of replicas, and
            without a lattice of one site a cell.
        configurations: Spins saved at measurements; None without ``save_configurations``.
        record: The whole run as named arrays, as stored in its file.
        measured: User-defined observables by name, each (measurements, samples, replicas) or with more axes.
        job: Name of the job, the command that makes such runs.
        series_group: Group of ``record`` that has the series.
    """

    job = "evolve"

    model: Ising
    sweep: npt.NDArray[np.int64]
    temperature: Floats
    field: Floats
    energy: Floats
    magnetization: npt.NDArray[np.int64]
    best_energy: Floats
    best_spins: npt.NDArray[np.int8] | States
    staggered_magnetization: npt.NDArray[np.int64] | None = None
    waiting: npt.NDArray[np.int64] = default(default_factory=lambda: np.empty(0, np.int64))
    correlation: Floats = default(default_factory=lambda: np.empty((0, 0, 0, 0)))
    overlap_correlation: Floats | None = None
    configurations: Configurations | None = None
    record: Record = default(default_factory=Record)
    measured: dict[str, npt.NDArray[Any]] = default(default_factory=dict)

    @cached_property
    def coherence_lengths(self) -> tuple[Mean, Mean]:
        """Averages xi_12 and xi_23 at each measurement, in lattice units, with errors, from ``overlap_correlation``.

        Source: F. Belletti et al. (Janus), J. Stat. Phys. 135, 1121 (2009), equations 31 to 34. InputError without it.
        """
        if self.overlap_correlation is None:
            raise MissingError("the run has no C4(r): give replicas 2 or more, of a lattice of one site a cell")
        return coherence_lengths(self.overlap_correlation)

    def aging(self, number: int) -> tuple[npt.NDArray[np.int64], Mean]:
        """Return times t from 0 on after waiting time ``number``, and the average C(t, t_w) with its error.

        Raises:
            InputError: if the run has no such waiting time.
        """
        if not 0 <= number < len(self.waiting):
            raise InputError(f"waiting time number {number} is not one of {len(self.waiting)}: give waiting more times")
        later = self.sweep >= self.waiting[number]
        return self.sweep[later] - self.waiting[number], mean_of(self.correlation[later, ..., number])

    def response(self, without: EvolveResult) -> Mean:
        """Return (m - m_0) / (h - h_0) per site, NaN where h = h_0, for a run ``without`` a field and the same seed.

        Raises:
            InputError: for runs that were not measured at the same times.
        """
        if not np.array_equal(self.sweep, without.sweep) or self.energy.shape != without.energy.shape:
            raise InputError("the two runs were not measured at the same times: give protocols that differ in h alone")
        field = np.where(self.field == without.field, np.nan, self.field - without.field)[:, None, None]
        return mean_of((self.magnetization - without.magnetization) / (field * self.model.sites))

    @property
    def _lowest(self) -> Lowest:
        return Lowest(self.best_energy, self.best_spins, None)

    @property
    def _run_facts(self) -> dict[str, str]:
        size = {"replicas": count(self.energy.shape[2], "replica"), "protocol": str(self._settings.get("protocol", ""))}
        return size | {"measurements": count(len(self.sweep), "measurement")}


def read(record: Record, model: Ising) -> EvolveResult:
    """Return the result of a record."""
    group, (energy, spins) = record.group(MEASUREMENTS), best_in(record, model.sites)
    fields: dict[str, Any] = {one.name: np.asarray(group[one.name]) for one in _SERIES if one.name in group}
    fields |= {"waiting": np.asarray(group["waiting"])} if "waiting" in group else {}
    fields |= {"best_energy": energy, "best_spins": as_shown(spins, model), "measured": measured_in(record)}
    return EvolveResult(model=model, record=record, configurations=configurations_in(record), **fields)
