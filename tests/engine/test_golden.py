"""Golden digests: what runs give, to the bit, from one version to the next, on every device.

Each case is a small run through the doors that users have, and ``data/golden.json`` holds the SHA-256 of all that it
gives: spins, energies, magnetisations, permutations. Levels of transfer matrices stand there as numbers of twelve
digits, for they agree to rounding alone.

A change of a digest is a decision, never a repair of the test: it says that the same seed gives another trajectory.
Whoever takes it raises ``DYNAMICS`` in spinsim/rng.py, explains it in CHANGELOG.md, and writes the digests anew:

    PYTHONPATH=tests/support python tests/engine/test_golden.py --write
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Mapping
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from places import DATA

import spinsim as ss
from spinsim.model.trotter import trotter

GOLDEN = DATA / "golden.json"
Found = dict[str, npt.NDArray[Any]]
Case = Callable[[str], Found]


def sparse(sites: int, bonds: int) -> ss.Ising:
    """A random graph and +-1 couplings, by a rule of plain integers."""
    x, numbers = 1, []
    for _ in range(3 * bonds):
        x = (6364136223846793005 * x + 1442695040888963407) % 2**64
        numbers.append(x >> 33)
    one, step, sign = np.array(numbers).reshape(-1, 3).T
    ends = np.column_stack([one % sites, (one + 1 + step % (sites - 1)) % sites])
    return ss.Ising(ss.Graph(sites, ends.astype(np.int32)), 1.0 - 2.0 * (sign % 2))


def swept(model: ss.Ising, replicas: int, beta: npt.ArrayLike, sweeps: int, **options: Any) -> Case:
    """Sweeps of an engine: energies and magnetisations on the way, all spins at the end."""

    def case(device: str) -> Found:
        engine = ss.create_engine(model, replicas, ss.Dynamics(**options), device)
        engine.set_beta(beta)
        energy, magnetization = [], []
        for _ in range(4):
            engine.sweep(sweeps // 4)
            counts = engine.counts()
            energy.append(counts.energy)
            magnetization.append(counts.magnetization)
        spins = [[engine.spins(k, r) for r in range(replicas)] for k in range(model.samples)]
        return {"energy": np.array(energy), "magnetization": np.array(magnetization), "spins": np.array(spins)}

    return case


def annealed(model: ss.Ising, temperatures: list[float], **options: Any) -> Case:
    def case(device: str) -> Found:
        return of_anneal(ss.anneal(model, temperatures, device=device, **options))

    return case


def of_anneal(result: ss.AnnealResult) -> Found:
    names = ("temperature", "energy", "magnetization", "best_energy", "best_spins")
    of_slices = ("gamma", "mean_slice_energy") if result.gamma is not None else ()
    of_populations = ("family", "population_free_energy", "parents") if result.family is not None else ()
    return {name: getattr(result, name) for name in names + of_slices + of_populations}


def quantum_annealed(model: ss.Ising, **options: Any) -> Case:
    def case(device: str) -> Found:
        return of_anneal(ss.anneal(model, quantum=True, steps=6, device=device, **options))

    return case


def tempered(model: ss.Ising, temperatures: list[float] | str, sweeps: int, thermalize: int, **options: Any) -> Case:
    names = ("temperature", "energy", "magnetization", "overlap", "link_overlap", "overlap_mode", "magnetization_mode")
    names += ("permutation", "attempts", "accepts", "round_trips", "best_energy", "best_spins")

    def case(device: str) -> Found:
        every = {"magnetization_modes": True}  # also of glasses, where they are noise and left out by default
        result = ss.temper(model, temperatures, sweeps, thermalize, device=device, **every, **options)
        return {name: getattr(result, name) for name in names}

    return case


def walked(device: str) -> Found:
    """Walkers in energy, which run on the CPU alone."""
    model = ss.EdwardsAnderson(ss.square(3, 5), samples=2, seed=7, field=0.5)
    record = ss.multicanonical(model, 100, 100, replicas=3, seed=9).record
    return {path: one.values for path, one in record.paths() if path.startswith(("measurements/", "histogram/"))}


def in_time(model: ss.Ising, k: list[float] | str | None, slices: int, **options: Any) -> Case:
    names = ("k", "action", "magnetization", "correlation_in_time", "slice_magnetization_fourth", "magnetization_mode")
    names += ("overlap", "slice_overlap_squared", "slice_overlap_fourth", "link_overlap", "overlap_mode", "permutation")
    names += ("attempts", "accepts", "round_trips", "best_energy", "best_spins")

    def case(device: str) -> Found:
        result = ss.quantum(model, k, slices, device=device, **options)
        return {name: getattr(result, name) for name in names}

    return case


def evolved(model: ss.Ising, protocol: str, **options: Any) -> Case:
    names = ("sweep", "temperature", "field", "energy", "magnetization", "correlation", "overlap_correlation")

    def case(device: str) -> Found:
        result = ss.evolve(model, protocol, device=device, seed=13, **options)
        return {name: getattr(result, name) for name in (*names, "best_energy", "best_spins")}

    return case


def instance(device: str) -> Found:
    """The command on an instance of the Biq Mac library."""
    from spinsim.cli import main

    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        out = f"{folder}/a.h5"
        line = f"spinsim anneal {DATA / 'pm1s_100.0.mc'} --replicas 20 --steps 20 --sweeps 10 --seed 3 --quiet"
        line += (
            " --t-start 4.719639816765683 --t-stop 0.15732132722552275"  # the defaults when the digests were recorded
        )
        patch.setattr(sys, "argv", [*line.split(), "--device", device, "--out", out])
        with pytest.raises(SystemExit) as leaving:
            main()
        assert leaving.value.code == 0
        result = ss.load(out)
        assert isinstance(result, ss.AnnealResult)
        return of_anneal(result)


BETAS = [0.0, 0.1, 0.3, 0.5, 0.8, 1.2, 2.0, 30.0]
COOLING = [3.0, 2.5, 2.0, 1.6, 1.3, 1.0, 0.8, 0.6, 0.4, 0.2]
LADDER = [0.8, 1.0, 1.25, 1.5, 2.0]
BRIEF = {"sweeps": 200, "thermalize": 50, "seed": 9}
RUNS: dict[str, Case] = {
    "chain-odd": swept(ss.Ising(ss.chain(9)), 40, 0.6, 400, seed=2),
    "square-open-samples": swept(
        ss.EdwardsAnderson(ss.square(5, 7, periodic=False), samples=3, seed=3), 130, 0.7, 200, seed=2**40 + 17
    ),
    "cubic-temperatures": swept(ss.EdwardsAnderson(ss.cubic(4), samples=2, seed=5), 72, BETAS * 9, 200, seed=5),
    "cubic-odd-field-up": swept(
        ss.EdwardsAnderson(ss.cubic(3, 5, 3), seed=5, field=0.5), 33, 0.5, 200, seed=5, start="up"
    ),
    "square-seven-rounds": swept(ss.Ising(ss.square(6)), 200, 0.44, 200, seed=7, rng_rounds=7),
    "square-zero-acceptance": swept(ss.EdwardsAnderson(ss.square(6)), 64, 0.9, 200, zero_acceptance=0.7),
    "cubic-antiferromagnet-double-bonds": swept(ss.Ising(ss.cubic(4, 2, 2), -2.5), 129, 0.1, 200, zero_acceptance=1.0),
    "sparse-graph": swept(sparse(60, 150), 70, 0.6, 200, seed=11),
    "sparse-graph-of-units": swept(
        ss.Ising(sparse(60, 100).graph, sparse(60, 100).couplings * (0.5 + np.arange(100) % 3 / 2)),
        130,
        0.6,
        200,
        seed=11,
    ),
    "site-packed-square": swept(ss.Ising(ss.square(256, 2)), 2, 0.44, 200, seed=4),
    "site-packed-field-temperatures": swept(
        ss.EdwardsAnderson(ss.square(256, 4), samples=2, seed=3, field=-0.7), 3, [0.0, 0.4, 3.0], 200, seed=4
    ),
    "site-packed-cubic-seven-rounds-up": swept(
        ss.EdwardsAnderson(ss.cubic(512, 2, 4), seed=5), 1, 0.8, 100, seed=4, rng_rounds=7, start="up"
    ),
    "one-replica-square": swept(ss.Ising(ss.square(32)), 1, 0.44, 200, seed=4),
    "one-replica-cubic-field": swept(
        ss.EdwardsAnderson(ss.cubic(10, 6, 4), samples=2, seed=3, field=0.5), 1, 0.8, 200, seed=4, start="up"
    ),
    "one-replica-rows-within-words": swept(
        ss.EdwardsAnderson(ss.square(34, 30), seed=3), 1, 0.7, 200, seed=4, rng_rounds=7, zero_acceptance=0.7
    ),
    "gaussian-temperatures": swept(
        ss.EdwardsAnderson(ss.cubic(4, 3, 2), samples=2, couplings="gaussian", seed=4), 72, BETAS * 9, 200, seed=2**63
    ),
    "gaussian-field-seven-rounds": swept(
        ss.EdwardsAnderson(ss.square(5), couplings="gaussian", seed=4, field=0.4),
        130,
        0.7,
        200,
        rng_rounds=7,
        zero_acceptance=1.0,
    ),
    "site-fields-open": swept(
        ss.Ising(ss.chain(12, periodic=False), 1.0, np.arange(-6, 6) / 4), 30, 0.6, 200, zero_acceptance=0.5, start="up"
    ),
    "anneal-cubic-samples": annealed(
        ss.EdwardsAnderson(ss.cubic(4), samples=2, seed=7), COOLING, sweeps=20, replicas=150, seed=3
    ),
    "anneal-one-replica": annealed(ss.EdwardsAnderson(ss.cubic(10), seed=7), COOLING, sweeps=20, replicas=1, seed=3),
    "anneal-gaussian-changing-field": annealed(
        ss.EdwardsAnderson(ss.square(4), couplings="gaussian", seed=7),
        COOLING,
        sweeps=20,
        replicas=17,
        field=[0.5 - 0.125 * k for k in range(10)],
    ),
    "anneal-populations-samples": annealed(
        ss.EdwardsAnderson(ss.cubic(4), samples=2, seed=7), COOLING, sweeps=4, replicas=300, seed=3, populations=2
    ),
    "anneal-population-gaussian-changing-field": annealed(
        ss.EdwardsAnderson(ss.square(4), couplings="gaussian", seed=7),
        COOLING,
        sweeps=3,
        replicas=150,
        populations=1,
        field=[0.5 - 0.125 * k for k in range(10)],
    ),
    "anneal-instance": instance,
    "multicanonical-samples-field": walked,
    "anneal-quantum-samples": quantum_annealed(
        ss.EdwardsAnderson(ss.square(4), samples=2, seed=7), slices=8, sweeps=20, replicas=150, seed=3
    ),
    "anneal-quantum-gaussian": quantum_annealed(
        ss.EdwardsAnderson(ss.cubic(3), couplings="gaussian", seed=7, field=0.5),
        slices=6,
        sweeps=10,
        replicas=17,
        gamma_start=4.0,
        gamma_stop=0.1,
        beta=5.0,
        schedule="linear",
    ),
    "temper-cubic-samples": tempered(ss.EdwardsAnderson(ss.cubic(4), samples=2, seed=7), LADDER, 200, 100, seed=9),
    "temper-open-odd-field": tempered(
        ss.EdwardsAnderson(ss.square(5, 3, periodic=False), samples=2, seed=7, field=0.3),
        LADDER,
        300,
        60,
        replicas=3,
        measure_every=15,
        swap_every=3,
        rng_rounds=7,
        start="up",
    ),
    "temper-many-replicas": tempered(
        ss.EdwardsAnderson(ss.square(4), seed=7), [0.5 + 0.05 * k for k in range(66)], 100, 50, seed=9
    ),
    "temper-one-replica": tempered(
        ss.EdwardsAnderson(ss.cubic(8), samples=2, seed=7), LADDER[:1], 200, 100, replicas=1, seed=9
    ),
    "temper-site-packed": tempered(ss.EdwardsAnderson(ss.square(256, 2), seed=7), LADDER, 100, 50, zero_acceptance=0.9),
    "two-terms-temperatures": swept(
        ss.EdwardsAnderson(ss.cubic(4, 4, 2), samples=2, seed=5, couplings_along=(1, 1, 0.5), field=0.25),
        72,
        np.stack([BETAS * 9, BETAS[::-1] * 9], axis=1),
        200,
        seed=5,
    ),
    "two-terms-gaussian-field": swept(
        trotter(
            ss.EdwardsAnderson(ss.square(3, 4), samples=2, couplings="gaussian", seed=5, random_field=0.5),
            6,
            by_term=True,
        ),
        72,
        np.stack([BETAS * 9, BETAS[::-1] * 9], axis=1),
        200,
        seed=5,
    ),
    "temper-along-axes-open": tempered(
        ss.EdwardsAnderson(ss.square(5, 6, periodic=False), samples=2, seed=7, couplings_along=(1, -0.3)),
        LADDER,
        200,
        100,
        seed=9,
    ),
    "temper-gaussian-placed": tempered(
        ss.EdwardsAnderson(ss.square(3), samples=2, couplings="gaussian", seed=7), "auto:0.5:2:4", 200, 100
    ),
    "quantum-square-samples": in_time(
        ss.EdwardsAnderson(ss.square(3, 4), samples=2, seed=7), [0.25, 0.3, 0.4], 10, **BRIEF
    ),
    "quantum-general-gamma": in_time(
        ss.EdwardsAnderson(ss.square(3, 4), samples=2, seed=7),
        None,
        10,
        gamma=[2.0, 2.5, 3.0],
        beta=1.5,
        **BRIEF,
    ),
    "quantum-general-beta": in_time(
        ss.Ising(ss.chain(6), 1.0, 0.25), None, 8, gamma=1.2, beta=[0.5, 1.0, 2.0], **BRIEF
    ),
    "quantum-general-gaussian": in_time(
        ss.EdwardsAnderson(ss.chain(5, periodic=False), samples=2, seed=7, couplings="gaussian", random_field=0.5),
        None,
        8,
        gamma=[0.5, 1.0, 2.0],
        beta=1.5,
        **BRIEF,
    ),
    "quantum-gaussian-placed": in_time(
        ss.EdwardsAnderson(ss.chain(4), couplings="gaussian", seed=7), "auto:0.3:0.9:3", 4, sweeps=100, thermalize=50
    ),
    "evolve-cubic-samples": evolved(
        ss.EdwardsAnderson(ss.cubic(4), samples=2, seed=3),
        "T=1.2 for 20; T=0.5 h=0.3 for 10; T=0.5:0 for 6",
        waiting=[4, 20],
        replicas=70,
    ),
    "evolve-typewriter": evolved(
        ss.Ising(ss.square(6, 5, periodic=False), -1.0), "T=0.01 h=3 for 12", replicas=40, dynamics="typewriter"
    ),
    "evolve-random-gaussian": evolved(
        ss.EdwardsAnderson(ss.square(4, 3), samples=2, couplings="gaussian", seed=3),
        "T=0.7 for 10",
        waiting=4,
        replicas=5,
        dynamics="heat-bath",
    ),
}
EMULATED = [
    "evolve-cubic-samples", "evolve-typewriter", "evolve-random-gaussian",
    "cubic-temperatures", "square-open-samples", "site-packed-field-temperatures", "gaussian-temperatures",
    "anneal-cubic-samples", "temper-cubic-samples", "temper-one-replica", "temper-site-packed",
    "one-replica-cubic-field", "one-replica-rows-within-words", "temper-gaussian-placed",
    "quantum-square-samples", "two-terms-temperatures", "quantum-general-gamma", "two-terms-gaussian-field",
    "anneal-quantum-gaussian",
]  # fmt: skip
"""Of every packing and job some: GPU kernels on the CPU are slow."""

TRANSFER: dict[str, Callable[[str], ss.TransferResult]] = {
    "strip": lambda device: ss.transfer(ss.Ising(ss.chain(6)), k=[0.3, 0.44, 0.6], device=device),
    "bar-samples": lambda device: ss.transfer(ss.EdwardsAnderson(ss.square(3), samples=2), k=0.27, device=device),
    "gaussian-field": lambda device: ss.transfer(
        ss.EdwardsAnderson(ss.chain(13), couplings="gaussian", field=0.25), k=0.4, k_time=0.3, device=device
    ),
}


def digests(found: Mapping[str, npt.NDArray[Any]]) -> dict[str, str]:
    """The SHA-256 of each array: its shape, then its numbers as integers or floats of 64 bits."""
    texts = {}
    for name, values in found.items():
        kind = "<f8" if values.dtype.kind == "f" else "<i8"
        content = f"{values.shape}".encode() + np.ascontiguousarray(values.astype(kind)).tobytes()
        texts[name] = hashlib.sha256(content).hexdigest()
    return texts


def levels(result: ss.TransferResult) -> dict[str, list[str]]:
    """ln of the eigenvalues of each sector as text of twelve digits."""
    return {name: [f"{x:.12g}" for x in found.ravel()] for name, found in result.log_eigenvalue.items()}


@pytest.fixture(scope="module")
def golden() -> dict[str, dict[str, Any]]:
    return dict(json.loads(GOLDEN.read_text()))


@pytest.mark.parametrize("name", RUNS)
def test_digests(request, device: str, golden, name: str) -> None:
    if request.node.callspec.params["device"] == "emulated" and name not in EMULATED:
        pytest.skip("covered by the other cases")
    assert digests(RUNS[name](device)) == golden["runs"][name]


@pytest.mark.parametrize("name", TRANSFER)
def test_levels(request, device: str, golden, name: str) -> None:
    if request.node.callspec.params["device"] == "emulated":
        pytest.skip("Lanczos is not emulated")
    found, expected = levels(TRANSFER[name](device)), golden["transfer"][name]
    assert found.keys() == expected.keys()
    for sector, texts in found.items():
        one, other = (np.array(numbers, np.float64) for numbers in (texts, expected[sector]))
        np.testing.assert_allclose(one, other, rtol=1.5e-12)  # a unit of the twelfth digit, where rounding parts them


def test_every_digest_has_its_run(golden) -> None:
    assert (golden["runs"].keys(), golden["transfer"].keys()) == (RUNS.keys(), TRANSFER.keys())


if __name__ == "__main__":
    made = {
        "runs": {name: digests(case("cpu")) for name, case in RUNS.items()},
        "transfer": {name: levels(case("cpu")) for name, case in TRANSFER.items()},
    }
    text = json.dumps(made, indent=1) + "\n"
    if "--write" in sys.argv:
        GOLDEN.write_text(text)
    else:
        sys.stdout.write(text)
