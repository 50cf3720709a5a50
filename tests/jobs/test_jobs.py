"""What a job is to the rest of the program: a record in the list of jobs, and nothing else anywhere."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer
from harness import one_sentence, run
from typer.testing import CliRunner

import spinsim as ss
from spinsim.cli.flags import with_flags
from spinsim.cli.running import command_of
from spinsim.jobs import FOLDERS, all_jobs, job_of
from spinsim.jobs.base import Job


@pytest.fixture(scope="module")
def file(tmp_path_factory) -> Path:
    """A file of a job that the program does not have, made by that job's command."""
    path = tmp_path_factory.mktemp("jobs") / "a.h5"
    command = typer.Typer()
    line = ["--size", "4", "--couplings", "pm-j", "--samples", "3", "--times", "5", "--out", str(path)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(FOLDERS, "tally", "tally")
        command.command()(with_flags(command_of(job_of("tally"))))
        done = CliRunner().invoke(command, line)
    assert done.exit_code == 0, done.output
    assert done.output.startswith("Counting bonds of ")
    assert "Bonds were counted" in done.output
    return path


@pytest.fixture
def known(monkeypatch):
    monkeypatch.setitem(FOLDERS, "tally", "tally")


def test_one_line_in_the_list_makes_a_job_known(file, known, capsys, monkeypatch):
    shown = run(capsys, monkeypatch, "show", file)
    assert shown.status == 0
    assert "a.h5: tally of " in shown.out
    assert "Progress       5 of 5 steps" in shown.out
    assert run(capsys, monkeypatch, "check", file).out == f"{file}: whole, finished: 5 rows\n"
    again = run(capsys, monkeypatch, "resume", file)
    assert again.status == 0
    assert "already finished" in again.out
    result = ss.load(file)
    assert "5 times, seed 1, disorder seed 0, finished" in repr(result)
    numbers = json.loads(run(capsys, monkeypatch, "show", file, "--json").out)
    assert numbers["satisfied"] == result.satisfied[-1].tolist()


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("resume {} --sweeps 9", "a tally run, which has no sweeps that may change: leave --sweeps out"),
        ("resume {} --most-steps 9", "a tally run, which has no most steps that may change: leave --most-steps out"),
        ("analyze {}", "a tally run, whose series are not in equilibrium"),
        ("plot {}", "has no figures: spinsim show prints what is in its file"),
    ],
)
def test_what_a_job_does_not_have_is_refused_in_a_sentence(line, words, file, known, capsys, monkeypatch):
    one_sentence(run(capsys, monkeypatch, *line.format(file).split()), words)


def test_without_that_line_the_file_is_of_no_known_job(file, capsys, monkeypatch):
    one_sentence(run(capsys, monkeypatch, "show", file), "a run of tally, a job that this version of spinsim lacks")
    with pytest.raises(KeyError):
        job_of("tally")


@pytest.mark.parametrize("job", all_jobs(), ids=lambda job: job.name)
def test_records_are_complete(job: Job):
    assert FOLDERS[job.name] == f"spinsim.jobs.{job.name}"
    assert job.config.job == job.name
    assert job.a_run.endswith(f" {job.name} run")
    assert callable(job.read)
    assert job.figures.names


@pytest.mark.parametrize(
    ("line", "empty", "full"),
    [
        ("anneal --lattice square --size 4 --steps 2 --replicas 64", "64 of 128", 128),
        ("anneal --lattice square --size 4 --steps 2 --replicas 130", "126 of 256", 256),
        (
            "temper --lattice square --size 4 --temperatures 1:2:32g --thermalize 10 --sweeps 20 --replicas 2",
            "64 of 128",
            4,
        ),
        (
            "quantum --lattice square --size 2 --slices 4 --k 0.2:0.4:32g --thermalize 10 --sweeps 200 --replicas 2",
            "64 of 128",
            4,
        ),
        ("temper --lattice square --size 4 --temperatures 1:2:32g --thermalize 10 --sweeps 20 --replicas 4", "", 4),
        ("anneal --lattice square --size 4 --steps 2 --replicas 64 --couplings gaussian", "", 128),
    ],
)
def test_empty_lanes_are_named_with_what_fills_them(
    capsys, monkeypatch, tmp_path, line: str, empty: str, full: int
) -> None:
    """Also when the run is done; words of replicas take as long whatever stands in them."""
    monkeypatch.chdir(tmp_path)
    done = run(capsys, monkeypatch, *line.split())
    assert done.status == 0, done
    shown = run(capsys, monkeypatch, "show", str(next(tmp_path.rglob("*.h5"))))
    for said in (done.out, shown.out):
        own = line.split("--replicas ")[1].split()[0]
        hint = f"Hint           --replicas {full} takes little longer than --replicas {own}:"
        assert (hint in said) == ("Hint" in said) == bool(empty)
