"""Labels that are long or deep: kept in files, or refused before a run begins."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np
import pytest

import spinsim as ss
from spinsim.errors import InputError
from spinsim.model.ising import Ising


def model(label: Hashable) -> Ising:
    return Ising(ss.Graph(3, [[0, 1], [1, 2]]), [1, -1], labels=[label, "b", "c"])


@pytest.mark.parametrize("length", [65_535, 65_536, 100_000])
def test_a_long_label_is_kept(tmp_path, length) -> None:
    """From 65,536 characters on the finished file could not be written."""
    path = tmp_path / "a.h5"
    result = ss.anneal(model("a" * length), np.array([2.0, 1.0]), sweeps=1, replicas=2, out=path)
    assert ss.load(path).finished
    assert ss.load(path).model.labels[0] == result.model.labels[0] == "a" * length


def nested(depth: int) -> Hashable:
    label: Hashable = "x"
    for _ in range(depth):
        label = (label,)
    return label


def test_labels_nested_too_deep_are_refused(tmp_path) -> None:
    path = tmp_path / "a.h5"
    ss.anneal(model(nested(100)), np.array([2.0, 1.0]), sweeps=1, replicas=2, out=path)
    assert ss.load(path).model.labels[0] == nested(100)
    for depth in (101, 3000):
        with pytest.raises(InputError, match="is nested more than 100 deep: give flatter tuples, or texts"):
            model(nested(depth))
