"""Campaigns: runs of one TOML file, shared by processes, resumed, extended, and analysed together."""

from __future__ import annotations

import json
import signal
import time
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from harness import at_row, contents, finish, interrupt, one_sentence, run, spinsim, tree

import spinsim as ss
from spinsim.machine.files import hold
from spinsim.run import campaign as campaigns

GLASS = """
[model]
couplings = "pm-j"
[temper]
temperatures = "1:2:4"
thermalize = 10
sweeps = {sweeps}
measure_every = 10
[[campaign]]
size = {sizes}
samples = {samples}
samples_per_run = 2
"""
OWN = ("command", "config")


@pytest.fixture
def glass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A function that writes the file of a campaign and returns its path."""
    monkeypatch.chdir(tmp_path)

    def write(sizes: object = "[3, 4]", samples: int = 4, sweeps: int = 200, more: str = "") -> Path:
        Path("glass.toml").write_text(GLASS.format(sizes=sizes, samples=samples, sweeps=sweeps) + more)
        return Path("glass.toml")

    return write


def test_runs_are_those_of_single_commands(glass, capsys, monkeypatch) -> None:
    runs = ss.campaign(glass()).run().runs
    assert [one.path.parent for one in runs] == [Path("runs/glass")] * 4
    assert {each.name for each in Path("runs/glass").iterdir()} == {one.path.name for one in runs}
    seeds = [(one.config.run.seed, one.config.model.disorder_seed) for one in runs]
    assert len({seed for pair in seeds for seed in pair}) == 8
    for one, (seed, disorder) in zip(runs, seeds, strict=True):
        size = f"--size {one.varied['size']} --couplings pm-j --samples 2 --seed {seed} --disorder-seed {disorder}"
        line = f"temper {size} --temperatures 1:2:4 --thermalize 10 --sweeps 200 --measure-every 10 --out one.h5"
        assert run(capsys, monkeypatch, *line.split(), "--quiet").status == 0
        assert contents(Path("one.h5"), *OWN) == contents(one.path, *OWN)
        Path("one.h5").unlink()


def test_a_campaign_that_grows_does_what_is_missing(glass) -> None:
    ss.campaign(glass(3, 2)).run()
    before = tree(Path("runs"))
    grown = ss.campaign(glass("[3, 4]"))
    assert [one.state for one in grown.states] == ["finished", "waiting", "waiting", "waiting"]
    after = grown.run() and tree(Path("runs"))
    assert len(after) == len(before) + 3
    assert before.items() <= after.items()
    longer = ss.campaign(glass("[3, 4]", sweeps=400))
    assert {one.state for one in longer.states} == {"stopped"}
    assert {one.state for one in longer.run().states} == {"finished"}
    assert tree(Path("runs")).keys() == after.keys()
    assert [len(ss.load(one.path).sweep) for one in longer.runs] == [40] * 4
    assert {one.state for one in grown.states} == {"finished"}


def test_other_physics_and_seeds_have_other_files(glass) -> None:
    kinds = ["", "field = 0.5", "seed = 2", "disorder_seed = 3", "swap_every = 2", "replicas = 4"]
    files = [{one.path for one in ss.campaign(glass(more=f"{line}\n")).runs} for line in kinds]
    assert len(set.union(*files)) == 4 * len(kinds)
    disorder = [[one.config.model.disorder_seed for one in ss.campaign(glass(more=f"{line}\n")).runs] for line in kinds]
    assert disorder[2] == disorder[4] == disorder[5] == disorder[0]
    same = [
        {one.path for one in ss.campaign(glass(more=f"{line}\n")).runs} for line in ('device = "cpu"', "threads = 1")
    ]
    assert same == [files[0]] * 2


def test_lists_make_products_and_tables_go_side_by_side(glass) -> None:
    both = ss.campaign(
        glass(more='temperatures = ["1:2:4", "1:3:4"]\n[[campaign]]\nsize = "2x3"\nsweeps = 40\nseed = [1, 2]\n')
    )
    table = [tuple(one.varied.get(name) for name in ("size", "temperatures", "sweeps", "seed")) for one in both.runs]
    assert table[:8:2] == [(size, grid, 200, None) for size in (3, 4) for grid in ("1:2:4", "1:3:4")]
    assert table[8:] == [("2x3", None, 40, 1), ("2x3", None, 40, 2)]


def test_results_are_pooled_by_size(glass) -> None:
    found = ss.campaign(glass()).run().results
    assert [(one.model.sites, one.model.samples) for one in found] == [(9, 4), (16, 4)]
    assert ss.compare_sizes(found)[0].curves[0].label == "L = 3"


def test_the_command_prints_states_and_analysis(glass, capsys, monkeypatch) -> None:
    path = glass()
    told = run(capsys, monkeypatch, "campaign", path, "--state")
    assert told.out.splitlines()[-1] == "4 runs: 4 waiting"
    assert "nothing to analyse" in run(capsys, monkeypatch, "campaign", path, "--analyze").out
    done = run(capsys, monkeypatch, "campaign", path, "--device", "cpu")
    assert done.status == 0
    for words in ("Run 4 of 4: runs/glass/", "4 runs: 4 finished", "1 more file, pooled", "U_q: L = 3 and L = 4"):
        assert words in done.out
    again = run(capsys, monkeypatch, "campaign", path)
    assert "Run 1 of 4" not in again.out
    both = run(capsys, monkeypatch, "campaign", path, "--state", "--analyze").out
    assert all(words in both for words in ("4 runs: 4 finished", "U_q: L = 3 and L = 4"))
    numbers = json.loads(run(capsys, monkeypatch, "campaign", path, "--json").out)
    assert {one["state"] for one in numbers["runs"]} == {"finished"}
    assert numbers["analysis"][0]["energy_per_site"]


def test_runs_of_other_processes_are_left_to_them(glass, capsys, monkeypatch) -> None:
    whole = ss.campaign(glass())
    whole.runs[1].note_path.parent.mkdir(parents=True)
    whole.runs[1].note_path.write_text('{"share": 0.25, "seconds_left": 40.0}')
    with hold(whole.runs[1].note_path):
        assert [one.state for one in whole.run().states] == ["finished", "running", "finished", "finished"]
        told = run(capsys, monkeypatch, "campaign", "glass.toml", "--state").out
        assert "running   25%       40 s" in told
    with hold(whole.runs[0].path):  # such as by spinsim resume
        assert whole.states[0].state == "running"
        assert [one.state for one in ss.campaign(glass(sweeps=210)).run().states] == ["running", *["finished"] * 3]
    assert {one.state for one in whole.run().states} == {"finished"}


def test_an_interrupted_campaign_goes_on(glass, capsys, monkeypatch) -> None:
    whole = ss.campaign(glass()).run()
    wanted = [contents(one.path, *OWN) for one in whole.runs]
    for one in whole.runs:
        one.path.unlink()
    with monkeypatch.context() as patch:
        at_row(patch, 5, interrupt)
        told = run(capsys, patch, "campaign", "glass.toml", "--quiet")
        assert told.status == 130
        assert told.err == "Interrupted; spinsim campaign glass.toml goes on.\n"
    assert [one.state for one in whole.states] == ["stopped", "waiting", "waiting", "waiting"]
    assert run(capsys, monkeypatch, "campaign", "glass.toml", "--quiet").status == 0
    assert [contents(one.path, *OWN) for one in whole.runs] == wanted


def test_a_run_that_fails_does_not_stop_the_others(glass, capsys, monkeypatch) -> None:
    whole = ss.campaign(glass())
    whole.runs[0].path.parent.mkdir(parents=True)
    whole.runs[0].path.write_text("no run")
    huge = ss.campaign(glass(more="[[campaign]]\nsize = 2000000000\nreplicas = 2\n")).runs[-1]
    told = run(capsys, monkeypatch, "campaign", "glass.toml", "--device", "cpu")
    assert told.status == 2
    assert told.out.count("Run 1: runs/glass/") == 1
    assert whole.runs[0].path.read_text() == "no run"
    assert [one.state for one in whole.states] == ["failed", *["finished"] * 3]
    assert huge.state.state == "failed"
    assert huge.state.reason in told.out
    assert huge.state.reason in told.err


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ("siez = 3", ("unknown key 'siez' in [[campaign]]", "did you mean 'size'?")),
        ("[model2]", ("unknown table [model2]",)),
        ("[quantum]", ("tables of 2 jobs", "give that of one")),
        ("field = []", ("field is an empty list",)),
        ('seed = "random"', ("random seeds would give other runs each time",)),
        ("[[campaign]]\nsize = 3\nsamples = 4\nsamples_per_run = 2", ("one run twice", "'size': 3")),
        ("[[campaign]]\nsize = 3\nsamples = 4\nsamples_per_run = 3", ("samples_per_run 3 does not divide 4 samples",)),
        ("swap_every = 0", ("swap_every 0 is out of range",)),
    ],
)
def test_refusals_name_the_setting(more, words, glass, tmp_path, capsys, monkeypatch) -> None:
    path = glass(more=f"{more}\n")
    one_sentence(run(capsys, monkeypatch, "campaign", path), *words)
    assert [each.name for each in tmp_path.iterdir()] == ["glass.toml"]
    with pytest.raises(ss.InputError, match=r"\w+"):
        ss.campaign(path)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[anneal]\nsteps = 4\n[campaign]\nsize = [4, 6]\nseed = [1, 2]\n", "256 replicas"),
        ("[transfer]\n[campaign]\nsize = [4, 6]\nk = [0.3, 0.4]\n", "lambda"),
        ('[quantum]\nk = "0.2:0.3:2"\nslices = 8\nthermalize = 10\nsweeps = 400\n[campaign]\nsize = [3, 4]\n', "L = 3"),
    ],
)
def test_other_jobs_have_campaigns_too(text, words, tmp_path, capsys, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("own.toml").write_text(text)
    told = run(capsys, monkeypatch, "campaign", "own.toml", "--device", "cpu")
    assert told.status == 0, told
    assert words in told.out


def test_each_worker_has_its_share_of_the_cores_or_a_gpu(glass, capsys, monkeypatch) -> None:
    begun: list[list[str]] = []

    class Ended:
        def __init__(self, words: list[str], start_new_session: bool) -> None:
            begun.append(words)

        def wait(self) -> int:
            return 0

    monkeypatch.setattr("subprocess.Popen", Ended)
    monkeypatch.setattr("spinsim.machine.threads.available_threads", lambda: 6)
    assert run(capsys, monkeypatch, "campaign", glass(), "--workers", "2", "--device", "cpu", "--quiet").status == 0
    assert [words[4:] for words in begun] == [
        ["--quiet", "--workers=1", "--threads=3", "--device=cpu", "--", "glass.toml"]
    ] * 2
    begun.clear()
    monkeypatch.setattr(import_module("spinsim.cli.campaign"), "_gpus", lambda runs: [0, 2])
    assert run(capsys, monkeypatch, "campaign", "glass.toml", "--quiet").status == 0
    assert [words[6:8] for words in begun] == [["--threads=3", "--gpus=0,"], ["--threads=3", "--gpus=2,"]]


def test_too_few_workers_are_refused(glass, capsys, monkeypatch) -> None:
    one_sentence(run(capsys, monkeypatch, "campaign", glass(), "--workers", "0"), "workers 0 are too few")


def test_progress_is_noted(glass, monkeypatch) -> None:
    monkeypatch.setattr(campaigns, "_SECONDS_BETWEEN_NOTES", 0.0)
    whole, seen = ss.campaign(glass(3, 2)), list[campaigns.RunState]()
    at_row(monkeypatch, 7, lambda: seen.append(whole.runs[0].state))
    whole.run()
    assert seen[0].state == "running"
    assert 0 < (seen[0].share or 0) <= 1
    assert seen[0].seconds_left is not None


@pytest.mark.system
def test_two_at_once_share_the_work_and_one_that_is_killed_is_replaced(glass, tmp_path) -> None:
    path = glass("[3, 4, 5]", 8, sweeps=5000)
    line = ("campaign", path, "--device", "cpu", "--threads", 1, "--checkpoint-every", 0.1)
    killed = spinsim(tmp_path, *line)
    while not list(tmp_path.glob("runs/glass/*.h5")):
        assert killed.poll() is None
        time.sleep(0.002)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    both = [finish(process) for process in [spinsim(tmp_path, *line) for _ in range(2)]]
    assert [one.status for one in both] == [0, 0]
    runs = [word for one in both for word in one.out.splitlines() if word.startswith("Run ")]
    assert len(set(runs)) == len(runs) == 12
    whole = ss.campaign(path)
    assert {one.state for one in whole.states} == {"finished"}
    assert len(list(Path("runs/glass").iterdir())) == 12  # no notes
    wanted = [contents(one.path, *OWN) for one in whole.runs]
    for one in whole.runs:
        one.path.unlink()
    assert finish(spinsim(tmp_path, *line[:4], "--workers", 2, "--quiet")).status == 0
    assert [contents(one.path, *OWN) for one in whole.runs] == wanted
