"""Results of runs of replicas, whose files have a row for each step."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from spinsim import store
from spinsim.bits import States
from spinsim.result import Result
from spinsim.saved import Configurations
from spinsim.store.configurations import with_configurations
from spinsim.store.contents import MEASUREMENTS, Contents

if TYPE_CHECKING:
    import xarray


class SampledResult(Result):
    """A ``Result`` whose file has a row for each step or measurement, and the lowest states met.

    Attributes:
        best_energy: Lowest energy of each sample and replica, None where no state is known.
        best_spins: The lowest state of each sample, likewise.
        configurations: Saved ones, None where there are none.
    """

    best_energy: npt.NDArray[np.float64] | None
    best_spins: npt.NDArray[np.int8] | States | None
    configurations: Configurations | None

    @property
    def _rows(self) -> int:
        """Rows that it has."""
        raise NotImplementedError

    @property
    def _planned(self) -> int:
        """Rows that its configuration tells, 0 without one."""
        raise NotImplementedError

    @property
    def _contents(self) -> Contents:
        """Contents of its file without configurations."""
        raise NotImplementedError

    def _written_again(self, contents: Contents) -> dict[str, npt.NDArray[Any]]:
        """Datasets of a file of these contents that are written again and again, by path."""
        raise NotImplementedError

    def series(self, name: str) -> npt.NDArray[Any]:
        """Returns a series of its file, one of the user's own among them."""
        own: dict[str, npt.NDArray[Any]] = getattr(self, "measured", {})
        found: npt.NDArray[Any] = own[name] if name in own else getattr(self, name)
        return found

    def dataset(self) -> xarray.Dataset:
        """The measurements as an xarray dataset with named axes.

        Raises:
            InputError: where xarray is not installed.
        """
        contents = self._contents
        names = [s.name for s in contents.series if s.group == MEASUREMENTS and s.name != "step"]
        return self._labelled(contents, {name: self.series(name) for name in names} | {"step": np.arange(self._rows)})

    def _write(self, target: Path) -> None:
        """Write the run to a new file."""
        found, contents, names = self.configurations, self._contents, {series.name for series in self._contents.series}
        if found is not None:
            contents = with_configurations(contents, found.every, found.sites)
        best_of = 0 if self.best_energy is None else self.best_energy.shape[1]
        store.create(target, self.model, contents, max(self._planned, self._rows), self._origin, best_of)
        with store.open_to_append(target) as file:
            for step in range(self._rows):
                saved = {} if found is None else found.at_step(step)
                file.write({"step": step} | saved | {name: self.series(name)[step] for name in names - {"step"}})
            file.write_again(self._written_again(contents))
            if self.best_energy is not None and self.best_spins is not None:
                file.write_best(self.best_energy, self.best_spins)
            if self.finished:
                file.finish()
