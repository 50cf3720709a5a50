"""Exact curves of the square ferromagnet, the figures, and ``spinsim plot``."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.figure import Figure

import spinsim as ss
from spinsim import cli
from spinsim.analysis import onsager
from spinsim.analysis.figures import configuration_figure, save_figure, thermodynamics_figure
from spinsim.analysis.thermodynamics import thermodynamics
from spinsim.layout import anneal_layout
from spinsim.result import AnnealResult
from spinsim.store import create

LADDER = np.geomspace(3, 0.5, 12)
EXACT = "exact, $L = \\infty$"


def anneal(model: ss.Ising, temperatures=LADDER, replicas: int = 16) -> AnnealResult:
    return ss.anneal(model, temperatures=temperatures, replicas=replicas)


def made_up(model: ss.Ising) -> AnnealResult:
    """A result that took no simulation."""
    row, spins = np.zeros((2, 1, 2)), np.ones((1, model.sites), np.int8)
    return AnnealResult(model, np.array([2.0, 1.0]), row, row.astype(np.int64), row[0], spins)


RING = ss.Graph(12, np.stack([np.arange(12), np.roll(np.arange(12), -1)], axis=1).astype(np.int32))


@pytest.fixture(scope="module")
def ferromagnet() -> AnnealResult:
    return anneal(ss.Ising(ss.square(8)))


@pytest.fixture(scope="module")
def glass() -> AnnealResult:
    return anneal(ss.EdwardsAnderson(ss.cubic(4, 3, 2), samples=3, seed=7))


def legend(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.legends[0].get_texts()]


def drawn(figure: Figure, panel: int) -> np.ndarray:
    """The data points (x, y) of a panel."""
    return figure.axes[panel].containers[0].lines[0].get_xydata()


def test_onsager_energy_and_magnetization():
    t_c = onsager.CRITICAL_TEMPERATURE
    assert onsager.energy([t_c])[0] == pytest.approx(-np.sqrt(2), abs=1e-14)
    np.testing.assert_allclose(onsager.energy([2, 2.5]), [-1.74556457531, -1.10607920375], atol=1e-11)
    np.testing.assert_allclose(onsager.energy([1e-3, 1e4]), [-2, -2e-4], rtol=1e-6)
    assert onsager.magnetization([2])[0] == pytest.approx(0.911319378, abs=1e-9)
    np.testing.assert_array_equal(onsager.magnetization([1e-3, t_c, t_c + 1e-12, 5]), [1, 0, 0, 0])


def test_onsager_specific_heat_is_the_derivative_of_the_energy():
    temperature = np.array([0.8, 1.5, 2, 2.2, 2.26, 2.28, 2.5, 4, 10])
    step = 1e-4
    up, down = onsager.energy(temperature + step), onsager.energy(temperature - step)
    np.testing.assert_allclose(onsager.specific_heat(temperature), (up - down) / (2 * step), rtol=2e-5)


def test_onsager_specific_heat_diverges_alike_on_both_sides():
    t_c = onsager.CRITICAL_TEMPERATURE
    below, at, above = onsager.specific_heat([t_c - 1e-9, t_c, t_c + 1e-9])
    assert at == np.inf
    assert below == pytest.approx(above, rel=1e-6)


def test_onsager_refuses_bad_temperatures():
    for curve in (onsager.energy, onsager.specific_heat, onsager.magnetization):
        with pytest.raises(ss.InputError, match="temperature 0 is not allowed"):
            curve([2.0, 0.0])


def test_thermodynamics_figure(ferromagnet):
    figure = thermodynamics_figure(ferromagnet)
    units = ("energy per site $E/N$", "C/(Nk_\\mathrm{B})", "\\langle|m|\\rangle")
    assert all(unit in ax.get_ylabel() for unit, ax in zip(units, figure.axes, strict=True))
    assert figure.axes[2].get_xlabel() == "temperature $T$"
    assert legend(figure) == ["$8 \\times 8$, 16 replicas", EXACT]
    table = thermodynamics(ferromagnet)
    for panel, mean in enumerate((table.energy, table.specific_heat, table.magnetization)):
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
    assert EXACT not in legend(thermodynamics_figure(made_up(model)))


@pytest.mark.parametrize("temperature", [2.0, onsager.CRITICAL_TEMPERATURE])
@pytest.mark.parametrize("steps", [1, 5])
def test_one_temperature_is_drawn_against_the_step(tmp_path, temperature, steps):
    figure = thermodynamics_figure(anneal(ss.Ising(ss.square(8)), [temperature] * steps))
    np.testing.assert_array_equal(drawn(figure, 0)[:, 0], np.arange(steps))
    assert figure.axes[2].get_xlabel() == f"step number, all at $T = {temperature:.6g}$"
    level = next(line for line in figure.axes[0].lines if line.get_label() == EXACT)
    assert set(level.get_ydata()) == {onsager.energy([temperature])[0]}
    save_figure(figure, tmp_path / "figure.png")


def test_samples_and_graphs(glass):
    assert legend(thermodynamics_figure(glass))[0] == "$4 \\times 3 \\times 2$, 3 samples of 16 replicas"
    assert legend(thermodynamics_figure(made_up(ss.Ising(RING)))) == ["$N = 12$, 2 replicas"]


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


def test_user_settings_neither_change_nor_matter(ferromagnet, tmp_path):
    save_figure(thermodynamics_figure(ferromagnet), tmp_path / "plain.pdf")
    with mpl.rc_context({"font.size": 20, "pdf.fonttype": 3, "lines.linewidth": 7}):
        before = dict(mpl.rcParams)
        save_figure(thermodynamics_figure(ferromagnet), tmp_path / "other.pdf")
        assert dict(mpl.rcParams) == before
    assert (tmp_path / "plain.pdf").read_bytes() == (tmp_path / "other.pdf").read_bytes()


def test_configuration_shows_x_to_the_right_and_y_upwards():
    result = anneal(ss.EdwardsAnderson(ss.square(6, 4), seed=3))
    ax = configuration_figure(result).axes[0]
    picture = ax.images[0]
    spins = result.best_spins[0]
    assert picture.origin == "lower"
    assert tuple(picture.get_extent()) == (-0.5, 5.5, -0.5, 3.5)
    assert all(picture.get_array()[y, x] == spins[x + 6 * y] for x in range(6) for y in range(4))
    assert ax.get_aspect() == 1
    assert f"$E = {result.best_energy.min():.10g}$" in ax.get_title()
    assert [ax.get_xlabel(), ax.get_ylabel()] == ["$x$ (lattice units)", "$y$ (lattice units)"]


def test_configuration_of_one_sample_and_layer(glass):
    ax = configuration_figure(glass, 2).axes[0]
    np.testing.assert_array_equal(ax.images[0].get_array().ravel(), glass.best_spins[2][:12])
    layer, energy = ax.get_title().split("\n")
    assert layer == "layer $z = 0$ of $4 \\times 3 \\times 2$, sample 2"
    assert energy == f"lowest state met, $E = {glass.best_energy[2].min():.10g}$"


@pytest.mark.parametrize("shape", [(1,), (300,), (1, 7), (2, 300), (300, 2), (1024, 512), (12, 40), (12, 6, 3)])
def test_configuration_fits_its_page(tmp_path, shape):
    figure = configuration_figure(made_up(ss.Ising(ss.Lattice(shape))))
    save_figure(figure, tmp_path / "figure.png")
    box = figure.get_tightbbox()
    width, height = figure.get_size_inches()
    assert min(box.x0, box.y0, width - box.x1, height - box.y1) >= 0
    assert figure.axes[0].images[0].get_array().shape == (*shape, 1)[1::-1]


def test_configuration_refusals(glass):
    with pytest.raises(ss.InputError, match="sample -1 is not in the result: give a number from 0 to 2"):
        configuration_figure(glass, -1)
    with pytest.raises(ss.InputError, match="graph without a lattice"):
        configuration_figure(made_up(ss.Ising(RING)))


def test_png_and_pdf(ferromagnet, tmp_path):
    for name in ("figure.png", "figure.PDF"):
        save_figure(thermodynamics_figure(ferromagnet), tmp_path / "new" / name)
    png, pdf = ((tmp_path / "new" / name).read_bytes() for name in ("figure.png", "figure.PDF"))
    assert [png[:4], pdf[:5], pdf.rstrip()[-5:]] == [b"\x89PNG", b"%PDF-", b"%%EOF"]
    assert int.from_bytes(png[16:20], "big") == 1020  # 3.4 inches at 300 dpi
    assert b"/FontFile2" in pdf  # TrueType
    assert not [word for word in (b"/Type3", b"CreationDate") if word in pdf]


def run(*arguments: object) -> int:
    """Exit status of ``spinsim plot``."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["spinsim", "plot", *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            cli.main()
    return int(stop.value.code)


@pytest.fixture
def file(ferromagnet, tmp_path) -> Path:
    return ferromagnet.save(tmp_path / "run.h5")


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_plot_draws_all_beside_the_file(file, capsys):
    written = [file.with_name(f"run-{what}.pdf") for what in ("thermodynamics", "configuration")]
    written[0].write_text("%PDF-1.4 of an old figure")
    assert run(file) == 2
    assert "run-thermodynamics.pdf exists already" in capsys.readouterr().err
    assert run(file, "--overwrite") == 0
    assert capsys.readouterr().out.splitlines() == [str(path) for path in written]
    assert all(path.read_bytes().startswith(b"%PDF") for path in written)


def test_plot_one_figure(file):
    assert run(file, "--what", "thermodynamics", "--format", "png") == 0
    assert run(file, "--what", "configuration", "--out", file.with_name("c.png")) == 0
    assert names(file.parent) == {"run.h5", "run-thermodynamics.png", "c.png"}
    assert file.with_name("c.png").read_bytes().startswith(b"\x89PNG")


def test_plot_leaves_the_configuration_of_a_graph_out(tmp_path):
    assert run(anneal(ss.Ising(RING)).save(tmp_path / "g.h5")) == 0
    assert names(tmp_path) == {"g.h5", "g-thermodynamics.pdf"}


def test_plot_of_a_killed_run(ferromagnet, tmp_path, capsys):
    killed = replace(ferromagnet, best_energy=np.full_like(ferromagnet.best_energy, np.nan))
    file = killed.save(tmp_path / "killed.h5")
    assert run(file) == 0
    assert names(tmp_path) == {"killed.h5", "killed-thermodynamics.pdf"}
    assert run(file, "--what", "configuration") == 2
    assert "no lowest state yet" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--what", "everything"], "'everything' is unknown"),
        (["--out", "a.png"], "names one figure: add --what thermodynamics or --what configuration"),
        (["--what", "thermodynamics", "--out", "a.svg"], "its suffix must be .pdf or .png"),
        (["--what", "thermodynamics", "--out", "a"], "its suffix must be .pdf or .png"),
        (["--what", "thermodynamics", "--out", "a.png", "--format", "pdf"], "disagree"),
        (["--what", "thermodynamics", "--out", "run.h5"], "its suffix must be"),
        (["--what", "thermodynamics", "--out", "run.h5/a.png"], "cannot be written"),
        (["--format", "svg"], "its suffix must be .pdf or .png"),
        (["--sample", "1"], "sample 1 is not in the result: give a number from 0 to 0"),
    ],
)
def test_plot_refuses(file, monkeypatch, capsys, arguments, words):
    monkeypatch.chdir(file.parent)
    before = file.read_bytes()
    assert run("run.h5", *arguments) == 2
    message = capsys.readouterr().err
    assert message.startswith("spinsim: ")
    assert words in message
    assert message.count("\n") == 1
    assert names(file.parent) == {"run.h5"}
    assert file.read_bytes() == before


def test_plot_refuses_a_file_without_steps(tmp_path, capsys):
    create(tmp_path / "new.h5", ss.Ising(ss.square(4)), anneal_layout(1, 2), 1, {"job": "anneal"}, 2)
    assert run(tmp_path / "new.h5") == 2
    assert "no finished step" in capsys.readouterr().err
    assert names(tmp_path) == {"new.h5"}


def test_figures_need_no_pyplot():
    code = "import sys, spinsim.analysis.figures; sys.exit('matplotlib.pyplot' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
