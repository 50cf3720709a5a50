"""Settings of ``spinsim transfer``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from spinsim.errors import InputError
from spinsim.settings.config import Config, table
from spinsim.settings.setting import GRID, Table, setting
from spinsim.settings.shared import ModelSettings, RunSettings

if TYPE_CHECKING:
    from spinsim.model.ising import Ising
    from spinsim.transfer_matrix.layer import Points
    from spinsim.transfer_matrix.spectrum import Settings

_SQUARE_WIDTH: Final = "4"
_LAYERS: Final = ("chain", "square")
_FORMS: Final = "such as 2.3; 2.1,2.2,2.3; 2.1:2.3:3, evenly spaced; 2.1:2.3:3g, geometric"


@dataclass(frozen=True)
class TransferSettings(Table):
    """Couplings and levels of a transfer matrix; by default at the transition of the ferromagnet."""

    temperature: str | None = setting(
        None, f"Temperatures, {_FORMS}", shown="transition of the ferromagnet", unit="coupling unit / k_B", numbers=GRID
    )
    k: str | None = setting(
        None, f"Inverse temperatures 1 / T instead, {_FORMS}", shown="", unit="k_B / coupling unit", numbers=GRID
    )
    k_time: str | None = setting(
        None, "Couplings between layers, one or one for each k, without unit", shown="|J| / T", numbers=GRID
    )
    eigenvalues: int = setting(2, "Levels of each sector", low=1, high=1000)
    sector: str = setting(
        "both", "Sectors under the flip of all spins (none in a field)", choices=("even", "odd", "both")
    )
    tolerance: float = setting(1e-10, "Relative residual of a level", low=1e-14, high=0.1)
    method: str = setting("auto", "How T is applied", choices=("butterfly", "kronecker", "auto"))
    basis: int | None = setting(None, "Stored vectors, 0 for none", shown="as many as help and fit", low=0)
    most_steps: int = setting(5000, "Products with T after which levels are given up", low=1, physics=False)

    def check_together(self) -> None:
        self.settings(0, "cpu")
        self.points(None)

    def points(self, model: Ising | None) -> Points:
        """Couplings of every point, for layers of a model; with None, only the texts are checked."""
        from spinsim.transfer_matrix.layer import read_points

        return read_points(self.temperature, self.k, self.k_time, model)

    def settings(self, seed: int, device: str) -> Settings:
        from spinsim.transfer_matrix.spectrum import Settings

        kind = device.partition(":")[0]
        return Settings(self.eigenvalues, self.tolerance, self.method, self.basis, seed, kind, self.most_steps)


@dataclass(frozen=True)
class Transfer(Config):
    """One run of ``spinsim transfer``; the model is a layer."""

    job = "transfer"

    model: ModelSettings = table(
        ModelSettings,
        instance={"is_argument": False, "flag": None},
        lattice={"default": "chain", "help": "Lattice of a layer", "flag": "--layer", "choices": _LAYERS},
        size={
            "default": "12",
            "help": "Side lengths of a layer, such as 12 or 4x5",
            "flag": "--width",
            "shown": f"12, of a square layer {_SQUARE_WIDTH}",
        },
    )
    run: RunSettings = table(
        RunSettings,
        replicas={"default": 1, "unused": True},
        seed={"help": "Seed of the start vectors, 64 bits"},
        rng_rounds={"unused": True},
        gpus={"help": "GPUs that share each vector: all, their number, or a list such as 0,2"},
        threads={"help": "CPU threads"},
        save_configurations={"unused": True},
    )
    transfer: TransferSettings = table(TransferSettings)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.model.instance is None and self.model.lattice not in _LAYERS:
            raise InputError(f"layer {self.model.lattice!r} is none that is solved: choose {' or '.join(_LAYERS)}")

    @classmethod
    def complete(cls, tables: dict[str, dict[str, Any]]) -> None:
        """Give a square layer its own default width."""
        if tables["model"].get("lattice") == "square":
            tables["model"].setdefault("size", _SQUARE_WIDTH)
