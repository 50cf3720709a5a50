"""Going on with a run from its file, to its end or further."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from spinsim import rng, store
from spinsim.engine import resolve_device
from spinsim.engine.given import GIVEN, name_of
from spinsim.engine.moves.move import Move
from spinsim.errors import InputError
from spinsim.model.identity import described_in
from spinsim.registry import record_of
from spinsim.run.common import Plan, identify
from spinsim.run.identity import as_longer, check_stored, config_of, dynamics_number
from spinsim.run.search import LENGTHS, has_met_target
from spinsim.settings.config import Config, tables_of
from spinsim.settings.setting import Setting


def plan_resume(
    path: Path,
    changes: Mapping[str, Any],
    run: Mapping[str, Any],
    moves: Sequence[tuple[Move, int]] = (),
    measure: Mapping[str, Callable[[Any], Any]] | None = None,
) -> Plan[Any]:
    """The plan of the run that a file holds.

    Args:
        path: Path of the file.
        changes: Other values of settings of its job, such as more ``sweeps``; those of None stay as they were.
        run: How it goes on: values of ``RunSettings`` such as the device; those of None stay as they were.
        moves: The user's own moves that Python gave the run.
        measure: Functions of the user's own that Python gave the run, by name.

    Raises:
        InputError: for a file without a configuration or of other dynamics, and for changes that it cannot have.
    """
    with store.open_to_read(path) as file:
        attributes, model, start = store.text_attributes(file), store.read_model(file), store.read_start(file)
        met = has_met_target(file)
    rng.check_dynamics(dynamics_number(attributes), str(path))
    model_sha256 = model.content_sha256()
    check_stored(path, attributes, model_sha256)
    model.origin = described_in(json.loads(attributes["config"]))
    config = config_of(path, attributes, model_sha256)
    _check_start(path, config, start, "finished" in attributes)
    changes, run = ({k: v for k, v in given.items() if v is not None} for given in (changes, run))
    job = record_of(config.job)
    changes, run = (_typed(given, tables_of(job.config)[table]) for given, table in ((changes, job.name), (run, "run")))
    if met:  # so that no longer search has anything left to do
        changes = {name: value for name, value in changes.items() if name not in LENGTHS}
    config = job.changed(replace(config, run=replace(config.run, out=str(path), **run)), changes, path)
    device = resolve_device(config.run.device, config.run.gpus)
    own = {"moves": moves, "measure": measure}
    plan: Plan[Any] = job.plan_type(config, model, device, *identify(config, model), start=start, **own)
    unchanged = plan.attributes["config_sha256"] == attributes["config_sha256"]
    return plan if unchanged or not set(job.lengths(config)) & set(changes) else as_longer(plan, attributes)


def _typed(given: Mapping[str, Any], settings: Mapping[str, Setting]) -> dict[str, Any]:
    """Values of a call as the settings' types, so that 310 and 310.0 seconds are one run; NumPy's numbers serve too.

    Raises:
        InputError: for a value of another type.
    """
    plain = {name: value.item() if isinstance(value, np.generic) else value for name, value in given.items()}
    return {name: settings[name].typed(value) if name in settings else value for name, value in plain.items()}


def _check_start(path: Path, config: Config, start: npt.NDArray[np.int8] | None, is_finished: bool) -> None:
    """Refuse a file whose initial configurations are not those of its run; a saved result has none.

    Raises:
        InputError: for it.
    """
    named = getattr(getattr(config, config.job), "start", None)
    lost = start is None and str(named).startswith(GIVEN) and not is_finished
    if lost or (start is not None and name_of(start) != named):
        raise InputError(f"{path} is damaged, its start is not the one of its configuration: take another copy of it")
