"""Signs of +-J couplings that a GPU draws are those that the host draws, of the whole lattice and of slabs of it."""

from __future__ import annotations

import numpy as np
import pytest

import spinsim as ss
from spinsim.engine import Dynamics
from spinsim.engine.cuda_queue import Queue
from spinsim.engine.layouts.site_packed import build_signs
from spinsim.engine.moves.metropolis.site_packed.cuda import SiteLattices
from spinsim.engine.moves.metropolis.site_packed.update import SitePlan
from spinsim.model.ising import Ising

MODELS = {
    "square": lambda: ss.EdwardsAnderson(ss.square(512, 6), samples=3, seed=2**40 + 7, bond_fraction=0.3),
    "cubic": lambda: ss.EdwardsAnderson(ss.cubic(256, 4, 6), samples=2, seed=5),
    "some samples": lambda: ss.EdwardsAnderson(ss.square(256, 4), samples=4, seed=9).of_samples(1, 3),
    "in a field": lambda: ss.EdwardsAnderson(ss.square(256, 4), seed=9, field=0.5),
    "a few positive": lambda: ss.EdwardsAnderson(ss.square(256, 2), seed=1, bond_fraction=1e-3),
}


def check_signs(model: Ising, layers: range | None) -> None:
    plan = SitePlan(model, 1, Dynamics(), layers)
    queue = Queue(0, plan.dynamics)
    with queue.here():
        drawn = SiteLattices(plan, queue, None)._signs
        queue.stream.synchronize()
    assert model.are_yet_to_draw
    assert "signs" not in vars(plan)
    np.testing.assert_array_equal(drawn.get(), build_signs(model, plan.rows))


CASES = [*((name, None) for name in MODELS), ("square", range(2, 4)), ("cubic", range(2, 6))]


@pytest.mark.system
@pytest.mark.usefixtures("emulated")
@pytest.mark.parametrize(("name", "layers"), CASES)
def test_the_kernel_draws_what_the_host_draws(name: str, layers: range | None) -> None:
    check_signs(MODELS[name](), layers)


@pytest.mark.gpu
@pytest.mark.parametrize(("name", "layers"), CASES)
def test_a_gpu_draws_what_the_host_draws(name: str, layers: range | None) -> None:
    check_signs(MODELS[name](), layers)


@pytest.mark.parametrize(("name", "layers"), CASES)
@pytest.mark.parametrize("at_once", [1, 2**22])
def test_signs_are_those_of_the_couplings(monkeypatch, name: str, layers: range | None, at_once: int) -> None:
    monkeypatch.setattr("spinsim.engine.layouts.site_packed._AT_ONCE", at_once)
    plan = SitePlan(MODELS[name](), 1, Dynamics(), layers)
    model = MODELS[name]()
    sides, dimension = model.lattice.shape, model.lattice.dimension
    couplings = model.couplings.reshape(model.coupling_rows, *sides[::-1], dimension)
    z_y_x = np.stack(np.meshgrid(*map(range, sides[::-1]), indexing="ij"), axis=-1)
    for colour, slot in np.ndindex(2, 2 * dimension):
        axis, after = (1, 1, 0, 0, 2, 2)[slot], slot in (1, 5)
        along = dimension - 1 - axis
        x_is_odd = z_y_x[..., -1] % 2 == 1
        if axis == 0:
            after = np.where(x_is_odd, slot == 3, slot == 2)
        of_site = np.where(after, couplings[..., axis], np.roll(couplings[..., axis], 1, along + 1)) < 0
        for sample, signs in enumerate(plan.signs):
            of_colour = of_site[sample][z_y_x.sum(axis=-1) % 2 == colour].reshape(-1, sides[0] // 2)
            rows = np.unpackbits(
                signs[colour, slot].view(np.uint8).reshape(len(plan.rows), -1), axis=1, bitorder="little"
            )
            np.testing.assert_array_equal(rows, of_colour[plan.rows.start : plan.rows.stop])


@pytest.mark.parametrize("name", MODELS)
def test_nothing_is_drawn_before_it_is_read(name: str) -> None:
    model = MODELS[name]()
    _ = model.magnitude, model.energy_scale, model.uniform_coupling, model.one_coupling, model.content_sha256
    assert model.are_yet_to_draw
    again = MODELS[name]()
    assert again.couplings.dtype == np.int8
    assert (again.extreme_couplings, again.coupling_rows) == (model.extreme_couplings, model.coupling_rows)
    given = Ising(model.graph, again.couplings, again.fields)
    for name in ("magnitude", "energy_scale", "uniform_coupling", "quantum", "one_coupling", "rounded"):
        assert getattr(model, name) == getattr(given, name), name
