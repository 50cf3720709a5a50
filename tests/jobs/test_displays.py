"""Displays of results and models: ``repr`` of a line or two, tables and figures in notebooks."""

from __future__ import annotations

import base64
import re
import struct
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import spinsim as ss
from spinsim import result as results
from spinsim.jobs import job_of

GLASS = ss.EdwardsAnderson(ss.cubic(4), samples=4, seed=7)
CUT = ss.Ising(ss.Graph(3, [(0, 1), (1, 2), (2, 0)]), -1.0, name="triangle", maxcut_weight=3.0)


@pytest.fixture(scope="module")
def runs() -> dict[str, Any]:
    given = {"device": "cpu", "seed": 3}
    ladder = {"sweeps": 400, "thermalize": 100, **given}
    return {
        "anneal": ss.anneal(GLASS, t_start=3.0, t_stop=0.5, steps=4, sweeps=20, replicas=8, **given),
        "temper": ss.temper(GLASS, [1.0, 1.5, 2.0], **ladder),
        "quantum": ss.quantum(ss.Ising(ss.chain(8)), [0.2, 0.3], 8, **ladder),
        "transfer": ss.transfer(ss.Ising(ss.chain(6)), temperature=[2.0, 2.5], **given),
        "evolve": ss.evolve(GLASS, ["T=2 for 8", "T=1 for 4"], waiting=[2], replicas=8, **given),
    }


MET = r"best energy per site -1\.\d+\(\d+\) on average over samples, met by \d( to \d)?"
LENGTH = r"40 measurements, 400 sweeps after 100 to thermalize, seed 3"
GLASSY = r"cubic-4x4x4-pm-j, 64 sites, 4 samples"
TOLD = {
    "anneal": rf"AnnealResult\({GLASSY}, 8 replicas, 4 steps of 20 sweeps from T = 3 to 0\.5, seed 3, disorder seed 7, "
    rf"finished:\n  {MET} of 8 replicas\)",
    "temper": rf"TemperResult\({GLASSY}, 2 copies, 3 temperatures from 1 to 2, {LENGTH}, disorder seed 7, finished:\n"
    rf"  verdict: [a-z ]+; {MET} of 6 replicas\)",
    "quantum": r"QuantumResult\(chain-8-8-slices, 64 sites, 1 sample, 8 slices, 2 copies, 2 k from 0\.2 to 0\.3, "
    rf"{LENGTH}, finished:\n  verdict: [a-z ]+\)",
    "transfer": r"TransferResult\(chain-6, 6 sites, 1 sample, 2 couplings from k = 0\.4 to 0\.5, even and odd, 2 "
    r"levels, 2 of 2 rows, seed 3, finished:\n  longest correlation length \d+\.\d+ layers at k = 0\.5; all levels "
    r"converged\)",
    "evolve": rf"EvolveResult\({GLASSY}, 8 replicas, T=2 for 8; T=1 for 4, \d measurements, seed 3, disorder seed 7, "
    r"finished\)",
}


@pytest.mark.parametrize("job", TOLD)
def test_results_tell_their_size_and_what_they_found(job: str, runs: dict[str, Any]) -> None:
    assert re.fullmatch(TOLD[job], repr(runs[job]))


@pytest.mark.parametrize("job", TOLD)
def test_notebooks_show_a_table_and_the_first_figure(
    job: str, runs: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shown = runs[job]._repr_html_()
    for name, words in runs[job]._summary.items():
        assert f"<tr><th>{name}</th><td>{words}</td></tr>" in shown
    width, caption, data = re.fullmatch(
        r'<table>.*</table><img width="(\d+)" alt="([^"]+)" src="data:image/png;base64,([^"]+)">', shown
    ).groups()  # type: ignore[union-attr]
    picture = base64.b64decode(data)
    assert picture.startswith(b"\x89PNG")
    assert struct.unpack(">I", picture[16:20])[0] == pytest.approx(2 * int(width), abs=2)
    assert caption
    assert not list(tmp_path.iterdir())


def test_single_problems_tell_their_best_value_and_how_often_it_was_met() -> None:
    found = ss.anneal(CUT, steps=3, sweeps=5, replicas=4, device="cpu")
    assert repr(CUT) == "Ising(triangle, 3 sites, 3 bonds, 1 sample, MaxCut)"
    assert repr(found).endswith("finished:\n  best cut 2, met by 4 of 4 replicas)")
    search = ss.anneal(CUT, steps=3, sweeps=5, replicas=4, target=2.0, device="cpu")
    assert re.search(
        r"finished:\n  target 2 met after 1 anneal, .* s; best cut 2, met by \d of 4 replicas", repr(search)
    )
    assert re.fullmatch(r"Anneals\(1 anneal, .* s, 1 of 1 target met\)", repr(search.anneals))
    problem = ss.Ising.from_qubo({("a", "a"): -1.0}, offset=5.0)
    assert "best energy 4, met by 2 of 2 replicas" in repr(
        ss.anneal(problem, steps=3, sweeps=5, replicas=2, device="cpu")
    )


def test_short_texts_of_models_and_of_parts_of_results(runs: dict[str, Any]) -> None:
    model = ss.Ising(ss.square(4), field=0.5, name="<mine>")
    result = ss.anneal(model, [2.0, 1.0], sweeps=1, replicas=2)
    assert repr(model) == "Ising(<mine>, 16 sites, 32 bonds, 1 sample, field 0.5)"
    assert "&lt;mine&gt;" in result._repr_html_()
    assert "<td>32 bonds" not in model._repr_html_()
    assert repr(GLASS) == "Ising(cubic-4x4x4-pm-j, 64 sites, 192 bonds, 4 samples, disorder seed 7)"
    assert repr(ss.triangular(4)) == "Lattice(triangular, 4 x 4, periodic, 16 sites, 48 bonds)"
    assert repr(ss.Graph(4, [(0, 1)], lattice=ss.chain(4))) == "Graph(4 sites, 1 bond, on the sites of chain-4)"
    assert [repr(move()) for move in (ss.Houdayer, ss.Wolff)] == ["Houdayer()", "Wolff()"]
    assert len(repr(runs["temper"].record)) + len(repr(runs["temper"].reduced)) < 200
    saved = ss.anneal(GLASS, steps=4, sweeps=1, replicas=2, save_configurations=2, device="cpu").configurations
    assert repr(saved) == "Configurations(16 configurations, 64 sites, 2 steps x 4 samples x 2 replicas)"


def test_a_large_run_is_shown_without_what_takes_long(runs: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    large = ss.temper(GLASS, [1.0, 1.5], sweeps=400, thermalize=0, device="cpu")
    monkeypatch.setattr(results, "_LARGE", 10)
    monkeypatch.setattr(type(large), "verdict", property(lambda self: pytest.fail("an analysis")))
    shown = large._repr_html_()
    assert shown.endswith("<p>The run is large: <code>result.plot()</code> draws its figures.</p>")
    assert "verdict" not in shown + repr(large)


def test_a_figure_that_cannot_be_drawn_is_left_out(runs: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*given: Any) -> Any:
        raise RuntimeError("no figure")

    monkeypatch.setattr(type(job_of("anneal")), "draw", fails)
    assert runs["anneal"]._repr_html_().endswith("</table>")


def test_runs_that_have_not_ended_are_shown(tmp_path: Path) -> None:
    def stop(done: int) -> None:
        raise KeyboardInterrupt

    path = tmp_path / "a.h5"
    with pytest.raises(KeyboardInterrupt):
        ss.anneal(GLASS, steps=200, sweeps=10, replicas=4, out=path, device="cpu", on_updates=stop)
    begun = ss.load(path)
    assert "not finished" in repr(begun)
    assert "<td>not finished</td>" in begun._repr_html_()
    one = np.ones((1, 4, 2))
    made = ss.AnnealResult(
        GLASS, np.ones(1), one, one.astype(np.int64), np.full((4, 2), np.inf), np.ones((4, 64), np.int8)
    )
    assert repr(made).endswith("2 replicas, 1 step from T = 1 to 1, not finished)")
    assert "</table>" in made._repr_html_()


def test_a_display_takes_well_under_a_second_of_a_processor() -> None:
    many = ss.temper(ss.EdwardsAnderson(ss.square(4), samples=256), np.linspace(1, 2, 16), 320, 0, device="cpu")
    many._repr_html_()  # loads Matplotlib
    del vars(many)["verdict"]
    began = time.process_time()
    assert "img" in many._repr_html_()
    assert time.process_time() - began < 3  # half a second where nothing else runs
