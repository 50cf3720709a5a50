"""Figures of tempering runs, and ``spinsim plot`` of their files."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from drawn import drawn, legend
from harness import one_sentence, run
from made_up import LADDER, ferromagnet, frozen, glass, tempered

import spinsim as ss
from spinsim.analysis import figures
from spinsim.analysis.equilibration import approach
from spinsim.analysis.figures.paper import UNKNOWN_ERROR, in_math
from spinsim.analysis.overlaps import bins_for, overlap_distribution
from spinsim.analysis.summary import summarize
from spinsim.jobs.temper.figures import equilibration_figure, exchange_figure, overlap_figure


def test_averages_of_a_ferromagnet_and_of_a_glass():
    run, third = ferromagnet(8), {}
    order = {"susceptibility_abs": "abs_magnetization", "spin_glass_susceptibility": "link_overlap"}
    for name, result in (("susceptibility_abs", run), ("spin_glass_susceptibility", glass(4))):
        summary = summarize(result)
        figure = figures.averages_figure([result], [summary])
        shown_of = [n for n in ("energy_per_site", "specific_heat", order[name], name) if n in summary.estimates]
        assert len(figure.axes) == len(shown_of)
        for panel, shown in enumerate(shown_of):
            expected = np.stack([LADDER, summary.estimates[shown].value], axis=1)
            np.testing.assert_array_equal(drawn(figure, panel), expected)
        third[name] = legend(figure)
    assert third["susceptibility_abs"] == ["$8 \\times 8$, 2 copies", "exact, $L = \\infty$"]
    assert third["spin_glass_susceptibility"] == ["$4 \\times 4 \\times 4$, 6 samples of 2 copies"]


def test_points_without_a_trusted_error_are_open_and_named():
    result = frozen(ferromagnet(8))
    figure = figures.averages_figure([result], [summarize(result)])
    assert legend(figure)[1] == UNKNOWN_ERROR
    for panel in range(4):
        assert np.isnan(drawn(figure, panel)[:, 1]).tolist() == [True, *[False] * 7]
        mark = next(line for line in figure.axes[panel].lines if line.get_label() == UNKNOWN_ERROR)
        assert mark.get_xdata().tolist() == [LADDER[0]]
        assert mark.get_markerfacecolor() == "white"


def test_overlaps_from_the_lowest_to_the_highest_temperature():
    result, chosen = glass(4), (0, 2, 4, 5, 7)
    figure = overlap_figure(result)
    labels = [f"$T = {LADDER[k]:.3g}$" for k in chosen] + ["standard error"]
    assert sorted(legend(figure)) == sorted(labels)
    assert len(figure.axes[0].collections) == 5 + 1  # bands of errors over samples, and that of the legend
    assert "standard errors over samples" in figure.caption
    for k, curve in zip(chosen, figure.axes[0].lines, strict=True):
        found = overlap_distribution(result, bins_for(result, k), symmetrize=True)
        np.testing.assert_array_equal(curve.get_xydata(), np.stack([found.q, found.density[k]], axis=1))
        np.testing.assert_allclose(curve.get_ydata(), curve.get_ydata()[::-1])
    assert "the mean of $P(q)$ and $P(-q)$" in figure.caption


def test_overlaps_in_a_field_are_not_symmetrised():
    result = glass(4)
    figure = overlap_figure(replace(result, model=ss.Ising(ss.cubic(4), 1.0, 0.3)))
    curve = figure.axes[0].lines[0].get_ydata()
    assert not np.allclose(curve, curve[::-1])
    assert "P(-q)" not in figure.caption


def test_the_order_of_a_single_run():
    """Binder cumulants and correlation lengths, which crossings show of several sizes."""
    run, spins = ferromagnet(8), glass(4)
    for result, name in ((run, "binder_cumulant"), (spins, "overlap_binder_cumulant")):
        summary = summarize(result)
        figure = figures.order_figure(result, summary)
        assert figures.order_names(result)[0] == name
        np.testing.assert_array_equal(drawn(figure, 0)[:, 1], summary.estimates[name].value)
    assert "Binder cumulant $U_q$ of the overlap" in figure.caption
    field = replace(spins, model=ss.Ising(ss.cubic(4), 1.0, 0.3))
    assert "overlap_binder_cumulant" not in figures.order_names(field)


def test_a_glass_of_one_copy_shows_no_magnetisation():
    result = glass(4, copies=1)
    labels = [ax.get_ylabel() for ax in figures.averages_figure([result], [summarize(result)]).axes]
    assert len(labels) == 2
    assert figures.order_names(result) == []
    with pytest.raises(ss.InputError, match="has neither a Binder cumulant nor a correlation length"):
        figures.order_figure(result, summarize(result))


def test_exchanges_and_round_trips():
    result = glass(4)
    result.round_trips[0, :5] = 0
    figure = exchange_figure(result)
    rates, trips = figure.axes
    pairs, mean = np.sqrt(LADDER[1:] * LADDER[:-1]), rates.lines[-1]
    assert rates.get_xlim()[0] < LADDER.min() < LADDER.max() < rates.get_xlim()[1]
    np.testing.assert_allclose(mean.get_xydata(), np.stack([pairs, result.swap_rate], 1))
    each = result.accepts / result.attempts
    bars = rates.containers[0].lines[2][0].get_segments()
    np.testing.assert_allclose([bar[:, 1] for bar in bars], np.stack([each.min(axis=0), each.max(axis=0)], axis=1))
    assert sorted(legend(figure)) == ["mean of samples", "no round trip", "range of samples"]
    assert "Bars reach from the lowest to the highest of the samples." in figure.caption
    heights = {round(bar.get_x() + 0.5): bar.get_height() for bar in trips.patches}
    assert heights == {k: (result.round_trips == k).sum() for k in range(result.round_trips.max() + 1)}
    with pytest.raises(ss.InputError, match="has saved no exchange yet"):
        exchange_figure(replace(result, attempts=0 * result.attempts))


def test_round_trips_of_long_runs_and_of_none():
    for trips in (0, 1000):
        result = glass(4)
        result.round_trips[...] = trips + np.arange(result.round_trips.size).reshape(result.round_trips.shape) * (
            trips > 0
        )
        bars = exchange_figure(result).axes[1].patches
        assert len(bars) <= 32
        assert sum(bar.get_height() for bar in bars) == result.round_trips.size


@pytest.mark.parametrize("copies", [1, 2])
def test_equilibration_says_its_verdict_in_the_caption(copies):
    result = glass(4, copies=copies)
    summary, found = summarize(result), approach(result)
    figure = equilibration_figure(result, summary)
    assert len(figure.axes) == copies
    assert not figure._suptitle
    assert in_math(summary.verdict) in figure.caption
    assert all(in_math(one.verdict) in figure.caption for one in summary.equilibration.values())
    assert "q^2 " not in figure.caption.replace("$q^2$", "")
    assert set(legend(figure)) == {f"$T = {LADDER[k]:.3g}$" for k in (0, 2, 4, 5, 7)}
    for panel, mean in enumerate(found.mean.values()):
        assert figure.axes[panel].get_title("left") == (f"({'abcd'[panel]})" if len(found.mean) > 1 else "")
        for curve, k in enumerate((0, 2, 4, 5, 7)):
            expected = np.stack([found.last_sweep, mean[:, k]], axis=1)
            np.testing.assert_array_equal(drawn(figure, panel, curve), expected)
    assert figure.axes[-1].get_xlabel() == "sweeps after thermalisation"


def test_equilibration_of_gaussian_couplings_has_a_panel_of_the_residual():
    model = ss.EdwardsAnderson(ss.cubic(3), samples=5, seed=1, couplings="gaussian")
    result = tempered(model)
    links = np.random.default_rng(1).integers(-81, 82, result.overlap.shape)
    modes = {f"{name}_mode": np.ones((*getattr(result, name).shape, 3)) for name in ("overlap", "magnetization")}
    result = replace(result, link_overlap=links, **modes)
    figure = equilibration_figure(result, summarize(result), "double")
    assert len(figure.axes) == 4
    np.testing.assert_array_equal(drawn(figure, 3)[:, 1], approach(result).mean["link_residual"][:, 0])
    assert "The last panel is 0 in equilibrium." in figure.caption
    frozen(result)  # a series without an error
    equilibration_figure(result, summarize(result)).draw_without_rendering()


def test_a_specific_heat_far_above_the_slope_of_the_energy_is_off_scale():
    result = ferromagnet(8, ladder=np.linspace(1.8, 2.2, 12))
    result.energy[:, :, :, 0] *= 1 + np.where(np.arange(len(result.energy)) % 2, 0.9, -0.9)[:, None, None]
    figure = figures.averages_figure([result], [summarize(result)])
    (marks,) = [line for line in figure.axes[1].lines if line.get_label() == "off scale"]
    assert marks.get_xdata().tolist() == [1.8]
    assert figure.axes[1].get_ylim()[1] < 20
    assert "out of equilibrium" in figure.caption


@pytest.fixture(scope="module")
def saved(tmp_path_factory) -> Path:
    """Files of a glass and of two ferromagnets."""
    folder = tmp_path_factory.mktemp("saved")
    for name, result in (("glass", glass(4)), ("4", ferromagnet(4)), ("8", ferromagnet(8))):
        result.save(folder / f"{name}.h5")
    return folder


@pytest.fixture
def folder(saved, tmp_path, monkeypatch) -> Path:
    """A working folder with copies of them."""
    shutil.copytree(saved, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def new(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()} - {"glass.h5", "4.h5", "8.h5"}


@pytest.mark.system
def test_plot_of_one_file(folder, capsys, monkeypatch):
    names = [
        f"glass-{what}.pdf" for what in ("thermodynamics", "order", "walks", "overlap", "exchange", "equilibration")
    ]
    assert run(capsys, monkeypatch, "plot", "glass.h5").out.splitlines() == names
    assert new(folder) == set(names) | {name.replace(".pdf", ".txt") for name in names}
    first = [(folder / name).read_bytes() for name in names]
    assert all(content.startswith(b"%PDF") for content in first)
    assert run(capsys, monkeypatch, "plot", "glass.h5", "--what", "overlap").status == 0
    assert [(folder / name).read_bytes() for name in names] == first


def test_plot_of_one_copy_has_no_overlaps(tmp_path, capsys, monkeypatch):
    file = glass(4, copies=1).save(tmp_path / "one.h5")
    assert len(run(capsys, monkeypatch, "plot", file).out.splitlines()) == 4
    one_sentence(run(capsys, monkeypatch, "plot", file, "--what", "overlap"), "no overlaps")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            "glass.h5 --what configuration",
            "a temper run and has no figure 'configuration': choose all, thermodynamics, order, walks, overlap, exch",
        ),
        (
            "4.h5 8.h5 --what overlap",
            "no figure 'overlap' of several temper files: choose all, crossings or thermodynamics",
        ),
        ("4.h5 --what crossings", "4.h5 alone has no crossings"),
        ("4.h5 4.h5", "is given twice: give each once"),
        ("4.h5 glass.h5", "not one model in two sizes"),
        ("4.h5 8.h5 --observable energy", "observable 'energy' is unknown: choose overlap or magnetization"),
        ("4.h5 8.h5 --what crossings --out 8.h5", "its suffix must be"),
        ("4.h5 8.h5 --sample 1", "--sample is for the configuration or landscape of an anneal run"),
        ("4.h5 --near 2", "--near is for the crossings of several temper runs"),
        (
            "4.h5 --what overlap --columns energy",
            "the thermodynamics of temper runs: leave it out, or ask for --what therm",
        ),
        (
            "4.h5 8.h5 --what thermodynamics --near 2",
            "crossings of several temper runs: leave it out, or ask for --what cr",
        ),
        ("4.h5 --out a.png", "names one figure of thermodynamics, order, overlap, "),
        ("4.h5 none.h5", "none.h5 is not there"),
    ],
)
def test_plot_refuses(folder, capsys, monkeypatch, arguments, words):
    one_sentence(run(capsys, monkeypatch, "plot", *arguments.split()), words)
    assert not new(folder)


def test_plot_refuses_anneal_and_temper_files_together(folder, capsys, monkeypatch):
    ss.anneal(ss.Ising(ss.square(4)), [2.0, 1.0], replicas=2).save(folder / "a.h5")
    ss.anneal(ss.Ising(ss.square(6)), [2.0, 1.0], replicas=2).save(folder / "b.h5")
    for files in (("a.h5", "4.h5"), ("a.h5", "b.h5")):
        one_sentence(run(capsys, monkeypatch, "plot", *files), "a.h5 holds an anneal run", "give an anneal file alone")
