"""spinsim: exact, reproducible Monte Carlo of Ising models and spin glasses.

import spinsim as ss

model = ss.EdwardsAnderson(ss.cubic(8), samples=16, seed=7)
result = ss.anneal(model, temperatures=np.geomspace(3, 0.1, 100), sweeps=10, replicas=64, seed=1)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from spinsim import jobs as _jobs  # noqa: F401  (registers the jobs)
from spinsim_ising import check as _check

_check()

if TYPE_CHECKING:
    from spinsim import gemm as gemm
    from spinsim import sampling as sampling
    from spinsim.analysis import onsager as onsager
    from spinsim.analysis.autocorrelation import integrated_time as integrated_time
    from spinsim.analysis.barrier import Barrier as Barrier
    from spinsim.analysis.density import DensityOfStates as DensityOfStates
    from spinsim.analysis.density import density_of_states as density_of_states
    from spinsim.analysis.scaling.collapse import collapse as collapse
    from spinsim.analysis.scaling.curves import sizes_along as sizes_along
    from spinsim.analysis.scaling.dynamic import dynamic_exponent as dynamic_exponent
    from spinsim.analysis.scaling.dynamic import local_tail as local_tail
    from spinsim.analysis.scaling.limits import infinite_size as infinite_size
    from spinsim.analysis.scaling.limits import power_of_size as power_of_size
    from spinsim.analysis.scaling.peaks import peaks as peaks
    from spinsim.analysis.scaling.quotients import quotients as quotients
    from spinsim.analysis.sizes import compare_sizes as compare_sizes
    from spinsim.analysis.space.changes import chaos as chaos
    from spinsim.analysis.space.changes import interface as interface
    from spinsim.analysis.space.correlations import space as space
    from spinsim.analysis.space.joint import joint as joint
    from spinsim.analysis.tables import table as table
    from spinsim.analysis.walks import Equilibrium as Equilibrium
    from spinsim.engine import Dynamics as Dynamics
    from spinsim.engine import create_engine as create_engine
    from spinsim.engine.moves.fortuin_kasteleyn.move import SeededClusters as SeededClusters
    from spinsim.engine.moves.fortuin_kasteleyn.move import SwendsenWang as SwendsenWang
    from spinsim.engine.moves.fortuin_kasteleyn.move import Wolff as Wolff
    from spinsim.engine.moves.houdayer import Houdayer as Houdayer
    from spinsim.engine.moves.move import Batch as Batch
    from spinsim.engine.moves.move import Move as Move
    from spinsim.errors import InputError as InputError
    from spinsim.jobs.anneal.result import AnnealResult as AnnealResult
    from spinsim.jobs.anneal.run import anneal as anneal
    from spinsim.jobs.calls import recount as recount
    from spinsim.jobs.calls import resume as resume
    from spinsim.jobs.evolve.result import EvolveResult as EvolveResult
    from spinsim.jobs.evolve.run import evolve as evolve
    from spinsim.jobs.multicanonical.run import MulticanonicalResult as MulticanonicalResult
    from spinsim.jobs.multicanonical.run import multicanonical as multicanonical
    from spinsim.jobs.plotting import plot as plot
    from spinsim.jobs.quantum.extrapolation import Extrapolation as Extrapolation
    from spinsim.jobs.quantum.extrapolation import extrapolate as extrapolate
    from spinsim.jobs.quantum.run import QuantumResult as QuantumResult
    from spinsim.jobs.quantum.run import quantum as quantum
    from spinsim.jobs.solve.result import SolveResult as SolveResult
    from spinsim.jobs.solve.run import solve as solve
    from spinsim.jobs.temper.run import TemperResult as TemperResult
    from spinsim.jobs.temper.run import temper as temper
    from spinsim.jobs.transfer.run import TransferResult as TransferResult
    from spinsim.jobs.transfer.run import transfer as transfer
    from spinsim.jobs.warming import warm_up as warm_up
    from spinsim.model.disorder import EdwardsAnderson as EdwardsAnderson
    from spinsim.model.disorder import antiperiodic as antiperiodic
    from spinsim.model.disorder import perturbed as perturbed
    from spinsim.model.graph import Graph as Graph
    from spinsim.model.ising import Ising as Ising
    from spinsim.model.ising import from_bqm as from_bqm
    from spinsim.model.ising import read_instance as read_instance
    from spinsim.model.lattice import Lattice as Lattice
    from spinsim.model.lattice import chain as chain
    from spinsim.model.lattice import cubic as cubic
    from spinsim.model.lattice import honeycomb as honeycomb
    from spinsim.model.lattice import hypercubic as hypercubic
    from spinsim.model.lattice import square as square
    from spinsim.model.lattice import triangular as triangular
    from spinsim.pooling import pool as pool
    from spinsim.result import load as load
    from spinsim.run.campaign import Campaign as Campaign
    from spinsim.run.campaign import campaign as campaign
    from spinsim.saved import Configurations as Configurations
    from spinsim.saved import configurations as configurations
    from spinsim.simulation import Simulation as Simulation

__version__ = "1.0.0"

# Names are imported when first used, so that `spinsim --help` need not wait for Numba.
_NAMES = {
    "analysis.autocorrelation": ["integrated_time"],
    "analysis.density": ["DensityOfStates", "density_of_states"],
    "analysis.onsager": ["onsager"],
    "analysis.scaling.collapse": ["collapse"],
    "analysis.scaling.curves": ["sizes_along"],
    "analysis.scaling.dynamic": ["dynamic_exponent", "local_tail"],
    "analysis.scaling.limits": ["infinite_size", "power_of_size"],
    "analysis.scaling.peaks": ["peaks"],
    "analysis.scaling.quotients": ["quotients"],
    "analysis.barrier": ["Barrier"],
    "analysis.sizes": ["compare_sizes"],
    "analysis.space.changes": ["chaos", "interface"],
    "analysis.space.correlations": ["space"],
    "analysis.space.joint": ["joint"],
    "analysis.tables": ["table"],
    "analysis.walks": ["Equilibrium"],
    "engine": ["Dynamics", "create_engine"],
    "engine.moves.fortuin_kasteleyn.move": ["SeededClusters", "SwendsenWang", "Wolff"],
    "engine.moves.houdayer": ["Houdayer"],
    "engine.moves.move": ["Batch", "Move"],
    "errors": ["InputError"],
    "gemm": ["gemm"],
    "jobs.anneal.run": ["anneal"],
    "jobs.anneal.result": ["AnnealResult"],
    "jobs.calls": ["recount", "resume"],
    "jobs.evolve.run": ["evolve"],
    "jobs.evolve.result": ["EvolveResult"],
    "jobs.multicanonical.run": ["MulticanonicalResult", "multicanonical"],
    "jobs.solve.result": ["SolveResult"],
    "jobs.solve.run": ["solve"],
    "jobs.plotting": ["plot"],
    "jobs.quantum.extrapolation": ["Extrapolation", "extrapolate"],
    "jobs.quantum.run": ["QuantumResult", "quantum"],
    "jobs.temper.run": ["TemperResult", "temper"],
    "jobs.transfer.run": ["TransferResult", "transfer"],
    "jobs.warming": ["warm_up"],
    "model.disorder": ["EdwardsAnderson", "antiperiodic", "perturbed"],
    "model.lattice": ["Lattice", "chain", "cubic", "honeycomb", "hypercubic", "square", "triangular"],
    "model.graph": ["Graph"],
    "model.ising": ["Ising", "from_bqm", "read_instance"],
    "pooling": ["pool"],
    "result": ["load"],
    "run.campaign": ["Campaign", "campaign"],
    "sampling": ["sampling"],
    "saved": ["Configurations", "configurations"],
    "simulation": ["Simulation"],
}
_HOME = {name: f"spinsim.{module}" for module, names in _NAMES.items() for name in names}

__all__ = ["__version__", *sorted(_HOME)]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'spinsim' has no attribute {name!r}")
    module = import_module(_HOME[name])
    return module if name in ("gemm", "onsager", "sampling") else getattr(module, name)


def __dir__() -> list[str]:
    return __all__
