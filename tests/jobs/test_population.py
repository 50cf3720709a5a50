"""Population annealing: free energies by enumeration, ground states, families, files, refusals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import exact
import numpy as np
import numpy.typing as npt
import pytest
from harness import run

import spinsim as ss
from spinsim.analysis.thermodynamics import thermodynamics
from spinsim.jobs.anneal.figures import thermodynamics_figure
from spinsim.jobs.anneal.settings import Anneal, AnnealSettings
from spinsim.sampling import portions
from spinsim.settings.shared import ModelSettings

MODELS = {
    "pm-j": lambda: ss.EdwardsAnderson(ss.square(4), samples=4, seed=1),
    "gaussian": lambda: ss.EdwardsAnderson(ss.square(4), couplings="gaussian", samples=3, seed=1),
    "random-field": lambda: ss.EdwardsAnderson(ss.square(3), random_field=0.7, samples=3, seed=1),
    "graph": lambda: ss.Ising(ss.Graph(5, [(0, 1), (1, 2), (2, 3), (3, 4), (4, 0), (0, 2)]), [1, -1, 1, 1, -1, 1]),
}
SERIES = ("energy", "magnetization", "family", "population_free_energy", "parents", "best_energy", "best_spins")


def anneal(model: ss.Ising, **options: Any) -> ss.AnnealResult:
    return ss.anneal(model, **{"populations": 1, "replicas": 2000, "steps": 25, "sweeps": 4, "seed": 7, **options})


def exact_of(model: ss.Ising, temperature: float, sample: int) -> tuple[float, float, float]:
    """Free energy, entropy and energy, totals, by enumeration."""
    energy = exact.energies_of_states(model, sample)
    weight = np.exp(-(energy - energy.min()) / temperature)
    free = float(energy.min() - temperature * np.log(weight.sum()))
    mean = float(weight @ energy / weight.sum())
    return free, (mean - free) / temperature, mean


def assert_same(one: ss.AnnealResult, other: ss.AnnealResult) -> None:
    for name in SERIES:
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), name)


@pytest.mark.parametrize("name", MODELS)
def test_free_energies_are_exact(name: str) -> None:
    model = MODELS[name]()
    result, rows = anneal(model), []
    free, error = result.free_energy, result.free_energy_error
    entropy, of_entropy = result.populations.entropy(result.energy)
    energy, of_energy = result.populations.mean(result.energy)
    for step, k in np.ndindex(25, model.samples):
        if step % 8 == 0:
            expected = exact_of(model, result.temperature[step], k)
            rows.append((f"F {step} {k}", free[step, k], error[step, k], expected[0]))
            if result.temperature[step] > 0.5:  # below few replicas are excited, which have no normal law
                rows += [
                    (f"S {step} {k}", entropy[step, k], of_entropy[step, k], expected[1]),
                    (f"E {step} {k}", energy[step, k], of_energy[step, k], expected[2]),
                ]
    exact.assert_agree(rows)


def test_free_energies_in_a_field_that_changes() -> None:
    model = MODELS["pm-j"]().of_samples(0, 2)
    fields = np.linspace(0, 1.3, 25)
    result = anneal(model, field=fields, t_stop=0.6)
    rows = []
    for step, k in ((8, 0), (16, 1), (24, 0), (24, 1)):
        expected = exact_of(model.in_field(fields[step]), result.temperature[step], k)[0]
        rows.append((f"F {step} {k}", result.free_energy[step, k], result.free_energy_error[step, k], expected))
    exact.assert_agree(rows)


def test_small_populations_have_no_bias() -> None:
    """The mean of Z is exact however small they are, and weights by Z make averages so; their scatter gives errors."""
    model = MODELS["gaussian"]().of_samples(1, 2)
    result = anneal(model, populations=1000, replicas=8000, steps=12, t_stop=0.8)
    for step in (3, 7, 11):
        free, entropy, energy = exact_of(model, result.temperature[step], 0)
        z = np.exp(-(result.population_free_energy[step, 0] - free) / result.temperature[step])
        found, errors = (table(result)[step] for table in (averages, errors_of))
        exact.assert_agree(
            [
                ("Z", z.mean(), z.std(ddof=1) / np.sqrt(1000), 1.0),
                ("F", found[0], errors[0], free),
                ("S", found[1], errors[1], entropy),
                ("E", found[2], errors[2], energy),
            ]
        )
        if step == 11:  # the mean of F itself is biased
            assert np.log(z).mean() < -5 * np.log(z).std() / np.sqrt(1000)


def averages(result: ss.AnnealResult) -> npt.NDArray[np.float64]:
    of = result.populations
    return np.column_stack([of.free_energy()[0], of.entropy(result.energy)[0], of.mean(result.energy)[0]])


def errors_of(result: ss.AnnealResult) -> npt.NDArray[np.float64]:
    of = result.populations
    return np.column_stack([of.free_energy()[1], of.entropy(result.energy)[1], of.mean(result.energy)[1]])


def test_errors_by_families_are_those_of_the_scatter() -> None:
    """Of 200 populations; families forget little here, so that theirs is not far above."""
    model = ss.EdwardsAnderson(ss.cubic(3), couplings="gaussian", seed=2)
    result = anneal(model, populations=200, replicas=200 * 300, sweeps=1, steps=15)
    step = -1
    scatter = (result.population_free_energy[step, 0] / result.temperature[step]).std(ddof=1)
    size = result.families.mean_square_size[step, 0]
    by_families = np.sqrt((size - 1).mean() / 300)
    assert scatter * (1 - 4 / np.sqrt(400)) <= by_families <= 2 * scatter


def test_families() -> None:
    result = anneal(MODELS["pm-j"](), populations=2, replicas=300)
    families = result.families
    for step, k, p in ((0, 0, 0), (24, 3, 1)):
        mine = result.family[step, k, 150 * p : 150 * (p + 1)]
        names, sizes = np.unique(mine, return_counts=True)
        assert set(names // 150) == {p}
        assert families.number[step, k, p] == len(names)
        assert families.mean_square_size[step, k, p] == pytest.approx((sizes**2).sum() / 150)
        assert families.entropy[step, k, p] == pytest.approx(-(sizes / 150 * np.log(sizes / 150)).sum())
    assert (np.diff(families.number, axis=0) <= 0).all()
    assert (result.parents >= families.number).all()


def test_averages_are_those_of_the_population() -> None:
    """Energies and specific heats agree with enumeration within errors that know of families."""
    model = ss.EdwardsAnderson(ss.square(4), seed=1)
    result = anneal(model, t_stop=0.5, replicas=4000)
    found, rows = thermodynamics(result), []
    for step in (6, 12, 18, 24):
        states, temperature = exact.energies_of_states(model, 0), result.temperature[step]
        weight = np.exp(-(states - states.min()) / temperature)
        weight /= weight.sum()
        heat = float(weight @ states**2 - (weight @ states) ** 2) / temperature**2
        rows += [
            (f"e {step}", found.energy.mean[step], found.energy.error[step], float(weight @ states) / 16),
            (f"c {step}", found.specific_heat.mean[step], found.specific_heat.error[step], heat / 16),
        ]
    exact.assert_agree(rows)


class Stop:
    """Interrupts a run that reports so many times."""

    def __init__(self, after: int) -> None:
        self._left = after

    def __call__(self, updates: int) -> None:
        self._left -= 1
        if not self._left:
            import signal

            signal.raise_signal(signal.SIGINT)


@pytest.mark.parametrize("field", [None, [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]])
def test_files_interrupted_and_resumed(field: Any, tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.setitem(portions.UPDATES, "cpu", 1)  # a pause in the middle of a step
    model, path = MODELS["pm-j"](), tmp_path / "run.h5"
    options: dict[str, Any] = {"steps": 6, "save_configurations": 2, "populations": 2, "replicas": 200, "field": field}
    whole = anneal(model, **options)
    for after in (7, 9, 3, 3):  # after 6, 14, 16 and 18 of the 24 sweeps, 4 a step: also where a step ends
        with pytest.raises(KeyboardInterrupt):
            anneal(model, out=path, on_updates=Stop(after), **options)
    assert not ss.load(path).finished
    ss.resume(path)
    found = ss.load(path)
    assert_same(found, whole)
    np.testing.assert_array_equal(found.configurations[:], whole.configurations[:])
    again = ss.recount(path)
    np.testing.assert_array_equal(again.energy, whole.energy[1::2])
    np.testing.assert_array_equal(again.free_energy, whole.free_energy[1::2])
    assert run(capsys, monkeypatch, "check", path).status == 0
    copy = tmp_path / "copy.h5"
    found.save(copy)
    assert_same(ss.load(copy), whole)
    assert found.dataset()["population_free_energy"].dims == ("step", "sample", "population")


def test_the_command(tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    line = "anneal --size 4 --couplings pm-j --populations 1 --replicas 1000 --steps 20 --sweeps 5 --out p.h5"
    done = run(capsys, monkeypatch, *line.split())
    assert done.status == 0
    assert "1000 replicas in 1 population" in " ".join((done.out + done.err).split())
    assert "Free energy" in done.out
    shown = run(capsys, monkeypatch, "show", "p.h5")
    assert shown.status == 0
    assert "rho_t" in shown.out
    numbers = run(capsys, monkeypatch, "show", "p.h5", "--json")
    assert '"families_trusted": ' in numbers.out
    table, result = ss.table("p.h5"), ss.load("p.h5")
    np.testing.assert_allclose(table["free_energy_per_site"], result.free_energy[:, 0] / 16)
    assert result.config["anneal"]["schedule"] == "list"
    assert (np.diff(result.temperature) < 0).all()
    by_sample = ss.table(anneal(MODELS["pm-j"](), steps=3, replicas=100), by="sample")
    assert len(by_sample) == 12
    assert {"families", "mean_square_family_size", "entropy_per_site_error"} <= set(by_sample.columns)


@pytest.mark.parametrize(("populations", "entries"), [(1, "families"), (20, "populations")])
def test_the_figure(populations: int, entries: str) -> None:
    model = ss.Ising(MODELS["graph"]().graph, maxcut_weight=6.0)  # which has two panels
    figure = thermodynamics_figure(anneal(model, replicas=1000, steps=4, sweeps=4, populations=populations))
    assert figure.axes[-1].get_xscale() == "log"
    assert f"errors over {entries}." in figure.caption


def test_few_families_are_told(capsys, monkeypatch, tmp_path) -> None:
    monkeypatch.chdir(tmp_path)
    line = "anneal --size 8 --couplings pm-j --populations 2 --replicas 200 --steps 20 --sweeps 1 --out p.h5"
    done = run(capsys, monkeypatch, *line.split())
    assert "is too low to trust averages: take more replicas, more sweeps or more steps" in " ".join(done.out.split())


@pytest.mark.parametrize("populations", [1, 20])
def test_no_errors_where_groups_died_out(populations: int, capsys, monkeypatch, tmp_path) -> None:
    """A field that is switched on at once leaves a family, or a population that has all of Z."""
    monkeypatch.chdir(tmp_path)
    line = "anneal --size 6 --populations {} --fields 0,2,8 --temperatures 1 --replicas 120 --sweeps 1 --out p.h5"
    done = run(capsys, monkeypatch, *line.format(populations).split())
    groups = "families" if populations == 1 else "populations"
    assert f"there are no errors, as too few {groups} are left" in " ".join(done.out.split())
    table, result = ss.table("p.h5"), ss.load("p.h5")
    for name in ("free_energy_per_site", "entropy_per_site", "energy_per_site", "specific_heat", "magnetization"):
        assert np.isnan(table[f"{name}_error"].iloc[-1]), name
        assert np.isfinite(table[name].iloc[-1]), name
    assert np.isfinite(ss.anneal(result.model, [1e3], populations=1, replicas=120).free_energy_error).all()
    shown = run(capsys, monkeypatch, "show", "p.h5").out
    assert "nan" not in shown
    assert "entropy -0\n" not in shown
    assert '"free_energy_per_site_error": null' in run(capsys, monkeypatch, "show", "p.h5", "--json").out
    assert not np.signbit(result.families.entropy).any()
    assert f"errors over {groups}, left out where they count as fewer than 10." in thermodynamics_figure(result).caption


def test_replicas_that_are_not_told() -> None:
    model = ss.Ising(ss.chain(4))
    assert anneal(model, populations=3, replicas=None, steps=1, device="cpu").energy.shape[2] == 4098


def test_other_runs_keep_their_identity() -> None:
    """The digest is that of a version without populations."""
    config = Anneal(model=ModelSettings(size="8"), anneal=AnnealSettings(t_start=3.0, t_stop=0.1))
    assert config.sha256(None) == Anneal(model=config.model, anneal=AnnealSettings(t_start=3.0, t_stop=0.1)).sha256(
        None
    )
    assert Anneal(model=config.model, anneal=AnnealSettings(populations=1)).sha256(None) != config.sha256(None)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"populations": 3}, "2000 replicas make no 3 populations of equal size: give a number that divides"),
        ({"populations": -1}, "populations -1 is out of range: give a whole number from 0"),
        ({"quantum": True}, "populations 1 do not go with quantum, whose slices begin at no infinite temperature"),
        ({"start": "up"}, "populations 1 do not go with start 'up', as they begin at infinite temperature"),
        ({"start": np.ones(16)}, "populations 1 do not go with given spins"),
        ({"t_stop": 1e20}, "t_stop 1e.20 of populations is as good as the infinite temperature at which they begin"),
        ({"schedule": "linear"}, "schedule 'linear' of populations, .* needs a first temperature: give t_start"),
    ],
)
def test_refusals(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ss.InputError, match=message):
        anneal(MODELS["pm-j"](), **options)


def test_other_runs_have_no_free_energy() -> None:
    result = ss.anneal(MODELS["graph"](), [1.0], sweeps=1, replicas=2)
    with pytest.raises(ss.InputError, match="the run has resampled no population: anneal with populations"):
        _ = result.free_energy


def test_a_search_makes_populations_anew() -> None:
    """Each anneal begins with its own random numbers at infinite temperature; the series are those of the first."""
    model = MODELS["pm-j"]()
    one, two = (anneal(model, anneals=anneals, replicas=40, steps=2, sweeps=1) for anneals in (1, 2))
    np.testing.assert_array_equal(one.family, two.family)
    np.testing.assert_array_equal(one.population_free_energy, two.population_free_energy)
    assert two.anneals is not None
    assert two.anneals.done == 2
    assert (two.anneals.energy[0] != two.anneals.energy[1]).any()


def test_populations_count_as_one_try(capsys, monkeypatch, tmp_path) -> None:
    monkeypatch.chdir(tmp_path)
    line = (
        "anneal --size 4 --couplings pm-j --populations 1 --replicas 50 --steps 3 --sweeps 1 --anneals 3 --target -32"
    )
    run(capsys, monkeypatch, *line.split(), "--out", "p.h5")
    shown = " ".join(run(capsys, monkeypatch, "show", "p.h5").out.split())
    assert "any of 50 with p" in shown
    assert "a replica meets it" not in shown


@pytest.mark.slow
def test_ground_states_of_glasses() -> None:
    """Of 20 samples of the +-J glass in three dimensions, L = 8, they are those that tempering finds."""
    model = ss.EdwardsAnderson(ss.cubic(8), samples=20, seed=8)
    population = ss.anneal(model, populations=1, replicas=4096, steps=100, sweeps=10, t_stop=0.2, seed=1)
    tempered = ss.temper(model, "0.3:1.8:20g", thermalize=20_000, sweeps=20_000, replicas=4, seed=2)
    np.testing.assert_array_equal(population.best_energy.min(axis=1), tempered.best_energy.min(axis=1))


@pytest.mark.parametrize("populations", [0, 1])
def test_replicas_that_share_a_ground_state_have_no_error(populations: int) -> None:
    """Their energy is exact but for rarer states, whose share a scatter of 0 does not tell."""
    found = ss.anneal(ss.Ising(ss.square(4)), [4.0, 2.0, 0.4], sweeps=20, replicas=64, populations=populations, seed=1)
    table = ss.table(found)
    assert (found.energy[-1] == -32).all()
    assert np.isfinite(table["energy_per_site_error"].iloc[0])
    assert np.isnan(table[["energy_per_site_error", "specific_heat_error"]].iloc[-1]).all()
