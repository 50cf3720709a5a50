"""Refusals speak of flags on the command line and of arguments in Python."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness import one_sentence, run

import spinsim as ss
from spinsim.errors import argument, on_command_line

PACKAGE = Path(ss.__file__).parent
OF_COMMANDS = ("cli", "benchmark", "parallel")  # nothing else calls them; launchers are started by commands
OF_ANALYZE = "check_averages"
WORDED = ("worded", "argument", "another_path")
FLAG = re.compile(r"(^|[^-\w])--[a-z]|spinsim (show|resume|plot|analyze)\b")
SHORT = {"sweeps": 2, "measure_every": 1, "thermalize": 0, "threads": 1}


def texts(node: ast.AST) -> Iterator[str]:
    """Texts of an expression, but for those that are worded for who reads them."""
    if called(node) in WORDED:
        return
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    for child in ast.iter_child_nodes(node):
        yield from texts(child)


def called(node: ast.AST) -> str:
    """Name of the function that a node calls; empty of others."""
    return node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""


def refusals(node: ast.AST) -> Iterator[ast.AST]:
    """Calls that make errors, but for those of what a command alone asks."""
    if isinstance(node, ast.FunctionDef) and node.name == OF_ANALYZE:
        return
    if called(node) in ("InputError", "MissingError", "WrongTypeError"):
        yield node
    for child in ast.iter_child_nodes(node):
        yield from refusals(child)


def test_no_refusal_names_a_flag_whoever_reads_it() -> None:
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        if path.relative_to(PACKAGE).parts[0] in OF_COMMANDS:
            continue
        for refusal in refusals(ast.parse(path.read_text())):
            found += [f"{path.name}: {text}" for text in texts(refusal) if FLAG.search(text)]
    assert not found


def test_settings_are_flags_where_the_command_line_runs() -> None:
    assert [argument("time_limit"), argument("replicas", 2), argument("quantum", True)] == [
        "time_limit",
        "replicas=2",
        "quantum=True",
    ]
    with on_command_line():
        assert [argument("time_limit"), argument("replicas", 2), argument("quantum", True)] == [
            "--time-limit",
            "--replicas 2",
            "--quantum",
        ]
    assert argument("quantum") == "quantum"


def test_the_same_refusals_in_python_and_on_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "run.h5"
    ss.temper(ss.Ising(ss.square(4)), [1.0, 2.0], out=path, **SHORT)
    other = ss.Ising(ss.square(6))
    for call, words in (
        (lambda: ss.temper(other, [1.0, 2.0], out=path, **SHORT), "never overwritten: choose another path"),
        (lambda: ss.resume(path, time_limit=3), "leave time_limit out"),
        (lambda: ss.resume(path, most_steps=3), "leave most_steps out"),
        (lambda: ss.configurations(path), "run it again with save_configurations=1 or more"),
        (lambda: ss.anneal(other, beta=3), "give quantum=True, or leave it out"),
        (lambda: ss.temper(other, [2.0, 1.0]), "temperatures [2.0, 1.0] do not rise"),
        (lambda: ss.temper(other, range(9, 0, -1)), "temperatures [9.0, 8.0, 7.0, ..., 3.0, 2.0, 1.0] do not rise"),
        (lambda: ss.temper(other, [2.0, 1.0]), "give a list of floats, or text such as 0.8:2:16"),
    ):
        with pytest.raises(ss.InputError) as told:
            call()
        assert words in str(told.value)
        assert "--" not in str(told.value)
    for line, words in (
        (f"temper --size 6 --temperatures 1,2 --out {path}", "never overwritten: choose another --out"),
        (f"resume {path} --time-limit 3", "leave --time-limit out"),
        (f"resume {path} --most-steps 3", "leave --most-steps out"),
        ("anneal --beta 3", "give --quantum, or leave it out"),
        ("temper --temperatures 2,1", "temperatures '2,1' do not rise from the lowest to the highest: give 0.8:2:16"),
    ):
        one_sentence(run(capsys, monkeypatch, *line.split()), words)


@pytest.mark.parametrize(
    "line", ["anneal --couplings potts", "temper --lattice XY", "potts --size 4", "anneal --couplings heisenberg"]
)
def test_models_of_other_variables_are_told_the_scope(
    line: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    one_sentence(run(capsys, monkeypatch, *line.split()), "spinsim simulates Ising variables")


def test_flags_that_are_alike_for_their_dashes_alone_are_not_meant(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "Possible" not in one_sentence(run(capsys, monkeypatch, "anneal", "--model", "x"), "--model")
    one_sentence(run(capsys, monkeypatch, "anneal", "--sed", "3"), "--seed")


@pytest.mark.parametrize("side", ["4x6", (4, 6), 4.5])
def test_sides_of_lattices_are_numbers_each(side: object) -> None:
    with pytest.raises(ss.InputError) as told:
        ss.square(side)  # type: ignore[arg-type]
    assert f"lattice side {side!r} is no whole number" in str(told.value)
    assert "such as ss.square(8, 6)" in str(told.value)


def test_nothing_is_said_of_exchanges_where_there_is_one_temperature(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = ["--size", 4, "--sweeps", 40, "--thermalize", 0, "--measure-every", 1, "--threads", 1]
    for words in (
        ["temper", "--temperatures", 2.0, *shared],
        ["temper", "--temperatures", 2.0, *shared[:2], "--time-limit", 0.01, "--threads", 1],
        ["quantum", "--k", 0.3, "--slices", 2, *shared],
    ):
        told = run(capsys, monkeypatch, *words, "--out", tmp_path / f"{len(words)}-{words[0]}.h5").out
        assert "E/N" in told or "e_s" in told or "Lowest energy" in told
        assert "swaps" not in told
        assert "xchange" not in told
        assert "Round trips" not in told
