"""What every engine does, and which packing a model gets."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from spinsim import rng
from spinsim.acceptance import ZERO_ACCEPTANCE, check_zero_acceptance
from spinsim.engine.correlations import Correlations
from spinsim.engine.exchange import Exchange
from spinsim.engine.tables import MAX_DEGREE
from spinsim.errors import InputError
from spinsim.model.ising import Ising
from spinsim.packing import LANES, Packing, block_count, rows_fill_groups

Start = Literal["random", "up"]
STARTS: Final[tuple[Start, ...]] = ("random", "up")


@dataclass(frozen=True)
class Dynamics:
    """How replicas move; part of a run's configuration.

    Attributes:
        seed: Key of every random number of the run, 64 bits.
        start: Initial spins, ``random`` or all ``up``.
        zero_acceptance: Acceptance probability of flips that cost nothing.
        rng_rounds: Philox rounds, 10 or 7.
    """

    seed: int = 1
    start: Start = "random"
    zero_acceptance: float = ZERO_ACCEPTANCE
    rng_rounds: int = rng.ROUNDS

    def __post_init__(self) -> None:
        object.__setattr__(self, "seed", rng.check_seed(self.seed))
        check_zero_acceptance(self.zero_acceptance)
        if self.start not in STARTS:
            raise InputError(f"start {self.start!r} is unknown: choose random or up")
        if self.rng_rounds not in (rng.FEWER_ROUNDS, rng.ROUNDS):
            raise InputError(f"rng rounds {self.rng_rounds} are not supported: choose 10 or 7")


class Counts(NamedTuple):
    """Exact integers read off packed spins, each of shape (samples, replicas).

    Attributes:
        energy: Total energy in quanta, ``int64``.
        magnetization: Sum of spins, ``int64``.
    """

    energy: npt.NDArray[np.int64]
    magnetization: npt.NDArray[np.int64]


Spins = Callable[[int, int], npt.NDArray[np.int8]]
"""The configuration (sites,) of a sample and replica."""


class Measurement(NamedTuple):
    """What is measured of every copy at every temperature of a ladder.

    Attributes:
        energy: Totals in the unit of the couplings, ``float64`` (samples, copies, temperatures).
        magnetization: Sums of spins, ``int64``, likewise.
        holder: Replica at each temperature, ``int32``, likewise.
        exchange: State of the exchange.
        correlations: Of copies at equal temperatures; where overlaps alone were asked for, link overlaps have no pairs
            and modes no axes.
        spins: Configurations at this moment, whatever comes later.
    """

    energy: npt.NDArray[np.float64]
    magnetization: npt.NDArray[np.int64]
    holder: npt.NDArray[np.int32]
    exchange: Exchange
    correlations: Correlations
    spins: Spins


class Engine(Protocol):
    """Replicas of every sample of one model, in packed form on one device.

    Attributes:
        model: What is simulated.
        replicas: Configurations of each sample.
        packing: How spins are held.
        device_name: Where it runs.
        colours: Half-sweeps in a sweep.
        half_sweep: Half-sweeps done.
        at_once: Measurements that are best made by one call of ``temper_measured``, of the present ladder.
    """

    model: Ising
    replicas: int
    packing: Packing
    device_name: str
    colours: int
    half_sweep: int
    at_once: int

    @property
    def tasks(self) -> int:
        """Parts that run side by side."""

    def set_beta(self, beta: npt.ArrayLike) -> None:
        """Set the inverse temperature: a number or one for each replica (replicas,)."""

    def sweep(self, count: int) -> None:
        """Attempt every spin of every replica ``count`` times."""

    def set_ladder(self, beta: npt.ArrayLike, copies: int) -> None:
        """Give each copy of each sample a ladder of inverse temperatures, as engine/exchange.py says."""

    def temper(self, rounds: int, sweeps: int) -> None:
        """``rounds`` times: sweep ``sweeps`` times, then try to exchange neighbouring temperatures."""

    def begin_exchange(self) -> Callable[[], Exchange]:
        """Ask for the present state of the exchange; the function returned waits for it."""

    def snapshot(self) -> dict[str, npt.NDArray[np.generic]]:
        """All that a later ``restore`` needs, of fixed shapes; the same arrays on every device."""

    def restore(self, saved: Mapping[str, npt.NDArray[np.generic]]) -> None:
        """Go back to a ``snapshot`` of an engine made in the same way; with its ladder, where one had been set."""

    def prepare_measurements(self, kept: int, full: bool = True) -> None:
        """Refuse measurements of the present ladder that have no room, where ``kept`` of them are there at a time."""

    def begin_measurement(self, full: bool = True) -> Callable[[], Measurement]:
        """Ask for what is measured of every copy at every temperature; the function returned waits for it.

        Sweeps asked for meanwhile neither disturb it nor wait for it. Without ``full`` overlaps are the only
        correlations.
        """

    def temper_measured(
        self, count: int, rounds: int, sweeps: int, full: bool = True
    ) -> list[Callable[[], Measurement]]:
        """``count`` times: ``temper``, then ``begin_measurement``."""

    def timed_sweep(self, count: int) -> float:
        """Sweep and return the seconds it took by the device's own clock."""

    def wait(self) -> None:
        """Return when all sweeps asked for are done."""

    def begin_counts(self) -> Callable[[], Counts]:
        """Ask for the present energies and magnetisations; the function returned waits for them.

        Sweeps asked for meanwhile neither disturb them nor wait for them.
        """

    def counts(self) -> Counts:
        """Energy and magnetisation of every replica, ``begin_counts()()``."""

    def spins(self, sample: int, replica: int) -> npt.NDArray[np.int8]:
        """One configuration, shape (sites,), +1 or -1."""


def is_site_packed(model: Ising) -> bool:
    """Whether a model is site-packed: one magnitude, a uniform field and a lattice whose ``rows_fill_groups``."""
    lattice = model.lattice
    if lattice is None or not rows_fill_groups(lattice.shape, lattice.periodic):
        return False
    return model.magnitude is not None and model.uniform_field is not None


def choose_packing(model: Ising) -> Packing:
    """Packed for couplings of one magnitude and a uniform field, else unpacked.

    Site-packed where the lattice allows it, whatever the number of replicas; else replica-packed, up to degree 31.
    """
    if is_site_packed(model):
        return Packing.SITE
    if model.magnitude is None or model.uniform_field is None or int(model.graph.degrees().max()) > MAX_DEGREE:
        return Packing.UNPACKED
    return Packing.REPLICA


def check_run(model: Ising, replicas: int, sweeps: int, colours: int) -> None:
    """Refuse replica numbers and lengths that the random counters cannot serve."""
    if not isinstance(replicas, int | np.integer) or replicas < 1:
        raise InputError(f"{replicas} replicas cannot be simulated: give a whole number, at least 1")
    samples, half_sweeps = model.samples, sweeps * colours
    if is_site_packed(model):
        groups, name = model.sites // LANES, "replicas of a site-packed lattice"
        rng.check_budget(groups=groups, samples=samples, blocks=replicas, half_sweeps=half_sweeps, block_name=name)
    else:
        blocks = block_count(replicas)
        rng.check_budget(groups=model.sites, samples=samples, blocks=blocks, half_sweeps=half_sweeps)
