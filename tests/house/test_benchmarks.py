"""The comparison with other programs runs in a tiny form, with those of them that are installed."""

from __future__ import annotations

import hashlib
import json
import runpy
from pathlib import Path

import pytest
from places import ROOT

INSTANCE = ROOT / "tests/data/pm1s_100.0.mc"


@pytest.mark.system
def test_a_row_for_an_instance(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    script = ROOT / "benchmarks/solve_peers.py"
    monkeypatch.syspath_prepend(script.parent)
    monkeypatch.setattr("sys.argv", [str(script), str(INSTANCE), "--seeds", "1", "--limit", "1", "--tries", "1"])
    runpy.run_path(str(script), run_name="__main__")
    (row,) = json.loads(capsys.readouterr().out)["rows"]
    assert (row["instance"], row["sites"], row["value"], row["target"]) == ("pm1s_100.0", 100, "cut", 127)
    assert {"spinsim anneal", "spinsim temper", "spinsim solve"} <= set(row["seconds"])


@pytest.mark.system
def test_a_search_in_a_process_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    script = Path(ROOT / "benchmarks/fresh_process.py")
    monkeypatch.setattr("sys.argv", [str(script), "spinsim anneal", str(INSTANCE), "127", "{}", "1"])
    runpy.run_path(str(script), run_name="__main__")


@pytest.mark.system
@pytest.mark.parametrize(("name", "instance"), [("portfolio", INSTANCE), ("qoblib", None)])
def test_a_row_of_searches(name, instance, tmp_path, monkeypatch, capsys) -> None:
    script, path = ROOT / f"benchmarks/{name}.py", instance or tmp_path / "farm.qs"
    if instance is None:  # a path of 19 sites by the name of an instance, whose largest independent set has 10
        pairs = "".join(f"{k} {k + 1} 1\n" for k in range(1, 19))
        path.write_text(f"19 37\n{''.join(f'{k} {k} -1' + chr(10) for k in range(1, 20))}{pairs}")
    monkeypatch.syspath_prepend(script.parent)
    monkeypatch.setattr("sys.argv", [str(script), str(path), "--seconds", "0.1"])
    runpy.run_path(str(script), run_name="__main__")
    told = json.loads(capsys.readouterr().out)
    assert told["rows"][0]["instance"] == path.stem.removesuffix(".txt")
    assert told["rows"][0].get("size", 10) == 10


@pytest.mark.system
def test_graphs_of_the_g_set(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Graphs of each kind equal the published files, whose digests these are; one is solved."""
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    rudy = runpy.run_path(str(ROOT / "benchmarks/rudy.py"))
    digests = {k: hashlib.sha256(repr(rudy["graph"](k)).encode()).hexdigest()[:16] for k in (11, 14, 22)}
    assert digests == {11: "2bdac29c7270328b", 14: "b9d07194b1af15a6", 22: "0ab7c8bef6b6c6d3"}
    assert len(rudy["graph"](51)[1]) == 5909
    script = ROOT / "benchmarks/gset.py"
    monkeypatch.setattr("sys.argv", [str(script), "11", "--seconds", "0.5"])
    runpy.run_path(str(script), run_name="__main__")
    row = json.loads(capsys.readouterr().out)["rows"][0]
    assert (row["graph"], row["cut"], row["proven"]) == ("G11", 564, True)
