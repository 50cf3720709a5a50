"""Whole numbers beyond 2^53: exact or refused, in values, constants and targets, from every source."""

from __future__ import annotations

from pathlib import Path

import dimod
import networkx as nx
import numpy as np
import pytest
from scipy import sparse

import spinsim as ss
from spinsim.inputs.numbers import as_floats, check_word, read_grid

ODD = 2**53 + 1
PAIR = ss.Graph(2, [(0, 1)])
GRAPH = nx.Graph()
GRAPH.add_edge(0, 1, weight=ODD)
OBJECTS = {
    "qubo": lambda: ss.Ising.from_qubo({("a", "b"): ODD}),
    "offset": lambda: ss.Ising.from_qubo({("a", "b"): 1}, offset=ODD),
    "matrix": lambda: ss.Ising.from_matrix(np.array([[0, ODD], [ODD, 0]])),
    "lists": lambda: ss.Ising.from_matrix([[0, ODD], [ODD, 0]]),
    "sparse": lambda: ss.Ising.from_matrix(sparse.csr_array(np.array([[0, ODD], [0, 0]])), kind="qubo"),
    "field": lambda: ss.Ising.from_matrix(np.array([[0, 1], [1, 0]]), field=[ODD, 1]),
    "couplings": lambda: ss.Ising(PAIR, [ODD]),
    "mixed": lambda: ss.Ising(PAIR, 1.0, [0.5, -ODD]),
    "dimod": lambda: ss.Ising.from_bqm(dimod.DictBQM({"a": ODD}, {}, 0, "SPIN")),
    "graph": lambda: ss.Ising.from_networkx(GRAPH),
    "target": lambda: ss.anneal(ss.Ising(PAIR), target=ODD),
    "text": lambda: ss.anneal(ss.Ising(PAIR), target=str(ODD)),
    "list": lambda: read_grid("target", f"1,{ODD}.0", any_sign=True),
}
FILES = {
    "rudy.mc": "2 1\n1 2 {}\n",
    "words.edgelist": "a b {}\n",
    "dimod.coo": "# vartype=SPIN\n0 1 {}\n",
    "sparse.mtx": "%%MatrixMarket matrix coordinate integer symmetric\n2 2 1\n2 1 {}\n",
    "dense.mtx": "%%MatrixMarket matrix array integer general\n2 2\n0\n{0}\n{0}\n0\n",
    "qbsolv.qubo": "p qubo 0 2 0 1\n0 1 {}\n",
    "biq_mac.sparse": "2 1\n1 2 {}\n",
}


@pytest.mark.parametrize("make", OBJECTS.values(), ids=OBJECTS)
def test_whole_numbers_that_float64_does_not_hold_are_refused(make) -> None:
    with pytest.raises(ss.InputError, match="9007199254740993, which is a whole number that float64 does not hold"):
        make()


@pytest.mark.parametrize("name", FILES)
def test_files_with_such_values_are_refused_by_their_line(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    for text in (f"{ODD}", f"-{ODD}.0"):
        path.write_text(FILES[name].format(text))
        with pytest.raises(ss.InputError, match=rf"line \d of .*{name} is -?9007199254740993, which"):
            ss.read_instance(path)
    for text in (f"{ODD - 1}", f"{ODD + 1}.0", "1e22"):
        path.write_text(FILES[name].format(text))
        assert ss.read_instance(path).bonds


def test_numbers_that_are_held_pass() -> None:
    assert as_floats([2**60, 0.1], "x").tolist() == [2.0**60, 0.1]
    assert as_floats(np.array([2**62], np.uint64), "x").tolist() == [2.0**62]
    for word in ("9007199254740994", "0.1", "1e23", "nan", "", "9007199254740993.5"):
        check_word(word, "x")


def triangle(weight: int, tmp_path: Path) -> ss.Ising:
    path = tmp_path / "triangle.mc"
    path.write_text("3 3\n" + "".join(f"{pair} {weight}\n" for pair in ("1 2", "2 3", "1 3")))
    return ss.read_instance(path)


def test_targets_of_large_whole_numbers_are_met_exactly_or_refused(tmp_path: Path) -> None:
    even, odd = (triangle(weight, tmp_path) for weight in (2**51, 2**52 + 1))
    best = 2**52
    for target, met in ((best, True), (best + 1, False), (best - 1, True)):
        found = ss.anneal(even, target=target, sweeps=2, steps=2, replicas=8, time_limit=0.05, threads=1)
        assert found.search.is_met is met if hasattr(found, "search") else found.anneals.is_met is met
    with pytest.raises(ss.InputError, match="cannot be told from its neighbours"):
        ss.anneal(odd, target=2**53 + 2)
    assert not ss.Ising.from_qubo({(0, 1): 0.1, (1, 2): 0.3}).quantum >= 1
