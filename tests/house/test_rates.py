"""Tables of rates and of validation in the pages hold what results files have."""

from __future__ import annotations

import json
import runpy

import pytest
from places import ROOT

SCRIPT = runpy.run_path(str(ROOT / "scripts/tables.py"))


@pytest.mark.parametrize("page", SCRIPT["PAGES"])
def test_tables_are_those_of_the_results(page: str) -> None:
    text = (ROOT / page).read_text()
    assert SCRIPT["written_anew"](text) == text, f"{page}: python scripts/tables.py writes its tables anew"


def test_every_result_is_in_a_page() -> None:
    shown = {found["name"] for page in SCRIPT["PAGES"] for found in SCRIPT["TABLE"].finditer((ROOT / page).read_text())}
    assert shown == SCRIPT["TABLES"].keys()
    known = {path.stem for path in SCRIPT["RESULTS"].glob("*.json")}
    others = {name for name in shown if name.startswith("output-")} | {"classical", "quantum", "gemm"}
    assert known - {"others", "peers"} == shown - {"beside", "front", "chart"} - others


@pytest.mark.parametrize("path", sorted(SCRIPT["RESULTS"].glob("*.json")), ids=lambda path: path.stem)
def test_results_tell_their_command_and_machine(path) -> None:
    told = json.loads(path.read_text())
    if path.stem == "others":
        assert all({"problem", "ours", "others"} <= one.keys() for one in told)
        return
    assert told["command"].startswith(("spinsim bench ", "python benchmarks/"))
    assert told["machine"]
    assert told["date"] >= "2026-11-28"
    assert told["rows"]
