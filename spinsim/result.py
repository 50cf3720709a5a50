"""What a run gives back in Python, and the way to and from its file."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from spinsim import store
from spinsim.errors import InputError
from spinsim.measure import Measurement
from spinsim.model.ising import Ising

if TYPE_CHECKING:
    import xarray


@dataclass(frozen=True)
class AnnealResult:
    """Measurements of an annealing run.

    Attributes:
        model: What was simulated.
        temperature: In units of |J|, shape (steps,).
        energy: Totals after each step, ``float64`` (steps, samples, replicas).
        magnetization: Sums of spins after each step, ``int64`` (steps, samples, replicas).
        best_energy: Lowest energy met, (samples, replicas).
        best_spins: State of lowest energy met, ``int8`` (samples, sites).
        attributes: Root attributes of its file: configuration, versions and so on.
    """

    model: Ising
    temperature: npt.NDArray[np.float64]
    energy: npt.NDArray[np.float64]
    magnetization: npt.NDArray[np.int64]
    best_energy: npt.NDArray[np.float64]
    best_spins: npt.NDArray[np.int8]
    attributes: dict[str, str] = field(default_factory=dict)

    @property
    def config(self) -> dict[str, Any]:
        """The run's parameters."""
        return dict(json.loads(self.attributes.get("config", "{}")))

    @property
    def finished(self) -> bool:
        """Whether the run went through all its temperatures."""
        return "finished" in self.attributes

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
        try:
            import xarray
        except ImportError as error:
            raise InputError("xarray is missing: install spinsim[xarray] to use dataset()") from error
        dimensions = ("step", "sample", "replica")
        return xarray.Dataset(
            {
                "energy": (dimensions, self.energy, {"units": "|J|", "long_name": "total energy"}),
                "magnetization": (dimensions, self.magnetization, {"units": "1", "long_name": "sum of spins"}),
                "temperature": ("step", self.temperature, {"units": "|J|/k_B", "long_name": "temperature"}),
            },
            coords={name: np.arange(n) for name, n in zip(dimensions, self.energy.shape, strict=True)},
            attrs=dict(self.attributes),
        )

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the run to a new HDF5 file and return its path.

        Raises:
            InputError: where the file exists or cannot be written.
        """
        target = Path(path)
        _, _, replicas = self.energy.shape
        kept = {key: value for key, value in self.attributes.items() if key not in ("created", "finished")}
        planned = self.config.get("anneal", {}).get("steps", 0)
        store.create(target, self.model, replicas, max(planned, len(self.temperature)), kept)
        with store.open_to_append(target) as file:
            for step, temperature in enumerate(self.temperature):
                file.write(step, float(temperature), Measurement(self.energy[step], self.magnetization[step]))
            file.write_best(self.best_energy, self.best_spins)
            if self.finished:
                file.finish()
        return target


def load(path: str | os.PathLike[str]) -> AnnealResult:
    """Read a run back from its file; of an unfinished one, the steps it has.

    Raises:
        InputError: for a missing file or one that spinsim did not write.
    """
    with store.open_to_read(Path(path)) as file:
        m = file["measurements"]
        steps = min(len(m[name]) for name in ("temperature", "energy", "magnetization"))
        return AnnealResult(
            model=store.read_model(file),
            temperature=m["temperature"][:steps],
            energy=m["energy"][:steps],
            magnetization=m["magnetization"][:steps],
            best_energy=file["best/energy"][...],
            best_spins=file["best/spins"][...],
            attributes={key: str(value) for key, value in store.attributes(file).items()},
        )
