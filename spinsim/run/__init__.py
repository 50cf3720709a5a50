"""Common ground of the runs of all jobs: plans, identities of files, when to save, going on from a file."""

from __future__ import annotations

from spinsim.run.common import Plan, Watch, plan_resume

__all__ = ["Plan", "Watch", "plan_resume"]
