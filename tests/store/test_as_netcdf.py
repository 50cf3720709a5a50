"""Files open as trees of netCDF groups, without warnings, and say what their numbers are."""

from __future__ import annotations

import warnings
from pathlib import Path

import h5py
import numpy as np
import pytest
import xarray
from harness import at_row, interrupt, run

import spinsim as ss

MODEL = "--couplings pm-j --samples 2 --quiet --out a.h5"
RUNS = {
    "anneal": f"anneal --size 4 --replicas 4 --steps 6 --sweeps 2 {MODEL} --save-configurations 2",
    "search": f"anneal --size 4 --replicas 4 --steps 6 --sweeps 2 {MODEL} --anneals 2",
    "temper": f"temper --size 4 --temperatures 0.9:2:3 --thermalize 4 --sweeps 60 {MODEL} --save-configurations 2",
    "quantum": f"quantum --size 2 --slices 4 --k 0.3,0.4 --thermalize 4 --sweeps 60 {MODEL}",
    "transfer": f"transfer --layer chain --width 4 --k 0.4:0.5:2 {MODEL}",
}


@pytest.fixture(params=RUNS)
def path(request, tmp_path, capsys, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    outcome = run(capsys, monkeypatch, *RUNS[request.param].split())
    assert outcome.status == 0, outcome
    return tmp_path / "a.h5"


def test_a_file_opens_as_a_tree_without_warnings(path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with xarray.open_datatree(path, engine="h5netcdf") as tree:
            assert {"model", *tree.children} == set(tree.children)
    with h5py.File(path, "r") as file:
        assert all(isinstance(file.attrs[name], str) for name in file.attrs)
        assert "attribute quantum of /model" in file.attrs["quantum"]


def test_the_netcdf_library_opens_every_group(path) -> None:
    netcdf = pytest.importorskip("netCDF4")
    with netcdf.Dataset(path) as file, h5py.File(path, "r") as original:
        for name, group in file.groups.items():
            for variable in group.variables:
                values, expected = np.ma.filled(group[variable][...]), original[name][variable][...]
                expected = expected.astype(str) if expected.dtype.kind == "S" else expected
                np.testing.assert_array_equal(values, expected, err_msg=f"{name}/{variable}")


def test_a_running_file_opens_as_a_tree(tmp_path, capsys, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr("spinsim.engine.cpu.AT_ONCE", 1)
        at_row(patch, 5, interrupt)
        assert run(capsys, monkeypatch, *RUNS["temper"].split(), "--checkpoint-every", 0).status == 130
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with xarray.open_datatree("a.h5", engine="h5netcdf") as tree:
            assert "energy" in tree["measurements"]


def test_a_table_leads_with_what_matters_and_has_units() -> None:
    result = ss.temper(ss.EdwardsAnderson(ss.square(4), seed=1), [0.9, 1.4, 2.0], sweeps=160, thermalize=4)
    table = ss.table(result)
    assert list(table.columns[:7]) == [
        "temperature", "energy_per_site", "energy_per_site_error", "overlap_squared", "overlap_squared_error",
        "overlap_binder_cumulant", "overlap_binder_cumulant_error",
    ]  # fmt: skip
    assert table.columns[-1].endswith("_trusted")
    units = table.attrs["units"]
    assert list(units) == list(table.columns)
    assert (units["temperature"], units["energy_per_site_error"]) == ("coupling unit / k_B", "coupling unit")
    assert (units["specific_heat"], units["energy_per_site_tau"]) == ("k_B", "sweeps")
    assert ss.table(result, by="overlap").columns[0] == "sample"
