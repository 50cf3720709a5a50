"""Damaged, foreign and future files: one sentence, nothing written, no end of the process, no waiting."""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import damage
import h5py
import numpy as np
import pytest
from harness import finish, one_sentence, run, spinsim
from spinsim.store.reading import survives

NAMES = ["anneal", "instance", "temper", "temper-auto", "transfer", "packed/temper-configurations"]
UNFINISHED = ["unfinished-anneal", "unfinished-temper", "unfinished-transfer"]
LIMIT = 120  # seconds for a command
WAITED = "no answer in time:"


class Worker:
    """A process that shows damaged files to commands; a new one takes over where it ends or waits."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.process, self.errors = folder, None, folder / "errors.txt"

    def ask(self, case: str) -> list[object]:
        """What became of a case: what was done, exit status, standard error, whether a refusal changed the file."""
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
        return [line or "the process ended", "crash", "", False]

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


def wrong(case: str, what: str, status: object, said: str, changed: bool) -> str:
    """What a command should not have done, if anything."""
    one_line = said.startswith("spinsim: ") and said.count("\n") == 1 and "Traceback" not in said
    if status not in (0, 2) or (status == 2 and not one_line) or changed:
        return f"{case} ({what}): {status} {said}{' and the file has changed' if changed else ''}"
    return ""


def attack(worker: Worker, names: list[str], seeds: range, commands: list[str]) -> None:
    cases = [f"{name} {seed} {commands[seed % len(commands)]}" for seed in seeds for name in names]
    assert [problem for case in cases if (problem := wrong(case, *worker.ask(case)))] == []


@pytest.mark.system
def test_damaged_files_are_read_or_refused_in_a_sentence(worker) -> None:
    attack(worker, NAMES + UNFINISHED, range(14), ["show", "check"])


@pytest.mark.slow
@pytest.mark.parametrize("command", ["show", "check", "show --json"])
def test_thousands_of_damaged_files(worker, command) -> None:
    attack(worker, NAMES + UNFINISHED, range(100, 400), [command])


@pytest.mark.slow
@pytest.mark.parametrize("command", ["analyze", "plot --overwrite", "resume --quiet"])
def test_damaged_files_are_analysed_drawn_and_resumed_or_refused(worker, command) -> None:
    attack(worker, NAMES + UNFINISHED, range(1000, 1100), [command])


WAITS = """
from pathlib import Path
from spinsim import store
with store.open_to_append(Path("a.h5")) as file:
    file.saved()
"""


@pytest.mark.system
@pytest.mark.parametrize("name", ["checkpoint/0/spins", "checkpoint/1/place", "summary/energy_per_site"])
def test_a_flipped_bit_in_a_header_holds_nobody_up(tmp_path, name) -> None:
    """These idled for ever: the lock of h5py was held by a loop over members that an exception had left."""
    path = tmp_path / "a.h5"
    content = bytearray(damage.small_file("unfinished-temper"))
    path.write_bytes(content)
    with h5py.File(path, "r") as file:
        header = h5py.h5o.get_info(file[name].id).addr
    content[header + 20] ^= 4
    path.write_bytes(content)
    one_sentence(finish(spinsim(tmp_path, "resume", "a.h5", "--quiet")), "a.h5 is damaged")
    if name.startswith("checkpoint"):  # past the door too
        subprocess.run([sys.executable, "-c", WAITS], cwd=tmp_path, capture_output=True, timeout=LIMIT, check=False)


def endless(content: bytes) -> bytes:
    """A file whose first heap of texts ends with an object of size 0: the HDF5 library never gets past it."""
    data = bytearray(content)
    heap = data.index(b"GCOL")
    at = heap + 16
    while (index := int.from_bytes(data[at : at + 2], "little")) != 0:
        size = int.from_bytes(data[at + 8 : at + 16], "little")
        at += 16 + -(-size // 8) * 8
    assert (index, any(data[at + 8 : at + 16])) == (0, True)
    data[at + 8 : at + 16] = bytes(8)
    return bytes(data)


@pytest.mark.skipif(sys.platform != "linux", reason="a child process is made on Linux alone")
def test_headers_that_lead_in_a_circle_are_refused(tmp_path, monkeypatch, capsys) -> None:
    """Two altered bytes held all commands for ever, deaf to Ctrl-C."""
    monkeypatch.setattr("spinsim.store.reading._SECONDS", 1)
    path = tmp_path / "a.h5"
    path.write_bytes(endless(damage.small_file("unfinished-temper")))
    for command in ("show", "resume"):
        one_sentence(
            run(capsys, monkeypatch, command, path), "a.h5 is damaged, its headers lead in a circle or nowhere"
        )


@pytest.mark.parametrize("value", [np.inf, 1e308])
def test_damaged_values_bring_no_warnings_of_numpy(tmp_path, monkeypatch, capsys, recwarn, value) -> None:
    path = tmp_path / "a.h5"
    path.write_bytes(damage.small_file("unfinished-anneal"))
    with h5py.File(path, "r+") as file:
        file["measurements/energy"][-1] = value
    shown = run(capsys, monkeypatch, "show", path)
    assert (shown.err, len(recwarn)) == ("", 0)


@pytest.mark.skipif(sys.platform != "linux", reason="a child process is made on Linux alone")
def test_a_look_that_crashes_or_fails() -> None:
    def crash() -> None:
        os.kill(os.getpid(), signal.SIGSEGV)

    def fail() -> None:
        raise ValueError

    assert [survives(look) for look in (crash, fail, lambda: None)] == [False, None, True]


@pytest.mark.skipif(sys.platform != "linux", reason="a child process is made on Linux alone")
def test_a_child_that_waits_is_no_sign_of_damage(monkeypatch: pytest.MonkeyPatch) -> None:
    """As for a lock that a thread of the parent held."""
    monkeypatch.setattr("spinsim.store.reading._PATIENCE", 0.1)
    assert survives(signal.pause) is None
