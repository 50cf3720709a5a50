"""Processes of ``spinsim`` that begin at once: copies of one that has imported everything and read the kernels.

A new Python takes one to two seconds for that, and tests start some hundred. A copy does what ``python -m spinsim``
does: it has arguments, folder, environment and streams of its own, takes signals, and ends as an interpreter does.

    python forking.py serve NAME                    at a socket of that name, until the process that started it ends
    python forking.py run NAME ARGUMENT...          as ``spinsim ARGUMENT...``, by that server
"""

from __future__ import annotations

import contextlib
import gc
import io
import json
import os
import signal
import socket
import sys
import warnings
from typing import Any


def ask(name: str, request: dict[str, Any], streams: tuple[int, int, int]) -> tuple[int, socket.socket]:
    """Begin a command on given standard streams; its process, and a connection on which ``status`` comes."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    connection.connect(f"\0{name}")
    socket.send_fds(connection, [json.dumps(request).encode()], streams)
    return int(connection.recv(64)), connection


def status(connection: socket.socket) -> int:
    """Wait for a command: what it exits with, or the negative number of the signal that ended it."""
    with connection:
        return os.waitstatus_to_exitcode(int(connection.recv(64)))


def _fork() -> int:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of threads: NumPy's are made for it, and there are no others
        return os.fork()


def _serve(name: str) -> None:
    """Fork a supervisor for each connection, which forks the command; returns in the command."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(f"\0{name}")
    listener.listen()
    print("ready", flush=True)  # noqa: T201
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for supervisors
    parent = os.getppid()
    listener.settimeout(1.0)
    while os.getppid() == parent:
        try:
            connection, _ = listener.accept()
        except TimeoutError:
            continue
        if not _fork():
            listener.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            return _supervise(connection)
        connection.close()
    sys.exit(0)


def _supervise(connection: socket.socket) -> None:
    """Begin the command and tell how it ends; returns in the command."""
    connection.setblocking(True)
    message, streams, *_ = socket.recv_fds(connection, 2**20, 3)
    child = _fork()
    if child:
        for stream in streams:
            os.close(stream)
        connection.send(str(child).encode())
        ended = str(os.waitpid(child, 0)[1]).encode()
        with contextlib.suppress(OSError):  # nobody waits for it any more
            connection.send(ended)
        os._exit(0)
    connection.close()
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    request = json.loads(message)
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["folder"])
    sys.argv = ["spinsim", *request["arguments"]]
    exec(request["code"], {"__name__": "__main__"})  # noqa: S102  (a test's own statements)


def _prepare() -> None:
    """Import what commands import, and read the kernels that most of them need."""
    from compiling import RUNS
    from matplotlib.figure import Figure

    RUNS["replica-packed"]()
    RUNS["tempering"]()
    Figure().add_subplot(title="$T$").figure.savefig(io.BytesIO(), format="pdf")  # fonts
    gc.collect()
    gc.freeze()  # a copy that leaves would else go through all of this memory


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        from spinsim.cli import main

        _prepare()
        _serve(sys.argv[2])
        main()
    words = {"folder": os.getcwd(), "arguments": sys.argv[3:], "environment": dict(os.environ), "code": ""}
    sys.exit(status(ask(sys.argv[2], words, (0, 1, 2))[1]))
