"""Every format of instance files: round trips without loss, readers of other programs, and refusals."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import dimod
import networkx as nx
import numpy as np
import pytest
from dimod.serialization import coo
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from problems import all_states, bqms, energies, energies_by_dimod, file_of, plain_labels, reals
from scipy import io, sparse

import spinsim as ss
from spinsim.model.formats import FORMATS, write_instance
from spinsim.model.ising import read_instance
from spinsim.model.quadratic import Quadratic

quickly = settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
SUFFIXES = [suffix for each in FORMATS for suffix in each.suffixes]


@st.composite
def graphs(draw: st.DrawFn) -> Quadratic:
    """A weighted graph whose largest cut is wanted, with repeated bonds and bonds of weight 0."""
    names = draw(st.lists(plain_labels, min_size=2, max_size=6, unique=True))
    sites = len(names)
    pairs = draw(st.lists(st.permutations(range(sites)).map(lambda order: order[:2]), min_size=1, max_size=8))
    unweighted = draw(st.booleans())
    weights = [1.0 if unweighted else draw(reals) for _ in pairs]
    return Quadratic(sites, np.array(pairs), np.array(weights), labels=tuple(names), is_maxcut=True)


def has_repeated_bonds(graph: Quadratic) -> bool:
    return len(np.unique(np.sort(graph.ends, axis=1), axis=0)) < len(graph.ends)


def again(problem: Any, path: Path) -> ss.Ising:
    """A problem, written into a file and read from it."""
    write_instance(problem, path, overwrite=True)
    return read_instance(path)


def same_labels(one: Any, other: Any) -> bool:
    return list(one) == list(other) and [type(a) for a in one] == [type(b) for b in other]


@quickly
@given(bqms(labels=plain_labels))
def test_problems_come_back_to_the_last_digit(tmp_path: Path, bqm: dimod.BQM) -> None:
    model = ss.Ising.from_bqm(bqm)
    suffixes = [".coo", ".mtx", ".bqm"] + [".qubo", ".sparse", ".qs", ".qs.xz", ".coo.gz"] * (
        bqm.vartype is dimod.BINARY
    )
    for suffix in suffixes:
        found = again(model.quadratic, tmp_path / f"one{suffix}")
        assert same_labels(found.labels, model.labels), suffix
        back = found.to_bqm()
        assert back.vartype is bqm.vartype, suffix
        assert back.linear == bqm.linear, suffix
        assert back.offset == bqm.offset, suffix
        assert {pair: value for pair, value in back.quadratic.items() if value} == {
            pair: value for pair, value in bqm.quadratic.items() if value
        }, suffix


@quickly
@given(graphs())
def test_graphs_come_back_to_the_last_digit(tmp_path: Path, graph: Quadratic) -> None:
    model = ss.Ising.from_quadratic(graph)
    plain = ss.Ising.from_matrix(model.to_matrix().matrix, labels=range(1, graph.sites + 1))
    for suffix in (".edgelist", ".wel.gz", ".mtx", ".coo", ".bqm", ".col", ".clq.xz"):
        if suffix.startswith((".col", ".clq")) and has_repeated_bonds(graph):
            continue  # an edge of these files counts once
        found = again(model.quadratic, tmp_path / f"one{suffix}")
        assert same_labels(found.labels, model.labels), suffix
        assert found.maxcut_weight == pytest.approx(model.maxcut_weight, abs=1e-9), suffix
        assert (found.to_matrix().matrix != model.to_matrix().matrix).nnz == 0, suffix
    found = again(plain.quadratic, tmp_path / "one.mc")
    assert found.labels == plain.labels
    assert (found.to_matrix().matrix != plain.to_matrix().matrix).nnz == 0


def test_spins_become_binary_where_a_format_has_no_spins(tmp_path: Path) -> None:
    model = ss.Ising.from_bqm(dimod.BQM({"a": 1, "b": -2}, {("a", "b"): 3}, 0.5, "SPIN"))
    states = all_states(2)
    for suffix in (".qubo", ".sparse"):
        model.save(tmp_path / f"s{suffix}")
        found = read_instance(tmp_path / f"s{suffix}")
        assert (found.vartype, found.labels) == ("BINARY", ("a", "b"))
        assert energies(found, states).tolist() == energies(model, states).tolist()


def test_other_programs_read_what_is_written(tmp_path: Path) -> None:
    bqm = dimod.BQM({0: 1.5, 1: -2e-7, 2: 0}, {(0, 1): 0.1, (1, 2): -3}, 0.25, "BINARY")
    model = ss.Ising.from_bqm(bqm)
    for suffix in (".coo", ".mtx", ".bqm"):
        model.save(tmp_path / f"q{suffix}")
    text = coo.loads((tmp_path / "q.coo").read_text())
    assert (text.linear, text.quadratic) == (bqm.linear, bqm.quadratic)
    assert dimod.BQM.from_file((tmp_path / "q.bqm").read_bytes()) == bqm
    matrix = io.mmread(tmp_path / "q.mtx").toarray()
    assert matrix.tolist() == [[1.5, 0.1, 0], [0, -2e-7, -3], [0, 0, 0]]
    named = bqm.relabel_variables({0: ("x", 1), 1: "y", 2: 7}, inplace=False)
    ss.Ising.from_bqm(named).save(tmp_path / "n.bqm")
    assert dimod.BQM.from_file((tmp_path / "n.bqm").read_bytes()) == named
    cycle = ss.Ising.from_networkx(nx.cycle_graph(["a", "b", 3, "d"]), maxcut=True)
    cycle.save(tmp_path / "c.edgelist")
    assert nx.read_edgelist(tmp_path / "c.edgelist").number_of_edges() == 4


def test_what_other_programs_write_is_read(tmp_path: Path) -> None:
    matrix = np.triu(np.random.default_rng(3).integers(-3, 4, (6, 6)), 1)
    matrix = matrix + matrix.T
    states = all_states(6)
    cut = np.einsum("ij,sij->s", np.triu(matrix), states[:, :, None] != states[:, None, :])
    for given_matrix in (sparse.coo_array(matrix), sparse.coo_array(np.triu(matrix)), matrix, matrix.astype(float)):
        path = tmp_path / "m.mtx"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            io.mmwrite(path, given_matrix)
        found = read_instance(path)
        assert found.cut(found.energy(states.T[None])[0]).tolist() == cut.tolist()
        assert found.labels == range(1, 7)
    qubo = matrix + np.diag(range(6))
    for symmetry in ("general", "symmetric"):
        io.mmwrite(tmp_path / "q.mtx", sparse.coo_array(qubo), comment=" vartype=BINARY", symmetry=symmetry)
        x = (1 + states) // 2
        found = read_instance(tmp_path / "q.mtx")
        assert energies(found, states).tolist() == np.einsum("si,ij,sj->s", x, qubo, x).tolist()
    io.mmwrite(tmp_path / "p.mtx", sparse.coo_array((matrix != 0).astype(int)), field="pattern")
    assert read_instance(tmp_path / "p.mtx").maxcut_weight == np.count_nonzero(matrix) // 2
    for version in (1, 2):
        bqm = dimod.BQM({"a": 1.5, ("b", 2): -2, 3: 0}, {("a", ("b", 2)): 0.5, (3, "a"): 1}, 7, "SPIN")
        (tmp_path / "v.bqm").write_bytes(file_of(bqm, version=version))
        assert read_instance(tmp_path / "v.bqm").to_bqm() == bqm
    small = dimod.BQM(bqm, dtype=np.float32)
    (tmp_path / "s.bqm").write_bytes(file_of(small))
    assert read_instance(tmp_path / "s.bqm").to_bqm() == bqm
    graph = nx.petersen_graph()
    for write in (nx.write_edgelist, nx.write_weighted_edgelist, lambda g, p: nx.write_edgelist(g, p, data=False)):
        write(nx.Graph(graph, weight=1), tmp_path / "e.edgelist")
        if write is nx.write_weighted_edgelist:
            nx.set_edge_attributes(graph, 2.5, "weight")
            write(graph, tmp_path / "e.edgelist")
        assert read_instance(tmp_path / "e.edgelist").bonds == 15
    assert read_instance(tmp_path / "e.edgelist").labels[:2] == (0, 1)


def test_biq_mac_counts_both_halves_of_its_matrix(tmp_path: Path) -> None:
    """min x' Q x with Q symmetric, each pair given once: the input format of the Biq Mac solver."""
    path = tmp_path / "tiny.sparse"
    path.write_text("# a remark\n3 4\n1 1 5\n1 2 -3\n3 2 1.5\n3 3 -1\n")
    model = read_instance(path)
    q, states = np.array([[5, -3, 0], [-3, 0, 1.5], [0, 1.5, -1]]), all_states(3)
    x = (1 + states) // 2
    assert energies(model, states).tolist() == np.einsum("si,ij,sj->s", x, q, x).tolist()
    assert (model.labels, model.vartype) == (range(1, 4), "BINARY")


def test_unweighted_graphs_have_weights_of_1(tmp_path: Path) -> None:
    path = tmp_path / "plain.txt"
    path.write_text("4 3\n1 2\n2 3\n4 1\n")
    model = read_instance(path)
    assert (model.maxcut_weight, model.couplings.tolist()) == (3, [[-1, -1, -1]])
    assert model.labels == range(1, 5)


REFUSED = {
    # suffix: (text, what the sentence says)
    "edgelist loop": ("e.edgelist", "a b\nc c\n", "line 2 of .* joins two different sites"),
    "edgelist columns": ("e.edgelist", "a b\na b 1\n", "line 2 of .* two words and perhaps a weight"),
    "edgelist words": ("e.edges", "# x\na b c d\n", "line 2 of .* two words"),
    "edgelist weight": ("e.edgelist", "a b heavy\n", "'heavy' is no weight"),
    "edgelist none": ("e.edgelist", "# nothing\n", "no bond follows"),
    "edgelist labels": ("e.edgelist", '# spinsim: {"labels": ["a", "b"]}\n0 7\n', "sites are numbered 0 to 1"),
    "sparse twice": ("s.sparse", "3 2\n1 2 1\n2 1 1\n", "line 3 of .* stands above already"),
    "sparse header": ("s.sparse", "# only\n", "no known format"),
    "sparse count": ("s.sparse", "3 3\n1 2 1\n", "only 1 of m = 3"),
    "matrix header": ("m.mtx", "%%MatrixMarket matrix coordinate complex general\n1 1 0\n", "only real matrices"),
    "matrix sizes": ("m.mtx", "%%MatrixMarket matrix coordinate real general\n2 2\n", "numbers of rows, columns"),
    "matrix oblong": ("m.mtx", "%%MatrixMarket matrix coordinate real general\n2 3 0\n", "is square"),
    "matrix entries": ("m.mtx", "%%MatrixMarket matrix coordinate real general\n2 2 2\n1 2 1\n", "only 1 of m = 2"),
    "matrix diagonal": (
        "m.mtx",
        "%%MatrixMarket matrix coordinate real general\n2 2 1\n1 1 1\n",
        "has entries on the diagonal",
    ),
    "matrix skew": (
        "m.mtx",
        "%%MatrixMarket matrix coordinate real general\n2 2 2\n1 2 1\n2 1 3\n",
        "neither symmetric nor triangular",
    ),
    "matrix vartype": ("m.mtx", "%%MatrixMarket matrix coordinate real general\n% vartype=X\n1 1 0\n", "write SPIN"),
    "array short": ("m.mtx", "%%MatrixMarket matrix array real general\n2 2\n1\n2\n3\n", "3 of 4 values follow"),
    "array word": ("m.mtx", "%%MatrixMarket matrix array real general\n1 1\nx\n", "'x' is no value"),
    "array huge": ("m.mtx", "%%MatrixMarket matrix array real general\n999999999 999999999\n1\n", "values follow"),
    "note": ("c.coo", "# vartype=SPIN\n# spinsim: {]\n0 1 1\n", "line 2 of .* no valid JSON: delete the line"),
    "note of a word": ("c.coo", "# vartype=SPIN\n# spinsim: 3\n0 1 1\n", "line 2 of .* says more than"),
    "note of labels": ("c.coo", '# vartype=SPIN\n# spinsim: {"labels": [1]}\n0 1 1\n', "1 labels do not fit 2 sites"),
    "note of equal labels": ("c.coo", '# vartype=SPIN\n# spinsim: {"labels": [1, 1]}\n0 1 1\n', "stands for two"),
    "note of a table": ("c.coo", '# vartype=SPIN\n# spinsim: {"labels": [{}, 1]}\n0 1 1\n', "is none"),
    "note of an offset": ("c.coo", '# vartype=SPIN\n# spinsim: {"offset": "x"}\n0 1 1\n', "offset is no finite"),
    "bqm short": ("b.bqm", "DIMODBQM", "is a damaged BQM file"),
    "bqm version": ("b.bqm", "DIMODBQM\x07\x00\x00\x00", "has version 7"),
}


@pytest.mark.parametrize(("name", "text", "words"), REFUSED.values(), ids=REFUSED)
def test_files_that_break_a_rule_are_refused(tmp_path: Path, name: str, text: str, words: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(ss.InputError, match=words) as caught:
        read_instance(tmp_path / name)
    assert str(caught.value).isprintable()


def test_what_a_format_cannot_hold_is_refused(tmp_path: Path) -> None:
    fields = ss.Ising.from_qubo({("a", "b"): 1})
    graph = ss.Ising.from_networkx(nx.path_graph(["a", "b"]), maxcut=True)
    strange = ss.Ising.from_networkx(nx.path_graph([frozenset("a"), "b"]))
    for model, name, words in (
        (fields, "f.mc", "a graph has no fields"),
        (fields, "f.edgelist", "a graph has no fields"),
        (graph, "g.mc", "no room for labels: give another suffix"),
        (strange, "s.coo", "label frozenset.* has no form in a file"),
        (graph, "g.doc", r"suffix '.doc' of .* names no format of instances: choose one of .bqm"),
        (ss.EdwardsAnderson(ss.square(4), samples=2), "t.mc", "2 samples"),
    ):
        with pytest.raises(ss.InputError, match=words):
            model.save(tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_nothing_is_overwritten_unasked(tmp_path: Path) -> None:
    one, other = (ss.Ising.from_qubo({(0, 1): value}) for value in (1, 2))
    for suffix in (".coo", ".qubo", ".bqm", ".sparse", ".mtx", ".qs.xz", ".coo.gz"):
        path = tmp_path / f"a{suffix}"
        one.save(path)
        with pytest.raises(ss.InputError, match="exists already"):
            other.save(path)
        other.save(path, overwrite=True)
        assert read_instance(path).to_qubo() == other.to_qubo()
    (tmp_path / "notes.coo").write_bytes(b"\x00my diary")
    with pytest.raises(ss.InputError, match="is no instance file"):
        one.save(tmp_path / "notes.coo", overwrite=True)
    square = ss.Ising(ss.square(3), -1.0)
    square.save(tmp_path / "square.mc")
    assert read_instance(tmp_path / "square.mc").maxcut_weight == 18


def test_a_model_of_a_file_keeps_the_digits_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "digits.coo"
    path.write_text("# vartype=BINARY\n0 1 0.1\n1 1 1e17\n0 0 0.3\n")
    assert read_instance(path).to_qubo()[0] == {(0, 0): 0.3, (1, 1): 1e17, (0, 1): 0.1}
    assert energies_by_dimod(read_instance(path).to_bqm(), all_states(2))[-1] == 1e17 + 0.4
