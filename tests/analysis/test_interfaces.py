"""Interface free energies against enumeration, and chaos against enumeration of overlaps."""

from __future__ import annotations

import numpy as np
import pytest
from enumeration import Thermal
from harness import run

import spinsim as ss
from spinsim.errors import InputError

LADDER = [1.2, 1.6, 2.0, 2.5, 3.2, 4.5, 7.0, 12.0]
SHORT = {"thermalize": 100, "measure_every": 2, "device": "cpu", "threads": 1}


def exact(model, sample=0):
    """Free energies of one sample by enumeration, (temperatures,)."""
    states = 2 * (np.arange(2**model.sites)[:, None] >> np.arange(model.sites) & 1).astype(np.int8) - 1
    rows = model.couplings[sample % len(model.couplings)]
    energy = -((states[:, model.graph.edges[:, 0]] * states[:, model.graph.edges[:, 1]]) @ rows.astype(float))
    ladder = np.array(LADDER)
    return np.array([energy.min() - t * np.log(np.exp(-(energy - energy.min()) / t).sum()) for t in ladder])


def test_ferromagnet_against_enumeration() -> None:
    model = ss.Ising(ss.square(4, 3))
    for axis in (0, 1):
        other = ss.antiperiodic(model, axis)
        runs = [ss.temper(one, LADDER, 8000, seed=k, **SHORT) for k, one in enumerate((model, other))]
        found = ss.interface(*runs)
        difference = exact(other) - exact(model)
        assert np.all(np.abs(found["mean"].value - difference) <= 4 * found["mean"].error), (found["mean"], difference)
        assert found["mean"].error.max() < 0.1


def test_samples_of_a_glass_against_enumeration() -> None:
    model = ss.EdwardsAnderson(ss.square(3), samples=4, seed=2)
    other = ss.antiperiodic(model, 1)
    runs = [ss.temper(one, LADDER, 4000, seed=k, **SHORT) for k, one in enumerate((model, other))]
    found = ss.interface(*runs)
    for k in range(2):
        alone = [ss.temper(one.of_samples(k, k + 1), LADDER, 4000, seed=9, **SHORT) for one in (model, other)]
        error = ss.interface(*alone)["mean"].error  # of a run as long as that of all samples
        difference = exact(other, k) - exact(model, k)
        assert np.all(np.abs(found.arrays["difference"][k] - difference) <= 4 * error), (difference, error)
    assert np.allclose(found["mean"].value, found.arrays["difference"].mean(axis=0))
    assert np.allclose(found["mean"].error, found.arrays["difference"].std(axis=0, ddof=1) / 2)
    assert np.allclose(found["spread"].value ** 2, (found.arrays["difference"] ** 2).mean(axis=0))


@pytest.mark.slow
def test_errors_of_one_sample_cover_interfaces() -> None:
    model = ss.Ising(ss.square(3))
    other, scores = ss.antiperiodic(model), []
    difference = exact(other) - exact(model)
    for seed in range(60):
        runs = [ss.temper(one, LADDER, 4000, seed=2 * seed + k, **SHORT) for k, one in enumerate((model, other))]
        found = ss.interface(*runs)["mean"]
        scores.append((found.value - difference) / found.error)
    assert 0.6 < np.mean(np.square(scores)) < 1.5


def test_chaos_of_temperatures_and_bonds_against_enumeration() -> None:
    """Of one sample, whose errors come from blocks of time; the diagonal of one run is 1."""
    model, ladder = ss.EdwardsAnderson(ss.square(3), seed=5), (1.0, 2.0)
    other = ss.perturbed(model, 0.1, 3)
    runs = [ss.temper(one, ladder, 6000, save_configurations=1, replicas=3, seed=k, **SHORT)
            for k, one in enumerate((model, other))]  # fmt: skip
    spins = [np.array([Thermal(one, t).of_sites for t in ladder]) for one in (model, other)]
    for found, b in ((ss.chaos(runs[0]), 0), (ss.chaos(*runs), 1)):
        cross = np.einsum("tij,uij->tu", spins[0], spins[b]) / 81
        own = [np.einsum("tij,tij->t", x, x) / 81 for x in (spins[0], spins[b])]
        exact = {"overlap_squared": cross, "parameter": cross / np.sqrt(own[0][:, None] * own[1])}
        for name, values in exact.items():
            assert np.all(np.abs(found[name].value - values) <= 4 * found[name].error + 1e-9), (
                name,
                found[name],
                values,
            )


def test_brute_force_overlaps() -> None:
    model = ss.EdwardsAnderson(ss.square(4), samples=4, seed=5)
    result = ss.temper(model, [1.0, 2.0], 8, save_configurations=1, replicas=3, **SHORT)
    saved, squares = result.configurations, []
    for k in range(saved.shape[0]):
        s = saved.row(k).astype(int)
        squares += [(s[:, a, 0] * s[:, b, 1]).mean(axis=1) ** 2 for a in range(3) for b in range(3) if a != b]
    assert np.allclose(ss.chaos(result)["overlap_squared"].value[0, 1], np.mean(squares))


def test_commands_and_figures(tmp_path, capsys, monkeypatch) -> None:
    model, paths = ss.EdwardsAnderson(ss.square(3), samples=4, seed=2), [tmp_path / "p.h5", tmp_path / "a.h5"]
    for path, one in zip(paths, (model, ss.antiperiodic(model)), strict=True):
        ss.temper(one, LADDER, 200, save_configurations=2, out=path, **SHORT)
    for what, files, word in (("interface", paths, "[|dF|]"), ("chaos", paths, "X(1.2)"), ("chaos", paths[:1], "X")):
        assert word in run(capsys, monkeypatch, "analyze", "--what", what, *files).out
        out = tmp_path / f"{what}.svg"
        assert run(capsys, monkeypatch, "plot", "--what", what, *files, "--out", out, "--overwrite").status == 0
    assert run(capsys, monkeypatch, "analyze", "--what", "chaotic", *paths).status == 2


def test_refusals() -> None:
    model = ss.Ising(ss.square(3))
    runs = [ss.temper(one, [1.0, 1.4, 1.9], 100, **SHORT) for one in (model, ss.antiperiodic(model))]
    with pytest.raises(InputError, match="give the periodic run"):
        ss.interface(runs[0], runs[0])
    with pytest.raises(InputError, match="infinite temperature"):
        ss.interface(*runs)


def test_figures_of_two_runs_in_python() -> None:
    model = ss.EdwardsAnderson(ss.square(3), samples=4, seed=2)
    runs = [ss.temper(one, LADDER, 100, **SHORT) for one in (model, ss.antiperiodic(model))]
    assert list(ss.plot(runs, "interface")) == ["interface"]
    with pytest.raises(InputError, match="2 runs and not 1"):
        runs[0].plot("interface")
