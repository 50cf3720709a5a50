"""The result of a tempering run."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from spinsim.analysis.runs import Axis, temperatures
from spinsim.inputs.signatures import public
from spinsim.jobs.ladder.result import Floats, Integers, LadderResult, Temperatures, temperatures_in
from spinsim.model.ising import Ising
from spinsim.record import Record
from spinsim.run.search import Searched
from spinsim.solution import Lowest


@public
@dataclass(frozen=True, repr=False, kw_only=True)
class TemperResult(LadderResult):
    """Measurements of a tempering run, sorted by copy and temperature. ``LadderResult`` has more attributes.

    Attributes:
        temperature: Temperatures from the lowest to the highest, in the unit of the couplings, (temperatures,).
        energy: Totals, ``float64`` (steps, samples, copies, temperatures).
        staggered_magnetization: Sum of spins on the sublattice of site 0 minus the sum on the other, of the shape of
            ``energy``; no copies if the lattice is not bipartite, and in older files.
        search: Sweeps, seconds and restarts of a search; None for other runs.
    """

    job = "temper"

    temperature: Floats
    energy: Floats
    staggered_magnetization: Integers = field(default_factory=lambda: np.empty((0, 0, 0, 0), np.int64))
    search: Searched | None = None

    in_time = None

    @property
    def places(self) -> Temperatures:
        return Temperatures(self.temperature)

    @property
    def axis(self) -> Axis:
        return temperatures(self.temperature)

    @property
    def has_staggered(self) -> bool:
        """True if staggered magnetisations were measured."""
        return bool(self.staggered_magnetization.shape[2])

    @property
    def _lowest(self) -> Lowest:
        return Lowest(self.best_energy, self.best_spins)


def read(record: Record, model: Ising) -> TemperResult:
    """Returns the run of a record."""
    ladder = temperatures_in(record, model)
    return TemperResult.of(record, model, ladder, temperature=ladder.values, search=Searched.read(record))
