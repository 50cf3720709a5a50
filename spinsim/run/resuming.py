"""Going on with a run from its file, to its end or further."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, Final

from spinsim import store
from spinsim.config import JOBS, Config, Temper, Transfer, tables_of
from spinsim.engine import resolve_device
from spinsim.errors import InputError
from spinsim.run.annealing import AnnealPlan
from spinsim.run.common import Plan, identify
from spinsim.run.tempering import TemperPlan, extend
from spinsim.run.transferring import TransferPlan

PLANS: Final[dict[str, type[Plan[Any]]]] = {"anneal": AnnealPlan, "temper": TemperPlan, "transfer": TransferPlan}


def plan_resume(path: Path, sweeps: int | None, run: dict[str, Any], most_steps: int | None = None) -> Plan[Any]:
    """The plan of the run that a file holds.

    Args:
        path: Of the file.
        sweeps: Measured sweeps that a tempering run shall have in all, if other than planned.
        run: How it goes on: values of ``RunConfig`` such as the device; those of None stay as they were.
        most_steps: Limit of a transfer-matrix run, if other than it was.

    Raises:
        InputError: for a file without a configuration and for sweeps that it cannot have.
    """
    attributes = store.read_attributes(path)
    config = _config_of(path, attributes)
    config = replace(config, run=replace(config.run, out=str(path), **{k: v for k, v in run.items() if v is not None}))
    with store.open_to_read(path) as file:
        model = store.read_model(file)
    if sweeps is not None:
        config = _with_sweeps(config, sweeps, path)
    if most_steps is not None:
        if not isinstance(config, Transfer):
            raise InputError(f"{path} holds a run of {config.job}, which has no limit of steps: leave --most-steps out")
        config = replace(config, transfer=replace(config.transfer, most_steps=most_steps))
    device = resolve_device(config.run.device)
    plan = PLANS[config.job](config, model, device, *identify(config, model))
    if isinstance(plan, TemperPlan) and plan.attributes["config_sha256"] != attributes["config_sha256"]:
        extend(plan)
    return plan


def _config_of(path: Path, attributes: dict[str, Any]) -> Config:
    """The configuration that a file holds."""
    tables = json.loads(attributes["config"])
    for job in JOBS:
        if attributes["job"] == job.job and tables.keys() == tables_of(job).keys():
            kinds = tables_of(job)
            known = {name: {f.name for f in fields(kind)} for name, kind in kinds.items()}
            tables.get("temper", {}).setdefault("correlations", False)  # of files from before there were any
            return job(**{n: k(**{x: v for x, v in tables[n].items() if x in known[n]}) for n, k in kinds.items()})
    raise InputError(f"{path} holds no configuration to go on with: only runs of the command line can be resumed")


def _with_sweeps(config: Config, sweeps: int, path: Path) -> Config:
    """The same with more measured sweeps."""
    if not isinstance(config, Temper):
        raise InputError(f"{path} holds a run of {config.job}, whose steps are fixed: leave --sweeps out")
    if sweeps < config.temper.sweeps:
        raise InputError(f"sweeps {sweeps} are fewer than the {config.temper.sweeps} of {path}: give more")
    return replace(config, temper=replace(config.temper, sweeps=sweeps))
