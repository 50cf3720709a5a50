"""Rows that grow beyond memory lie in segments: the same bits, written once, verified, joined at the end or not."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import xarray
from harness import at_row, contents, finish, interrupt, one_sentence, run, spinsim

import spinsim as ss
from spinsim.errors import InputError
from spinsim.run import identity, recording
from spinsim.store import files, segments

OWN = ("command", "config", "history")
MODEL = "--lattice cubic --size 3 --couplings pm-j --samples 2"
RUNS = {
    "anneal": f"anneal {MODEL} --steps 40 --sweeps 2 --replicas 9 --save-configurations 1",
    "temper": f"temper {MODEL} --temperatures 0.9,1.4,2 --thermalize 4 --sweeps 400 --save-configurations 1",
}
SMALL = "from spinsim.run import recording; recording.SEGMENTED = 100\n"
APART = SMALL + "from spinsim.store import files; files._JOINED = 0\n"


@pytest.fixture(autouse=True)
def _small(monkeypatch) -> None:
    monkeypatch.setattr(recording, "SEGMENTED", 100)
    monkeypatch.setattr("spinsim.engine.cpu.AT_ONCE", 1)


@pytest.fixture
def apart(monkeypatch) -> None:
    """Finished files leave segments where they are."""
    monkeypatch.setattr(files, "_JOINED", 0)


def listed(path: Path) -> list[segments.Segment]:
    return files.listed_in(files.read(path))


def temper(path: Path, **options: Any) -> Any:
    model = ss.EdwardsAnderson(ss.cubic(3), samples=2, seed=1)
    how = {"sweeps": 400, "thermalize": 4, "save_configurations": 1, "checkpoint_every": 0} | options
    return ss.temper(model, [0.9, 1.4, 2.0], out=path, **how)


@pytest.fixture(scope="module")
def whole() -> Any:
    """The run in memory."""
    model = ss.EdwardsAnderson(ss.cubic(3), samples=2, seed=1)
    return ss.temper(model, [0.9, 1.4, 2.0], sweeps=400, thermalize=4, save_configurations=1)


def assert_same(one: Any, other: Any) -> None:
    for name in ("energy", "overlap", "permutation", "accepts", "best_energy", "best_spins"):
        assert np.array_equal(getattr(one, name), getattr(other, name)), name
    assert np.array_equal(one.configurations[:], other.configurations[:])
    assert np.array_equal(one.configurations.sweep, other.configurations.sweep)


def test_a_finished_file_takes_its_segments_in(tmp_path, whole) -> None:
    found = temper(tmp_path / "a.h5")
    assert [one.name for one in tmp_path.iterdir()] == ["a.h5"]
    for result in (found, ss.load(tmp_path / "a.h5")):
        assert_same(result, whole)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recording, "SEGMENTED", 2**26)
        temper(tmp_path / "b.h5")
    assert contents(tmp_path / "a.h5", *OWN) == contents(tmp_path / "b.h5", *OWN)


@pytest.mark.usefixtures("apart")
def test_large_files_leave_them_beside(tmp_path, whole, capsys, monkeypatch) -> None:
    path = tmp_path / "a.h5"
    found = temper(path)
    names = sorted(one.name for one in (tmp_path / "a.h5.parts").iterdir())
    assert names == [Path(one.name).name for one in sorted(listed(path))]
    assert len(names) > 4
    assert sum(one.rows for one in listed(path) if "configurations" in one.name) == 40
    for result in (found, ss.load(path)):
        assert_same(result, whole)
    assert run(capsys, monkeypatch, "check", path).out == f"{path}: whole, finished: 40 rows\n"
    with xarray.open_dataset(path, group="configurations", engine="h5netcdf") as data:
        assert data.spins.shape == (40, 2, 2, 3, 4)
        assert np.array_equal(data.spins[7], np.asarray(found.record["configurations/spins"])[7])
    assert run(capsys, monkeypatch, "analyze", path).status == 0
    assert "summary" in ss.load(path).record.groups
    assert_same(ss.load(path), whole)


@pytest.mark.parametrize("joined", [True, False])
@pytest.mark.parametrize("job", RUNS)
def test_an_interrupted_run_is_completed_with_the_same_bits(do, monkeypatch, job, joined) -> None:
    if not joined:
        monkeypatch.setattr(files, "_JOINED", 0)
    whole = do(RUNS[job], "whole")
    for at in (3, 17, 30):
        with pytest.MonkeyPatch.context() as patch:
            at_row(patch, at, interrupt)
            part = do(f"{RUNS[job]} --checkpoint-every 0", "part", status=130)
        assert len(listed(part)) > 0, at
        saved = ss.configurations(part)
        assert np.array_equal(saved[:], ss.configurations(whole)[: len(saved)])
        assert 0 < saved.shape[0] <= at
    do(f"{RUNS[job]} --checkpoint-every 0", "part")
    found, expected = ss.load(part), ss.load(whole)
    assert np.array_equal(found.energy, expected.energy)
    assert np.array_equal(found.configurations[:], expected.configurations[:])
    assert (part.parent / f"{part.name}.parts").exists() == (not joined)
    if joined:
        assert contents(part, *OWN) == contents(whole, *OWN)


@pytest.mark.parametrize("joined", [True, False])
def test_a_longer_run_goes_on_in_segments(tmp_path, monkeypatch, whole, joined) -> None:
    if not joined:
        monkeypatch.setattr(files, "_JOINED", 0)
    temper(tmp_path / "a.h5", sweeps=200)
    assert_same(ss.resume(tmp_path / "a.h5", sweeps=400), whole)
    assert_same(ss.load(tmp_path / "a.h5"), whole)


@pytest.mark.system
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL here")
@pytest.mark.parametrize("code", [SMALL, APART], ids=["joined", "apart"])
def test_kill_9(tmp_path, do, code) -> None:
    line = RUNS["temper"].replace("--sweeps 400", "--sweeps 4000")
    whole, folder, random, met = do(line, "whole"), tmp_path / "killed", np.random.default_rng(5), 0
    folder.mkdir()
    command = [*line.split(), "--out", "k.h5", "--quiet", "--checkpoint-every", "0"]
    for _ in range(6):
        process = spinsim(folder, *command, code=code)
        while not (folder / "k.h5").exists():
            assert process.poll() is None
            time.sleep(0.002)
        time.sleep(random.uniform(0, 0.8))
        process.send_signal(signal.SIGKILL)
        met += process.communicate() is not None and process.returncode == -signal.SIGKILL
        saved = ss.configurations(folder / "k.h5")
        assert np.array_equal(saved[:], ss.configurations(whole)[: len(saved)])
    assert met > 0
    assert finish(spinsim(folder, *command, code=code)).status == 0
    found, expected = ss.load(folder / "k.h5"), ss.load(whole)
    assert found.finished
    assert np.array_equal(found.energy, expected.energy)
    assert np.array_equal(found.configurations[:], expected.configurations[:])
    assert sorted(one.name for one in folder.iterdir()) == ["k.h5", "k.h5.parts"][: 1 + (code == APART)]


KILLED = """
import os, signal
from spinsim.store import files
written, calls = files._written_segment, []
def killed(path, record, folder):
    calls.append(0)
    if len(calls) == 5:
        path.with_name(f".{path.name}-abcdefgh.spinsim-part").write_bytes(b"half")
        os.kill(os.getpid(), signal.SIGKILL)
    return written(path, record, folder)
files._written_segment = killed
"""


@pytest.mark.system
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL here")
def test_kill_9_in_the_middle_of_a_segment(tmp_path, do) -> None:
    whole, folder = do(RUNS["temper"], "whole"), tmp_path / "killed"
    folder.mkdir()
    line = [*RUNS["temper"].split(), "--out", "k.h5", "--quiet", "--checkpoint-every", "0"]
    code = SMALL + "import spinsim.engine.cpu as c; c.AT_ONCE = 1\n" + KILLED
    assert finish(spinsim(folder, *line, code=code)).status == -signal.SIGKILL
    assert list(folder.glob("k.h5.parts/.*"))
    assert not ss.load(folder / "k.h5").finished
    assert finish(spinsim(folder, "resume", "k.h5", "--quiet", code=SMALL)).status == 0
    assert contents(folder / "k.h5", *OWN) == contents(whole, *OWN)
    assert [one.name for one in folder.iterdir()] == ["k.h5"]


@pytest.fixture
def cut(tmp_path) -> Path:
    """An unfinished file with segments."""
    with pytest.MonkeyPatch.context() as patch:
        at_row(patch, 25, interrupt)
        with pytest.raises(KeyboardInterrupt):
            temper(tmp_path / "a.h5")
    return tmp_path / "a.h5"


@pytest.mark.parametrize("how", ["flipped", "cut", "missing", "swapped", "text", "another"])
def test_a_damaged_or_missing_segment_is_told(cut, capsys, monkeypatch, how) -> None:
    names = [one.name for one in listed(cut) if "configurations" in one.name]
    path, other = cut.parent / names[1], cut.parent / names[2]
    content = path.read_bytes()
    if how == "flipped":
        altered = bytearray(content)
        altered[-100] ^= 1
        path.write_bytes(altered)
    elif how == "cut":
        path.write_bytes(content[:-10])
    elif how == "missing":
        path.unlink()
    elif how == "swapped":
        path.write_bytes(other.read_bytes())
        other.write_bytes(content)
    elif how == "text":
        path.write_text("dear reader")
    else:
        files.save_new(path.with_name("other.h5"), ss.load(cut).record)
        path.with_name("other.h5").replace(path)
    words = "which has rows of a run, " + (
        "cannot be read: put it back where it was" if how in ("missing", "text") else "is damaged: take another copy"
    )
    one_sentence(run(capsys, monkeypatch, "check", cut), names[1], words)
    assert run(capsys, monkeypatch, "show", cut).status in (0, 2)
    with pytest.raises(InputError, match="which has rows of a run"):
        ss.configurations(cut)[:]
    one_sentence(run(capsys, monkeypatch, "resume", cut), "which has rows of a run")
    assert not files.read(cut).attributes.get("finished")


def test_a_segment_is_no_run(cut, capsys, monkeypatch) -> None:
    path = cut.parent / listed(cut)[0].name
    for command in ("show", "check", "resume"):
        one_sentence(run(capsys, monkeypatch, command, path), "has rows of a run and is no run itself: give the run's")


def test_segments_of_another_run_are_never_overwritten(cut) -> None:
    """The run's file was moved or removed, its segments were not."""
    kept = cut.rename(cut.with_name("b.h5"))
    before = ss.configurations(kept)[:]
    with pytest.raises(
        InputError, match=r"a\.h5\.parts has rows of another run, which are never overwritten: move it, or"
    ):
        temper(cut)
    assert not cut.exists()
    assert np.array_equal(ss.configurations(kept)[:], before)
    assert ss.resume(kept).finished


def test_a_file_that_is_moved_while_a_run_writes_it_is_kept_under_another_name(tmp_path, whole) -> None:
    """Both go on with the segments that are there."""
    path, moved = tmp_path / "a.h5", tmp_path / "b.h5"
    with pytest.MonkeyPatch.context() as patch:
        at_row(patch, 20, lambda: path.rename(moved))
        with pytest.raises(InputError, match=r"a\.h5 was moved, removed or replaced .* kept in .*a-1\.h5"):
            temper(path)
    for one in (tmp_path / "a-1.h5", moved):
        assert len(ss.load(one).energy) >= 19
        assert_same(ss.resume(one), whole)
        assert_same(ss.load(one), whole)


def test_a_folder_that_is_deleted_while_a_run_writes_it_has_lost_its_rows(tmp_path) -> None:
    folder = tmp_path / "new"
    with pytest.MonkeyPatch.context() as patch:
        at_row(
            patch, 20, lambda: shutil.rmtree(folder.rename(tmp_path / "gone"))
        )  # at one stroke, as a file may be new
        with pytest.raises(InputError, match="and the rows beside it have gone too: begin the run anew"):
            temper(folder / "a.h5")
    assert not folder.exists() or not list(folder.iterdir())  # a segment may have been written since
    assert temper(folder / "a.h5").finished


def test_a_checkpoint_does_not_write_segments_again(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(recording, "SEGMENTED", 2**16)  # configurations alone
    sizes: list[int] = []
    write = files.write_into

    def counted(disk: Any, record: Any) -> Any:
        seal = write(disk, record)
        if "config" in record.attributes:
            sizes.append(seal.size)
        return seal

    monkeypatch.setattr(files, "write_into", counted)
    written: list[tuple[str, int]] = []
    segment = files._written_segment

    def once(path: Path, record: Any, folder: Path) -> Any:
        written.append((path.name, path.exists()))
        return segment(path, record, folder)

    monkeypatch.setattr(files, "_written_segment", once)
    monkeypatch.setattr(files, "_JOINED", 0)
    model = ss.EdwardsAnderson(ss.cubic(24), samples=4, seed=1)
    grown = []
    for every in (0, 1):
        sizes.clear()
        path = tmp_path / f"{every}.h5"
        ss.temper(
            model, [0.9, 1.4, 2.0], sweeps=400, thermalize=0, save_configurations=every, checkpoint_every=0, out=path
        )
        grown.append(sizes[-2] - sizes[1])
    assert len({name for name, _ in written}) == len(written)
    assert not any(there for _, there in written)
    assert sum(one.rows for one in listed(path)) == 40
    a_row = 4 * 2 * 3 * 1728  # bytes of configurations
    assert grown[1] - grown[0] < 30 * a_row / 10


@pytest.mark.usefixtures("apart")
def test_many_rows_take_disk_and_no_memory(tmp_path) -> None:
    """A run of a gigabyte of configurations, of which little waits in memory."""
    pytest.importorskip("resource")
    done = subprocess.run([sys.executable, "-c", GROW], cwd=tmp_path, capture_output=True, text=True, check=True)
    disk, half, end = map(int, done.stdout.split())
    assert disk > 150 * 2**20
    assert end - half < 2**16  # KiB


GROW = """
import os, resource
import numpy as np
from pathlib import Path
from spinsim.run import identity, recording
from spinsim.store import files
recording.SEGMENTED, recording._PENDING, files._JOINED = 100, 2**24, 0
import spinsim as ss
from spinsim.run.recording import Recording
room, write = [], Recording.write
def written(self, row):
    write(self, row)
    room.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
Recording.write = written
model = ss.EdwardsAnderson(ss.square(256, 256), seed=1)
ss.anneal(model, np.linspace(3, 1, 80), sweeps=1, replicas=256, save_configurations=1, out="long.h5")
print(sum(p.stat().st_size for p in Path("long.h5.parts").iterdir()), room[len(room) // 2], room[-1])
"""


def test_a_file_of_no_rows_is_whole(tmp_path, capsys, monkeypatch) -> None:
    """Before the first checkpoint there are no segments."""
    with pytest.MonkeyPatch.context() as patch:
        at_row(patch, 0, interrupt)
        with pytest.raises(KeyboardInterrupt):
            temper(tmp_path / "a.h5", checkpoint_every=1000)
    path = tmp_path / "a.h5"
    assert len(ss.configurations(path)) == 0
    with h5py.File(path, "r+") as file:
        file.attrs["mine"] = 1
    assert "added to it, not finished: 0 rows" in run(capsys, monkeypatch, "check", path).out


@pytest.mark.usefixtures("apart")
def test_a_longer_run_that_keeps_fewer_rows_leaves_its_segments_until_it_has_others(tmp_path) -> None:
    path, model = tmp_path / "a.h5", ss.EdwardsAnderson(ss.square(4), samples=2, seed=1)
    how = {"temperatures": "0.9:2:4", "thermalize": 20, "measure_every": 2, "seed": 9, "series_limit": 0.02}
    short = ss.temper(model, sweeps=800, out=path, **how)
    assert listed(path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files.RunFile, "write", lambda self, *given, **how: interrupt())  # once segments are written
        with pytest.raises(KeyboardInterrupt):
            ss.resume(path, sweeps=3200, checkpoint_every=0)
    assert identity.verify(path).startswith("whole, finished")
    assert np.array_equal(ss.load(path).energy, short.energy)
    found, whole = ss.resume(path, sweeps=3200), ss.temper(model, sweeps=3200, **how)
    assert len(found.energy) < 4 * len(short.energy)
    for name in ("sweep", "energy", "overlap", "permutation"):
        assert np.array_equal(getattr(found, name), getattr(whole, name)), name
        assert np.array_equal(getattr(ss.load(path), name), getattr(whole, name)), name
