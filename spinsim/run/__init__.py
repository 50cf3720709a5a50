"""Wiring of a run: configuration -> model -> engine -> sampler -> file."""

from __future__ import annotations

from spinsim.run.annealing import AnnealPlan, anneal_to_file, plan_anneal
from spinsim.run.calls import anneal, resume, temper, transfer
from spinsim.run.common import Watch
from spinsim.run.resuming import plan_resume
from spinsim.run.tempering import TemperPlan, plan_temper, temper_to_file
from spinsim.run.transferring import TransferPlan, plan_transfer, transfer_to_file

__all__ = [
    "AnnealPlan",
    "TemperPlan",
    "TransferPlan",
    "Watch",
    "anneal",
    "anneal_to_file",
    "plan_anneal",
    "plan_resume",
    "plan_temper",
    "plan_transfer",
    "resume",
    "temper",
    "temper_to_file",
    "transfer",
    "transfer_to_file",
]
