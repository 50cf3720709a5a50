"""Rates on this machine, measured on states in equilibrium dynamics, never frozen ones."""

from __future__ import annotations

from spinsim.benchmark.metropolis import metropolis_rates
from spinsim.benchmark.scaling import scaling_rates
from spinsim.benchmark.temper import temper_rates

__all__ = ["metropolis_rates", "scaling_rates", "temper_rates"]
