"""Problems as objects of other programs: energies by their own definitions, round trips to the last digit, refusals."""

from __future__ import annotations

import sys
from fractions import Fraction

import dimod
import networkx as nx
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import all_states, any_labels, bqms, energies, energies_by_dimod, integers, reals
from scipy import sparse

import spinsim as ss


@settings(max_examples=30)
@given(bqms(values=integers))
def test_a_bqm_has_its_energies_exactly(bqm: dimod.BQM) -> None:
    model, states = ss.Ising.from_bqm(bqm), all_states(bqm.num_variables)
    assert list(model.labels) == list(bqm.variables)
    assert model.vartype == bqm.vartype.name
    assert energies(model, states).tolist() == energies_by_dimod(bqm, states).tolist()


@settings(max_examples=30)
@given(bqms(values=reals))
def test_real_biases_give_energies_within_1e_9(bqm: dimod.BQM) -> None:
    model, states = ss.Ising.from_bqm(bqm), all_states(bqm.num_variables)
    size = 1 + sum(map(abs, [*bqm.linear.values(), *bqm.quadratic.values(), bqm.offset]))
    np.testing.assert_allclose(energies(model, states), energies_by_dimod(bqm, states), atol=1e-9 * size, rtol=0)


@settings(max_examples=30)
@given(bqms())
def test_round_trips_are_lossless(bqm: dimod.BQM) -> None:
    model = ss.Ising.from_bqm(bqm)
    graph = model.to_networkx()
    others = [model.to_bqm(), ss.Ising.from_networkx(graph).to_bqm()]
    if bqm.vartype is dimod.BINARY:
        others.append(ss.Ising.from_qubo(*model.to_qubo()).to_bqm())
        others.append(ss.Ising.from_matrix(*model.to_matrix("qubo"), kind="qubo", labels=model.labels).to_bqm())
    else:
        others.append(ss.Ising.from_matrix(*model.to_matrix(), labels=model.labels).to_bqm())
    for other in others:
        assert list(other.variables) == list(bqm.variables)
        assert [type(v) for v in other.variables] == [type(v) for v in bqm.variables]
        assert other.vartype is bqm.vartype
        assert other == bqm


@settings(max_examples=30)
@given(st.dictionaries(st.tuples(any_labels, any_labels), integers, min_size=1, max_size=8))
def test_a_qubo_is_the_sum_of_its_terms(qubo: dict) -> None:
    model = ss.Ising.from_qubo(qubo, offset=2.5)
    assert list(model.labels) == list(dict.fromkeys(label for pair in qubo for label in pair))
    states = all_states(model.sites)
    place = {label: k for k, label in enumerate(model.labels)}
    x = (1 + states) // 2
    value = sum(v * x[:, place[a]] * x[:, place[b]] for (a, b), v in qubo.items())
    assert energies(model, states).tolist() == (value + 2.5).tolist()


@settings(max_examples=30)
@given(st.integers(1, 6), st.integers(0, 2**32))
def test_matrices_mean_what_they_say(sites: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    matrix, states = rng.integers(-9, 10, (sites, sites)), all_states(sites)
    x = (1 + states) // 2
    for form in (np.array, sparse.csr_array, sparse.coo_matrix, np.ndarray.tolist):
        model = ss.Ising.from_qubo(form(matrix), 3)
        assert energies(model, states).tolist() == (np.einsum("si,ij,sj->s", x, matrix, x) + 3).tolist()
    upper, fields = np.triu(matrix, 1), rng.integers(-9, 10, sites)
    expected = -np.einsum("si,ij,sj->s", states, upper, states) - states @ fields - 1.5
    for couplings in (upper, upper.T, upper + upper.T, sparse.csc_array(upper + upper.T)):
        model = ss.Ising.from_matrix(couplings, fields, -1.5)
        assert energies(model, states).tolist() == expected.tolist()


def test_pairs_that_are_named_twice_are_one_bond() -> None:
    twice = nx.MultiGraph([("a", "b", {"weight": 1}), ("a", "b", {"weight": 2})])
    for model in (
        ss.Ising.from_qubo({("a", "b"): 1, ("b", "a"): 2, ("a", "a"): 0}),
        ss.Ising.from_qubo(np.array([[0, 1], [2, 0]])),
        ss.Ising.from_networkx(twice),
    ):
        assert model.couplings.tolist() == [[3 if model.vartype == "SPIN" else -0.75]]


def test_networkx_attributes_are_couplings_and_fields() -> None:
    graph = nx.Graph([("x", "y", {"weight": 2}), ("y", (0, 1))])
    graph.nodes["x"]["field"] = -0.5
    model = ss.Ising.from_networkx(graph)
    assert model.labels == ("x", "y", (0, 1))
    assert model.couplings.tolist() == [[2, 1]]
    assert model.fields.tolist() == [[-0.5, 0, 0]]
    cut = ss.Ising.from_networkx(nx.cycle_graph(5), maxcut=True)
    assert (cut.maxcut_weight, cut.couplings.tolist()) == (5, [[-1] * 5])
    again = ss.Ising.from_networkx(cut.to_networkx())
    assert again.maxcut_weight == 5
    assert again.content_sha256() == cut.content_sha256()


def test_models_from_elsewhere_are_made_into_problems() -> None:
    model = ss.Ising(ss.square(2), [1.0, 2, 3, 4, 5, 6, 7, 8], 0.5)
    assert model.labels == range(4)
    bqm, states = model.to_bqm(), all_states(4)
    assert energies_by_dimod(bqm, states).tolist() == energies(model, states).tolist()
    twice = ss.EdwardsAnderson(ss.square(4), samples=2)
    with pytest.raises(
        ss.InputError, match=r"has 2 samples, and each of them is a problem of its own: .*of_samples\(0, 1\)"
    ):
        twice.to_qubo()
    assert twice.of_samples(1, 2).to_bqm().num_interactions == 32


def test_labels_and_variables_stay_with_a_model() -> None:
    model = ss.Ising.from_qubo({("a", "b"): 1}).in_field(1)
    assert (model.labels, model.vartype, model.problem) == (("a", "b"), "BINARY", None)
    assert ss.Ising(ss.chain(3), labels=[4, 5, 6]).labels == range(4, 7)
    plain, named = ss.Ising(ss.chain(3)), ss.Ising(ss.chain(3), labels=["x", "y", "z"])
    assert plain.content_sha256() != named.content_sha256()


QUBOS = {
    "degree": ({("a", "b", "c"): 1}, "is of degree 3, but only pairs are taken: reduce"),
    "one label": ({"ab": 1}, "key 'ab' is no pair"),
    "text": ({(0, 1): "2"}, r"the value of \(0, 1\) is '2': give a finite number"),
    "complex": ({(0, 1): 1j}, "is 1j: give a finite number"),
    "none": ({(0, 1): None}, "is None: give a finite number"),
    "fraction too large": ({(0, 1): Fraction(10**400)}, "give a finite number"),
    "nan": ({(0, 1): float("nan")}, r"the value of \(0, 1\) is nan: every value must be finite"),
    "infinite": ({(0, 0): float("inf")}, "the value of 0 is inf"),
    "number": (3, r"the matrix has shape \(\)"),
    "word": ("qubo", "the matrix holds <U4 values"),
    "object": (object(), "the matrix holds object values"),
    "ragged": ([[1], [1, 2]], "the matrix is ragged|object values"),
    "flat": ([1, 2], r"has shape \(2,\): give a square one"),
    "oblong": (np.ones((2, 3)), "give a square one"),
    "tensor": (np.ones((2, 2, 2)), "is of degree 3, higher than quadratic"),
    "complex matrix": (np.ones((2, 2)) * 1j, "holds complex numbers"),
    "matrix of nan": (np.full((2, 2), np.nan), "the value of 0 is nan"),
    "matrix of sums too large": (np.full((2, 2), 1e308), "every value must be finite and below 1e300"),
    "bqm": (dimod.BQM("SPIN"), "object values|shape"),
}


@pytest.mark.parametrize(("qubo", "words"), QUBOS.values(), ids=QUBOS)
def test_what_is_no_qubo_is_refused(qubo: object, words: str) -> None:
    with pytest.raises(ss.InputError, match=words):
        ss.Ising.from_qubo(qubo)


def test_other_objects_are_refused() -> None:
    poly = dimod.BinaryPolynomial({"abc": 1}, "SPIN")
    loop, broken = nx.Graph([(0, 0)]), nx.Graph([(0, 1, {"weight": "heavy"})])
    quadratic = dimod.QM()
    quadratic.add_variable("INTEGER", "i")
    cases = [
        (ss.Ising.from_bqm, poly, "has degree 3: reduce it to pairs first"),
        (ss.Ising.from_bqm, quadratic, "a QuadraticModel has more than binary"),
        (ss.Ising.from_bqm, dimod.CQM(), r"dimod\.cqm_to_bqm makes of it"),
        (ss.Ising.from_bqm, dimod.QM.from_bqm(dimod.BQM({"a": 1}, {}, 0, "BINARY")), "m.offset, 'BINARY'"),
        (ss.Ising.from_bqm, {("a", "b"): 1}, "an object of type dict is no dimod model"),
        (ss.Ising.from_networkx, loop, "joins node 0 to itself"),
        (ss.Ising.from_networkx, broken, r"weight of edge \(0, 1\) is 'heavy'"),
        (ss.Ising.from_networkx, nx.DiGraph([(0, 1)]), "give graph.to_undirected"),
        (ss.Ising.from_networkx, nx.Graph([(0, 1)], vartype=3), "attribute vartype of the graph is 3"),
        (ss.Ising.from_networkx, 7, "an object of type int is no graph"),
        (ss.Ising.from_matrix, [[1.0]], "has 1 on its diagonal"),
        (ss.Ising.from_matrix, [[0, 1], [2, 0]], "with pairs twice is not symmetric"),
    ]
    for make, given_object, words in cases:
        with pytest.raises(ss.InputError, match=words):
            make(given_object)
    with pytest.raises(ss.InputError, match="kind 'max' of a matrix is unknown"):
        ss.Ising.from_matrix([[0]], kind="max")
    with pytest.raises(ss.InputError, match="leave field out"):
        ss.Ising.from_matrix([[0]], 1, kind="qubo")
    with pytest.raises(ss.InputError, match="field of type list does not fit"):
        ss.Ising.from_matrix([[0]], [1, 2])
    with pytest.raises(ss.InputError, match="label 'a' stands for two sites"):
        ss.Ising.from_matrix([[0, 1], [1, 0]], labels=["a", "a"])
    with pytest.raises(ss.InputError, match="3 labels do not fit 2 sites"):
        ss.Ising.from_matrix([[0, 1], [1, 0]], labels=[1, 2, 3])


def test_missing_libraries_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    model = ss.Ising.from_qubo({(0, 1): 1})
    for name in ("networkx", "dimod"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ss.InputError, match="networkx is missing: install"):
        model.to_networkx()
    with pytest.raises(ss.InputError, match=r"dimod is missing: install spinsim-ising\[dimod\]"):
        model.to_bqm()


def test_a_matrix_has_each_pair_once_in_any_order() -> None:
    rng = np.random.default_rng(3)
    upper = np.triu(rng.integers(-3, 4, (6, 6)), 1).astype(float)
    swapped = np.triu(rng.random((6, 6)) < 0.5, 1)
    mixed = np.where(swapped, 0, upper) + np.where(swapped, upper, 0).T
    assert np.tril(mixed).any()
    assert np.triu(mixed).any()
    expected = ss.Ising.from_matrix(upper + upper.T).to_matrix().matrix.toarray()
    for matrix in (upper, mixed, sparse.coo_array(mixed)):
        np.testing.assert_array_equal(ss.Ising.from_matrix(matrix).to_matrix().matrix.toarray(), expected)
    mixed[0, 1] = mixed[1, 0] = 1.0  # a pair twice beside single ones
    with pytest.raises(ss.InputError, match="with pairs twice is not symmetric"):
        ss.Ising.from_matrix(mixed)


def test_edges_of_a_table_or_a_list_are_a_graph() -> None:
    rows = [
        ("plant_2", "plant_1", 3),
        ("plant_1", "plant_7", -1),
        ("plant_2", "plant_7", 2),
        ("plant_7", "plant_1", -1),
    ]
    frame = pd.DataFrame(rows, columns=["from", "to", "weight"])
    for edges in (frame, rows, iter(rows), np.array(rows, object)):
        cut = ss.Ising.from_edges(edges, maxcut=True)
        assert cut.labels == ("plant_2", "plant_1", "plant_7")
        assert sorted(cut.couplings[0].tolist()) == [-3, -2, 2]  # parallel edges have been added
    graph = nx.Graph()
    graph.add_weighted_edges_from(rows[:3])
    assert ss.Ising.from_edges(rows[:3]).to_bqm() == ss.Ising.from_networkx(graph).to_bqm()
    assert ss.Ising.from_edges([(0, 1), (1, 2)]).to_bqm() == ss.Ising.from_edges([(0, 1, 1.0), (1, 2, 1.0)]).to_bqm()


def test_loops_of_a_maxcut_instance_are_never_cut() -> None:
    model = ss.Ising.from_edges([("a", "a", 5), ("a", "b", 2), ("c", "c", 1)], maxcut=True)
    best = ss.anneal(model, replicas=4).best
    assert (best.cut, best.labels) == (2, ("a", "b", "c"))


@pytest.mark.parametrize(
    ("edges", "words"),
    [
        ([("a",)], "edge ('a',) is no edge: give (u, v) or (u, v, value)"),
        ([("a", "b", 1, 2)], "is no edge"),
        ("ab", "edge 'a' is no edge"),
        ([("a", "a", 1)], "an edge joins 'a' to itself"),
        ([("a", "b", "c")], "'c'"),
        ([("a", "b", np.nan)], "must be finite"),
        (5, "5 is no list of edges: give a DataFrame or tuples (u, v, value)"),
    ],
)
def test_other_lists_of_edges_are_refused(edges: object, words: str) -> None:
    with pytest.raises((ss.InputError, TypeError)) as told:
        ss.Ising.from_edges(edges)
    assert words in str(told.value)


def test_a_matrix_of_weights_is_a_maxcut_instance() -> None:
    weights = np.array([[0, 3, 2], [3, 0, 1], [2, 1, 0]])
    best = ss.anneal(ss.Ising.from_matrix(weights, kind="maxcut"), replicas=8).best
    assert (best.cut, best.energy, best.hits) == (5, -4, 8)
    with pytest.raises(ss.InputError, match="leave field and offset out"):
        ss.Ising.from_matrix(weights, kind="maxcut", field=1.0)
    with pytest.raises(ss.InputError, match="kind 'cut' of a matrix is unknown: choose ising, qubo or maxcut"):
        ss.Ising.from_matrix(weights, kind="cut")
    with pytest.raises(TypeError, match=r"Ising\.from_matrix has no argument 'maxcut'"):
        ss.Ising.from_matrix(weights, maxcut=True)
    with pytest.raises(ss.InputError, match=r"a table with a row for each edge goes to Ising\.from_edges"):
        ss.Ising.from_matrix(pd.DataFrame({"from": ["a"], "to": ["b"]}))
