"""Vectors shared by several devices: products, levels and what follows from them are those of one."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

import spinsim as ss
from spinsim.mesh.group import Group, Seat, make_group, together
from spinsim.mesh.places import Here, InThread
from spinsim.transfer_matrix import Layer, TransferOperator, Vectors, across
from spinsim.transfer_matrix.share import Share

GLASS = partial(ss.EdwardsAnderson, seed=4)


def members(count: int, gpu: int | None = None) -> list[Any]:
    return make_group([Seat(InThread() if k else Here(), gpu) for k in range(count)])


def product(group: Group, layer: Layer, device: str, method: str) -> Any:
    """T on the random vector of one device."""
    share = Share(group)
    vectors = Vectors(layer.dimension, device, 1, share)
    x, y = vectors.empty(), vectors.empty()
    vectors.random(3, 1, 2, x)
    return vectors.numpy(TransferOperator(layer, device, method, 1, share).apply(x, y))


def check_product(count: int, sites: int, sector: str, device: str, method: str) -> None:
    model = GLASS(ss.chain(sites), couplings="gaussian", field=0.2 if sector == "all" else 0.0)
    layer = Layer(model, 0, 0.4, 0.3, sector)
    alone = Vectors(layer.dimension)
    x, y = alone.empty(), alone.empty()
    alone.random(3, 1, 2, x)
    TransferOperator(layer).apply(x, y)
    group = members(count, gpu=None if device == "cpu" else 0)
    found = np.concatenate(together(group, product, layer, device, method))
    np.testing.assert_allclose(found, y, atol=1e-14 * np.abs(y).max())


@pytest.mark.parametrize("method", ["butterfly", "kronecker"])
@pytest.mark.parametrize(("count", "sector"), [(2, "even"), (4, "odd"), (8, "even"), (4, "all")])
def test_products_of_parts(monkeypatch: pytest.MonkeyPatch, count: int, sector: str, method: str) -> None:
    monkeypatch.setitem(across.ROOM, "cpu", 2**9)
    check_product(count, 13, sector, "cpu", method)


@pytest.mark.usefixtures("emulated")
@pytest.mark.parametrize(("count", "sites", "sector"), [(2, 15, "odd"), (4, 15, "even"), (2, 14, "all")])
def test_products_of_parts_on_gpus(monkeypatch: pytest.MonkeyPatch, count: int, sites: int, sector: str) -> None:
    """Tiles of one pass, which has the diagonal of both ends elsewhere, and of two."""
    monkeypatch.setitem(across.ROOM, "cuda", 2**11)
    check_product(count, sites, sector, "cuda", "butterfly")
