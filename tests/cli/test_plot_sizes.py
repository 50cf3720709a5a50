"""Runs of several sizes together: where their curves cross, and the figures."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from drawn import legend
from harness import one_sentence, run
from made_up import CROSSING, LADDER, ferromagnet, glass, tempered

import spinsim as ss
from spinsim.analysis import figures, sizes
from spinsim.analysis.figures.paper import BLUE, GREEN, VERMILION
from spinsim.analysis.summary import Estimate, summarize
from spinsim.observables.table import SYMBOLS


def test_sizes_cross_where_they_should():
    runs = [ferromagnet(side, copies=4, steps=2000) for side in (8, 4, 6)]
    (found,) = sizes.compare_sizes(runs)[:1]
    assert found.name == "binder_cumulant"
    assert [curve.label for curve in found.curves] == ["L = 4", "L = 6", "L = 8"]
    assert [pair.labels for pair in found.crossings] == [("L = 4", "L = 6"), ("L = 4", "L = 8"), ("L = 6", "L = 8")]
    for pair in found.crossings:
        assert pair.trusted
        assert 0 < pair.crossing.error < 0.02
        assert abs(pair.crossing.value - CROSSING) < 4 * pair.crossing.error
    figure = figures.crossings_figure([found])
    assert legend(figure) == ["$L = 4$", "$L = 6$", "$L = 8$", "crossings"]
    keys = figure.legends[0].legend_handles
    assert all(key.lines[0].get_linestyle() == "-" for key in figure.axes[0].containers[:3])
    assert len(keys) == 4
    diamonds = [one.lines[0] for one in figure.axes[0].containers if one.get_label() == "crossings"]
    of_both = [(mark.get_markerfacecolor(), mark.get_markerfacecoloralt()) for mark in diamonds]
    assert of_both == [(BLUE, VERMILION), (BLUE, GREEN), (VERMILION, GREEN)]


def test_crossings_of_overlaps_and_of_what_has_no_trusted_error():
    runs = [glass(side) for side in (2, 4)]
    assert sizes.compare_sizes(runs)[0].name == "overlap_binder_cumulant"
    assert sizes.compare_sizes(runs, "magnetization")[0].name == "binder_cumulant"
    for result in runs:
        result.overlap[...] = result.overlap[0]
    (pair,) = sizes.compare_sizes(runs)[0].crossings
    assert not pair.trusted


def test_near_chooses_among_several_crossings():
    ladder = np.linspace(1.6, 2.4, 9)
    model = ss.Ising(ss.square(4)), ss.Ising(ss.square(6))
    flat, bent = (tempered(m, ladder=ladder, steps=2000) for m in model)
    flat.magnetization[...] = np.where(np.arange(2000) % 2, 16, 4)[:, None, None, None]
    share = 0.3 + 2 * (ladder - 2) ** 2  # of large ones: 1/2 at two temperatures
    random = np.random.default_rng(3)
    bent.magnetization[...] = np.where(random.random(bent.magnetization.shape) < share, 36, 9)
    (pair,) = sizes.compare_sizes([flat, bent])[0].crossings
    assert "the curves cross 2 times" in pair.crossing.reason
    for near in (1.7, 2.3):
        (pair,) = sizes.compare_sizes([flat, bent], near=near)[0].crossings
        assert abs(pair.crossing.value - 2) == pytest.approx(np.sqrt(0.1), abs=0.1)
        assert np.sign(pair.crossing.value - 2) == np.sign(near - 2)


def test_another_estimate_has_a_panel_where_all_sizes_have_it(monkeypatch):
    """Such as xi / L, which graphs do not have; NaN at high temperatures is no harm."""
    monkeypatch.setitem(SYMBOLS, "made_up", "made up")
    monkeypatch.setitem(sizes.CROSSING, "magnetization", ("binder_cumulant", "made_up"))
    summarized, resampled = sizes.summarize, sizes.resampled

    def summary(result):
        found = summarized(result)
        binder = found.estimates["binder_cumulant"]
        if result.model.sites > 4:
            value = binder.value + np.where(LADDER > 2.17, np.nan, 0)
            found.estimates["made_up"] = Estimate(value, binder.error, binder.tau, binder.trusted)
        return found

    def rows(result, *how):
        curves = resampled(result, *how)
        return curves | {"made_up": curves["binder_cumulant"] + np.where(LADDER > 2.17, np.nan, 0)}

    monkeypatch.setattr(sizes, "summarize", summary)
    monkeypatch.setattr(sizes, "resampled", rows)
    runs = [ferromagnet(side) for side in (2, 4, 8)]
    both = sizes.compare_sizes(runs[1:])
    assert [found.name for found in both] == ["binder_cumulant", "made_up"]
    assert all(np.isfinite(found.crossings[0].crossing.value) for found in both)
    assert len(figures.crossings_figure(both).axes) == 2
    assert [found.name for found in sizes.compare_sizes(runs)] == ["binder_cumulant"]


def test_sizes_that_cannot_be_compared():
    with pytest.raises(ss.InputError, match="two files or more of different sizes"):
        sizes.compare_sizes([ferromagnet(4)])
    with pytest.raises(ss.InputError, match="two runs have size L = 4: give runs of different sizes"):
        sizes.compare_sizes([ferromagnet(4), ferromagnet(6), ferromagnet(4)])
    with pytest.raises(ss.InputError, match="are not one model in two sizes"):
        sizes.compare_sizes([ferromagnet(4), glass(4)])
    with pytest.raises(ss.InputError, match="has one copy at each temperature and no overlaps"):
        sizes.compare_sizes([glass(2, copies=1), glass(4)])
    cold = ferromagnet(4, ladder=LADDER / 4)
    (pair,) = sizes.compare_sizes([cold, ferromagnet(6)])[0].crossings
    assert pair.crossing.reason == "their ladders do not overlap"
    few = ferromagnet(4, ladder=LADDER[:3])
    (pair,) = sizes.compare_sizes([few, ferromagnet(6)])[0].crossings
    assert pair.crossing.reason == "fewer than 4 points of the ladder have a value"
    assert len(figures.crossings_figure(sizes.compare_sizes([few, ferromagnet(6)])).axes) >= 1


def test_an_inset_shows_what_lies_around_crossings():
    runs = [ferromagnet(side, copies=4, steps=2000) for side in (4, 8)]
    found = sizes.compare_sizes(runs)[:1]
    (ax,) = figures.crossings_figure(found).axes
    (inset,) = ax.child_axes
    (pair,) = found[0].crossings
    low, high = inset.get_xlim()
    assert low < pair.crossing.value - pair.crossing.error < pair.crossing.value + pair.crossing.error < high
    assert high - low < 0.4 * (LADDER[-1] - LADDER[0])
    x0, y0, width, height = ax.transAxes.inverted().transform_bbox(inset.bbox).bounds
    corners = ax.transData.inverted().transform(ax.transAxes.transform([(x0, y0), (x0 + width, y0 + height)]))
    for curve in found[0].curves:
        inside = (curve.temperature > corners[0, 0]) & (curve.temperature < corners[1, 0])
        height_of = curve.estimate.value[inside]
        assert not ((height_of > corners[0, 1]) & (height_of < corners[1, 1])).any()
    caption = figures.crossings_figure(found).caption
    assert re.search(r"\$L = 4\$ and \$L = 8\$ cross at \$T = [\d.]+\(\d\d\)\$", caption)
    assert "+-" not in caption
    assert "; insets enlarge them." in caption


def test_curves_that_do_not_cross_have_no_inset():
    few = sizes.compare_sizes([ferromagnet(4, ladder=LADDER[:3]), ferromagnet(6)])
    figure = figures.crossings_figure(few)
    assert not any(ax.child_axes for ax in figure.axes)
    assert "inset" not in figure.caption


@pytest.mark.parametrize("style", ["single", "double"])
def test_averages_of_several_sizes(style):
    runs = [ferromagnet(4), ferromagnet(8)]
    summaries = [summarize(result) for result in runs]
    figure = figures.averages_figure(runs, summaries, style)
    names = ["energy_per_site", "specific_heat", "abs_magnetization", "susceptibility_abs"]
    assert len(figure.axes) == len(names)
    for ax, name in zip(figure.axes, names, strict=True):
        for container, summary in zip(ax.containers, summaries, strict=True):
            np.testing.assert_array_equal(container.lines[0].get_ydata(), summary.estimates[name].value)
    assert {"$L = 4$", "$L = 8$"} < set(legend(figure))
    overlaps = figures.averages_figure(runs, summaries, style, "overlap")
    assert [ax.get_ylabel() for ax in overlaps.axes[2:]] == [r"susceptibility $\chi_\mathrm{SG}$"]
    for pair in figure.axes, overlaps.axes:
        assert sum(ax.get_xlabel() == "temperature $T$ ($J / k_B$)" for ax in pair) == (
            1 if style == "single" else len(pair) % 4 or 2
        )


def test_chosen_columns_have_a_panel_each(folder, capsys, monkeypatch):
    """Any column of the table of observables can be drawn, of one run and of several."""
    runs = [ferromagnet(4), ferromagnet(8)]
    summaries = [summarize(result) for result in runs]
    figure = figures.averages_figure(runs, summaries, columns="energy_binder_cumulant, abs_overlap")
    assert [ax.get_ylabel() for ax in figure.axes] == [r"Binder cumulant $U_E$", r"overlap $\langle|q|\rangle$"]
    assert "Binder cumulant $U_E$ of the energy and overlap $\\langle|q|\\rangle$ against temperature" in figure.caption
    every = figures.averages_figure(runs[:1], summaries[:1], columns=",".join(summaries[0].estimates))
    assert [ax.get_ylabel() for ax in every.axes] == [SYMBOLS[name] for name in summaries[0].estimates]
    chosen = ("plot", "4.h5", "--what", "thermodynamics", "--columns")
    assert run(capsys, monkeypatch, *chosen, "energy_binder_cumulant").status == 0
    assert "Binder cumulant $U_E$ of the energy against temperature $T$" in Path("4-thermodynamics.txt").read_text()
    one_sentence(run(capsys, monkeypatch, *chosen, "abs_overlab"), "did you mean 'abs_overlap'?")


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """Files of two ferromagnets."""
    for side in (4, 8):
        ferromagnet(side).save(tmp_path / f"{side}.h5")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.system
def test_plot_of_two_sizes(folder, capsys, monkeypatch):
    outcome = run(capsys, monkeypatch, "plot", "8.h5", "4.h5", "--what", "crossings", "--out", "c.png")
    assert outcome.status == 0, outcome
    *crossings, last = outcome.out.splitlines()
    assert re.match(r"U_m: L = 4 and L = 8 cross at T = 2\.\d+\(\d\d\)", crossings[0])
    assert last == "c.png"
    outcome = run(capsys, monkeypatch, "plot", "8.h5", "4.h5", "--observable", "overlap", "--style", "double")
    assert outcome.out.startswith("U_q: ")
    assert outcome.out.splitlines()[-2:] == ["8+4-crossings.pdf", "8+4-thermodynamics.pdf"]
    assert run(capsys, monkeypatch, "plot", "8.h5", "--what", "thermodynamics").status == 0
    assert {path.suffix for path in folder.iterdir()} == {".h5", ".pdf", ".png", ".txt"}
