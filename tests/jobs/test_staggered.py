"""The staggered magnetisation from the run to its file, tables, printed numbers and figures."""

from __future__ import annotations

import json

import h5py
import numpy as np
import pytest
from exact import assert_agree, enumerate_states, replica_mean
from harness import run

import spinsim as ss
from spinsim.analysis.figures import averages_figure
from spinsim.analysis.sizes import compare_sizes
from spinsim.analysis.summary import summarize
from spinsim.jobs.anneal.figures import thermodynamics_figure

PARITY = np.where(np.indices((4, 4)).sum(axis=0).ravel() % 2, -1, 1)  # of x + y, site 0 first
NAMES = ("abs_staggered_magnetization", "staggered_magnetization_squared", "staggered_susceptibility",
         "staggered_binder_cumulant")  # fmt: skip
LABEL = r"staggered $\langle|m_\mathrm{s}|\rangle$"


def antiferromagnet(side: int, field: float = 0.0) -> ss.Ising:
    return ss.Ising(ss.square(side), -1.0, field)


def test_the_antiferromagnet_orders_as_the_ferromagnet_does() -> None:
    """Its staggered magnetisation is distributed as the ferromagnet's magnetisation."""
    result = ss.temper(antiferromagnet(4), [2.0, 3.0], 1500, 100, replicas=32, measure_every=5, seed=2)
    squares = (result.staggered_magnetization[:, 0] / 16) ** 2
    rows = []
    for k, temperature in enumerate(result.temperature):
        exact = enumerate_states(ss.Ising(ss.square(4)), temperature).magnetization_squared
        rows.append((f"m_s^2 at T = {temperature}", *replica_mean(squares[..., k]), exact))
    assert_agree(rows)


def test_anneals_measure_it(tmp_path) -> None:
    result = ss.anneal(antiferromagnet(4), np.geomspace(4, 0.1, 20), sweeps=20, replicas=8, seed=1)
    assert result.staggered_magnetization is not None
    assert abs(int(PARITY @ result.best_spins[0])) == 16
    assert set(np.abs(result.staggered_magnetization[-1]).ravel()) == {16}
    assert (result.magnetization[-1] == 0).all()
    again = ss.load(result.save(tmp_path / "run.h5"))
    np.testing.assert_array_equal(again.staggered_magnetization, result.staggered_magnetization)
    assert again.dataset()["staggered_magnetization"].dims == ("step", "sample", "replica")
    assert ss.table(again)["abs_staggered_magnetization"].iloc[-1] == 1
    assert r"staggered magnetisation per site $\langle|m_\mathrm{s}|\rangle$" in thermodynamics_figure(result).caption
    start = ss.create_engine(ss.Ising(ss.square(4)), 2, ss.Dynamics(), "cpu", start=PARITY)
    assert (start.counts().staggered_magnetization == 16).all()


@pytest.mark.parametrize(
    "model",
    [
        antiferromagnet(3),
        ss.Ising(ss.triangular(6)),
        ss.Ising(ss.Graph(3, [(0, 1), (1, 2)]), 1.0),
    ],
    ids=["odd", "triangular", "graph"],
)
def test_other_models_have_none(model: ss.Ising) -> None:
    annealed = ss.anneal(model, [1.0], 1, 2)
    assert annealed.staggered_magnetization is None
    assert "abs_staggered_magnetization" not in ss.table(annealed)
    tempered = ss.temper(model, [1.0, 2.0], sweeps=160, thermalize=0)
    assert not tempered.has_staggered
    assert not set(NAMES) & set(ss.table(tempered))


def test_commands_show_it(do, capsys, monkeypatch) -> None:
    path = do("temper --size 4 --couplings antiferromagnet --temperatures 2:3:3g --sweeps 400 --thermalize 20")
    assert "<|m_s|>" in run(capsys, monkeypatch, "show", path).out
    found = json.loads(run(capsys, monkeypatch, "analyze", path, "--json").out)
    assert set(NAMES) <= found.keys()
    assert "chi_s" in run(capsys, monkeypatch, "analyze", path, "--columns", "staggered_susceptibility").out
    with h5py.File(path) as file:
        np.testing.assert_array_equal(file["summary/staggered_binder_cumulant"], found["staggered_binder_cumulant"])
    path = do("anneal --size 4 --couplings antiferromagnet --steps 5 --sweeps 10 --replicas 8", "b")
    assert "<|m_s|>" in run(capsys, monkeypatch, "show", path).out


def test_figures_of_one_size_and_of_several_take_it() -> None:
    runs = [ss.temper(antiferromagnet(side), np.linspace(2, 3, 5), 400, 50, seed=side) for side in (4, 6)]
    summaries = [summarize(result) for result in runs]
    assert averages_figure(runs[:1], summaries[:1]).axes[2].get_ylabel() == LABEL
    assert LABEL in [ax.get_ylabel() for ax in averages_figure(runs, summaries).axes]
    assert [comparison.name for comparison in compare_sizes(runs)] == ["staggered_binder_cumulant"]


def test_fields_that_favour_a_sublattice_leave_connected_quantities_out() -> None:
    alike, other = antiferromagnet(4, 0.5), ss.Ising(ss.square(3, periodic=False), -1.0, 0.5)
    for model, there in ((alike, True), (other, False)):
        names = ss.table(ss.temper(model, [2.0, 3.0], sweeps=160, thermalize=0)).columns
        assert ("staggered_susceptibility" in names) == ("staggered_binder_cumulant" in names) == there
        assert "abs_staggered_magnetization" in names
