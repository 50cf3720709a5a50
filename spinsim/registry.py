"""The jobs by name: every job registers itself here, and code that handles runs of any job looks it up.

This module imports no job. A job is imported at look-up (``spinsim.jobs.base.Job`` describes its interface).
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

FOLDERS: Final[dict[str, str]] = {}  # package of each job by the job's name; the package holds the job as ``JOB``


def job_of(name: str) -> Any:
    """Return the job of this name."""
    return import_module(FOLDERS[name]).JOB
