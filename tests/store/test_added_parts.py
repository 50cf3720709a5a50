"""Datasets, groups and attributes that a user adds to a file: read, told, and never dropped without a word."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest
from harness import at_row, contents, interrupt, one_sentence, run

import spinsim as ss

OWN = ("command", "config", "history", "config_sha256")
TEMPER = "temper --size 4 --couplings pm-j --samples 2 --temperatures 0.9:2:3 --thermalize 4 --measure-every 5 --quiet"
TOLD = "all that spinsim wrote is whole, other programs have added to it, "


def add(path: Path) -> None:
    """Add a bit of everything."""
    with h5py.File(path, "r+") as file:
        file["measurements/mine"] = np.arange(5.0)
        file["notes/deep/numbers"] = np.eye(3)
        file["notes/text"] = np.array(["first", "é"], h5py.string_dtype())
        file["alone"] = 7
        file["measurements/per_row"] = np.arange(len(file["measurements/energy"]))
        file["measurements/per_row"].dims[0].attach_scale(file["measurements/energy"].dims[0][0])
        file["notes/deep/numbers"].attrs["unit"] = "metre"
        file["notes/link"] = h5py.SoftLink("/nowhere")
        file.attrs["project"] = "a"


@pytest.fixture(params=[True, False], ids=["finished", "unfinished"])
def path(request, tmp_path, capsys, monkeypatch) -> Path:
    """A file with added parts."""
    monkeypatch.chdir(tmp_path)
    line = [*TEMPER.split(), "--sweeps", 100, "--checkpoint-every", 0, "--out", "a.h5"]
    with pytest.MonkeyPatch.context() as patch:
        if not request.param:
            patch.setattr("spinsim.engine.cpu.AT_ONCE", 1)
            at_row(patch, 18, interrupt)
        assert run(capsys, monkeypatch, *line).status == (0 if request.param else 130)
    add(tmp_path / "a.h5")
    return tmp_path / "a.h5"


def test_the_run_is_read_and_the_additions_are_told(path, capsys, monkeypatch) -> None:
    whole = ss.temper(ss.EdwardsAnderson(ss.square(4), samples=2), "0.9:2:3", 100, 4, measure_every=5)
    found = ss.load(path)
    rows = len(found.energy)
    assert rows > 15
    assert np.array_equal(found.energy, whole.energy[:rows])
    checked = run(capsys, monkeypatch, "check", path)
    assert (checked.status, checked.err) == (0, "")
    assert f"a.h5: {TOLD}" in checked.out
    assert run(capsys, monkeypatch, "show", path).status == 0
    assert run(capsys, monkeypatch, "plot", path, "--what", "overlap").status == 0


def test_an_analysis_leaves_the_file_as_it_is(path, capsys, monkeypatch) -> None:
    before = path.read_bytes()
    analyzed = run(capsys, monkeypatch, "analyze", path)
    assert analyzed.status == 0
    assert "another program has added to the file, so its /summary is left as it is" in " ".join(analyzed.out.split())
    assert path.read_bytes() == before


def test_going_on_drops_them_only_where_that_is_asked_for(path, capsys, monkeypatch) -> None:
    before = path.read_bytes()
    words = "a.h5 has parts that another program added, which going on would drop: copy them elsewhere, then spinsim"
    one_sentence(run(capsys, monkeypatch, "resume", path, "--sweeps", 150), words, "resume --drop-added goes on")
    with pytest.raises(ss.InputError, match=r"then ss.resume\(path, drop_added=True\) goes on without them"):
        ss.resume(path, sweeps=150)
    assert path.read_bytes() == before
    assert run(capsys, monkeypatch, "resume", path, "--sweeps", 150, "--quiet", "--drop-added").status == 0
    assert run(capsys, monkeypatch, *TEMPER.split(), "--sweeps", 150, "--out", "whole.h5").status == 0
    assert contents(path, *OWN) == contents(Path("whole.h5"), *OWN)
    assert "a.h5: whole, finished: 30 rows\n" in run(capsys, monkeypatch, "check", path).out


def test_a_result_is_what_spinsim_wrote(path, tmp_path) -> None:
    found = ss.load(path)
    assert not {"notes", "alone", "measurements/mine"} & {name for name, _ in found.record.paths()}
    again = ss.load(found.save(tmp_path / "b.h5"))
    assert np.array_equal(again.energy, found.energy)
    assert "project" not in again.attributes


def test_a_damaged_file_with_additions_is_told_as_damaged(path, capsys, monkeypatch) -> None:
    with h5py.File(path, "r+") as file:
        file["measurements/energy"][3, 0, 0, 0] += 4
    for command in ("check", "show", "resume", "analyze"):
        one_sentence(run(capsys, monkeypatch, command, path), "is damaged, parts of it are not as spinsim wrote them")


@pytest.mark.parametrize("piece", [64, 1000, 10**6])
def test_parts_are_those_that_were_written_however_they_are_read(tmp_path, monkeypatch, piece: int) -> None:
    """Configurations are an array as they are written, and are read in pieces of rows that end elsewhere."""
    monkeypatch.setattr("spinsim.store.hdf5._PIECE", piece)
    monkeypatch.setattr("spinsim.store.segments._PIECE", 700)
    model = ss.EdwardsAnderson(ss.square(6), samples=3)
    run_of_file = ss.anneal(model, steps=20, sweeps=2, replicas=5, save_configurations=1, out=tmp_path / "a.h5")
    with h5py.File(tmp_path / "a.h5", "r+") as file:
        file.attrs["mine"] = 1
    found = ss.load(tmp_path / "a.h5")
    assert np.array_equal(found.best_spins, run_of_file.best_spins)
    with h5py.File(tmp_path / "a.h5", "r+") as file:
        file["configurations/spins"][7] ^= 1
    with pytest.raises(ss.InputError, match="damaged, "):
        ss.load(tmp_path / "a.h5")
