"""Transfer matrices: exact levels, Lanczos against dense matrices, files, bad input."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial

import numpy as np
import pytest
from scipy.sparse.linalg import eigsh
from strips import strip_levels

import spinsim as ss
from spinsim.analysis.onsager import CRITICAL_TEMPERATURE
from spinsim.analysis.strips import conformal_charges, extrapolate, length_crossings
from spinsim.jobs.transfer.run import Work
from spinsim.machine.threads import Threads
from spinsim.transfer_matrix.lanczos import NotConvergedError, Search, ThickRestart, at_once, one_by_one
from spinsim.transfer_matrix.layer import Layer, make_points, sectors_of
from spinsim.transfer_matrix.operator import TransferOperator
from spinsim.transfer_matrix.spectrum import Fit, Settings, Solver, fit
from spinsim.transfer_matrix.vectors import Vectors

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


K_OF_LAYERS = 0.45, 0.35


@cache
def exact_levels(name: str, sector: str) -> np.ndarray:
    """All levels of the last sample of a layer, the largest first."""
    model = LAYERS[name]
    return np.linalg.eigvalsh(in_sector(dense(model, model.samples - 1, *K_OF_LAYERS), sector))[::-1]


@pytest.mark.parametrize("name", LAYERS)
def test_levels_of_dense_matrices(device: str, name: str) -> None:
    model, (k, k_time) = LAYERS[name], K_OF_LAYERS
    states = 1 << (model.sites - (not np.any(model.fields)))
    found = ss.transfer(model, k=k, k_time=k_time, eigenvalues=min(6, states), device=device)
    for i, sector in enumerate(found.sectors):
        exact = exact_levels(name, sector)[: min(6, states)]
        np.testing.assert_allclose(np.exp(found.levels[model.samples - 1, 0, i]), exact, rtol=1e-10)
    assert found.residual.max() <= 1e-9


def operators(layer: Layer, device: str) -> list[TransferOperator]:
    if device == "cuda" and layer.bits < 12:
        return [TransferOperator(layer, device, "kronecker")]
    return [TransferOperator(layer, device, method) for method in ("butterfly", "kronecker")]


@pytest.mark.parametrize(
    ("sites", "sector"),
    [
        pytest.param(sites, sector, marks=[pytest.mark.slow] * (sites == 22 and sector != "all"))
        for sites in (1, 2, 7, 12, 13, 14, 17, 20, 22)
        for sector in ("even", "odd", "all")
    ],
)
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


def reference(product: Callable[[np.ndarray], np.ndarray], start: np.ndarray, steps: int) -> np.ndarray:
    """Ritz values after so many steps of plain Lanczos with full re-orthogonalisation: the textbook."""
    basis, projected = [start / np.linalg.norm(start)], np.zeros((steps, steps))
    for j in range(steps):
        w = product(basis[j])
        projected[j, j] = basis[j] @ w
        for _ in range(2):
            w = w - np.transpose(basis) @ (np.array(basis) @ w)
        if j + 1 < steps:
            projected[j, j + 1] = projected[j + 1, j] = np.linalg.norm(w)
            basis.append(w / np.linalg.norm(w))
    return np.asarray(np.linalg.eigvalsh(projected)[::-1])


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


def solve(operator: TransferOperator, wanted: int, basis: int | None = None, **settings):
    vectors = Vectors(operator.layer.dimension, operator.device)
    iteration = ThickRestart(operator.apply, vectors, Search(wanted, **settings), basis)
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


@pytest.mark.parametrize("name", ["4 x 4, rule", "width 14"])
def test_without_a_stored_basis(device: str, name: str) -> None:
    model, k, _ = EXACT.get(name, (ss.Ising(ss.chain(14)), K_C, None))
    stored, other = (ss.transfer(model, k=k, basis=basis, eigenvalues=5, device=device) for basis in (None, 0))
    np.testing.assert_allclose(stored.levels, other.levels, rtol=1e-12)
    assert other.residual.max() < 1e-9
    assert np.isnan(other.sigma).all()


@pytest.mark.parametrize("name", LAYERS)
def test_levels_one_by_one(name: str) -> None:
    """Degenerate ones, all of a tiny layer, small ones beside large ones."""
    model = LAYERS[name]
    for sector in sectors_of(model):
        operator = TransferOperator(Layer(model, model.samples - 1, *K_OF_LAYERS, sector))
        vectors = Vectors(operator.layer.dimension)
        for wanted in (1, 2, 20):
            found = one_by_one(operator.apply, vectors, Search(min(wanted, vectors.dimension)))
            exact = exact_levels(name, sector)[:wanted]
            np.testing.assert_allclose(found.value * np.exp(operator.log_scale), exact, rtol=1e-10)


@pytest.mark.parametrize(("tolerance", "within"), [(1e-3, 1e-5), (1e-14, 1e-13)])
def test_tolerances_without_a_basis(tolerance: float, within: float) -> None:
    operator = TransferOperator(Layer(ss.Ising(ss.chain(10)), 0, K_C, K_C, "odd"))
    found = one_by_one(operator.apply, Vectors(operator.layer.dimension), Search(4, tolerance))
    np.testing.assert_allclose(
        np.log(found.value) + operator.log_scale, strip_levels(10, K_C, K_C, "odd", 4), atol=within
    )


def test_memory_for_fewer_vectors(monkeypatch) -> None:
    """A basis, an eigenvector of each level, or one at a time."""
    model, size = ss.Ising(ss.chain(15)), 8 * 2**14
    rooms = {}
    for vectors in (22, 12, 8, 7, 5):
        monkeypatch.setattr("spinsim.transfer_matrix.spectrum.available_bytes", lambda n=vectors: n * size)
        monkeypatch.setattr("spinsim.machine.memory.available_bytes", lambda n=vectors: n * size)
        rooms[vectors] = fit(15, SECTORS, Settings(eigenvalues=4))
    assert rooms == {
        22: Fit(8),
        12: Fit(0),
        8: Fit(0),
        7: Fit(0, fits_eigenvectors=False),
        5: Fit(0, fits_eigenvectors=False),
    }
    with pytest.warns(UserWarning, match="4 eigenvectors: degenerate levels are found once .* fewer eigenvalues"):
        found = ss.transfer(model, eigenvalues=4, device="cpu", threads=1)
    exact = strip_levels(15, K_C, K_C, "even", 20)
    assert np.isin(np.round(found.log_eigenvalue["even"], 8), np.round(exact, 8)).all()


def test_ghosts_are_told_from_levels() -> None:
    """So many steps that the leading level has come back several times."""
    layer = Layer(ss.Ising(ss.chain(8)), 0, K_C, K_C, "even")
    operator = TransferOperator(layer)
    found = at_once(operator.apply, Vectors(layer.dimension), Search(5, tolerance=1e-10))
    exact = np.unique(np.round(strip_levels(8, K_C, K_C, "even", 20), 9))[::-1][:5]
    np.testing.assert_allclose(np.log(found.value) + operator.log_scale, exact, atol=1e-8)


@pytest.mark.parametrize("find", ["thick restart", "one by one", "at once"])
def test_what_has_converged_is_kept(find: str) -> None:
    """Whatever the limit of steps: levels are right or none, from the first that did not converge on."""
    operator = TransferOperator(Layer(GLASS(ss.square(4)), 0, 0.29, 0.29, "even"))
    vectors, kept = Vectors(operator.layer.dimension), set()
    exact = solve(operator, 3).value
    for most in (1, 16, 20, 22, 30, 44, 60, 400):
        if find == "thick restart":
            found = solve(operator, 3, most_steps=most, basis=9)
        else:
            search = Search(3, most_steps=most)
            found = (one_by_one if find == "one by one" else at_once)(operator.apply, vectors, search)
        count = int(np.isfinite(found.value).sum())
        np.testing.assert_allclose(found.value[:count], exact[:count], rtol=1e-12)
        assert np.isnan(found.value[count:]).all()
        assert (found.residual[:count] <= 1e-9).all()
        problem = found.problem(1e-10, "here: ")
        assert (problem is None) == (count == 3)
        if problem:
            assert f"here: {count} of 3 levels converged" in str(problem) or "search for missed ones" in str(problem)
            assert "search" in str(problem) or found.residual[count] > 1e-10
        if find == "thick restart":
            assert (found.residual > 0).all()
        kept.add(count)
    assert kept >= {0, 3}
    assert len(kept) > 2


@pytest.mark.parametrize("basis", [None, 0])
def test_levels_that_rounding_hides(basis: int | None) -> None:
    work = Work(ss.Ising(ss.chain(14)), make_points([3.0, 20.0], None), "both", Settings(basis=basis), 1)
    (row, problems), (hidden, problem) = work.solved(range(2))
    assert not problems
    np.testing.assert_allclose(np.diff(row["log_eigenvalue"][0]), np.diff(strip_levels(14, 3, 3, "even", 2)), rtol=1e-9)
    assert "sector even: 1 of 2 levels" in str(problem[0])
    assert "ask for fewer eigenvalues" in str(problem[0])
    assert hidden["log_eigenvalue"][0, 0] == pytest.approx(2 * 14 * 20.0)
    assert np.isnan(hidden["log_eigenvalue"][0, 1])
    assert np.isnan(hidden["gap"])
    assert hidden["free_energy_per_site"] == pytest.approx(-2)
    assert hidden["correlation_length"][1, 0] == np.inf


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
        return Solver(model, 0, 0.29, 0.29, SECTORS, settings, Fit(22), Threads(1))

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


def test_phenomenological_renormalisation() -> None:
    temperatures = np.linspace(2.1, 2.5, 21)
    results = [ss.transfer(ss.Ising(ss.chain(n)), temperature=temperatures, device="cpu") for n in (4, 6, 8)]
    crossings = [c.temperature for c in length_crossings(results)]
    np.testing.assert_allclose(crossings, [2.28780299, 2.27494894], atol=1e-6)
    levels = [strip_levels(n, K_C, K_C, "even")[0] for n in (12, 14, 16)]
    assert extrapolate([13, 15], conformal_charges([12, 14, 16], levels), 2)[0] == pytest.approx(0.5, abs=2e-4)


@pytest.mark.parametrize(
    ("sample", "sector", "message"),
    [
        (0, "odds", "sector 'odds' is unknown: choose one of even, odd, all"),
        (1, "odd", "sample 1 of chain-8 does not exist: give a number from 0 to 0"),
    ],
)
def test_layers_refuse_what_a_model_has_not(sample: int, sector: str, message: str) -> None:
    with pytest.raises(ss.InputError, match=message):
        Layer(ss.Ising(ss.chain(8)), sample, 0.4, 0.4, sector)
