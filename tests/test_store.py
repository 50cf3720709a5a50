"""Files: equal for equal runs, never overwritten, readable after any kill, and the same again when read back."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import h5py
import numpy as np
import pytest
import xarray

import spinsim as ss
from spinsim.errors import InputError

STAMPS = {"created", "finished", "command", "config"}  # the configuration names --out and --threads


def anneal(*flags: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "spinsim", "anneal", *map(str, flags)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)


def contents(path: Path) -> dict[str, object]:
    """Every dataset and attribute of a file, but for the stamps."""
    found: dict[str, object] = {}

    def visit(name: str, item: h5py.Dataset | h5py.Group) -> None:
        if isinstance(item, h5py.Dataset):
            found[name] = (item.dtype.str, item.shape, item.chunks, item[...].tobytes())
        for key in item.attrs:
            if key not in ("REFERENCE_LIST", "DIMENSION_LIST"):
                found[f"{name}@{key}"] = str(item.attrs[key])

    with h5py.File(path) as file:
        file.visititems(visit)
        found |= {f"@{key}": str(value) for key, value in file.attrs.items() if key not in STAMPS}
    return found


def test_equal_runs_make_equal_files(tmp_path: Path) -> None:
    common = ("--lattice", "cubic", "--size", 4, "--couplings", "pm-j", "--samples", 2, "--steps", 9, "--sweeps", 3)
    anneal(*common, "--out", "a.h5", "--threads", 1, cwd=tmp_path)
    anneal(*common, "--out", "b.h5", "--threads", 3, cwd=tmp_path)
    anneal(*common, "--out", "c.h5", "--seed", 2, cwd=tmp_path)
    first = contents(tmp_path / "a.h5")
    assert contents(tmp_path / "b.h5") == first
    other = contents(tmp_path / "c.h5")
    assert other["measurements/energy"] != first["measurements/energy"]
    assert other["model/couplings"] == first["model/couplings"]


def test_xarray_opens_the_groups_as_they_are(tmp_path: Path) -> None:
    ss.anneal(ss.EdwardsAnderson(ss.square(4), samples=2), [2.0, 1.0, 0.5], replicas=3).save(tmp_path / "r.h5")
    dimensions = {
        "measurements": {"step": 3, "sample": 2, "replica": 3},
        "best": {"sample": 2, "replica": 3, "site": 16},
        "model": {"sample": 2, "bond": 32, "end": 2},
    }
    for group, sizes in dimensions.items():
        with xarray.open_dataset(tmp_path / "r.h5", group=group, engine="h5netcdf") as data:
            assert dict(data.sizes) == sizes
            assert all("units" in variable.attrs for variable in data.data_vars.values())


MODELS = {
    "lattice": lambda: ss.Ising(ss.square(5, 3), 2.5, 0.25),
    "samples": lambda: ss.EdwardsAnderson(ss.cubic(3), samples=3, couplings="gaussian"),
    "graph": lambda: ss.Ising(
        ss.Graph(4, np.array([[0, 1], [1, 2]])), [1.0, -2.0], [0, 0, 0, 1.5], name="g", offset=3.0
    ),
    "maxcut": lambda: ss.Ising(ss.Graph(3, np.array([[0, 1], [1, 2]])), -1.0, maxcut_weight=2.0),
    "no bonds": lambda: ss.Ising(ss.chain(1), 1.0, 0.5),
    "open": lambda: ss.Ising(ss.chain(6, periodic=False)),
}


@pytest.mark.parametrize("name", MODELS)
def test_save_and_load(name: str, tmp_path: Path) -> None:
    model = MODELS[name]()
    for steps, replicas in ((1, 1), (1, 130), (2, 40), (1025, 3)):
        result = ss.anneal(model, np.linspace(2, 1, steps), sweeps=1, replicas=replicas)
        back = ss.load(result.save(tmp_path / f"{steps}-{replicas}.h5"))
        for field in ("temperature", "energy", "magnetization", "best_energy", "best_spins"):
            np.testing.assert_array_equal(getattr(back, field), getattr(result, field))
        assert back.model.content_sha256() == model.content_sha256()
        assert back.finished
        assert back.config == result.config
        np.testing.assert_array_equal(model.energy(back.best_spins), back.best_energy.min(axis=1))


def test_a_file_is_never_overwritten(tmp_path: Path) -> None:
    result = ss.anneal(ss.Ising(ss.square(4)), [1.0], replicas=2)
    before = result.save(tmp_path / "r.h5").read_bytes()
    with pytest.raises(InputError, match="never overwritten"):
        result.save(tmp_path / "r.h5")
    assert (tmp_path / "r.h5").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["r.h5"]


def test_a_finished_run_is_left_alone_and_another_refused(tmp_path: Path) -> None:
    flags = ("--size", 4, "--steps", 3, "--out", "r.h5")
    anneal(*flags, cwd=tmp_path)
    before = (tmp_path / "r.h5").read_bytes()
    again = anneal(*flags, cwd=tmp_path)
    assert again.returncode == 0
    assert "finished already" in again.stdout
    other = anneal(*flags, "--seed", 2, cwd=tmp_path)
    assert other.returncode == 2
    assert "another run" in other.stderr
    assert (tmp_path / "r.h5").read_bytes() == before


LONG = ("--size", 4, "--replicas", 40, "--steps", 60_000, "--sweeps", 1, "--quiet")


def kill_at_random(tmp_path: Path, kills: int) -> None:
    """Kill runs at random moments: every file opens, with rows equal to those of a whole run; the last is completed."""
    whole = anneal(*LONG, "--out", "whole.h5", cwd=tmp_path)
    assert whole.returncode == 0, whole.stderr
    expected = ss.load(tmp_path / "whole.h5")
    generator = random.Random(2026)
    rows = []
    for number in range(kills):
        path = tmp_path / f"{number}.h5"
        command = [sys.executable, "-m", "spinsim", "anneal", *map(str, LONG), "--out", path.name]
        with subprocess.Popen(command, cwd=tmp_path) as process:
            while not path.exists() and process.poll() is None:
                time.sleep(0.001)
            time.sleep(generator.uniform(0, 2.5))
            process.send_signal(signal.SIGKILL)
        got = ss.load(path)
        rows.append(len(got.temperature))
        np.testing.assert_array_equal(got.energy, expected.energy[: rows[-1]])
        np.testing.assert_array_equal(got.temperature, expected.temperature[: rows[-1]])
        if number:
            path.unlink()
    assert len(set(rows)) > 1
    assert anneal(*LONG, "--out", "0.h5", cwd=tmp_path).returncode == 0
    assert contents(tmp_path / "0.h5") == contents(tmp_path / "whole.h5")


def test_kills_leave_readable_files(tmp_path: Path) -> None:
    kill_at_random(tmp_path, 8)


@pytest.mark.slow
def test_many_kills_leave_readable_files(tmp_path: Path) -> None:
    kill_at_random(tmp_path, 150)
