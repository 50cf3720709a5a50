"""The lowest states of a run in terms of the user's problem: values by label, energies with the constant."""

from __future__ import annotations

import json
import os
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spinsim.errors import InputError, MissingError
from spinsim.inputs.texts import Described, count
from spinsim.machine.files import check_output, write_outputs
from spinsim.model.exchange import import_dimod
from spinsim.model.ising import Ising
from spinsim.model.quadratic import BINARY, Labels, label_word, plain_or_shown
from spinsim.packing import States

KINDS: Final = (".txt", ".json")


@dataclass(frozen=True, repr=False)
class Solution(Described):
    """The lowest state that a run met, in terms of the user's problem.

    Attributes:
        labels: Labels of the sites, in their order.
        values: Values of the variables, ``int8`` (sites,): +1 and -1, or 0 and 1 for a problem in binary variables.
        energy: Energy of this state, with the constant of the problem and the original values, also if the model had
            to round them.
        cut: Cut of a MaxCut instance, else None.
        sample: Number of the disorder sample, from 0.
        replica_energies: Lowest energy that each replica met, with the constant, (replicas,). If values had to be
            rounded and ``replica_values`` is None, these are energies of the rounded values.
        replica_values: Lowest state of each replica, ``int8`` (replicas, sites); None if the run kept only the lowest
            state of each sample.
    """

    labels: Labels
    values: npt.NDArray[np.int8]
    energy: float
    cut: float | None
    sample: int
    replica_energies: npt.NDArray[np.float64]
    replica_values: npt.NDArray[np.int8] | None = None

    def __getitem__(self, label: Hashable) -> int:
        """Return the value of one variable by its label."""
        return self.by_label[label]

    @property
    def hits(self) -> int:
        """Number of replicas that met this energy; ``len(replica_energies)`` is the number of all replicas.

        Replicas of ``anneal`` are independent, except those of one population; replicas of ``temper`` are not.
        """
        return int((self.replica_energies == self.replica_energies.min()).sum())

    @property
    def by_label(self) -> dict[Hashable, int]:
        """Values of the variables by label."""
        return dict(zip(self.labels, self.values.tolist(), strict=True))

    @property
    def _summary(self) -> dict[str, str]:
        cut = {} if self.cut is None else {"cut": f"cut {self.cut:.15g}"}
        met = {"hits": f"met by {self.hits} of {count(len(self.replica_energies), 'replica')}"}
        return {"size": count(len(self.values), "site"), "energy": f"energy {self.energy:.15g}"} | cut | met


class Lowest(NamedTuple):
    """The lowest states that a run met."""

    energy: npt.NDArray[np.float64] | None  # lowest of each replica, (samples, replicas); None if no state is known
    spins: npt.NDArray[np.int8] | States | None  # lowest of each sample, (samples, sites); packed for large lattices
    of_each: npt.NDArray[np.int8] | None = None  # lowest of each replica, (samples, replicas, sites); None if not kept


def solutions(model: Ising, lowest: Lowest) -> list[Solution]:
    energy, spins, of_each = lowest
    if energy is None or spins is None or not np.isfinite(energy).all():
        raise MissingError(f"the run of {model.name} has no lowest state yet: complete it first")
    of_samples = []
    for sample, least in enumerate(energy.min(axis=1).tolist()):
        cut = None if model.maxcut_weight is None else float(model.cut(least))
        replicas = None if of_each is None else _values(model, of_each[sample])
        values, energies = _values(model, spins[sample]), energy[sample] + model.offset
        one = Solution(model.labels, values, least + model.offset, cut, sample, energies, replicas)
        of_samples.append(_as_given(one, model) if model.rounded and model.problem is not None else one)
    return of_samples


def _as_given(one: Solution, model: Ising) -> Solution:
    """Recompute the energies of a rounded solution from the original values; another replica may then be the lowest."""
    problem = model.quadratic
    values, least, energies = one.values, float(problem.energies(one.values[None])[0]), one.replica_energies
    if one.replica_values is not None:
        energies = problem.energies(one.replica_values)
        if energies.min() < least:
            values, least = one.replica_values[energies.argmin()], float(energies.min())
    cut = None if one.cut is None else float(model.cut(least - model.offset))
    return replace(one, values=values, energy=least, cut=cut, replica_energies=energies)


def _values(model: Ising, spins: npt.NDArray[np.int8]) -> npt.NDArray[np.int8]:
    spins = spins[..., : len(model.labels)]  # drop the idle site of a problem without variables
    return (1 + spins) // 2 if model.vartype == BINARY else spins


def as_text(solutions: Iterable[Solution], name: str) -> str:
    """Return solutions as lines ``label value``; each sample begins with a ``#`` line that has its energy and cut."""
    lines = []
    for one in solutions:
        cut = "" if one.cut is None else f", cut {one.cut!r}"
        lines.append(f"# {name}, sample {one.sample}: energy {one.energy!r}{cut}")
        values = zip(one.labels, one.values.tolist(), strict=True)
        lines += [f"{label_word(label)} {value}" for label, value in values]
    return "\n".join(lines)


def as_json(solutions: Iterable[Solution], model: Ising) -> dict[str, Any]:
    """Return solutions as JSON, values in the order of the labels; labels unknown to JSON are written as in Python."""
    each = []
    for one in solutions:
        replicas: list[dict[str, Any]] = [{"energy": energy} for energy in one.replica_energies.tolist()]
        for replica, values in zip(replicas, [] if one.replica_values is None else one.replica_values, strict=False):
            replica["values"] = values.tolist()
        cut = {} if one.cut is None else {"cut": one.cut}
        said = {"sample": one.sample, "energy": one.energy, **cut, "values": one.values.tolist()}
        each.append(said | {"replicas": replicas})
    labels = [plain_or_shown(label) for label in model.labels]
    return {"model": model.name, "vartype": model.vartype, "labels": labels, "solutions": each}


def as_sampleset(solutions: Iterable[Solution], model: Ising) -> Any:
    dimod, values, energies, of = import_dimod(), [], [], []
    for one in solutions:
        states = one.values[None] if one.replica_values is None else one.replica_values
        values.append(states)
        energies.append([one.energy] if one.replica_values is None else one.replica_energies)
        of += [one.sample] * len(states)
    more = {"disorder_sample": of} if model.samples > 1 else {}
    labelled = np.concatenate(values), list(model.labels)
    return dimod.SampleSet.from_samples(
        labelled, model.vartype, np.concatenate(energies), sort_labels=False, aggregate_samples=False, **more
    )


def check_solution(path: str | os.PathLike[str], overwrite: bool) -> None:
    suffix = Path(path).suffix.lower()
    if suffix not in KINDS:
        ending = f"ends in {suffix!r}" if suffix else "has no suffix"
        raise InputError(f"solution {os.fspath(path)!r} {ending}: give a file that ends in .txt or .json")
    check_output(Path(path), "solution", overwrite=True)
    if os.path.isfile(path) and not overwrite:
        raise InputError(f"{os.fspath(path)} exists already: choose another name for the solution, or remove it")


def write_solution(solutions: list[Solution], model: Ising, path: str | os.PathLike[str], overwrite: bool) -> None:
    as_it_is = Path(path).suffix.lower() == ".json"
    text = json.dumps(as_json(solutions, model)) if as_it_is else as_text(solutions, model.name)
    write_outputs({Path(path): ("solution", f"{text}\n".encode(errors="backslashreplace"))}, overwrite)
