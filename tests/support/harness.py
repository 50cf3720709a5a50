"""The command line in this process, and what lies in folders and HDF5 files."""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import forking
import h5py
import numpy as np
import pytest

from spinsim import cli
from spinsim.run.recording import Recording

STAMPS = {"created", "finished", "parts"}  # the last one lists what else is compared
REFERENCES = {"DIMENSION_LIST", "REFERENCE_LIST"}  # compared as the names of scales


class Outcome(NamedTuple):
    """What a command left: its exit status and its two streams."""

    status: int
    out: str
    err: str


def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *arguments: object) -> Outcome:
    """``spinsim`` in this process."""
    monkeypatch.setattr(sys, "argv", ["spinsim", *map(str, arguments)])
    capsys.readouterr()
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert isinstance(ended.value.code, int)
    return Outcome(ended.value.code, *capsys.readouterr())


def at_row(monkeypatch: pytest.MonkeyPatch, row: int, action: Callable[[], object]) -> None:
    """Do something once, just before a run records a row; rows of several measurements are then recorded one by one."""
    write, done = Recording.write, list[int]()

    def writing(self: Recording, values: Mapping[str, Any]) -> None:
        if values["step"] == row and not done:
            done.append(row)
            action()
        write(self, values)

    def writing_rows(self: Recording, first: int, series: Mapping[str, Any]) -> None:
        for k in range(len(series["sweep"])):
            self.write({"step": first + k, **{name: values[k] for name, values in series.items()}})

    monkeypatch.setattr(Recording, "write", writing)
    monkeypatch.setattr(Recording, "write_rows", writing_rows)


def interrupt() -> None:
    """Ctrl-C."""
    raise KeyboardInterrupt


class Process:
    """A command that ``forking`` has begun, to be used as ``subprocess.Popen``."""

    def __init__(self, folder: Path, arguments: list[str], code: str) -> None:
        (out, to_out), (err, to_err), nothing = os.pipe(), os.pipe(), os.open(os.devnull, os.O_RDONLY)
        request = {"folder": str(folder), "arguments": arguments, "environment": dict(os.environ), "code": code}
        self.pid, self._connection = forking.ask(forking_server(), request, (nothing, to_out, to_err))
        for stream in (nothing, to_out, to_err):
            os.close(stream)
        self._streams = [os.fdopen(stream) for stream in (out, err)]
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """What it exited with, or None while it runs."""
        if self.returncode is None and select.select([self._connection], [], [], 0)[0]:
            self.returncode = forking.status(self._connection)
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """Wait until it ends; its two streams."""
        with ThreadPoolExecutor(2) as pool:
            texts = [pool.submit(stream.read) for stream in self._streams]
            if self.returncode is None:
                if not select.select([self._connection], [], [], timeout)[0]:
                    self.kill()
                    raise subprocess.TimeoutExpired("spinsim", timeout or 0.0)
                self.poll()
            out, err = (text.result() for text in texts)
        for stream in self._streams:
            stream.close()
        return out, err


@cache
def forking_server() -> str:
    """The name of this process's server, which ends with it."""
    name = f"spinsim-tests-{os.getpid()}-{time.monotonic_ns()}"
    server = subprocess.Popen(
        [sys.executable, forking.__file__, "serve", name], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    SERVERS.append(server)
    assert server.stdout is not None
    assert server.stdout.readline() == "ready\n"
    return name


SERVERS: list[subprocess.Popen[str]] = []  # not to be collected


def spinsim(folder: Path, *arguments: object, code: str = "") -> Process | subprocess.Popen[str]:
    """``spinsim`` as a process of its own, after the statements of ``code``."""
    words = list(map(str, arguments))
    if sys.platform == "linux":
        return Process(folder, words, code)
    start = [sys.executable, "-c", f"{code}\nfrom spinsim.cli import main; main()", *words]
    return subprocess.Popen(start, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(process: Process | subprocess.Popen[str]) -> Outcome:
    """Wait for a process."""
    out, err = process.communicate(timeout=120)
    assert process.returncode is not None
    return Outcome(process.returncode, out, err)


def one_sentence(outcome: Outcome, *words: str) -> str:
    """The sentence of a refusal, which it must be."""
    assert outcome.status == 2, outcome
    assert "Traceback" not in outcome.out
    assert outcome.err.startswith("spinsim: ")
    assert outcome.err.endswith("\n")
    sentence = outcome.err[:-1]
    assert sentence.isprintable()  # one line
    assert not re.search(r"\.( |$)", sentence)
    for word in words:
        assert word in sentence
    return sentence


def tree(folder: Path) -> dict[str, bytes | None]:
    """Every path below a folder and the content of the files."""
    return {str(p.relative_to(folder)): p.read_bytes() if p.is_file() else None for p in sorted(folder.rglob("*"))}


def contents(path: Path, *besides: str) -> dict[str, Any]:
    """All that an HDF5 file shows, without checkpoints, stamps and the root attributes ``besides``."""
    found: dict[str, Any] = {}

    def visit(name: str, item: h5py.Group | h5py.Dataset) -> None:
        if name.startswith("/checkpoint"):
            return
        skip = REFERENCES | STAMPS | set(besides)  # root attributes, which the group of measurements has too
        for key, value in item.attrs.items():
            if key not in skip:
                array = np.asarray(value)
                found[f"{name}@{key}"] = (str(array.dtype), array.shape, array.tolist())
        if isinstance(item, h5py.Dataset):
            scales = [[scale.name for scale in dimension.values()] for dimension in item.dims]
            found[name] = (str(item.dtype), item.shape, item.maxshape, item.chunks, item.is_scale, scales)
            found[f"{name}="] = item[...].tobytes()
        else:
            found[name] = sorted(item)

    with h5py.File(path, "r") as file:
        visit("/", file)
        file.visititems(lambda name, item: visit(f"/{name}", item))
    return found
