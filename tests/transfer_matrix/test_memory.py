"""Memory of transfer matrices: the default basis fits, and the memory counted for a task is as much as it takes."""

from __future__ import annotations

import tracemalloc
from typing import Final

import pytest

import spinsim as ss
from spinsim.errors import InputError
from spinsim.machine.threads import Threads
from spinsim.transfer_matrix import spectrum
from spinsim.transfer_matrix.spectrum import Fit, Settings, Solver, fit

BOTH: Final = "even", "odd"
GIB: Final = 2**30
H100: Final = 79 * GIB  # bytes that a GPU of 80 GB has free
NONE, ONE_RUN = Fit(0), Fit(0, fits_eigenvectors=False)

OF_80_GB: Final[dict[tuple[int, int], tuple[Fit | None, ...]]] = {
    (1, 28): (Fit(18), Fit(20), Fit(24)),
    (1, 29): (Fit(18), Fit(20), Fit(24)),
    (1, 30): (Fit(16), Fit(14), Fit(10)),
    (1, 31): (Fit(6), NONE, NONE),
    (1, 32): (NONE, ONE_RUN, ONE_RUN),
    (1, 33): (None, None, None),
    (2, 30): (Fit(18), Fit(20), Fit(24)),
    (2, 31): (Fit(16), Fit(14), Fit(10)),
    (2, 32): (Fit(6), NONE, NONE),
    (2, 33): (NONE, ONE_RUN, ONE_RUN),
    (4, 33): (Fit(6), NONE, NONE),
    (4, 34): (NONE, ONE_RUN, ONE_RUN),
}
"""Rooms for 1, 2 and 4 levels, by GPUs and spins; None where a layer is refused."""


@pytest.mark.parametrize(("gpus", "sites"), OF_80_GB)
def test_what_fits_gpus_of_80_gb(gpus: int, sites: int) -> None:
    for levels, expected in zip((1, 2, 4), OF_80_GB[gpus, sites], strict=True):
        settings = Settings(eigenvalues=levels, device="cuda")
        if expected is None:
            with pytest.raises(InputError, match=r"^a layer of 33 sites.* needs 129.0 GiB of GPU memory but 79.0 GiB"):
                fit(sites, BOTH, settings, 1, gpus, H100)
        else:
            assert fit(sites, BOTH, settings, 1, gpus, H100) == expected


def test_a_basis_that_does_not_fit_is_refused() -> None:
    with pytest.raises(InputError, match=r"needs 85.0 GiB of GPU memory but 79.0 GiB are free: .* \(basis\)$"):
        fit(30, BOTH, Settings(basis=16, device="cuda"), 1, 1, H100)
    assert fit(30, BOTH, Settings(basis=14, device="cuda"), 1, 1, H100) == Fit(14)


@pytest.mark.parametrize(("levels", "sector"), [(1, "odd"), (2, "both"), (4, "both"), (3, "all")])
@pytest.mark.parametrize("basis", [None, 0])
def test_no_more_memory_than_was_counted(levels: int, sector: str, basis: int | None) -> None:
    """By what NumPy allocates, from the beginning of a task to its matrix elements."""
    model = ss.EdwardsAnderson(ss.chain(17), field=0.1 if sector == "all" else 0.0, couplings="gaussian", seed=2)
    sectors = BOTH if sector == "both" else (sector,)
    settings = Settings(eigenvalues=levels, tolerance=1e-6, basis=basis)
    amplitudes, most = 2 ** (17 - (sector != "all")), 40 * 2**20
    given = fit(17, sectors, settings, there=most)
    needs = spectrum._Needs.of(amplitudes, len(sectors), settings, 1, 1)
    counted = needs.with_basis(given.basis) if given.basis else needs.without(levels)
    for measured in (False, True):  # the first time compiles
        if measured:
            tracemalloc.start()
        solver = Solver(model, 0, 0.5, 0.5, sectors, settings, given, Threads(1))
        while not solver.done:
            solver.advance()
        solver.row()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert counted - 2 * needs.vector - needs.piece * given.basis <= peak <= counted + 2**20


def test_ranks_share_the_memory_of_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    from contextlib import nullcontext

    from spinsim.parallel.session import OnNode

    monkeypatch.setattr(spectrum, "on_gpu", nullcontext)
    monkeypatch.setattr(spectrum, "free_in_blocks", lambda: H100)
    monkeypatch.setattr(spectrum, "names", lambda: ["a GPU"] * 2)
    for ranks, there in ((1, H100), (2, H100), (3, H100 // 2)):
        monkeypatch.setattr(spectrum, "on_node", lambda ranks=ranks: OnNode(0, ranks))
        assert spectrum.room(0) == there


@pytest.mark.gpu
@pytest.mark.parametrize("levels", [1, 2, 4])
@pytest.mark.parametrize("vectors", [7, 11, 16, 21])
def test_a_gpu_takes_no_more_than_was_counted(monkeypatch: pytest.MonkeyPatch, levels: int, vectors: int) -> None:
    """CuPy's memory is limited to so many vectors of 256 MiB, as if the GPU were that small."""
    import cupy

    pool, model = cupy.get_default_memory_pool(), ss.Ising(ss.chain(26))
    pool.free_all_blocks()
    limit = vectors * 2**28 + 2**24  # the tables of the diagonal are beside them
    monkeypatch.setattr(spectrum, "room", lambda gpu: vectors * 2**28 + spectrum._BESIDE["cuda"])
    pool.set_limit(pool.used_bytes() + limit)
    try:
        found = ss.transfer(model, eigenvalues=levels, device="cuda")
    finally:
        pool.set_limit(0)
    assert found.log_eigenvalue["even"][0] > 0
