"""The jobs, one folder each, and the only list of them.

A folder holds everything about its job: settings, wiring of a run, result, reports for ``show``, figures. Code that
needs something job-dependent gets it from ``job_of`` (``base.Job``), by the name in the file or in the configuration.
No other code knows which jobs exist. Lower layers find jobs in ``registry``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from spinsim.registry import FOLDERS
from spinsim.registry import job_of as _find

if TYPE_CHECKING:
    from spinsim.jobs.base import Job

__all__ = ["FOLDERS", "all_jobs", "job_of"]

_NAMES = "anneal", "temper", "quantum", "transfer", "evolve", "multicanonical", "solve"
FOLDERS.update({name: f"spinsim.jobs.{name}" for name in _NAMES})


def job_of(name: str) -> Job:
    """Return the job of this name; KeyError for a name that is not in ``FOLDERS``."""
    job: Job = _find(name)
    return job


def all_jobs() -> list[Job]:
    return [job_of(name) for name in FOLDERS]
