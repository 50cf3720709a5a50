"""``spinsim plot`` of annealing runs, and how figures are saved."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from drawn import RING, anneal

import spinsim as ss
from spinsim import cli
from spinsim.analysis.figures import FORMATS, save_figure
from spinsim.cli.plot import _stem
from spinsim.jobs.anneal.figures import cut_figure, landscape_figure
from spinsim.jobs.anneal.result import AnnealResult, read


@pytest.fixture(scope="module")
def glass() -> AnnealResult:
    return anneal(ss.EdwardsAnderson(ss.square(8), seed=3))


@pytest.fixture(scope="module")
def ring() -> AnnealResult:
    """A MaxCut run, whose cut is drawn in one panel with a legend: several panels take several times as long."""
    return anneal(ss.Ising(RING, -1.0, name="ring", maxcut_weight=12.0))


def test_formats(ring, tmp_path):
    figure = cut_figure(ring)
    for name in ("figure.png", "figure.PDF", "figure.svg"):
        save_figure(figure, tmp_path / "new" / name)
    png, pdf, svg = ((tmp_path / "new" / name).read_bytes() for name in ("figure.png", "figure.PDF", "figure.svg"))
    assert [png[:4], pdf[:5], pdf.rstrip()[-5:], svg[:5]] == [b"\x89PNG", b"%PDF-", b"%%EOF", b"<?xml"]
    assert int.from_bytes(png[16:20], "big") == 1020  # 3.4 inches at 300 dpi
    assert b"/FontFile2" in pdf  # TrueType
    assert not [word for word in (b"/Type3", b"CreationDate") if word in pdf]
    assert not [word for word in (b"dc:date", b"Matplotlib v") if word in svg]
    caption = (tmp_path / "new" / "figure.txt").read_text()
    assert " ".join(caption.split()) == f"Caption: {figure.caption}"
    assert all(len(line) <= 100 for line in caption.splitlines())


def test_a_landscape_has_the_energies_of_all_replicas(glass):
    figure = landscape_figure(glass)
    (ax,), mesh = figure.axes, figure.axes[0].collections[0]
    energy = glass.energy[:, 0] / 64
    counts = np.array(mesh.get_array()).reshape(-1, len(energy))
    assert counts.min() == 0
    np.testing.assert_array_equal(counts.max(axis=0), 1)
    np.testing.assert_allclose(ax.lines[0].get_ydata(), energy.mean(axis=1))
    np.testing.assert_allclose(ax.lines[1].get_ydata(), energy.min(axis=1))
    edges = np.array(mesh.get_coordinates())[:, 0, 1]
    assert edges[0] < energy.min()
    assert edges[-1] > energy.max()
    with pytest.raises(ss.InputError, match="sample 1 is not in the result: give a number from 0 to 0"):
        landscape_figure(glass, 1)
    with pytest.raises(ss.InputError, match="has one replica, whose energies are no distribution"):
        landscape_figure(replace(glass, energy=glass.energy[..., :1]))
    loop = ss.anneal(ss.Ising(RING), temperatures=[1.0], field=[1.0, -1.0, 1.0], replicas=4)
    assert landscape_figure(loop).axes[0].get_xlabel() == "step number"


def test_equal_figures_have_equal_bytes(ring, tmp_path):
    for kind in FORMATS:
        for name in ("a", "b"):
            save_figure(cut_figure(ring, style="double"), tmp_path / f"{name}.{kind}")
        assert (tmp_path / f"a.{kind}").read_bytes() == (tmp_path / f"b.{kind}").read_bytes()


def test_nobodys_notes_are_taken_for_a_caption(ring, tmp_path):
    (tmp_path / "a.txt").write_text("Notes of three years\n")
    for overwrite in (False, True):
        with pytest.raises(ss.InputError, match=r"a\.txt exists and is no caption of a figure"):
            save_figure(cut_figure(ring), tmp_path / "a.pdf", overwrite)
    assert names(tmp_path) == {"a.txt"}


def run(*arguments: object) -> int:
    """Exit status of ``spinsim plot``."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["spinsim", "plot", *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            cli.main()
    return int(stop.value.code)


@pytest.fixture
def file(glass, tmp_path) -> Path:
    return glass.save(tmp_path / "run.h5")


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
    assert names(file.parent) == {"run.h5", "run-thermodynamics.png", "run-thermodynamics.txt", "c.png", "c.txt"}
    assert file.with_name("c.png").read_bytes().startswith(b"\x89PNG")


def test_plot_leaves_the_configuration_of_a_graph_out(tmp_path):
    assert run(anneal(ss.Ising(RING)).save(tmp_path / "g.h5")) == 0
    assert names(tmp_path) == {"g.h5", "g-thermodynamics.pdf", "g-thermodynamics.txt"}


def test_plot_says_that_a_state_has_one_colour(tmp_path, capsys):
    file = anneal(ss.Ising(ss.square(4))).save(tmp_path / "f.h5")
    assert run(file) == 0
    assert names(tmp_path) == {"f.h5", "f-thermodynamics.pdf", "f-thermodynamics.txt"}
    assert "No figure of the configuration: all spins are" in capsys.readouterr().err
    assert run(file, "--what", "configuration") == 2
    assert "there is no picture to draw" in capsys.readouterr().err


def test_plot_of_a_maxcut_run(tmp_path):
    (tmp_path / "ring.txt").write_text("4 4\n1 2 1\n2 3 1\n3 4 1\n4 1 1\n")
    anneal(ss.read_instance(tmp_path / "ring.txt")).save(tmp_path / "g.h5")
    assert run(tmp_path / "g.h5", "--format", "svg", "--style", "double") == 0
    assert {"g-thermodynamics.svg", "g-cut.svg", "g-cut.txt"} < names(tmp_path)


def test_plot_of_a_killed_run(glass, tmp_path, capsys):
    killed = read(glass.record.replaced({"best/energy": np.full_like(glass.best_energy, np.nan)}), glass.model)
    file = killed.save(tmp_path / "killed.h5")
    assert run(file) == 0
    assert names(tmp_path) == {"killed.h5", "killed-thermodynamics.pdf", "killed-thermodynamics.txt"}
    assert run(file, "--what", "configuration") == 2
    assert "no lowest state yet" in capsys.readouterr().err


@pytest.mark.parametrize("out", ["new/deep/", "there"])
def test_plot_into_a_folder(file, monkeypatch, out):
    monkeypatch.chdir(file.parent)
    Path("there").mkdir()
    assert run("run.h5", "--what", "thermodynamics", "--out", out) == 0
    assert names(Path(out)) == {"run-thermodynamics.pdf", "run-thermodynamics.txt"}


def test_names_of_figures_follow_from_all_files():
    """No two lists of files have one name, as the second could not be drawn then."""
    lists = [["a/L4.h5"], ["a/L4.h5", "a/L6.h5"], ["a/L4.h5", "b/L6.h5"], ["a/L4.h5", "b/L4.h5"], ["a/L4-L6.h5"]]
    lists += [["a/x.h5", *(f"a/{k:040d}.h5" for k in range(last))] for last in (4, 5)]
    stems = [_stem([Path(file) for file in files]) for files in lists]
    assert stems[:3] == ["L4", "L4+L6", "L4+b-L6"]
    assert len(set(stems)) == len(lists)
    assert max(map(len, stems)) < 160


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ["--what", "everything"],
            "run.h5 holds an anneal run and has no figure 'everything': choose all, thermodynamics or conf",
        ),
        (["--out", "a.png"], "names one figure of thermodynamics, configuration: add --what"),
        (["--what", "thermodynamics", "--out", "a.gif"], "its suffix must be .pdf, .png or .svg"),
        (["--what", "thermodynamics", "--out", "a"], "its suffix must be .pdf, .png or .svg"),
        (["--what", "thermodynamics", "--out", "a.png", "--format", "pdf"], "disagree"),
        (["--what", "thermodynamics", "--out", "run.h5"], "its suffix must be"),
        (["--what", "thermodynamics", "--out", "run.h5/a.png"], "cannot be written"),
        (["--format", "gif"], "its suffix must be .pdf, .png or .svg"),
        (["--style", "wide"], "style 'wide' is unknown: choose single or double"),
        (["--what", "cut"], "is not a MaxCut instance"),
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
    def interrupt(updates: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ss.anneal(ss.Ising(ss.square(4)), [2.0, 1.0], 1, 2, out=tmp_path / "new.h5", on_updates=interrupt)
    assert run(tmp_path / "new.h5") == 2
    assert "no finished step" in capsys.readouterr().err
    assert names(tmp_path) == {"new.h5"}


def test_figures_need_no_pyplot():
    code = "import sys, spinsim.analysis.figures; sys.exit('matplotlib.pyplot' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
