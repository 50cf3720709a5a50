"""Files of lattices whose bonds are not listed: the lattice, the seed and bits say what lists would."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest
from harness import contents
from typer.testing import CliRunner

import spinsim as ss
from spinsim import packing
from spinsim.cli import app
from spinsim.model.disorder import EdwardsAnderson, lattice_model
from spinsim.model.graph import HUGE, MOST_LISTED
from spinsim.model.ising import Ising
from spinsim.model.lattice import Lattice
from spinsim.store.models import stored_bytes

MODELS = {
    "ferromagnet": lambda: Ising(ss.square(256, 4)),
    "antiferromagnet": lambda: Ising(ss.cubic(256, 2, 4), -1.0, 0.5),
    "drawn": lambda: EdwardsAnderson(ss.cubic(256, 2, 2), samples=2, seed=2**64 - 1, bond_fraction=0.3),
    "given": lambda: Ising(ss.square(256, 2), np.where(np.arange(1024) % 3, 1, -1).astype(np.int8)),
    "open": lambda: EdwardsAnderson(ss.cubic(5, 4, 3, periodic=False), seed=2),
    "gaussian": lambda: EdwardsAnderson(ss.square(6), samples=2, couplings="gaussian", random_field=0.5),
    "fields-of-zero": lambda: Ising(ss.square(6), 1.0, np.zeros(36)),
}
LIMITS = MOST_LISTED, HUGE
LINE = (
    "anneal --size 256x4 --couplings pm-j --samples 2 --steps 6 --sweeps 2 --replicas 3 --save-configurations 2"
    " --device cpu"
)


@pytest.fixture
def unlisted(monkeypatch) -> None:
    set_limits(monkeypatch, 64, 64)


def set_limits(monkeypatch, listed: int, huge: int) -> None:
    """Bonds up to which files hold lists and lowest states as bytes, and above which results hold these as bits."""
    monkeypatch.setattr("spinsim.model.graph.MOST_LISTED", listed)
    monkeypatch.setattr("spinsim.model.graph.HUGE", huge)


def run(line: str) -> None:
    outcome = CliRunner().invoke(app, line.split())
    assert outcome.exit_code == 0, outcome.output


@pytest.mark.usefixtures("unlisted")
@pytest.mark.parametrize("name", MODELS)
def test_a_model_is_read_back_without_its_list(tmp_path: Path, name: str) -> None:
    model = MODELS[name]()
    result = ss.anneal(model, [3.0, 1.0], sweeps=2, replicas=2)
    result.save(tmp_path / "run.h5")
    with h5py.File(tmp_path / "run.h5") as file:
        assert "edges" not in file["model"]
        assert ("couplings" in file["model"]) == (name not in ("drawn", "open"))
        assert (file["best/bits"].shape[1], "spins" in file["best"]) == (-(-model.sites // 8), False)
    found = ss.load(tmp_path / "run.h5")
    assert found.model.content_sha256() == model.content_sha256() == found.attributes["model_sha256"]
    np.testing.assert_array_equal(found.model.graph.edges, model.graph.edges)
    np.testing.assert_array_equal(found.model.couplings, model.couplings)
    np.testing.assert_array_equal(found.model.fields, model.fields)
    np.testing.assert_array_equal(found.model.energy(np.asarray(found.best_spins)), found.best_energy.min(axis=1))
    for sample in range(model.samples):
        np.testing.assert_array_equal(found.best_spins[sample], np.asarray(result.best_spins)[sample])
        np.testing.assert_array_equal(found.solutions[sample].values, found.best_spins[sample])


def test_lists_change_nothing_else(tmp_path: Path, monkeypatch) -> None:
    lowest = {}
    for limits, name in ((LIMITS, "listed"), ((64, HUGE), "bytes"), ((64, 64), "bits")):
        set_limits(monkeypatch, *limits)
        run(f"{LINE} --out {tmp_path / name}.h5")
        run(f"check {tmp_path / name}.h5")
        run(f"show {tmp_path / name}.h5")
        lowest[name] = ss.load(tmp_path / f"{name}.h5").best_spins
    with h5py.File(tmp_path / "listed.h5") as one, h5py.File(tmp_path / "bytes.h5") as other:
        assert ("edges" in one["model"], "edges" in other["model"]) == (True, False)
        assert ("couplings" in one["model"], "couplings" in other["model"]) == (True, False)
        bits_of_best = other["best/bits"][...]
    assert [type(spins) for spins in lowest.values()] == [np.ndarray, np.ndarray, packing.States]
    for name in ("bytes", "bits"):
        np.testing.assert_array_equal(np.asarray(lowest[name]), lowest["listed"])
    with h5py.File(tmp_path / "listed.h5") as one, h5py.File(tmp_path / "bits.h5") as other:
        np.testing.assert_array_equal(bits_of_best, other["best/bits"][...])
        assert one.attrs["config_sha256"] == other.attrs["config_sha256"]
        assert one.attrs["model_sha256"] != other.attrs["model_sha256"]
        for group in ("measurements", "configurations"):
            for name in one[group]:
                np.testing.assert_array_equal(one[group][name][...], other[group][name][...])
        spins = packing.unpacked_spins(other["best/bits"][...], 1024)
        np.testing.assert_array_equal(one["best/spins"][...], spins)
        np.testing.assert_array_equal(one["best/energy"][...], other["best/energy"][...])


@pytest.mark.parametrize("huge", [64, HUGE])
def test_runs_go_on_without_lists(tmp_path: Path, monkeypatch, huge: int) -> None:
    """By ``resume`` and by giving the command again."""
    set_limits(monkeypatch, 64, huge)
    run(f"{LINE} --out {tmp_path / 'whole.h5'}")
    files = [tmp_path / f"{how}.h5" for how in ("resumed", "again")]
    for path in files:
        monkeypatch.setattr("spinsim.run.plan.Saving.due", lambda saving: True)
        monkeypatch.setattr("spinsim.run.plan.Saving.saved", stop_after_two())
        CliRunner().invoke(app, f"{LINE} --out {path}".split())
        found = ss.load(path)
        assert (found.finished, len(found.energy)) == (False, 2)
    monkeypatch.undo()
    set_limits(monkeypatch, 64, huge)
    run(f"resume {files[0]} --device cpu")
    run(f"{LINE} --out {files[1]}")
    for path in files:
        assert contents(path, "command", "config") == contents(tmp_path / "whole.h5", "command", "config")


def stop_after_two():
    saved = []

    def stop(saving) -> None:
        saved.append(saving)
        if len(saved) == 2:
            raise KeyboardInterrupt

    return stop


def test_lattices_that_no_list_could_hold() -> None:
    model = lattice_model(Lattice((2**17, 2**17)), "ferromagnet")
    assert model.bonds == 2**35
    assert model.content_sha256() != lattice_model(Lattice((2**18, 2**16)), "ferromagnet").content_sha256()
    assert stored_bytes(model) == model.sites


@pytest.mark.parametrize("shape", [(256, 2), (512, 6), (256, 4, 2), (768, 2, 6)])
def test_site_packed_words_as_bits(shape: tuple[int, ...]) -> None:
    spins = np.random.default_rng(1).choice(np.array([-1, 1], np.int8), int(np.prod(shape)))
    words = packing.pack_sites(spins, shape)
    np.testing.assert_array_equal(packing.of_site_packed(words, shape), packing.packed_spins(spins))
