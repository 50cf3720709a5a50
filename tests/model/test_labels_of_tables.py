"""Matrices that are DataFrames of pandas, whose labels are those of the sites."""

from __future__ import annotations

import re

import numpy as np
import pytest

import spinsim as ss

pd = pytest.importorskip("pandas")
NAMES = ["cup", "plate", "fork"]
Q = np.array([[-1.0, 2, 0], [0, -1, 2], [0.5, 0, -1]])
J = np.array([[0.0, 1, -2], [1, 0, 3], [-2, 3, 0]])


def test_labels_of_a_qubo_are_those_of_its_rows() -> None:
    table = pd.DataFrame(Q, index=NAMES, columns=NAMES)
    for model in (ss.Ising.from_qubo(table), ss.Ising.from_matrix(table, kind="qubo")):
        assert model.labels == tuple(NAMES)
        assert model.content_sha256() == ss.Ising.from_matrix(Q, kind="qubo", labels=NAMES).content_sha256()
    assert set(ss.anneal(ss.Ising.from_qubo(table), device="cpu").best.by_label) == set(NAMES)


def test_columns_and_fields_in_another_order_are_sorted_by_label() -> None:
    plain = ss.Ising.from_matrix(J, [0.0, 0.5, -1.0], labels=NAMES)
    columns = ["fork", "cup", "plate"]
    table = pd.DataFrame(J, index=NAMES, columns=NAMES)[columns]
    field = pd.Series({"fork": -1.0, "cup": 0.0, "plate": 0.5})
    for fields in (field, [0.0, 0.5, -1.0], pd.Series([0.0, 0.5, -1.0])):
        model = ss.Ising.from_matrix(table, fields)
        assert model.labels == tuple(NAMES)
        assert model.content_sha256() == plain.content_sha256()


def test_numbers_of_rows_are_kept() -> None:
    assert ss.Ising.from_matrix(pd.DataFrame(J)).labels == range(3)
    one = pd.DataFrame(J, index=[1, 2, 3], columns=[1, 2, 3])
    assert ss.Ising.from_matrix(one).labels == range(1, 4)
    pairs = pd.MultiIndex.from_tuples([(0, "a"), (0, "b"), (1, "a")])
    assert ss.Ising.from_matrix(pd.DataFrame(J, pairs, pairs)).labels == ((0, "a"), (0, "b"), (1, "a"))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: ss.Ising.from_qubo(pd.DataFrame(Q, columns=NAMES)), "different labels, 0 among them"),
        (lambda: ss.Ising.from_qubo(pd.DataFrame(Q, NAMES, ["cup", "plate", "knife"])), "'fork' among them"),
        (lambda: ss.Ising.from_qubo(pd.DataFrame(Q[:2], NAMES[:2], NAMES)), "'fork' among them"),
        (lambda: ss.Ising.from_matrix(pd.DataFrame(J, list("aab"), list("aab"))), "label 'a' stands for two sites"),
        (lambda: ss.Ising.from_matrix(pd.DataFrame(J, list("aab"), list("abb"))), "different labels"),
        (lambda: ss.Ising.from_qubo(pd.DataFrame([["x"]])), "holds"),
        (
            lambda: ss.Ising.from_matrix(pd.DataFrame(J, NAMES, NAMES), pd.Series([1.0, 2, 3], list("abc"))),
            "labels of the fields differ from those of the sites",
        ),
    ],
)
def test_labels_that_do_not_fit_are_refused(make, words: str) -> None:
    with pytest.raises(ss.InputError, match=re.escape(words)):
        make()


def test_labels_that_are_given_come_first() -> None:
    model = ss.Ising.from_matrix(pd.DataFrame(J, NAMES, list("abc")), labels=[7, 8, 9])
    assert model.labels == range(7, 10)
