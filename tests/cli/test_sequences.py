"""Sequences of commands: what a run names as next works, and nothing says "1 samples"."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from harness import one_sentence, run
from places import DATA

from spinsim.inputs.texts import count, interval

SEVERAL = re.compile(r"(?<![\d.,^-])1 (?!as\b|is\b|less\b)[a-z]+s\b")
G11 = str(DATA / "G11.txt")
RUNS = {
    "transfer": "transfer",
    "transfer of several": "transfer --width 4 --temperature 2:2.6:3",
    "anneal": f"anneal {G11} --steps 1 --sweeps 1 --replicas 1",
    "anneal of a lattice": "anneal --size 4 --steps 2 --sweeps 1 --replicas 1 --save-configurations 1",
    "search by anneals": f"anneal {G11} --target 400",
    "temper": "temper --size 2 --temperatures 1 --sweeps 16 --measure-every 1 --thermalize 1 --replicas 1",
    "temper of an instance": f"temper {G11} --temperatures 1:2:2 --sweeps 32 --measure-every 2 --thermalize 0",
    "search by tempering": f"temper {G11} --target 400",
    "evolve": "evolve --size 4 --replicas 1",
    "multicanonical": "multicanonical --size 4 --sweeps 100 --wang-landau 100",
    "solve": f"solve {G11} --sweeps-limit 20 --no-fix",
    "quantum": "quantum --lattice chain --size 4 --slices 4 --sweeps 64 --measure-every 1 --thermalize 1",
}
REFUSED = {
    "analyze": r"holds an? (anneal|evolve|solve) run|analyze it with --density|whose levels are no averages|"
    "too few to analyse: .*leave out --target",
    "plot": "too few to analyse: .*leave out --target",
    "view": r"has saved no configurations: run it again with --save-configurations 1 or more, into another file|"
    r"which has no configurations: spinsim plot run\.h5 draws it",
}
"""The sentences with which commands may refuse a file, each with its mend."""


def commands_named(text: str) -> list[list[str]]:
    """The commands below "Next" of an outcome."""
    lines = text.partition("Next     ")[2].splitlines()
    return [shlex.split(line)[1:] for line in lines if line.strip().startswith("spinsim ")]


@pytest.mark.system
@pytest.mark.parametrize("name", RUNS)
def test_each_command_leads_on(name: str, tmp_path: Path, capsys, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    begun = run(capsys, monkeypatch, *shlex.split(RUNS[name]), "--out", "run.h5", "--device", "cpu")
    assert begun.status == 0, begun.err
    said = [begun.out]
    named = commands_named(begun.out)
    assert ["show", "run.h5"] in named
    assert (["show", "run.h5", "--solution"] in named) == (G11 in RUNS[name])
    for command in named:
        told = run(capsys, monkeypatch, *command)
        assert told.status == 0, (command, told.err)
        said.append(told.out + told.err)
    for command in ("show", "analyze", "plot", "view", "check", "resume"):
        told = run(capsys, monkeypatch, command, "run.h5", *(["--overwrite"] if command in ("plot", "view") else []))
        if told.status:
            assert re.search(REFUSED[command], one_sentence(told)), (command, told.err)
        said.append(told.out + told.err)
    assert not [line for text in said for line in text.splitlines() if SEVERAL.search(line)]


@pytest.mark.system
def test_one_coupling_is_said_to_be_one_point(tmp_path: Path, capsys, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    run(capsys, monkeypatch, "transfer", "--width", "4", "--out", "run.h5", "--quiet")
    told = run(capsys, monkeypatch, "plot", "run.h5")
    assert "one coupling is one point of the figure: several make a curve, run with --temperature 2:2.6:13" in told.err


def test_progress_is_in_sweeps_and_numbers_have_their_plural(tmp_path: Path, capsys, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    short = ["--size", "4", "--sweeps", "40", "--thermalize", "0", "--measure-every", "4", "--out", "run.h5"]
    run(capsys, monkeypatch, "temper", *short, "--save-configurations", "2", "--quiet")
    shown = run(capsys, monkeypatch, "show", "run.h5").out
    assert "Progress       40 of 40 sweeps, begun" in shown
    assert "5 configurations of each replica, one at every 2 measurements" in shown
    assert [count(n, "copy") for n in (1, 2)] == ["1 copy", "2 copies"]
    assert [count(n, "sweep") for n in (0, 1)] == ["0 sweeps", "1 sweep"]
    assert [interval(n, "sweep") for n in (1, 10)] == ["every sweep", "every 10 sweeps"]
