"""A whole ladder joined: averages, free energy and entropy at temperatures between the simulated ones."""

from __future__ import annotations

import csv
import json
import tracemalloc

import numpy as np
import pytest
from enumeration import Thermal, exact_summary
from exact import assert_agree
from harness import one_sentence, run
from made_up import tempered
from scipy.special import logsumexp

import spinsim as ss
from spinsim.analysis.reweighted import MultiHistogram, first_guess, joined, reweighted
from spinsim.analysis.summary import summarize
from spinsim.engine.measuring.correlations import Quantities
from spinsim.observables.quantities import Choice
from spinsim.observables.table import observables

LADDER = np.array([1.5, 2.0, 2.6, 3.5])
TARGETS = np.array([1.7, 2.2, 3.0])


def free(thermal: Thermal) -> tuple[float, float]:
    """ln Z and entropy per site."""
    sites, beta = thermal.model.sites, 1 / thermal.temperature
    log_partition = float(logsumexp(-beta * sites * thermal.energy)) / sites
    return log_partition, log_partition + beta * thermal.mean(thermal.energy)


@pytest.mark.parametrize(("field", "size", "periodic"), [(0.0, 2.0, True), (0.5, 1.0, True), (0.0, 1.0, False)])
def test_every_column_agrees_with_enumeration(field: float, size: float, periodic: bool) -> None:
    """One sample, whose errors come from stretches of time that are left out at all temperatures at once."""
    model = ss.Ising(ss.square(3, periodic=periodic), size, size * field)
    result = ss.temper(model, size * LADDER, sweeps=3000, thermalize=100, replicas=2, measure_every=3, seed=4)
    found, rows = reweighted(result, size * TARGETS), []
    top = free(Thermal(model, size * LADDER[-1]))
    for k, temperature in enumerate(size * TARGETS):
        thermal = Thermal(model, temperature)
        here = free(thermal)
        exact = exact_summary([thermal])
        exact |= {"free_energy_over_T_difference": top[0] - here[0], "entropy_difference": here[1] - top[1]}
        exact |= {"free_energy_per_site": -temperature * here[0], "entropy_per_site": here[1]}
        for name, estimate in found.estimates.items():
            rows.append((f"{name} at T = {temperature}", estimate.value[k], estimate.error[k], exact[name]))
            assert estimate.trusted[k]
    names = [o.name for o in observables(model, Choice(2, Quantities(), staggered=not periodic))]
    assert list(found.estimates)[:-2] == names
    assert_agree(rows)


def test_a_ladder_that_goes_far_up_gives_free_energy_and_entropy() -> None:
    model = ss.Ising(ss.square(3))
    result = ss.temper(model, [1.5, 2.0, 2.6, 3.5, 6.0, 20.0], sweeps=3000, thermalize=100, measure_every=3)
    found, rows = reweighted(result, TARGETS).estimates, []
    for k, temperature in enumerate(TARGETS):
        exact = free(Thermal(model, temperature))
        for name, value in (("free_energy_per_site", -temperature * exact[0]), ("entropy_per_site", exact[1])):
            rows.append((f"{name}, T = {temperature}", found[name].value[k], found[name].error[k], value))
    assert_agree(rows)


def test_samples_are_joined_one_by_one() -> None:
    """At a temperature of the ladder values are those measured there, up to what neighbours add: within the errors."""
    model = ss.EdwardsAnderson(ss.square(4), samples=12, seed=1)
    result = ss.temper(model, LADDER / 2, sweeps=600, thermalize=100)
    found, measured = reweighted(result, result.temperature), summarize(result).estimates
    for name in ("energy_per_site", "overlap_squared", "link_overlap", "specific_heat"):
        assert found.estimates[name].trusted.all()
        assert (np.abs(found.estimates[name].value - measured[name].value) < measured[name].error).all()
        assert (found.estimates[name].error < 1.5 * measured[name].error).all()


def test_errors_allow_for_temperatures_that_are_not_independent() -> None:
    """The same energies at all temperatures, once as they are and once each temperature's shuffled in time: chains that
    rise and fall together leave larger errors."""
    model = ss.Ising(ss.square(3))
    result = ss.temper(model, LADDER, sweeps=2000, thermalize=100, measure_every=4)
    common = np.random.default_rng(3).normal(size=(len(result.energy), 1, 1, 1)).repeat(2, axis=2).repeat(4, axis=3)
    errors = []
    for noise in (common, np.stack([np.roll(common[..., k], 97 * k, axis=0) for k in range(4)], axis=-1)):
        energy = -9 + 2 * LADDER + 2 * noise
        made = ss.TemperResult(**(vars(result) | {"energy": energy, "reduced": None}))
        errors.append(float(reweighted(made, [2.0]).estimates["energy_per_site"].error[0]))
    assert errors[0] > 1.2 * errors[1]


def join(energy: np.ndarray, betas: np.ndarray) -> MultiHistogram:
    return joined(*np.unique(energy, return_counts=True), betas, first_guess(energy, betas))


def test_two_temperatures_of_two_levels() -> None:
    """Energies 0 and 1 in exact proportion: ln Z(beta) = ln(1 + exp(-beta)), without any noise."""
    betas = np.log([1.0, 3.0, 7.0])  # half, a quarter and an eighth are excited
    energy = np.array([[1, 1, 1], [1, 1, 0], [1, 0, 0], [1, 0, 0], [0, 0, 0], [0, 0, 0], [0, 0, 0], [0, 0, 0]])
    found = join(energy, betas)
    np.testing.assert_allclose(found.log_partition, np.log((1 + np.exp(-betas)) / 2), atol=1e-9)
    weight = np.exp(found.log_shares(energy) - 0.5 * energy)
    np.testing.assert_allclose((weight * energy).sum() / weight.sum(), 1 / (1 + np.exp(0.5)), atol=1e-9)
    np.testing.assert_allclose(np.log(weight.sum()), np.log((1 + np.exp(-0.5)) / 2), atol=1e-9)
    assert join(energy[:, :1], betas[:1]).log_partition.tolist() == [0]


def test_far_temperatures_have_no_error_and_are_named() -> None:
    result = ss.temper(ss.Ising(ss.square(8)), LADDER[2:], sweeps=2000, thermalize=100)
    found = reweighted(result, [0.3, 3.0])
    assert found.estimates["energy_per_site"].trusted.tolist() == [False, True]
    assert list(found.estimates)[-2:] == ["free_energy_over_T_difference", "entropy_difference"]
    assert "less those at T = 3.5" in found.notes[0]
    assert "1 temperatures, from T = 0.3 to 0.3" in found.notes[-1]
    with pytest.raises(ss.InputError, match="not all above 0"):
        reweighted(result, [-1.0])


def test_on_the_command_line(do, tmp_path, capsys, monkeypatch) -> None:
    path, out = do("temper --size 4 --temperatures 2:3:4 --sweeps 2000 --thermalize 100"), tmp_path / "out.csv"
    before = path.read_bytes()
    shown = run(capsys, monkeypatch, "analyze", path, "--reweight", "2.2:2.4:5", "--csv", out)
    assert shown.status == 0, shown
    assert path.read_bytes() == before
    with out.open(newline="") as text:
        head, *rows = csv.reader(text)
    assert [float(row[0]) for row in rows] == pytest.approx([2.2, 2.25, 2.3, 2.35, 2.4])
    found = reweighted(ss.load(path), [float(row[0]) for row in rows])
    assert [float(row[head.index("energy_per_site")]) for row in rows] == found.estimates[
        "energy_per_site"
    ].value.tolist()
    assert max(map(len, shown.out.splitlines())) <= max(80, len(str(path)) + 60)
    numbers = json.loads(run(capsys, monkeypatch, "analyze", path, "--reweight", "2.2,2.3", "--json").out)
    assert len(numbers["entropy_difference"]) == 2
    one_sentence(run(capsys, monkeypatch, "analyze", path, "--reweight", "2:x:3"), "reweight", "2:x:3")
    one_sentence(run(capsys, monkeypatch, "analyze", path, "--reweight", "2,3", "--csv", out, "--by", "sample"), "--by")


def test_memory_does_not_grow_with_temperatures_and_is_refused_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A ladder of 24 temperatures and 28 pairs, of which all weights at all temperatures would be 160 MB."""
    result = tempered(ss.Ising(ss.square(8)), copies=8, steps=300, ladder=np.linspace(1.8, 2.6, 24))
    tracemalloc.start()
    reweighted(result, [2.0])
    assert tracemalloc.get_traced_memory()[1] < 60e6
    tracemalloc.stop()
    monkeypatch.setattr("spinsim.machine.memory.available_bytes", lambda: 2**20)
    monkeypatch.setattr("spinsim.machine.memory._ALWAYS_THERE", 2**20)
    for analysis in (summarize, lambda run: reweighted(run, [2.0])):
        with pytest.raises(ss.InputError, match=r"analysing the run needs .* of memory but 1.0 MiB are available"):
            analysis(result)
