"""The GPU engines and the very source of their kernels, on a CPU: see ``emulation``.

A few cases; ``pytest -m emulated tests/test_engine.py`` runs all that do not need more than one block at once.
"""

from __future__ import annotations

import pytest
from test_engine import GENERAL, PACKED, SITE, TEMPERED, check_counts, run_both, temper_both

from spinsim.engine import Dynamics, create_engine

pytestmark = pytest.mark.usefixtures("emulated")


@pytest.mark.parametrize("name", ["cubic-samples", "cubic-open-odd", "random-graph-field"])
def test_shared_memory(name: str) -> None:
    run_both("cuda", PACKED[name](), 130, 0.6, (1, 3))
    check_counts(create_engine(PACKED[name](), 130, Dynamics(), "cuda"))


def test_global_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    from spinsim.engine.cuda import packed_engine

    monkeypatch.setattr(packed_engine, "shared_memory", lambda device: 0)
    run_both("cuda", PACKED["cubic-samples"](), 130, 0.6, (1, 3))


@pytest.mark.parametrize("name", ["square-256x6", "cubic-signs-field"])
def test_site_packed(name: str) -> None:
    make, replicas = SITE[name]
    run_both("cuda", make(), replicas, 0.44, (1, 3))
    check_counts(create_engine(make(), replicas, Dynamics(), "cuda"))


def test_unpacked() -> None:
    run_both("cuda", GENERAL["gaussian"](), 70, 0.6, (1, 3))


@pytest.mark.parametrize("name", ["cubic-samples", "gaussian"])
def test_tempering(name: str) -> None:
    make, beta, copies = TEMPERED[name][:3]
    temper_both("cuda", make(), beta, copies, [(2, 1), (1, 2)])
