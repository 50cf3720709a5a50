"""The jobs, a folder each, and the one list of them.

A folder holds all that its job does: settings, wiring of a run, result, contents of its file, what ``show`` prints, its
figures. Whoever needs something that depends on the job asks its record (``base.Job``), by the name that stands in the
file or in the configuration; nobody else knows which jobs there are. Layers below look records up in ``registry``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from spinsim.registry import FOLDERS, record_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from spinsim.jobs.base import Job

__all__ = ["FOLDERS", "all_jobs", "job_of"]

FOLDERS.update({name: f"spinsim.jobs.{name}" for name in ("anneal", "temper", "quantum", "transfer")})


job_of: Callable[[str], Job] = record_of
"""Returns the record of the job of a name; KeyError for a name that is none of ``FOLDERS``."""


def all_jobs() -> list[Job]:
    return [job_of(name) for name in FOLDERS]
