"""Dynamics out of equilibrium: replicas go through a protocol of temperatures and fields and are compared in time."""

from __future__ import annotations

from spinsim.jobs.base import FigureSet, Job


class EvolveJob(Job):
    """The job of protocols out of equilibrium."""

    name = "evolve"
    a_run = "an evolve run"
    reads_in = "result"
    recounts = "spinsim.jobs.steps:recounted"
    about = "Take replicas through a protocol out of equilibrium: quench, aging, memory, response to a field."
    figures = FigureSet(("correlation", "length", "protocol"))


JOB = EvolveJob()
