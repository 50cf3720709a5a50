"""What commands print: numbers with their errors, tables of 80 columns, several files at once."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path

import pytest
from harness import one_sentence, run
from made_up import tempered

import spinsim as ss
from spinsim.analysis.summary import summarize
from spinsim.analysis.tables import all_columns, main_columns, with_error
from spinsim.inputs.texts import WIDTH
from spinsim.observables.table import LABELS

WITHOUT_WIDTH = ("Command", "Identity", "Results", "Next", " " * 9 + "spinsim")
"""Lines that hold a path or what was typed."""


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (-1.74656, 0.0012, "-1.7466(12)"),
        (-1.74656, 0.00996, "-1.747(10)"),
        (12.34, 1.5, "12.3(1.5)"),
        (123.4, 15.0, "123(15)"),
        (0.5, 0.0, "0.5(0)"),
        (0.123456, float("nan"), "0.12346(?)"),
        (float("nan"), 0.1, "-"),
    ],
)
def test_a_number_has_two_digits_of_its_error(value: float, error: float, text: str) -> None:
    assert with_error(value, error) == text


def test_an_error_that_cannot_be_trusted_is_not_printed() -> None:
    assert with_error(0.5, 0.1, trusted=False) == "0.5(?)"


@pytest.fixture(scope="module")
def glass(tmp_path_factory) -> Path:
    return tempered(ss.EdwardsAnderson(ss.cubic(4), samples=3, seed=1)).save(tmp_path_factory.mktemp("l") / "glass.h5")


@pytest.fixture(scope="module")
def magnet(tmp_path_factory) -> Path:
    return tempered(ss.Ising(ss.square(6))).save(tmp_path_factory.mktemp("l") / "magnet.h5")


@pytest.mark.parametrize("command", [["analyze"], ["analyze", "--all"], ["show"]], ids=" ".join)
def test_tables_fit_80_columns(glass, magnet, capsys, monkeypatch, command) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    out = run(capsys, monkeypatch, *command, glass, magnet).out
    lines = [line for line in out.splitlines() if not line.startswith((*WITHOUT_WIDTH, str(glass), str(magnet)))]
    assert len(lines) > 20
    assert max(map(len, lines)) <= WIDTH


def test_tables_of_analyze_are_not_split_where_no_terminal_shows_them(glass, capsys, monkeypatch) -> None:
    wide = run(capsys, monkeypatch, "analyze", "--all", glass).out.splitlines()
    estimates = summarize(ss.load(glass)).estimates
    assert wide[1].split() == ["T", *(LABELS[name] for name in all_columns(estimates)), "tau/sweeps"]
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert len(run(capsys, monkeypatch, "analyze", "--all", glass).out.splitlines()) > len(wide)


def test_a_run_says_what_it_came_to_and_what_comes_next(capsys, monkeypatch, tmp_path) -> None:
    monkeypatch.chdir(tmp_path)
    line = "temper --size 4 --temperatures 2,2.5,3 --thermalize 100 --sweeps 2000 --out"
    shown = run(capsys, monkeypatch, *line.split(), "a b.h5").out.splitlines()
    assert max(len(x) for x in shown if not x.startswith(WITHOUT_WIDTH)) <= WIDTH
    text = "\n".join(shown)
    found = summarize(ss.load("a b.h5"))
    energy = found.estimates["energy_per_site"]
    assert with_error(energy.value[0], energy.error[0], energy.trusted[0]) in text
    assert "Verdict" in text
    assert "spinsim analyze 'a b.h5' --all" in text


def test_columns_are_those_of_the_model(glass, magnet) -> None:
    names = [main_columns(result.model, summarize(result).estimates) for result in map(ss.load, (glass, magnet))]
    assert "overlap_binder_cumulant" in names[0]
    assert "abs_magnetization" not in names[0]
    assert "abs_magnetization" in names[1]
    assert "overlap_squared" not in names[1]


def test_columns_can_be_chosen(glass, capsys, monkeypatch) -> None:
    estimates = summarize(ss.load(glass)).estimates
    assert set(all_columns(estimates)) == set(estimates)
    out = run(capsys, monkeypatch, "analyze", glass, "--columns", "overlap_squared,susceptibility").out
    assert out.splitlines()[1].split() == ["T", "<q^2>", "chi", "tau/sweeps"]
    one_sentence(
        run(capsys, monkeypatch, "analyze", glass, "--columns", "overlap_sqared"), "did you mean 'overlap_squared'?"
    )
    one_sentence(
        run(capsys, monkeypatch, "analyze", glass, "--all", "--columns", "overlap_squared"), "leave one of them out"
    )


def test_several_files_at_once(glass, magnet, tmp_path, capsys, monkeypatch) -> None:
    shown = json.loads(run(capsys, monkeypatch, "show", glass, magnet, "--json").out)
    assert [entry["file"] for entry in shown] == [str(glass), str(magnet)]
    target = tmp_path / "means.csv"
    found = json.loads(run(capsys, monkeypatch, "analyze", glass, magnet, "--json", "--csv", target).out)
    assert [entry["file"] for entry in found] == [str(glass), str(magnet)]
    with target.open(newline="") as text:
        rows = list(csv.DictReader(text))
    assert list(dict.fromkeys(row["file"] for row in rows)) == [str(glass), str(magnet)]
    energies = [float(row["energy_per_site"]) for row in rows]
    assert energies == found[0]["energy_per_site"] + found[1]["energy_per_site"]
