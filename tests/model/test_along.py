"""Couplings of different strength along each axis: models, files, commands, refusals, the exact transition."""

from __future__ import annotations

from math import sinh

import numpy as np
import pytest
from exact import assert_agree, enumerate_states, replica_mean
from scipy.optimize import brentq
from typer.testing import CliRunner

import spinsim as ss
from spinsim.analysis.sizes import compare_sizes
from spinsim.cli import app
from spinsim.engine import PlannedSizes, choose_packing
from spinsim.engine.choosing import choose
from spinsim.engine.update import ModelSizes
from spinsim.errors import InputError
from spinsim.model.disorder import lattice_model
from spinsim.model.graph import degrees_along
from spinsim.packing import Packing
from spinsim.settings.shared import ModelSettings


def test_couplings_and_terms_follow_the_axis_of_each_bond() -> None:
    lattice = ss.cubic(3, 4, 2)
    plain, model = (ss.EdwardsAnderson(lattice, 2, 5, couplings_along=along) for along in (None, (1, 1, -0.5)))
    ends = lattice.edges()
    upward = (ends[:, 1] // 12 != ends[:, 0] // 12).astype(int)  # along z
    np.testing.assert_array_equal(model.couplings, plain.couplings * np.where(upward, -0.5, 1.0))
    np.testing.assert_array_equal(model.terms, upward)
    assert model.name == "cubic-3x4x2-pm-j-along-1x1x-0.5"
    assert plain.terms is None
    open_ended = lattice_model(ss.square(3, 4, periodic=False), "antiferromagnet", couplings_along=(2, 0.25))
    across = np.diff(open_ended.graph.edges, axis=1)[:, 0] == 3
    np.testing.assert_array_equal(open_ended.couplings[0], np.where(across, -0.25, -2.0))
    np.testing.assert_array_equal(open_ended.terms, across)


@pytest.mark.parametrize(
    ("along", "given", "packing"),
    [
        ((1, 0.5), {}, Packing.ANISOTROPIC),
        ((1, -1), {}, Packing.REPLICA),
        ((0.5, 0.5), {"couplings": "ferromagnet"}, Packing.REPLICA),
        ((1, 0.5), {"couplings": "gaussian"}, Packing.UNPACKED),
        ((1, 0.5), {"dilution": 0.2}, Packing.UNPACKED),
        ((1, 0.5), {"random_field": 0.2}, Packing.UNPACKED),
        ((1, 0.5), {"field": 0.25}, Packing.ANISOTROPIC),
        ((1, 0.5, 0.25), {}, Packing.UNPACKED),
        ((1, 0.7, 1, 1), {}, Packing.ANISOTROPIC),
    ],
)
def test_the_update_of_what_is_planned_is_that_of_the_model(along, given: dict, packing: Packing) -> None:
    from spinsim.run.plan import build_model

    lattice = {2: "square", 3: "cubic", 4: "hypercubic"}[len(along)]
    text = ",".join(map(str, along))
    settings = ModelSettings(
        **({"lattice": lattice, "size": "4", "couplings": "pm-j", "couplings_along": text} | given)
    )
    model = build_model(settings, 2)
    assert choose_packing(model) is packing
    found = ModelSizes(model)
    if packing is Packing.ANISOTROPIC:
        assert found.degrees_of_terms == degrees_along(along)
        planned = PlannedSizes(
            model.lattice, 1, False, False, in_field=found.in_field, degrees_of_terms=degrees_along(along)
        )
        assert choose(planned) is choose(found)


def test_gaussian_couplings_keep_their_grid() -> None:
    few, many = (ss.EdwardsAnderson(ss.square(4), n, 3, "gaussian", couplings_along=(1, 0.7)) for n in (1, 3))
    np.testing.assert_array_equal(few.couplings[0], many.couplings[0])
    assert few.rounding_error > 0


def test_strengths_count_in_the_identity() -> None:
    def identity(**given) -> dict:
        table = {field: getattr(ModelSettings(**given), field) for field in ModelSettings.__dataclass_fields__}
        return ModelSettings.identity(table)

    assert identity(couplings_along="1,0.50") == identity(couplings_along="1.0,.5")
    assert identity(couplings_along="1,0.5")["couplings_along"] == [1.0, 0.5]
    plain = ss.Ising(ss.square(4))
    assert plain.content_sha256() != ss.Ising(ss.square(4), terms=np.zeros(32, int)).content_sha256()


@pytest.mark.parametrize("job", ["anneal --steps 20", "temper --sweeps 200 --thermalize 50 --temperatures 1:2:3"])
@pytest.mark.system
def test_commands_write_files_that_resume(tmp_path, monkeypatch, job: str) -> None:
    monkeypatch.chdir(tmp_path)
    flags = f"{job} --lattice cubic --size 4x3x2 --couplings pm-j --couplings-along 1,1,0.5 --replicas 2 --device cpu"
    done = CliRunner().invoke(app, [*flags.split(), "--out", "a.h5"])
    assert done.exit_code == 0, done.output
    model = ss.EdwardsAnderson(ss.cubic(4, 3, 2), couplings_along=(1, 1, 0.5))
    read = ss.load("a.h5").model
    assert (read.name, read.content_sha256()) == (model.name, model.content_sha256())
    np.testing.assert_array_equal(read.terms, model.terms)
    assert CliRunner().invoke(app, ["check", "a.h5"]).exit_code == 0
    if job.startswith("temper"):
        longer = CliRunner().invoke(app, ["resume", "a.h5", "--sweeps", "400"])
        assert longer.exit_code == 0, longer.output
        direct = CliRunner().invoke(app, [*flags.replace("200", "400").split(), "--out", "b.h5"])
        assert direct.exit_code == 0, direct.output
        np.testing.assert_array_equal(ss.load("a.h5").energy, ss.load("b.h5").energy)


@pytest.mark.parametrize(
    ("flags", "phrase"),
    [
        ("--lattice triangular --couplings-along 1,1", "no meaning on a triangular lattice, whose bonds do not lie"),
        ("--couplings-along 1,1,1", "has 3 strengths but a square lattice has 2 axes: give one for each"),
        ("--couplings-along 1,0", "1,0 must be finite and not 0: give numbers such as 1 and 0.5"),
        ("--couplings-along 1,inf", "1,inf must be finite and not 0"),
        ("--couplings-along 1:2:2", "'1:2:2' cannot be read: give a number for each axis such as 1,1,0.5"),
    ],
)
def test_refused_flags(flags: str, phrase: str) -> None:
    done = CliRunner().invoke(app, ["anneal", *flags.split()])
    assert phrase in done.output + str(done.exception)


@pytest.mark.parametrize(
    ("terms", "phrase"),
    [
        ([0, 1], r"terms have shape \(2,\) and type int64: give a whole number for each of 32 bonds"),
        (np.full(32, 2), "terms hold 2: give 0 or 1 for each bond"),
        (np.full(32, 0.0), "terms have shape .* and type float64"),
        ([[0], [0, 1]], "has the wrong type"),
    ],
)
def test_refused_terms(terms, phrase: str) -> None:
    with pytest.raises(InputError, match=phrase):
        ss.Ising(ss.square(4), terms=terms)


def series(model: ss.Ising, temperature: float) -> tuple[np.ndarray, np.ndarray]:
    """Energy and squared magnetisation per site, (150 steps, 512 replicas), of 5 sweeps each after 500 sweeps."""
    engine = ss.create_engine(model, 512, ss.Dynamics(seed=2))
    engine.set_beta(1 / temperature)
    engine.sweep(500)
    counts = []
    for _ in range(150):
        engine.sweep(5)
        counts.append(engine.counts())
    energy = np.array([count.energy[0] for count in counts]) * model.quantum / model.sites
    return energy, np.array([(count.magnetization[0] / model.sites) ** 2 for count in counts])


def test_equilibrium_against_enumeration() -> None:
    model, rows = ss.EdwardsAnderson(ss.square(4), seed=3, couplings_along=(1, 0.3)), []
    for temperature in (0.7, 1.2, 2.0):
        energy, squares = series(model, temperature)
        exact = enumerate_states(model, temperature)
        rows.append((f"T = {temperature}: E/N", *replica_mean(energy), exact.energy))
        rows.append((f"T = {temperature}: m^2", *replica_mean(squares), exact.magnetization_squared))
    assert_agree(rows)


@pytest.mark.slow
@pytest.mark.parametrize("strength", [0.5, 0.2])
def test_transition_of_the_anisotropic_ferromagnet(strength: float) -> None:
    """Crossings of the two largest sizes lie where sinh(2 / T) sinh(2 strength / T) = 1 (L. Onsager, 1944)."""
    t_c = brentq(lambda t: sinh(2 / t) * sinh(2 * strength / t) - 1, 0.5, 3)
    ladder = np.linspace(0.97 * t_c, 1.03 * t_c, 9)
    runs = [
        ss.temper(
            lattice_model(ss.square(side), "ferromagnet", couplings_along=(1, strength)),
            ladder,
            sweeps=20_000,
            thermalize=4000,
            measure_every=20,
            swap_every=5,
            replicas=14,
            seed=side,
        )
        for side in (12, 24, 48)
    ]
    for comparison in compare_sizes(runs, "magnetization", near=t_c):
        last = comparison.crossings[-1].crossing
        assert abs(last.value - t_c) < 4 * last.error + 5e-4 * t_c, comparison.name
        assert last.error < 2e-3 * t_c
