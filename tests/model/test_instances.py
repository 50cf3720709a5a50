"""Instance files: exact energies against each format's own definition, and every refusal."""

from __future__ import annotations

import gzip
import lzma
import re
import sys
import tracemalloc
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from places import DATA

from spinsim.errors import InputError
from spinsim.model.ising import Ising, read_instance

Terms = list[tuple[int, int, float]]
WriteInstance = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> WriteInstance:
    def write_instance(text: str | bytes, name: str = "tiny.txt") -> Path:
        path = tmp_path / name
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path

    return write_instance


def all_states(sites: int) -> npt.NDArray[np.int64]:
    """Every configuration, (2^sites, sites)."""
    return np.array(list(product((-1, 1), repeat=sites)))


def energies(model: Ising, states: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    return np.asarray(model.energy(states.T[np.newaxis])[0])


def cut_value(terms: Terms, s: npt.NDArray[np.int64]) -> float:
    return sum(w for i, j, w in terms if s[i - 1] != s[j - 1])


def ising_value(terms: Terms, s: npt.NDArray[np.int64]) -> float:
    return float(sum(w * s[i] if i == j else w * s[i] * s[j] for i, j, w in terms))


def qubo_value(terms: Terms, s: npt.NDArray[np.int64]) -> float:
    x = (1 + s) // 2
    return float(sum(w * x[i] if i == j else w * x[i] * x[j] for i, j, w in terms))


def body(terms: Terms) -> str:
    return "".join(f"{i} {j} {w}\n" for i, j, w in terms)


# repeated pairs and diagonals, a pair in both orders, a zero bond, sites 3 and 5 free or with a field only
MAXCUT: Terms = [(1, 2, 1), (2, 3, -2), (3, 1, 0.75), (1, 2, 4), (2, 1, -0.5), (4, 1, 0), (4, 6, 3)]
QUADRATIC: Terms = [(0, 0, 1.5), (0, 1, -2), (1, 2, 0.25), (2, 0, 3), (0, 0, -4), (0, 1, 5), (4, 4, 7), (2, 4, 0)]
ELEMENTS: Terms = [(0, 0, 3.5), (2, 2, -1), (4, 4, 2), (0, 1, 2.25), (1, 3, -4), (0, 3, 6)]


def test_maxcut_gives_the_cut_of_every_state(write: WriteInstance) -> None:
    model = read_instance(write(f"6 {len(MAXCUT)}\n{body(MAXCUT)}"))
    states = all_states(6)
    assert model.cut(energies(model, states)).tolist() == [cut_value(MAXCUT, s) for s in states]
    assert model.maxcut_weight == 6.25
    assert (model.sites, model.bonds, model.name, model.offset) == (6, 6, "tiny", 0.0)
    assert model.couplings.tolist() == [[-1, 2, -0.75, -4, 0.5, -3]]
    assert model.uniform_field == 0
    assert not model.rounded


@pytest.mark.parametrize("spelling", ["# vartype=SPIN", "# vartype: SPIN", "  #vartype=spin"])
def test_coo_spin_gives_the_energy_of_every_state(write: WriteInstance, spelling: str) -> None:
    model = read_instance(write(f"{spelling}\n{body(QUADRATIC)}"))
    states = all_states(5)
    assert energies(model, states).tolist() == [ising_value(QUADRATIC, s) for s in states]
    assert model.fields.tolist() == [[2.5, 0, 0, 0, -7]]
    assert model.offset == 0
    assert model.maxcut_weight is None


def test_coo_binary_gives_the_value_of_every_state(write: WriteInstance) -> None:
    model = read_instance(write(f"# vartype=BINARY\n{body(QUADRATIC)}"))
    states = all_states(5)
    assert (energies(model, states) + model.offset).tolist() == [qubo_value(QUADRATIC, s) for s in states]


def test_qbsolv_gives_the_value_of_every_state(write: WriteInstance) -> None:
    header = "c a comment\nC another\n\np  qubo  0  6 3 3\nc diagonals\n"
    text = f"{header}{body(ELEMENTS[:3])}c elements\n{body(ELEMENTS[3:])}"
    model = read_instance(write(text, "tiny.qubo"))
    states = all_states(6)
    assert model.sites == 6
    assert (energies(model, states) + model.offset).tolist() == [qubo_value(ELEMENTS, s) for s in states]


def test_qbsolv_takes_any_order_of_lines_and_repeats(write: WriteInstance) -> None:
    terms = [(0, 1, 2.0), (0, 0, 1.0), (0, 1, -3.0), (0, 0, 0.5)]
    model = read_instance(write(f"p qubo unconstrained 2 2 2\n{body(terms)}"))
    states = all_states(2)
    assert (energies(model, states) + model.offset).tolist() == [qubo_value(terms, s) for s in states]


def test_what_dimod_writes_comes_back(write: WriteInstance) -> None:
    """The text of dimod's coo.dumps(BQM({0: -1, 1: .5}, {(0, 1): 1, (1, 2): -4.5}, 'SPIN'), vartype_header=True)."""
    text = "# vartype=SPIN\n0 0 -1.000000\n0 1 1.000000\n1 1 0.500000\n1 2 -4.500000"
    model = read_instance(write(text, "a.b.coo"))
    assert model.name == "a.b"
    assert model.graph.edges.tolist() == [[0, 1], [1, 2]]
    assert model.couplings.tolist() == [[-1, 4.5]]
    assert model.fields.tolist() == [[1, -0.5, 0]]
    written_again = {(i, i): -h for i, h in enumerate(model.fields[0]) if h}
    written_again |= {(i, j): -c for (i, j), c in zip(model.graph.edges.tolist(), model.couplings[0], strict=True)}
    lines = [f"{i} {j} {value:f}" for (i, j), value in sorted(written_again.items())]
    assert "\n".join(["# vartype=SPIN", *lines]) == text


def test_a_binary_pair_in_spins(write: WriteInstance) -> None:
    """4 x0 x1 + 2 x0 = (1 + s0 s1 + s0 + s1) + (1 + s0)."""
    model = read_instance(write("# vartype=BINARY\n0 1 4\n0 0 2\n"))
    assert model.couplings.tolist() == [[-1]]
    assert model.fields.tolist() == [[-2, -1]]
    assert model.offset == 2


def test_fields_that_cancel_leave_a_uniform_field(write: WriteInstance) -> None:
    model = read_instance(write("# vartype=BINARY\n0 1 4\n0 0 -2\n1 1 -2\n"))
    assert model.uniform_field == 0
    assert not np.signbit(model.fields).any()


def test_blank_lines_spaces_comments_and_line_ends(write: WriteInstance) -> None:
    plain = read_instance(write("3 2\n1 2 1\n2 3 -1\n"))
    for text in ("\n 3  2 \r\n1 2 1 \r\n\r\n  2\t3 -1.0\r\n\r\n", "3 2\r1 2 1\r2 3 -1", "\ufeff3 2\n1 2 1\n2 3 -1e0"):
        model = read_instance(str(write(text)))
        assert model.graph.edges.tolist() == plain.graph.edges.tolist()
        assert model.couplings.tolist() == plain.couplings.tolist()
    model = read_instance(write("# vartype=SPIN by hand\n# remark\n0 1 1\n  # 0 1 9\n\n"))
    assert model.couplings.tolist() == [[-1]]


def test_a_graph_without_bonds_is_a_model(write: WriteInstance) -> None:
    for text in ("3 0\n", "3 1\n1 2 0\n", "p qubo 0 3 0 0\n"):
        model = read_instance(write(text))
        assert (model.sites, model.bonds) == (3, 0)


@pytest.mark.parametrize(
    ("name", "sites", "bonds", "best"),
    [
        ("G11.txt", 800, 1600, 564),
        ("G14.txt", 800, 4694, 3064),
        ("G48.txt", 3000, 6000, 6000),
        ("pm1s_100.0.mc", 100, 495, 127),
        ("t2g10_5555.mc", 100, 200, 6049461),
        ("t3g5_5555.mc", 125, 375, 10933215),
    ],
)
def test_public_instances(name: str, sites: int, bonds: int, best: int) -> None:
    lines = [line.split() for line in (DATA / name).read_text().splitlines()[1:] if line.strip()]
    terms: Terms = [(int(i), int(j), int(w)) for i, j, w in lines]
    model = read_instance(DATA / name)
    assert (model.sites, model.bonds, model.name) == (sites, bonds, Path(name).stem)
    assert model.maxcut_weight == sum(w for _, _, w in terms)
    assert best <= sum(w for _, _, w in terms if w > 0)
    states = np.random.default_rng(1).choice([-1, 1], (3, sites))
    assert model.cut(energies(model, states)).tolist() == [cut_value(terms, s) for s in states]


def test_large_files_are_not_read_line_by_line(write: WriteInstance, monkeypatch: pytest.MonkeyPatch) -> None:
    ends = np.random.default_rng(2).integers(1, 1000, (20_000, 2))
    path = write("2000 20000 \r\n" + "".join(f"{i} {j + 1000} 1\r\n" for i, j in ends))
    calls = 0

    def count(*_: object) -> None:
        nonlocal calls
        calls += 1

    sys.setprofile(count)
    try:
        model = read_instance(path)
    finally:
        sys.setprofile(None)
    assert model.bonds == 20_000
    assert calls < 5_000


REFUSALS = {
    # name: (text, line number, what the sentence quotes or says)
    "header of words": ("hello world\n1 2 1\n", 1, "'hello world', but it is the header of no known format"),
    "header of one number": ("3\n1 2 1\n", 1, "no known format"),
    "header of three numbers": ("3 1 0\n1 2 1\n", 1, "no known format"),
    "header of decimals": ("3.0 1\n1 2 1\n", 1, "no known format"),
    "json": ('\n{"a": 1}\n', 2, "no known format"),
    "text that starts with c": ("cats and dogs\n", 1, "no known format"),
    "text that starts with p": ("print(1)\n", 1, "no known format"),
    "no sites": ("0 0\n", 1, "n = 0 is not a number of sites: use 1 to"),
    "negative sites": ("-3 1\n1 2 1\n", 1, "n = -3"),
    "too many sites": ("3000000000 1\n1 2 1\n", 1, "n = 3000000000"),
    "negative bonds": ("3 -1\n1 2 1\n", 1, "m = -1"),
    "two columns among three": ("3 2\n1 2 1\n2 3\n", 3, "'2 3', but it has 2 columns"),
    "three columns among two": ("3 2\n1 2\n2 3 1\n", 3, "'2 3 1', but it has 3 columns: write two"),
    "one column": ("3 1\n1\n", 2, "it has 1 column:"),
    "four columns": ("3 2\n1 2 1\n2 3 1 4\n", 3, "'2 3 1 4', but it has 4 columns"),
    "index of letters": ("3 2\n1 2 1\n\nx 3 1\n", 4, "'x' is not a number"),
    "weight of letters": ("3 2\n1 2 1\n2 3 one\n", 3, "'one' is not a number"),
    "weight as Python writes it": ("3 1\n1 2 1_000\n", 2, "'1_000' is not a number"),
    "weight with a comma": ("3 1\n1 2 0,5\n", 2, "'0,5' is not a number"),
    "a comment in a MaxCut file": ("3 1\n# 1 2\n1 2 1\n", 2, "'#' is not a number"),
    "index with a fraction": ("3 2\n1 2 1\n1.5 3 1\n", 3, "'1.5 3 1', but sites have whole numbers"),
    "index nan": ("3 1\nnan 2 1\n", 2, "sites have whole numbers"),
    "index inf": ("3 1\n1 inf 1\n", 2, "sites are numbered 1 to 3"),
    "index 0": ("3 2\n1 2 1\n0 3 1\n", 3, "'0 3 1', but sites are numbered 1 to 3"),
    "index above n": ("3 2\n1 2 1\n\n\n2 4 1\n", 5, "sites are numbered 1 to 3"),
    "index negative": ("3 1\n-1 2 1\n", 2, "sites are numbered 1 to 3"),
    "weight nan": ("3 2\n1 2 nan\n2 3 1\n", 2, "must be finite"),
    "weight inf": ("3 2\n1 2 1\n2 3 -inf\n", 3, "must be finite"),
    "weight too large": ("3 1\n1 2 1e400\n", 2, "must be finite"),
    "self loop": ("3 2\n1 2 1\n3 3 1\n", 3, "joins two different sites"),
    "lines missing": ("3 3\n1 2 1\n2 3 1\n", 1, "only 2 of m = 3 bonds follow"),
    "all lines missing": ("3 3\n", 1, "only 0 of m = 3 bonds follow"),
    "lines too many": ("3 1\n1 2 1\n\n2 3 1\n1 3 1\n", 4, "line 1 announces m = 1 and 3 bonds follow"),
    "long line": ("3 1\n1 2 1 " + "9 " * 100 + "\n", 2, "..."),
    "old line ends": ("3 2\r1 2 1\r2 9 1", 3, "sites are numbered 1 to 3"),
    "control characters": ("3 1\n1 2 \x00\x1b\u2028\n", 2, "is"),
    "COO without vartype": ("# by hand\n0 1 1\n", 2, "no known format: give a rudy"),
    "COO of another vartype": ("# vartype=INTEGER\n0 1 1\n", 1, "vartype=SPIN"),
    "COO without header": ("0 1 1\n1 2 1\n", 1, "a dimod COO file ('# vartype=SPIN'"),
    "COO index negative": ("# vartype=SPIN\n0 1 1\n# remark\n-1 2 1\n", 4, "sites are numbered 0 to"),
    "COO index huge": ("# vartype=SPIN\n0 99999999999 1\n", 2, "sites are numbered 0 to"),
    "COO columns": ("# vartype=BINARY\n0 1 1\n# remark\n0 1\n", 4, "2 columns"),
    "COO value nan": ("# vartype=BINARY\n0 0 nan\n", 2, "must be finite"),
    "COO value of letters": ("# vartype=BINARY\n0 0 a\n", 2, "'a' is not a number"),
    "COO remark behind a term": ("# vartype=BINARY\n0 0 1 # remark\n", 2, "5 columns"),
    "qbsolv without p": ("c one\nc two\n0 0 1\n", 3, "no known format"),
    "qbsolv comments only": ("\nc one\nc two\n", 2, "no known format"),
    "qbsolv header short": ("c one\np qubo 0 3 1\n", 2, "no known format"),
    "qbsolv topology": ("p qubo chimera128 3 1 0\n0 0 1\n", 1, "no known format"),
    "qbsolv no nodes": ("p qubo 0 -1 0 0\n", 1, "no known format"),
    "qbsolv diagonals": ("c\np qubo 0 3 2 1\n0 0 1\n0 1 1\n", 2, "the number of diagonal lines below is 1, not 2"),
    "qbsolv elements": ("c\np qubo 0 3 1 1\n0 0 1\n0 1 1\n1 2 1\n", 2, "the number of element lines below is 2, not 1"),
    "qbsolv index": ("p qubo 0 3 1 1\n0 0 1\nc\n0 3 1\n", 4, "sites are numbered 0 to 2"),
    "qbsolv value": ("p qubo 0 3 1 1\n0 0 1\nc\n1 2 inf\n", 4, "must be finite"),
    "DIMACS topology": ("p sp 3 1\na 1 2 1\n", 1, "no known format"),
    "DIMACS count": ("c\np edge 3 3\ne 1 2\n", 2, "m = 3 does not fit 1 edge: correct m"),
    "DIMACS loop": ("p edge 3 2\ne 1 2\ne 2 2\n", 3, "'e 2 2', but an edge joins two different sites"),
    "DIMACS repeat": ("p edge 3 3\ne 1 2\ne 2 3\ne 2 1\n", 4, "'e 2 1', but this edge stands above already"),
    "DIMACS repeat in both directions": (
        "p edge 3 3\ne 2 1\nc twice\ne 1 2\ne 2 1\ne 1 2\n",
        6,
        "'e 1 2', but this edge stands above already",
    ),
    "DIMACS node weight": ("p edge 3 1\nn 1 5\ne 1 2\n", 2, "'n' is not a number"),
    "DIMACS word": ("p col 3 1\nedge 1 2\n", 2, "'edge' is not a number"),
    "edges without a header": ("30 1412\n1 2\n30 4\n", 1, "give a list of edges without a header the suffix .edgelist"),
    "QUBO as a graph": ("3 2\n1 1 4\n1 2 1\n", 2, "give a QUBO of the Biq Mac Library the suffix .sparse or .bq"),
    "second p line": ("p qubo 0 3 1 0\n0 0 1\np qubo 0 3 1 0\n", 3, "6 columns"),
    "not UTF-8": (b"3 1\n1 2 \xff\n", 2, "has the byte 0xff, but instance files are UTF-8 text"),
    "HDF5": (b"\x89HDF\r\n\x1a\n", 1, "UTF-8 text"),
}


def refusal(path: str | Path) -> str:
    with pytest.raises(InputError) as caught:
        read_instance(path)
    message = str(caught.value)
    assert message.isprintable()  # no newline, no control character
    assert not re.search(r"\.( |$)", message)  # one sentence
    assert str(path) in message or repr(str(path)) in message
    return message


@pytest.mark.parametrize(("text", "line", "part"), REFUSALS.values(), ids=REFUSALS.keys())
def test_refusal_names_the_line(write: WriteInstance, text: str | bytes, line: int, part: str) -> None:
    path = write(text)
    message = refusal(path)
    assert message.startswith(f"line {line} of {path} ")
    assert part in message
    assert ": " in message.rsplit(", but ")[-1]  # the mend


@pytest.mark.parametrize("text", ["", "\n \r\n\t\n", "\ufeff"])
def test_empty_file_is_refused(write: WriteInstance, text: str) -> None:
    assert "is empty: give a rudy" in refusal(write(text))


def test_unreadable_paths_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "does not exist" in refusal(tmp_path / "none.mc")
    assert "does not exist" in refusal(str(tmp_path / "two\nlines"))
    assert "is a directory" in refusal(tmp_path)
    assert "null byte" in refusal(f"{tmp_path}/a\0b")

    def deny(path: Path) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("spinsim.model.formats.source.open_regular", deny)
    assert "cannot be read (Permission denied)" in refusal(tmp_path / "secret.mc")


def test_values_below_float64_are_refused_with_the_file(write: WriteInstance) -> None:
    assert "rescale them" in refusal(write("2 1\n1 2 1e-320\n"))


def test_a_number_of_sites_that_needs_too_much_memory_is_refused(
    write: WriteInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spinsim.machine.memory.available_bytes", lambda: 2**20)
    assert "900000 sites" in refusal(write("900000 1\n1 900000 1\n"))


def test_numbers_of_which_few_occur_are_names(write: WriteInstance) -> None:
    model = read_instance(write("# vartype=SPIN\n0 2000000000 1\n7 7 0.5\n"))
    assert list(model.labels) == [0, 7, 2000000000]
    assert model.graph.edges.tolist() == [[0, 2]]
    assert read_instance(write("# vartype=SPIN\n0 99 1\n")).sites == 100


@pytest.mark.parametrize(("module", "suffix"), [(gzip, ".gz"), (lzma, ".xz")])
def test_packed_files_are_read(module: Any, suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"two.edgelist{suffix}"
    packed = module.compress(b"a b 3\nb c -1\n")
    for content in (packed, module.compress(b"a b 3\n") + module.compress(b"b c -1\n")):
        path.write_bytes(content)
        model = read_instance(path)
        assert (model.name, list(model.labels), model.maxcut_weight) == ("two", ["a", "b", "c"], 2)
    for damaged in (packed[:-1], packed[:-4] + b"\x01\0\0\0", packed[:12] + b"xx" + packed[14:]):
        path.write_bytes(damaged)
        with pytest.raises(InputError, match=r"is a damaged (gzip|xz) file: take another copy"):
            read_instance(path)


def test_a_python_without_lzma_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "two.edgelist.xz"
    path.write_bytes(lzma.compress(b"a b 3\n"))
    model = read_instance(path)
    monkeypatch.setitem(sys.modules, "lzma", None)
    assert "is packed by xz, but this Python lacks the module lzma: unpack it" in refusal(path)
    with pytest.raises(InputError, match=r"^the suffix \.xz asks for xz, but this Python lacks .* lzma: give another"):
        model.save(tmp_path / "new.edgelist.xz")
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(("module", "suffix"), [(gzip, ".gz"), (lzma, ".xz")])
def test_what_unpacks_to_more_than_fits_is_refused_before_it_is_there(
    module: Any, suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / f"bomb.txt{suffix}"
    path.write_bytes(module.compress(bytes(2**26)))
    monkeypatch.setattr("spinsim.machine.memory.available_bytes", lambda: 2**26)
    tracemalloc.start()
    try:
        assert "give a smaller instance" in refusal(path)
        assert tracemalloc.get_traced_memory()[1] < 2**24
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("plain", "commented"),
    [
        ("3 2\n1 2 1\n2 3 -1\n", "# by hand\nc maxcut value: 1\n# 2 3\n\n3 2\n1 2 1\n2 3 -1\n"),
        ("# vartype=BINARY\n0 1 1\n", "# a problem\n\nc of two\n# vartype=BINARY\n# more\n0 1 1\n"),
        ("p qubo 0 3 1 1\n0 0 1\n1 2 1\n", "# by hand\nc of three\np qubo 0 3 1 1\n0 0 1\n# more\n1 2 1\n"),
        ("p edge 3 1\ne 1 2\n", "# by hand\nc of three\np edge 3 1\nc more\ne 1 2\n"),
        (
            "%%MatrixMarket matrix coordinate real symmetric\n% vartype=BINARY\n2 2 1\n2 1 3\n",
            "# by hand\n%%MatrixMarket matrix coordinate real symmetric\n% of two\n% vartype=BINARY\n2 2 1\n2 1 3\n",
        ),
    ],
)
def test_comments_stand_before_any_header(plain: str, commented: str, write: WriteInstance) -> None:
    one, other = (read_instance(write(text)) for text in (plain, commented))
    assert (one.labels, one.vartype, one.maxcut_weight) == (other.labels, other.vartype, other.maxcut_weight)
    assert one.to_qubo() == other.to_qubo()


@pytest.mark.parametrize(
    "text",
    [
        "# vartype=BINARY\n# offset=2.5\n0 1 1\n",
        "# a problem\n# Offset: 2.5\n# vartype=BINARY\n0 1 1\n",
        "# vartype=BINARY, offset=2.5\n0 1 1\n",
        "# vartype=BINARY\n0 1 1\n# offset 2.5 (the constant)\n# offsets of others are not ours\n",
        "c offset : 2.5\np qubo 0 2 0 1\n0 1 1\n",
        "%%MatrixMarket matrix coordinate real general\n% vartype=BINARY\n% offset = 2.5\n2 2 1\n1 2 1\n",
        "# ObjectiveOffset 2.5\n# Vars Non-zeros\n2 1\n1 2 0.5\n",
    ],
)
def test_constants_of_other_programs_are_kept(text: str, write: WriteInstance) -> None:
    qubo, offset = read_instance(write(text)).to_qubo()
    assert ([value for value in qubo.values() if value], offset) == ([1], 2.5)


def test_elements_of_qbsolv_add_in_either_order(write: WriteInstance) -> None:
    terms = [(0, 1, 2.0), (2, 0, 1.5), (1, 0, -3.0), (1, 1, 0.5)]
    model = read_instance(write(f"p qubo 0 3 1 3\n{body(terms)}"))
    states = all_states(3)
    assert (energies(model, states) + model.offset).tolist() == [qubo_value(terms, s) for s in states]


@pytest.mark.parametrize("suffix", [".edgelist", ".edges", ".el", ".wel"])
def test_lists_of_edges_are_told_by_their_suffix(suffix: str, write: WriteInstance) -> None:
    model = read_instance(write("# maxcut value: 4\n% asymmetric\n0 5 2\n5 12 2\n12 0 -1\n", f"e{suffix}"))
    assert (list(model.labels), model.maxcut_weight) == ([0, 5, 12], 3)


@pytest.mark.parametrize(
    ("text", "weight"),
    [
        ("p edge 4 3\ne 1 2\ne 3 2\ne 4 1\n", 3),
        ("c colours\np col 4 3\ne 1 2\ne 3 2\ne 4 1\n", 3),
        ("p edge 4 6\ne 1 2\ne 3 2\ne 4 1\n", 3),  # m counts both directions, the lines do not
        ("p edge 4 6\ne 1 2\ne 2 1\ne 3 2\ne 2 3\ne 4 1\ne 1 4\n", 3),
        ("p edge 4 3\ne 1 2 5\ne 3 2 -1\ne 4 1 0.5\n", 4.5),
    ],
)
def test_graphs_of_dimacs_have_each_edge_once(text: str, weight: float, write: WriteInstance) -> None:
    model = read_instance(write(text, "g.col"))
    assert (model.labels, model.bonds, model.maxcut_weight) == (range(1, 5), 3, weight)


@pytest.mark.parametrize("suffix", [".bq", ".qs", ".sparse"])
def test_a_qubo_of_biq_mac_is_told_by_its_suffix(suffix: str, write: WriteInstance) -> None:
    model = read_instance(write("# three nodes\n3 4\n1 1 1\n1 2 -3\n2 2 2\n3 2 -4\n", f"three{suffix}"))
    assert model.to_qubo() == ({(1, 1): 1, (2, 2): 2, (3, 3): 0, (1, 2): -6, (3, 2): -8}, 0)


QS = "# This file was made by hand\n# ObjectiveOffset 2.5\n# Vars Non-zeros\n3 4\n1 1 -3\n1 2 2\n2 3 -1\n3 3 0.5\n"


@pytest.mark.parametrize("suffix", [".qs", ".qs.xz", ".qs.gz", ".sparse.xz"])
def test_files_of_qoblib_have_their_constant(suffix: str, write: WriteInstance) -> None:
    """x' Q x with Q symmetric and each pair given once, plus the constant that a comment states."""
    pack = {".xz": lzma.compress, ".gz": gzip.compress}.get(Path(suffix).suffix, bytes)
    model = read_instance(write(pack(QS.encode()), f"q{suffix}"))
    q, states = np.array([[-3, 2, 0], [2, 0, -1], [0, -1, 0.5]]), all_states(3)
    x = (1 + states) // 2
    assert (energies(model, states) + model.offset).tolist() == (np.einsum("si,ij,sj->s", x, q, x) + 2.5).tolist()
    assert (model.name, model.labels, model.vartype) == ("q", range(1, 4), "BINARY")


@pytest.mark.parametrize(
    ("comment", "words"),
    [
        ("# ObjectiveOffset many\n", "line 1 .* the constant is one finite number"),
        ("# offset: inf\n", "line 1 .* the constant is one finite number"),
        ("# offset 1\n# ObjectiveOffset 2\n", "line 2 .* the constant is one finite number"),
    ],
)
def test_constants_that_are_no_number_are_refused(comment: str, words: str, write: WriteInstance) -> None:
    with pytest.raises(InputError, match=words):
        read_instance(write(f"{comment}2 1\n1 2 1\n", "q.qs"))


def test_attributes_of_networkx_are_refused_by_the_name_of_what_is_read(tmp_path):
    path = tmp_path / "x.edgelist"
    path.write_text("0 1 {'weight': 3}\n")
    with pytest.raises(InputError, match=r"by networkx\.write_weighted_edgelist"):
        read_instance(path)


def test_a_symmetric_matrix_has_entries_on_one_side(tmp_path):
    path = tmp_path / "x.mtx"
    path.write_text("%%MatrixMarket matrix coordinate real symmetric\n3 3 2\n1 2 5\n2 1 7\n")
    with pytest.raises(InputError, match="entries on both sides of the diagonal"):
        read_instance(path)
