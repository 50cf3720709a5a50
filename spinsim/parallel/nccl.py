"""NCCL through CuPy: arrays from GPU to GPU between ranks."""

from __future__ import annotations

import os
import socket
import threading
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from spinsim.errors import InputError
from spinsim.machine.memory import readable
from spinsim.parallel import session
from spinsim.parallel.places import Place, answers

CONNECT_WITHIN: Final = 60.0  # seconds


def new_name(seats: Iterable[tuple[Place, int | None]]) -> Any:
    """A name by which GPUs at places find each other, None where NCCL is missing, or has two members on one GPU."""
    gpus = answers([place.request(_gpu, number) for place, number in seats])
    if None in gpus or len(set(gpus)) < len(gpus):
        return None
    from cupy.cuda import nccl

    return nccl.get_unique_id()


def _gpu(number: int | None) -> tuple[str, str] | None:
    """The machine of a GPU and its place there, None where it is none or NCCL is missing."""
    if number is None:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # CuPy's advice to install it
        try:
            from cupy.cuda import Device, nccl
        except ImportError:
            return None
    return (socket.gethostname(), Device(number).pci_bus_id) if nccl.available else None


@contextmanager
def _within(seconds: float) -> Iterator[None]:
    """End all ranks where something takes longer, as NCCL itself waits for ever."""
    ranks = session.ranks()
    assert ranks is not None  # noqa: S101  (members are at several)
    why = f"GPUs of ranks did not reach each other by NCCL in {seconds:.0f} s (NCCL_DEBUG=INFO tells more)"
    timer = threading.Timer(seconds, ranks.abort, [why])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


class Nccl:
    """A member among GPUs; all of them make theirs at the same time, each with its own GPU current.

    Args:
        name: Name that all of them share, as ``new_name`` gives it.

    Raises:
        InputError: where one of them cannot begin, as on a GPU without memory.
    """

    def __init__(self, size: int, name: Any, index: int) -> None:
        os.environ.setdefault("NCCL_NVLS_ENABLE", "0")  # multicast serves collectives, and fails on some machines
        from cupy.cuda import Device, nccl, runtime

        self._nccl, self._device = nccl, Device()
        with _within(CONNECT_WITHIN):
            try:
                self._communicator = nccl.NcclCommunicator(size, name, index)
                self._greet((index + 1) % size, (index - 1) % size)
            except nccl.NcclError as error:  # which does not say that memory ran out
                free = readable(runtime.memGetInfo()[0])
                raise InputError(
                    f"NCCL does not begin on GPU {self._device.id}, where {free} of memory are free ({error}): end "
                    "what else uses it, or take other GPUs"
                ) from error

    def _greet(self, after: int, before: int) -> None:
        """Send a number to one member and receive one: NCCL connects GPUs when they first do."""
        import cupy

        mine, theirs = cupy.zeros(1), cupy.empty(1)
        self.exchange([(mine, after)], [(theirs, before)])
        self._device.synchronize()

    def __del__(self) -> None:
        """End without the others, for which the destructor of CuPy's communicator would wait."""
        if hasattr(self, "_communicator"):
            self._device.synchronize()
            self._communicator.abort()

    def exchange(self, give: list[tuple[Any, int]], get: list[tuple[Any, int]]) -> None:
        """Send arrays to members and receive arrays from them, on the present stream.

        NCCL has no tags: between the same two members the order of sends and receives decides.
        """
        import cupy

        stream, byte = cupy.cuda.get_current_stream().ptr, self._nccl.NCCL_UINT8
        self._nccl.groupStart()
        for array, to in give:
            self._communicator.send(array.data.ptr, array.nbytes, byte, to, stream)
        for into, giver in get:
            self._communicator.recv(into.data.ptr, into.nbytes, byte, giver, stream)
        self._nccl.groupEnd()
