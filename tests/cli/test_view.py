"""``spinsim view``: pictures and animations of saved configurations."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image

import spinsim as ss
from spinsim.analysis.figures.configurations import Panels
from spinsim.cli.plot import view
from spinsim.errors import InputError

MODELS = {
    "chain": ss.Ising(ss.chain(12)),
    "square": ss.Ising(ss.square(4, 6)),
    "honeycomb": ss.Ising(ss.honeycomb(3)),
    "cubic": ss.EdwardsAnderson(ss.cubic(3, 4, 6), samples=2, seed=1),
}


def shown(figure: Figure, panel: int) -> np.ndarray:
    return np.asarray(figure.axes[panel].images[0].get_array())


@pytest.mark.parametrize("name", MODELS)
def test_a_panel_for_each_temperature_and_layer(name: str) -> None:
    run = ss.temper(MODELS[name], "2:3:3", sweeps=40, save_configurations=2)
    saved, model = ss.configurations(run), MODELS[name]
    figure = Panels(saved, model.lattice, sample=model.samples - 1, copy=1).draw(-1)
    assert len(figure.axes) == (12 if name == "cubic" else 3)
    spins = saved.row(-1)[-1, 1]  # (temperatures, sites)
    if name == "cubic":
        np.testing.assert_array_equal(shown(figure, 5), spins[1].reshape(6, 4, 3)[2])  # layers 0, 2, 3 and 5
    elif name == "honeycomb":
        up = figure.axes[2].collections[0].get_facecolors()[:, 0] > 0.5  # of orange, not of blue
        np.testing.assert_array_equal(up, spins[2] > 0)
    else:
        np.testing.assert_array_equal(shown(figure, 1).reshape(-1), spins[1])


def test_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "run.h5"
    ss.anneal(MODELS["square"], [3.0, 2.0, 1.0], sweeps=2, replicas=3, save_configurations=1, out=path)
    view(path)
    with Image.open(tmp_path / "run-spins.png") as picture:
        assert picture.width > 500
    view(path, out=tmp_path / "run.gif")
    with Image.open(tmp_path / "run.gif") as frames:
        assert frames.n_frames == 3
    assert capsys.readouterr().out.split() == [str(tmp_path / "run-spins.png"), str(tmp_path / "run.gif")]
    for options, words in (
        ({"row": 3}, "row=3 is not in the run: give a number from 0 to 2"),
        ({"copy": 1}, "copy=1 is for runs of temper and quantum"),
        ({"out": tmp_path / "a.bmp"}, "its suffix must be"),
    ):
        with pytest.raises(InputError, match=words):
            view(path, **options)  # type: ignore[arg-type]


@pytest.mark.skipif(os.name != "posix", reason="a script stands in for ffmpeg")
def test_films(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A script in the place of ffmpeg says how many bytes of frames it was given."""
    path, film, ffmpeg = tmp_path / "run.h5", tmp_path / "run.mp4", tmp_path / "ffmpeg"
    ss.anneal(MODELS["square"], [3.0, 2.0, 1.0], sweeps=2, replicas=3, save_configurations=1, out=path)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InputError, match=r"made by ffmpeg, which is not installed: install it, or give a \.gif"):
        view(path, out=film)
    ffmpeg.write_text("#!/bin/sh\nexit 1\n")
    ffmpeg.chmod(0o755)
    with pytest.raises(InputError, match=r"ffmpeg has failed to make the film .*: give a \.gif"):
        view(path, out=film)
    assert not film.exists()
    ffmpeg.write_text(
        '#!/bin/sh\nfor last; do :; done\n(printf "    ftypisom"; /usr/bin/env PATH=/bin:/usr/bin wc -c) > "$last"\n'
    )
    view(path, out=film)
    assert int(film.read_bytes()[12:]) % (3 * 4) == 0  # three frames of four bytes a pixel
    film.write_bytes(b"    ftypother")
    with pytest.raises(InputError, match="exists already"):
        view(path, out=film)


def test_what_has_no_picture() -> None:
    graph = ss.Ising(ss.Graph(3, [(0, 1), (1, 2)]))
    run = ss.temper(graph, "1:2:3", sweeps=20, save_configurations=1)
    with pytest.raises(InputError, match="a graph without a lattice"):
        Panels(ss.configurations(run), graph.lattice)
