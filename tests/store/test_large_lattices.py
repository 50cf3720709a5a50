"""Files of lattices whose bonds are not listed: the lattice, the seed and bits say what lists would."""

from __future__ import annotations

import contextlib
from functools import partial
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from harness import contents
from typer.testing import CliRunner

import spinsim as ss
from spinsim import bits, packing, store
from spinsim.cli import app
from spinsim.errors import InputError
from spinsim.jobs.ladder.running import LadderRun
from spinsim.model.disorder import EdwardsAnderson, lattice_model
from spinsim.model.geometry.lattice import Lattice
from spinsim.model.graph import HUGE, MOST_LISTED
from spinsim.model.ising import Ising, former_sha256_of, with_list
from spinsim.run.sampled import SampledRun
from spinsim.store import creating

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
    assert [type(spins) for spins in lowest.values()] == [np.ndarray, np.ndarray, bits.States]
    for name in ("bytes", "bits"):
        np.testing.assert_array_equal(np.asarray(lowest[name]), lowest["listed"])
    with h5py.File(tmp_path / "listed.h5") as one, h5py.File(tmp_path / "bits.h5") as other:
        np.testing.assert_array_equal(bits_of_best, other["best/bits"][...])
        assert one.attrs["config_sha256"] == other.attrs["config_sha256"]
        assert one.attrs["model_sha256"] != other.attrs["model_sha256"]
        for group in ("measurements", "configurations"):
            for name in one[group]:
                np.testing.assert_array_equal(one[group][name][...], other[group][name][...])
        spins = bits.unpacked_spins(other["best/bits"][...], 1024)
        np.testing.assert_array_equal(one["best/spins"][...], spins)
        np.testing.assert_array_equal(one["best/energy"][...], other["best/energy"][...])


def as_formerly(monkeypatch) -> None:
    """Earlier versions took bonds and couplings as lists where this one takes how they follow from other numbers."""
    monkeypatch.setattr(Ising, "content_sha256", former_sha256_of)


@pytest.mark.parametrize("huge", [64, HUGE])
def test_identities_of_earlier_versions_still_count(tmp_path: Path, monkeypatch, huge: int) -> None:
    model, path = EdwardsAnderson(ss.square(256, 2), seed=3), tmp_path / "run.h5"
    call = partial(ss.anneal, model, [2.0, 1.0], sweeps=1, replicas=1, out=path)
    set_limits(monkeypatch, 64, huge)
    as_formerly(monkeypatch)
    former = call()
    monkeypatch.undo()
    set_limits(monkeypatch, 64, huge)
    run(f"check {path}")
    content = path.read_bytes()
    again = call()
    assert path.read_bytes() == content
    assert again.attributes["config_sha256"] == former.attributes["config_sha256"]
    assert again.attributes["model_sha256"] != EdwardsAnderson(ss.square(256, 2), seed=3).content_sha256()
    with h5py.File(path, "r+") as file:
        file.attrs["model_sha256"] = "0" * 64
    assert "is damaged" in CliRunner().invoke(app, ["check", str(path)]).output


@pytest.mark.parametrize("huge", [64, HUGE])
@pytest.mark.parametrize("begun", ["listed", "former", "not"])
def test_runs_go_on_with_and_without_lists(tmp_path: Path, monkeypatch, begun: str, huge: int) -> None:
    """Those of earlier versions have lists; both by ``resume`` and by giving the command again."""
    set_limits(monkeypatch, *(LIMITS if begun == "listed" else (64, huge)))
    if begun == "former":
        as_formerly(monkeypatch)
    run(f"{LINE} --out {tmp_path / 'whole.h5'}")
    files = [tmp_path / f"{how}.h5" for how in ("resumed", "again")]
    for path in files:
        monkeypatch.setattr("spinsim.run.common.Saving.due", lambda saving: True)
        monkeypatch.setattr("spinsim.run.common.Saving.saved", stop_after_two())
        CliRunner().invoke(app, f"{LINE} --out {path}".split())
        with h5py.File(path) as file:
            assert (file.attrs["finished"], len(file["measurements/energy"])) == (b"", 2)
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


@pytest.mark.usefixtures("unlisted")
@pytest.mark.parametrize(
    "damage",
    [
        lambda model: model.attrs.__delitem__("edges"),
        lambda model: model.attrs.modify("edges", "others"),
        lambda model: model.attrs.modify("couplings", "gaussian"),
        lambda model: model.attrs.modify("bond_fraction", 1.5),
        lambda model: model.attrs.__delitem__("disorder_seed"),
        lambda model: model.attrs.modify("disorder_seed", np.uint64(3)),
        lambda model: model.create_dataset("couplings", data=np.ones((1, 1024))),
        lambda model: model.attrs.__delitem__("lattice"),
    ],
)
def test_what_says_bonds_and_couplings_is_checked(tmp_path: Path, damage) -> None:
    path = tmp_path / "run.h5"
    ss.anneal(EdwardsAnderson(ss.square(256, 2)), [1.0], sweeps=1, replicas=1, out=path)
    with h5py.File(path, "r+") as file:
        damage(file["model"])
    outcome = CliRunner().invoke(app, ["check", str(path)])
    assert outcome.exit_code == 2
    assert "is damaged" in outcome.output


def test_lattices_that_no_list_could_hold() -> None:
    model = lattice_model(Lattice((2**17, 2**17)), "ferromagnet")
    assert model.bonds == 2**35
    assert model.content_sha256() != lattice_model(Lattice((2**18, 2**16)), "ferromagnet").content_sha256()
    assert store.stored_bytes(model) == model.sites
    with pytest.raises(InputError, match="the list of bonds of square-131072"):
        with_list(model)


@pytest.mark.parametrize("shape", [(256, 2), (512, 6), (256, 4, 2), (768, 2, 6)])
def test_site_packed_words_as_bits(shape: tuple[int, ...]) -> None:
    spins = np.random.default_rng(1).choice(np.array([-1, 1], np.int8), int(np.prod(shape)))
    words = packing.pack_sites(spins, shape)
    np.testing.assert_array_equal(bits.of_site_packed(words, shape), bits.packed_spins(spins))


@pytest.mark.usefixtures("unlisted")
@pytest.mark.parametrize("is_whole", [True, False], ids=["extended", "resumed"])
def test_runs_that_hold_lowest_states_as_bytes_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_whole: bool
) -> None:
    """As earlier versions began them, of lattices whose bonds are not listed."""
    model, temperatures = MODELS["drawn"](), [1.0, 2.0]
    how = {"thermalize": 2, "measure_every": 2, "seed": 3}
    path = tmp_path / "old.h5"
    with monkeypatch.context() as old:
        begin = SampledRun.__init__

        def begin_with_bytes(self: SampledRun, *given: Any) -> None:
            begin(self, *given)
            self.best.spins = np.asarray(self.best.spins)

        old.setattr(SampledRun, "__init__", begin_with_bytes)
        make = creating._make_best
        old.setattr(creating, "_make_best", lambda group, model, replicas, as_bytes: make(group, model, replicas, True))

        def save_and_stop(self: LadderRun, file: store.RunFile) -> None:
            self._save(file, is_last=True)
            raise KeyboardInterrupt

        if not is_whole:
            old.setattr(LadderRun, "go_on", save_and_stop)
        with contextlib.suppress(KeyboardInterrupt):
            ss.temper(model, temperatures, sweeps=8, out=path, **how)
    with h5py.File(path) as file:
        assert "spins" in file["best"]
    found = ss.resume(path, **({"sweeps": 16} if is_whole else {}))
    expected = ss.temper(model, temperatures, sweeps=16 if is_whole else 8, **how)
    np.testing.assert_array_equal(found.energy, expected.energy)
    np.testing.assert_array_equal(np.asarray(found.best_spins), np.asarray(expected.best_spins))
