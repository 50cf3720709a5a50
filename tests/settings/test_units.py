"""One rule of units: nothing is divided by |J|; what twice the couplings do at twice the temperatures."""

from __future__ import annotations

from dataclasses import replace

import h5py
import numpy as np
import pytest
from harness import run
from made_up import LADDER, tempered

import spinsim as ss
from spinsim.analysis import figures, onsager
from spinsim.analysis.sizes import compare_sizes
from spinsim.analysis.strips import length_crossings
from spinsim.analysis.summary import summarize
from spinsim.jobs.anneal.figures import configuration_figure, thermodynamics_figure
from spinsim.jobs.transfer.figures import lengths_figure

EXACT = "exact, $L = \\infty$"
SCALES = {"temperature": 1, "energy_per_site": 1}
SCALES |= dict.fromkeys(("susceptibility", "susceptibility_abs", "staggered_susceptibility"), -1)
"""Powers of J; all else is a pure number."""
UNITS = {
    "measurements/temperature": "coupling unit / k_B",
    "measurements/energy": "coupling unit",
    "best/energy": "coupling unit",
    "model/couplings": "coupling unit",
}


def both(model: ss.Ising) -> tuple[ss.Ising, ss.Ising]:
    """A model, and the same with couplings and fields twice as large."""
    return model, ss.Ising(model.graph, 2 * np.asarray(model.couplings, float), 2 * np.asarray(model.fields, float))


MODELS = {
    "ferromagnet": ss.Ising(ss.square(4)),
    "antiferromagnet in a field": ss.Ising(ss.square(4), -1.0, 0.5),
    "pm-j": ss.EdwardsAnderson(ss.cubic(3), samples=3, seed=7),
    "gaussian": ss.EdwardsAnderson(ss.square(4), samples=3, couplings="gaussian", seed=7),
}


def check_tables(one, other) -> None:
    """Columns of two tables, the second with J = 2."""
    assert list(one) == list(other)
    for name, column in one.items():
        power = SCALES.get(name.removesuffix("_error"), 0)
        np.testing.assert_allclose(other[name].astype(float), 2.0**power * column.astype(float), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_anneal(model, tmp_path) -> None:
    one, other = (ss.anneal(m, j * np.array([3.0, 2.0, 1.0]), replicas=8) for j, m in enumerate(both(model), 1))
    np.testing.assert_array_equal(other.magnetization, one.magnetization)
    np.testing.assert_array_equal(other.best_spins, one.best_spins)
    np.testing.assert_array_equal(other.energy, 2 * one.energy)
    np.testing.assert_array_equal(other.best_energy, 2 * one.best_energy)
    check_tables(ss.table(one), ss.table(other))
    with h5py.File(other.save(tmp_path / "run.h5")) as file:
        assert {path: file[path].attrs["units"] for path in UNITS} == UNITS
        assert "|J|" not in " ".join(map(str, file.attrs.values()))


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_temper(model, tmp_path, capsys, monkeypatch) -> None:
    ladder = np.array([1.5, 2.0, 2.5, 3.0])
    one, other = (ss.temper(m, j * ladder, 640, 20, magnetization_modes=True) for j, m in enumerate(both(model), 1))
    for name in ("magnetization", "overlap", "link_overlap", "permutation", "round_trips", "best_spins"):
        np.testing.assert_array_equal(getattr(other, name), getattr(one, name))
    np.testing.assert_array_equal(other.energy, 2 * one.energy)
    check_tables(ss.table(one), ss.table(other))
    path = other.save(tmp_path / "run.h5")
    assert run(capsys, monkeypatch, "analyze", path).status == 0
    with h5py.File(path) as file:
        assert {path: file[path].attrs["units"] for path in UNITS} == UNITS
        assert file["summary/energy_per_site"].attrs["units"] == "coupling unit"
        assert file["summary/susceptibility"].attrs["units"] == "1 / coupling unit"


def test_an_instance_file_has_the_unit_of_its_weights(do, tmp_path) -> None:
    """Weights -1, and -2, which are couplings 1 and 2; default temperatures scale with them."""
    for weight in (1, 2):
        bonds = "".join(f"{i + 1} {(i + 1) % 8 + 1} {-weight}\n" for i in range(8))
        (tmp_path / f"ring{weight}.txt").write_text(f"8 8\n{bonds}")
    for job, more in (("anneal", "--steps 5"), ("temper", "--sweeps 100")):
        one, other = (ss.load(do(f"{job} ../ring{w}.txt {more} --quiet", f"{job}{w}")) for w in (1, 2))
        np.testing.assert_allclose(other.temperature, 2 * one.temperature, rtol=1e-15)
        np.testing.assert_array_equal(other.magnetization, one.magnetization)
        np.testing.assert_array_equal(other.energy, 2 * one.energy)
        assert one.energy.min() == -8
        if job == "anneal":
            np.testing.assert_array_equal(other.model.cut(other.best_energy), 2 * one.model.cut(one.best_energy))


def test_transfer() -> None:
    """J = 2 with k = 0.2 is J = 1 with k = 0.4, k_time = 0.4 by default in both; energies are twice as large."""
    one, other = (ss.transfer(ss.Ising(ss.chain(4), float(j)), k=[0.4 / j, 0.6 / j], device="cpu") for j in (1, 2))
    for name in ("k_time", "levels", "correlation_length", "gap", "sigma_sigma"):
        np.testing.assert_allclose(getattr(other, name), getattr(one, name), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(other.temperature, 2 * one.temperature, rtol=1e-15)
    for name in ("energy_per_site", "free_energy_per_site"):
        np.testing.assert_allclose(getattr(other, name), 2 * getattr(one, name), rtol=1e-12)
    critical = ss.transfer(ss.Ising(ss.chain(4), -2.0), device="cpu")
    np.testing.assert_allclose(critical.temperature, 2 * onsager.CRITICAL_TEMPERATURE)
    np.testing.assert_allclose(critical.k_time, 1 / onsager.CRITICAL_TEMPERATURE)


def test_transfer_of_couplings_without_a_common_size_has_k_between_layers() -> None:
    found = ss.transfer(ss.Ising(ss.chain(4), [1.0, 2.0, 1.0, 1.0]), k=0.3, device="cpu")
    assert found.k_time.tolist() == [0.3]


def test_transfer_files(do) -> None:
    line = "transfer --layer chain --width 4 --quiet --device cpu"
    one, other = (ss.load(do(f"{line} --k {k} --k-time 0.4", str(k))) for k in (0.2, 0.4))
    assert one.k_time.tolist() == other.k_time.tolist() == [0.4]
    with h5py.File(do(line, "file")) as file:
        units = {name: file[f"spectrum/{name}"].attrs["units"] for name in ("k", "k_time", "energy_per_site")}
    assert units == {"k": "k_B / coupling unit", "k_time": "1", "energy_per_site": "coupling unit"}


def strips(coupling: float) -> list[ss.TransferResult]:
    temperatures = coupling * np.linspace(2.1, 2.6, 6)
    models = (ss.Ising(ss.chain(width), coupling) for width in (4, 6))
    return [ss.transfer(model, temperature=temperatures, device="cpu") for model in models]


def test_crossings_of_strips() -> None:
    one, other = (length_crossings(strips(coupling))[0] for coupling in (1.0, 2.0))
    np.testing.assert_allclose(other.temperature, 2 * one.temperature, rtol=1e-12)
    assert one.temperature == pytest.approx(onsager.CRITICAL_TEMPERATURE, abs=0.05)


def test_figure_of_strips() -> None:
    results = strips(2.0)
    ax = lengths_figure(results, []).axes[0]
    assert ax.get_xlabel() == "temperature $T$ ($J / k_B$)"
    np.testing.assert_allclose(ax.lines[0].get_xdata(), results[0].temperature)


def made_up(side: int, coupling: float) -> ss.TemperResult:
    """The same numbers for every coupling, but energies and temperatures."""
    run = tempered(ss.Ising(ss.square(side)), steps=512)
    model = ss.Ising(ss.square(side), coupling)
    return replace(run, model=model, energy=coupling * run.energy, temperature=coupling * LADDER)


def test_crossings_of_tempering() -> None:
    found = []
    for coupling in (1.0, 2.0):
        runs = [made_up(side, coupling) for side in (4, 8)]
        found += compare_sizes(runs)[:1]
    one, other = (comparison.crossings[0].crossing for comparison in found)
    assert other.value == pytest.approx(2 * one.value, rel=1e-9)
    assert other.error == pytest.approx(2 * one.error, rel=1e-9)
    figure = figures.crossings_figure(found[1:])
    assert figure.axes[0].get_xlabel() == "temperature $T$ ($J / k_B$)"
    np.testing.assert_allclose(figure.axes[0].containers[0].lines[0].get_xdata(), 2 * LADDER)


def lines(figure, panel: int) -> tuple[np.ndarray, np.ndarray]:
    """Points and exact curve of a panel, (points, 2) each."""
    ax = figure.axes[panel]
    exact = next(line for line in ax.lines if line.get_label() == EXACT)
    return ax.containers[0].lines[0].get_xydata(), exact.get_xydata()


def anneal_figure(coupling: float):
    result = ss.anneal(ss.Ising(ss.square(8), coupling), coupling * np.linspace(3, 1.5, 12), replicas=16)
    return thermodynamics_figure(result)


def temper_figure(coupling: float):
    result = made_up(8, coupling)
    return figures.averages_figure([result], [summarize(result)])


@pytest.mark.parametrize("draw", [anneal_figure, temper_figure])
def test_figures_with_exact_curves(draw) -> None:
    """T_c and energies are proportional to J, in points and in exact curves."""
    one, other = draw(1.0), draw(2.0)
    assert other.axes[0].get_ylabel() == "energy per site $E/N$"
    assert other.axes[-1].get_xlabel() == "temperature $T$ ($J / k_B$)"
    for panel, power in enumerate((2, 1, 1)):
        for mine, twice in zip(lines(one, panel), lines(other, panel), strict=True):
            np.testing.assert_allclose(twice, mine * [2, power], rtol=1e-9)


def test_the_lowest_state_has_its_energy() -> None:
    result = ss.anneal(ss.Ising(ss.square(4), -2.0), [8.0, 0.5], replicas=8)
    assert "$E = -64$" in configuration_figure(result).caption


def test_onsager_scales() -> None:
    temperature = np.array([1.5, 2.0, 2.5])
    np.testing.assert_allclose(onsager.energy(3 * temperature, 3.0), 3 * onsager.energy(temperature))
    np.testing.assert_allclose(onsager.specific_heat(3 * temperature, 3.0), onsager.specific_heat(temperature))
    np.testing.assert_allclose(onsager.magnetization(3 * temperature, 3.0), onsager.magnetization(temperature))
