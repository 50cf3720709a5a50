"""Kinds of numbers: NumPy integers, 0-d arrays and whole floats serve as whole numbers in every public call."""

from __future__ import annotations

import inspect
import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from fractions import Fraction
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import dimod
import numpy as np
import pytest

import spinsim as ss
from spinsim import sampling
from spinsim.analysis import onsager
from spinsim.analysis.time_to_solution import success_probability, time_to_solution
from spinsim.dimod import SpinsimSampler
from spinsim.engine import Dynamics, Engine
from spinsim.jobs.anneal.report import success_of
from spinsim.record import Record
from spinsim.result import Result
from spinsim.sampling import Range, Times
from spinsim.sampling.population import Population

MODEL = ss.Ising(ss.square(4))
GLASS = ss.EdwardsAnderson(ss.square(4), samples=2, seed=3)
BQM = dimod.BQM({"a": 1.0}, {("a", "b"): 1.0}, 0.0, "SPIN")
CPU = {"device": "cpu", "threads": 1}
SHORT = {"steps": 2, "sweeps": 2, "replicas": 2, **CPU}
NAMES = [name for name in ss.__all__ if callable(getattr(ss, name)) and not name.endswith(("Result", "Error"))]
LADDER = {"model": GLASS, "sweeps": 20, "thermalize": 4, "measure_every": 2, "replicas": 2, **CPU}
ONSAGER = {"temperature": 1.5, "coupling": 0.5}
ANNEAL = {"model": GLASS, "steps": 3, "sweeps": 2, "replicas": 4, **CPU}


class Case(NamedTuple):
    """A public call, and valid values of its numbers."""

    call: Callable[..., Any]
    given: Mapping[str, Any] = {}  # arguments of every call
    whole: Mapping[str, int] = {}  # valid whole numbers by argument, each below 128
    real: Mapping[str, float] = {}  # valid numbers by argument, multiples of 2^-10


@cache
def tempered(name: str = "configurations") -> Any:
    """Runs that later calls take."""
    if name == "search":
        return ss.anneal(MODEL, steps=3, sweeps=2, replicas=4, anneals=3, device="cpu")
    return ss.temper(GLASS, [1.0, 1.5, 2.0], sweeps=60, thermalize=0, device="cpu", save_configurations=2)


OF_SIZES: Any = [
    SimpleNamespace(side=side, resampled={"height": 3 + 1 / side + np.array([0.0, 0.1, -0.1, 0.05 * side])})
    for side in (2.0, 3.0, 6.0)
]


@cache
def flat() -> ss.DensityOfStates:
    return ss.multicanonical(ss.Ising(ss.square(4)), 100, 100, 2).density


@cache
def sizes(sides: tuple[int, ...] = (4, 6)) -> list[Any]:
    ladder = [2.0, 2.125, 2.25, 2.375, 2.5]
    return [ss.temper(ss.Ising(ss.square(side)), ladder, 200, 20, replicas=4, device="cpu") for side in sides]


@cache
def with_slices() -> list[Any]:
    return [ss.quantum(ss.Ising(ss.chain(4)), gamma=1.0, beta=1.0, slices=n, sweeps=200) for n in (4, 6, 8)]


@cache
def in_slices(sides: tuple[int, ...] = (4, 8)) -> list[Any]:
    k, how = [0.4375, 0.453125], {"replicas": 16, "device": "cpu", "local_susceptibility": True}
    return [
        ss.quantum(ss.Ising(ss.chain(side)), k, slices, 1000, 100, **how)
        for side in sides for slices in (side // 2, side, 2 * side)
    ]  # fmt: skip


def collapsed(**given: Any) -> list[float]:
    found = ss.collapse(sizes(), **given)
    return [found.critical, found.nu, found.power, found.chi2, found.freedom]


def engine(replicas: int = 4) -> Engine:
    return ss.create_engine(GLASS, replicas, Dynamics(), **CPU)


def swept(sweeps: Any) -> Any:
    one = engine()
    one.set_beta(1.0)
    one.sweep(sweeps)
    return one.counts().energy, one.half_sweep


def at_beta(beta: Any) -> Any:
    one = engine()
    one.set_beta(beta)
    one.sweep(2)
    return one.counts().energy


def simulated(sweeps: Any) -> ss.Simulation:
    one = ss.Simulation(GLASS, 1.0, 4, **CPU)
    one.sweep(sweeps)
    return one


def set_later(**values: Any) -> ss.Simulation:
    one = ss.Simulation(GLASS, 1.0, 4, **CPU)
    for name, value in values.items():
        setattr(one, name, value)
    return one


def drawn(count: Any) -> Any:
    found = []

    class Draws:
        name = "draws"

        def apply(self, batch: ss.Batch) -> None:
            found.append(batch.uniform(count))

    ss.Simulation(GLASS, 1.0, 2, **CPU).apply(Draws())
    return found


def annealing(**given: Any) -> Any:
    return [
        frame.measured.energy for frame in sampling.annealing(engine(), [2.0, 1.0], **{"sweeps": 2} | given) if frame
    ]


def tempering(**given: Any) -> Any:
    times = Times(0, 20)
    return [frame.energy for frame in sampling.tempering(engine(4), [1.0, 2.0], times, **given) if frame]


def moved(every: Any) -> Any:
    return ss.temper(temperatures=[1.0, 2.0], moves=[(ss.Houdayer(), every)], **LADDER), ss.anneal(
        **ANNEAL, moves=[(ss.SwendsenWang(), every)]
    )


def sides(make: Any, *names: str) -> Case:
    return Case(make, {names[0]: 4}, dict(zip(names, (4, 6, 2, 2), strict=False)))


CASES = {
    "chain": sides(ss.chain, "length"),
    "square": sides(ss.square, "width", "height"),
    "triangular": sides(ss.triangular, "width", "height"),
    "honeycomb": sides(ss.honeycomb, "width", "height"),
    "cubic": sides(ss.cubic, "width", "height", "depth"),
    "hypercubic": sides(ss.hypercubic, "width", "height", "depth", "length"),
    "Lattice": Case(lambda side: ss.Lattice((side, 64, 64)), {}, {"side": 64}),
    "Lattice.layers": Case(ss.square(4).layers, {}, {"axis": 1}),
    "Lattice.momentum": Case(ss.square(4).momentum, {}, {"axis": 1}),
    "Graph": Case(ss.Graph, {"sites": 4, "edges": [(0, 1), (1, 2)]}, {"sites": 4, "slices": 1}),
    "Graph.edges": Case(lambda end: ss.Graph(4, [(0, 1), (1, end)]), {}, {"end": 3}),
    "Graph.of_lattice": Case(ss.Graph.of_lattice, {"lattice": ss.square(4)}, {"slices": 4}),
    "EdwardsAnderson": Case(
        ss.EdwardsAnderson,
        {"lattice": ss.square(4), "samples": 2},
        {"samples": 2, "seed": 5},
        {"bond_fraction": 0.25, "field": 0.5, "dilution": 0.25, "random_field": 0.5},
    ),
    "antiperiodic": Case(ss.antiperiodic, {"model": GLASS}, {"axis": 1}),
    "perturbed": Case(ss.perturbed, {"model": GLASS, "strength": 0.5}, {"seed": 5}, {"strength": 0.25}),
    "EdwardsAnderson.along": Case(
        lambda factor: ss.EdwardsAnderson(ss.square(4), couplings_along=(1, factor)), {}, {}, {"factor": 0.5}
    ),
    "Ising": Case(
        ss.Ising, {"graph": ss.square(4)}, {}, {"couplings": 0.5, "field": 0.25, "offset": 1.5, "maxcut_weight": 2.5}
    ),
    "Ising.from_qubo": Case(ss.Ising.from_qubo, {"qubo": {("a", "b"): 1.0}}, {}, {"offset": 1.5}),
    "Ising.from_qubo.values": Case(lambda value: ss.Ising.from_qubo({("a", "b"): value}), {}, {}, {"value": 1.5}),
    "Ising.from_matrix": Case(ss.Ising.from_matrix, {"matrix": np.eye(3, k=1)}, {}, {"offset": 1.5}),
    "Ising.in_field": Case(MODEL.in_field, {}, {}, {"field": 0.5}),
    "Ising.of_samples": Case(GLASS.of_samples, {"first": 0, "stop": 2}, {"first": 1, "stop": 1}),
    "Ising.integer_couplings": Case(GLASS.integer_couplings, {}, {"sample": 1}),
    "Ising.integer_fields": Case(GLASS.integer_fields, {}, {"sample": 1}),
    "Ising.cut": Case(ss.Ising(ss.square(4), maxcut_weight=3).cut, {}, {}, {"energy": -2.5}),
    "Dynamics": Case(
        Dynamics, {}, {"seed": 5, "rng_rounds": 7, "first_sample": 3, "first_block": 2}, {"zero_acceptance": 0.5}
    ),
    "Dynamics.counter_block": Case(Dynamics().counter_block, {"sample": 0, "block": 0}, {"sample": 3, "block": 2}),
    "create_engine": Case(
        ss.create_engine,
        {"model": GLASS, "replicas": 4, "dynamics": Dynamics(), "device": "cpu"},
        {"replicas": 5, "threads": 1, "round_sweeps": 2},
    ),
    "engine.sweep": Case(swept, {}, {"sweeps": 3}),
    "engine.set_beta": Case(at_beta, {}, {}, {"beta": 0.5}),
    "Simulation": Case(
        ss.Simulation,
        {"model": GLASS, "temperature": 1.0, "replicas": 4, **CPU},
        {"replicas": 5, "seed": 5, "threads": 1, "rng_rounds": 7},
        {"temperature": 1.5, "zero_acceptance": 0.5},
    ),
    "Simulation.sweep": Case(simulated, {}, {"sweeps": 3}),
    "Simulation.set": Case(set_later, {}, {}, {"temperature": 1.5, "field": 0.5}),
    "Batch.uniform": Case(drawn, {}, {"count": 3}),
    "anneal": Case(
        ss.anneal,
        ANNEAL,
        {"sweeps": 3, "replicas": 5, "seed": 5, "rng_rounds": 7, "threads": 2, "steps": 4, "anneals": 2,
         "save_configurations": 1, "populations": 2},
        {"zero_acceptance": 0.5, "checkpoint_every": 2.5, "t_start": 2.5, "t_stop": 0.5},
    ),
    "evolve": Case(
        ss.evolve, {"model": GLASS, "protocol": "T=1 for 4", "replicas": 2, **CPU},
        {"replicas": 5, "seed": 5, "rng_rounds": 7, "threads": 2, "save_configurations": 1},
        {"zero_acceptance": 0.5, "checkpoint_every": 2.5, "waiting": 1.75, "times": 2.75},
    ),
    "EvolveResult.aging": Case(
        ss.evolve(GLASS, "T=1 for 4", waiting=[1, 2], replicas=2, **CPU).aging, {}, {"number": 1}
    ),
    "anneal.field": Case(ss.anneal, {**ANNEAL, "steps": None, "temperatures": 1.0}, {}, {"field": 0.25}),
    "anneal.temperatures": Case(
        lambda second: ss.anneal(GLASS, [2.5, second], sweeps=2, replicas=2, **CPU), {}, {}, {"second": 1.5}
    ),
    "anneal.populations": Case(
        ss.anneal, {**ANNEAL, "populations": 1, "steps": None, "replicas": 32}, {}, {"overlap": 0.5}
    ),
    "anneal.quantum": Case(
        ss.anneal, {**ANNEAL, "quantum": True}, {"slices": 4}, {"gamma_start": 2.5, "gamma_stop": 0.25, "beta": 2.5}
    ),
    "anneal.clusters": Case(ss.anneal, {**ANNEAL, "clusters": "wolff"}, {"clusters_every": 1}),
    "anneal.search": Case(
        lambda **given: ss.anneal(**ANNEAL, **{"target": 99} | given).config, {}, {}, {"target": 2.5, "time_limit": 7.5}
    ),
    "temper": Case(
        ss.temper,
        {**LADDER, "temperatures": [1.0, 2.0]},
        {"sweeps": 12, "thermalize": 6, "replicas": 3, "measure_every": 4, "swap_every": 2, "seed": 5,
         "rng_rounds": 7, "threads": 2, "houdayer": 2, "save_configurations": 2},
        {"zero_acceptance": 0.5, "checkpoint_every": 2.5, "series_limit": 2.5},
    ),
    "temper.clusters": Case(
        ss.temper, {**LADDER, "temperatures": [1.0, 2.0], "clusters": "wolff"}, {"clusters_every": 2}
    ),
    "temper.search": Case(
        lambda **given: ss.temper(
            **LADDER, temperatures=[1.0, 2.0], **{"target": [99.0, 99.0], "restart_after": 100} | given
        ).config,
        {},
        {"groups": 2, "restart_after": 100},
        {"time_limit": 7.5, "target": 2.5},
    ),
    "quantum": Case(
        ss.quantum,
        {**LADDER, "model": MODEL, "k": [0.2, 0.3], "slices": 4},
        {"sweeps": 12, "thermalize": 6, "replicas": 3, "measure_every": 4, "swap_every": 2, "seed": 5, "slices": 8,
         "rng_rounds": 7, "threads": 2, "houdayer": 2, "save_configurations": 2, "correlation_times": 2},
        {"zero_acceptance": 0.5, "checkpoint_every": 2.5, "series_limit": 2.5, "k": 0.25},
    ),
    "quantum.clusters": Case(
        ss.quantum, {**LADDER, "k": [0.2, 0.3], "slices": 4, "clusters": "wolff"}, {"clusters_every": 2}
    ),
    "quantum.general": Case(
        ss.quantum,
        {**LADDER, "model": MODEL, "slices": 4, "gamma": 1.0, "beta": 1.0},
        {},
        {"gamma": 2.5, "beta": 0.5},
    ),
    "transfer": Case(
        ss.transfer,
        {"model": ss.Ising(ss.chain(4)), "k": 0.3, "device": "cpu"},
        {"eigenvalues": 3, "basis": 12, "seed": 5, "threads": 1, "most_steps": 100},
        {"k": 0.25, "k_time": 0.5, "tolerance": 2**-10, "checkpoint_every": 2.5},
    ),
    "transfer.temperature": Case(
        ss.transfer, {"model": ss.Ising(ss.chain(4)), "device": "cpu"}, {}, {"temperature": 2.5}
    ),
    "multicanonical": Case(
        ss.multicanonical,
        {"model": MODEL, "sweeps": 4, "wang_landau": 4, "measure_every": 2, "replicas": 2},
        {"sweeps": 8, "wang_landau": 8, "measure_every": 4, "replicas": 3, "seed": 5, "threads": 1},
        {"checkpoint_every": 2.5},
    ),
    "solve": Case(
        lambda **given: ss.solve(MODEL, device="cpu", fix=False, **{"sweeps_limit": 20} | given).states,
        {},
        {"sweeps_limit": 30, "states": 3, "seed": 5, "threads": 1},
    ),
    "solve.search": Case(
        lambda **given: ss.solve(MODEL, device="cpu", **given).config,
        {},
        {},
        {"target": 2.5, "time_limit": 0.125, "checkpoint_every": 2.5},
    ),
    "DensityOfStates": Case(flat().averages, {}, {}, {"temperature": 2.5}),
    "DensityOfStates.probability": Case(flat().probability, {}, {}, {"temperature": 2.5}),
    "moves": Case(moved, {}, {"every": 2}),
    "Configurations": Case(lambda number: tempered().configurations[number], {}, {"number": 1}),
    "Configurations.several": Case(lambda number: tempered().configurations[[0, number]], {}, {"number": 1}),
    "Configurations.row": Case(lambda number: tempered().configurations.row(number), {}, {"number": 1}),
    "Configurations.samples_of_row": Case(
        lambda number: list(tempered().configurations.samples_of_row(number)), {}, {"number": 1}
    ),
    "Configurations.of_sample": Case(lambda sample: tempered().configurations.of_sample(sample), {}, {"sample": 1}),
    "TemperResult.u_kn": Case(lambda sample: tempered().u_kn(sample), {}, {"sample": 1}),
    "space": Case(lambda **given: ss.space(tempered(), **given), {}, {"quantiles": 3, "bins": 8}),
    "joint": Case(
        lambda **given: ss.joint(tempered(), **given), {}, {"copies": 2, "bins": 8, "quantiles": 3, "box": 2}
    ),
    "recount": Case(lambda **given: ss.recount(tempered(), "cpu", **given).energy, {}, {"threads": 1}),
    "integrated_time": Case(
        ss.integrated_time, {"series": np.sin(np.arange(60.0).reshape(20, 3))}, {"chain_axis": 1}, {"least_window": 2.5}
    ),
    "collapse": Case(
        collapsed, {"y": "binder_cumulant"}, {"degree": 2}, {"power": 0.25, "near": 2.25, "smallest": 4.0}
    ),
    "collapse.with corrections": Case(
        lambda omega: ss.collapse(sizes((4, 6, 8)), "binder_cumulant", degree=2, omega=omega).chi2,
        {},
        {},
        {"omega": 1.5},
    ),
    "quotients": Case(
        lambda **given: repr(ss.quotients(sizes(), **given)), {}, {"degree": 2}, {"near": 2.25}
    ),
    "peaks": Case(lambda degree: repr(ss.peaks(sizes(), degree=degree)), {}, {"degree": 3}),
    "infinite_size": Case(
        lambda **given: ss.infinite_size(OF_SIZES, "height", **given).value, {}, {},
        {"exponent": 1.5, "smallest": 2.0},
    ),
    "dynamic_exponent": Case(
        lambda **given: ss.dynamic_exponent(in_slices(), **{"at": 0.4375} | given).value,
        {},
        {},
        {"at": 0.4375, "smallest": 2.0},
    ),
    "local_tail": Case(lambda share: ss.local_tail(in_slices((32,))[0], share).exponent, {}, {}, {"share": 0.375}),
    "extrapolate": Case(lambda order: ss.extrapolate(with_slices(), order=order).estimates, {}, {"order": 4}),
    "sizes_along": Case(
        lambda at: ss.sizes_along(sizes(), "samples", at)[0].rows["energy_per_site"], {}, {}, {"at": 2.125}
    ),
    "power_of_size": Case(
        lambda smallest: ss.power_of_size(OF_SIZES, smallest=smallest).value, {}, {},
        {"smallest": 3.0},
    ),
    "onsager.energy": Case(onsager.energy, {"temperature": 2.5}, {}, ONSAGER),
    "onsager.magnetization": Case(onsager.magnetization, {"temperature": 1.0}, {}, ONSAGER),
    "onsager.specific_heat": Case(onsager.specific_heat, {"temperature": 2.5}, {}, ONSAGER),
    "success_probability": Case(
        success_probability, {"hits": 2, "trials": 9}, {"hits": 3, "trials": 8}, {"confidence": 0.5}
    ),
    "time_to_solution": Case(
        time_to_solution, {"seconds": [1.0, 2.0], "probability": success_probability(2, 9)}, {}, {"wanted": 0.5}
    ),
    "success_of": Case(lambda target: success_of(MODEL, tempered("search").anneals, target), {}, {}, {"target": -2.5}),
    "Times": Case(
        Times,
        {"thermalize": 0, "sweeps": 40, "measure_every": 8},
        {"thermalize": 8, "sweeps": 16, "measure_every": 4, "swap_every": 2},
    ),
    "Range": Case(Range, {"low": 1.0, "high": 2.0}, {"count": 5}, {"low": 0.5, "high": 2.5}),
    "Population": Case(
        lambda **given: vars(Population(engine(), **given))["family"], {}, {"count": 2, "seed": 5, "rng_rounds": 7}
    ),
    "temperature_schedule": Case(
        sampling.temperature_schedule,
        {"start": 2.0, "stop": 1.0, "steps": 3, "schedule": "linear"},
        {"steps": 5},
        {"start": 2.5, "stop": 0.5},
    ),
    "annealing": Case(annealing, {}, {"sweeps": 3, "seed": 5}),
    "tempering": Case(tempering, {}, {"copies": 2, "seed": 5}),
    "SpinsimSampler": Case(
        lambda **given: SpinsimSampler(device="cpu").sample(BQM, **{"num_sweeps": 8, "seed": 1} | given),
        {},
        {"num_reads": 3, "num_sweeps": 12, "num_sweeps_per_beta": 2, "seed": 5},
        {"time_limit": 0.125},
    ),
}  # fmt: skip


def told(thing: Any) -> Any:
    """An outcome as plain values with their types, which are equal for equal outcomes."""
    if isinstance(thing, np.ndarray):
        return ["array", thing.dtype.str, thing.shape, thing.tobytes()] if thing.dtype != object else thing.tolist()
    if isinstance(thing, Record):
        names = {name: told(np.asarray(one.values)) for name, one in thing.arrays.items() if one.units != "s"}
        return [names, {name: told(group) for name, group in thing.groups.items()}]
    if isinstance(thing, Result):
        return [told(thing.config), thing.attributes["config"], thing.attributes["config_sha256"], told(thing.record)]
    if isinstance(thing, ss.Ising):
        parts = (thing.name, thing.samples, thing.offset, thing.maxcut_weight, thing.origin, thing.graph)
        return [thing.content_sha256(), *map(told, parts)]
    if isinstance(thing, ss.Graph):
        return told([thing.sites, thing.slices, thing.edges, thing.lattice])
    if isinstance(thing, ss.Lattice):
        return [told([thing.shape, thing.periodic, thing.sites, thing.bonds]), thing.label]
    if isinstance(thing, ss.Simulation):
        thing.sweep(1)
        return told([thing.energy, thing.seed, thing.replicas, thing.sweeps, thing.temperature, thing.field])
    if hasattr(thing, "half_sweep"):
        thing.set_beta(1.0)
        thing.sweep(1)
        return told([thing.counts().energy, thing.replicas])
    if isinstance(thing, dimod.SampleSet):
        return told([thing.record.sample, thing.record.energy])
    if is_dataclass(thing) and not isinstance(thing, type):
        return [type(thing).__name__, *(told(getattr(thing, one.name)) for one in fields(thing))]
    if isinstance(thing, Mapping):
        return {name: told(value) for name, value in thing.items()}
    if isinstance(thing, list | tuple):
        return [type(thing).__name__, *map(told, thing)]
    return type(thing).__name__, repr(thing)


def outcome(case: Case, name: str, value: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return told(case.call(**{**case.given, name: value}))


WHOLE = [(label, name) for label, case in CASES.items() for name in case.whole]
REAL = [(label, name) for label, case in CASES.items() for name in case.real]
FORMS: dict[str, Callable[[Any], Any]] = {
    "int64": np.int64, "uint8": np.uint8, "int8": np.int8, "0-d": np.array, "float": float, "float32": np.float32,
    "float64": np.float64, "0-d float": lambda value: np.array(float(value)),
}  # fmt: skip
REAL_FORMS: dict[str, Callable[[Any], Any]] = {
    "float64": np.float64, "float32": np.float32, "float16": np.float16, "0-d": np.array, "fraction": Fraction,
}  # fmt: skip
NO_TRUTHS = {
    "Graph.edges",
    "engine.set_beta",
}  # lists of lists, and an engine's own method, are not searched for truths
TRUTHS = [True, np.True_, np.array(False)]


@pytest.mark.parametrize(("label", "name"), WHOLE)
def test_whole_numbers_of_every_kind_are_the_same(label: str, name: str) -> None:
    case = CASES[label]
    value = case.whole[name]
    wanted = outcome(case, name, value)
    wrong = [form for form, make in FORMS.items() if outcome(case, name, make(value)) != wanted]
    assert wrong == []


@pytest.mark.parametrize(("label", "name"), REAL)
def test_numbers_of_every_kind_are_the_same(label: str, name: str) -> None:
    case = CASES[label]
    value = case.real[name]
    wanted = outcome(case, name, value)
    wrong = [form for form, make in REAL_FORMS.items() if outcome(case, name, make(value)) != wanted]
    assert wrong == []


@pytest.mark.parametrize(("label", "name"), WHOLE)
def test_fractions_and_truths_are_no_whole_numbers(label: str, name: str) -> None:
    case = CASES[label]
    fractions = [make(case.whole[name] + 0.5) for make in (float, np.float64, np.array)]
    for value in fractions if label in NO_TRUTHS else [*fractions, *TRUTHS]:
        with pytest.raises(ss.InputError) as told:
            outcome(case, name, value)
        shown = str(value.item() if isinstance(value, np.generic | np.ndarray) else value)
        assert shown in str(told.value), (value, str(told.value))
        assert "\n" not in str(told.value)


@pytest.mark.parametrize(("label", "name"), [one for one in REAL if one[0] not in NO_TRUTHS])
def test_truths_are_no_numbers(label: str, name: str) -> None:
    for value in TRUTHS:
        with pytest.raises(ss.InputError, match=str(bool(value))) as told:
            outcome(CASES[label], name, value)
        assert "\n" not in str(told.value)


def test_a_run_goes_on_to_a_number_of_any_kind(tmp_path: Path) -> None:
    outcomes = []
    for k, sweeps in enumerate((40, np.int64(40), 4e1, np.array(40))):
        path = tmp_path / f"{k}.h5"
        ss.temper(MODEL, [1.0, 2.0], sweeps=20, thermalize=0, out=path, device="cpu")
        again = ss.resume(path, sweeps=sweeps, threads=np.uint8(1), checkpoint_every=np.float32(2.5))
        outcomes.append(told([again.config["temper"], again.energy]))
    assert all(one == outcomes[0] for one in outcomes)
    with pytest.raises(ss.InputError, match=r"^sweeps = 40\.5 has the wrong type"):
        ss.resume(tmp_path / "0.h5", sweeps=40.5)  # type: ignore[arg-type]


def test_seeds_of_several_problems_follow_each_other_from_any_kind_of_number() -> None:
    wanted, found = (
        [one.config["run"]["seed"] for one in ss.anneal([MODEL, MODEL], seed=seed, **SHORT)]  # type: ignore[arg-type]
        for seed in (5, 5.0)
    )
    assert wanted == found == [5, 6]
    reads = [SpinsimSampler(device="cpu").sample_many([BQM, BQM], num_sweeps=8, seed=seed) for seed in (5, 5.0)]
    assert told(reads[0]) == told(reads[1])


def numbers_of(function: Any) -> set[str]:
    """Names of a function's parameters that take numbers."""
    found = inspect.signature(function).parameters.values()
    plain = {
        one.name: re.sub(r"(Callable|NDArray|dict|Mapping|tuple|Sequence|Container)\[.*\]", "", str(one.annotation))
        for one in found
    }
    return {name for name, kind in plain.items() if re.search(r"\b(int|float)\b", kind)}


ELSEWHERE = {
    "resume",
    "warm_up",
    "compare_sizes",
    "Barrier",
    "Batch",
    "Configurations",
    "DensityOfStates",
    "Equilibrium",
    "Extrapolation",
}
"""Calls that are tested above or take long, and classes that the program makes."""


def test_all_numbers_of_public_calls_are_tested() -> None:
    tested: dict[str, set[str]] = {}
    for label, case in CASES.items():
        tested.setdefault(label.partition(".")[0], set()).update([*case.whole, *case.real])
    missing = {name: numbers_of(getattr(ss, name)) - tested.get(name, set()) for name in NAMES if name not in ELSEWHERE}
    assert {name: lacking for name, lacking in missing.items() if lacking} == {}
