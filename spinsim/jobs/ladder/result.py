"""Results of runs on a ladder, of temperatures or of points in space and time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Self

import h5py
import numpy as np
import numpy.typing as npt

from spinsim.analysis.reduced import ReducedRun
from spinsim.analysis.runs import Tempered
from spinsim.analysis.sources import facts_of, measurements_of
from spinsim.bits import States
from spinsim.engine.measuring.correlations import Wanted
from spinsim.engine.measuring.reduction import Reduced
from spinsim.errors import InputError, MissingError
from spinsim.inputs.texts import count
from spinsim.jobs.ladder.contents import (
    LOCAL_SUMS,
    TEMPERING,
    Places,
    all_series,
    contents_of_run,
    placement_of,
    read_permutation,
    reduced_of_run,
    times_in,
    written_again,
)
from spinsim.model.ising import Ising
from spinsim.observables.measured import Choice
from spinsim.run.own import names_in_file, on_ladder, own_of_result, with_summary
from spinsim.run.reducing import REDUCED, reduced_in, with_sums_of_result
from spinsim.run.search import GROUP as SEARCH
from spinsim.sampling.placement import Placement
from spinsim.saved import Configurations, in_file
from spinsim.store.contents import MEASUREMENTS, SUMMARY_GROUP, Contents

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, repr=False, kw_only=True)
class LadderResult(Tempered):
    """Measurements of a run on a ladder, replicas sorted by copy and place; series are those of ``sweep``.

    Attributes:
        model: Model that was simulated; for quantum runs in space and time, with ``model.graph.slices`` slices.
        sweep: Sweeps done before each measurement since thermalisation, (steps,).
        magnetization: Sums of spins (over sites and slices), integers (steps, samples, copies, places).
        overlap: Sums over sites (and slices) of the product of two copies' spins, (steps, samples, pairs of copies,
            places).
        permutation: Replica at each place, (steps, samples, copies, places).
        attempts: Attempted exchanges of each pair of neighbouring places, (samples, places - 1).
        accepts: Accepted exchanges of each pair, (samples, places - 1).
        round_trips: Round trips of each replica from the last place to the first and back, (samples, replicas).
        link_overlap: Sums over bonds of two copies' products s_i s_j, of the shape of ``overlap``; no pairs if it was
            not measured.
        overlap_mode: |sum over sites of (s_a s_b) exp(i k x)|^2, k = 2 pi / L along each axis of the lattice, time
            first, ``float64`` (steps, samples, pairs of copies, places, axes); no axes if it was not measured.
        magnetization_mode: The same for spins, (steps, samples, copies, places, axes), likewise.
        placement: Pre-run that placed the ladder, in temperatures, 1 / k, Gamma or 1 / beta; None if you gave the
            ladder.
        best_energy: Lowest energy (for quantum runs action) of each replica at a measurement, (samples, replicas); None
            if the run was killed before its first checkpoint.
        best_spins: State of lowest energy at a measurement, ``int8`` (samples, sites), likewise.
        configurations: Spins saved at measurements; None without ``save_configurations``.
        attributes: Root attributes of its file: configuration, versions and so on.
        measured: Observables of your own by name, each (steps, samples, copies, places) or with more axes.
        reduced: Sums over all measurements, if the series have only some of them; else None.
    """

    model: Ising
    placement: Placement | None = None
    best_energy: Floats | None = None
    best_spins: npt.NDArray[np.int8] | States | None = None
    configurations: Configurations | None = None
    attributes: dict[str, str] = field(default_factory=dict)
    measured: dict[str, npt.NDArray[Any]] = field(default_factory=dict)

    @property
    def places(self) -> Places:
        """The ladder."""
        raise NotImplementedError

    @property
    def choice(self) -> Choice:
        facts, (times, even) = facts_of(self), self._times
        wanted = Wanted(facts.correlations, times, even, magnetization_modes=facts.magnetization_modes)
        return Choice(self.permutation.shape[2], wanted, facts.staggered)

    @cached_property
    def verdict(self) -> str:
        """Verdict on equilibrium in words, as ``spinsim show`` prints it; begins with "in equilibrium" if it was.

        Raises:
            MissingError: for a run that is too short to analyse.
        """
        from spinsim.analysis.summary import summarize  # which loads SciPy

        try:
            return summarize(self).verdict
        except InputError as error:
            raise MissingError(str(error)) from error

    @property
    def _times(self) -> tuple[tuple[int, ...], bool]:
        """Times of correlations in time, and whether products of neighbours have them too."""
        return (), False

    @property
    def _rows(self) -> int:
        return len(self.sweep)

    @property
    def _planned(self) -> int:
        run = self.config.get(self.job, {})
        planned = run["sweeps"] // run["measure_every"] if run else 0
        if self.reduced is not None:
            return planned // self.reduced.stride if self.reduced.stride else 0
        return planned

    @property
    def _contents(self) -> Contents:
        ladder, local = self.places, getattr(self, "local_squares", None) is not None
        contents = contents_of_run(self.model, self.choice, ladder, self.placement, local=local)
        contents = with_summary(contents, *own_of_result(self.measured, on_ladder(ladder.axis)))
        return with_sums_of_result(contents, self, ladder.axis)

    def _written_again(self, contents: Contents) -> dict[str, npt.NDArray[Any]]:
        others = SUMMARY_GROUP, SEARCH, REDUCED
        datasets = {s.path: getattr(self, s.name) for s in contents.sums if s.group not in others}
        arrays = {} if self.reduced is None else self.reduced.arrays
        return datasets | {s.path: arrays[s.name] for s in contents.sums if s.group == REDUCED}

    @property
    def _run_facts(self) -> dict[str, str]:
        done = {"steps": count(measurements_of(self), "measurement")}
        values, name = self.axis.values, self.axis.name
        in_space = name == "temperature"
        kind, number = ("temperatures", count(len(values), name)) if in_space else ("points", f"{len(values)} {name}")
        ends = f"{number} from {values.min():g} to {values.max():g}"
        return {"copies": f"{self.permutation.shape[2]} copies", kind: ends, **done}

    @classmethod
    def read(cls, file: h5py.File, rows: int, attributes: dict[str, str], ladder: Places, **fields: Any) -> Self:
        """Returns the run of the first rows of a file, with its ladder, its model and the fields of the job."""
        m = file[MEASUREMENTS]
        fields |= all_series(ladder.slices > 1, m, rows, file[f"{TEMPERING}/permutation"].shape[1:])
        return cls(
            sweep=m["sweep"][:rows],
            permutation=read_permutation(file, rows),
            placement=placement_of(file),
            **written_again(file, attributes, LOCAL_SUMS),
            configurations=in_file(file, rows),
            attributes=attributes,
            measured={name: m[name][:rows] for name in names_in_file(file)},
            reduced=reduced_of_file(file, fields["model"], attributes, ladder),
            **fields,
        )


def reduced_of_file(file: h5py.File, model: Ising, attributes: Mapping[str, str], ladder: Places) -> ReducedRun | None:
    """Returns the sums over all measurements that a file holds, None where it keeps all series in full."""
    copies, times = file[f"{TEMPERING}/permutation"].shape[2], times_in(file, ladder.slices)

    def reduced(settings: Mapping[str, Any]) -> Reduced:
        full, even = settings.get("correlations", True), settings.get("even_correlations", False)
        wanted = Wanted(full, times, even, magnetization_modes=settings["magnetization_modes"])
        return reduced_of_run(model, Choice(copies, wanted, not times and model.is_bipartite), ladder)

    return reduced_in(file, attributes, reduced)
