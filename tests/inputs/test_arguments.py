"""Arguments of all calls: types as signatures state them, refusals of one sentence, also as TypeError."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from fractions import Fraction
from inspect import Parameter, signature
from pathlib import Path
from random import Random
from typing import Any

import dimod
import numpy as np
import pytest
import typer
from attacks import time_limit

import spinsim as ss
from spinsim.analysis import onsager
from spinsim.cli.flags import whole
from spinsim.dimod import SpinsimSampler
from spinsim.errors import WrongTypeError
from spinsim.inputs.arguments import as_stated, checked
from spinsim.jobs.anneal.settings import Anneal
from spinsim.settings.config import build_config

MODEL = ss.Ising(ss.square(4))
ISSUED = {
    "a text for a number": (lambda: ss.EdwardsAnderson(ss.square(4), dilution="text"), "dilution = 'text'"),
    "a list for a name": (lambda: ss.anneal(MODEL, clusters=["wolff"]), r"clusters = \['wolff'\]"),
    "a number for moves": (lambda: ss.temper(MODEL, [1.0, 2.0], moves=5), "moves = 5"),
    "a number for a function": (lambda: ss.anneal(MODEL, on_updates=5), "on_updates = 5"),
    "an array for a seed": (lambda: ss.anneal(MODEL, seed=np.arange(3)), r"seed = array\(\[0, 1, 2\]\)"),
    "an array for a switch": (lambda: ss.anneal(MODEL, quantum=np.zeros(2)), "quantum = array"),
    "in a list of models": (lambda: ss.anneal([MODEL, MODEL], replicas="few"), "replicas = 'few'"),
    "a truth for a number": (lambda: ss.Simulation(MODEL, 1.0, True), "replicas = True"),
    "a fraction for a count": (lambda: ss.Simulation(MODEL, 1.0).sweep(1.5), "sweeps = 1.5"),
    "a float that holds no whole number": (lambda: ss.anneal(MODEL, seed=1e17), r"seed = 1e\+17"),
    "words for spins": (lambda: MODEL.energy([["up"] * 16]), "spins = "),
    "another object": (lambda: ss.create_engine(MODEL, 2, 5), "dynamics = 5"),
    "of the sampler": (lambda: SpinsimSampler().sample(dimod.BQM({"a": 1}, {}, 0, "SPIN"), num_reads=2.5), "num_reads"),
    "of several problems": (lambda: SpinsimSampler().sample_many([], num_reads="a"), "num_reads = 'a'"),
}


@pytest.mark.parametrize(("call", "words"), ISSUED.values(), ids=ISSUED)
def test_wrong_types_are_refused_in_a_sentence(call: Callable[[], Any], words: str) -> None:
    with pytest.raises(ss.InputError, match=f"^{words}.* has the wrong type: give ") as told:
        call()
    assert isinstance(told.value, TypeError)
    assert isinstance(told.value, ValueError)


@pytest.mark.parametrize(
    ("value", "annotation", "taken"),
    [
        (1e3, "int", 1000),
        (np.float32(8), "int | None", 8),
        (np.array(3), "int", 3),
        (2**60, "int", 2**60),
        (np.float32(0.5), "float", 0.5),
        (2**60 + 1, "float", 2**60 + 1),
        (Fraction(1, 4), "float", 0.25),
        (np.True_, "bool", True),
        (None, "int | None", None),
        ("up", "str | ArrayLike", "up"),
        ([1, -1], "str | ArrayLike", [1, -1]),
        ({"a": 1}, "Mapping[str, Any] | None", {"a": 1}),
        (5, "Any", 5),
    ],
)
def test_values_come_in_the_form_of_the_annotation(value: Any, annotation: str, taken: Any) -> None:
    found = as_stated("x", value, annotation)
    assert (type(found), found) == (type(taken), taken)


def test_whole_numbers_may_be_written_with_an_exponent() -> None:
    given = {"steps": 2, "replicas": 2, "device": "cpu", "seed": 3}
    few, many = (ss.anneal(MODEL, sweeps=sweeps, **given) for sweeps in (1000, 1e3))
    assert few.attributes["config_sha256"] == many.attributes["config_sha256"]
    assert (few.energy == many.energy).all()
    assert ss.temper(MODEL, [1.0, 2.0], sweeps=1e2, houdayer=1e1, device="cpu").config["temper"]["sweeps"] == 100
    assert build_config(Anneal, {"anneal": {"sweeps": 1e3}}).anneal.sweeps == 1000  # of a file
    assert [whole("1e3"), whole("12345678901234567890")] == [1000, 12345678901234567890]
    for text in ("1.5", "inf", "many"):
        with pytest.raises(typer.BadParameter, match="is not a whole number"):
            whole(text)


def test_errors_of_functions_of_users_stay_as_they_are() -> None:
    def fails(done: int) -> None:
        raise TypeError("mine")

    with pytest.raises(TypeError, match=r"^mine$"):
        ss.anneal(MODEL, steps=2, sweeps=1, device="cpu", on_updates=fails)


def test_a_function_without_annotations_takes_anything() -> None:
    assert checked(lambda a, b=1: (a, b))("x", b=[2]) == ("x", [2])
    with pytest.raises(WrongTypeError, match="has no argument 'c': valid names are a, b"):
        checked(lambda a, b=1: (a, b))(1, c=2)


STRANGE = [5, -3, 2.5, 1e3, True, "text", "", b"x", None, [], ["a"], [[1], [2, 3]], (), {}, {"a": 1}, object(), 1j]
STRANGE += [float("nan"), float("inf"), np.array([1.0, 2.0]), np.array(["a"]), np.zeros((2, 2)), int, set(), 10**30]
SHORT = {"sweeps": 2, "replicas": 2, "device": "cpu", "threads": 1}
BQM = dimod.BQM({"a": 1.0}, {("a", "b"): 1.0}, 0.0, "SPIN")
CALLS: list[tuple[Callable[..., Any], dict[str, Any]]] = [
    (ss.anneal, {"model": MODEL, "temperatures": [2.0, 1.0], **SHORT}),
    (ss.temper, {"model": MODEL, "temperatures": [1.0, 2.0], "thermalize": 0, "measure_every": 1, **SHORT}),
    (ss.transfer, {"model": ss.Ising(ss.chain(4)), "k": 0.3}),
    (ss.Graph, {"sites": 3, "edges": [(0, 1)]}),
    (ss.Ising, {"graph": ss.square(4)}),
    (ss.EdwardsAnderson, {"lattice": ss.square(4)}),
    (ss.square, {"width": 4}),
    (ss.Lattice, {"shape": (4, 4)}),
    (ss.Ising.from_qubo, {"qubo": {("a", "b"): 1.0}}),
    (ss.Ising.from_matrix, {"matrix": np.eye(3, k=1)}),
    (ss.Simulation, {"model": MODEL, "temperature": 1.0, "replicas": 2, "device": "cpu"}),
    (ss.Dynamics, {}),
    (ss.create_engine, {"model": MODEL, "replicas": 2, "dynamics": ss.Dynamics(), "device": "cpu"}),
    (ss.read_instance, {"path": "nowhere"}),
    (ss.load, {"path": "nowhere"}),
    (onsager.energy, {"temperature": 2.0}),
    (SpinsimSampler(device="cpu").sample, {"bqm": BQM, "num_sweeps": 4}),
    (SpinsimSampler(device="cpu").sample_ising, {"h": {"a": 1.0}, "J": {("a", "b"): 1.0}, "num_sweeps": 4}),
]


def attack(seeds: range) -> tuple[int, int]:
    """How many calls with a strange argument were carried out, and how many were refused in a sentence."""
    outcomes = [0, 0]
    for seed in seeds:
        rng = Random(seed)
        call, valid = rng.choice(CALLS)
        names = [one.name for one in signature(call).parameters.values() if one.kind is not Parameter.VAR_KEYWORD]
        name, value = rng.choice(names), rng.choice(STRANGE)
        sentence = ""
        try:
            with time_limit(20), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                call(**valid | {name: value})
        except ss.InputError as error:
            sentence = str(error)
        except Exception as error:
            raise AssertionError(f"seed {seed}: {call.__qualname__}({name}={value!r})") from error
        outcomes[bool(sentence)] += 1
        assert "\n" not in sentence, (seed, name, value)
    return outcomes[0], outcomes[1]


@pytest.mark.system
def test_strange_arguments_are_taken_or_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert min(attack(range(600))) > 40
