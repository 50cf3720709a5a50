"""Datasets, groups and attributes that a user adds to a file stay, whatever becomes of its run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from harness import contents, run

import spinsim as ss

OWN = ("command", "config", "history", "config_sha256")
TEMPER = "temper --size 4 --couplings pm-j --samples 2 --temperatures 0.9:2:3 --thermalize 4 --measure-every 5 --quiet"


def add(path: Path) -> dict[str, Any]:
    """Add a bit of everything; returns the values by path."""
    text = np.array(["first", "é"], h5py.string_dtype())
    values = {"measurements/mine": np.arange(5.0), "notes/deep/numbers": np.eye(3), "notes/text": text, "alone": 7}
    with h5py.File(path, "r+") as file:
        for name, value in values.items():
            file[name] = value
        file["measurements/per_row"] = np.arange(20)
        file["measurements/per_row"].dims[0].attach_scale(file["measurements/step"])
        file["notes/deep/numbers"].attrs["unit"] = "metre"
        file["notes"].attrs["by"] = "me"
        file["notes/link"] = h5py.SoftLink("/nowhere")
        file.attrs["project"] = "a"
    return values


def check_added(path: Path, values: dict[str, Any]) -> None:
    with h5py.File(path, "r") as file:
        for name, value in values.items():
            found = file[name].asstr()[...] if h5py.check_string_dtype(file[name].dtype) else file[name][()]
            assert np.array_equal(found, value), name
        assert file["measurements/per_row"][...].tolist() == list(range(20))
        assert file["measurements/per_row"].dims[0][0].name == "/measurements/step"
        assert file["notes/deep/numbers"].attrs["unit"] == "metre"
        assert file["notes"].attrs["by"] == "me"
        assert file["notes"].get("link", getlink=True).path == "/nowhere"
        assert file.attrs["project"] == "a"


@pytest.mark.parametrize("finished", [True, False])
def test_added_parts_are_carried_along(tmp_path, capsys, monkeypatch, finished) -> None:
    """``resume --sweeps`` ended in a KeyError."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "a.h5"
    assert run(capsys, monkeypatch, *TEMPER.split(), "--sweeps", 100, "--out", path).status == 0
    if not finished:
        with monkeypatch.context() as patch:
            patch.setattr("spinsim.store.RunFile.finish", lambda self, keep=False: None)
            assert run(capsys, monkeypatch, "resume", path, "--sweeps", 105, "--quiet").status == 0
        with h5py.File(path, "r+") as file:
            assert len(file["measurements/step"]) == 21
    values = add(path)
    assert run(capsys, monkeypatch, "check", path).status == 0
    assert run(capsys, monkeypatch, "analyze", path).status == 0
    assert run(capsys, monkeypatch, "resume", path, "--sweeps", 150, "--quiet").status == 0
    check_added(path, values)
    assert len(ss.load(path).sweep) == 30
    for command in ("check", "show", "analyze"):
        assert run(capsys, monkeypatch, command, path).status == 0
    whole = tmp_path / "whole.h5"
    assert run(capsys, monkeypatch, *TEMPER.split(), "--sweeps", 150, "--out", whole).status == 0
    assert run(capsys, monkeypatch, "analyze", whole).status == 0
    found, expected = contents(path, *OWN), contents(whole, *OWN)
    lists = {name for name in expected if isinstance(expected[name], list)}  # of the members of groups
    assert all(found[name] == value for name, value in expected.items() if name not in lists)
