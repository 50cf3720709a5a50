"""Tasks on threads, and short ones on fewer."""

from __future__ import annotations

import threading
from functools import partial

import pytest

from spinsim.errors import InputError
from spinsim.machine.threads import WORTH_A_THREAD, Threads


@pytest.mark.parametrize(
    ("words", "parts"), [(None, 3), (0, 1), (2 * WORTH_A_THREAD - 1, 1), (2 * WORTH_A_THREAD, 2), (2**60, 3)]
)
def test_threads_are_as_many_as_pay(words: int | None, parts: int) -> None:
    ends: list[tuple[int, int]] = []
    Threads(3).share_out(lambda first, stop: ends.append((first, stop)), 7, words)
    assert len(ends) == parts
    assert [k for first, stop in sorted(ends) for k in range(first, stop)] == list(range(7))


def test_the_caller_runs_short_tasks() -> None:
    names: list[int] = []
    Threads(2).run([lambda: names.append(threading.get_ident())] * 4, 1)
    assert names == [threading.get_ident()] * 4


def test_the_caller_works_beside_its_threads() -> None:
    names: list[int] = []
    meeting = threading.Barrier(2, timeout=60)

    def task() -> None:
        names.append(threading.get_ident())
        meeting.wait()

    Threads(2).run([task] * 4)
    assert len(names) == 4
    assert len(set(names)) == 2
    assert threading.get_ident() in names


@pytest.mark.parametrize("failing", range(4))
def test_a_failure_is_raised_when_all_tasks_have_ended(failing: int) -> None:
    ended: list[int] = []

    def task(k: int) -> None:
        if k == failing:
            raise InputError(f"task {k}")
        ended.append(k)

    with pytest.raises(InputError, match=f"task {failing}"):
        Threads(2).run([partial(task, k) for k in range(4)])
    if failing:  # the caller's own task comes first
        assert 0 in ended


def test_no_threads_cannot_work() -> None:
    with pytest.raises(InputError, match="0 threads cannot work: give at least 1"):
        Threads(0)
