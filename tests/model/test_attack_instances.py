"""A seeded mutator of instance files: what is read is what the file says, anything else is one sentence, soon.

Objects of other programs, of any kind and with any values, are models or refused by one sentence, too.
"""

from __future__ import annotations

import itertools
import re
from math import fsum
from pathlib import Path
from random import Random
from typing import Any

import dimod
import networkx as nx
import numpy as np
import pytest
from attacks import NUMBERS, time_limit
from problems import file_of

import spinsim as ss

FILES = [
    "6 7\n1 2 1\n2 3 -2\n3 1 0.75\n1 2 4\n2 1 -0.5\n4 1 0\n4 6 3\n",
    "# vartype=SPIN\n0 0 1.5\n0 1 -2\n1 2 0.25\n2 0 3\n0 0 -4\n0 1 5\n4 4 7\n2 4 0\n",
    "# vartype=BINARY\n0 0 1.5\n0 1 -2\n# remark\n1 2 0.25\n2 0 3\n0 0 1e17\n0 1 5\n4 4 0.1\n2 4 0\n",
    "c a comment\np qubo 0 5 3 3\n0 0 3.5\n2 2 -1\n4 4 2\n0 1 2.25\nc more\n1 3 -4\n0 3 6\n",
]
OTHERS = {
    ".mtx": (
        "%%MatrixMarket matrix coordinate real symmetric\n% a remark\n3 3 3\n2 1 -1.5\n3 1 2\n3 2 0.25\n",
        "%%MatrixMarket matrix coordinate real general\n% vartype=BINARY\n3 3 3\n1 1 -1.5\n1 3 2\n2 3 0.25\n",
        "%%MatrixMarket matrix coordinate pattern symmetric\n3 3 2\n2 1\n3 2\n",
        "%%MatrixMarket matrix array real general\n2 2\n0\n-1\n-1\n0\n",
        "%%MatrixMarket matrix coordinate real general\n% vartype=SPIN\n"
        '% spinsim: {"offset": 2, "labels": ["a", [1, "b"]]}\n2 2 2\n1 1 3\n1 2 -1\n',
    ),
    ".qs": ("# ObjectiveOffset -2.5\n# Vars Non-zeros\n4 3\n1 1 3\n1 2 -1\n3 4 0.5\n",),
    ".col": ("c graph\np edge 4 3\ne 1 2\ne 2 3\ne 4 1\n", "p col 3 2\ne 1 2 0.5\ne 3 2 -1\n"),
    ".sparse": ("# q\n4 4\n1 1 3\n1 2 -1\n3 4 0.5\n4 4 -2\n",),
    ".edgelist": ("# e\na b 1\nb c -2\nc 1 0.5\n", "0 1\n1 2\n2 0\n", '# spinsim: {"labels": [1, null]}\n0 1 2.5\n'),
    ".coo": ('# vartype=SPIN\n# spinsim: {"first_label": -3, "offset": 1e3, "maxcut": true}\n0 1 2.5\n1 2 -1\n',),
    ".bqm": (
        file_of(dimod.BQM({"a": 1.5, ("b", 2): -2}, {("a", ("b", 2)): 0.5}, 7, "SPIN")).decode("latin-1"),
        file_of(dimod.BQM({0: 1, 1: 2, 2: 3}, {(0, 1): 2, (1, 2): -1}, 0, "BINARY")).decode("latin-1"),
    ),
    "": ("4 3\n1 2\n2 3\n3 4\n",),
}
"""Texts of the other formats by their suffix."""
INSERTS = [
    b"\x00",
    b"\xff",
    b"\xef\xbb\xbf",
    b"\r",
    b"\n\n",
    b" ",
    b"\t",
    b"#",
    b"c",
    b"p qubo 0 3 1 1\n",
    b"-",
    b".",
    b"e",
]
SEPARATOR = re.compile(rb"([ \t\r\n]+)")


def mutated(rng: Random, text: bytes) -> bytes:
    """A file with a few wounds."""
    for _ in range(rng.choice((1, 1, 2, 5))):
        words = SEPARATOR.split(text)
        at = rng.randrange(len(text) + 1)
        kind = rng.randrange(8)
        if kind <= 2:
            words[2 * rng.randrange((len(words) + 1) // 2)] = rng.choice(NUMBERS).encode()
            text = b"".join(words)
        elif kind == 3:
            text = text[:at] + rng.choice(INSERTS) + text[at:]
        elif kind == 4:
            text = text[:at] + text[at + rng.choice((1, 1, 2, 10)) :]
        elif kind == 5:
            text = text[:at] + bytes([rng.randrange(256)]) + text[at + 1 :]
        elif kind == 6:
            lines = text.split(b"\n")
            lines.insert(rng.randrange(len(lines)), rng.choice(lines))
            text = b"\n".join(lines)
        else:
            text = text.replace(*rng.choice(((b"\n", b"\r\n"), (b" ", b"  "), (b"\n", b" \n"), (b"1", b"1e0"))))
    return text


def value_by_hand(text: str, spins: np.ndarray) -> tuple[float, float]:
    """What a file says of a state, read the plainest way, and the sum of the sizes of its terms."""
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").split("\n")
    above = list(itertools.takewhile(lambda line: re.match(r"\s*(#|[cC](?!\S)|$)", line), lines))
    vartype = next(filter(None, (re.match(r"\s*#.*?\bvartype[:=]\s*(\w+)", line) for line in above)), None)
    header = next((line.lstrip() for line in lines[len(above) :]), "")
    maxcut, remark = not vartype and header[:1] not in "pPcC", "cCpP" if header[:1] in "pPcC" else "#cC"
    binary = not maxcut and not (vartype and vartype[1].lower() == "spin")
    z = ((1 + spins) // 2 if binary else spins).tolist()
    terms = []
    for line in lines:
        columns = line.split()
        if len(columns) != 3 or columns[0][0] in remark:
            continue
        i, j, weight = int(float(columns[0])) - maxcut, int(float(columns[1])) - maxcut, float(columns[2])
        product = z[i] if i == j else z[i] * z[j]
        terms.append(weight * ((1 - product) // 2 if maxcut else product))
    return fsum(terms), fsum(map(abs, terms))


def objects(rng: Random) -> Any:
    """Something that is, or is nearly, a QUBO, a matrix, a graph or a dimod model."""
    label = lambda: rng.choice((0, 1, 2, "a", "b", (1, "c"), None, True, 1.0, float("nan"), frozenset()))  # noqa: E731
    strange = (None, "x", 1j, float("nan"), float("inf"), 10**400, [], b"1", object(), np.float32(2), np.array([1, 2]))
    value = lambda: rng.choice(strange) if rng.random() < 0.1 else rng.choice((-1, 1, 0.1, 3, 1e17, 1e-30))  # noqa: E731
    kind, many = rng.randrange(6), rng.randrange(5)
    if kind == 0:
        return {tuple(label() for _ in range(rng.choice((2, 2, 2, 2, 2, 1, 3)))): value() for _ in range(many)}
    if kind == 1:
        rows = [[value() for _ in range(many)] for _ in range(rng.choice((many, many, many, 2)))]
        return rows if rng.random() < 0.5 or many == 0 else np.array(rows, object)
    if kind == 2:
        graph = rng.choice((nx.Graph, nx.Graph, nx.MultiGraph, nx.DiGraph))()
        graph.add_nodes_from([1, "a"], field=value())
        pairs = [(label(), label()) for _ in range(many)]
        graph.add_edges_from([pair for pair in pairs if None not in pair], weight=value())
        graph.graph.update(rng.choice(({}, {}, {"offset": value()}, {"vartype": value()}, {"maxcut": True})))
        return graph
    if kind == 3:
        size = rng.choice(((many, many), (many, many + 1), (many,), (2, 2, 2)))
        return np.random.default_rng(rng.randrange(99)).choice([0, 1, -1.5, rng.choice((2, np.nan, 1e308))], size)
    if kind == 4:
        bqm = dimod.BQM(rng.choice(("SPIN", "BINARY")))
        for _ in range(many):
            bqm.add_quadratic(rng.choice("ab"), rng.choice("cd"), rng.choice((1, -2.5, np.nan, 1e308)))
        return bqm
    return rng.choice((*strange, dimod.QM(), dimod.CQM(), dimod.BinaryPolynomial({"abc": 1}, "SPIN"), 3, ss.square(3)))


def check_sentence(sentence: str, of: object) -> None:
    """A refusal is one printable sentence."""
    assert sentence.isprintable(), of
    assert not re.search(r"\.( |$)", re.sub(r"'[^']*'|\"[^\"]*\"", "", sentence)), of


def attack_others(seeds: range, folder: Path) -> tuple[int, int]:
    """The same of files of the other formats; those that are read are written, too, and come back."""
    outcomes = [0, 0]
    for seed in seeds:
        rng = Random(seed)
        suffix = rng.choice(list(OTHERS))
        path = folder / f"mutant{suffix}"
        path.write_bytes(data := mutated(rng, rng.choice(OTHERS[suffix]).encode("latin-1")))
        model = read(path)
        outcomes[isinstance(model, str)] += 1
        if isinstance(model, str):
            check_sentence(model, data)
        elif model.sites < 100:
            again = folder / "again.bqm"
            with time_limit(5):
                model.save(again, overwrite=True)
                assert ss.read_instance(again).to_bqm() == model.to_bqm(), data
    return outcomes[0], outcomes[1]


def attack_objects(seeds: range) -> tuple[int, int]:
    """How many objects are models, and how many are refused, by each of the calls that take them."""
    outcomes = [0, 0]
    for seed in seeds:
        given = objects(Random(seed))
        for make in (ss.Ising.from_qubo, ss.Ising.from_matrix, ss.Ising.from_networkx, ss.Ising.from_bqm):
            try:
                with time_limit(5):
                    model = make(given)
            except ss.InputError as error:
                outcomes[1] += 1
                check_sentence(str(error), (seed, make, given))
            else:
                outcomes[0] += 1
                assert np.isfinite(model.couplings).all(), (seed, make)
    return outcomes[0], outcomes[1]


def read(path: Path) -> ss.Ising | str:
    """The model of a file, or the sentence that refuses it."""
    try:
        with time_limit(5):
            return ss.read_instance(path)
    except ss.InputError as error:
        return str(error)


def attack(seeds: range, folder: Path) -> tuple[int, int]:
    """How many mutants were read, and how many refused."""
    path, outcomes = folder / "mutant.txt", [0, 0]
    for seed in seeds:
        rng = Random(seed)
        data = mutated(rng, rng.choice(FILES).encode())
        path.write_bytes(data)
        model = read(path)
        if isinstance(model, str):
            outcomes[1] += 1
            check_sentence(model, data)
            continue
        outcomes[0] += 1
        assert np.isfinite(model.couplings).all(), data
        assert np.isfinite(model.fields).all(), data
        if model.sites > 100 or isinstance(model.labels, tuple):  # numbers that are names
            continue
        spins = np.array([rng.choice((-1, 1)) for _ in range(model.sites)])
        energy = model.energy(spins[np.newaxis, :, np.newaxis])[0, 0]
        held = energy + model.offset if model.maxcut_weight is None else float(model.cut(energy))
        said, sizes = value_by_hand(data.decode("utf-8-sig"), spins)
        room = model.quantum * (model.sites + model.bonds) if model.rounded else 0.0
        size = max(sizes, float(np.abs(model.couplings).sum() + np.abs(model.fields).sum()))
        assert abs(held - said) <= room + 1e-14 * size, (data, held, said)
    return outcomes[0], outcomes[1]


@pytest.mark.system
def test_mutated_instances_are_read_right_or_refused(tmp_path):
    good, refused = attack(range(600), tmp_path)
    assert min(good, refused) > 100


@pytest.mark.slow
def test_many_mutated_instances_are_read_right_or_refused(tmp_path):
    good, refused = attack(range(10_000, 30_000), tmp_path)
    assert min(good, refused) > 3000


@pytest.mark.system
def test_mutants_of_other_formats_come_back_or_are_refused(tmp_path):
    good, refused = attack_others(range(400), tmp_path)
    assert min(good, refused) > 50


@pytest.mark.system
def test_objects_of_all_kinds_are_models_or_refused():
    good, refused = attack_objects(range(300))
    assert min(good, refused) > 50


@pytest.mark.slow
def test_many_mutants_and_objects(tmp_path):
    good, refused = attack_others(range(10_000, 20_000), tmp_path)
    assert min(good, refused) > 1000
    good, refused = attack_objects(range(10_000, 20_000))
    assert min(good, refused) > 1000
