"""The table ``[transfer]`` of a configuration."""

from __future__ import annotations

from dataclasses import dataclass

from spinsim.model.ising import Ising
from spinsim.transfer_matrix.lanczos import MOST_STEPS, TOLERANCE
from spinsim.transfer_matrix.layer import check_sector
from spinsim.transfer_matrix.points import Points, read_points
from spinsim.transfer_matrix.spectrum import Settings


@dataclass(frozen=True)
class TransferConfig:
    """Couplings and levels of a transfer matrix; by default at the transition of the ferromagnet.

    Attributes:
        temperature: As ``grids.read_grid`` takes them; or give ``k``, 1 / T.
        k: Likewise.
        k_time: Coupling to the next layer, where it is not k times |J|: one number, or as many.
        sector: ``even``, ``odd`` or ``both``.
        method: How T is applied: ``butterfly``, ``kronecker`` or ``auto``.
        basis: Stored vectors, 0 for none; by default as many as serve and fit.
        most_steps: Products with T after which levels that have not converged are given up. Those that have converged
            do not depend on it, and it is no part of a run's identity.
    """

    temperature: str | None = None
    k: str | None = None
    k_time: str | None = None
    eigenvalues: int = 2
    sector: str = "both"
    tolerance: float = TOLERANCE
    method: str = "auto"
    basis: int | None = None
    most_steps: int = MOST_STEPS

    def __post_init__(self) -> None:
        check_sector(self.sector)
        self.settings(0, "cpu")
        self.points(None)

    def points(self, model: Ising | None) -> Points:
        """Couplings of every point, for layers of a model; None where only the texts are to be checked."""
        return read_points(self.temperature, self.k, self.k_time, model)

    def settings(self, seed: int, device: str) -> Settings:
        """How levels are found."""
        return Settings(self.eigenvalues, self.tolerance, self.method, self.basis, seed, device, self.most_steps)
