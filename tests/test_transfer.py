"""Transfer matrices: exact levels, Lanczos against dense matrices, files, bad input."""

from __future__ import annotations

import json
from functools import partial

import h5py
import numpy as np
import pytest
from harness import contents, one_sentence, run
from scipy.sparse.linalg import eigsh

import spinsim as ss
from spinsim.analysis.onsager import CRITICAL_TEMPERATURE
from spinsim.analysis.strips import conformal_charges, extrapolate, length_crossings, strip_levels
from spinsim.config import Transfer, build_config
from spinsim.engine.cpu.threads import Threads
from spinsim.run.transferring import Work
from spinsim.transfer_matrix import (
    Layer,
    NotConvergedError,
    Settings,
    Solver,
    ThickRestart,
    TransferOperator,
    Vectors,
    two_vectors,
)
from spinsim.transfer_matrix.lanczos import reference
from spinsim.transfer_matrix.points import make_points

K_C = 1 / CRITICAL_TEMPERATURE
SECTORS = ("even", "odd")


def rule(side: int) -> np.ndarray:
    """Couplings of a square layer by the number of its bond."""
    return np.array([1 - 2 * ((b * 2654435761 % 2**32).bit_count() % 2) for b in range(2 * side**2)])


EXACT = {
    "width 4": (ss.Ising(ss.chain(4)), K_C, [3.7871365641, 3.5846258451, None]),
    "width 8": (ss.Ising(ss.chain(8)), K_C, [7.4705965873, 7.3717624092, None]),
    "3 x 3, rule": (ss.Ising(ss.square(3), rule(3)), 0.29, [7.522239217, 7.010022807, 6.162161995]),
    "4 x 4, rule": (ss.Ising(ss.square(4), rule(4)), 0.29, [13.333753945, 12.961518049, 12.331355153]),
    "4 x 4": (ss.Ising(ss.square(4)), 0.22165463, [12.541019930, 12.215350846, 11.337934591]),
}


@pytest.mark.parametrize("method", ["butterfly", "kronecker"])
@pytest.mark.parametrize("name", EXACT)
def test_recorded_values(device: str, method: str, name: str) -> None:
    model, k, expected = EXACT[name]
    if device == "cuda" and model.sites < 13:
        method = "auto"
    found = ss.transfer(model, k=k, method=method, device=device).log_eigenvalue
    for value, level in zip(expected, (found["even"][0], found["odd"][0], found["even"][1]), strict=True):
        if value is not None:
            assert level == pytest.approx(value, abs=1e-9)


@pytest.mark.parametrize(("width", "k", "k_time"), [(12, K_C, K_C), (12, 0.3, 0.5), (16, K_C, K_C), (16, 0.6, 0.5)])
def test_strips_in_closed_form(device: str, width: int, k: float, k_time: float) -> None:
    found = ss.transfer(ss.Ising(ss.chain(width)), k=k, k_time=k_time, device=device)
    for sector in SECTORS:
        np.testing.assert_allclose(found.log_eigenvalue[sector], strip_levels(width, k, k_time, sector, 2), atol=1e-9)


def dense(model: ss.Ising, sample: int, k: float, k_time: float) -> np.ndarray:
    """The whole matrix T, element by element from its definition."""
    states = np.arange(1 << model.sites)
    spins = 2 * ((states >> np.arange(model.sites)[:, None]) & 1) - 1
    energy = model.energy(np.broadcast_to(spins, (model.samples, *spins.shape)))[sample]
    distance = np.array([s.bit_count() for s in range(len(states))])[states[:, None] ^ states]
    half = np.exp(-k / 2 * energy)
    return half[:, None] * np.exp(k_time * (model.sites - 2 * distance)) * half


def in_sector(matrix: np.ndarray, sector: str) -> np.ndarray:
    """A dense matrix between the states that are even or odd under the flip of all spins."""
    if sector == "all":
        return matrix
    half = len(matrix) // 2
    sign = 1 if sector == "even" else -1
    return matrix[:half, :half] + sign * matrix[:half, ::-1][:, :half]


GLASS = partial(ss.EdwardsAnderson, seed=4)
LAYERS = {
    "one site": ss.Ising(ss.chain(1)),
    "two sites": ss.Ising(ss.chain(2)),
    "five sites, open": GLASS(ss.chain(5, periodic=False), couplings="gaussian"),
    "chain of 10": ss.Ising(ss.chain(10)),  # momenta +-q are degenerate
    "square, pm-j": GLASS(ss.square(3), samples=2),
    "square, ferromagnet": ss.Ising(ss.square(3)),
    "10 sites, gaussian": GLASS(ss.square(5, 2), couplings="gaussian"),
    "11 sites, pm-j": GLASS(ss.chain(11)),
    "9 sites, field": GLASS(ss.square(3), couplings="gaussian", field=0.4),
    "8 sites, field": GLASS(ss.square(4, 2), field=0.25),
    "random fields": ss.Ising(ss.chain(8), 1.0, np.linspace(-1, 1, 8)),
    "graph": ss.Ising(ss.Graph(7, np.array([[0, 3], [3, 6], [6, 1], [1, 4], [0, 5], [2, 5]], np.int32)), -0.5),
}


@pytest.mark.parametrize("name", LAYERS)
def test_levels_of_dense_matrices(device: str, name: str) -> None:
    model, k, k_time = LAYERS[name], 0.45, 0.35
    sample = model.samples - 1
    states = 1 << (model.sites - (not np.any(model.fields)))
    found = ss.transfer(model, k=k, k_time=k_time, eigenvalues=min(6, states), device=device)
    whole = dense(model, sample, k, k_time)
    for i, sector in enumerate(found.sectors):
        exact = np.linalg.eigvalsh(in_sector(whole, sector))[::-1][: min(6, states)]
        np.testing.assert_allclose(np.exp(found.levels[sample, 0, i]), exact, rtol=1e-10)
    assert found.residual.max() <= 1e-9


def operators(layer: Layer, device: str) -> list[TransferOperator]:
    if device == "cuda" and layer.bits < 12:
        return [TransferOperator(layer, device, "kronecker")]
    return [TransferOperator(layer, device, method) for method in ("butterfly", "kronecker")]


@pytest.mark.parametrize("sector", ["even", "odd", "all"])
@pytest.mark.parametrize("sites", [1, 2, 7, 12, 13, 14, 17, 20, 22])
def test_products(device: str, sites: int, sector: str) -> None:
    """Both methods against factors that are applied one by one."""
    model = GLASS(ss.chain(sites), couplings="gaussian", field=0.2 if sector == "all" else 0.0)
    layer = Layer(model, 0, 0.4, 0.3, sector)
    vectors = Vectors(layer.dimension, device)
    x, y = vectors.empty(), vectors.empty()
    vectors.random(3, 0, 1, x)
    diagonal = layer.diagonal(np)
    expected = vectors.numpy(x) * diagonal
    expected = expected + layer.sign * layer.ratio * expected[::-1]
    for bit in range(layer.bits):
        pair = np.array([[1, layer.ratio], [layer.ratio, 1]])
        expected = np.einsum("ab,hbl->hal", pair, expected.reshape(-1, 2, 1 << bit)).reshape(-1)
    expected *= diagonal
    for operator in operators(layer, device):
        operator.apply(x, y)
        np.testing.assert_allclose(vectors.numpy(y), expected, atol=1e-14 * np.abs(expected).max())


def test_random_vectors_are_the_same_everywhere(device: str) -> None:
    for size in (1, 5, 2**17 + 3):
        vectors, plain = Vectors(size, device), Vectors(size, "cpu", 3)
        x, y = vectors.empty(), plain.empty()
        vectors.random(2**40 + 7, 3, 2, x)
        plain.random(2**40 + 7, 3, 2, y)
        np.testing.assert_array_equal(vectors.numpy(x), y)
    assert abs(y.mean()) < 5 / np.sqrt(3 * y.size)
    assert (y**2).mean() == pytest.approx(1 / 3, rel=0.02)


def test_it_is_a_linear_operator() -> None:
    """Of scipy: users bring their own solver; and the textbook's Lanczos finds the same."""
    operator = TransferOperator(Layer(GLASS(ss.square(4)), 0, 0.29, 0.29, "odd"))
    own = solve(operator, 2)
    theirs = eigsh(operator, 2, which="LA", return_eigenvectors=False)[::-1]
    np.testing.assert_allclose(own.value, theirs, rtol=1e-12)
    start = np.random.default_rng(1).normal(size=operator.shape[0])
    np.testing.assert_allclose(reference(operator.matvec, start, 40)[:2], own.value, rtol=1e-10)
    columns = np.random.default_rng(1).normal(size=(operator.shape[0], 2))
    np.testing.assert_allclose(operator @ columns, np.stack([operator @ c for c in columns.T], axis=1))


@pytest.mark.gpu
def test_cupys_solver_takes_it() -> None:
    from cupyx.scipy.sparse.linalg import eigsh as theirs

    operator = TransferOperator(Layer(GLASS(ss.square(4)), 0, 0.29, 0.29, "odd"), "cuda")
    values = theirs(operator, 2, which="LA", return_eigenvectors=False).get()
    np.testing.assert_allclose(solve(operator, 2).value, np.sort(values)[::-1], rtol=1e-12)


def solve(operator: TransferOperator, wanted: int, **settings):
    iteration = ThickRestart(operator.apply, Vectors(operator.layer.dimension, operator.device), wanted, **settings)
    while not iteration.done:
        iteration.cycle()
    return iteration.levels()


def test_residuals_are_true() -> None:
    operator = TransferOperator(Layer(GLASS(ss.square(4)), 0, 0.29, 0.29, "even"))
    found = solve(operator, 4, tolerance=1e-6)
    for value, residual, x in zip(found.value, found.residual, found.vectors, strict=True):
        true = np.linalg.norm(operator @ x - value * x) / value
        assert true == pytest.approx(residual, rel=1e-3, abs=1e-14)
        assert np.linalg.norm(x) == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("name", ["4 x 4, rule", "width 8"])
def test_without_a_stored_basis(device: str, name: str) -> None:
    model, k, _ = EXACT[name]
    stored, other = (ss.transfer(model, k=k, basis=basis, device=device) for basis in (None, 0))
    np.testing.assert_allclose(stored.levels, other.levels, rtol=1e-12)
    assert other.residual.max() < 1e-9
    assert np.isnan(other.sigma).all()


def test_ghosts_are_told_from_levels() -> None:
    """So many steps that the leading level has come back several times."""
    layer = Layer(ss.Ising(ss.chain(8)), 0, K_C, K_C, "even")
    operator = TransferOperator(layer)
    found = two_vectors(operator.apply, Vectors(layer.dimension), 5, tolerance=1e-10)
    exact = np.unique(np.round(strip_levels(8, K_C, K_C, "even", 20), 9))[::-1][:5]
    np.testing.assert_allclose(np.log(found.value) + operator.log_scale, exact, atol=1e-8)


def fermions(sites: int, coupling: float, field: float) -> float:
    """Gap between the even and the odd ground state of the periodic transverse-field Ising chain.

    P. Pfeuty, Ann. Phys. 57, 79 (1970).
    """
    even, odd = ((2 * np.arange(sites) + shift) * np.pi / sites for shift in (1, 0))
    one = np.sqrt(coupling**2 + field**2 - 2 * coupling * field * np.cos(even)).sum()
    other = np.sqrt(coupling**2 + field**2 - 2 * coupling * field * np.cos(odd[1:])).sum() - (field - coupling)
    return float(one - other)


def test_quantum_chain_in_the_limit_of_small_time_steps() -> None:
    """The gap of H = - J sum s^z s^z - Gamma sum s^x; the Trotter error falls as the square of the time step."""
    coupling, field, steps = 1.0, 1.3, np.array([0.1, 0.05, 0.025])
    k_time = -np.log(np.tanh(field * steps)) / 2
    found = ss.transfer(ss.Ising(ss.chain(8)), k=coupling * steps, k_time=k_time, eigenvalues=1, tolerance=1e-12)
    gap = (found.levels[0, :, 0, 0] - found.levels[0, :, 1, 0]) / steps
    error = gap - fermions(8, coupling, field)
    np.testing.assert_allclose(error[:-1] / error[1:], 4, rtol=0.02)
    assert abs(error[-1]) < 1e-3


@pytest.mark.parametrize("field", [0.0, 0.4])
def test_what_follows_from_the_levels(device: str, field: float) -> None:
    """Energies, lengths and matrix elements against dense eigenvectors and derivatives."""
    model = GLASS(ss.square(3), couplings="gaussian", field=field)
    k, step = 0.5, 1e-3
    found = ss.transfer(model, k=[k - step, k, k + step], tolerance=1e-12, device=device)
    slope = (found.levels[0, 2, 0, 0] - found.levels[0, 0, 0, 0]) / (2 * step) / model.sites
    assert found.energy_per_site[0, 1] == pytest.approx(-slope, abs=1e-5)
    assert found.free_energy_per_site[0, 1] == pytest.approx(-found.levels[0, 1, 0, 0] / (9 * k))
    values, states = np.linalg.eigh(dense(model, 0, k, k))
    values, states = values[::-1], states[:, ::-1]
    spins = 2 * ((np.arange(512) >> np.arange(9)[:, None]) & 1) - 1
    parity = np.sign((states * states[::-1]).sum(axis=0)) if not field else np.ones(512)
    even, odd = (np.flatnonzero(parity == sign)[:2] for sign in (1, -1 if not field else 1))
    ends = model.graph.edges
    for level in range(2):
        sigma = np.abs(spins @ (states[:, even[0]] * states[:, odd[level]]))
        np.testing.assert_allclose(np.abs(found.sigma[0, 1, level]), sigma, atol=1e-9)
        pairs = np.abs((spins[ends[:, 0]] * spins[ends[:, 1]]) @ (states[:, even[0]] * states[:, even[level]]))
        np.testing.assert_allclose(np.abs(found.sigma_sigma[0, 1, level]), pairs, atol=1e-9)
    chosen = slice(None) if not field else slice(1, None)
    lengths = 1 / np.log(values[even[0]] / values[odd[chosen]])
    np.testing.assert_allclose(found.correlation_length[0, 1, -1, chosen], lengths, rtol=1e-9)
    assert found.gap[0, 1] == pytest.approx(np.log(values[0] / values[1]), rel=1e-9)


def test_no_number_of_threads_changes_a_bit() -> None:
    model = GLASS(ss.chain(19))
    one, three = (ss.transfer(model, k=0.5, threads=n, device="cpu") for n in (1, 3))
    np.testing.assert_array_equal(one.levels, three.levels)
    np.testing.assert_array_equal(one.sigma, three.sigma)


def test_interrupted_iterations_go_on_with_the_same_bits(device: str) -> None:
    model, settings = GLASS(ss.square(4)), Settings(eigenvalues=3, device=device)

    def solver() -> Solver:
        return Solver(model, 0, 0.29, 0.29, SECTORS, settings, 22, Threads(1))

    whole, part = solver(), solver()
    cycles = 0
    while not whole.done:
        whole.advance()
        cycles += 1
    for _ in range(cycles - 1):
        part.advance()
        saved = part.snapshot()
        part = solver()
        part.restore(saved)
    part.advance()
    assert part.done
    for name, value in whole.row().items():
        np.testing.assert_array_equal(part.row()[name], value)


def test_extreme_couplings() -> None:
    model = ss.Ising(ss.chain(6))
    found = ss.transfer(model, k=[1e-3, 99.0], eigenvalues=1)
    assert found.levels[0, 0, 0, 0] == pytest.approx(6 * np.log(2 * np.cosh(1e-3)), abs=1e-5)
    np.testing.assert_allclose(found.levels[0, 1, :, 0], 2 * 6 * 99.0, rtol=1e-14)
    assert found.correlation_length[0, 1, 1, 0] == np.inf
    with pytest.raises(NotConvergedError, match="rounding hides levels"):
        ss.transfer(model, k=20.0)


def test_levels_that_do_not_converge_are_none(capsys, monkeypatch, tmp_path) -> None:
    points = make_points(0.29, None)
    work = Work(GLASS(ss.square(4)), points, "both", Settings(tolerance=1e-14, most_steps=10), 1)
    with pytest.raises(
        NotConvergedError, match=r"sample 0, k = 0.29, sector even: .* residual of .* give a larger tol"
    ):
        next(work.all_rows(0))()
    monkeypatch.setattr("spinsim.transfer_matrix.configuration.Settings", partial(Settings, most_steps=10))
    monkeypatch.chdir(tmp_path)
    line = "transfer --layer square --couplings pm-j --tolerance 1e-14 --out a.h5"
    outcome = run(capsys, monkeypatch, *line.split())
    assert outcome.status == 0
    assert "residual of" in outcome.err
    found = ss.load("a.h5")
    assert np.isnan(found.levels).all()
    assert (found.residual > 1e-14).all()


def test_a_row_that_fails_keeps_its_place(do) -> None:
    found = ss.load(do("transfer --width 6 --couplings pm-j --samples 3 --disorder-seed 5 --k 0.3,5"))
    np.testing.assert_array_equal(found.k, [0.3, 5.0])
    assert np.isfinite(found.levels[:, 0]).all()
    assert np.isnan(found.levels).any()


COMMAND = "transfer --layer square --width 3 --couplings pm-j --samples 3 --k 0.2:0.3:2 --device cpu"


def test_file(do) -> None:
    path = do(COMMAND)
    found = ss.load(path)
    assert found.finished
    assert found.levels.shape == (3, 2, 2, 2)
    assert found.log_eigenvalue["odd"].shape == (2, 3, 2)
    model = ss.EdwardsAnderson(ss.square(3), samples=3)
    again = ss.transfer(model, k=[0.2, 0.3], device="cpu")
    for name in ("levels", "residual", "correlation_length", "gap", "energy_per_site", "sigma", "sigma_sigma", "k"):
        np.testing.assert_array_equal(getattr(found, name), getattr(again, name))
    with h5py.File(path) as file:
        assert file["spectrum/sector"][...].tolist() == [b"even", b"odd"]
        assert file["spectrum/log_eigenvalue"].shape == (6, 2, 2)
    back = ss.load(again.save(path.with_name("b.h5")))
    np.testing.assert_array_equal(back.levels, again.levels)
    dataset = found.dataset()
    assert dataset.log_eigenvalue.sel(sector="even").shape == (3, 2, 2)
    assert dataset.attrs["job"] == "transfer"


def test_interrupted_run_is_completed(do, monkeypatch) -> None:
    whole = do(COMMAND)
    original, calls = Work.row, []

    def row(self, step, found):
        calls.append(step)
        if len(calls) == 5:
            raise KeyboardInterrupt
        return original(self, step, found)

    monkeypatch.setattr(Work, "row", row)
    part = do(COMMAND + " --threads 1 --checkpoint-every 0", "b", status=130)
    assert not ss.load(part).finished
    do(f"resume {part.name} --quiet" if part.parent.name == "b" else f"resume runs/{part.name} --quiet", "b")
    same = contents(part, "command", "config", "config_sha256"), contents(whole, "command", "config", "config_sha256")
    assert same[0] == same[1]


def test_show_and_json(do, capsys, monkeypatch) -> None:
    path = do("transfer --width 8 --device cpu")
    monkeypatch.chdir(path.parent)
    text = run(capsys, monkeypatch, "show", path).out
    assert "7.4705965873" in text
    table = json.loads(run(capsys, monkeypatch, "show", "--json", path).out)
    assert table["log_eigenvalue"][0][0][1][0] == pytest.approx(7.3717624092, abs=1e-9)
    assert table["correlation_length"][0][0][0][0] is None
    line = "transfer --width 5 --field 0.3 --json --device cpu --out c.h5"
    summary = json.loads(run(capsys, monkeypatch, *line.split()).out)
    assert summary["sectors"] == ["all"]


def test_phenomenological_renormalisation() -> None:
    temperatures = np.linspace(2.1, 2.5, 21)
    results = [ss.transfer(ss.Ising(ss.chain(n)), temperature=temperatures, device="cpu") for n in (4, 6, 8)]
    crossings = [c.temperature for c in length_crossings(results)]
    np.testing.assert_allclose(crossings, [2.28780299, 2.27494894], atol=1e-6)
    levels = [strip_levels(n, K_C, K_C, "even")[0] for n in (12, 14, 16)]
    assert extrapolate([13, 15], conformal_charges([12, 14, 16], levels), 2)[0] == pytest.approx(0.5, abs=2e-4)


def test_plot(capsys, monkeypatch, tmp_path) -> None:
    monkeypatch.chdir(tmp_path)
    for width in (4, 6):
        ss.transfer(ss.Ising(ss.chain(width)), k=np.linspace(0.4, 0.5, 5), device="cpu").save(f"{width}.h5")
    outcome = run(capsys, monkeypatch, "plot", "4.h5", "6.h5", "--out", "a.png")
    assert outcome.status == 0
    assert "T = 2.288" in outcome.out
    assert (tmp_path / "a.png").stat().st_size > 10_000


BAD = [
    ("transfer --layer cubic", "'cubic'", "choose chain or square"),
    ("transfer --layer square --width 7", "49 sites", "up to 40"),
    ("transfer --layer square --width 6 --device cpu", "36 sites", "of memory but", "choose a smaller width"),
    ("transfer --width 0", "'0'"),
    ("transfer --k 200", "k 200 overflows", "up to 50"),
    ("transfer --k 0.4 --k-time 99", "k_time 99 overflows", "up to 50"),
    ("transfer --temperature 1e-9", "overflows"),
    ("transfer --temperature -2", "'-2'", "above 0"),
    ("transfer --k 0.3 --temperature 3", "leave one out"),
    ("transfer --k x", "'x'", "0.2:0.3:11"),
    ("transfer --k 0.1:0.2:3:4", "cannot be read"),
    ("transfer --k 0.1:0.2:0", "0 points"),
    ("transfer --k 0.1,0.2,0.3 --k-time 0.1,0.2", "2 numbers k_time do not fit 3"),
    ("transfer --k nan", "'nan'"),
    ("transfer --sector up", "'up'", "even, odd"),
    ("transfer --field 0.1 --sector odd", "'odd' does not exist in a field"),
    ("transfer --tolerance 1e-15", "1e-15", "1e-14"),
    ("transfer --eigenvalues 0", "eigenvalues 0"),
    ("transfer --width 4 --eigenvalues 9", "9 eigenvalues exceed the 8 states"),
    ("transfer --basis 4", "basis 4", "at least 5"),
    ("transfer --method fast", "'fast'", "butterfly"),
    ("transfer --seed -1", "seed -1"),
    ("bench transfer --width 2", "'2'", "4 to 40"),
]


@pytest.mark.parametrize("line", BAD, ids=lambda line: line[0])
def test_bad_input(capsys, monkeypatch, tmp_path, line) -> None:
    monkeypatch.chdir(tmp_path)
    one_sentence(run(capsys, monkeypatch, *line[0].split()), *line[1:])
    assert not list(tmp_path.iterdir())


def test_a_layer_that_does_not_fit_is_refused_before_it_is_built(monkeypatch) -> None:
    monkeypatch.setattr("spinsim.memory.available_bytes", lambda: 2**27)
    monkeypatch.setattr("spinsim.transfer_matrix.spectrum.available_bytes", lambda: 2**27)
    with pytest.raises(ss.InputError, match=r"24 sites, 2\^23 amplitudes a vector, needs 320.0 MiB of memory but 128"):
        ss.transfer(ss.Ising(ss.chain(24)), device="cpu")
    with pytest.raises(ss.InputError, match=r"replicas 5 mean nothing"):
        build_config(Transfer, {"run": {"replicas": 5}})
