"""An environment that another program of the name ``spinsim`` shares: one sentence, whichever was installed last."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from places import ROOT

import spinsim_ising

OTHER = "spinsim/__init__.py,sha256=1,117149\nspinsim-1.0.0.dist-info/RECORD,,\n"
OURS = "spinsim/__init__.py,sha256=1,5000\nspinsim/cli/__init__.py,sha256=1,4000\n"


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of installed packages, ours alone."""
    (tmp_path / "spinsim").mkdir()
    for path in (ROOT / "spinsim").iterdir():
        (tmp_path / "spinsim" / path.name).symlink_to(path)
    (tmp_path / "spinsim_ising.py").write_bytes(Path(spinsim_ising.__file__).read_bytes())
    (tmp_path / "spinsim_ising-1.0.0.dist-info").mkdir()
    (tmp_path / "spinsim_ising-1.0.0.dist-info" / "RECORD").write_text(OURS)
    monkeypatch.setattr(spinsim_ising, "_FOLDER", str(tmp_path))
    return tmp_path


def record(environment: Path, files: str) -> None:
    """Install a distribution of the name spinsim that has these files."""
    (environment / "spinsim-1.0.0.dist-info").mkdir()
    (environment / "spinsim-1.0.0.dist-info" / "RECORD").write_text(files)


def test_one_program_is_no_mixture(environment: Path) -> None:
    spinsim_ising.check()
    record(environment, OURS)  # of a version before the distribution had its name
    spinsim_ising.check()


def test_two_programs_are_told(environment: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record(environment, OTHER)
    with pytest.raises(ImportError, match="uninstall both"):
        spinsim_ising.check()
    with pytest.raises(SystemExit, match="2"):
        spinsim_ising.program()
    assert capsys.readouterr().err == f"spinsim: {spinsim_ising.MIXED}\n"


def test_what_the_other_program_took_with_it_is_told(environment: Path) -> None:
    (environment / "spinsim" / "__init__.py").unlink()
    with pytest.raises(ImportError, match="uninstall both"):
        spinsim_ising.check()


def test_archives_and_frozen_programs_are_not_looked_at(environment: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record(environment, OTHER)
    with monkeypatch.context() as patched:
        patched.setattr(sys, "frozen", True, raising=False)
        spinsim_ising.check()
    archive = environment / "program.zip"
    archive.touch()
    monkeypatch.setattr(spinsim_ising, "_FOLDER", str(archive))
    spinsim_ising.check()


@pytest.mark.system
@pytest.mark.parametrize("last", ["the other one", "this one"])
def test_starting_in_a_mixed_environment(environment: Path, last: str) -> None:
    record(environment, OTHER)
    if last == "the other one":
        (environment / "spinsim" / "__init__.py").unlink()
        (environment / "spinsim" / "__init__.py").write_text("from numba import roc")  # which is gone from Numba
    surroundings = os.environ | {"PYTHONPATH": str(environment)}

    def start(code: str) -> tuple[int, str]:
        line = [sys.executable, "-P", "-c", code]
        done = subprocess.run(line, cwd=environment, env=surroundings, capture_output=True, text=True, check=False)
        return done.returncode, done.stderr

    assert start("from spinsim_ising import program; program()") == (2, f"spinsim: {spinsim_ising.MIXED}\n")
    if last == "this one":
        status, said = start("import spinsim")
        assert (status, said.splitlines()[-1]) == (1, f"ImportError: {spinsim_ising.MIXED}")
