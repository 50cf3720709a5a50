"""Runs that are made longer: with more sweeps, or searches with more time or more anneals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from spinsim import store
from spinsim.errors import InputError, worded
from spinsim.registry import record_of
from spinsim.run.identity import check_stored, extended_history
from spinsim.settings.config import Config
from spinsim.store.layout import Layout

if TYPE_CHECKING:
    from spinsim.run.common import Plan

    AnyPlan = TypeVar("AnyPlan", bound=Plan[Any])


def is_longer(config: Config, found: Config) -> bool:
    """Whether a configuration is another one of the same job made longer."""
    job = record_of(config.job)
    names, own, other = job.lengths(config), getattr(config, config.job), getattr(found, config.job)
    if not names or names != job.lengths(found) or any(getattr(own, name) < getattr(other, name) for name in names):
        return False
    lengthened = replace(found, **{job.name: replace(other, **{name: getattr(own, name) for name in names})})
    return lengthened.sha256("") == config.sha256("")  # who asks has compared the models


def as_longer(plan: AnyPlan, attributes: Mapping[str, str]) -> AnyPlan:
    """A plan that goes on with the shorter run in its file, whose root attributes these are."""
    own = plan.attributes
    history = extended_history(attributes, plan.config, own["command"], own["config_sha256"])
    return replace(plan, attributes=own | {"history": history}, extends=attributes["config_sha256"])


def make_room(plan: Plan[Any], layout: Layout, replicas: int, like: Mapping[str, npt.NDArray[Any]]) -> None:
    """Make room in the file of a plan for all that the longer run has.

    Args:
        plan: Of the longer run.
        layout: Of its file.
        replicas: Of each sample.
        like: Arrays of the names and shapes of its checkpoints.

    Raises:
        InputError: where the file cannot be extended, or is not the one that the plan was made for.
    """

    def check(found: Mapping[str, str], model_sha256: str) -> None:
        check_stored(plan.path, found, model_sha256)
        if found["config_sha256"] != plan.extends or model_sha256 != plan.attributes["model_sha256"]:
            raise InputError(
                f"{plan.path} was changed by another process meanwhile: "
                f"look at it with {worded('spinsim show', 'ss.load')} and begin again"
            )

    named = {name: plan.attributes[name] for name in ("config", "config_sha256", "history")}
    store.extend(plan.path, layout, plan.rows, check, named, {name: np.shape(array) for name, array in like.items()})
