"""Public docstrings describe each parameter and what is returned, and their examples run."""

from __future__ import annotations

import doctest
import inspect
import pydoc
import re
from typing import Any

import numpy as np
import pytest
from places import ROOT

import spinsim as ss

NAMES = [name for name in ss.__all__ if callable(getattr(ss, name))]
MADE = ["Batch", "Configurations", "Houdayer", "InputError", "Move", "QuantumResult", "TemperResult"]
"""Classes that the program makes, or that take nothing: their attributes are described."""
VAGUE = {"What", "Whether", "Those", "That", "Its", "Of"}


def first_words(kind: type, described: set[str]) -> dict[str, str]:
    """First words on the public methods and properties that a class itself has, by itself or by its bases."""
    found = {name: value for name, value in vars(kind).items() if hasattr(value, "__get__") and name not in described}
    own = {name: getattr(kind, name) for name in found if not name.startswith("_")}
    return {name: (inspect.getdoc(thing) or "What").split()[0] for name, thing in own.items()}


def documented(thing: Any) -> str:
    """The docstring of a function; of a class those of its bases too."""
    kinds = thing.__mro__ if inspect.isclass(thing) else [thing]
    return "\n".join(inspect.cleandoc(kind.__doc__) for kind in kinds if kind.__doc__ and kind is not object)


@pytest.mark.parametrize("name", NAMES)
def test_docstrings_describe_parameters_and_what_is_returned(name: str) -> None:
    thing, text = getattr(ss, name), documented(getattr(ss, name))
    assert text.split()[0] not in VAGUE
    described = set(re.findall(r"^    (\w+): ", text, re.MULTILINE))
    if inspect.isclass(thing):
        assert not {name for name, word in first_words(thing, described).items() if word in VAGUE}
    else:
        assert "\nReturns:" in text
    if name not in MADE:
        assert set(inspect.signature(thing).parameters) <= described


@pytest.mark.parametrize("name", [name for name in NAMES if name != "InputError"])
def test_signatures_fit_a_hundred_columns(name: str) -> None:
    named = getattr(ss, name)
    names = [each for each in vars(named) if not each.startswith("_")] if inspect.isclass(named) else []
    methods = [getattr(named, each, None) for each in names]
    shown = [str(inspect.signature(each)) for each in [named, *methods] if callable(each)]
    assert max((len(line) for text in shown for line in text.splitlines()), default=0) <= 90


@pytest.mark.parametrize("name", ["anneal", "temper", "quantum", "transfer", "resume", "Ising", "Simulation", "Graph"])
def test_help_fits_a_hundred_columns(name: str) -> None:
    shown = pydoc.plain(pydoc.render_doc(getattr(ss, name)))
    assert [line for line in shown.splitlines() if len(line) > 100] == []


def test_the_reference_has_every_public_name() -> None:
    listed = re.findall(
        r"^\.\. auto(?:class|function):: (\w+)$", (ROOT / "docs/reference/api.md").read_text(), re.MULTILINE
    )
    assert sorted(listed) == sorted(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_examples_run(name: str) -> None:
    thing, runner = getattr(ss, name), doctest.DocTestRunner(verbose=False)
    for example in doctest.DocTestFinder(recurse=True).find(thing, name, module=False, globs={"ss": ss, "np": np}):
        runner.run(example)
    assert not runner.failures


RESULTS = ["AnnealResult", "TemperResult", "QuantumResult", "TransferResult"]
HAVE_UNITS = """temperature energy best_energy field gamma beta k action action_in_space mean_slice_energy cut
    population_free_energy free_energy free_energy_per_site energy_per_site local_susceptibility"""
"""Attributes of results whose numbers have a unit, which follows from that of the couplings."""


def described_attributes(kind: type) -> dict[str, str]:
    """Description of each public attribute of a class, as ``help`` shows it."""
    entries = re.findall(r"^    (\w+): (.*(?:\n     .*)*)", inspect.cleandoc(kind.__doc__ or ""), re.MULTILINE)
    names = {name for name in dir(kind) if not name.startswith("_")} | set(inspect.signature(kind).parameters)
    found: dict[str, str] = {}
    for name in names:
        member = inspect.getattr_static(kind, name, None)
        found[name] = (inspect.getdoc(member) or "") if hasattr(member, "__get__") else ""
    return found | dict(entries)


@pytest.mark.parametrize("name", RESULTS)
def test_attributes_of_results_are_described_with_shape_and_unit(name: str) -> None:
    kind = getattr(ss, name)
    described, shown = described_attributes(kind), pydoc.plain(pydoc.render_doc(kind))
    assert [attribute for attribute, text in described.items() if not text] == []
    types = inspect.get_annotations(kind.__init__) | {
        attribute: str(inspect.signature(member.fget).return_annotation)
        for attribute in described
        if isinstance(member := inspect.getattr_static(kind, attribute, None), property)
    }
    for attribute, words in described.items():
        text = " ".join(words.split())
        assert " ".join(text.split()[:4]) in " ".join(re.sub(r"^ \|", "", shown, flags=re.MULTILINE).split())
        if re.match(r"(npt\.)?(NDArray|Array|Floats|Integers|Bools)", types.get(attribute, "")):
            assert re.search(r"\(\w[\w ,.-]*,[\w ,.-]*\)|of the (same )?shape", text), (attribute, text)
        if attribute in HAVE_UNITS.split():
            assert re.search(r"unit|action", text), (attribute, text)
