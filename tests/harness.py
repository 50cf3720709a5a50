"""The command line in this process, and what lies in folders and HDF5 files."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import h5py
import numpy as np
import pytest

from spinsim import cli

STAMPS = {"created", "finished"}
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


def spinsim(folder: Path, *arguments: object, code: str | None = None) -> subprocess.Popen[str]:
    """``spinsim`` as a process of its own, after the statements of ``code`` where given."""
    start = ["-m", "spinsim"] if code is None else ["-c", f"{code}\nfrom spinsim.cli import main; main()"]
    pipe = subprocess.PIPE
    return subprocess.Popen(
        [sys.executable, *start, *map(str, arguments)], cwd=folder, stdout=pipe, stderr=pipe, text=True
    )


def finish(process: subprocess.Popen[str]) -> Outcome:
    """Wait for a process."""
    out, err = process.communicate(timeout=120)
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
    """What an HDF5 file shows, but for checkpoints, the stamps and the root attributes ``besides``."""
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
