"""The result of a tempering run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import h5py
import numpy as np
import numpy.typing as npt

from spinsim import store
from spinsim.analysis.runs import Axis, temperatures
from spinsim.inputs.signatures import public
from spinsim.jobs.ladder.result import Floats, Integers, LadderResult, Temperatures, temperatures_in
from spinsim.model.ising import Ising
from spinsim.run.search import Searched, read_search
from spinsim.solution import Lowest
from spinsim.store.contents import Contents


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
    def _contents(self) -> Contents:
        return super()._contents if self.search is None else self.search.in_contents(super()._contents)

    def _written_again(self, contents: Contents) -> dict[str, npt.NDArray[Any]]:
        return super()._written_again(contents) | ({} if self.search is None else self.search.datasets)

    @property
    def _lowest(self) -> Lowest:
        return Lowest(self.best_energy, self.best_spins)


def read(file: h5py.File, rows: int, attributes: dict[str, str], model: Ising | None = None) -> TemperResult:
    """Returns the first rows of the run of an open file, whose model is read too where it is not given."""
    ladder = temperatures_in(file)
    search = read_search(file, {} if "finished" in attributes else store.last_saved(file))
    own: dict[str, Any] = {"model": model or store.read_model(file), "temperature": ladder.values, "search": search}
    return TemperResult.read(file, rows, attributes, ladder, **own)
