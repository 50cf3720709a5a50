"""a:b:n, a:b:ng and lists of numbers: one syntax in every job; ladders of runs from before there was a g."""

from __future__ import annotations

import json
from copy import deepcopy

import numpy as np
import pytest
from harness import run

import spinsim as ss
from spinsim.errors import on_command_line
from spinsim.inputs.numbers import as_text, read_grid
from spinsim.jobs.temper.settings import Temper
from spinsim.jobs.transfer.settings import Transfer
from spinsim.settings.config import build_config

TEMPER = "temper --size 4 --thermalize 0 --sweeps 100 --quiet --temperatures"


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("0.8:2:4", [0.8, 1.2, 1.6, 2.0]),
        ("1:8:4g", [1, 2, 4, 8]),
        ("8:1:4g", [8, 4, 2, 1]),
        ("0.3:0.2:3", [0.3, 0.25, 0.2]),
        ("1:2:1", [1]),
        ("1:2:1g", [1]),
        ("0.8, 1.0,1.3", [0.8, 1.0, 1.3]),
        ("2.5", [2.5]),
        ("1e-1:1e1:3g", [0.1, 1, 10]),
    ],
)
def test_numbers_of_a_text(text, numbers) -> None:
    np.testing.assert_allclose(read_grid("k", text), numbers, rtol=1e-15)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x", "cannot be read"),
        ("1:2", "cannot be read"),
        ("1:2:3:4", "cannot be read"),
        ("1:2:g", "cannot be read"),
        ("1:2:3gg", "cannot be read"),
        ("1:2:3.5", "cannot be read"),
        ("", "cannot be read"),
        ("1:2:0", "has 0 points: give 1 to 1000000"),
        ("1:2:9999999g", "9999999 points"),
        ("0:2:3", "not all above 0 and finite"),
        ("-1:2:3g", "not all above 0 and finite"),
        ("1:inf:3", "not all above 0 and finite"),
        ("1,nan", "not all above 0 and finite"),
    ],
)
def test_texts_that_are_refused(text, words) -> None:
    with on_command_line(), pytest.raises(ss.InputError, match=words) as refused:
        read_grid("k", text)
    assert repr(text) in str(refused.value)


def test_the_same_in_temper_and_transfer() -> None:
    for text, numbers in (("2:3:3", [2, 2.5, 3]), ("2:4.5:3g", [2, 3, 4.5]), ("2,3", [2, 3])):
        np.testing.assert_allclose(build_config(Temper, {"temper": {"temperatures": text}}).temper.ladder, numbers)
        for key, k in (("temperature", 1 / np.array(numbers)), ("k", numbers)):
            transfer = build_config(Transfer, {"transfer": {key: text, "k_time": text}}).transfer
            np.testing.assert_allclose(transfer.points(None), [k, numbers])


def identity(text: str | None) -> str:
    config = build_config(Temper, {"temper": {"temperatures": text, "magnetization_modes": True}})
    return config.with_temperatures(ss.Ising(ss.square(4))).sha256(None)


def test_identities() -> None:
    """They stay from version to version."""
    assert len({identity(text) for text in ("0.8:2:16", "0.8:2:16g", "0.8:2:8g", "0.8,2", "auto:0.8:2")}) == 5
    assert identity("0.8:2:16g") == "7e987196461ca62339e564c1c33d0e8d1787827fbaf0fa66ff7f00147a777053"
    assert identity("0.8,1.2,2") == "9946fc8a9a34381346d25228a09d27040a8354c1121a949d67c786dfd1a8c383"
    assert identity(None) == "c39adece8b5df627ef94f935f518ab364523bac99c7df074e3e6991b3a3fc84a"


def test_a_linear_ladder_is_resumed_as_such(do, capsys, monkeypatch) -> None:
    path, long = do(f"{TEMPER} 2:3:5", "short"), do(f"{TEMPER} 2:3:5 --sweeps 200", "long")
    assert run(capsys, monkeypatch, "resume", path, "--sweeps", 200, "--quiet").status == 0
    np.testing.assert_array_equal(ss.load(path).temperature, [2, 2.25, 2.5, 2.75, 3])
    np.testing.assert_array_equal(ss.load(path).energy, ss.load(long).energy)


def test_numbers_given_in_python_are_those_of_their_text() -> None:
    """A text carries them along, to other ranks too; nobody changes them by what was read."""
    numbers = np.random.default_rng(1).random(50) * 2.0**-300
    text = as_text(numbers)
    for written in (text, deepcopy(text), str.__str__(text)):
        read = read_grid("numbers", written)
        np.testing.assert_array_equal(read, numbers)
        read[:] = 0
    assert json.loads(json.dumps(text)) == text
    np.testing.assert_array_equal(read_grid("numbers", json.loads(json.dumps(text))), numbers)
