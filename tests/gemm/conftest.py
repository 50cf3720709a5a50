"""The modules whose arrays matrix products take."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.fixture(params=["numpy", pytest.param("cupy", marks=pytest.mark.gpu)], scope="module")
def xp(request: pytest.FixtureRequest) -> Any:
    return pytest.importorskip(request.param)


@pytest.fixture(scope="module")
def cp() -> Any:
    return pytest.importorskip("cupy")
