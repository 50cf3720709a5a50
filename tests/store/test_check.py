"""``spinsim check`` reads everything: whole files pass, and whatever is changed in a finished one comes to light."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest
import xarray
from damage import FILES, small_file
from harness import one_sentence, run

import spinsim as ss

MODEL = "--size 4 --couplings pm-j --samples 2"
RUNS = {
    "anneal": f"anneal {MODEL} --replicas 4 --steps 6 --sweeps 2",
    "temper": f"temper {MODEL} --temperatures 0.9:2:3 --thermalize 10 --sweeps 60 --measure-every 5",
    "transfer": "transfer --layer chain --width 4 --couplings pm-j --samples 2 --k 0.4:0.5:2",
}
SERIES = {"anneal": "measurements/energy", "temper": "measurements/overlap", "transfer": "spectrum/gap"}


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
    rows = {"anneal": 6, "temper": 12, "transfer": 4}[job]
    assert outcome.out == f"a.h5: whole, finished: {rows} rows\n" * 2


def test_a_changed_number_comes_to_light(finished, check) -> None:
    """One bit of a compressed chunk, in a file that all readers would have to believe else."""
    job, content = finished
    Path("a.h5").write_bytes(content)
    with h5py.File("a.h5", "r") as file:
        chunk = file[SERIES[job]].id.get_chunk_info(0)
    data = bytearray(content)
    data[chunk.byte_offset + chunk.size // 2] ^= 4
    Path("a.h5").write_bytes(data)
    one_sentence(check("a.h5"), "a.h5 is damaged")


def change_the_model(file: h5py.File) -> None:
    file["model/couplings"][0, 0] *= -1


def change_the_seed(file: h5py.File) -> None:
    file.attrs["config"] = file.attrs["config"].replace('"seed":1', '"seed":9')


def change_the_identity(file: h5py.File) -> None:
    file.attrs["config_sha256"] = "0" * 64


@pytest.mark.parametrize("change", [change_the_model, change_the_seed, change_the_identity])
def test_parts_that_do_not_belong_together_come_to_light(finished, check, change) -> None:
    Path("a.h5").write_bytes(finished[1])
    with h5py.File("a.h5", "r+") as file:
        change(file)
    one_sentence(check("a.h5"), "a.h5 is damaged")


def test_every_file_has_its_line(check, tmp_path) -> None:
    for name in ("good", "bad"):
        (tmp_path / f"{name}.h5").write_bytes(small_file("anneal"))
    with h5py.File("bad.h5", "r+") as file:
        del file["best/spins"]
    outcome = check("bad.h5", "good.h5", "none.h5")
    assert outcome.status == 2
    assert outcome.out == "good.h5: whole, finished: 5 rows, which carry no checksums of their own\n"
    assert [line.split(" ")[1] for line in outcome.err.splitlines()] == ["bad.h5", "none.h5"]
    assert "/best/spins is missing" in outcome.err


STORED = sorted(str(path.relative_to(FILES)).removesuffix(".h5.gz") for path in FILES.rglob("*.h5.gz"))


@pytest.mark.parametrize("name", STORED)
def test_files_of_earlier_versions_stay_readable(check, capsys, monkeypatch, tmp_path, name) -> None:
    path = tmp_path / "a.h5"
    path.write_bytes(small_file(name))
    assert check("a.h5").status == 0
    result = ss.load(path)
    assert result.finished == ("unfinished" not in name)
    commands = ["show a.h5", "show --json a.h5"]
    commands += {
        "anneal": ["plot a.h5"],
        "transfer": ["plot a.h5"],
        "temper": ["analyze a.h5", "plot a.h5 --what overlap"],
        "packed/temper": ["analyze a.h5"],
        "packed/temper-configurations": ["analyze a.h5 --from-configurations"],
    }.get(name, [])
    for command in commands:
        outcome = run(capsys, monkeypatch, *command.split())
        assert outcome.status == 0, outcome
    assert np.isfinite(ss.load(path).model.couplings).all()


WAYS = ("resume", "command")
UNFINISHED = [name for name in STORED if "unfinished" in name]


@pytest.mark.parametrize(
    ("name", "ways"),
    [
        *((name, (WAYS[number % 2],)) for number, name in enumerate(UNFINISHED)),
        *(pytest.param(name, WAYS, marks=pytest.mark.slow) for name in UNFINISHED),
    ],
)
def test_unfinished_files_of_earlier_versions_are_completed(do, capsys, monkeypatch, tmp_path, name, ways) -> None:
    """By ``resume`` or by their command, with the numbers of the whole run."""
    whole = None
    for again in ways:
        folder = tmp_path / again
        folder.mkdir()
        path = folder / f"{Path(name).name}.h5"
        path.write_bytes(small_file(name))
        command = ss.load(path).attributes["command"].split(maxsplit=1)[1]
        if not name.startswith("packed"):  # by that version, which took every grid as geometric
            command = command.replace("0.8:2:3 ", "0.8:2:3g ")
        measured = " --magnetization-modes" if command.startswith("temper") else ""  # now left out by default
        whole = whole or do(command + measured, "whole")
        do(f"resume {path.name} --quiet" if again == "resume" else command, again)
        assert ss.load(path).finished
        found = ss.load(path).dataset()  # without series that a later version began to measure
        expected = ss.load(whole).dataset()[list(found)]
        if "transfer" in name:  # another LAPACK made some rows: its last digits, and bases of degenerate levels, differ
            found, expected = (one.drop_vars("sigma") for one in (found, expected))
            xarray.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-13)
        else:
            xarray.testing.assert_equal(found, expected)


@pytest.mark.parametrize(
    ("where", "site", "words"),
    [
        ((3, 0), 10**6, "edge end 1000000 is not a site"),
        ((5, 1), 10**6, "edge end 1000000 is not a site"),
        ((5, 1), 0, "bonds of its model are not those of its lattice"),
    ],
)
def test_bonds_that_are_not_those_of_the_lattice(capsys, monkeypatch, tmp_path, where, site, words) -> None:
    """These ended in a segmentation fault."""
    path = tmp_path / "a.h5"
    path.write_bytes(small_file("unfinished-temper"))
    with h5py.File(path, "r+") as file:
        file["model/edges"][where] = site
    for command in ("resume", "show", "check"):
        one_sentence(run(capsys, monkeypatch, command, path), "is damaged", words)
    with h5py.File(path, "r+") as file:
        file["model"].attrs["sites"] = 28
    one_sentence(run(capsys, monkeypatch, "resume", path), "is damaged", "28 sites")


def test_a_file_of_a_later_version(check) -> None:
    Path("a.h5").write_bytes(small_file("anneal"))
    with h5py.File("a.h5", "r+") as file:
        file.attrs["schema"] = "spinsim/2"
    one_sentence(check("a.h5"), "spinsim/2", "reads spinsim/1", "use a newer spinsim")
