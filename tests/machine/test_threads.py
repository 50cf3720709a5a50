"""Tasks on threads, and short ones on fewer."""

from __future__ import annotations

import threading

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


@pytest.mark.parametrize(("words", "by_caller"), [(None, False), (1, True)])
def test_the_caller_runs_short_tasks(words: int | None, by_caller: bool) -> None:
    names: list[int] = []
    Threads(2).run([lambda: names.append(threading.get_ident())] * 4, words)
    assert len(names) == 4
    assert (set(names) == {threading.get_ident()}) is by_caller


def test_no_threads_cannot_work() -> None:
    with pytest.raises(InputError, match="0 threads cannot work: give at least 1"):
        Threads(0)
