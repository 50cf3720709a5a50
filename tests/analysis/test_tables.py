"""Tables of runs: pandas, CSV, xarray, and the main numbers of a file that is read in pieces."""

from __future__ import annotations

import csv

import numpy as np
import pytest
import xarray
from harness import one_sentence, run
from made_up import LADDER, frozen, tempered

import spinsim as ss
from spinsim.analysis.summary import summarize
from spinsim.analysis.thermodynamics import thermodynamics


@pytest.fixture(scope="module")
def result() -> ss.TemperResult:
    return frozen(tempered(ss.EdwardsAnderson(ss.cubic(4), samples=3, seed=1)))


def test_table_of_a_tempering_run(result, tmp_path):
    table, found = ss.table(result), summarize(result)
    assert table["temperature"].tolist() == LADDER.tolist()
    for name, estimate in found.estimates.items():
        np.testing.assert_array_equal(table[name], estimate.value)
        np.testing.assert_array_equal(table[f"{name}_tau"], estimate.tau)
        np.testing.assert_array_equal(table[f"{name}_trusted"], estimate.trusted)
        np.testing.assert_array_equal(table[f"{name}_error"], np.where(estimate.trusted, estimate.error, np.nan))
    assert len(table.columns) == 1 + 4 * len(found.estimates)
    assert ss.table(result.save(tmp_path / "run.h5")).equals(table)
    one = ss.table(frozen(tempered(ss.Ising(ss.square(4)))))
    assert np.isnan(one["energy_per_site_error"][0])
    assert np.isfinite(one["energy_per_site_error"][1:]).all()


def test_chosen_columns(result):
    whole = ss.table(result)
    main = ss.table(result, columns="main")
    assert list(main)[:3] == ["temperature", "energy_per_site", "energy_per_site_error"]
    assert list(main)[3:5] == ["overlap_squared", "overlap_squared_error"]
    assert whole[list(main)].equals(main)
    assert main.attrs["units"]["temperature"] == "coupling unit / k_B"
    some = ss.table([result, result], columns=["abs_overlap", "specific_heat"])
    assert list(some)[4:] == [
        "temperature",
        "abs_overlap",
        "abs_overlap_error",
        "specific_heat",
        "specific_heat_error",
    ]
    assert list(ss.table(result, by="sample", columns="abs_overlap"))[:2] == ["sample", "temperature"]
    with pytest.raises(ss.InputError, match="did you mean 'abs_overlap'"):
        ss.table(result, columns="abs_overlp")


def test_the_order_parameter_of_the_model_leads(result):
    """Of a glass the overlap's columns come first, not the magnetisation's."""
    averages = [name for name in ss.table(result) if f"{name}_error" in ss.table(result)]
    assert averages[:3] == ["energy_per_site", "overlap_squared", "overlap_binder_cumulant"]
    magnet = ss.table(frozen(tempered(ss.Ising(ss.square(4)))))
    assert list(magnet)[5:9:2] == ["abs_magnetization", "binder_cumulant"]
    both = ss.table([result, frozen(tempered(ss.Ising(ss.square(4))))])
    assert list(both).index("overlap_squared") < list(both).index("abs_magnetization")


def test_table_of_an_annealing_run(tmp_path):
    result = ss.anneal(ss.Ising(ss.square(4)), [2.0, 1.0], replicas=8)
    table, found = ss.table(result), thermodynamics(result)
    assert table["temperature"].tolist() == [2.0, 1.0]
    np.testing.assert_array_equal(table["energy_per_site_error"], found.energy.error)
    np.testing.assert_array_equal(table["specific_heat"], found.specific_heat.mean)
    np.testing.assert_array_equal(table["abs_magnetization"], found.magnetization.mean)
    assert ss.table(result.save(tmp_path / "run.h5")).equals(table)


def test_analyze_writes_csv(result, tmp_path, capsys, monkeypatch):
    file, table = result.save(tmp_path / "run.h5"), ss.table(result)
    assert run(capsys, monkeypatch, "analyze", file, "--csv", tmp_path / "out.csv").status == 0
    with (tmp_path / "out.csv").open(newline="") as text:
        head, *rows = csv.reader(text)
    assert head == list(table.columns)
    for row, expected in zip(rows, table.itertuples(index=False), strict=True):
        assert row == ["" if value != value else str(value) for value in expected]


@pytest.mark.parametrize(("csv", "words"), [("run.h5", "is no CSV file"), ("run.h5/a.csv", "cannot be written")])
def test_analyze_refuses_a_csv_file_before_it_writes(result, tmp_path, capsys, monkeypatch, csv, words):
    monkeypatch.chdir(tmp_path)
    before = result.save(tmp_path / "run.h5").read_bytes()
    one_sentence(run(capsys, monkeypatch, "analyze", "run.h5", "--csv", csv), words)
    assert (tmp_path / "run.h5").read_bytes() == before


def test_xarray_opens_every_group_of_a_tempering_file(result, tmp_path, capsys, monkeypatch):
    file = result.save(tmp_path / "run.h5")
    assert run(capsys, monkeypatch, "analyze", file).status == 0
    state = ("step", "sample", "copy", "temperature")
    axes = {
        "measurements": {"energy": state, "magnetization": state, "sweep": ("step",)},
        "tempering": {"permutation": state, "attempts": ("sample", "pair"), "round_trips": ("sample", "replica")},
        "summary": {"energy_per_site": ("temperature",), "overlap_squared_error": ("temperature",)},
    }
    for group, expected in axes.items():
        with xarray.open_dataset(file, group=group, engine="h5netcdf") as dataset:
            assert {name: dataset[name].dims for name in expected} == expected
            assert all("units" in variable.attrs for variable in dataset.data_vars.values())
            if group != "tempering":
                np.testing.assert_array_equal(dataset["temperature"], LADDER)
    with xarray.open_dataset(file, group="measurements", engine="h5netcdf") as dataset:
        frame = dataset["overlap"].to_dataframe()
    assert frame["overlap"].to_numpy().tolist() == result.overlap.ravel().tolist()


def test_table_of_several_runs_says_which_is_which(result, tmp_path):
    other = frozen(tempered(ss.Ising(ss.square(4, 6))))
    path = other.save(tmp_path / "other.h5")
    table = ss.table([result, path])
    assert list(table.columns[:5]) == ["file", "model", "size", "sites", "temperature"]
    assert len(table) == 2 * len(LADDER)
    one = table[table["size"] == "4x6"]
    assert set(one["file"]) == {str(path)}
    assert set(one["sites"]) == {24}
    np.testing.assert_array_equal(one["energy_per_site"], ss.table(other)["energy_per_site"])
    assert set(ss.table([result], by="sample")["sample"]) == {0, 1, 2}
    for wrong in ([], 3, [3]):
        with pytest.raises(ss.InputError):
            ss.table(wrong)
