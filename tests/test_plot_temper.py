"""Figures of tempering runs, crossings of several sizes, and ``spinsim plot`` of their files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from harness import one_sentence, run
from made_up import CROSSING, LADDER, frozen, tempered
from matplotlib.figure import Figure

import spinsim as ss
from spinsim.analysis import figures, sizes
from spinsim.analysis.figures.panels import UNKNOWN_ERROR
from spinsim.analysis.overlaps import overlap_distribution
from spinsim.analysis.summary import Estimate, summarize
from spinsim.result import TemperResult


def ferromagnet(side: int, **options) -> TemperResult:
    return tempered(ss.Ising(ss.square(side)), **options)


def glass(side: int, **options) -> TemperResult:
    return tempered(ss.EdwardsAnderson(ss.cubic(side), samples=6, seed=side), **options)


def legend(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.legends[0].get_texts()]


def drawn(figure: Figure, panel: int = 0, series: int = 0) -> np.ndarray:
    """Points (x, y) with error bars."""
    return figure.axes[panel].containers[series].lines[0].get_xydata()


def test_averages_of_a_ferromagnet_and_of_a_glass():
    run, third = ferromagnet(8), {}
    for name, result in (("abs_magnetization", run), ("spin_glass_susceptibility", glass(4))):
        summary = summarize(result)
        figure = figures.averages_figure(result, summary)
        for panel, shown in enumerate(("energy_per_site", "specific_heat", name)):
            expected = np.stack([LADDER, summary.estimates[shown].value], axis=1)
            np.testing.assert_array_equal(drawn(figure, panel), expected)
        third[name] = legend(figure)
    assert third["abs_magnetization"] == ["$8 \\times 8$, 2 copies", "exact, $L = \\infty$"]
    assert third["spin_glass_susceptibility"] == ["$4 \\times 4 \\times 4$, 6 samples of 2 copies"]


def test_points_without_a_trusted_error_are_open_and_named():
    result = frozen(ferromagnet(8))
    figure = figures.averages_figure(result, summarize(result))
    assert legend(figure)[1] == UNKNOWN_ERROR
    for panel in range(3):
        assert np.isnan(drawn(figure, panel)[:, 1]).tolist() == [True, *[False] * 7]
        mark = next(line for line in figure.axes[panel].lines if line.get_label() == UNKNOWN_ERROR)
        assert mark.get_xdata().tolist() == [LADDER[0]]
        assert mark.get_markerfacecolor() == "white"


def test_overlaps_from_the_lowest_to_the_highest_temperature():
    result, chosen = glass(4), (0, 2, 4, 5, 7)
    figure, found = figures.overlap_figure(result), overlap_distribution(result)
    assert legend(figure) == [f"$T = {LADDER[k]:.4g}$" for k in chosen]
    assert len(figure.axes[0].collections) == 5  # bands of errors over samples
    for k, curve in zip(chosen, figure.axes[0].lines, strict=True):
        np.testing.assert_array_equal(curve.get_xydata(), np.stack([found.q, found.density[k]], axis=1))


def test_exchanges_and_round_trips():
    result = glass(4)
    figure = figures.exchange_figure(result)
    np.testing.assert_allclose(drawn(figure, 0), np.stack([np.sqrt(LADDER[1:] * LADDER[:-1]), result.swap_rate], 1))
    np.testing.assert_allclose(drawn(figure, 1)[:, 1], result.round_trips.mean(axis=0))
    bars = figure.axes[1].containers[0].lines[2][0].get_segments()
    np.testing.assert_allclose([bar[:, 1] for bar in bars], np.stack([f(result.round_trips, axis=0) for f in
                                                                       (np.min, np.max)], axis=1))  # fmt: skip
    with pytest.raises(ss.InputError, match="has saved no exchange yet"):
        figures.exchange_figure(replace(result, attempts=0 * result.attempts))


@pytest.mark.parametrize("copies", [1, 2])
def test_equilibration_says_its_verdict(copies):
    result = glass(4, copies=copies)
    summary = summarize(result)
    figure = figures.equilibration_figure(result, summary)
    assert len(figure.axes) == copies
    for ax, verdict in zip(figure.axes, summary.equilibration.values(), strict=True):
        assert ax.get_title("left").replace("\n", " ") == verdict.verdict
        assert [len(container.lines[0].get_xdata()) for container in ax.containers] == [len(verdict.mean) - 3, 3]
    assert figure.axes[-1].get_xlabel() == "measurements, one in 10 sweeps"


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
    monkeypatch.setitem(sizes.CURVES, "magnetization", ("binder_cumulant", "made_up"))
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
    assert pair.crossing.reason == "their temperatures do not overlap"
    few = ferromagnet(4, ladder=LADDER[:3])
    (pair,) = sizes.compare_sizes([few, ferromagnet(6)])[0].crossings
    assert pair.crossing.reason == "fewer than 4 temperatures have a value"
    assert len(figures.crossings_figure(sizes.compare_sizes([few, ferromagnet(6)])).axes) >= 1


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """Files of a glass and of two ferromagnets."""
    for name, result in (("glass", glass(4)), ("4", ferromagnet(4)), ("8", ferromagnet(8))):
        result.save(tmp_path / f"{name}.h5")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def new(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()} - {"glass.h5", "4.h5", "8.h5"}


def test_plot_of_one_file(folder, capsys, monkeypatch):
    names = [f"glass-{what}.pdf" for what in ("thermodynamics", "overlap", "exchange", "equilibration")]
    assert run(capsys, monkeypatch, "plot", "glass.h5").out.splitlines() == names
    assert new(folder) == set(names)
    first = [(folder / name).read_bytes() for name in names]
    assert all(content.startswith(b"%PDF") for content in first)
    assert run(capsys, monkeypatch, "plot", "glass.h5").status == 0
    assert [(folder / name).read_bytes() for name in names] == first


def test_plot_of_one_copy_has_no_overlaps(tmp_path, capsys, monkeypatch):
    file = glass(4, copies=1).save(tmp_path / "one.h5")
    assert len(run(capsys, monkeypatch, "plot", file).out.splitlines()) == 3
    one_sentence(run(capsys, monkeypatch, "plot", file, "--what", "overlap"), "no overlaps")


def test_plot_of_two_sizes(folder, capsys, monkeypatch):
    outcome = run(capsys, monkeypatch, "plot", "8.h5", "4.h5", "--out", "c.png")
    assert outcome.status == 0, outcome
    *crossings, last = outcome.out.splitlines()
    assert crossings[0].startswith("binder_cumulant: L = 4 and L = 8 cross at T = ")
    assert " +- 0.0" in crossings[0]
    assert last == "c.png"
    assert run(capsys, monkeypatch, "plot", "8.h5", "4.h5", "--observable", "overlap").out.startswith("overlap_binder")
    assert new(folder) == {"c.png", "8-crossings.pdf"}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("glass.h5 --what configuration", "figure 'configuration' is none of a temper run"),
        ("4.h5 8.h5 --what overlap", "figure 'overlap' is none of several files: choose all, crossings"),
        ("4.h5 --what crossings", "4.h5 alone has no crossings"),
        ("4.h5 4.h5", "two runs have size L = 4"),
        ("4.h5 glass.h5", "not one model in two sizes"),
        ("4.h5 8.h5 --observable energy", "observable 'energy' is unknown: choose overlap or magnetization"),
        ("4.h5 8.h5 --out 8.h5", "its suffix must be"),
        ("4.h5 8.h5 --sample 1", "--sample is for the configuration of an anneal run"),
        ("4.h5 --near 2", "--near is for the crossings of several temper runs"),
        ("4.h5 --out a.png", "names one figure: add --what thermodynamics or --what overlap or"),
        ("4.h5 none.h5", "none.h5 is not there"),
    ],
)
def test_plot_refuses(folder, capsys, monkeypatch, arguments, words):
    one_sentence(run(capsys, monkeypatch, "plot", *arguments.split()), words)
    assert not new(folder)


def test_plot_refuses_anneal_and_temper_files_together(folder, capsys, monkeypatch):
    ss.anneal(ss.Ising(ss.square(4)), [2.0, 1.0], replicas=2).save(folder / "a.h5")
    for files in (("a.h5", "4.h5"), ("a.h5", "a.h5")):
        one_sentence(run(capsys, monkeypatch, "plot", *files), "a.h5 holds an anneal run", "give an anneal file alone")
