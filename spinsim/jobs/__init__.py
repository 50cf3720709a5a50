"""The jobs, a folder each, and the one list of them.

A folder holds all that its job does: settings, wiring of a run, result, what ``show`` prints, figures. Whoever needs
something that depends on the job asks ``job_of`` for it (``base.Job``), by the name that stands in the file or in the
configuration; nobody else knows which jobs there are. Layers below find jobs in ``registry``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from spinsim.registry import FOLDERS
from spinsim.registry import job_of as _find

if TYPE_CHECKING:
    from spinsim.jobs.base import Job

__all__ = ["FOLDERS", "all_jobs", "job_of"]

FOLDERS.update({name: f"spinsim.jobs.{name}" for name in ("anneal", "temper", "quantum", "transfer")})


def job_of(name: str) -> Job:
    """Returns the job of a name; KeyError for a name that is none of ``FOLDERS``."""
    job: Job = _find(name)
    return job


def all_jobs() -> list[Job]:
    return [job_of(name) for name in FOLDERS]
