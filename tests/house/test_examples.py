"""Every example runs in its short form."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest
from places import ROOT

EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


@pytest.mark.system
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example(path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.argv", [str(path), "--short"])
    runpy.run_path(str(path), run_name="__main__")
    assert capsys.readouterr().out


@pytest.mark.system
@pytest.mark.parametrize(
    ("example", "module", "words"),
    [
        ("phases", "sklearn.neural_network", "scikit-learn is missing: python -m pip install scikit-learn"),
        ("crossings", "xarray", "xarray is missing: install spinsim-ising[xarray]"),
    ],
)
def test_an_example_without_what_it_can_do_without(monkeypatch, capsys, example, module, words) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setattr("sys.argv", [f"{example}.py", "--short"])
    runpy.run_path(str(ROOT / f"examples/{example}.py"), run_name="__main__")
    assert words in capsys.readouterr().out


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 3
