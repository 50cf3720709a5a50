"""Rows of unfinished files carry checksums: damage is found before anything is added, finished or certified."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from damage import small_file
from harness import contents, one_sentence, run

import spinsim as ss
from spinsim import cli, store
from spinsim.errors import InputError
from spinsim.run.identity import verify
from spinsim.store.datasets import CHECKSUM, row_checksums
from spinsim.store.reading import growing

OWN = ("command", "config", "history")
MODEL = "--size 4 --couplings pm-j --samples 2 --checkpoint-every 0.00001"
RUNS = {
    "anneal": f"anneal {MODEL} --replicas 4 --steps 14 --sweeps 2 --save-configurations 2",
    "temper": f"temper {MODEL} --temperatures 0.9:2:3 --thermalize 4 --sweeps 70 --measure-every 5 "
    "--save-configurations 2",
    "transfer": "transfer --layer chain --width 4 --couplings pm-j --samples 7 --k 0.4:0.5:2",
}
STOP, SAVED = 11, 8  # rows of the unfinished file, and those before its checkpoint


@pytest.fixture(scope="module", params=RUNS)
def unfinished(request, tmp_path_factory) -> tuple[str, bytes]:
    """A job and the content of a file of it that was cut short."""
    path = tmp_path_factory.mktemp("run") / "a.h5"
    return request.param, cut_short(path, f"{RUNS[request.param]} --out {path}")


def cut_short(path: Path, line: str, stop: int = STOP, saved: int = SAVED) -> bytes:
    """The content of a file whose run ends before row ``stop``, with its last checkpoint at row ``saved``."""
    write, save = store.RunFile.write, store.RunFile.save
    last = [-1]

    def write_until(self: Any, row: Any) -> None:
        last[0] = row["step"]
        if last[0] == stop:
            raise KeyboardInterrupt
        write(self, row)

    def save_until(self: Any, arrays: Any, wait: bool = True) -> None:
        if last[0] < saved:
            save(self, arrays, wait)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("spinsim.engine.cpu.AT_ONCE", 1)  # so that there is a checkpoint between any two rows
        patch.setattr(store.RunFile, "write", write_until)
        patch.setattr(store.RunFile, "save", save_until)
        patch.setattr("sys.argv", ["spinsim", *line.split(), "--quiet"])
        with pytest.raises(SystemExit):
            cli.main()
    return path.read_bytes()


@pytest.fixture
def do(capsys, monkeypatch, tmp_path) -> Callable[..., Any]:
    monkeypatch.chdir(tmp_path)
    return lambda *line: run(capsys, monkeypatch, *line)


def series_of(path: Path) -> list[str]:
    with h5py.File(path, "r") as file:
        return [dataset.name for dataset in growing(file) if dataset.size]


def flip(path: Path, name: str, row: int, random: np.random.Generator) -> None:
    """Flip one bit of a row of a series, in place."""
    with h5py.File(path, "r+") as file:
        values = file[name][row : row + 1]
        octets = values.reshape(1, -1).view(np.uint8)
        octets[0, random.integers(octets.shape[1])] ^= np.uint8(1 << random.integers(8))
        file[name][row : row + 1] = values


def test_whole_rows_pass_and_are_finished(unfinished, do) -> None:
    job, content = unfinished
    Path("a.h5").write_bytes(content)
    assert do("check", "a.h5").out == f"a.h5: whole, not finished: {STOP} rows\n"
    assert do("resume", "a.h5", "--quiet").status == 0
    assert do(*RUNS[job].split(), "--quiet", "--out", "whole.h5").status == 0
    assert contents(Path("a.h5"), *OWN) == contents(Path("whole.h5"), *OWN)
    with h5py.File("a.h5", "r") as file:
        assert not any(CHECKSUM in dataset.parent for dataset in growing(file))


def test_a_changed_bit_is_neither_adopted_nor_certified(unfinished, do) -> None:
    """In every series of every group, saved configurations among them."""
    _, content = unfinished
    path, random = Path("a.h5"), np.random.default_rng(28)
    path.write_bytes(content)
    names = series_of(path)
    resumed = random.choice(names, 2, replace=False)
    for name in names:
        path.write_bytes(content)
        flip(path, name, int(random.integers(SAVED // 2 if name.startswith("/configurations") else SAVED)), random)
        changed = path.read_bytes()
        with pytest.raises(InputError, match="is damaged"):
            verify(path)
        if name in resumed:
            one_sentence(do("resume", "a.h5"), "a.h5 ")
        assert path.read_bytes() == changed, name


def test_changed_rows_after_the_checkpoint_are_computed_again(unfinished, do) -> None:
    """A loss of power can leave them half written."""
    job, content = unfinished
    path, random = Path("a.h5"), np.random.default_rng(29)
    path.write_bytes(content)
    with h5py.File(path, "r") as file:
        if "checkpoint" not in file or not file["checkpoint/serial"][...].any():
            pytest.skip("rows of transfer matrices are never computed again")
        assert file["checkpoint/rows"][...].max() == SAVED
    flip(path, "/measurements/energy", SAVED, random)
    one_sentence(do("check", "a.h5"), "a.h5 is damaged, row 8 of measurements is not the one that was written")
    assert do("resume", "a.h5", "--quiet").status == 0
    assert do(*RUNS[job].split(), "--quiet", "--out", "whole.h5").status == 0
    assert contents(Path("a.h5"), *OWN) == contents(Path("whole.h5"), *OWN)


def test_a_search_whose_rows_are_all_there_does_not_adopt_damage(do, tmp_path) -> None:
    line = "anneal --size 4 --couplings pm-j --replicas 4 --steps 5 --sweeps 2 --anneals 3"
    assert do(*line.split(), "--quiet", "--out", "a.h5").status == 0
    path = tmp_path / "a.h5"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store.RunFile, "finish", lambda self, keep=False: None)
        assert do("resume", "a.h5", "--anneals", "5", "--quiet").status == 0
    flip(path, "/measurements/energy", 2, np.random.default_rng(30))
    for command in ("check", "resume"):
        one_sentence(do(command, "a.h5"), "row 2 of measurements is not the one that was written")


def test_extended_files_get_checksums(do, tmp_path) -> None:
    path = tmp_path / "a.h5"
    assert do(*RUNS["temper"].split(), "--quiet", "--out", "a.h5").status == 0
    content = cut_short(path, f"resume {path} --sweeps 100", 16, 15)
    assert do("check", "a.h5").status == 0
    with h5py.File(path, "r") as file:
        assert len(file[f"measurements/{CHECKSUM}"]) == len(file[f"tempering/{CHECKSUM}"]) == 16
    flip(path, "/tempering/permutation", 3, np.random.default_rng(31))
    one_sentence(do("resume", "a.h5"), "a.h5 is damaged, row 3 of tempering")
    path.write_bytes(content)
    assert do("resume", "a.h5", "--quiet").status == 0
    whole = RUNS["temper"].replace("--sweeps 70", "--sweeps 100")
    assert do(*whole.split(), "--quiet", "--out", "whole.h5").status == 0
    assert contents(path, *OWN, "config_sha256") == contents(Path("whole.h5"), *OWN, "config_sha256")


@pytest.mark.parametrize("name", ["unfinished-temper", "unfinished-anneal"])
def test_files_without_checksums_get_them_when_they_are_written(do, tmp_path, name) -> None:
    """Unfinished files of earlier versions are resumed as ever."""
    path = tmp_path / "a.h5"
    path.write_bytes(small_file(name))
    assert do("resume", "a.h5", "--quiet").status == 0
    assert ss.load(path).finished


@pytest.mark.parametrize("name", ["/", "/measurements", "/measurements/energy", "/model/couplings", "/best/energy"])
def test_a_text_that_is_none_is_refused_before_the_run_goes_on(do, name) -> None:
    """It would keep the finished file from being written, after everything was computed."""
    path = Path("a.h5")
    cut_short(path, f"{RUNS['temper']} --out a.h5")
    with h5py.File(path, "r+") as file:
        file[name].attrs.create("remark", b"\xff\xfe", dtype=h5py.string_dtype("utf-8", 2))
    before = path.read_bytes()
    for command in (["check", "a.h5"], ["resume", "a.h5"], ["resume", "a.h5", "--sweeps", "90"]):
        one_sentence(do(*command), "a.h5 is damaged, the attribute 'remark' of ", "is no text")
        assert path.read_bytes() == before


def test_checksums_do_not_depend_on_how_rows_are_taken_together() -> None:
    random = np.random.default_rng(1)
    values = {"b": random.random((5, 700)), "a": np.arange(5), "c": random.integers(0, 9, (5, 2, 3), np.int8)}
    together = row_checksums(values)
    one_by_one = [row_checksums({name: rows[k : k + 1] for name, rows in values.items()})[0] for k in range(5)]
    assert together.tolist() == one_by_one
    short = {name: rows for name, rows in values.items() if name != "b"}
    assert row_checksums(short)[1] == zlib.crc32(short["a"][1].tobytes() + short["c"][1].tobytes())
