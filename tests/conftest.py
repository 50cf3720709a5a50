"""Settings of the whole suite."""

from __future__ import annotations

import hashlib
import os
import tempfile
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("reproducible", deadline=None, derandomize=True)
settings.load_profile("reproducible")


def _source_digest() -> str:
    """Numba's cache overlooks changes in functions that a kernel inlines from other files; this does not."""
    spec = find_spec("spinsim")
    folder = Path(spec.origin).parent if spec and spec.origin else Path()
    return hashlib.sha256(b"".join(path.read_bytes() for path in sorted(folder.rglob("*.py")))).hexdigest()[:16]


os.environ["NUMBA_CACHE_DIR"] = str(Path(tempfile.gettempdir()) / f"spinsim-numba-{_source_digest()}")


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def device(request: pytest.FixtureRequest) -> str:
    """Every device: one test body serves them all, and a run of the GPU tests without a GPU fails."""
    return str(request.param)
