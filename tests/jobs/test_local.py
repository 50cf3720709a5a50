"""Local susceptibilities of quantum runs: exact sums, files, what is told of them and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from enumeration import Thermal
from harness import one_sentence, run

import spinsim as ss
from spinsim.engine.measuring.cpu import world_line_sums
from spinsim.model.trotter import trotter
from spinsim.packing import packed_spins

K = [0.4, 0.3]
HOW = {"thermalize": 20, "measure_every": 10, "local_susceptibility": True, "save_configurations": 1, "seed": 3}


def squares_of(result: ss.QuantumResult) -> np.ndarray:
    """The sums from saved configurations, (samples, copies, points, sites of space)."""
    lines = result.model.graph.world_lines()
    saved = result.configurations
    rows = [saved.row(number).astype(np.int64) for number in range(saved.shape[0])]
    return sum(row[..., lines].sum(axis=-1) ** 2 for row in rows)


SPACES = {  # spaces, slices and copies
    "pm-j": (ss.EdwardsAnderson(ss.square(3, 2), samples=2, seed=3), 8, 3),
    "no whole bytes": (ss.EdwardsAnderson(ss.square(3), seed=3), 6, 3),
    "two sites in a cell": (ss.Ising(ss.honeycomb(2, 2)), 8, 3),
    "gaussian": (ss.EdwardsAnderson(ss.chain(5), couplings="gaussian", seed=3), 4, 3),
    "graph": (ss.Ising(ss.Graph(3, [(0, 1), (1, 2)]), [1.0, -1.0]), 16, 3),
    "two blocks of replicas": (ss.Ising(ss.chain(18)), 2, 65),
    "unpacked, two blocks of replicas": (ss.EdwardsAnderson(ss.chain(18), couplings="gaussian", seed=3), 2, 65),
    "more slices than a byte counts": (ss.EdwardsAnderson(ss.chain(3), couplings="gaussian", seed=3), 512, 1),
}


@pytest.mark.parametrize("name", SPACES)
def test_sums_are_those_of_saved_configurations(device: str, name: str) -> None:
    space, slices, copies = SPACES[name]
    result = ss.quantum(space, K, slices, sweeps=60, replicas=copies, device=device, **HOW)
    np.testing.assert_array_equal(result.local_squares, squares_of(result))
    assert result.local_squares.dtype == np.int64
    np.testing.assert_array_equal(result.local_measurements, np.full(space.samples, 6))
    susceptibility = result.k[:, None] * result.local_squares / (6 * slices)
    np.testing.assert_allclose(result.local_susceptibility, susceptibility)


@pytest.mark.parametrize("couplings", ["pm-j", "gaussian"])
def test_sums_of_the_general_form(device: str, couplings: str) -> None:
    space = ss.EdwardsAnderson(ss.square(3), couplings=couplings, samples=2, seed=3)
    result = ss.quantum(space, slices=4, gamma=[1, 2, 3], beta=2, sweeps=60, replicas=2, device=device, **HOW)
    np.testing.assert_array_equal(result.local_squares, squares_of(result))


def test_sums_along_world_lines() -> None:
    for space, slices, _ in SPACES.values():
        graph = trotter(space, slices).graph
        spins = np.random.default_rng(1).choice(np.array([-1, 1], np.int8), (2, 3, graph.sites))
        expected = spins[..., graph.world_lines()].sum(axis=-1, dtype=np.int64)
        np.testing.assert_array_equal(world_line_sums(graph, packed_spins(spins)), expected)


def test_averages_are_exact() -> None:
    space = ss.Ising(ss.chain(2), [1.0, -0.4])
    result = ss.quantum(space, K, 4, 4000, 200, 10, local_susceptibility=True, measure_every=5, seed=5)
    lines = result.model.graph.world_lines()
    for place, k in enumerate(result.k):
        thermal = Thermal(result.model, 1 / k)
        exact = [k * thermal.mean(thermal.spins[line].sum(axis=0) ** 2) / 4 for line in lines]
        found = result.local_susceptibility[0, :, place]
        assert (np.abs(found.mean(axis=0) - exact) <= 4 * found.std(axis=0, ddof=1) / np.sqrt(10)).all()


def interrupted(space: ss.Ising, path, **settings) -> ss.QuantumResult:
    """A run that is stopped after some measurements and read back, and then goes on."""
    calls = iter(range(100))

    def stop(updates: int) -> None:
        if next(calls) == 3:
            raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("spinsim.engine.cpu.AT_ONCE", 2)  # so that a short run tells of its updates often enough
        patch.setattr("spinsim.engine.measuring.cuda.SMALL_BYTES", 0)
        with pytest.raises(KeyboardInterrupt):
            ss.quantum(space, **settings, out=path, checkpoint_every=0.0, on_updates=stop)
    part = ss.load(path)
    assert not part.finished
    count = int(part.local_measurements[0])
    assert 0 < count < 12
    assert (part.local_squares <= count * part.slices**2).all()
    return ss.resume(path)


def test_files_and_memory_agree_and_runs_go_on(device: str, tmp_path) -> None:
    space = ss.EdwardsAnderson(ss.square(3), samples=2, seed=3)
    settings = {"k": K, "slices": 8, "device": device, **HOW}
    whole = ss.quantum(space, sweeps=120, **settings)
    saved = ss.load(whole.save(tmp_path / "saved.h5"))
    ss.quantum(space, sweeps=60, **settings, out=tmp_path / "part.h5")
    longer = ss.resume(tmp_path / "part.h5", sweeps=120)
    stopped = interrupted(space, tmp_path / "stopped.h5", sweeps=120, **settings)
    for other in (saved, longer, stopped):
        np.testing.assert_array_equal(other.local_squares, whole.local_squares)
        np.testing.assert_array_equal(other.local_measurements, [12, 12])
    assert ss.recount(tmp_path / "part.h5").local_squares is None
    without = ss.quantum(space, sweeps=120, **settings | {"local_susceptibility": False})
    np.testing.assert_array_equal(without.action, whole.action)
    assert without.attributes["config_sha256"] != whole.attributes["config_sha256"]
    with pytest.raises(ss.InputError, match="no local susceptibilities: make it with local_susceptibility=True"):
        ss.table(without, by="site")


@pytest.mark.system
def test_commands(do, capsys, monkeypatch, tmp_path) -> None:
    line = "quantum --size 3 --couplings pm-j --samples 2 --k 0.3,0.4 --slices 8 --sweeps 400 --quiet"
    path = do(f"{line} --local-susceptibility")
    assert run(capsys, monkeypatch, "check", path).status == 0
    table = ss.table(path, by="site")
    assert len(table) == 2 * 2 * 9
    result = ss.load(path)
    np.testing.assert_allclose(table["local_susceptibility"], result.local_susceptibility.mean(axis=1).ravel())
    difference = np.abs(np.diff(result.local_susceptibility, axis=1)).ravel() / 2  # of two copies
    np.testing.assert_allclose(table["local_susceptibility_error"], difference)
    figure = tmp_path / "local.pdf"
    assert run(capsys, monkeypatch, "plot", path, "--what", "local", "--out", figure).status == 0
    assert "decimal logarithms" in figure.with_suffix(".txt").read_text()
    field = f"{line} --field 0.1 --local-susceptibility --out b.h5"
    one_sentence(run(capsys, monkeypatch, *field.split()), "in a field", "leave local_susceptibility out")
    assert not list(tmp_path.rglob("b.h5"))
