"""The jobs, a folder each, and the one list of them.

A folder holds all that its job does: settings, wiring of a run, result, layout of its file, what ``show`` prints, its
figures. Whoever needs something that depends on the job asks its record (``base.Job``), by the name that stands in the
file or in the configuration; nobody else knows which jobs there are. This list may be asked from everywhere, as it
imports nothing until then.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from spinsim.jobs.base import Job

FOLDERS: Final[dict[str, str]] = {
    "anneal": "spinsim.jobs.anneal",
    "temper": "spinsim.jobs.temper",
    "quantum": "spinsim.jobs.quantum",
    "transfer": "spinsim.jobs.transfer",
}
"""The package of each job, which holds its record ``JOB``, by the job's name."""


def job_of(name: str) -> Job:
    """Returns the record of the job of this name.

    Raises:
        KeyError: for a name that is none of ``FOLDERS``.
    """
    job: Job = import_module(FOLDERS[name]).JOB
    return job


def all_jobs() -> list[Job]:
    """Returns the records of all jobs, in the order of ``FOLDERS``."""
    return [job_of(name) for name in FOLDERS]
