"""``result.plot()`` draws what ``spinsim plot`` draws; results have no attribute that only raises."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_up import frozen, tempered
from matplotlib.figure import Figure

import spinsim as ss

MODEL = ss.EdwardsAnderson(ss.square(4), samples=2, seed=1)
CALLS: dict[str, dict[str, Any]] = {
    "anneal": {"temperatures": [2.0, 1.0], "sweeps": 1, "replicas": 4},
    "temper": {"temperatures": [1.0, 1.5], "sweeps": 2, "measure_every": 1, "thermalize": 0},
    "quantum": {"k": 0.3, "slices": 2, "sweeps": 2, "measure_every": 1, "thermalize": 0},
    "transfer": {"k": 0.3},
    "evolve": {"protocol": "T=1 for 4", "waiting": [2], "replicas": 4},
}


@pytest.mark.parametrize("job", CALLS)
@pytest.mark.parametrize("model", [MODEL, ss.Ising(ss.square(4))], ids=["glass", "ferromagnet"])
def test_every_attribute_is_there_or_is_missing(job: str, model: ss.Ising) -> None:
    result = getattr(ss, job)(model, threads=1, **CALLS[job])
    missing = {name for name in dir(result) if not name.startswith("_") and not hasattr(result, name)}
    several = {"best"} if model.samples > 1 else set()
    none = {"best", "solutions"}
    of_job = {"anneal": several | {"cut"}, "temper": several, "quantum": none, "transfer": none, "evolve": several}
    assert of_job[job] <= missing
    assert ("best" in missing) == ("best" in of_job[job])
    for name in missing:
        with pytest.raises(ss.InputError):
            getattr(result, name)


def test_figures_are_returned_or_written(tmp_path: Path) -> None:
    result = frozen(tempered(MODEL))
    figures = result.plot(["exchange"])
    assert isinstance(figures["exchange"], Figure)
    paths = result.plot("exchange", tmp_path / "figures", format="png")
    assert list(paths) == ["exchange"]
    assert paths["exchange"].name.startswith(f"temper-{MODEL.name}-")
    assert paths["exchange"].read_bytes().startswith(b"\x89PNG")
    assert paths["exchange"].with_suffix(".txt").exists()
    with pytest.raises(ss.InputError, match="exists"):
        result.plot("exchange", tmp_path / "figures", format="png", style="double")
    result.plot("exchange", tmp_path / "figures", format="png", style="double", overwrite=True)


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"names": "lengths"}, "a temper run has no figure 'lengths': choose thermodynamics"),
        ({"names": "exchange", "columns": "energy_per_site"}, "columns is for the thermodynamics"),
        ({"style": "wide"}, "style 'wide' is unknown: choose single or double"),
        (
            {"names": "exchange", "folder": "figures", "format": "gif"},
            "format 'gif' is unknown: choose pdf, png or svg",
        ),
    ],
)
def test_figures_that_a_run_does_not_have_are_refused(
    how: dict[str, Any], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ss.InputError) as told:
        frozen(tempered(MODEL)).plot(**how)
    assert words in str(told.value)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["crossings", "thermodynamics"])
def test_a_transition_is_marked_where_it_is_exact_or_given(name: str) -> None:
    ladder = [2.1, 2.2, 2.3, 2.4]
    squares = [ss.temper(ss.Ising(ss.square(side)), ladder, sweeps=200, replicas=4) for side in (4, 6)]
    for mark, place in ((None, ss.onsager.CRITICAL_TEMPERATURE), (2.25, 2.25)):
        figure = ss.plot(squares, name, **({} if mark is None else {"mark": mark}))[name]
        label = "exact $T_c$" if mark is None else "$2.25$"
        for ax in figure.axes:
            (line,) = [line for line in ax.lines if line.get_label() == label]
            assert np.array_equal(line.get_xdata(), [place, place])
    cubes = [ss.temper(ss.Ising(ss.cubic(side)), ladder, sweeps=200, replicas=4) for side in (2, 4)]
    assert not any(line.get_linestyle() == ":" for ax in ss.plot(cubes, name)[name].axes for line in ax.lines)


def test_crossings_of_chosen_columns_alone() -> None:
    runs = [ss.temper(ss.Ising(ss.square(side)), [2.1, 2.2, 2.3, 2.4], sweeps=200, replicas=4) for side in (4, 6)]
    figure = ss.plot(runs, "crossings", columns="binder_cumulant")["crossings"]
    assert [ax.get_ylabel() for ax in figure.axes] == ["Binder cumulant $U_m$"]
    assert "square-4x4, $4 \\times 4$, 4 copies; square-6x6, $6 \\times 6$, 4 copies" in figure.caption
    with pytest.raises(ss.InputError, match="column 'energy' is none of this run's"):
        ss.plot(runs, "crossings", columns="energy")


def test_an_option_that_no_figure_takes_is_refused() -> None:
    with pytest.raises(TypeError, match="no option 'column': did you mean 'columns'"):
        frozen(tempered(MODEL)).plot(column="energy_per_site")
