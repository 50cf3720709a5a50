"""Figures of annealing runs: averages, cuts, states."""

from __future__ import annotations

import re
from dataclasses import replace

import matplotlib as mpl
import numpy as np
import pytest
from drawn import LADDER, RING, anneal, annealed, drawn, legend
from made_up import tempered

import spinsim as ss
from spinsim.analysis import onsager
from spinsim.analysis.figures import save_figure
from spinsim.analysis.thermodynamics import thermodynamics
from spinsim.jobs.anneal.figures import configuration_figure, cut_figure, thermodynamics_figure
from spinsim.jobs.anneal.result import AnnealResult
from spinsim.jobs.temper.figures import cut_figure as cut_of_tempering

EXACT = "exact, $L = \\infty$"


@pytest.fixture(scope="module")
def ferromagnet() -> AnnealResult:
    return anneal(ss.Ising(ss.square(8)))


@pytest.fixture(scope="module")
def glass() -> AnnealResult:
    return anneal(ss.EdwardsAnderson(ss.cubic(4, 3, 2), samples=3, seed=7))


def test_thermodynamics_figure(ferromagnet):
    figure = thermodynamics_figure(ferromagnet)
    units = ("energy per site $E/N$", "C/(Nk_\\mathrm{B})", "\\langle|m|\\rangle")
    assert all(unit in ax.get_ylabel() for unit, ax in zip(units, figure.axes, strict=True))
    assert figure.axes[2].get_xlabel() == "temperature $T$ ($J / k_B$)"
    assert legend(figure) == ["$8 \\times 8$, 16 replicas", EXACT, "exact $T_c$"]
    table = thermodynamics(ferromagnet)
    for panel, (mean, _) in enumerate((table.energy, table.specific_heat, table.magnetization)):
        np.testing.assert_array_equal(drawn(figure, panel), np.stack([LADDER, mean], axis=1))


OTHERS = {
    "antiferromagnet": ss.Ising(ss.square(4), -1.0),
    "open": ss.Ising(ss.square(4, periodic=False)),
    "field": ss.Ising(ss.square(4), 1.0, 0.3),
    "cubic": ss.Ising(ss.cubic(4)),
    "glass": ss.EdwardsAnderson(ss.square(4)),
    "graph": ss.Ising(RING),
}


@pytest.mark.parametrize("model", OTHERS.values(), ids=OTHERS)
def test_exact_curves_only_where_they_hold(model):
    assert EXACT not in legend(thermodynamics_figure(annealed(model)))


@pytest.mark.parametrize("model", [OTHERS["glass"], ss.Ising(ss.triangular(6), -1.0)], ids=["glass", "frustrated"])
def test_magnetisations_of_what_favours_no_parallel_spins_are_not_drawn(model):
    """|m| is the noise of a finite lattice there."""
    figure = thermodynamics_figure(annealed(model))
    assert len(figure.axes) == 2
    assert "|m|" not in figure.caption


@pytest.mark.parametrize(("steps", "temperature"), [(1, 2.0), (5, onsager.CRITICAL_TEMPERATURE)])
def test_one_temperature_is_drawn_against_the_step(tmp_path, temperature, steps):
    figure = thermodynamics_figure(anneal(ss.Ising(ss.square(8)), [temperature] * steps))
    np.testing.assert_array_equal(drawn(figure, 0)[:, 0], np.arange(steps))
    assert figure.axes[2].get_xlabel() == f"step number, all at $T = {temperature:.6g}$"
    level = next(line for line in figure.axes[0].lines if line.get_label() == EXACT)
    assert set(level.get_ydata()) == {onsager.energy([temperature])[0]}
    save_figure(figure, tmp_path / "figure.png")


def test_samples_and_graphs(glass):
    assert legend(thermodynamics_figure(glass))[0] == "$4 \\times 3 \\times 2$, 3 samples of 16 replicas"
    assert legend(thermodynamics_figure(annealed(ss.Ising(RING)))) == ["$N = 12$, 2 replicas"]


@pytest.mark.parametrize("replicas", [1, 2])
def test_few_replicas(tmp_path, replicas):
    figure = thermodynamics_figure(anneal(ss.Ising(ss.square(4)), replicas=replicas))
    assert len(figure.axes[1].texts) == (replicas == 1)  # "undefined for a single replica"
    assert len(drawn(figure, 0)) == len(LADDER)
    save_figure(figure, tmp_path / "figure.pdf")


def test_the_heat_of_frozen_replicas_is_not_drawn(ferromagnet):
    frozen = replace(ferromagnet, energy=ferromagnet.energy.copy())
    frozen.energy[-3:] = -128
    frozen.energy[-3:, :, 0] = -64
    figure = thermodynamics_figure(frozen)
    assert np.isnan(drawn(figure, 1)[-1:, 1]).all()
    assert figure.axes[1].get_ylim()[1] < 5


def test_user_settings_neither_change_nor_matter(tmp_path):
    result = anneal(max_cut())
    save_figure(cut_figure(result), tmp_path / "plain.pdf")
    with mpl.rc_context({"font.size": 20, "pdf.fonttype": 3, "lines.linewidth": 7}):
        before = dict(mpl.rcParams)
        save_figure(cut_figure(result), tmp_path / "other.pdf")
        assert dict(mpl.rcParams) == before
    assert (tmp_path / "plain.pdf").read_bytes() == (tmp_path / "other.pdf").read_bytes()


def test_configuration_shows_x_to_the_right_and_y_upwards():
    result = anneal(ss.EdwardsAnderson(ss.square(6, 4), seed=3))
    figure = configuration_figure(result)
    ax = figure.axes[0]
    picture = ax.images[0]
    spins = result.best_spins[0]
    assert picture.origin == "lower"
    assert tuple(picture.get_extent()) == (-0.5, 5.5, -0.5, 3.5)
    assert all(picture.get_array()[y, x] == spins[x + 6 * y] for x in range(6) for y in range(4))
    assert ax.get_aspect() == 1
    assert f"$E = {result.best_energy.min():.10g}$" in figure.caption
    assert [ax.get_xlabel(), ax.get_ylabel()] == ["$x$ (lattice units)", "$y$ (lattice units)"]


def test_configuration_of_one_sample_and_layer(glass):
    figure = configuration_figure(glass, 2)
    ax = figure.axes[0]
    np.testing.assert_array_equal(ax.images[0].get_array().ravel(), glass.best_spins[2][:12])
    assert f"met, $E = {glass.best_energy[2].min():.10g}$, by sample 2 of {glass.model.name}" in figure.caption
    assert "layer $z = 0$ of $4 \\times 3 \\times 2$" in figure.caption


@pytest.mark.parametrize("shape", [(2,), (300,), (1, 7), (2, 300), (300, 2), (1024, 512), (12, 40), (12, 6, 3)])
def test_configuration_fits_its_page(tmp_path, shape):
    figure = configuration_figure(annealed(ss.Ising(ss.Lattice(shape))), style="double" if shape[0] == 12 else "single")
    save_figure(figure, tmp_path / "figure.png")
    box = figure.get_tightbbox()
    width, height = figure.get_size_inches()
    assert min(box.x0, box.y0, width - box.x1, height - box.y1) >= 0
    assert figure.axes[0].images[0].get_array().shape == (*shape, 1)[1::-1]


def test_configuration_refusals(glass):
    with pytest.raises(ss.InputError, match="sample -1 is not in the result: give a number from 0 to 2"):
        configuration_figure(glass, -1)
    with pytest.raises(ss.InputError, match="graph without a lattice"):
        configuration_figure(annealed(ss.Ising(RING)))


@pytest.mark.parametrize(
    ("lattice", "words"),
    [
        (ss.square(4), "all spins are +1 in the lowest state met by square-4x4"),
        (ss.chain(4), "all spins are +1 in the lowest state met by chain-4"),
        (ss.cubic(4), "all spins are +1 in the layer z = 0 of the lowest state"),
    ],
)
def test_a_state_of_one_colour_is_no_picture(lattice, words):
    result = annealed(ss.Ising(lattice))
    result.best_spins[:, :16] = 1
    with pytest.raises(ss.InputError, match=re.escape(words)):
        configuration_figure(result)


def max_cut() -> ss.Ising:
    return ss.Ising(RING, -1.0, name="ring", maxcut_weight=12.0)


def test_a_maxcut_run_draws_its_cut_and_no_magnetisation():
    result = anneal(max_cut())
    assert len(thermodynamics_figure(result).axes) == 2
    figure = cut_figure(result)
    (ax,) = figure.axes
    cuts = (12 - result.energy[:, 0]) / 2
    mean, best = ax.lines
    np.testing.assert_array_equal(mean.get_xydata(), np.stack([100 * np.arange(1, 13), cuts.mean(axis=1)], axis=1))
    np.testing.assert_array_equal(best.get_ydata(), np.maximum.accumulate(cuts.max(axis=1)))
    assert [ax.get_xlabel(), ax.get_ylabel()] == ["sweeps", "cut"]
    assert legend(figure) == ["range of replicas", "mean of replicas", "best so far"]
    assert "The best is 12." in figure.caption
    with pytest.raises(ss.InputError, match="is not a MaxCut instance: it has no cut"):
        cut_figure(anneal(ss.Ising(RING)))


def test_a_tempered_maxcut_run_draws_the_cut_of_its_lowest_temperature():
    result = tempered(max_cut())
    mean, best = cut_of_tempering(result).axes[0].lines
    cuts = (12 - result.energy[:, 0]) / 2
    np.testing.assert_array_equal(mean.get_xydata(), np.stack([result.sweep, cuts[..., 0].mean(axis=1)], axis=1))
    np.testing.assert_array_equal(best.get_ydata(), np.maximum.accumulate(cuts.max(axis=(1, 2))))


def test_two_columns_have_their_panels_in_a_row(ferromagnet):
    figure = thermodynamics_figure(ferromagnet, "double")
    assert figure.get_size_inches()[0] == 7.0
    assert [ax.get_xlabel() for ax in figure.axes] == ["temperature $T$ ($J / k_B$)"] * 3
    assert len({ax.get_subplotspec().rowspan.start for ax in figure.axes}) == 1
    with pytest.raises(ss.InputError, match="style 'wide' is unknown: choose single or double"):
        thermodynamics_figure(ferromagnet, "wide")
