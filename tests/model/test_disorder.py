"""Diluted bonds and random fields: what is drawn, averages and ground states by enumeration, runs and their files."""

from __future__ import annotations

import numpy as np
import oracle
import pytest
from exact import assert_agree, enumerate_states, replica_mean
from scipy.special import ndtri
from typer.testing import CliRunner

import spinsim as ss
from spinsim.cli import app
from spinsim.engine import choose_packing
from spinsim.model.couplings import Drawn
from spinsim.model.disorder import KINDS, lattice_model
from spinsim.packing import Packing

SAMPLES, SEED = 40, 11


def uniform(stream: int, count: int, sample: int) -> np.ndarray:
    """Numbers in (0, 1) of the oracle's own generator."""
    high, low = oracle.draw(SEED, stream, group=np.arange(count), sample=sample)[:2]
    return (high.astype(float) + low.astype(float) / 2**32) / 2**32


@pytest.mark.parametrize("couplings", KINDS)
def test_missing_bonds_leave_the_others_as_they_are(couplings: str) -> None:
    lattice, dilution = ss.cubic(6), 0.3
    several = {"samples": SAMPLES} if couplings in ("pm-j", "gaussian") else {}
    whole = lattice_model(lattice, couplings, seed=SEED, **several).couplings
    diluted = lattice_model(lattice, couplings, seed=SEED, samples=SAMPLES, dilution=dilution)
    missing = diluted.couplings == 0
    np.testing.assert_array_equal(diluted.couplings, np.where(missing, 0, whole))
    np.testing.assert_array_equal(missing[3], uniform(7, lattice.bonds, 3) < dilution)
    assert abs(missing.mean() - dilution) < 4 * np.sqrt(dilution * (1 - dilution) / missing.size)
    counts = missing.sum(axis=1)  # binomial in each sample, independent from one to the next
    assert abs(counts.var(ddof=1) / (lattice.bonds * dilution * (1 - dilution)) - 1) < 4 * np.sqrt(2 / SAMPLES)
    few = lattice_model(lattice, couplings, seed=SEED, samples=2, dilution=dilution)
    np.testing.assert_array_equal(few.couplings, diluted.couplings[:2])
    assert choose_packing(diluted) is Packing.UNPACKED
    assert diluted.name == f"cubic-6x6x6-{couplings}-dilution-0.3"


@pytest.mark.parametrize("couplings", KINDS)
def test_random_fields_are_normal(couplings: str) -> None:
    lattice, deviation = ss.cubic(8), 1.5
    model = lattice_model(lattice, couplings, seed=SEED, samples=SAMPLES, random_field=deviation, field=0.25)
    assert (model.samples, model.name) == (SAMPLES, f"cubic-8x8x8-{couplings}-random-field-1.5")
    h = model.fields - 0.25
    assert not model.rounded
    np.testing.assert_allclose(h[3], deviation * ndtri(uniform(8, lattice.sites, 3)), atol=2.0**-24)
    n = h.size
    for value, expected, error in (
        (h.mean(), 0, deviation / np.sqrt(n)),
        (h.var(), deviation**2, deviation**2 * np.sqrt(2 / n)),
        ((h**4).mean(), 3 * deviation**4, deviation**4 * np.sqrt(96 / n)),
        ((h[:, 1:] * h[:, :-1]).mean(), 0, deviation**2 / np.sqrt(n)),
        ((h[1:] * h[:-1]).mean(), 0, deviation**2 / np.sqrt(n)),
    ):
        assert abs(value - expected) < 4 * error
    few = lattice_model(lattice, couplings, seed=SEED, samples=1, random_field=deviation, field=0.25)
    np.testing.assert_array_equal(few.fields, model.fields[:1])
    np.testing.assert_array_equal(few.couplings[0], model.couplings[0])


def test_defaults_draw_nothing() -> None:
    plain = ss.EdwardsAnderson(ss.square(4), 3, 5)
    same = ss.EdwardsAnderson(ss.square(4), 3, 5, dilution=0.0, random_field=0.0)
    assert plain.content_sha256() == same.content_sha256()
    assert (same.name, choose_packing(same)) == ("square-4x4-pm-j", Packing.REPLICA)


MODELS = {
    "diluted ferromagnet": lambda: lattice_model(ss.square(4), "ferromagnet", samples=2, seed=1, dilution=0.3),
    "diluted glass": lambda: ss.EdwardsAnderson(ss.triangular(3, 4), 2, 1, dilution=0.4),
    "diluted Gaussian": lambda: ss.EdwardsAnderson(ss.square(4, 3), 1, 2, "gaussian", dilution=0.2, field=0.5),
    "random field": lambda: lattice_model(ss.square(4), "ferromagnet", samples=2, seed=1, random_field=0.8),
    "both": lambda: ss.EdwardsAnderson(ss.honeycomb(2, 3), 2, 4, dilution=0.2, random_field=0.5, field=-0.25),
}


@pytest.mark.parametrize("name", MODELS)
def test_averages_and_ground_states_against_enumeration(name: str) -> None:
    model, temperature, rows = MODELS[name](), 1.7, []
    times = {"sweeps": 2000, "thermalize": 200, "measure_every": 5}
    ladder = [temperature, 1.4 * temperature]
    result = ss.temper(model, ladder, replicas=32, seed=2, magnetization_modes=True, **times)
    lowest = ss.anneal(model, np.geomspace(4, 0.05, 40), sweeps=10, replicas=64, seed=1).best_energy.min(axis=1)
    states = np.arange(2**model.sites)
    spins = (2 * (states >> np.arange(model.sites)[:, None] & 1) - 1).astype(np.int8)
    energies = model.energy(np.broadcast_to(spins, (model.samples, *spins.shape)))
    np.testing.assert_array_equal(lowest, energies.min(axis=1))
    for k in range(model.samples):
        exact, n = enumerate_states(model, temperature, k), model.sites
        found = {
            "energy": result.energy[:, k, :, 0] / n,
            "magnetization_squared": (result.magnetization[:, k, :, 0] / n) ** 2,
            "magnetization_mode": result.magnetization_mode[:, k, :, 0, 0] / n**2,
        }
        for what, values in found.items():
            rows.append((f"{name}, sample {k}, {what}", *replica_mean(values), getattr(exact, what)))
    assert_agree(rows)


def test_both_count_in_the_identity() -> None:
    from spinsim.settings.shared import ModelSettings

    def identity(**given) -> dict:
        table = {field: getattr(ModelSettings(**given), field) for field in ModelSettings.__dataclass_fields__}
        return ModelSettings.identity(table)

    assert (identity()["dilution"], identity()["random_field"]) == (0.0, 0.0)
    assert identity(dilution=0.2)["dilution"] == 0.2
    assert identity(random_field=0.2)["random_field"] == 0.2


@pytest.mark.parametrize(
    "job", ["anneal --steps 20", "temper --sweeps 200 --thermalize 50 --temperatures 1:2:3", "transfer --k 0.4"]
)
@pytest.mark.system
def test_commands_write_files_that_resume(tmp_path, monkeypatch, job: str) -> None:
    """A run that is extended or asked for again keeps its model."""
    monkeypatch.chdir(tmp_path)
    size = "--width 4" if job.startswith("transfer") else "--size 4 --lattice square"
    replicas = "" if job.startswith("transfer") else "--replicas 2"
    flags = f"{job} {size} {replicas} --samples 3 --dilution 0.25 --random-field 0.5 --disorder-seed 7 --device cpu"
    done = CliRunner().invoke(app, [*flags.split(), "--out", "a.h5"])
    assert done.exit_code == 0, done.output
    lattice = ss.chain(4) if job.startswith("transfer") else ss.square(4)
    model = lattice_model(lattice, "ferromagnet", samples=3, seed=7, dilution=0.25, random_field=0.5)
    read = ss.load("a.h5").model
    assert (read.name, read.content_sha256()) == (model.name, model.content_sha256())
    if job.startswith("temper"):
        longer = CliRunner().invoke(app, ["resume", "a.h5", "--sweeps", "400"])
        assert longer.exit_code == 0, longer.output
        direct = CliRunner().invoke(app, [*flags.replace("200", "400").split(), "--out", "b.h5"])
        assert direct.exit_code == 0, direct.output
        np.testing.assert_array_equal(ss.load("a.h5").energy, ss.load("b.h5").energy)


@pytest.mark.parametrize(
    ("make", "phrase"),
    [
        (lambda: ss.EdwardsAnderson(ss.square(4), dilution=1.0), "dilution 1.0 leaves no model"),
        (lambda: ss.EdwardsAnderson(ss.square(4), dilution=-0.1), "dilution -0.1"),
        (lambda: ss.EdwardsAnderson(ss.square(4), dilution=np.nan), "dilution nan"),
        (lambda: ss.EdwardsAnderson(ss.square(4), random_field=-1), "random field -1"),
        (lambda: ss.EdwardsAnderson(ss.square(4), random_field=np.inf), "random field inf"),
        (lambda: lattice_model(ss.square(4), "ferromagnet", samples=2), "give a dilution or a random field"),
    ],
)
def test_refusals(make, phrase: str) -> None:
    with pytest.raises(ss.InputError, match=phrase):
        make()


@pytest.mark.parametrize(
    ("flags", "phrase"),
    [
        ("--dilution 1", "dilution 1"),
        ("--dilution 1.5", "1.5"),
        ("--random-field -1", "-1"),
        ("--samples 2", "samples"),
    ],
)
def test_refused_flags(flags: str, phrase: str) -> None:
    done = CliRunner().invoke(app, ["anneal", *flags.split()])
    assert done.exit_code == 2 or isinstance(done.exception, ss.InputError)
    assert phrase in done.output + str(done.exception)


def test_couplings_beyond_2_to_the_32_do_not_begin_again() -> None:
    found = np.empty(1000, np.int8)
    Drawn(0.3, SEED).draw(found, 3, 2**33 + 5)
    high, low = oracle.draw(SEED, 3, group=np.arange(5, 1005), sample=3, half_sweep=2)[:2]
    np.testing.assert_array_equal(found, np.where((high.astype(float) + low / 2**32) / 2**32 < 0.3, 1, -1))
