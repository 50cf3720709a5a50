"""Settings of ``spinsim multicanonical``."""

from __future__ import annotations

from dataclasses import dataclass

from spinsim.errors import InputError
from spinsim.settings.config import Config, table
from spinsim.settings.setting import Table, setting
from spinsim.settings.shared import ModelSettings, RunSettings

ALL = "all"


@dataclass(frozen=True)
class MulticanonicalSettings(Table):
    """Lengths of both stages, and the energies that are visited evenly."""

    sweeps: int = setting(20_000, "Sweeps of each walker with fixed weights", low=1, high=10**12)
    wang_landau: int = setting(20_000, "Sweeps of the Wang-Landau stage, which finds the weights", low=1, high=10**12)
    measure_every: int = setting(10, "Sweeps between two recorded energies", low=1, high=10**9)
    energies: str = setting(
        "negative",
        "Energies that are visited evenly: negative ones, which matter at positive temperatures (all states of higher "
        "energy get the same weight), or all",
        choices=("negative", ALL),
    )

    def check_together(self) -> None:
        if self.sweeps % self.measure_every:
            raise InputError(
                f"sweeps {self.sweeps} are no multiple of measure_every {self.measure_every}: change one of them"
            )


@dataclass(frozen=True)
class Multicanonical(Config):
    """One run of ``spinsim multicanonical``."""

    job = "multicanonical"

    model: ModelSettings = table(ModelSettings, size={"default": "16"})
    run: RunSettings = table(
        RunSettings,
        replicas={"default": 16, "help": "Walkers of each sample; errors come from their scatter", "low": 2},
        device={"help": "Device: this job runs on the CPU alone"},
        gpus={"unused": True},
        save_configurations={"unused": True},
    )
    multicanonical: MulticanonicalSettings = table(MulticanonicalSettings)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.run.device not in ("auto", "cpu"):
            raise InputError(f"device {self.run.device} does not run multicanonical sampling: choose cpu")
        if self.run.number_of_replicas < 2:
            raise InputError("1 walker has no scatter, from which errors come: give 2 replicas or more")
