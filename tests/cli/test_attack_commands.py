"""A seeded mutator of command lines: done or refused in one sentence, soon; what is refused has written nothing."""

from __future__ import annotations

import re
import shutil
import traceback
from pathlib import Path
from random import Random
from typing import Any

import pytest
import typer
from attacks import NUMBERS, TooSlowError, picture, time_limit
from harness import run

import spinsim as ss
from spinsim import cli
from spinsim.cli import running

LINES = [
    "anneal --size 4 --steps 2 --sweeps 1 --replicas 2 --quiet",
    "anneal good.mc --steps 2 --sweeps 1 --replicas 2 --seed 3 --json",
    "anneal --config set.toml --out new/x.h5 --quiet",
    "anneal --lattice cubic --size 2x3x4 --couplings gaussian --field 0.5 --t-start 2 --steps 2 --sweeps 1",
    "temper --size 4 --temperatures 1,2 --thermalize 1 --sweeps 4 --measure-every 2 --quiet",
    "temper good.mc --temperatures 1:2:3g --thermalize 0 --sweeps 3 --replicas 3 --json",
    "transfer --width 4 --k 0.4 --quiet",
    "transfer --layer square --width 2 --temperature 2:3:2 --eigenvalues 1 --json",
    "resume anneal.h5 --quiet",
    "resume temper.h5 --sweeps 60 --quiet",
    "show anneal.h5",
    "show temper.h5 --json",
    "analyze temper.h5 --csv table.csv",
    "plot anneal.h5 --what thermodynamics --out figure.png",
    "bench gemm --plot bars.pdf",
    "devices",
]
WORDS = [
    "", "x", "-", "--", "4x4", "4x4x4", "1:2:3", "1:2:3g", "2:1:3", "1:2", "::", "1:2:99999999999", "auto:1:2:3",
    "auto:1", "a,b", "0.2,0.3", "even", "both", "gaussian", "pm-j", "chain", "square", "cubic", "open", "cpu", "cuda",
    "up", "linear", "pdf", "svg", "kronecker", "good.mc", "anneal.h5", "temper.h5", "transfer.h5", "notes.txt",
    "set.toml", "figure.pdf", "table.csv", "folder", "missing.h5", "missing/x.h5", "notes.txt/x.h5", "folder/x.h5",
    "dangling.h5", "/dev/null", "/dev/zero", "a\nb\x1b[31m.h5", "b\udcff.h5", "ü ±.h5", "thermodynamics", "energy",
    "a" * 300,
]  # fmt: skip
LONG = ("--help", "--install-completion", "--show-completion")
MOST_UPDATES = 10**5
RESULTS = ("anneal.h5", "temper.h5", "transfer.h5")
KEPT = ("notes.txt", "good.mc", "set.toml", "figure.pdf", "table.csv")


def options() -> dict[str, list[str]]:
    """The options of every command, as the command line itself knows them."""
    commands: Any = typer.main.get_command(cli.app)
    return {
        name: [word for option in command.params for word in (*option.opts, *option.secondary_opts) if word[0] == "-"]
        for name, command in commands.commands.items()
    }


def mutated(rng: Random, known: dict[str, list[str]]) -> list[str]:
    """One of the lines with a few wounds."""
    words = rng.choice(LINES).split()
    for _ in range(rng.choice((0, 1, 1, 1, 2, 4))):
        at = rng.randrange(1, len(words) + 1)
        kind = rng.randrange(8)
        if kind <= 2 and at < len(words):
            words[at] = rng.choice(rng.choice((NUMBERS, WORDS)))
        elif kind <= 4:
            offered = [word for word in known.get(words[0], []) if word not in LONG]
            words[at:at] = [rng.choice(offered or ["--size"]), rng.choice(rng.choice((NUMBERS, WORDS)))][
                : rng.choice((1, 2, 2))
            ]
        elif kind == 5 and len(words) > 1:
            del words[rng.randrange(1, len(words))]
        elif kind == 6:
            words.insert(at, rng.choice(words))
        else:
            words[at - 1 : at] = [rng.choice((words[at - 1] + "x", words[at - 1][1:], words[at - 1].upper()))]
    return words


@pytest.fixture(scope="module")
def originals(tmp_path_factory):
    folder = tmp_path_factory.mktemp("originals")
    ss.anneal(ss.Ising(ss.square(4)), [2.0, 1.0], sweeps=1, replicas=4).save(folder / "anneal.h5")
    model = ss.EdwardsAnderson(ss.square(4), samples=2)
    ss.temper(model, [1.0, 2.0], sweeps=40, thermalize=0, measure_every=1).save(folder / "temper.h5")
    ss.transfer(ss.Ising(ss.chain(4)), k=[0.3, 0.4]).save(folder / "transfer.h5")
    (folder / "good.mc").write_text("4 4\n1 2 1\n2 3 -1\n3 4 1.5\n4 1 0.1\n")
    (folder / "notes.txt").write_text("Notes that nobody shall lose.\n")
    (folder / "set.toml").write_text('[model]\nsize = "4"\n[anneal]\nsteps = 2\nsweeps = 1\n[run]\nreplicas = 2\n')
    (folder / "figure.pdf").write_bytes(b"%PDF-1.4\n")
    (folder / "table.csv").write_text("temperature,energy_per_site\n1.0,2.0\n")
    (folder / "folder").mkdir()
    (folder / "dangling.h5").symlink_to("nowhere.h5")
    return folder


@pytest.fixture
def short_runs(monkeypatch):
    """Let plans of long runs end where these would begin."""

    def updates(plan):
        if plan.config.job == "transfer":
            return plan.work().rows * 2 ** (plan.model.sites + 4)
        tempers = plan.config.job == "temper"
        temperatures = len(plan.config.temper.ladder) if tempers and not plan.config.temper.to_place else 1
        return plan.updates(plan.config.run.replicas * temperatures)

    whole = running.carry_out

    def begin_if_short(plan, *rest):
        if updates(plan) > MOST_UPDATES:
            raise SystemExit(0)
        whole(plan, *rest)

    monkeypatch.setattr(running, "carry_out", begin_if_short)


def fault(words: list[str], originals: Path, fresh: dict[str, Any], capsys, monkeypatch) -> tuple[int, str]:
    """The exit status of a line, run in the current folder, and what is wrong with what it did; empty where nothing."""
    folder = Path.cwd()
    try:
        with time_limit(60):
            done = run(capsys, monkeypatch, *words)
    except (Exception, TooSlowError):
        return 1, traceback.format_exc(limit=-4)
    if done.status not in (0, 2):
        return 1, repr(done)
    if done.status == 2:
        sentence = done.err.removesuffix("\n")
        bare = re.sub(r"'[^']*'|\"[^\"]*\"", "", sentence)  # without what was typed
        if not (sentence.startswith("spinsim: ") and sentence.isprintable()) or re.search(r"[a-z]\. [A-Z]", bare):
            return 1, repr(done)
        return 2, "" if picture(folder) == fresh else "refused, yet something was written"
    touched = [name for name in KEPT if (folder / name).read_bytes() != (originals / name).read_bytes()]
    if touched and "--overwrite" not in words:
        return 1, f"{touched} changed"
    for name in RESULTS:
        ss.load(folder / name)
    return 0, ""


def attack(seeds: range, originals: Path, folder: Path, capsys, monkeypatch) -> int:
    """Run mutants, the folder laid anew after each that was done; how many were. Faults are listed together."""
    known, faults, good = options(), [], 0
    fresh = None
    for seed in seeds:
        if fresh is None:
            monkeypatch.chdir(originals)
            shutil.rmtree(folder, ignore_errors=True)
            shutil.copytree(originals, folder, symlinks=True)
            monkeypatch.chdir(folder)
            fresh = picture(folder)
        words = mutated(Random(seed), known)
        status, wrong = fault(words, originals, fresh, capsys, monkeypatch)
        if wrong:
            faults.append(f"{seed} {words}: {wrong}")
        good += status == 0
        fresh = fresh if status == 2 and not wrong else None
    assert not faults, "\n".join(faults)
    return good


@pytest.mark.system
def test_mutated_commands_are_done_or_refused(originals, tmp_path, short_runs, capsys, monkeypatch):
    assert 10 < attack(range(120), originals, tmp_path / "here", capsys, monkeypatch) < 110


@pytest.mark.slow
def test_many_mutated_commands_are_done_or_refused(originals, tmp_path, short_runs, capsys, monkeypatch):
    assert 200 < attack(range(10_000, 13_000), originals, tmp_path / "here", capsys, monkeypatch) < 2800
