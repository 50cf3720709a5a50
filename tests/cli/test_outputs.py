"""Tables and figures replace nothing unless asked, never another kind of file, and are there whole or not at all."""

from __future__ import annotations

import os
import shutil

import h5py
import numpy as np
import pytest
from harness import finish, one_sentence, run, spinsim, tree

import spinsim as ss
from spinsim.machine.files import check_output, write_outputs

TABLE = b"temperature,energy_per_site\n1.0,-1.5\n"
HEADS = {
    "csv": TABLE,
    "pdf": b"%PDF-1.4\n%\xac\xdc\n",
    "png": b"\x89PNG\r\n\x1a\n\x00\x00",
    "svg": b'<?xml version="1.0"?>\n<!DOCTYPE svg>\n<svg width="1">\n</svg>\n',
    "caption": b"Caption: the verdict,\nand no more.\n",
}


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    made = {"seed": 1, "sweeps": 40, "thermalize": 0, "measure_every": 1}
    for name, seed in (("a.h5", 1), ("b.h5", 2)):
        ss.temper(ss.Ising(ss.square(4)), [2.0, 2.5], **made | {"seed": seed}).save(folder / name)
    ss.anneal(ss.Ising(ss.square(4), -1.0), [2.0, 1.0], sweeps=1, replicas=4).save(folder / "run.h5")
    return folder


@pytest.fixture
def folder(results, tmp_path, monkeypatch):
    shutil.copytree(results, tmp_path / "in")
    monkeypatch.chdir(tmp_path / "in")
    return tmp_path / "in"


@pytest.fixture
def refuse(folder, capsys, monkeypatch):
    def refused(line, *words):
        before = tree(folder)
        one_sentence(run(capsys, monkeypatch, *line.split()), *words)
        assert tree(folder) == before

    return refused


@pytest.fixture
def done(capsys, monkeypatch):
    def succeed(line):
        outcome = run(capsys, monkeypatch, *line.split())
        assert outcome.status == 0, outcome
        return outcome

    return succeed


def test_csv_of_two_results_destroys_neither(refuse, folder):
    refuse("analyze --csv a.h5 b.h5", "a.h5 exists and is no CSV file", "choose another name")
    refuse("analyze --csv a.h5 --overwrite b.h5", "a.h5 exists and is no CSV file")
    os.symlink("a.h5", "soft.csv")
    os.link("a.h5", "hard.csv")
    for name in ("soft.csv", "hard.csv"):
        refuse(f"analyze --csv {name} --overwrite b.h5", f"{name} exists and is no CSV file")
    (folder / "notes.csv").write_text("My notes, which nobody shall lose\n")
    refuse("analyze --csv notes.csv --overwrite b.h5", "notes.csv exists and is no CSV file")
    refuse("analyze --csv missing/../a.h5/x.csv b.h5", "x.csv")
    refuse("analyze --csv ../in b.h5", "is a directory")


@pytest.mark.parametrize("name", ["a.h5", "soft.pdf", "hard.pdf"])
def test_figures_destroy_no_result(refuse, name):
    os.symlink("a.h5", "soft.pdf")
    os.link("a.h5", "hard.pdf")
    words = ("suffix must be",) if name == "a.h5" else (f"{name} exists and is no PDF file",)
    refuse(f"plot run.h5 --what thermodynamics --overwrite --out {name}", *words)


def test_a_table_is_replaced_only_where_asked(refuse, done, folder):
    done("analyze a.h5 --csv t.csv")
    first = (folder / "t.csv").read_bytes()
    done("analyze a.h5 --csv t.csv")  # the same numbers are there already
    refuse("analyze b.h5 --csv t.csv", "t.csv exists already", "--overwrite")
    (folder / "t.csv").chmod(0o640)
    os.symlink("t.csv", "link.csv")
    done("analyze b.h5 --csv link.csv --overwrite")
    assert (folder / "link.csv").is_symlink()
    assert (folder / "t.csv").read_bytes() != first
    assert (folder / "t.csv").stat().st_mode & 0o777 == 0o640
    assert not [path for path in folder.iterdir() if path.name.startswith(".")]


@pytest.mark.system
def test_one_figure_that_is_there_keeps_all_from_being_written(refuse, done, folder):
    (folder / "run-configuration.pdf").write_bytes(HEADS["pdf"])
    refuse("plot run.h5", "run-configuration.pdf exists already", "--overwrite")
    done("plot run.h5 --overwrite")
    assert len((folder / "run-configuration.pdf").read_bytes()) > 1000
    done("plot run.h5 --what configuration")  # the same bytes


def test_bench_refuses_before_it_measures(refuse, folder):
    (folder / "bars.pdf").write_bytes(HEADS["pdf"])
    refuse("bench gemm --plot bars.pdf", "bars.pdf exists already")


@pytest.mark.parametrize("kind", HEADS)
def test_kinds_are_told_by_their_first_bytes(tmp_path, kind):
    for name, head in HEADS.items():
        path = tmp_path / name
        path.write_bytes(head)
        if name == kind:
            check_output(path, kind, overwrite=True)
        else:
            with pytest.raises(ss.InputError, match=f"is no ({kind.upper()} file|{kind} of a figure)"):
                check_output(path, kind, overwrite=True)
    (tmp_path / "empty").touch()
    check_output(tmp_path / "empty", kind, overwrite=True)
    with h5py.File(tmp_path / "x.h5", "w"), pytest.raises(ss.InputError, match="exists and is no"):
        check_output(tmp_path / "x.h5", kind, overwrite=True)


@pytest.mark.system
@pytest.mark.parametrize(
    "line", ["analyze a.h5 --csv new/t.csv", "plot run.h5", "analyze a.h5 --csv old.csv --overwrite"]
)
def test_a_full_disk_leaves_nothing_behind(folder, line):
    pytest.importorskip("resource")
    (folder / "old.csv").write_bytes(TABLE)
    before = tree(folder)
    code = """
import resource
import spinsim.machine.files
write = spinsim.machine.files._write
def limited(path, content):
    resource.setrlimit(resource.RLIMIT_FSIZE, (500, 500))
    return write(path, content)
spinsim.machine.files._write = limited
"""
    one_sentence(finish(spinsim(folder, *line.split(), code=code)), "cannot be written (File too large)", "make room")
    assert tree(folder) == before


def test_streams_are_written_to_as_they_are(folder, done, refuse):
    if not os.path.exists("/dev/full"):
        pytest.skip("no such devices here")
    done("analyze a.h5 --csv /dev/null")
    refuse("analyze a.h5 --csv /dev/full", "/dev/full cannot be written (No space left on device)")


def test_python_names_its_own_word(tmp_path):
    path = tmp_path / "t.csv"
    write_outputs({path: ("csv", TABLE)})
    with pytest.raises(ss.InputError, match="overwrite=True"):
        write_outputs({path: ("csv", TABLE + b"2.0,-1.0\n")})
    write_outputs({path: ("csv", TABLE + b"2.0,-1.0\n")}, overwrite=True)
    assert np.genfromtxt(path, delimiter=",", names=True)["temperature"].tolist() == [1, 2]
