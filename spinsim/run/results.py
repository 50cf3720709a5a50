"""Results of runs of replicas, whose files have a row for each step, and of those that exchange places of a ladder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from spinsim import store
from spinsim.analysis.reduced import ReducedRun
from spinsim.bits import States
from spinsim.result import Result
from spinsim.run.reducing import REDUCED
from spinsim.run.search import GROUP as SEARCH
from spinsim.saved import Configurations
from spinsim.store.configurations import with_configurations
from spinsim.store.layout import MEASUREMENTS, SUMMARY_GROUP, Layout

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
    def _layout(self) -> Layout:
        """Layout of its file without configurations."""
        raise NotImplementedError

    def _written_again(self, layout: Layout) -> dict[str, npt.NDArray[Any]]:
        """Datasets of a file of this layout that are written again and again, by path."""
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
        layout = self._layout
        names = [s.name for s in layout.series if s.group == MEASUREMENTS and s.name != "step"]
        return self._labelled(layout, {name: self.series(name) for name in names} | {"step": np.arange(self._rows)})

    def _write(self, target: Path) -> None:
        """Write the run to a new file."""
        found, layout, names = self.configurations, self._layout, {series.name for series in self._layout.series}
        if found is not None:
            layout = with_configurations(layout, found.every, found.sites)
        best_of = 0 if self.best_energy is None else self.best_energy.shape[1]
        store.create(target, self.model, layout, max(self._planned, self._rows), self._origin, best_of)
        with store.open_to_append(target) as file:
            for step in range(self._rows):
                saved = {} if found is None else found.at_step(step)
                file.write({"step": step} | saved | {name: self.series(name)[step] for name in names - {"step"}})
            file.write_again(self._written_again(layout))
            if self.best_energy is not None and self.best_spins is not None:
                file.write_best(self.best_energy, self.best_spins)
            if self.finished:
                file.finish()


class LadderResult(SampledResult):
    """A result whose file has a row for each measurement, and sums of exchanges that go on.

    Attributes:
        sweep: Sweeps done at each measurement, (measurements,).
        attempts: Exchanges tried of each pair of neighbours on the ladder, (samples, places - 1).
        accepts: Accepted ones, likewise.
        reduced: Sums over all measurements, where the series have but some of them; None where these are whole.
        magnetization_mode: Squared Fourier modes of the magnetisation, (measurements, samples, copies, places, axes).
    """

    sweep: npt.NDArray[np.int64]
    attempts: npt.NDArray[np.int64]
    accepts: npt.NDArray[np.int64]
    magnetization_mode: npt.NDArray[np.float64]
    reduced: ReducedRun | None

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
    def swap_rate(self) -> npt.NDArray[np.float64]:
        """Share of exchanges accepted for each pair of neighbours on the ladder, over all samples."""
        return np.asarray(self.accepts.sum(axis=0) / np.maximum(self.attempts.sum(axis=0), 1))

    @property
    def has_magnetization_modes(self) -> bool:
        """True if Fourier modes of the magnetisation were measured."""
        return bool(self.magnetization_mode.shape[-1])

    def _written_again(self, layout: Layout) -> dict[str, npt.NDArray[Any]]:
        others = SUMMARY_GROUP, SEARCH, REDUCED
        found = {s.path: getattr(self, s.name) for s in layout.sums if s.group not in others}
        arrays = {} if self.reduced is None else self.reduced.arrays
        return found | {s.path: arrays[s.name] for s in layout.sums if s.group == REDUCED}
