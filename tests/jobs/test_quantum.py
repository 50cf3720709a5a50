"""Quantum runs: exact averages, the values of two independent programs, gaps, files, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from enumeration import Thermal, correlation, exact_in_time, exact_summary, neighbours
from harness import one_sentence, run

import spinsim as ss
from spinsim.analysis.autocorrelation import integrated_time
from spinsim.analysis.gaps import correlation_in_time, gaps_by_parity
from spinsim.analysis.runs import sample_of
from spinsim.analysis.summary import estimates, summarize
from spinsim.engine.measuring.correlations import Quantities
from spinsim.model.trotter import coupling_in_time, trotter
from spinsim.observables.quantities import Choice
from spinsim.observables.table import observables

K = [0.6, 0.4, 0.3]
SERIES = (
    "action", "magnetization", "correlation_in_time", "slice_magnetization_squared", "slice_magnetization_fourth",
    "magnetization_mode", "overlap", "slice_overlap_squared", "slice_overlap_fourth", "link_overlap", "overlap_mode",
    "permutation", "attempts", "accepts", "round_trips", "best_energy", "best_spins",
    "even_correlation_in_time", "link_overlap_in_space",
)  # fmt: skip


def small(kind: str) -> ss.Ising:
    """Models in space of two sites, whose space and time can be enumerated."""
    rng = np.random.default_rng(3)
    couplings = {
        "ferromagnet": 1.0,
        "samples": np.array([[1, 1], [1, -1], [-1, -1]], np.int8),
        "gaussian": np.round(np.abs(rng.normal(size=(2, 2))), 3),
    }[kind]
    return ss.Ising(ss.chain(2), couplings)


@pytest.mark.parametrize("kind", ["ferromagnet", "samples", "gaussian"])
def test_every_column_is_exact(kind: str) -> None:
    check_columns(ss.quantum(small(kind), K, 4, sweeps=6000, thermalize=200, replicas=4, measure_every=4, seed=5))


@pytest.mark.parametrize(
    ("kind", "gamma", "beta"),
    [
        ("ferromagnet", [0.5, 1.0, 2.0], 1.5),
        ("samples", [2.0, 0.8], 2.0),
        ("ferromagnet", 1.2, [0.5, 1.0, 2.5]),
        ("gaussian", [0.5, 1.0, 2.0], 1.5),
    ],
)
def test_every_column_of_the_general_form_is_exact(kind: str, gamma: list[float], beta: list[float]) -> None:
    points = {"gamma": gamma, "beta": beta}
    length = {"sweeps": 6000, "thermalize": 200, "replicas": 4, "measure_every": 4}
    check_columns(ss.quantum(small(kind), slices=4, **points, **length, seed=5))


@pytest.mark.parametrize("points", [{"k": K}, {"gamma": [0.5, 1.0, 2.0], "beta": 1.5}], ids=["isotropic", "general"])
def test_every_column_is_exact_with_houdayer_moves(points: dict) -> None:
    """Clusters grow over bonds in space and in time."""
    length = {"sweeps": 6000, "thermalize": 200, "replicas": 4, "measure_every": 4}
    result = ss.quantum(small("samples"), slices=4, **points, **length, seed=5, houdayer=2)
    assert result.config["quantum"]["moves"] == "houdayer:2"
    check_columns(result)


def check_columns(result: ss.QuantumResult) -> None:
    found, errors = summarize(result), _errors(result)
    rows, wrong, compared = [], [], set()
    for place, (k, k_time) in enumerate(zip(result.k, result.k_time, strict=True)):
        samples = [Thermal(result.model, 1 / k, sample, k_time) for sample in range(result.model.samples)]
        exact = exact_summary(samples) | exact_in_time(samples)
        for name, e in found.estimates.items():
            if name in exact and np.isfinite(exact[name]):
                error = errors[name][place] if np.isfinite(errors[name][place]) else e.error[place]
                z = (e.value[place] - exact[name]) / error
                at, value = result.axis.values[place], e.value[place]
                rows.append(f"{at} {name}: {value:.6f} +- {error:.6f}, exact {exact[name]:.6f}, z = {z:.2f}")
                compared.add(name)
                wrong += [name] * (not abs(z) <= 4)
    own = {o.name for o in observables(result.model, Choice(4, Quantities(times=(1,))))}
    assert not wrong, "\n".join(rows)
    assert own - compared <= ({"correlation_length_over_L"} if result.model.samples == 3 else set())


def _errors(result: ss.QuantumResult) -> dict[str, np.ndarray]:
    """Of averages over given samples: of time alone, as the samples are those that are enumerated."""
    each = [estimates(sample_of(result, k)) for k in range(result.model.samples)]
    return {name: np.sqrt(sum(one[name].error ** 2 for one in each)) / len(each) for name in each[0]}


def test_correlations_in_time_are_exact() -> None:
    result = ss.quantum(small("ferromagnet"), K, 4, sweeps=12_000, thermalize=200, measure_every=4, seed=6)
    found = correlation_in_time(result)
    assert found.time.tolist() == [1, 2]
    for place, k in enumerate(result.k):
        exact = [correlation(Thermal(result.model, 1 / k), time) for time in found.time]
        assert (np.abs(found.value[place] - exact) <= 4 * found.error[place]).all()
    np.testing.assert_array_equal(result.action_in_time + result.action_in_space, result.action)


@pytest.mark.parametrize("couplings", [1.0, [0.8, -0.3, 1.1]])
def test_products_of_neighbours_are_exact(couplings) -> None:
    """Their correlations in time, and the square of their averages from two copies."""
    model = ss.Ising(ss.chain(3), couplings)
    times = {"sweeps": 6000, "thermalize": 200, "measure_every": 4, "even_correlations": True}
    result = ss.quantum(model, K, 2, seed=6, replicas=3, **times)
    even = result.in_time.even
    for place, k in enumerate(result.k):
        correlations, squared = neighbours(Thermal(result.model, 1 / k))
        for series, exact in (
            (even.correlation[:, 0, :, place, 0], correlations[1]),
            (even.link_overlap[:, 0, :, place], squared),
        ):
            error = integrated_time(series, chain_axis=1).mean_error
            assert abs(series.mean() - exact) <= 4 * error


def test_products_of_neighbours_need_neighbours() -> None:
    with pytest.raises(ss.InputError, match="has no bonds in space to correlate in time: leave"):
        ss.quantum(ss.Ising(ss.chain(1)), K, 4, sweeps=20, even_correlations=True)


def test_gaps_of_a_known_decay() -> None:
    """Series whose C(t) is one cosh with noise that is correlated in t."""
    model = trotter(ss.Ising(ss.chain(1)), 32)
    result = ss.quantum(ss.Ising(ss.chain(1)), [0.5, 0.4], 32, sweeps=8000, thermalize=100, measure_every=4)
    found = gaps_by_parity(result)["odd"]
    exact = -np.log(np.tanh(result.k))  # of one spin in a transverse field: ln(lambda_0 / lambda_1)
    assert model.sites == 32
    assert (np.abs(found.gap[0] - exact) <= 4 * found.error[0]).all(), (found, exact)
    assert (found.last[0] > found.first[0]).all()


LADDERS = {
    "k": {"k": [0.3, 0.4, 0.5]},
    "gamma": {"gamma": [3.0, 2.0, 2.5], "beta": 1.5},
    "beta": {"gamma": 2.0, "beta": [0.5, 1.5, 1.0]},
}


@pytest.mark.parametrize(
    ("couplings", "axis"), [("pm-j", "k"), ("gaussian", "beta"), pytest.param("pm-j", "gamma", marks=pytest.mark.slow)]
)
def test_files_and_memory_agree_and_runs_go_on(tmp_path, couplings: str, axis: str) -> None:
    model = ss.EdwardsAnderson(ss.square(3), samples=2, seed=3, couplings=couplings)
    settings = LADDERS[axis] | {"slices": 6, "thermalize": 20, "seed": 8, "even_correlations": True}
    whole = ss.quantum(model, sweeps=100, **settings)
    saved = ss.load(whole.save(tmp_path / "saved.h5"))
    ss.quantum(model, sweeps=40, **settings, out=tmp_path / "part.h5")
    longer = ss.resume(tmp_path / "part.h5", sweeps=100)
    stopped = _interrupted(model, tmp_path / "stopped.h5", sweeps=100, **settings)
    for other in (saved, longer, stopped):
        for name in (*SERIES, "k", "k_time", "gamma", "beta", "time", "sweep"):
            np.testing.assert_array_equal(getattr(other, name), getattr(whole, name), err_msg=name)
    expected = {"k": [0.5, 0.4, 0.3], "gamma": [2.0, 2.5, 3.0], "beta": [1.5, 1.0, 0.5]}[axis]
    assert (whole.axis.name, whole.axis.values.tolist()) == (axis, expected)
    assert saved.slices == 6
    assert {"k", "k_time", "gamma", "beta"} <= set(whole.dataset().coords)
    np.testing.assert_allclose(whole.gamma * whole.k, np.arctanh(np.exp(-2 * whole.k_time)))
    np.testing.assert_allclose(whole.beta, 6 * whole.k)


def _interrupted(model: ss.Ising, out, **settings) -> ss.QuantumResult:
    """A run that is stopped twice and resumed from its checkpoints."""
    calls = iter(range(100))

    def stop(updates: int) -> None:
        if next(calls) == 3:
            raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("spinsim.engine.cpu.AT_ONCE", 2)  # so that a short run tells of its updates often enough
        with pytest.raises(KeyboardInterrupt):
            ss.quantum(model, **settings, out=out, checkpoint_every=0.0, on_updates=stop)
    return ss.resume(out)


@pytest.mark.emulated
@pytest.mark.parametrize(
    ("couplings", "axis"), [("pm-j", "k"), ("gaussian", "k"), ("pm-j", "gamma"), ("gaussian", "beta")]
)
def test_devices_agree(emulated, couplings: str, axis: str) -> None:
    model = ss.EdwardsAnderson(ss.square(3, 2), samples=2, seed=3, couplings=couplings)
    run = {"slices": 6, "sweeps": 30, "thermalize": 10, "even_correlations": True}
    one, other = (ss.quantum(model, **LADDERS[axis], **run, device=device) for device in ("cpu", "cuda"))
    for name in SERIES:
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)


@pytest.fixture
def told(capsys, monkeypatch, tmp_path) -> Callable[[Path, tuple[tuple[str, str], ...]], tuple[str, str]]:
    """What ``show`` and ``analyze --all`` print of a whole file, which can be drawn and has a column in each table."""

    def tell(path: Path, columns: tuple[tuple[str, str], ...]) -> tuple[str, str]:
        for by, column in columns:
            assert column in ss.table(path, by=by)
        assert run(capsys, monkeypatch, "check", path).status == 0
        assert run(capsys, monkeypatch, "plot", path, "--what", "time", "--out", tmp_path / "time.pdf").status == 0
        return run(capsys, monkeypatch, "show", path).out, run(capsys, monkeypatch, "analyze", path, "--all").out

    return tell


@pytest.mark.system
def test_commands(do, told, capsys, monkeypatch, tmp_path) -> None:
    line = "quantum --size 4 --couplings pm-j --k 0.25:0.31:4 --slices 8 --sweeps 2000 --thermalize 100 --quiet"
    path = do(line, "a.h5")
    columns = ("k", "gamma"), ("sample", "sample"), ("time", "correlation"), ("gap", "energy_gap")
    shown, analysed = told(path, columns)
    for word in ("Gamma", "<sigma_x>", "<q_eq^2>", "gap a step", "Verdict", "square-4x4-pm-j-8-slices"):
        assert word in shown
    assert "U_qeq" in analysed
    assert "gaps of even parity: take --even-correlations" in shown
    larger = do(line.replace("--size 4", "--size 5"), "b.h5")
    crossed = run(capsys, monkeypatch, "plot", path, larger, "--what", "crossings", "--out", tmp_path / "crossings.pdf")
    assert crossed.status == 0
    assert "L = 4 and L = 5" in crossed.out


@pytest.mark.system
def test_commands_of_the_general_form(do, told, capsys, monkeypatch, tmp_path) -> None:
    line = "quantum --size 3 --gamma 2:4:4 --beta 2 --slices 8 --sweeps 2000 --thermalize 100 --quiet"
    path = do(line, "a.h5")
    shown, analysed = told(path, (("gamma", "k_time"), ("sample", "beta"), ("time", "gamma"), ("gap", "energy_gap")))
    for word in ("Gamma", "<sigma_x>", "<m_eq^2>", "gap a step", "the smallest Gamma", "beta"):
        assert word in " ".join(shown.split())  # lines are broken to a width
    assert "C/N" in analysed
    larger = do(line.replace("--size 3", "--size 4").replace("--slices 8", "--slices 4"), "b.h5")
    finer = do(line.replace("--slices 8 --sweeps 2000", "--slices 10 --sweeps 100"), "d.h5")
    one_sentence(run(capsys, monkeypatch, "plot", path, finer), "two runs have size L = 3")
    crossed = run(capsys, monkeypatch, "plot", path, larger, "--what", "crossings", "--out", tmp_path / "crossings.pdf")
    assert crossed.status == 0
    assert "L = 3 and L = 4" in crossed.out
    other = do("quantum --size 4 --k 0.2,0.3 --slices 8 --sweeps 200 --quiet", "c.h5")
    one_sentence(run(capsys, monkeypatch, "plot", path, other), "go along Gamma and k: give runs along one of them")
    one_sentence(
        run(capsys, monkeypatch, "analyze", path, "--reweight", "2.5"), "is not reweighted to other values of Gamma"
    )


def test_configurations_of_the_general_form_are_counted_again(tmp_path) -> None:
    model, out = ss.EdwardsAnderson(ss.square(3), samples=2, seed=3), tmp_path / "a.h5"
    whole = ss.quantum(model, **LADDERS["gamma"], slices=6, sweeps=40, thermalize=20, out=out, save_configurations=2)
    again = ss.recount(out)
    for name in ("action", "correlation_in_time", "overlap", "magnetization_mode"):
        np.testing.assert_array_equal(getattr(again, name), getattr(whole, name)[1::2], err_msg=name)


def test_the_coupling_in_time() -> None:
    """Its bits are stated, as trajectories depend on them."""
    points = [(2.0, 0.1), (3.04438, 0.03125), (1e-8, 0.1), (100.0, 0.1)]
    found = [coupling_in_time(*point) for point in points]
    assert [one.hex() for one in found] == [
        "0x1.9f65df1325627p-1",
        "0x1.2d7f5cbd0d392p+0",
        "0x1.4b927f32bffb8p+3",
        "0x1.1b48655f37261p-29",
    ]
    np.testing.assert_allclose(found, [-np.log(np.tanh(gamma * step)) / 2 for gamma, step in points], rtol=1e-6)


@pytest.mark.system
def test_commands_tell_gaps_of_both_parities(do, capsys, monkeypatch, tmp_path) -> None:
    line = "quantum --lattice chain --size 3 --couplings gaussian --k 0.5:0.6:2 --slices 32 --sweeps 2000 --quiet"
    averages = do(f"{line} --samples 2 --even-correlations", "averages.h5")
    leading = do(f"{line} --even-correlations --save-configurations 1", "leading.h5")
    for path, words in ((averages, ("median gap", "average: from")), (leading, ("gap a step", "operators:"))):
        shown = run(capsys, monkeypatch, "show", path).out
        assert all(word in shown for word in ("    odd", "   even", *words)), shown
    assert "average" not in shown
    assert {"operators", "even_gap", "even_gap_error", "even_chi_squared"} <= set(ss.table(averages, by="gap"))
    assert "even_correlation_error" in ss.table(averages, by="time")
    assert ss.table(leading, by="gap")["operators"].tolist() == [3, 3]
    drawn = run(capsys, monkeypatch, "plot", averages)
    assert "-time.pdf" in drawn.out
    assert "-gaps.pdf" in drawn.out
    assert run(capsys, monkeypatch, "plot", leading, "--what", "time", "--out", tmp_path / "leading.pdf").status == 0
    caption = " ".join((tmp_path / "leading.txt").read_text().split())
    assert "Even parity: the combination of 3 products of two spins that shows the lowest level best." in caption


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ("--slices 7", "slices 7 are odd, but the update needs two colours in time"),
        ("--slices 0", "slices 0 is out of range: give a whole number from 2 to"),
        ("--k 0", "k '0' is not all above 0 and finite"),
        ("--k 1e-320", "k 9.99989e-321 leaves spins that do not interact: give values from 1e-09 to 10"),
        ("--k 0.3,400", "k 400 leaves no spin free in time: give values from 1e-09 to 10"),
        ("--k auto:0.1:11", "k 11 leaves no spin free in time: give values from 1e-09 to 10"),
        ("--size 4 --gamma 1e300 --beta 1e-300", "the step in time, beta / slices, is 3.13e-302, but couplings of"),
        ("--size 4 --gamma 1e-70 --beta 1e70", "the step in time, beta / slices, is 3.13e+68, but couplings of"),
        ("--k=-0.3,0.2", "is not all above 0 and finite"),
        ("--k 0.3,0.3", "k '0.3,0.3' has equal values: give each once"),
        ("--gamma 2", "gamma '2' has no beta: give both for the general form, or leave gamma out"),
        ("--beta 2", "beta '2' has no gamma: give both for the general form, or leave beta out"),
        ("--gamma 2 --beta 1 --k 0.3", "k '0.3' is for the isotropic form and gamma '2' for the general one"),
        ("--gamma 2,3 --beta 1,2", "2 values of gamma and 2 of beta are no ladder: give one number for one of them"),
        ("--gamma 0:2:3 --beta 1", "gamma '0:2:3' is not all above 0 and finite"),
        ("--gamma 2 --beta 0", "beta '0' is not all above 0 and finite"),
        ("--gamma 2,3,2 --beta 1", "gamma 2 stands there twice: give each value once"),
        ("--gamma 1e-10 --beta 1", "is 3.13e-12, which leaves no spin free in time: give fewer slices"),
        ("--gamma 2 --beta 1e9", "which leaves slices that do not interact: give more slices"),
        ("--gamma auto:3:2 --beta 1", "gamma 'auto:3:2' cannot be placed: give auto:LO:HI with LO < HI"),
        ("--gamma auto:2:3:1 --beta 1", "or auto:LO:HI:COUNT with a COUNT from 2 to 1000"),
        ("--gamma auto:2:3 --beta auto:1:2", "cannot both be placed: give one number for one of them"),
        ("--gamma auto:2:3 --beta 1,2", "gamma 'auto:2:3' is placed at one beta, but '1,2' are 2: give one number"),
        ("--gamma 2 --beta auto:1:1e9", "which leaves slices that do not interact: give more slices"),
        ("--gamma 2 --beta 1 --slices 7", "slices 7 are odd"),
        ("--k auto:0.3:0.2", "k 'auto:0.3:0.2' cannot be placed"),
        ("--correlation-times 1,17", "correlation time 17 is not allowed: give whole numbers from 1 to 16"),
        ("--correlation-times 1.5", "correlation time 1.5 is not allowed"),
        ("--size 2048 --slices 1048576", "of memory but"),
    ],
)
def test_refusals(capsys, monkeypatch, given: str, sentence: str) -> None:
    one_sentence(run(capsys, monkeypatch, "quantum", *given.split()), sentence)


@pytest.mark.parametrize(
    ("gamma", "beta", "couplings"),
    [("auto:1:3", "2", "pm-j"), ("1.5", "auto:0.3:2", "gaussian")],
    ids=["gamma", "beta"],
)
def test_ladders_of_the_general_form_are_placed(gamma: str, beta: str, couplings: str) -> None:
    space = ss.EdwardsAnderson(ss.square(4), couplings=couplings, samples=2, seed=1)
    how = {"slices": 16, "thermalize": 100, "replicas": 4, "seed": 2}
    placed = ss.quantum(space, gamma=gamma, beta=beta, sweeps=2000, **how)
    axis = placed.points.axis
    values = np.sort(placed.points.values)
    assert (values[0], values[-1]) == ((1, 3) if axis == "gamma" else (0.3, 2))
    assert 0.25 < placed.swap_rate.min() < placed.swap_rate.max() < 0.5
    history = placed.placement.temperature[-1]
    assert (np.diff(history[np.isfinite(history)]) > 0).all()
    ladder = {"gamma": values, "beta": 2} if axis == "gamma" else {"gamma": 1.5, "beta": values}
    given = ss.quantum(space, **ladder, sweeps=100, **how)
    even = ss.quantum(space, **ladder | {axis: np.geomspace(values[0], values[-1], len(values))}, sweeps=2000, **how)
    assert np.ptp(placed.swap_rate) < np.ptp(even.swap_rate)
    np.testing.assert_array_equal(given.action, placed.action[: len(given.action)])


def test_refusals_of_calls() -> None:
    space = ss.Ising(ss.chain(4))
    with pytest.raises(ss.InputError, match="has 4 slices in time already"):
        trotter(trotter(space, 4), 4)
    with pytest.raises(ss.InputError, match="slices 3 are odd"):
        ss.quantum(space, 0.3, 3)
    with pytest.raises(ss.InputError, match="too many for exact fourth powers of overlaps: give"):
        trotter(ss.Ising(ss.square(256)), 2)
    in_field = ss.quantum(ss.Ising(ss.chain(2), field=0.5), 0.3, 4, sweeps=40, thermalize=0)
    with pytest.raises(ss.InputError, match="in a field, where parity is broken"):
        gaps_by_parity(in_field)
    with pytest.raises(ss.InputError, match="has no slices in time: give the file of a quantum run"):
        gaps_by_parity(ss.temper(space, [1.0, 2.0], 40, 0))
