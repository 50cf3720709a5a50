"""What a tempering run gives back."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from spinsim import store
from spinsim.analysis.reduced import ReducedRun
from spinsim.analysis.runs import Axis, temperatures
from spinsim.analysis.sources import facts_of, measurements_of
from spinsim.bits import States
from spinsim.engine.measuring.reduction import Reduced
from spinsim.inputs.texts import count
from spinsim.jobs.temper.layout import MEASURED, reduced_of_run, temper_layout
from spinsim.model.ising import Ising
from spinsim.result import load_as
from spinsim.run.ladder_layout import in_result, placement_of, read_permutation, written_again
from spinsim.run.own import on_ladder, own_in_file, own_of_result, with_summary
from spinsim.run.reducing import reduced_in, with_sums_of_result
from spinsim.run.results import LadderResult
from spinsim.run.search import Searched, read_search
from spinsim.sampling.placement import Placement
from spinsim.saved import Configurations, in_file
from spinsim.solution import Lowest
from spinsim.store.layout import MEASUREMENTS, Layout

if TYPE_CHECKING:
    import h5py


@dataclass(frozen=True, repr=False)
class TemperResult(LadderResult):
    """Measurements of a tempering run, replicas sorted by copy and temperature.

    Attributes:
        model: What was simulated.
        temperature: From the lowest to the highest, in the unit of the couplings, shape (temperatures,).
        sweep: Sweeps done before each measurement since thermalisation, (steps,).
        energy: Totals, ``float64`` (steps, samples, copies, temperatures).
        magnetization: Sums of spins, integers, likewise.
        overlap: Sums over sites of two copies' spins' product, (steps, samples, pairs of copies, temperatures).
        permutation: Replica at each temperature, (steps, samples, copies, temperatures).
        attempts: Exchanges tried of each pair of neighbouring temperatures, (samples, temperatures - 1).
        accepts: Of them accepted, likewise.
        round_trips: Of each replica from the hottest temperature to the coldest and back, (samples, replicas).
        link_overlap: Sums over bonds of two copies' products s_i s_j, of the shape of ``overlap``; no pairs where it
            was not measured.
        overlap_mode: |sum over sites of (s_a s_b) exp(i k x)|^2, k = 2 pi / L along each axis of the lattice,
            ``float64`` (steps, samples, pairs of copies, temperatures, axes); no axes where it was not measured.
        magnetization_mode: The same of spins, (steps, samples, copies, temperatures, axes), likewise.
        staggered_magnetization: Sums of spins over the sublattice of site 0 less those over the other, of the shape of
            ``energy``; no copies where the lattice is not bipartite and in older files.
        placement: How the temperatures were placed, None where they were given.
        best_energy: Lowest energy that each replica had at a measurement, (samples, replicas); None where a run was
            killed before its first checkpoint.
        best_spins: State of lowest energy at a measurement, ``int8`` (samples, sites), likewise.
        configurations: Spins of every so many-th measurement; None where none were saved.
        search: How a search went, None of a run that is none.
        attributes: Root attributes of its file: configuration, versions and so on.
        measured: Observables of the user's own by name, each (steps, samples, copies, temperatures) or with more axes.
        reduced: Sums over all measurements, where the series have but some of them; None where these are whole.
    """

    job = "temper"

    model: Ising
    temperature: npt.NDArray[np.float64]
    sweep: npt.NDArray[np.int64]
    energy: npt.NDArray[np.float64]
    magnetization: npt.NDArray[np.int64]
    overlap: npt.NDArray[np.int64]
    permutation: npt.NDArray[np.int64]
    attempts: npt.NDArray[np.int64]
    accepts: npt.NDArray[np.int64]
    round_trips: npt.NDArray[np.int64]
    link_overlap: npt.NDArray[np.int64] = field(default_factory=lambda: np.empty((0, 0, 0, 0), np.int64))
    overlap_mode: npt.NDArray[np.float64] = field(default_factory=lambda: np.empty((0, 0, 0, 0, 0)))
    magnetization_mode: npt.NDArray[np.float64] = field(default_factory=lambda: np.empty((0, 0, 0, 0, 0)))
    staggered_magnetization: npt.NDArray[np.int64] = field(default_factory=lambda: np.empty((0, 0, 0, 0), np.int64))
    placement: Placement | None = None
    best_energy: npt.NDArray[np.float64] | None = None
    best_spins: npt.NDArray[np.int8] | States | None = None
    configurations: Configurations | None = None
    search: Searched | None = None
    attributes: dict[str, str] = field(default_factory=dict)
    measured: dict[str, npt.NDArray[Any]] = field(default_factory=dict)
    reduced: ReducedRun | None = None

    in_time = None

    @property
    def axis(self) -> Axis:
        """The temperatures, against which averages are given."""
        return temperatures(self.temperature)

    @property
    def has_correlations(self) -> bool:
        """Whether link overlaps and modes were measured."""
        return bool(self.link_overlap.shape[2] or self.magnetization_mode.shape[-1])

    @property
    def has_staggered(self) -> bool:
        """Whether staggered magnetisations were measured."""
        return bool(self.staggered_magnetization.shape[2])

    @property
    def _layout(self) -> Layout:
        facts = facts_of(self)
        layout = temper_layout(
            self.model,
            self.energy.shape[2],
            self.temperature,
            facts.correlations,
            self.placement,
            staggered=facts.staggered,
            magnetization_modes=facts.magnetization_modes,
        )
        layout = with_summary(layout, *own_of_result(self.measured, on_ladder("temperature")))
        layout = with_sums_of_result(layout, self, "temperature")
        return layout if self.search is None else self.search.in_layout(layout)

    def _written_again(self, layout: Layout) -> dict[str, npt.NDArray[Any]]:
        """What a file holds that is written again and again, by path."""
        return super()._written_again(layout) | ({} if self.search is None else self.search.datasets)

    @property
    def _lowest(self) -> Lowest:
        return Lowest(self.best_energy, self.best_spins)

    @property
    def _run_facts(self) -> dict[str, str]:
        low, high = self.temperature[0], self.temperature[-1]
        return {
            "copies": f"{self.energy.shape[2]} copies",
            "temperatures": f"{count(len(self.temperature), 'temperature')} from {low:g} to {high:g}",
            "steps": count(measurements_of(self), "measurement"),
        }


def read(file: h5py.File, rows: int, attributes: dict[str, str]) -> TemperResult:
    """The first rows of a file."""
    m, model = file[MEASUREMENTS], store.read_model(file)
    return TemperResult(
        model=model,
        temperature=m["temperature"][...],
        sweep=m["sweep"][:rows],
        **in_result(MEASURED, m, rows, m["energy"].shape[1:]),
        permutation=read_permutation(file, rows),
        placement=placement_of(file),
        **written_again(file, attributes, model=model),
        configurations=in_file(file, rows),
        search=read_search(file, {} if "finished" in attributes else store.last_saved(file)),
        attributes=attributes,
        measured={one.name: m[one.name][:rows] for one in own_in_file(file, on_ladder("temperature"))[0]},
        reduced=reduced_of_file(file, model, attributes),
    )


def reduced_of_file(file: h5py.File, model: Ising, attributes: Mapping[str, str]) -> ReducedRun | None:
    """The sums over all measurements that a file holds, None where it keeps all series in full."""
    copies, places = file[MEASUREMENTS]["energy"].shape[2:]

    def reduced(settings: Mapping[str, Any]) -> Reduced:
        return reduced_of_run(model, copies, places, settings["correlations"], settings["magnetization_modes"])

    return reduced_in(file, attributes, reduced)


def load_temper(path: str | os.PathLike[str]) -> TemperResult:
    """Read a run back from its file; of an unfinished one, what it has.

    Raises:
        InputError: as ``spinsim.load``, and for a file of another job.
    """
    return load_as(TemperResult, path)
