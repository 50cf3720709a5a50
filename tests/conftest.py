"""Settings of the whole suite."""

from __future__ import annotations

import pytest
from hypothesis import settings

settings.register_profile("reproducible", deadline=None, derandomize=True)
settings.load_profile("reproducible")


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def device(request: pytest.FixtureRequest) -> str:
    """Every device: one test body serves them all, and a run of the GPU tests without a GPU fails."""
    return str(request.param)
