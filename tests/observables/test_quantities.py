"""Records of counted quantities agree with the results, the moments and the sums that follow from them."""

from __future__ import annotations

import re
from dataclasses import fields

import numpy as np
import pytest

import spinsim as ss
from spinsim.engine.measuring.correlations import Correlations, Quantities
from spinsim.engine.protocols import LadderMeasurement
from spinsim.jobs.ladder.result import Temperatures, contents_of_run, reduced_of_run
from spinsim.model.trotter import isotropic, trotter
from spinsim.observables.moments import MOMENTS
from spinsim.observables.quantities import COPY, PAIR, QUANTITIES, Choice, quantities_of
from spinsim.store.contents import rows_in

RESULTS = {False: ss.TemperResult, True: ss.QuantumResult}


@pytest.mark.parametrize("in_time", RESULTS)
def test_results_have_each_quantity_as_a_field_that_they_describe(in_time: bool) -> None:
    kind = RESULTS[in_time]
    words = "".join(one.__doc__ or "" for one in kind.__mro__ if one.__module__.startswith("spinsim"))
    for one in quantities_of(in_time):
        assert one.name in {field.name for field in fields(kind)}, one.name
        assert re.search(rf"^ +{one.name}: ", words, re.MULTILINE), one.name


@pytest.mark.parametrize("one", QUANTITIES, ids=lambda one: one.name)
def test_a_quantity_is_a_field_of_measurements_and_its_moments_are_known(one) -> None:
    assert one.field in {*LadderMeasurement._fields, *Correlations._fields}
    assert one.per in (COPY, PAIR)
    for name in filter(None, one.moments):
        assert MOMENTS[name] == (one.per == PAIR)


@pytest.mark.parametrize("even", [False, True])
@pytest.mark.parametrize("copies", [1, 2])
@pytest.mark.parametrize("in_time", RESULTS)
def test_files_have_a_series_and_sums_a_source_for_each_quantity(in_time: bool, copies: int, even: bool) -> None:
    model = ss.Ising(ss.square(4))
    ladder = Temperatures(np.array([1.0, 2.0]))
    if in_time:
        model, ladder = trotter(model, 4), isotropic(np.array([0.3, 0.2]), 4)
    wanted = Quantities(times=(1, 2) if in_time else (), even=even and in_time)
    choice = Choice(copies, wanted, staggered=not in_time)
    names = [one.name for one in choice.quantities(model.lattice.dimension)]
    assert list(rows_in(contents_of_run(model, choice, ladder).groups["measurements"])) == ["sweep", *names]
    sources = {source.name for term in reduced_of_run(model, choice, ladder).terms for source in term.sources}
    counted = {one.field for one in choice.quantities(model.lattice.dimension)}
    assert sources == counted


def test_what_a_run_lacks_has_no_pairs_copies_or_axes() -> None:
    shape = 3, 2, 5
    for one in QUANTITIES:
        nothing = one.nothing(7, shape)
        assert nothing.shape[:2] == (7, 3)
        assert not nothing.size
