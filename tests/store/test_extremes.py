"""Numbers at the ends of what float64 holds: right, told or refused early."""

from __future__ import annotations

import json
import time
from math import fsum

import numpy as np
import pytest
from harness import one_sentence, run, tree

import spinsim as ss


@pytest.mark.parametrize("field", [0.0, 0.7])
@pytest.mark.parametrize("exponent", [-900, -560, -1, 0, 1, 560, 900])
def test_the_energy_scale_scales_with_the_couplings(exponent, field):
    couplings = np.linspace(-1, 2, 32)
    one = ss.Ising(ss.square(4), couplings, field).energy_scale
    unit = 2.0**exponent
    assert ss.Ising(ss.square(4), couplings * unit, field * unit).energy_scale == one * unit
    assert ss.Ising(ss.square(4), 0.0, 0.0).energy_scale == 0


def test_a_small_instance_is_annealed_at_its_own_temperatures(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.mc").write_text("3 3\n1 2 -1e-170\n2 3 -1e-170\n1 3 -1e-170\n")
    line = "anneal small.mc --steps 4 --replicas 8 --out a.h5 --json"
    done = run(capsys, monkeypatch, *line.split())
    assert json.loads(done.out)["lowest_energy"] == pytest.approx(-3e-170)
    assert 1e-171 < ss.load("a.h5").temperature[0] < 1e-169


@pytest.mark.parametrize(("vartype", "h"), [("SPIN", -3.0), ("BINARY", -1.75)])
def test_linear_terms_are_summed_exactly(tmp_path, vartype, h):
    path = tmp_path / "sum.coo"
    path.write_text(f"# vartype={vartype}\n0 0 1e17\n0 0 3\n0 0 -1e17\n0 1 1\n")
    model = ss.read_instance(path)
    assert model.fields[0, 0] == h
    assert not model.rounded
    if vartype == "BINARY":
        assert model.offset == 1.75


def test_sums_of_many_decimals_are_rounded_once(tmp_path):
    rng = np.random.default_rng(1)
    values = rng.standard_normal(300) * 10.0 ** rng.integers(-3, 4, 300)
    at = rng.integers(0, 5, 300)
    path = tmp_path / "sum.coo"
    path.write_text("# vartype=SPIN\n" + "".join(f"{i} {i} {v!r}\n" for i, v in zip(at, values.tolist(), strict=True)))
    sums = np.array([-fsum(values[at == i]) for i in range(5)])
    model = ss.read_instance(path)
    np.testing.assert_allclose(model.fields[0], sums, rtol=0, atol=model.quantum / 2)
    path.write_text("3 3\n1 2 1e17\n2 3 3\n1 3 -1e17\n")
    assert ss.read_instance(path).maxcut_weight == 3


def test_digits_that_are_lost_are_told(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lost.mc").write_text("3 2\n1 2 1e10\n2 3 1e-10\n")
    words = "of lost are multiples of one quantum", "by up to 100 %"
    line = "anneal lost.mc --steps 2 --sweeps 1 --replicas 2 --out a.h5 --json"
    done = run(capsys, monkeypatch, *line.split())
    assert all(word in done.err for word in words)
    numbers = json.loads(done.out)
    assert (numbers["rounded"], numbers["rounding_error"]) == (True, 1.0)
    shown = run(capsys, monkeypatch, "show", "a.h5").out
    assert all(word in shown for word in words)
    assert json.loads(run(capsys, monkeypatch, "show", "a.h5", "--json").out)["rounding_error"] == 1.0
    line = "temper --size 4 --couplings gaussian --field 1e-10 --sweeps 20 --thermalize 0 --temperatures 1,2 --out b.h5"
    assert "by up to 100 %" in run(capsys, monkeypatch, *line.split(), "--quiet").err
    line = "transfer --width 4 --couplings gaussian --field 1e-10 --out c.h5"
    assert "by up to 100 %" in run(capsys, monkeypatch, *line.split(), "--quiet").err


APART = ss.Graph(3, [(0, 1), (1, 2)])
CALLS = {
    "anneal": lambda model, _: ss.anneal(model, [2.0, 1.0], sweeps=1, replicas=2),
    "file": lambda model, path: ss.anneal(model, [2.0, 1.0], sweeps=1, replicas=2, out=path),
    "temper": lambda model, _: ss.temper(model, [1.0, 2.0], sweeps=10),
    "quantum": lambda model, _: ss.quantum(model, k=[0.2, 0.3], slices=4, sweeps=10, thermalize=0),
    "transfer": lambda model, _: ss.transfer(model, k=0.2),
    "simulation": lambda model, _: ss.Simulation(model, 1.0),
    "several": lambda model, _: ss.anneal([model], [2.0, 1.0], sweeps=1, replicas=2),
}


@pytest.mark.parametrize("name", CALLS)
def test_python_warns_of_values_so_different_where_it_was_called(name, tmp_path):
    """Calls without a file said nothing, while the command line did."""
    for model in (ss.Ising(APART, [1.0, 1e-20]), ss.Ising(APART, [1.0, 2.0**-54], 0.75)):
        with pytest.warns(UserWarning, match="are multiples of one quantum.* by up to [0-9.]+ %") as warned:
            CALLS[name](model, tmp_path / f"{model.quantum}.h5")
        assert [warning.filename for warning in warned] == [__file__]


def test_penalties_that_hide_the_rest_are_warned_of():
    qubo = {("a", "a"): -1.0, ("a", "b"): 1e20}
    with pytest.warns(UserWarning, match="energies of qubo are searched in steps of"):
        ss.anneal(ss.Ising.from_qubo(qubo), [2.0, 1.0], sweeps=1, replicas=2)
    sampler = pytest.importorskip("spinsim.dimod").SpinsimSampler()
    with pytest.warns(UserWarning, match="are searched in steps of"):
        sampler.sample_qubo(qubo, num_reads=2)


def test_ordinary_decimals_are_no_matter():
    rng = np.random.default_rng(1)
    for couplings in (0.1, rng.standard_normal(128), 1e4 * rng.random(128)):
        model = ss.Ising(ss.square(8), couplings, 0.01)
        assert model.rounded
        assert 0 < model.rounding_error < 1e-9
        assert not model.caution
    assert not ss.EdwardsAnderson(ss.square(4), couplings="gaussian", field=0.1).caution


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("2147483647 1\n1 2 1\n", ("2147483647 sites", "at most 100 a line")),
        ("p qubo 0 2147483647 1 0\n0 0 1\n", ("2147483647 sites", "at most 100 a line")),
    ],
)
def test_sites_that_no_line_names_are_refused_at_once(tmp_path, capsys, monkeypatch, text, words):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "big").write_text(text)
    before, began = tree(tmp_path), time.perf_counter()
    one_sentence(run(capsys, monkeypatch, "anneal", "big"), *words)
    assert time.perf_counter() - began < 1
    assert tree(tmp_path) == before


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("--temperature 1e17", "k_time 1e-17 is lost to rounding: give a number from 1e-08"),
        ("--k-time 1e-30", "k_time 1e-30 is lost to rounding"),
        ("--k 0.2,0.3 --k-time 0.3,1e-9", "k_time 1e-09 is lost to rounding"),
        ("--k 1e-305 --k-time 0.1", "k 1e-305 is lost to rounding"),
        ("--temperature 1e-5", "overflows"),
    ],
)
def test_couplings_without_digits_make_no_transfer_matrix(tmp_path, capsys, monkeypatch, line, words):
    monkeypatch.chdir(tmp_path)
    one_sentence(run(capsys, monkeypatch, "transfer", "--width", "4", *line.split()), words)
    assert not tree(tmp_path)


def test_the_smallest_couplings_between_layers_have_their_levels():
    """Nearly free layers: in the odd sector ln lambda = ln(2 cosh^N tanh) of independent spins, to the digits left."""
    k_time = 1e-5
    result = ss.transfer(ss.Ising(ss.chain(4), 0.0), k=1.0, k_time=k_time, eigenvalues=1)
    free = 4 * np.log(2 * np.cosh(k_time))
    assert result.log_eigenvalue["even"].item() == pytest.approx(free, abs=1e-12)
    assert result.log_eigenvalue["odd"].item() == pytest.approx(free + np.log(np.tanh(k_time)), abs=1e-9)
