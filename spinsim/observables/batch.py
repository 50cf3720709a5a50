"""Batch of configurations that is passed to a user's observable."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from math import prod
from types import ModuleType
from typing import Any

import numpy as np

from spinsim.errors import InputError
from spinsim.model.ising import Ising
from spinsim.packing import Bits, unpacked_spins


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
        if lattice is None or not has_grid(self.model):
            raise InputError(f"{self.model.name} has no lattice whose sites lie on a grid: take spins instead of grid")
        return self.spins.reshape(*self.spins.shape[:-1], *lattice.shape[::-1])


def has_grid(model: Ising) -> bool:
    """True if a model has a lattice of one site a cell."""
    return model.embedding is not None and prod(model.embedding.shape) == model.sites


def module_of(device_name: str) -> ModuleType:
    """Return the module of a batch's arrays on a device: ``numpy`` on a CPU, ``cupy`` on a GPU."""
    return np if device_name == "cpu" else importlib.import_module("cupy")


def spins_of(bits: Bits, sites: int, xp: ModuleType) -> Any:
    """Return configurations of +1 and -1, ``int8`` (..., sites), unpacked where the arrays of ``xp`` are."""
    if xp is np:
        return unpacked_spins(bits, sites)
    flat = xp.unpackbits(xp.asarray(bits).ravel(), bitorder="little")
    ones = flat.reshape(*bits.shape[:-1], -1)[..., :sites].astype(np.int8)
    return xp.ascontiguousarray(2 * ones - 1)
