"""Batch of configurations that is passed to a user's observable."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from types import ModuleType
from typing import Any

from spinsim.errors import InputError
from spinsim.model.ising import Ising


@dataclass(frozen=True)
class Batch:
    """Configurations of one moment, passed to a user's function, which may change the arrays.

    Attributes:
        spins: ``int8``, +1 and -1, with the axes ``axes``; an array of NumPy on a CPU, of CuPy on a GPU.
        axes: Names of the axes of ``spins``: ``sample``, ``copy``, ``temperature``, ``site``; for quantum runs ``k``,
            ``gamma`` or ``beta`` instead of ``temperature``; for anneals ``sample``, ``replica``, ``site``.
        model: Model that is simulated.
        xp: Module of the arrays, ``numpy`` or ``cupy``.
        beta: Inverse temperature of each place of a ladder, (places,), or of both terms of the energy at each place,
            (places, 2); for anneals the present one.
        seed: Seed of the run.
        number: Number of the measurement; with the seed it gives each measurement its own random numbers.
    """

    spins: Any
    axes: tuple[str, ...]
    model: Ising
    xp: ModuleType
    beta: Any = 0.0
    seed: int = 1
    number: int = 0

    @property
    def grid(self) -> Any:
        """The spins with the axes of the lattice instead of the axis of sites, x last.

        Raises:
            InputError: where the model has no lattice of one site a cell.
        """
        lattice = self.model.embedding
        if lattice is None or prod(lattice.shape) != self.model.sites:
            raise InputError(f"{self.model.name} has no lattice whose sites lie on a grid: take spins instead of grid")
        return self.spins.reshape(*self.spins.shape[:-1], *lattice.shape[::-1])
