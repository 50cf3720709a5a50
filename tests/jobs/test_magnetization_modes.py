"""Fourier modes of the magnetisation: who measures them by default, and files in which they are or are not."""

from __future__ import annotations

from collections.abc import Callable

import h5py
import numpy as np
import pytest
from harness import run

import spinsim as ss
from spinsim.analysis.summary import summarize

SHORT = {"temperatures": [1.0, 2.0], "sweeps": 200, "thermalize": 0, "threads": 1, "device": "cpu"}
COMMAND = (
    "temper --lattice square --size 4 --couplings pm-j --temperatures 1,2 --sweeps 200 --thermalize 0 --threads 1 "
    "--device cpu"
)
GLASS = ss.EdwardsAnderson(ss.square(4), samples=2)


@pytest.mark.parametrize(
    ("make", "measured"),
    [
        (lambda: GLASS, False),
        (lambda: ss.EdwardsAnderson(ss.square(4), couplings="gaussian"), False),
        (lambda: ss.EdwardsAnderson(ss.square(4), dilution=0.2), False),
        (lambda: ss.EdwardsAnderson(ss.square(4), bond_fraction=0.8), True),
        (lambda: ss.EdwardsAnderson(ss.square(4), field=0.3), True),
        (lambda: ss.EdwardsAnderson(ss.square(4), random_field=0.5), True),
        (lambda: ss.EdwardsAnderson(ss.square(4), bond_fraction=1, dilution=0.2, samples=2), True),
        (lambda: ss.Ising(ss.square(4)), True),
        (lambda: ss.Ising(ss.square(4), -1.0), True),
        (lambda: ss.Ising(ss.square(4), GLASS.couplings[0]), True),  # of which nobody knows how it was made
    ],
)
def test_glasses_without_a_net_coupling_have_none_by_default(make: Callable[[], ss.Ising], measured: bool) -> None:
    result = ss.temper(make(), **SHORT)
    assert result.has_magnetization_modes == measured
    assert result.overlap_mode.shape[-1] == 2
    assert ("correlation_length_over_L" in summarize(result).estimates) <= measured


def test_all_else_stays_to_the_bit(tmp_path) -> None:
    whole, part = (ss.temper(GLASS, magnetization_modes=switch, **SHORT) for switch in (True, False))
    for name in ("energy", "magnetization", "overlap", "overlap_mode", "link_overlap", "permutation"):
        np.testing.assert_array_equal(getattr(whole, name), getattr(part, name))
    again = ss.load(part.save(tmp_path / "saved.h5"))
    assert again.magnetization_mode.shape == part.magnetization_mode.shape == (20, 2, 2, 2, 0)
    assert "magnetization_mode" not in again.dataset()
    estimates = summarize(whole).estimates
    assert set(estimates) - set(summarize(part).estimates) == {"correlation_length_over_L"}


def test_their_lack_is_told_where_they_are_more_than_noise() -> None:
    for model, told in ((GLASS, 0), (ss.Ising(ss.square(4)), 1)):
        whole, part = (ss.temper(model, magnetization_modes=switch, **SHORT) for switch in (True, False))
        assert len([note for note in summarize(part).notes if "magnetization_modes=True" in note]) == told
        assert not [note for note in summarize(whole).notes if "magnetization_modes" in note]


def test_runs_that_measure_none_have_the_identity_that_they_had() -> None:
    """Searches and runs without correlations have no modes whatever the couplings, and stay what they were."""
    found = ss.temper(GLASS, correlations=False, **SHORT)
    named = ss.temper(GLASS, correlations=False, magnetization_modes=True, **SHORT)
    assert found.attributes["config_sha256"] == named.attributes["config_sha256"]
    assert not found.has_magnetization_modes


@pytest.mark.parametrize("replicas", [1, 2])
def test_a_file_without_them_is_analysed_resumed_and_made_longer(do, capsys, monkeypatch, replicas: int) -> None:
    path = do(f"{COMMAND} --replicas {replicas}")
    outcome = run(capsys, monkeypatch, "analyze", str(path))
    assert outcome.status == 0
    assert "--magnetization-modes" not in outcome.out
    do(f"resume {path} --sweeps 400")
    do(f"check {path}")
    with h5py.File(path) as file:
        assert "magnetization_mode" not in file["measurements"]
        assert ("overlap_mode" in file["measurements"]) == (replicas == 2)
        assert "summary" not in file
    assert len(ss.load(path).energy) == 40


def test_saved_configurations_are_counted_again_without_them() -> None:
    result = ss.temper(GLASS, save_configurations=5, **SHORT)
    again = ss.recount(result, device="cpu", threads=1)
    assert not again.has_magnetization_modes
    np.testing.assert_array_equal(again.overlap_mode, result.overlap_mode[4::5])


def test_quantum_runs_can_leave_them_out(tmp_path) -> None:
    """They have them by default: along time they tell how long the spins of a glass remember."""
    short = {"k": [0.3, 0.4], "slices": 4, "sweeps": 200, "thermalize": 0, "threads": 1, "device": "cpu"}
    whole, part = (ss.quantum(GLASS, **short, **switch) for switch in ({}, {"magnetization_modes": False}))
    assert whole.has_magnetization_modes
    assert not part.has_magnetization_modes
    for name in ("action", "overlap_mode", "slice_magnetization_fourth", "correlation_in_time", "link_overlap"):
        np.testing.assert_array_equal(getattr(whole, name), getattr(part, name))
    assert ss.load(part.save(tmp_path / "saved.h5")).magnetization_mode.shape[-1] == 0
    left_out = set(summarize(whole).estimates) - set(summarize(part).estimates)
    assert left_out == {"correlation_length_over_L", "correlation_time_over_slices"}
