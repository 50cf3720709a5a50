"""The batch of configurations that a user's observable is given."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from types import ModuleType
from typing import Any

from spinsim.errors import InputError
from spinsim.model.ising import Ising


@dataclass(frozen=True)
class Batch:
    """The configurations of one moment, which a user's function is given; its arrays are the function's own.

    Attributes:
        spins: ``int8``, +1 and -1, with the axes ``axes``; an array of NumPy on a CPU, of CuPy on a GPU.
        axes: Names of the axes of ``spins``: ``sample``, ``copy``, ``temperature``, ``site``; of quantum runs ``k``,
            ``gamma`` or ``beta`` in the place of temperatures, of anneals ``sample``, ``replica``, ``site``.
        model: Model that is simulated.
        xp: The module of its arrays, ``numpy`` or ``cupy``.
        beta: Inverse temperature of each place of a ladder, (places,), or of both terms of the energy of each, (places,
            2); of anneals the present one.
        seed: Of the run.
        number: Of the measurement; with the seed it tells random numbers of different measurements apart.
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
        """The spins with the axes of the lattice in the place of that of sites, x last.

        Raises:
            InputError: where the model has no lattice of one site a cell.
        """
        lattice = self.model.embedding
        if lattice is None or prod(lattice.shape) != self.model.sites:
            raise InputError(f"{self.model.name} has no lattice whose sites lie on a grid: take spins instead of grid")
        return self.spins.reshape(*self.spins.shape[:-1], *lattice.shape[::-1])
