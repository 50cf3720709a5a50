"""Machine code on disk: found by other processes, made anew where it is damaged, and never a reason to fail."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from harness import run

import spinsim as ss
from spinsim.engine.moves.metropolis.replica_packed import cpu as tempering
from spinsim.engine.moves.metropolis.replica_packed import cpu_sweep
from spinsim.machine import compiled, stored
from spinsim.model import graph

MUTANTS = 60
STAMP = stored._stamp("spinsim.model.graph.any")


@pytest.fixture
def kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder for machine code, in place of the one that tests share."""
    monkeypatch.setattr(stored, "_folders", lambda: [tmp_path / "kernels"])
    for steps in ("STEPS_BEFORE_LOADING", "STEPS_BEFORE_COMPILING"):
        monkeypatch.setattr(compiled, steps, -1)
    yield tmp_path / "kernels"
    for entry in _compiled().values():
        compiled.forget(entry)


def _compiled() -> dict[str, compiled.Compiled]:
    return {name: item for name, item in vars(graph).items() if isinstance(item, compiled.Compiled)}


def colour() -> tuple[list[int], list[str]]:
    """Colour a square of four sites as a new process would; the kernels that were compiled."""
    for entry in _compiled().values():
        compiled.forget(entry)
    before = len(compiled.COMPILED)
    found = graph.colouring(ss.Graph(4, np.array([[0, 1], [1, 2], [2, 3], [0, 3]])))
    return found.tolist(), [name for name, _ in compiled.COMPILED[before:]]


def mutant(content: bytes, rng: np.random.Generator) -> bytes:
    """Damage a file: nothing left, cut short, some bytes changed, longer, or noise."""
    kind = rng.integers(6)
    if kind == 0:
        return b""
    if kind == 1:
        return content[: rng.integers(len(content))]
    if kind == 2:
        return rng.bytes(int(rng.integers(1, 2 * len(content))))
    if kind == 3:
        return content + rng.bytes(int(rng.integers(1, 100)))
    changed = bytearray(content)
    for at in rng.integers(len(content), size=rng.integers(1, 4)):
        changed[at] ^= int(rng.integers(1, 256))
    return bytes(changed)


def test_damaged_machine_code_is_made_anew(kernels: Path) -> None:
    """Of any damage nothing is said: what a file is good for is decided before its content is looked at."""
    first, made = colour()
    files = sorted(kernels.iterdir())
    assert len(files) == len(made) == 2
    whole = {path: path.read_bytes() for path in files}
    assert colour() == (first, [])
    rng = np.random.default_rng(2128)
    for path, content in whole.items():
        for _ in range(MUTANTS):
            path.write_bytes(mutant(content, rng))
            assert path.read_bytes() == content or stored._read(path, STAMP) is None
        path.write_bytes(mutant(content, rng))
    again, mended = colour()
    assert again == first
    assert mended == made
    assert sorted(kernels.iterdir()) == files
    assert colour() == (first, [])


def test_code_of_other_sources_is_out_of_date(kernels: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, made = colour()
    monkeypatch.setattr(stored, "_stamp", lambda kernel: f"{STAMP} changed")
    assert colour()[1] == made
    assert len(list(kernels.iterdir())) == 2


def test_code_that_needs_what_is_not_there_is_compiled(kernels: Path) -> None:
    """LLVM would end the process at a symbol that nobody has, such as that of a library of vectors."""
    first, made = colour()
    for path in kernels.iterdir():
        code = stored._read(path, STAMP)
        assert code is not None
        changed = code._replace(needs=(*code.needs, "spinsim_nobody_has_this"))
        assert stored._load("colouring", changed) is None
    assert colour() == (first, [])
    assert made


def test_folders_that_take_no_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kernels: Path) -> None:
    """A file where a folder should be, a folder where a file should be: kernels stay in memory."""
    first, made = colour()
    names = [path.name for path in kernels.iterdir()]
    (tmp_path / "file").touch()
    monkeypatch.setattr(stored, "_folders", lambda: [tmp_path / "file" / "kernels"])
    assert colour() == (first, made)
    for name in names:
        (tmp_path / "taken" / name).mkdir(parents=True)
    monkeypatch.setattr(stored, "_folders", lambda: [tmp_path / "taken", tmp_path / "second"])
    assert colour() == (first, made)
    assert colour() == (first, [])
    assert len(list((tmp_path / "second").iterdir())) == len(made)


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
@pytest.mark.skipif(hasattr(os, "geteuid") and os.geteuid() == 0, reason="nothing is forbidden to root")
def test_a_damaged_file_that_cannot_be_replaced(kernels: Path) -> None:
    first, made = colour()
    for path in kernels.iterdir():
        path.write_bytes(b"")
    kernels.chmod(0o500)
    try:
        assert colour() == (first, made)
    finally:
        kernels.chmod(0o700)


def test_functions_of_users_are_not_kept(kernels: Path) -> None:
    """Their sources are nobody's business, so that nothing says when they have changed."""
    assert compiled.body(lambda values: values.sum())(np.ones(3)) == 3
    assert not kernels.exists()


def test_an_end_of_file_is_no_interruption(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The parser of commands takes an EOFError for the end of what a user types: exit status 130 without a word."""

    def fail(*arguments: object, **options: object) -> None:
        raise EOFError("Ran out of input")

    monkeypatch.setattr("spinsim.jobs.anneal.run.create_engine", fail)
    with pytest.raises(EOFError, match="Ran out of input"):
        run(capsys, monkeypatch, "anneal", "--size", "4", "--steps", "2")


def test_time_limits_count_no_compiling(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel that takes longer than the search may leaves it all its time."""
    model, seconds, find = ss.EdwardsAnderson(ss.square(6), seed=1), 0.15, stored.find

    def slow(kernel: str, types: str) -> object:
        time.sleep(seconds)
        return find(kernel, types)

    def forget() -> None:
        for kernel in (cpu_sweep.sweep_packed, tempering.temper_samples):
            compiled.forget(kernel)

    monkeypatch.setattr(stored, "find", slow)
    for search in (
        lambda: ss.temper(model, [1.0, 2.0], time_limit=seconds / 3, device="cpu", threads=1),
        lambda: ss.anneal(model, [2.0, 1.0], sweeps=5, time_limit=seconds / 3, device="cpu", threads=1),
    ):
        search()
        forget()
        before, began = compiled.compiling_seconds(), time.perf_counter()
        search()
        assert compiled.compiling_seconds() - before >= seconds
        assert time.perf_counter() - began >= 4 / 3 * seconds


LOADED = """
import sys
import numpy as np
import spinsim as ss
from spinsim.machine.compiled import COMPILED
model = ss.EdwardsAnderson(ss.cubic(4), seed=3)
result = ss.anneal(model, [2.0], sweeps=1, replicas=2, device="cpu")
assert not COMPILED, COMPILED
print([name for name in ("numba", "scipy", "rich", "cupy") if name in sys.modules])
from numba import njit
@njit
def total(values):
    found = np.zeros(3)
    for value in values:
        found += value
    return found.reshape(3, 1).sum()
assert total(np.ones(5)) == 15
again = ss.anneal(model, [2.0], sweeps=1, replicas=2, device="cpu")
assert np.array_equal(again.energy, result.energy)
"""


@pytest.mark.system
def test_a_run_that_finds_its_kernels_loads_no_compiler() -> None:
    """Numba's functions in C are there without Numba, and Numba finds them where it is loaded later."""
    ss.anneal(ss.EdwardsAnderson(ss.cubic(4), seed=3), [2.0], sweeps=1, replicas=2, device="cpu")
    done = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    loaded = done.stdout.strip()
    assert loaded in ("[]", "['cupy']"), loaded
