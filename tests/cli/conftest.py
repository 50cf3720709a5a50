"""A folder of files that commands are tried on, and a command that must be refused."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import h5py
import pytest
from harness import one_sentence, run, tree

import spinsim as ss

Refuse = Callable[..., str]


FILES = {
    "empty.mc": "",
    "short.mc": "3 2\n1 2 1\n",
    "letters.mc": "3 2\n1 2 1\n2 x 1\n",
    "beyond.mc": "3 2\n1 2 1\n2 4 1\n",
    "nan.mc": "3 2\n1 2 1\n2 3 nan\n",
    "words.mc": "hello world\n",
    "good.mc": "3 2\n1 2 1\n2 3 1\n",
    "malformed.toml": "[model\nsize = 8\n",
    "binary.toml": b"\xff\xfe\x00",
    "digits.toml": f"[run]\nseed = {'9' * 5000}\n",
    "table.toml": "[anneel]\nsteps = 3\n",
    "key.toml": "[anneal]\nsweps = 3\n",
    "flag.toml": "[model]\nbond-fraction = 0.5\n",
    "strange.toml": "[run]\nzzz = 1\n",
    "array.toml": "[[anneal]]\nsteps = 3\n",
    "plain.toml": "model = 3\n",
    "text.toml": '[anneal]\nsteps = "5"\n',
    "boolean.toml": "[run]\nreplicas = true\n",
    "fraction.toml": "[run]\nreplicas = 2.5\n",
    "date.toml": "[anneal]\nt_start = 2020-01-01\n",
    "large.toml": f"[model]\nfield = {10**400}\n",
    "side.toml": "[model]\nsize = -3\n",
    "both.toml": '[model]\ninstance = "good.mc"\nlattice = "cubic"\n',
    "nul.toml": '[run]\nout = "a\\u0000b"\n',
    "text.h5": "not HDF5\n",
}


@pytest.fixture(scope="module")
def a_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("run") / "run.h5"
    return ss.anneal(ss.Ising(ss.square(4)), [2.0, 1.0], sweeps=1, replicas=2).save(path)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, a_run: Path) -> Path:
    """A working folder with bad files of every kind."""
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    shutil.copy(a_run, tmp_path / "run.h5")
    (tmp_path / "cut.h5").write_bytes(a_run.read_bytes()[:5000])
    for name, attributes in (("foreign.h5", {}), ("hollow.h5", {"schema": "spinsim/1"})):
        with h5py.File(tmp_path / name, "w") as file:
            file.attrs.update(attributes)
    (tmp_path / "folder").mkdir()
    (tmp_path / "dangling.h5").symlink_to("nowhere.h5")
    return tmp_path


@pytest.fixture
def refuse(folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Refuse:
    """Run a command line that must be refused, with these words, and write nothing."""

    def refused(arguments: list[str], *words: str) -> str:
        before = tree(folder)
        sentence = one_sentence(run(capsys, monkeypatch, *arguments), *words)
        assert tree(folder) == before
        return sentence

    return refused
