"""A look at all headers of a file in a child process, before this one reads any.

The HDF5 library follows some damaged headers for ever, deaf to signals, or crashes on them. Only headers do that, not
the numbers of datasets. The child ends where it has used too much processor time; nothing else comes of it.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import signal
import sys
import time
import warnings
from collections.abc import Callable
from typing import Final

import h5py
import numpy as np

try:
    import resource
except ImportError:  # not on Windows
    resource = None  # type: ignore[assignment]

_SECONDS: Final = 3  # of processor time; the headers of a whole file take some 0.02
_PATIENCE: Final = 30  # of the clock: a child that uses no processor time, for whatever reason, tells nothing
_LONGEST_NAP: Final = 0.02
_PASSED: Final = 0


def survives(look: Callable[[], None]) -> bool | None:
    """Call a function in a child process.

    Returns:
        True where it returned, False where it did not end or ended the process, None where it raised an exception,
        waited for something else, or there can be no child: only Linux lets any process fork safely.
    """
    if resource is None or sys.platform != "linux":
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # other threads run here; h5py and malloc expect it
            child = os.fork()
    except OSError:  # no room for another process
        return None
    if child == 0:
        _look_and_leave(look)
    status = _status_of(child)
    if status is None:
        return None
    if os.WIFSIGNALED(status):
        return False
    return True if os.WEXITSTATUS(status) == _PASSED else None


def _status_of(child: int) -> int | None:
    """Wait for a child; None where it takes too long. No child outlives this, not even by Ctrl-C."""
    late, nap = time.monotonic() + _PATIENCE, 0.001
    status = None
    try:
        while status is None and time.monotonic() < late:
            ended, code = os.waitpid(child, os.WNOHANG)
            if ended:
                status = code
            else:
                time.sleep(nap)
                nap = min(2 * nap, _LONGEST_NAP)
    finally:
        if status is None:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
    return status


def _look_and_leave(look: Callable[[], None]) -> None:
    """Never return: neither do exceptions, handlers at exit or buffers of the parent get another turn."""
    status = 1
    with contextlib.suppress(BaseException):
        faulthandler.disable()  # a crash is told in a sentence
        resource.setrlimit(resource.RLIMIT_CPU, (_SECONDS, _SECONDS))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        look()
        status = _PASSED
    os._exit(status)


def look_at_headers(file: h5py.File) -> None:
    """Read every attribute of a file and look up where the chunks of its datasets lie."""

    def look(name: bytes) -> None:
        item = h5py.h5o.open(file.id, name)
        if isinstance(item, h5py.h5d.DatasetID):
            item.get_storage_size()
        for number in range(h5py.h5a.get_num_attrs(item)):
            with contextlib.suppress(Exception):
                attribute = h5py.h5a.open(item, index=number)
                attribute.read(np.empty(attribute.shape, attribute.dtype))

    look(b".")
    h5py.h5o.visit(file.id, look)
