"""Results of every job as other processes get them: pickled and copied, with a file and without one."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import spinsim as ss
from spinsim.run import recording
from spinsim.store import files

MODEL = ss.EdwardsAnderson(ss.square(4), samples=2, seed=1)
RUNS: dict[str, Callable[..., Any]] = {
    "anneal": lambda **out: ss.anneal(MODEL, [2.0, 1.0, 0.5], sweeps=2, replicas=3, save_configurations=1, **out),
    "search": lambda **out: ss.anneal(MODEL, [2.0, 1.0], sweeps=2, replicas=3, anneals=2, **out),
    "population": lambda **out: ss.anneal(MODEL, [3.0, 2.0, 1.0], sweeps=2, replicas=50, populations=2, **out),
    "temper": lambda **out: ss.temper(MODEL, [1.0, 2.0], sweeps=160, thermalize=4, save_configurations=2, **out),
    "sums": lambda **out: ss.temper(MODEL, [1.0, 2.0], sweeps=160, thermalize=4, series="none", **out),
    "quantum": lambda **out: ss.quantum(ss.Ising(ss.square(2)), k=[0.3, 0.4], slices=4, sweeps=80, **out),
    "evolve": lambda **out: ss.evolve(MODEL, "T=1 for 8", waiting=[2], replicas=4, device="cpu", **out),
    "transfer": lambda **out: ss.transfer(ss.Ising(ss.chain(4)), k=[0.3, 0.4], device="cpu", **out),
}


def assert_same(one: Any, other: Any) -> None:
    """Fields, records and what follows from them are equal."""
    assert type(one) is type(other)
    if isinstance(one, np.ndarray):
        np.testing.assert_array_equal(one, other, strict=True)
    elif isinstance(one, ss.Ising):
        assert one.content_sha256() == other.content_sha256()
        assert (one.name, one.caution, list(one.labels)) == (other.name, other.caution, list(other.labels))
    elif isinstance(one, dict):
        assert list(one) == list(other)
        for name in one:
            assert_same(one[name], other[name])
    elif hasattr(one, "paths"):
        assert [path for path, _ in one.paths()] == [path for path, _ in other.paths()]
        for (_, mine), (_, theirs) in zip(one.paths(), other.paths(), strict=True):
            assert mine[1:] == theirs[1:]
            np.testing.assert_array_equal(np.asarray(mine.values), np.asarray(theirs.values), strict=True)
        assert_same(one.attributes, other.attributes)
    elif hasattr(one, "of_sample"):
        np.testing.assert_array_equal(one[:], other[:])
    elif hasattr(one, "__dataclass_fields__"):
        for field in fields(one):
            assert_same(getattr(one, field.name), getattr(other, field.name))
    elif isinstance(one, tuple | list):
        assert len(one) == len(other)
        for mine, theirs in zip(one, other, strict=True):
            assert_same(mine, theirs)
    elif isinstance(one, str | int | float | bool | type(None)):
        assert one == other or (one != one and other != other)


COPIES: dict[str, Callable[[Any], Any]] = {
    "pickled": lambda result: pickle.loads(pickle.dumps(result)),  # noqa: S301  (our own)
    "copied": copy.deepcopy,
}


@pytest.mark.parametrize("how", COPIES)
@pytest.mark.parametrize("where", ["memory", "file", "loaded", "segments"])
@pytest.mark.parametrize("job", RUNS)
def test_results_are_equal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, job: str, where: str, how: str) -> None:
    path = tmp_path / "a.h5"
    if where == "segments":
        monkeypatch.setattr(recording, "SEGMENTED", 10)
        monkeypatch.setattr(files, "_JOINED", 0)
    result = RUNS[job](**({} if where == "memory" else {"out": path}))
    if where == "loaded":
        result = ss.load(path)
    same = COPIES[how](result)
    assert_same(same, result)
    assert repr(same) == repr(result)
    assert same.save(tmp_path / "b.h5").exists()
    assert_same(ss.load(tmp_path / "b.h5").model, result.model)


def test_an_unfinished_result(tmp_path: Path) -> None:
    def interrupt(updates: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ss.temper(MODEL, [1.0, 2.0], sweeps=10**6, out=tmp_path / "a.h5", on_updates=interrupt)
    result = ss.load(tmp_path / "a.h5")
    assert not result.finished
    for make in COPIES.values():
        assert_same(make(result), result)
