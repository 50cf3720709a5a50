"""The table of observables: a run has one record of a name at most, and one more is all that an observable takes."""

from __future__ import annotations

from itertools import product

import h5py
import numpy as np
import pytest
from harness import run
from made_up import glass

import spinsim as ss
from spinsim.analysis.figures import averages_figure
from spinsim.analysis.reweighted import reweighted
from spinsim.analysis.summary import summarize
from spinsim.analysis.tables import all_columns, printed_table
from spinsim.engine.measuring.correlations import Quantities
from spinsim.observables import table as observables_table
from spinsim.observables.moments import MOMENTS
from spinsim.observables.quantities import Choice
from spinsim.observables.table import LABELS, SYMBOLS, TABLE, Observable, observables, printed_order

OF_REWEIGHTING = {"ln Z", "ln Z at infinity", "entropy", "entropy of the hottest"}
MODELS = {
    "ferromagnet": ss.Ising(ss.square(4)),
    "field": ss.Ising(ss.square(4), 1.0, 0.5),
    "glass in a field": ss.Ising(ss.square(4), np.resize([1.0, -1.0, 1.0], 32), 0.5),
    "open": ss.Ising(ss.square(4, periodic=False)),
    "graph": ss.Ising(ss.Graph(3, [(0, 1), (1, 2)]), 1.0),
}


@pytest.mark.parametrize("reference", ["", "infinity", "hottest"])
@pytest.mark.parametrize("kind", MODELS)
def test_a_run_has_one_record_of_a_name(kind: str, reference: str) -> None:
    for copies, correlations, staggered in product((1, 2, 4), (False, True), (False, True)):
        names = [
            o.name for o in observables(MODELS[kind], Choice(copies, Quantities(correlations), staggered), reference)
        ]
        assert len(set(names)) == len(names)
        assert set(printed_order(names)) == set(names)
        assert sum(name.startswith(("free_energy", "entropy")) for name in names) == (2 if reference else 0)


@pytest.mark.parametrize("record", TABLE, ids=lambda record: record.name)
def test_a_record_is_whole(record: Observable) -> None:
    assert set(record.moments) <= MOMENTS.keys() | OF_REWEIGHTING
    assert record.series in MOMENTS
    assert record.label and record.symbol and record.formula and record.units  # noqa: PT018
    assert not record.sentence or record.sentence.endswith(".")
    alike = {(o.label, o.symbol, o.of, o.units) for o in TABLE if o.name == record.name}
    assert len(alike) == 1


def test_one_record_is_all_that_an_observable_takes(monkeypatch, capsys, tmp_path) -> None:
    """It stands in summary, file, printed table, figure, pandas' table and reweighting."""
    record = Observable(
        "overlap_ratio", "R_q", "ratio $R_q$", "ratio <q^4> / <q^2>^2",
        of="overlap", moments=("q^2", "q^4"), value=lambda _, second, fourth: fourth / second**2,
    )  # fmt: skip
    monkeypatch.setattr(observables_table, "TABLE", (*TABLE, record))
    monkeypatch.setitem(LABELS, record.name, record.label)
    monkeypatch.setitem(SYMBOLS, record.name, record.symbol)
    result = glass(4)
    found = summarize(result)
    expected = 3 * (1 - found.estimates["overlap_binder_cumulant"].value)
    np.testing.assert_allclose(found.estimates[record.name].value, expected)
    np.testing.assert_allclose(ss.table(result)[record.name], expected)
    assert run(capsys, monkeypatch, "analyze", result.save(tmp_path / "run.h5")).status == 0
    with h5py.File(tmp_path / "run.h5") as file:
        assert file[f"summary/{record.name}"].attrs["long_name"] == record.formula
        assert f"summary/{record.name}_error" in file
    assert "R_q" in printed_table(found, [record.name])[0]
    assert record.name in all_columns(found.estimates)
    assert averages_figure([result], [found], columns=record.name).axes[0].get_ylabel() == record.symbol
    assert record.name in reweighted(result, result.temperature[2:4]).estimates
