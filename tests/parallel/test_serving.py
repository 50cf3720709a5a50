"""Ranks that serve, here as threads that pass messages through queues instead of MPI."""

from __future__ import annotations

from collections.abc import Iterator
from queue import Queue
from threading import Thread

import numpy as np
import pytest
from harness import run

import spinsim as ss
from spinsim.parallel import session
from spinsim.parallel.session import AtRank, Kept, RankError, There, as_bytes, from_bytes, serve


class Queues:
    """``Ranks`` of two, as one of them sees them."""

    def __init__(self, rank: int, inbox: Queue[bytes], outbox: Queue[bytes]) -> None:
        self.rank, self._inbox, self._outbox = rank, inbox, outbox

    def send(self, message: bytes, to: int) -> None:
        self._outbox.put(message)

    def receive(self, sender: int) -> bytes:
        return self._inbox.get(timeout=60)


@pytest.fixture
def place() -> Iterator[AtRank]:
    """Rank 1."""
    to_first, to_second = Queue[bytes](), Queue[bytes]()
    second = Thread(target=serve, args=(Queues(1, to_second, to_first),))  # type: ignore[arg-type]
    second.start()
    found = AtRank(Queues(0, to_first, to_second), 1)  # type: ignore[arg-type]
    yield found
    found.stop()
    second.join(60)
    assert not second.is_alive()


THERE: list[object] = []


class Thing:
    """Something that stays at a rank, which is known there while it lives."""

    def __init__(self) -> None:
        THERE.append(id(self))

    def __del__(self) -> None:
        THERE.remove(id(self))


def make() -> list[Kept]:
    return [Kept(Thing()), Kept(Thing())]


def kind(thing: Thing) -> str:
    return type(thing).__name__


def refuse() -> None:
    raise ss.InputError("no room")


def fail() -> None:
    raise ZeroDivisionError


def test_what_stays_at_a_rank_lives_while_it_is_held(place: AtRank) -> None:
    one, other = place.request(make)()
    assert isinstance(one, There)
    assert place.request(kind, one)() == "Thing"
    del other
    assert place.request(kind, one)() == "Thing"  # the message that tells so
    assert len(THERE) == 1
    del one
    place.request(len, ())()
    assert THERE == []


def test_failures_name_their_rank(place: AtRank) -> None:
    reply = place.request(refuse)
    assert place.waiting
    with pytest.raises(ss.InputError, match=r"^rank 1 on .*: no room$"):
        reply()
    assert not place.waiting
    with pytest.raises(RankError, match=r"(?s)^rank 1 on .* has failed:.*ZeroDivisionError"):
        place.request(fail)()


def test_numbers_that_repeat_are_sent_once() -> None:
    model = ss.Ising(ss.square(64))
    message = as_bytes(model, lambda thing: None)
    arrived = from_bytes(message, lambda number: None)
    assert arrived.one_coupling
    assert len(message) < 4096
    assert arrived.content_sha256() == model.content_sha256()
    np.testing.assert_array_equal(from_bytes(as_bytes(np.arange(6)[::2], lambda thing: None), int), [0, 2, 4])


def test_a_rank_gets_its_samples(place: AtRank, capsys, monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    monkeypatch.chdir(tmp_path)
    line = "temper --size 6 --couplings gaussian --samples 3 --temperatures 0.8:2:3g --thermalize 10 --sweeps 40"
    line += " --device cpu --save-configurations 2 --out"
    assert run(capsys, monkeypatch, *line.split(), "a.h5").status == 0
    monkeypatch.setattr(session._Session, "others", (place,))
    told = run(capsys, monkeypatch, *line.split(), "b.h5")
    assert "Split: 3 samples over 2 ranks, 1 or 2 each\n" in told.out
    one, other = ss.load("a.h5"), ss.load("b.h5")
    for name in ("energy", "overlap", "link_overlap", "best_spins", "attempts"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    np.testing.assert_array_equal(ss.configurations("a.h5").row(1), ss.configurations("b.h5").row(1))
    told = run(capsys, monkeypatch, "transfer", "--width", "4", "--out", "c.h5")
    assert "Split: none, which leaves 1 rank idle\n" in told.out
    line = "transfer --width 4 --k 0.3:0.6:9 --device cpu --out"
    assert run(capsys, monkeypatch, *line.split(), "d.h5").out.count("Split: 9 samples and couplings over 2 ranks\n")
    with monkeypatch.context() as patch:
        patch.setattr(session._Session, "others", ())
        assert run(capsys, monkeypatch, *line.split(), "e.h5").status == 0
    np.testing.assert_array_equal(ss.load("d.h5").levels, ss.load("e.h5").levels)
    told = run(capsys, monkeypatch, "anneal", "--size", "4", "--steps", "2", "--sweeps", "2", "--device", "cpu")
    assert "Split: 1 sample, one each, which leaves 1 of 2 ranks idle\n" in told.out


def test_devices_tells_of_every_rank(place: AtRank, capsys, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session._Session, "others", (place,))
    told = run(capsys, monkeypatch, "devices").out.splitlines()
    assert [line.split()[0] for line in told] == ["cpu", "cuda", "mpi", "rank", "cpu", "cuda"]
