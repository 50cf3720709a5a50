"""Settings of ``spinsim multicanonical``."""

from __future__ import annotations

from dataclasses import dataclass

from spinsim.errors import InputError
from spinsim.settings.config import Config, table
from spinsim.settings.setting import Table, setting
from spinsim.settings.shared import ModelSettings, RunSettings


@dataclass(frozen=True)
class MulticanonicalSettings(Table):
    """Lengths of both stages."""

    sweeps: int = setting(20_000, "Sweeps of each walker with fixed weights", low=1, high=10**12)
    wang_landau: int = setting(20_000, "Sweeps of the Wang-Landau stage, which finds the weights", low=1, high=10**12)
    measure_every: int = setting(10, "Sweeps between two recorded energies", low=1, high=10**9)

    def check_together(self) -> None:
        if self.sweeps % self.measure_every or self.wang_landau % self.measure_every:
            raise InputError(f"give sweeps and wang_landau as multiples of measure_every = {self.measure_every}")


@dataclass(frozen=True)
class Multicanonical(Config):
    """One run of ``spinsim multicanonical``."""

    job = "multicanonical"

    model: ModelSettings = table(ModelSettings, size={"default": "16"})
    run: RunSettings = table(
        RunSettings,
        replicas={"default": 16, "help": "Walkers of each sample, from whose scatter errors come", "low": 2},
        rng_rounds={"unused": True},
        device={"help": "Device; this job runs on the CPU alone"},
        gpus={"unused": True},
        save_configurations={"unused": True},
    )
    multicanonical: MulticanonicalSettings = table(MulticanonicalSettings)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.run.device not in ("auto", "cpu"):
            raise InputError(f"multicanonical runs have no code for device {self.run.device}: give device cpu")
        if self.run.number_of_replicas < 2:
            raise InputError("errors come from the scatter of walkers: give 2 replicas or more")
