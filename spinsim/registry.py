"""The jobs by name: every job enters its own here, and who works with runs of any job looks it up.

This module imports no job. A job is imported when it is looked up (``spinsim.jobs.base.Job`` says what it has).
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

FOLDERS: Final[dict[str, str]] = {}  # the package of each job, which holds it as ``JOB``, by the job's name


def job_of(name: str) -> Any:
    """Returns the job of this name."""
    return import_module(FOLDERS[name]).JOB
