"""Groups with members at several MPI ranks, and the vectors that these share."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from harness import contents
from several import OWN
from test_ranks import on_ranks

import spinsim as ss

GROUPS = f"""
import sys
sys.path[:0] = [{str(Path(__file__).parent)!r}, {str(Path(__file__).parent.parent / "support")!r}]
from spinsim.parallel.group import Seat, make_group, together
from spinsim.parallel import launched
from spinsim.parallel.session import Here, InThread
from spinsim.parallel.session import joined, others
from test_group import exchange_all, expected, fail_at
with joined(launched()) as first:
    if first:
        (other,) = others()
        pair = make_group([Seat(Here()), Seat(other)])
        assert together(pair, exchange_all, "cpu") == [expected(2, k) for k in range(2)]
"""
FOUR = """
        places = [InThread(), other.thread(1), other.thread(2), InThread()]
        four = make_group([Seat(place) for place in places])
        assert together(four, exchange_all, "cpu") == [expected(4, k) for k in range(4)]
        print("done", flush=True)
        together(four, fail_at, {})
"""


@pytest.mark.system
@pytest.mark.parametrize("failing", [0, 2])
def test_members_at_ranks_exchange_arrays_and_end_together(tmp_path: Path, failing: int) -> None:
    found = on_ranks(2, tmp_path, "", GROUPS + FOUR.format(failing) + "sys.exit()")
    assert found.status != 0
    assert found.out == "done\n"
    assert f"spinsim: rank {failing // 2} on " in found.err
    assert "has failed (no room), so that all ranks end" in found.err


@pytest.mark.gpu
@pytest.mark.usefixtures("two_gpus")
def test_gpus_of_ranks_exchange_arrays(tmp_path: Path) -> None:
    """By NCCL, or through host memory."""
    code = GROUPS.replace('"cpu"', '"gpu"').replace("Seat(Here())", "Seat(Here(), 0)")
    found = on_ranks(2, tmp_path, "", code.replace("Seat(other)", "Seat(other, 1)") + "sys.exit()")
    assert (found.status, found.out) == (0, ""), found.err


@pytest.mark.system
def test_ranks_share_the_vectors_of_a_transfer_matrix(do, tmp_path: Path) -> None:
    line = "transfer --width 14 --couplings gaussian --samples 2 --k 0.4 --device cpu --threads 1 --out"
    short = "from spinsim.transfer_matrix import spectrum\nspectrum.FEWEST_BITS['cpu'] = 6"
    found = on_ranks(3, tmp_path, f"{line} a.h5", short)
    assert (found.status, found.err) == (0, "")
    assert "Split: each vector over 2 ranks, which leaves 1 rank idle\n" in found.out
    one, shared = ss.load(do(f"{line} b.h5", "one")), ss.load(tmp_path / "a.h5")
    np.testing.assert_allclose(shared.levels, one.levels, rtol=0, atol=1e-12)
    np.testing.assert_allclose(np.abs(shared.sigma), np.abs(one.sigma), atol=1e-7)


@pytest.mark.system
def test_ranks_share_out_short_tasks(do, tmp_path: Path) -> None:
    line = "transfer --width 8 --couplings gaussian --samples 5 --k 0.3,0.4 --device cpu --threads 2 --quiet --out"
    assert on_ranks(3, tmp_path, f"{line} a.h5") == (0, "", "")
    assert contents(tmp_path / "a.h5", *OWN) == contents(do(f"{line} b.h5", "one"), *OWN)
