"""What an annealing run gives back."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from spinsim import store
from spinsim.layout import anneal_layout
from spinsim.model.ising import Ising
from spinsim.result.base import Result

if TYPE_CHECKING:
    import h5py
    import xarray


@dataclass(frozen=True)
class AnnealResult(Result):
    """Measurements of an annealing run.

    Attributes:
        model: What was simulated.
        temperature: In the unit of the couplings, shape (steps,).
        energy: Totals after each step, ``float64`` (steps, samples, replicas).
        magnetization: Sums of spins after each step, ``int64`` (steps, samples, replicas).
        best_energy: Lowest energy met, (samples, replicas).
        best_spins: State of lowest energy met, ``int8`` (samples, sites).
        attributes: Root attributes of its file: configuration, versions and so on.
    """

    job = "anneal"

    model: Ising
    temperature: npt.NDArray[np.float64]
    energy: npt.NDArray[np.float64]
    magnetization: npt.NDArray[np.int64]
    best_energy: npt.NDArray[np.float64]
    best_spins: npt.NDArray[np.int8]
    attributes: dict[str, str] = field(default_factory=dict)

    @property
    def lowest_energy(self) -> npt.NDArray[np.float64]:
        """Lowest energy met, (samples, replicas); of a killed run what its steps tell, empty if there are none."""
        if np.isfinite(self.best_energy).all():
            return self.best_energy
        return self.energy.min(axis=0) if len(self.energy) else np.empty((0, 0))

    @property
    def cut(self) -> float:
        """Best cut of a MaxCut instance.

        Raises:
            InputError: where the model is none.
        """
        return float(self.model.cut(self.lowest_energy.min()))

    def dataset(self) -> xarray.Dataset:
        """The measurements as an xarray dataset with named axes.

        Raises:
            InputError: where xarray is not installed.
        """
        steps, samples, replicas = self.energy.shape
        values = {"temperature": self.temperature, "energy": self.energy, "magnetization": self.magnetization}
        return self._labelled(anneal_layout(samples, replicas), values | {"step": np.arange(steps)})

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the run to a new HDF5 file and return its path.

        Raises:
            InputError: where the file exists or cannot be written.
        """
        target = Path(path)
        _, _, replicas = self.energy.shape
        planned = self.config.get("anneal", {}).get("steps", 0)
        layout = anneal_layout(self.model.samples, replicas)
        store.create(target, self.model, layout, max(planned, len(self.temperature)), self._origin, best_of=replicas)
        with store.open_to_append(target) as file:
            for step, temperature in enumerate(self.temperature):
                row = {"step": step, "temperature": float(temperature)}
                file.write(row | {"energy": self.energy[step], "magnetization": self.magnetization[step]})
            file.write_best(self.best_energy, self.best_spins)
            if self.finished:
                file.finish()
        return target


def read(file: h5py.File, rows: int, attributes: dict[str, str]) -> AnnealResult:
    """The first rows of a file."""
    m = file["measurements"]
    saved = {} if "finished" in attributes else store.last_saved(file)
    best = {name: saved[name] if name in saved else file[name][...] for name in ("best/energy", "best/spins")}
    return AnnealResult(
        model=store.read_model(file),
        temperature=m["temperature"][:rows],
        energy=m["energy"][:rows],
        magnetization=m["magnetization"][:rows],
        best_energy=best["best/energy"],
        best_spins=best["best/spins"],
        attributes=attributes,
    )
