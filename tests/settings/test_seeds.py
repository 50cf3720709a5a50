"""A seed that is left out is fixed; None, or random, draws a fresh one, which the run names and goes on with."""

from __future__ import annotations

import inspect
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from harness import one_sentence, run

import spinsim as ss
from spinsim.inputs.texts import RANDOM
from spinsim.jobs import all_jobs
from spinsim.jobs.temper.settings import Temper
from spinsim.run.identity import tables_of_file
from spinsim.settings.config import build_config, read_toml, tables_of

CALLS: dict[str, dict[str, Any]] = {
    "anneal": {"temperatures": [2.0, 1.0], "sweeps": 1, "replicas": 4},
    "temper": {"temperatures": [1.0, 1.5], "sweeps": 2, "measure_every": 1, "thermalize": 0},
    "quantum": {"k": 0.3, "slices": 2, "sweeps": 2, "measure_every": 1, "thermalize": 0},
    "transfer": {"k": 0.3, "eigenvalues": 1},
    "evolve": {"protocol": "T=1 for 2", "replicas": 2},
}


@pytest.mark.parametrize("job", CALLS)
def test_every_call_draws_a_seed_for_none_and_has_one_of_its_own_else(job: str) -> None:
    call, model = getattr(ss, job), ss.Ising(ss.chain(4))
    drawn = [call(model, seed=None, threads=1, **CALLS[job]).config["run"]["seed"] for _ in range(2)]
    assert drawn[0] != drawn[1]
    assert max(drawn) > 2**32  # of 64 bits
    assert call(model, threads=1, **CALLS[job]).config["run"]["seed"] == 1
    assert inspect.signature(call).parameters["seed"].default == 1


def test_the_seeds_of_own_loops_and_of_disorder_follow_the_same_rule() -> None:
    assert ss.Dynamics().seed == 1
    assert ss.Dynamics(None).seed != ss.Dynamics(seed=None).seed
    models = [ss.EdwardsAnderson(ss.chain(64), seed=None, couplings="gaussian") for _ in range(2)]
    assert (models[0].couplings != models[1].couplings).any()
    again = ss.EdwardsAnderson(ss.chain(64), seed=models[0].origin["disorder_seed"], couplings="gaussian")
    assert (again.couplings == models[0].couplings).all()
    said = ss.anneal(models[0], **CALLS["anneal"]).config["model"]["disorder_seed"]
    assert said == models[0].origin["disorder_seed"]


@pytest.mark.parametrize("job", [job.config for job in all_jobs()], ids=lambda job: job.job)
def test_the_seeds_of_commands_and_files_follow_the_same_rule(job: Any, tmp_path: Path) -> None:
    toml = tmp_path / "run.toml"
    toml.write_text(f'[model]\ndisorder_seed = "{RANDOM}"\ncouplings = "pm-j"\n[run]\nseed = "{RANDOM}"\n')
    tables = read_toml(toml, job, [each.config for each in all_jobs()])
    found = build_config(job, tables)
    other = build_config(job, tables)
    assert found.run.seed != other.run.seed
    assert found.model.disorder_seed != other.model.disorder_seed
    assert build_config(job, tables, {"run": {"seed": 5}}).run.seed == 5  # a flag wins
    assert {name for settings in tables_of(job).values() for name, one in settings.items() if one.is_seed} == {
        "seed",
        "disorder_seed",
    }


def test_the_same_call_goes_on_with_the_seed_of_its_file(tmp_path: Path) -> None:
    path, model = tmp_path / "run.h5", ss.Ising(ss.chain(4))
    first = ss.temper(model, seed=None, out=path, **CALLS["temper"])
    again = ss.temper(model, seed=None, out=path, **CALLS["temper"])
    assert again.config["run"]["seed"] == first.config["run"]["seed"]
    longer = ss.temper(model, seed=None, out=path, **CALLS["temper"] | {"sweeps": 4})
    assert longer.config["run"]["seed"] == first.config["run"]["seed"]
    assert len(longer.sweep) == 4
    table = {"run": {"seed": RANDOM, "out": str(path)}}
    assert build_config(Temper, table, begun=tables_of_file).run.seed == first.config["run"]["seed"]
    with pytest.raises(ss.InputError, match="holds another run"):
        ss.temper(ss.Ising(ss.chain(5)), seed=None, out=path, **CALLS["temper"])


def test_a_command_with_random_seeds_says_them_and_goes_on_when_it_is_repeated(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    command = partial(run, capsys, monkeypatch)
    path = tmp_path / "run.h5"
    words = ["anneal", "--size", 4, "--couplings", "pm-j", "--steps", 2, "--sweeps", 1, "--out", path]
    words += ["--seed", RANDOM, "--disorder-seed", RANDOM]
    assert command(*words).status == 0
    seeds = ss.load(path).config
    assert "already finished" in command(*words).out
    told = command("show", path).out
    assert f"Seed           {seeds['run']['seed']}, {seeds['model']['disorder_seed']} of the disorder" in told
    one_sentence(command("anneal", "--seed", "fresh"), "give digits such as 7, or random")
