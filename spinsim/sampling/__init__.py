"""Samplers: generators that yield measurements. The caller writes, plots or stops."""

from __future__ import annotations

from spinsim.sampling.annealing import AnnealFrame, annealing, temperature_schedule
from spinsim.sampling.measure import BestSlices, InField
from spinsim.sampling.placement import PlacementResult, Range, place
from spinsim.sampling.population import Population
from spinsim.sampling.tempering import TemperFrame, Times, tempering, tempering_in_beta

__all__ = [
    "AnnealFrame",
    "BestSlices",
    "InField",
    "PlacementResult",
    "Population",
    "Range",
    "TemperFrame",
    "Times",
    "annealing",
    "place",
    "temperature_schedule",
    "tempering",
    "tempering_in_beta",
]
