"""Which numbers of a summary come with an error, and what it says in words about samples and fields."""

from __future__ import annotations

import h5py
import numpy as np
import pytest
from harness import run
from made_up import LADDER, tempered

import spinsim as ss
from spinsim.analysis.reweighted import reweighted
from spinsim.analysis.runs import lowest
from spinsim.analysis.sizes import compare_sizes
from spinsim.analysis.summary import summarize
from spinsim.analysis.tables import summary_columns

GLASS = {"samples": 20, "seed": 1}


def stuck(result: ss.TemperResult, samples: int) -> ss.TemperResult:
    """The same, but nothing moves in the first samples."""
    for series in (result.energy, result.magnetization, result.overlap):
        series[:, :samples] = series[0, :samples]
    return result


def test_one_sample_that_does_not_move_hides_no_error() -> None:
    found = summarize(stuck(tempered(ss.EdwardsAnderson(ss.cubic(4), **GLASS)), 1))
    for name, estimate in found.estimates.items():
        assert estimate.trusted.all(), name
    np.testing.assert_allclose(found.long_enough["energy"], 0.95)
    assert found.notes[0].startswith(
        "1 of 20 samples ran too short for an error of their own (energy at T = 1.8), which takes 64 autocorrelation "
        "times, 192 times of the walk along the ladder and 5 rare events. The errors here come from the scatter"
    )


def test_errors_over_samples_hold_where_no_series_is_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """16 measurements of each of 20 samples: z-scores of 30 such runs against the mean that was put in."""
    model, scores = ss.EdwardsAnderson(ss.cubic(4), **GLASS), []
    for seed in range(30):
        found = summarize(tempered(model, steps=16, seed=seed)).estimates["energy_per_site"]
        assert found.trusted.all()
        scores.append((found.value - (LADDER - 4)) / found.error)
    assert 0.9 < np.std(scores) < 1.2


def test_a_single_sample_that_does_not_move_has_no_error() -> None:
    found = summarize(stuck(tempered(ss.Ising(ss.square(4))), 1))
    assert not any(estimate.trusted.any() for estimate in found.estimates.values())
    assert not found.notes


def test_samples_that_do_not_differ_have_no_error_and_few_are_named() -> None:
    result = tempered(ss.EdwardsAnderson(ss.cubic(4), samples=5, seed=1))
    result.energy[:] = -1.75 * 64
    found = summarize(result)
    assert not found.estimates["energy_per_site"].trusted.any()
    assert found.estimates["abs_magnetization"].trusted.all()
    assert found.notes[0].startswith("Errors over 5 samples are uncertain by 35%")


def in_field(copies: int, side: int = 4, glass: bool = True) -> ss.TemperResult:
    """A short run in a field."""
    signs = np.random.default_rng(side).choice([-1, 1], (2, 2 * side**2)) if glass else 1.0
    model = ss.Ising(ss.square(side), signs, 0.5)
    return ss.temper(model, [1.5, 2.0, 2.5, 3.0], sweeps=200, thermalize=20, replicas=copies)


def test_what_a_run_in_a_field_cannot_have_is_left_out_and_said() -> None:
    two, four = summarize(in_field(2)), summarize(in_field(4))
    for found in (two, four):
        of_m_or_q = set(found.estimates) - {"energy_binder_cumulant"}
        assert not {name for name in of_m_or_q if "binder" in name or "length" in name or "abs_" in name[10:]}
        assert any("Binder cumulants" in note for note in found.notes)
        assert any("The correlation length is left out" in note for note in found.notes)
    assert "spin_glass_susceptibility" not in two.estimates
    assert any("run with 4 replicas" in note for note in two.notes)
    assert "spin_glass_susceptibility" in four.estimates
    assert not any("--replicas" in note for note in four.notes)
    uniform = summarize(in_field(2, glass=False))
    assert "correlation_length_over_L" in uniform.estimates
    assert not any("The correlation length" in note for note in uniform.notes)


def test_sizes_in_a_field_are_compared_by_connected_curves_alone() -> None:
    ferromagnets = [in_field(2, side, glass=False) for side in (4, 6)]
    assert [found.name for found in compare_sizes(ferromagnets)] == ["correlation_length_over_L"]
    with pytest.raises(ss.InputError, match="in a field") as refused:
        compare_sizes([in_field(4, side) for side in (4, 6)])
    assert "connected" in str(refused.value)


def test_attributes_state_the_formula(tmp_path, capsys, monkeypatch) -> None:
    file = in_field(4).save(tmp_path / "run.h5")
    assert run(capsys, monkeypatch, "analyze", file).status == 0
    with h5py.File(file) as opened:
        group = opened["summary"]
        assert group["susceptibility"].attrs["long_name"] == "connected susceptibility N [<m^2> - <m>^2] / T"
        assert np.isfinite(group["susceptibility"]).all()


@pytest.mark.parametrize(("samples", "known"), [(1, True), (2, False), (3, False), (4, True)])
def test_two_and_three_samples_have_no_errors(samples: int, known: bool) -> None:
    model = ss.EdwardsAnderson(ss.cubic(4), samples=samples, seed=1)
    result = tempered(model)
    for found in (summarize(result), reweighted(result, [2.0])):
        assert found.estimates["energy_per_site"].trusted.all() == known
        assert found.estimates["overlap_binder_cumulant"].trusted.all() == known
        assert any(note.startswith(f"{samples} samples have no errors") for note in found.notes) == (not known)
    columns = summary_columns(summarize(result))
    assert np.isnan(columns["energy_per_site_error"]).all() == (not known)
    energy = -64.0 - np.arange(samples)[:, None]
    assert np.isfinite(lowest(model, energy).error) == (samples > 3)
