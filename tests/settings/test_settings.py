"""Settings are stated once: what they allow is what the program can do; lists of numbers; what a table refuses."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from inspect import Parameter, getdoc, signature
from pydoc import plaintext, render_doc

import numpy as np
import pytest
from harness import one_sentence, run
from places import ROOT
from settings_page import allowed, page

import spinsim as ss
from spinsim import packing, rng
from spinsim.acceptance import COLDEST, ZERO_ACCEPTANCE
from spinsim.cli import flags
from spinsim.engine import DEVICES, Dynamics
from spinsim.engine.dynamics import STARTS
from spinsim.engine.given import GIVEN
from spinsim.jobs import all_jobs, job_of
from spinsim.jobs.anneal.settings import Anneal, AnnealSettings
from spinsim.jobs.temper.settings import TemperSettings
from spinsim.jobs.transfer.settings import TransferSettings
from spinsim.model.cells import CELLS
from spinsim.model.disorder import KINDS
from spinsim.sampling import Times, annealing
from spinsim.sampling.annealing import SCHEDULES
from spinsim.settings.config import build_config, table, tables_of
from spinsim.settings.setting import setting, settings_of
from spinsim.settings.shared import ModelSettings, RunSettings
from spinsim.transfer_matrix.lanczos import MOST_STEPS, TOLERANCE
from spinsim.transfer_matrix.operator import METHODS
from spinsim.transfer_matrix.spectrum import Settings

JOBS = [job.config for job in all_jobs()]


def test_settings_allow_what_the_program_can_do() -> None:
    """The settings' module is read before NumPy is, so that it states these numbers and names itself."""
    model, run_, anneal, temper, transfer = map(
        settings_of, (ModelSettings, RunSettings, AnnealSettings, TemperSettings, TransferSettings)
    )
    choices = {
        model["lattice"]: tuple(CELLS),
        model["couplings"]: KINDS,
        run_["device"]: DEVICES,
        run_["rng_rounds"]: (rng.ROUNDS, rng.FEWER_ROUNDS),
        anneal["start"]: STARTS,
        anneal["schedule"]: SCHEDULES,
        transfer["method"]: METHODS,
        transfer["sector"]: ("even", "odd", "both"),
    }
    for one, values in choices.items():
        assert set(one.choices) == set(values), one.name
    highest = {
        model["samples"]: 2**rng.SAMPLE_BITS,
        model["disorder_seed"]: 2**64 - 1,
        run_["seed"]: 2**64 - 1,
        run_["replicas"]: packing.LANES * 2**rng.BLOCK_BITS,
    }
    for one, number in highest.items():
        assert one.high == number, one.name
    assert anneal["t_start"].low == anneal["t_stop"].low == COLDEST
    assert anneal["start"].besides == temper["start"].besides == GIVEN
    assert anneal["zero_acceptance"].default == temper["zero_acceptance"].default == ZERO_ACCEPTANCE
    assert (transfer["tolerance"].default, transfer["most_steps"].default) == (TOLERANCE, MOST_STEPS)


def test_the_page_of_settings_is_not_stale() -> None:
    """``python tests/support/settings_page.py > docs/reference/settings.md`` makes it anew."""
    found = (ROOT / "docs" / "reference" / "settings.md").read_text()
    assert found == page(JOBS)


@dataclass(frozen=True)
class LaterSettings(AnnealSettings):
    """The table of a version to come, which has one setting more."""

    warmth: float = setting(0.0, "What nobody has thought of yet", low=0, high=9, before=0.0)


@dataclass(frozen=True)
class Later(Anneal):
    """The configuration of that version."""

    anneal: LaterSettings = table(LaterSettings)


def test_a_setting_more_is_one_field_and_leaves_old_runs_their_identity() -> None:
    old = Anneal()
    tables = json.loads(old.json())
    assert Later.from_tables(tables) == Later()
    assert Later().sha256(None) == Later.identity(tables, None) == old.sha256(None)
    assert build_config(Later, {"anneal": {"warmth": 2}}).sha256(None) != old.sha256(None)
    with pytest.raises(ss.InputError, match=r"warmth 10\.0 is out of range: give a number from 0 to 9"):
        build_config(Later, {"anneal": {"warmth": 10}})
    assert "warmth" in flags.places_of(Later)
    assert "| `warmth` | `--warmth` | What nobody has thought of yet | a number from 0 to 9 |  | `0` |" in page([Later])


CALLS = {
    name: getattr(ss, name) for name in ("anneal", "temper", "quantum", "transfer", "evolve", "multicanonical", "solve")
}


FILLED_IN = {
    "anneal": {"sweeps", "steps", "schedule", "growing", "clusters_every"},
    "temper": {"correlations", "clusters_every"},
    "quantum": {"clusters_every"},
    "transfer": set(),
    "evolve": set(),
    "multicanonical": set(),
    "solve": set(),
}
"""Settings that mean more where they are given than where they are left out, even at their default."""
ARGUMENTS = {"model", "problem", "feasible", "on_updates", "on_rows", "progress", "until_equilibrated"}


def entries(call) -> dict[str, str]:
    """Entry of each argument in the docstring of a call, on one line."""
    said = (getdoc(call) or "").partition("Args:\n")[2].partition("\n\n")[0]
    found = re.split(r"^    (\w+): ", said, flags=re.MULTILINE)[1:]
    return {name: " ".join(text.split()) for name, text in zip(found[::2], found[1::2], strict=True)}


@pytest.mark.parametrize("job", JOBS)
def test_calls_have_each_setting_with_its_default(job) -> None:
    """None stands for a default that depends on others, in words or by being left out."""
    parameters, tables = signature(CALLS[job.job]).parameters, tables_of(job)
    settings = {key: one for name in ("run", job.job) for key, one in tables[name].items() if not one.unused}
    assert parameters.keys() - settings.keys() <= ARGUMENTS
    for key, one in settings.items():
        depends = (one.shown and key != "zero_acceptance") or key in FILLED_IN[job.job]
        assert parameters[key].default == (None if depends else one.default), key
        assert type(parameters[key].default) in (type(one.default), type(None)), key
        said = str(parameters[key].annotation)
        kinds = {"ArrayLike", "str"} if one.takes_lists else {one.kind.__name__}
        assert kinds <= set(said.split(" | ")), key
        assert (" | None" in said) == (parameters[key].default is None or one.is_seed), key


@pytest.mark.parametrize("job", JOBS)
def test_calls_describe_each_argument(job) -> None:
    """The entry of a setting has its choices, its highest value, and its default where the signature has None."""
    call, tables = CALLS[job.job], tables_of(job)
    said, settings = entries(call), {**tables["run"], **tables[job.job]}
    assert list(said) == list(signature(call).parameters)
    for key in said.keys() - ARGUMENTS:
        one = settings[key]
        assert all(str(choice) in said[key] for choice in one.choices), key
        if one.high is not None:
            assert re.split(" to | at most ", allowed(one))[-1] in said[key], key
        if key in FILLED_IN[job.job]:
            assert str(one.default) in said[key], key


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_help_of_a_call_names_each_keyword_with_its_type_and_default(call) -> None:
    shown = render_doc(call, renderer=plaintext)
    assert max(map(len, shown.splitlines())) <= 100
    assert "<" not in shown  # of an object, which has an address
    assert "**" not in shown
    if call is ss.multicanonical:  # runs on the CPU alone
        return
    assert "    gpus: str | None = None,\n" in shown
    with pytest.raises(TypeError, match="has no argument 'gpu': give device or gpus"):
        call(ss.Ising(ss.chain(4)), gpu="0")


@pytest.mark.parametrize("kind", [Times, Dynamics, Settings, annealing])
def test_what_is_below_the_settings_has_their_defaults(kind) -> None:
    found = {name: one.default for name, one in signature(kind).parameters.items()}
    job = {Times: "temper", Dynamics: "anneal", Settings: "transfer", annealing: "anneal"}[kind]
    tables = tables_of(job_of(job).config)
    compared = {key: one for name in ("run", job) for key, one in tables[name].items() if key in found}
    for key, one in compared.items():
        if found[key] is not Parameter.empty and (kind, key) != (Settings, "device"):
            assert found[key] == one.default, key


def test_a_call_takes_what_is_no_parameter_of_it() -> None:
    result = ss.anneal(ss.Ising(ss.square(4)), steps=3, t_start=2, t_stop=1, schedule="linear", sweeps=2, replicas=2)
    assert result.temperature.tolist() == [2, 1.5, 1]
    assert len(ss.anneal(ss.Ising(ss.square(4)), sweeps=1, replicas=1).temperature) == 100
    with pytest.raises(TypeError, match="anneal has no argument 'sweps': did you mean 'sweeps'"):
        ss.anneal(ss.Ising(ss.square(4)), sweps=3)


@pytest.mark.parametrize("job", JOBS)
def test_a_setting_is_its_own_line_of_help(job, capsys, monkeypatch) -> None:
    """Its flag, what it is and its default, whatever the width of the terminal does to the lines."""
    monkeypatch.setenv("COLUMNS", "200")
    shown = " ".join(run(capsys, monkeypatch, job.job, "--help").out.split())
    for settings in tables_of(job).values():
        for one in settings.values():
            if one.unused or one.option is None:
                assert f"{one.option or '--instance'} " not in shown
            else:
                assert f"{one.option} " in shown
                fresh = ", random for a fresh one" if one.is_seed else ""
                assert f"{one.described}{fresh}.{f' [{one.default_text}]' if one.default_text else ''}" in shown


@pytest.mark.parametrize(
    ("text", "numbers"),
    [("3:1:3", [3, 2, 1]), ("4:1:3g", [4, 2, 1]), ("3, 2.5,1", [3, 2.5, 1]), ([3, 2.5], [3, 2.5]), (2, [2])],
)
def test_temperatures_of_an_anneal_are_written_as_elsewhere(text, numbers) -> None:
    config = build_config(Anneal, {"anneal": {"temperatures": text}}).with_temperatures(ss.Ising(ss.square(4)))
    np.testing.assert_allclose(config.anneal.ladder, numbers, rtol=1e-15)
    listed = build_config(Anneal, {"anneal": {"temperatures": config.anneal.ladder.tolist()}})
    assert config.sha256(None) == listed.with_temperatures(ss.Ising(ss.square(4))).sha256(None)
    assert config.anneal.ladder is config.anneal.ladder  # read once


def test_a_loop_of_fields_on_the_command_line(do) -> None:
    result = ss.load(do("anneal --size 4 --temperatures 2 --fields 1:-1:5 --sweeps 3 --replicas 2 --quiet"))
    np.testing.assert_array_equal(result.field, [1, 0.5, 0, -0.5, -1])
    assert result.config["anneal"]["schedule"] == "list"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("anneal --temperatures 3:x:4", ("'3:x:4'", "0.8:2:16g (geometric)")),
        ("anneal --temperatures 3:1:4 --steps 4", ("steps 4", "temperatures, which say every step")),
        ("anneal --temperatures 3:-1:4", ("'3:-1:4'", "not all above 0")),
        (
            "anneal --temperatures 3:1:4 --fields 1:0:3",
            ("field has 3 numbers for 4 temperatures", "give one for each"),
        ),
        ("anneal --temperatures 3:1:4 --fields 1:nan:4", ("'1:nan:4'", "not all finite")),
        ("anneal --schedule list", ("schedule 'list'", "choose linear or geometric")),
        ("temper --thermalize -1", ("thermalize -1", "a whole number, at least 0")),
        ("temper --measure-every 7", ("sweeps 10000", "multiple of measure_every 7")),
        ("transfer --layer cubic", ("layer 'cubic'", "choose chain or square")),
        ("transfer --tolerance 0", ("tolerance 0.0", "from 1e-14 to 0.1")),
        ("transfer --sector all", ("sector 'all'", "even, odd, both")),
        ("transfer --method krylov", ("method 'krylov'", "butterfly, kronecker")),
    ],
)
def test_what_tables_refuse(capsys, monkeypatch, line: str, words: tuple[str, ...]) -> None:
    one_sentence(run(capsys, monkeypatch, *line.split()), *words)
