"""A seeded mutator of instance files: what is read is what the file says, anything else is one sentence, soon."""

from __future__ import annotations

import re
from math import fsum
from pathlib import Path
from random import Random

import numpy as np
import pytest
from attacks import NUMBERS, time_limit

import spinsim as ss

FILES = [
    "6 7\n1 2 1\n2 3 -2\n3 1 0.75\n1 2 4\n2 1 -0.5\n4 1 0\n4 6 3\n",
    "# vartype=SPIN\n0 0 1.5\n0 1 -2\n1 2 0.25\n2 0 3\n0 0 -4\n0 1 5\n4 4 7\n2 4 0\n",
    "# vartype=BINARY\n0 0 1.5\n0 1 -2\n# remark\n1 2 0.25\n2 0 3\n0 0 1e17\n0 1 5\n4 4 0.1\n2 4 0\n",
    "c a comment\np qubo 0 5 3 3\n0 0 3.5\n2 2 -1\n4 4 2\n0 1 2.25\nc more\n1 3 -4\n0 3 6\n",
]
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


def mutated(rng: Random) -> bytes:
    """One of the files with a few wounds."""
    text = rng.choice(FILES).encode()
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
    first = next(line for line in lines if line.strip()).lstrip()
    maxcut, remark = first[0] not in "#cCpP", "#" if first[0] == "#" else "cCpP"
    binary = not (maxcut or re.match(r".*vartype[:=]\s*spin", first, re.IGNORECASE))
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
        data = mutated(rng)
        path.write_bytes(data)
        model = read(path)
        if isinstance(model, str):
            outcomes[1] += 1
            assert model.isprintable(), data
            assert not re.search(r"\.( |$)", re.sub(r"'[^']*'|\"[^\"]*\"", "", model)), data
            continue
        outcomes[0] += 1
        assert np.isfinite(model.couplings).all(), data
        assert np.isfinite(model.fields).all(), data
        if model.sites > 100:
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
