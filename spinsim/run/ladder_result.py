"""What the results of all jobs that exchange the places of a ladder have."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from spinsim import store
from spinsim.bits import States
from spinsim.result import Result
from spinsim.run.search import GROUP as SEARCH
from spinsim.saved import Configurations, at_step, with_those
from spinsim.store.layout import MEASUREMENTS, SUMMARY_GROUP, Layout

if TYPE_CHECKING:
    import xarray


class LadderResult(Result):
    """A ``Result`` whose file has a row for each measurement, and sums of exchanges that go on.

    Attributes:
        sweep: Sweeps done at each measurement, (measurements,).
        attempts: Exchanges tried of each pair of neighbours on the ladder, (samples, places - 1).
        accepts: Of them accepted, likewise.
        magnetization_mode: Squared Fourier modes of the magnetisation, (measurements, samples, copies, places, axes).
        best_energy: Of each sample and replica, None where no state is known.
        best_spins: The lowest state of each sample, likewise.
        configurations: Saved ones, None where there are none.
    """

    sweep: npt.NDArray[np.int64]
    attempts: npt.NDArray[np.int64]
    accepts: npt.NDArray[np.int64]
    magnetization_mode: npt.NDArray[np.float64]
    best_energy: npt.NDArray[np.float64] | None
    best_spins: npt.NDArray[np.int8] | States | None
    configurations: Configurations | None

    @property
    def swap_rate(self) -> npt.NDArray[np.float64]:
        """Share of exchanges accepted for each pair of neighbours on the ladder, over all samples."""
        return np.asarray(self.accepts.sum(axis=0) / np.maximum(self.attempts.sum(axis=0), 1))

    @property
    def has_magnetization_modes(self) -> bool:
        """True if Fourier modes of the magnetisation were measured."""
        return bool(self.magnetization_mode.shape[-1])

    def dataset(self) -> xarray.Dataset:
        """The measurements as an xarray dataset with named axes.

        Raises:
            InputError: where xarray is not installed.
        """
        layout = self._layout
        names = [s.name for s in layout.series if s.group == MEASUREMENTS and s.name != "step"]
        return self._labelled(
            layout, {name: self.series(name) for name in names} | {"step": np.arange(len(self.sweep))}
        )

    def series(self, name: str) -> npt.NDArray[Any]:
        """Returns a series of its file, one of the user's own among them."""
        own: dict[str, npt.NDArray[Any]] = getattr(self, "measured", {})
        found: npt.NDArray[Any] = own[name] if name in own else getattr(self, name)
        return found

    @property
    def _layout(self) -> Layout:
        """What its file holds beside configurations."""
        raise NotImplementedError

    def _written_again(self, layout: Layout) -> dict[str, npt.NDArray[Any]]:
        """What a file of this layout holds that is written again and again, by path."""
        return {s.path: getattr(self, s.name) for s in layout.sums if s.group not in (SUMMARY_GROUP, SEARCH)}

    def _write(self, target: Path) -> None:
        """Write the run to a new file."""
        layout = with_those(self.configurations, self._layout)
        run = self.config.get(self.job, {})
        planned = run["sweeps"] // run["measure_every"] if run else 0
        best_of = 0 if self.best_energy is None else self.best_energy.shape[1]
        store.create(target, self.model, layout, max(planned, len(self.sweep)), self._origin, best_of)
        names = {series.name for series in self._layout.series} - {"step"}
        with store.open_to_append(target) as file:
            for step in range(len(self.sweep)):
                saved = at_step(self.configurations, step)
                file.write({"step": step} | saved | {name: self.series(name)[step] for name in names})
            file.write_again(self._written_again(layout))
            if self.best_energy is not None and self.best_spins is not None:
                file.write_best(self.best_energy, self.best_spins)
            if self.finished:
                file.finish()
