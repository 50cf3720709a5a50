"""Pictures of the pages are made by the present scripts, and tell how."""

from __future__ import annotations

import re
import runpy

import pytest
from places import ROOT

SCRIPT = runpy.run_path(str(ROOT / "scripts/pictures.py"))


@pytest.mark.parametrize("name", SCRIPT["NAMES"])
def test_a_picture_is_as_new_as_its_script(name: str) -> None:
    assert SCRIPT["is_current"](name), f"the picture is older than its script: python scripts/pictures.py {name}"


@pytest.mark.parametrize("name", SCRIPT["NAMES"])
def test_a_picture_tells_how_it_was_made(name: str) -> None:
    known = SCRIPT["record"](name)
    assert known["command"] == SCRIPT["command"](name)
    assert known["machine"]
    assert known["date"] >= "2026-11-28"
    assert known["seconds"] > 0


def test_every_picture_of_a_page_has_a_script() -> None:
    made = {path.name for name in SCRIPT["NAMES"] for path in SCRIPT["pictures"](name)}
    assert {path.name for path in (ROOT / "docs/images").glob("*.png")} == made
    for page in (ROOT / "docs").rglob("*.md"):
        shown = re.findall(r"images/(\S+\.png)", page.read_text())
        assert set(shown) <= made, page


def test_a_changed_example_makes_its_picture_old(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    examples = tmp_path / "examples"
    examples.mkdir()
    monkeypatch.setitem(SCRIPT["source"].__globals__, "ROOT", tmp_path)
    example = examples / "maxcut.py"
    example.write_text((ROOT / "examples/maxcut.py").read_text() + "# a comment\n")
    assert SCRIPT["source"]("maxcut") == SCRIPT["record"]("maxcut")["source"]
    example.write_text(example.read_text() + "print()\n")
    assert SCRIPT["source"]("maxcut") != SCRIPT["record"]("maxcut")["source"]
