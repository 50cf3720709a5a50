"""Groups of threads of this process, on the CPU and on emulated GPUs; test_ranks.py has those of ranks."""

from __future__ import annotations

import numpy as np
import pytest

import spinsim as ss
from spinsim.engine.devices import seats
from spinsim.parallel import group as groups
from spinsim.parallel.group import Each, Group, Member, Seat, make_group, together
from spinsim.parallel.session import Here, InThread, Kept, LeftWaitingError

SIZES = [1, 2, 3]


def group(size: int, gpu: int | None = None) -> list[Member]:
    return make_group([Seat(InThread() if k else Here(), gpu) for k in range(size)])


def exchange_all(group: Group, kind: str) -> tuple[list[int], list[int], list[float]]:
    """What ``exchange`` with the other of a pair, ``ring`` and ``sum`` bring; works at any rank."""
    xp = np
    if kind == "gpu":
        import cupy as xp  # type: ignore[no-redef]
    mine = group.index
    swapped, partner = xp.zeros(3, np.int64), mine ^ 1
    if partner < group.size:
        for step in range(3):  # arrays may change once the call is back
            given = xp.asarray([mine, 10 * step, 7])
            group.exchange([(given, partner)], [(swapped, partner)])
            given[:] = -1
    before, after = xp.zeros(2, np.int32), xp.zeros((2, 2), np.float64)
    for _ in range(2):
        group.ring(xp.full((2, 2), mine + 0.5), xp.full(2, mine, np.int32), before, after)
    ends = [int(before[0]), int(2 * after[1, 1])]
    total = group.sum(np.array([0.1 * 3.0**mine, float(mine)]))
    return [int(x) for x in swapped], ends, [float(x) for x in total]


def expected(size: int, mine: int) -> tuple[list[int], list[int], list[float]]:
    total = 0.1
    for k in range(1, size):
        total += 0.1 * 3.0**k
    swapped = [mine ^ 1, 20, 7] if mine ^ 1 < size else [0, 0, 0]
    return swapped, [(mine - 1) % size, 2 * ((mine + 1) % size) + 1], [total, size * (size - 1) / 2]


@pytest.mark.parametrize("size", SIZES)
def test_members_exchange_arrays(size: int) -> None:
    assert together(group(size), exchange_all, "cpu") == [expected(size, k) for k in range(size)]


@pytest.mark.usefixtures("emulated")
def test_members_exchange_arrays_of_gpus() -> None:
    assert together(group(2, gpu=0), exchange_all, "gpu") == [expected(2, k) for k in range(2)]


@pytest.mark.gpu
@pytest.mark.usefixtures("two_gpus")
def test_two_gpus_exchange_arrays() -> None:
    seats = [Seat(InThread(), k) for k in range(2)]
    assert together(make_group(seats), exchange_all, "gpu") == [expected(2, k) for k in range(2)]


def keep(group: Group, own: int) -> Kept:
    return Kept(own * 2)


def use(group: Group, kept: int, common: str) -> str:
    return f"{common} {kept} of {group.index}"


def test_each_member_has_arguments_of_its_own() -> None:
    members = group(2)
    kept = together(members, keep, Each([3, 4]))
    assert together(members, use, Each(kept), "got") == ["got 6 of 0", "got 8 of 1"]


def fail_at(group: Group, index: int) -> None:
    if group.index == index:
        raise ss.InputError("no room")
    group.sum(np.zeros(1))


def differ(group: Group) -> None:
    group.exchange([(np.zeros(1 + group.index), 1 - group.index)], [(np.zeros(1), 1 - group.index)])


def wait_for_nobody(group: Group) -> None:
    if group.index:
        group.exchange([], [(np.zeros(1), 0)])


@pytest.mark.parametrize("index", [0, 2])
def test_a_member_that_fails_leaves_none_waiting(index: int) -> None:
    members = group(3)
    with pytest.raises(ss.InputError, match=r"^no room$"):
        together(members, fail_at, index)
    with pytest.raises(LeftWaitingError, match=f"member {index} of 3 has failed: InputError"):
        together(members, exchange_all, "cpu")


def test_sizes_that_differ_are_found() -> None:
    with pytest.raises(ValueError, match="16 bytes came where 8 were to come"):
        together(group(2), differ)


def test_waits_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groups, "LONGEST_WAIT", 0.05)
    with pytest.raises(LeftWaitingError, match="member 0 has not answered for 0 s"):
        together(group(2), wait_for_nobody)


def test_what_members_share_goes_with_their_group() -> None:
    members = group(2)
    before = len(groups._GROUPS)
    del members
    assert len(groups._GROUPS) == before - 1


def test_every_device_has_a_thread() -> None:
    (seat,) = seats("cpu")
    assert (type(seat.place), seat.gpu) == (Here, None)
