"""Damaged files of every job: one sentence, nothing written, nothing adopted, no end of the process, no waiting."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import damage
import h5py
import numpy as np
import pytest
from harness import at_row, interrupt

import spinsim as ss

LIMIT = 60  # seconds for a command
WAITED = "no answer in time:"
ADDED = "all that spinsim wrote is whole, other programs have added to it"
MODEL = "--size 3 --couplings pm-j --samples 2"
LINES = {
    "anneal": f"anneal {MODEL} --replicas 4 --steps 6 --sweeps 2",
    "search": f"anneal {MODEL} --replicas 4 --steps 6 --sweeps 2 --anneals 2",
    "configurations": f"anneal {MODEL} --replicas 4 --steps 6 --sweeps 2 --save-configurations 2",
    "temper": f"temper {MODEL} --temperatures 0.9:2:3 --thermalize 4 --sweeps 160 --save-configurations 4",
    "sums": f"temper {MODEL} --temperatures 0.9:2:3 --thermalize 4 --sweeps 160 --series none",
    "quantum": "quantum --size 2 --slices 4 --k 0.3,0.4 --thermalize 4 --sweeps 160",
    "evolve": f"evolve {MODEL} --replicas 4 --waiting 2,8 --save-configurations 3",
    "transfer": "transfer --layer chain --width 4 --couplings pm-j --samples 2 --k 0.4:0.5:2",
}
CUT = {"anneal": 4, "temper": 12, "transfer": 3, "evolve": 9}  # rows before which a run is interrupted
COMMANDS = ["show", "check", "resume --quiet", "check", "analyze", "resume --quiet", "show --json", "check"]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """A small file of each kind of run, finished, and of some a file that was cut short."""
    from spinsim import cli

    folder, paths = tmp_path_factory.mktemp("whole"), []
    for name, line in LINES.items():
        for cut in (None, CUT.get(name)):
            path = folder / f"{name}-{'whole' if cut is None else 'cut'}.h5"
            if path in paths:
                continue
            with pytest.MonkeyPatch.context() as patch:
                if cut is not None:
                    patch.setattr("spinsim.engine.cpu.AT_ONCE", 1)
                    at_row(patch, cut, interrupt)
                words = [*line.split(), "--quiet", "--device", "cpu", "--checkpoint-every", "0", "--out", str(path)]
                patch.setattr("sys.argv", ["spinsim", *words])
                with pytest.raises(SystemExit) as leaving:
                    cli.main()
            assert leaving.value.code == (0 if cut is None else 130)
            assert ss.load(path).finished == (cut is None)
            paths.append(path)
    return paths


class Worker:
    """A process that shows damaged files to commands; a new one takes over where it ends or waits."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.process, self.errors = folder, None, folder / "errors.txt"

    def ask(self, case: str) -> list[Any]:
        """Outcome of a case, as ``damage`` says it."""
        if self.process is None:
            with self.errors.open("w") as errors:
                self.process = subprocess.Popen(
                    [sys.executable, "-X", "faulthandler", damage.__file__],
                    cwd=self.folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True,
                )  # fmt: skip
        process = self.process
        process.stdin.write(f"{case}\n")
        process.stdin.flush()
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            line = process.stdout.readline() if selector.select(LIMIT) else self.where_it_waits()
        if line.startswith("["):
            return json.loads(line)
        self.close()
        return [line or "the process ended", "crash", "", self.errors.read_text()[-2000:], False, False]

    def where_it_waits(self) -> str:
        """The innermost function of a process that does not answer, which ends it."""
        self.process.send_signal(signal.SIGABRT)
        self.process.wait()
        frames = [line.strip() for line in self.errors.read_text().splitlines() if line.startswith('  File "')]
        return f"{WAITED} {frames[0] if frames else ''}"

    def close(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.communicate()
            self.process = None


@pytest.fixture
def worker(tmp_path) -> Iterator[Worker]:
    found = Worker(tmp_path)
    yield found
    found.close()


def wrong(case: str, kind: str, status: object, out: str, err: str, changed: bool, intact: bool) -> str:
    """The fault of a command, in words; empty where there is none."""
    command = case.split()[2]
    one_line = err.startswith("spinsim: ") and err.count("\n") == 1 and "Traceback" not in err
    if kind == "nothing":
        faults = [status not in (0, 2)]
    else:
        certified = command == "check" and status == 0 and ADDED not in out
        faults = [status not in (0, 2), status == 2 and not one_line, changed, certified, not intact]
    return f"{case} ({kind}): {status} {out} {err} {faults}" if any(faults) else ""


def attack(worker: Worker, files: list[Path], seeds: range, commands: list[str]) -> None:
    cases = [f"{file} {seed} {commands[(seed + k) % len(commands)]}" for seed in seeds for k, file in enumerate(files)]
    assert [problem for case in cases if (problem := wrong(case, *worker.ask(case)))] == []


@pytest.mark.system
def test_500_damaged_files_are_refused_in_a_sentence(worker, made) -> None:
    """None is certified by ``check`` or adopted by ``resume``; ``os.fork`` fails there."""
    assert len(made) == 12
    attack(worker, made, range(50), COMMANDS)


@pytest.mark.slow
@pytest.mark.parametrize("command", ["show", "check", "resume --quiet", "analyze", "plot --overwrite"])
def test_thousands_of_damaged_files(worker, made, command) -> None:
    attack(worker, made, range(100, 300), [command])


def test_loading_never_forks(made, monkeypatch) -> None:
    monkeypatch.setattr(os, "fork", lambda: pytest.fail("a fork"))
    for path in made:
        ss.load(path)


@pytest.mark.parametrize("value", [np.inf, 1e308])
def test_damaged_numbers_bring_no_warnings_of_numpy(made, tmp_path, recwarn, value) -> None:
    path = tmp_path / "a.h5"
    path.write_bytes(made[0].read_bytes())
    with h5py.File(path, "r+") as file:
        file["measurements/energy"][-1] = value
    with contextlib.suppress(ss.InputError):
        ss.load(path)
    assert not len(recwarn)
