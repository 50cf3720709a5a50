"""Result of an annealing run, and the contents of its file."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from dataclasses import field as default
from functools import partial
from typing import Any, ClassVar, Final, cast

import numpy as np
import numpy.typing as npt

from spinsim.analysis.runs import Annealed, Array
from spinsim.analysis.tables import lowest_in_words
from spinsim.analysis.thermodynamics import Families, Populations
from spinsim.errors import MissingError
from spinsim.inputs.arguments import public
from spinsim.inputs.numbers import as_floats
from spinsim.inputs.texts import count
from spinsim.model.ising import Ising
from spinsim.model.targets import reached
from spinsim.observables.quantities import STAGGERED
from spinsim.packing import Bits, States, unpacked_spins
from spinsim.record import Record
from spinsim.result import when_asked
from spinsim.run.own_observables import REPLICAS, measured_in
from spinsim.run.search import Outcome
from spinsim.saved import Configurations, configurations_in
from spinsim.solution import Lowest
from spinsim.store.contents import BITS, BYTE, ENERGY, MEASUREMENTS, STEP, TEMPERATURE, Series, group_of
from spinsim.store.models import as_shown, best_in

ANNEALS: Final = "anneals"  # the group of the anneals of a search
OF_ANNEALS: Final = (
    Series("energy", ("anneal", "sample", "replica"), np.float64, "lowest energy met in the anneal", ENERGY),
    Series("sweeps", ("anneal",), np.int64, "sweeps of the anneal, 0 of those that were not begun"),
    Series("planned", ("anneal",), np.int64, "sweeps of the whole anneal"),
    Series("seconds", ("anneal",), np.float64, "time of the anneal", "s"),
)
"""Series with one row for each anneal."""


@dataclass(frozen=True, repr=False)
class Anneals(Outcome):
    """The anneals of a search. The first anneal equals the run of the same settings without a search.

    ``done`` counts all anneals; if there are very many, these arrays hold only the first ones.

    Attributes:
        energy: Lowest energy of the Ising model that each replica met in each anneal, (anneals, samples, replicas).
        sweeps: Sweeps of each anneal, ``int64`` (anneals,): fewer than ``planned`` if the search ended within it.
        planned: Planned sweeps of each anneal, ``int64`` (anneals,).
        seconds: Duration of each anneal, not counting the compiling of kernels, (anneals,).
    """

    UNIT: ClassVar[str] = "anneal"
    GROUP: ClassVar[str] = ANNEALS
    OWN: ClassVar[tuple[Series, ...]] = OF_ANNEALS

    energy: Array
    sweeps: npt.NDArray[np.int64]
    planned: npt.NDArray[np.int64]
    seconds: Array

    @property
    def numbers(self) -> dict[str, Any]:
        return {"anneals": self.done, **super().numbers}

    @property
    def line(self) -> str:
        return f"Anneals        {self.done} in {self.elapsed:.3g} s"

    @property
    def whole(self) -> npt.NDArray[np.bool_]:
        """Mask of the anneals that reached their end, (anneals,)."""
        return np.asarray(self.sweeps == self.planned)

    def hits(self, model: Ising, target: npt.ArrayLike | None = None) -> npt.NDArray[np.int64]:
        """Number of replicas that met a target in each anneal, (anneals, samples); by default the search's target."""
        given = self.target if target is None else as_floats(target, "target")
        wanted = np.atleast_1d(np.asarray(given, np.float64))
        hits = [reached(model, energy, wanted).sum(axis=1) for energy in self.energy]
        return np.asarray(hits, np.int64).reshape(len(self.energy), -1)


STATES: Final = f"{MEASUREMENTS}/best_states"  # path of the lowest states of all replicas


def recorded(shape: tuple[int, ...], anneals: Sequence[tuple[Any, ...]]) -> dict[str, npt.NDArray[Any]]:
    """Arrays with a row for each anneal, by the names of series; ``shape`` is (samples, replicas)."""
    columns = zip(*anneals, strict=True) if anneals else [()] * len(OF_ANNEALS)
    each = zip(OF_ANNEALS, columns, strict=True)
    return {s.name: np.array(c, s.dtype).reshape(len(anneals), *shape[: len(s.axes) - 1]) for s, c in each}


_OF_REPLICAS: Final = STEP, *REPLICAS
_OF_POPULATIONS: Final = STEP, "sample", "population"
_SERIES: Final = (
    Series("temperature", (STEP,), np.float64, "temperature", TEMPERATURE),
    Series("field", (STEP,), np.float64, "uniform field, added to the model's own", ENERGY),
    Series("gamma", (STEP,), np.float64, "transverse field", ENERGY),
    Series("energy", _OF_REPLICAS, np.float64, "total energy", ENERGY),
    Series("mean_slice_energy", _OF_REPLICAS, np.float64, "total energy, mean over the slices of each replica", ENERGY),
    Series("magnetization", _OF_REPLICAS, np.int64, "sum of spins"),
    Series("staggered_magnetization", _OF_REPLICAS, np.int64, STAGGERED),
    Series("family", _OF_REPLICAS, np.int32, "replica at infinite temperature from which each descends"),
    Series("population_free_energy", _OF_POPULATIONS, np.float64, "estimate of the free energy -T ln Z", ENERGY),
    Series("parents", _OF_POPULATIONS, np.int64, "replicas that were copied when the temperature changed to this one"),
)
PART_OF: Final = {name: name for name in ("field", "gamma", "staggered_magnetization", "family")} | {
    "mean_slice_energy": "gamma",
    "population_free_energy": "family",
    "parents": "family",
}
"""Optional series, each with the part of a run that it belongs to."""


def anneal_contents(
    samples: int, replicas: int, parts: Collection[str] = (), states_of: int = 0, populations: int = 0
) -> Record:
    """Return an empty record, with a row to come for each temperature, or each transverse field, of the schedule."""
    series = [one for one in _SERIES if one.name not in PART_OF or PART_OF[one.name] in parts]
    if "gamma" in parts:
        best = "total energy of the best slice"
        series = [one._replace(long_name=best) if one.name == "energy" else one for one in series]
    lengths = {"sample": samples, "replica": replicas, "population": populations}
    if states_of:
        lengths[BYTE] = -(-states_of // 8)
        of_each = f"states of lowest energy met, of each replica, {BITS}"
        series.append(Series("best_states", (*REPLICAS, BYTE), np.uint8, of_each))
    return Record({}, {}, {MEASUREMENTS: group_of(series, lengths)})


@public
@dataclass(frozen=True, repr=False)
class AnnealResult(Annealed):
    """Measurements of an annealing run.

    Attributes:
        model: The simulated model.
        temperature: In the unit of the couplings, ``float64`` (steps,).
        energy: Total energies after each step, in the unit of the couplings, ``float64`` (steps, samples, replicas).
        magnetization: Sums of spins after each step, ``int64`` (steps, samples, replicas).
        best_energy: Lowest energy of the Ising model that was met, in the unit of the couplings, ``float64`` (samples,
            replicas). It excludes ``model.offset``; ``best.energy`` includes it.
        best_spins: State of lowest energy met, ``int8`` (samples, sites). For large lattices a ``packing.States``,
            which unpacks states when they are read.
        field: Uniform field of each step, (steps,), in the unit of the couplings, added to the model's own field. Its
            energy is part of ``energy`` but not of ``best_energy``. None if no field changed.
        staggered_magnetization: Sum of spins on the sublattice of site 0 minus the sum on the other, ``int64`` of the
            shape of ``magnetization``. None if the lattice is not bipartite, and in older files.
        gamma: Transverse field of each step of a quantum anneal, (steps,), in the unit of the couplings; else None. In
            such a run, energies, sums of spins, lowest states and configurations are those of the best slice of each
            replica.
        mean_slice_energy: Mean energy over the slices of each replica of a quantum anneal, of the shape and in the
            unit of ``energy``; None in other runs.
        family: Ancestor at infinite temperature of each replica of a population run, as a replica number,
            ``int32``, of the shape of ``energy``; None in other runs.
        population_free_energy: Estimate of the total free energy -T ln Z by each population, in the unit of the
            couplings, (steps, samples, populations); None in other runs.
        parents: Number of replicas that were copied when the temperature changed to that of the step, ``int64``
            (steps, samples, populations); None in other runs.
        best_states: State of lowest energy of each replica, one bit per spin (``spinsim.packing``), (samples,
            replicas, bytes); None without ``best_states``. ``solutions`` has them as values.
        configurations: Spins saved after steps; None without ``save_configurations``.
        anneals: All anneals of a search, also as ``search``; the series above belong to the first one.
            None for a single anneal.
        record: The whole run as named arrays, as stored in its file.
        measured: User-defined observables by name, each (steps, samples, replicas) or with more axes.
        job: Name of the job, the command that makes such runs.
        series_group: Group of ``record`` that has the series.
    """

    job = "anneal"

    model: Ising
    temperature: npt.NDArray[np.float64]
    energy: npt.NDArray[np.float64]
    magnetization: npt.NDArray[np.int64]
    best_energy: npt.NDArray[np.float64]
    best_spins: npt.NDArray[np.int8] | States = when_asked()
    field: npt.NDArray[np.float64] | None = None
    staggered_magnetization: npt.NDArray[np.int64] | None = None
    gamma: npt.NDArray[np.float64] | None = None
    mean_slice_energy: npt.NDArray[np.float64] | None = None
    family: npt.NDArray[np.int32] | None = None
    population_free_energy: npt.NDArray[np.float64] | None = None
    parents: npt.NDArray[np.int64] | None = None
    best_states: Bits | None = None
    configurations: Configurations | None = None
    anneals: Anneals | None = None
    record: Record = default(default_factory=Record)
    measured: dict[str, npt.NDArray[Any]] = default(default_factory=dict)

    @property
    def search(self) -> Anneals | None:
        """Time, work and targets of a search, with the attributes of ``TemperResult.search``; None for other runs."""
        return self.anneals

    @property
    def lowest_energy(self) -> npt.NDArray[np.float64]:
        """``best_energy``; for a killed run from its finished steps, (samples, replicas), empty if there are none."""
        if np.isfinite(self.best_energy).all():
            return self.best_energy
        return self.energy.min(axis=0) if len(self.energy) else np.empty((0, 0))

    @property
    def cut(self) -> float:
        """Best cut of a MaxCut instance, in the unit of its weights.

        Raises:
            InputError: if the model is not a MaxCut instance.
        """
        return float(self.model.cut(self.lowest_energy.min()))

    @property
    def free_energy(self) -> npt.NDArray[np.float64]:
        """Free energy -T ln Z from all populations together, in the unit of the couplings, (steps, samples).

        Raises:
            InputError: if no population was resampled.
        """
        return self.populations.free_energy()[0]

    @property
    def free_energy_error(self) -> npt.NDArray[np.float64]:
        """Standard error of ``free_energy``, (steps, samples); NaN if few families or populations are left."""
        return self.populations.free_energy()[1]

    @property
    def families(self) -> Families:
        """Number, mean square size and entropy of the families of each population, (steps, samples, populations).

        Raises:
            InputError: if no population was resampled.
        """
        return self.populations.families()

    @property
    def populations(self) -> Populations:
        """Averages, free energies and entropies of a population run, with errors.

        Raises:
            InputError: if no population was resampled.
        """
        if self.family is None:
            raise MissingError("the run has resampled no population: anneal with populations")
        return Populations(self)

    @property
    def _lowest(self) -> Lowest:
        states = None if self.best_states is None else unpacked_spins(self.best_states, self.model.sites)
        return Lowest(self.best_energy, self.best_spins, states)

    @property
    def _run_facts(self) -> dict[str, str]:
        name, series = ("T", self.temperature) if self.gamma is None else ("Gamma", self.gamma)
        whose = " of the first anneal" if self.anneals is not None else ""
        ends = f"{whose} from {name} = {series[0]:g} to {series[-1]:g}" if len(series) else ""
        settings = self._settings
        each = f" of {count(settings['sweeps'], 'sweep')}" if settings.get("sweeps") and self.anneals is None else ""
        slices = settings.get("slices") if self.gamma is not None else None
        groups = f" in {count(self.parents.shape[2], 'population')}" if self.parents is not None else ""
        return {
            "replicas": count(self.energy.shape[2], "replica") + groups,
            **({"slices": count(slices, "slice")} if slices else {}),
            **({"anneals": count(self.anneals.done, "anneal")} if self.anneals is not None else {}),
            "steps": count(len(self.temperature), "step") + each + ends,
        }

    @property
    def _findings(self) -> dict[str, str]:
        if not np.isfinite(self.best_energy).all():
            return {}
        met = "" if self.anneals is None else self.anneals.verdict(self.model, self.best_energy.min(axis=1))
        return ({"target": met} if met else {}) | {"best": lowest_in_words(self.model, self.best_energy)}


def read(record: Record, model: Ising) -> AnnealResult:
    """Return the result of a record."""
    group = record.group(MEASUREMENTS)
    best_energy, best_spins = best_in(record, model.sites)
    return AnnealResult(
        model=model,
        record=record,
        best_energy=best_energy,
        best_spins=cast("Any", partial(as_shown, best_spins, model)),  # unpacked on access
        **{one.name: np.asarray(group[one.name]) for one in _SERIES if one.name in group},
        best_states=record.get(STATES),
        configurations=configurations_in(record),
        anneals=Anneals.read(record),
        measured=measured_in(record),
    )
