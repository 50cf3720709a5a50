"""The ranks of a run under MPI: their arrival, messages through host memory, and signs of life."""

from __future__ import annotations

import atexit
import math
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import numpy as np

from spinsim.errors import InputError
from spinsim.parallel import Launched

MESSAGE, BEAT, EXCHANGE = 1, 2, 3  # tags; arrays have the last one and all above it
PIECE: Final = 2**30  # bytes; counts of MPI are 32-bit numbers
BEAT_EVERY: Final = 2.0  # seconds
SILENT_FOR: Final = 45.0  # seconds after which a rank is given up
TOLD_IN: Final = 0.5  # seconds in which a launcher passes on the output of a rank before its end
IDLE_FOR: Final = 600.0  # seconds that a rank waits for an array of another
FIRST: Final = 0  # the rank that carries out the command
_WATCH: Final = """
import os, select, signal, sys
seconds, process, words = float(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
if not select.select([0], [], [], seconds)[0]:
    sys.stderr.write(words)
    sys.stderr.flush()
    os.kill(process, signal.SIGKILL)
"""


@contextmanager
def awaited(seconds: float, ranks: int, by: str) -> Iterator[None]:
    """Have a small process watch the time while MPI starts, which waits for all ranks and blocks Python's threads.

    The small process ends this one after ``seconds``.
    """
    words = (
        f"spinsim: {by} has started {ranks} ranks, of which not all have arrived after {seconds:.0f} s, so that the "
        "job ends: 'spinsim devices' under the same launcher shows who is there\n"
    )
    line = [sys.executable, "-I", "-S", "-c", _WATCH, str(seconds), str(os.getpid()), words]
    # Closing the input of the small process ends it, as does the end of this process.
    with subprocess.Popen(line, stdin=subprocess.PIPE):  # noqa: S603  (this Python and words of ours)
        yield


class Ranks:
    """All processes of a run, of which this one is a rank.

    A thread tells the others that this process lives, and ends the job where one of them falls silent.
    """

    def __init__(self, launched: Launched) -> None:
        missing = why_not()
        if missing:
            raise InputError(f"{launched.by} has started {launched.ranks} ranks but cannot be used: {missing}")
        from mpi4py import MPI

        with awaited(SILENT_FOR, launched.ranks, launched.by):
            MPI.Init_thread(MPI.THREAD_MULTIPLE)
        atexit.register(MPI.Finalize)
        self._comm = comm = MPI.COMM_WORLD
        self.rank, self.size = comm.rank, comm.size  # number of this process and of all
        if self.size != launched.ranks:
            raise InputError(
                f"{launched.by} has started {launched.ranks} ranks but the MPI library of mpi4py finds {self.size}: "
                "install mpi4py for the same MPI, or choose another --mpi of srun"
            )
        if MPI.Query_thread() < MPI.THREAD_SERIALIZED:
            raise InputError("this MPI library serves one thread alone: take one that was built for several")
        self._lock = threading.Lock()  # MPI is called by one thread at a time
        self._left = threading.Event()
        self._gone = set[int]()  # ranks that have given their last sign of life
        self._peers = range(1, self.size) if self.rank == FIRST else [FIRST]
        self._life = threading.Thread(target=self._live, daemon=True)
        self._life.start()

    def send(self, message: bytes, to: int) -> None:
        content = np.frombuffer(message, np.uint8)
        for array in (np.array([content.size], np.int64), *_pieces(content)):
            self._pass(self._comm.Isend, array, to)

    def receive(self, sender: int) -> bytes:
        size = np.empty(1, np.int64)
        self._pass(self._comm.Irecv, size, sender)
        content = np.empty(int(size[0]), np.uint8)
        for piece in _pieces(content):
            self._pass(self._comm.Irecv, piece, sender)
        return content.tobytes()

    def exchange(self, give: Iterable[tuple[Any, int, int]], get: Iterable[tuple[Any, int, int]]) -> None:
        """Send arrays and receive others, each with its rank and a tag from 0 on; arrays of equal tags keep order."""
        with self._lock:
            requests = [self._comm.Irecv(piece, rank, EXCHANGE + tag) for a, rank, tag in get for piece in _pieces(a)]
            requests += [self._comm.Isend(piece, rank, EXCHANGE + tag) for a, rank, tag in give for piece in _pieces(a)]
        for request in requests:
            self._wait(request, IDLE_FOR, f"another rank has not answered for {IDLE_FOR:.0f} s")

    def _pass(self, begin: Callable[..., Any], array: Any, rank: int) -> None:
        with self._lock:
            request = begin(array, rank, MESSAGE)
        self._wait(request)

    def _wait(self, request: Any, most: float = math.inf, late: str = "a rank does not come to its end") -> None:
        """Wait at most ``most`` seconds, without keeping a processor busy for long, as others may compute on it."""
        pause, end = 0.0, time.monotonic() + most
        while time.monotonic() < end:
            with self._lock:
                if request.Test():
                    return
            time.sleep(pause)
            pause = min(pause + 1e-5, 1e-3)
        self.abort(late)

    def _live(self) -> None:
        """Tell others that this process lives, and watch that they do."""
        beat, sign, sent = np.zeros(1, np.uint8), np.zeros(1, np.uint8), list[Any]()
        heard = dict.fromkeys(self._peers, time.monotonic())
        while not self._left.wait(BEAT_EVERY):
            with self._lock:
                sent = [request for request in sent if not request.Test()]
                sent += [self._comm.Isend(beat, peer, BEAT) for peer in self._peers if not sent]
                for peer in self._peers:
                    while self._comm.Iprobe(peer, BEAT):
                        self._comm.Recv(sign, peer, BEAT)
                        heard[peer] = time.monotonic()
                        if sign[0]:
                            self._gone.add(peer)
            for peer, when in heard.items():
                if peer not in self._gone and time.monotonic() - when > SILENT_FOR:
                    self.abort(f"rank {peer} has not been heard of for {SILENT_FOR:.0f} s")

    def leave(self) -> None:
        """Give no more signs of life; all ranks do so together, and receive all that was sent."""
        self._left.set()
        self._life.join()
        last, sign = np.ones(1, np.uint8), np.zeros(1, np.uint8)
        with self._lock:
            sent = [self._comm.Isend(last, peer, BEAT) for peer in self._peers]
        for peer in self._peers:
            while peer not in self._gone:
                with self._lock:
                    request = self._comm.Irecv(sign, peer, BEAT)
                self._wait(request, SILENT_FOR)
                if sign[0]:
                    self._gone.add(peer)
        for request in sent:
            self._wait(request, SILENT_FOR)

    def abort(self, reason: str, status: int = 1) -> None:
        """End the processes of all ranks at once, after saying why."""
        if reason:
            sys.stderr.write(
                f"spinsim: {reason}, so that all ranks end: 'spinsim resume FILE' goes on from the last checkpoint\n"
            )
            sys.stderr.flush()
            time.sleep(TOLD_IN)
        self._comm.Abort(status)


def _pieces(array: Any) -> list[Any]:
    content = array.reshape(-1).view(np.uint8)
    return [content[first : first + PIECE] for first in range(0, content.size, PIECE)]


def why_not() -> str | None:
    """The reason why several ranks cannot work together here, None where there is none."""
    try:
        import mpi4py

        mpi4py.rc(initialize=False, finalize=False)  # processes that are alone do without
        from mpi4py import MPI  # noqa: F401
    except ImportError:
        return "install spinsim-ising[mpi] to use several processes"
    except RuntimeError:
        return "mpi4py finds no MPI library: install one such as mpich or openmpi"
    return None


def name_of(rank: int) -> str:
    return f"rank {rank} on {socket.gethostname()}, process {os.getpid()}"
