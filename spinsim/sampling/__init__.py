"""Samplers: generators that yield measurements. The caller writes, plots or stops."""

from __future__ import annotations

from spinsim.sampling.annealing import AnnealFrame as AnnealFrame
from spinsim.sampling.annealing import annealing as annealing
from spinsim.sampling.annealing import temperature_schedule as temperature_schedule
from spinsim.sampling.measure import BestSlices as BestSlices
from spinsim.sampling.measure import InField as InField
from spinsim.sampling.placement import PlacementResult as PlacementResult
from spinsim.sampling.placement import Range as Range
from spinsim.sampling.placement import place as place
from spinsim.sampling.population import Population as Population
from spinsim.sampling.tempering import TemperFrame as TemperFrame
from spinsim.sampling.tempering import Times as Times
from spinsim.sampling.tempering import tempering as tempering
from spinsim.sampling.tempering import tempering_in_beta as tempering_in_beta
