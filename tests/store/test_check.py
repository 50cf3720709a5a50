"""``spinsim check`` reads everything: whole files pass, and whatever is changed in one comes to light."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import h5py
import pytest
from harness import one_sentence, run

MODEL = "--size 4 --couplings pm-j --samples 2"
RUNS = {
    "anneal": f"anneal {MODEL} --replicas 4 --steps 6 --sweeps 2 --save-configurations 2",
    "temper": f"temper {MODEL} --temperatures 0.9:2:3 --thermalize 10 --sweeps 60 --measure-every 5",
    "quantum": "quantum --size 2 --slices 4 --k 0.3,0.4 --thermalize 4 --sweeps 40 --measure-every 5",
    "transfer": "transfer --layer chain --width 4 --couplings pm-j --samples 2 --k 0.4:0.5:2",
}
ROWS = {"anneal": 6, "temper": 12, "quantum": 8, "transfer": 4}


@pytest.fixture(scope="module", params=RUNS)
def finished(request, tmp_path_factory) -> tuple[str, bytes]:
    """A job and the content of a finished file of it."""
    path = tmp_path_factory.mktemp("run") / "a.h5"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.argv", ["spinsim", *RUNS[request.param].split(), "--quiet", "--out", str(path)])
        from spinsim.cli import main

        with pytest.raises(SystemExit) as leaving:
            main()
    assert leaving.value.code == 0
    return request.param, path.read_bytes()


@pytest.fixture
def check(capsys, monkeypatch, tmp_path) -> Callable[..., object]:
    monkeypatch.chdir(tmp_path)
    return lambda *files: run(capsys, monkeypatch, "check", *files)


def test_whole_files_pass(finished, check) -> None:
    job, content = finished
    Path("a.h5").write_bytes(content)
    outcome = check("a.h5", "a.h5")
    assert (outcome.status, outcome.err) == (0, "")
    assert outcome.out == f"a.h5: whole, finished: {ROWS[job]} rows\n" * 2


def test_one_changed_bit_of_any_array_comes_to_light(finished, check, capsys, monkeypatch) -> None:
    _, content = finished
    places = []
    Path("a.h5").write_bytes(content)
    with h5py.File("a.h5", "r") as file:
        file.visititems(lambda name, item: places.append((name, item)) if isinstance(item, h5py.Dataset) else None)
        places = [(name, item.id.get_offset(), item.id.get_storage_size()) for name, item in places]
    arrays = [(name, at + size // 2) for name, at, size in places if at is not None and size]
    assert len(arrays) > 5
    for name, at in arrays:
        data = bytearray(content)
        data[at] ^= 4
        Path("a.h5").write_bytes(data)
        one_sentence(check("a.h5"), "a.h5 is damaged, parts of it are not as spinsim wrote them: take another copy")
        if name.endswith("energy"):
            one_sentence(run(capsys, monkeypatch, "resume", "a.h5"), "a.h5 is damaged")
        assert Path("a.h5").read_bytes() == data


def change_the_model(file: h5py.File) -> None:
    (name,) = {"couplings", "edges"} & set(file["model"]) - {"edges"} or {"edges"}
    file[f"model/{name}"][0, 0] = -file[f"model/{name}"][0, 0] + 7


def change_the_seed(file: h5py.File) -> None:
    file.attrs["config"] = file.attrs["config"].replace('"seed":1', '"seed":9')


def change_the_identity(file: h5py.File) -> None:
    file.attrs["config_sha256"] = "0" * 64


def change_the_dynamics(file: h5py.File) -> None:
    file.attrs["dynamics"] = "two"


def change_the_end(file: h5py.File) -> None:
    del file.attrs["finished"]


@pytest.mark.parametrize(
    "change", [change_the_model, change_the_seed, change_the_identity, change_the_dynamics, change_the_end]
)
def test_parts_that_another_program_changed_come_to_light(finished, check, change) -> None:
    Path("a.h5").write_bytes(finished[1])
    with h5py.File("a.h5", "r+") as file:
        change(file)
    one_sentence(check("a.h5"), "a.h5 is damaged")


def test_every_file_has_its_line(finished, check) -> None:
    job, content = finished
    Path("good.h5").write_bytes(content)
    Path("bad.h5").write_bytes(content[:-1])
    Path("more.h5").write_bytes(content)
    with h5py.File("more.h5", "r+") as file:
        file.attrs["mine"] = 1
    outcome = check("bad.h5", "good.h5", "none.h5", "more.h5")
    assert outcome.status == 2
    rows = f"finished: {ROWS[job]} rows\n"
    added = "all that spinsim wrote is whole, other programs have added to it"
    assert outcome.out == f"good.h5: whole, {rows}more.h5: {added}, {rows}"
    assert outcome.err == (
        "spinsim: bad.h5 is damaged, its bytes are not those of its SHA-256: take another copy of it\n"
        "spinsim: none.h5 is not there: give the path of a spinsim file\n"
    )
