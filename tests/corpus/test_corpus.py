"""Tables, counters and verdicts of small runs of every job are as they were recorded, in memory and from files.

Tolerances stand at the head of ``tests/support/corpus.py``, which also says how to record anew.
"""

from __future__ import annotations

from pathlib import Path

import corpus
import pytest
from corpus_runs import COMMANDS, RUNS


@pytest.mark.parametrize("name", RUNS)
def test_runs_are_as_recorded(name: str, tmp_path: Path) -> None:
    now, of_file = corpus.of_run(name, tmp_path)
    told = corpus.differences(name, corpus.read(name), now)
    assert not told, "\n".join(told)
    assert of_file is None or of_file == now


@pytest.mark.parametrize("name", COMMANDS)
def test_commands_print_the_numbers_recorded(name: str) -> None:
    told = corpus.differences(name, corpus.read(f"command-{name}"), corpus.of_command(name))
    assert not told, "\n".join(told)


@pytest.mark.parametrize("name", ["temper-one-temperature", "temper-not-in-equilibrium", "quantum-beta"])
def test_results_have_the_verdict_of_their_summary(name: str) -> None:
    assert [RUNS[name]().verdict] == corpus.read(name)["words"]["verdict"]


def test_every_file_belongs_to_a_run() -> None:
    assert {path.stem for path in corpus.FOLDER.glob("*.json")} == {*RUNS, *(f"command-{name}" for name in COMMANDS)}


def test_differences_beyond_tolerances_are_told() -> None:
    was = {"temperature": {"row": [0, 7], "energy": [-1.0, -2.0], "energy_error": [None, 0.1], "hits": [3, 4]}}
    near = {"temperature": was["temperature"] | {"energy": [-1.0, -2.0 * (1 + 1e-10)]}}
    assert corpus.differences("run", was, was) == corpus.differences("run", was, near) == []
    far = {"temperature": {"row": [0, 7], "energy": [-1.0, -2.1], "energy_error": [0.2, 0.1], "hits": [3, 5]}}
    assert corpus.differences("run", was, far) == [
        "run: table temperature, column energy, row 7: was -2.0, is -2.1, 5.0e-02 of it",
        "run: table temperature, column energy_error, row 0: was None, is 0.2",
        "run: table temperature, column hits, row 7: was 4, is 5",
    ]
    assert corpus.differences("run", was, {}) == [
        f"run: table temperature, column {column}: is gone" for column in ("energy", "energy_error", "hits", "row")
    ]
