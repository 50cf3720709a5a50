"""Lowest energies of chunks of all states, on a GPU: the CPU then compares the states of the lowest chunks alone."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from spinsim.cuda.compile import Instances, instance
from spinsim.cuda.device import cupy
from spinsim.cuda.launch import ADDRESS, Launch, record, struct_type
from spinsim.machine.memory import make_current

FILE: Final = "optimum/lowest_of_chunks.cu"
INNER: Final = 7  # spins whose patterns a thread compares without loads
SERIAL: Final = 12  # most spins that a thread flips one by one
THREADS: Final = 128
LEAST: Final = INNER + 18  # spins from which each thread flips some: enough threads for a GPU
AT_ONCE: Final = 2**20  # chunks of a launch
INTEGERS: Final = {np.dtype(np.int32): "int", np.dtype(np.int64): "long long"}
INSTANCES: Final[Instances] = tuple((FILE, instance("lowest_of_chunks", name)) for name in INTEGERS.values())
PROBLEM32, PROBLEM64 = (
    struct_type(couplings=ADDRESS, fields=ADDRESS, serial=ADDRESS, sites=np.uint32, serial_spins=np.uint32,
                inside=(kind, 1 << INNER)) for kind in (np.int32, np.int64)
)  # fmt: skip


def lowest_of_chunks(
    device: int, couplings: npt.NDArray[Any], fields: npt.NDArray[Any], inside: npt.NDArray[Any],
    serial: npt.NDArray[Any],
) -> npt.NDArray[Any]:  # fmt: skip
    """Lowest energies (chunks,) of states whose spins past the serial ones have the Gray code of the chunk's number.

    ``inside`` and ``serial`` are energies of the patterns of inner and serial spins without fields.
    """
    make_current(device)
    sites, kind = len(fields), fields.dtype
    spins = len(serial).bit_length() - 1
    chunks = 1 << (sites - INNER - spins)
    there = [cupy.asarray(one) for one in (couplings, fields, serial)]
    problem = record(
        PROBLEM32 if kind == np.int32 else PROBLEM64, couplings=there[0], fields=there[1], serial=there[2],
        sites=sites, serial_spins=spins, inside=inside,
    )  # fmt: skip
    lowest, stream = np.empty(chunks, kind), cupy.cuda.get_current_stream()
    for first in range(0, chunks, AT_ONCE):
        some = min(AT_ONCE, chunks - first)
        found = cupy.empty(some, kind)
        arguments = {"of": problem, "first": np.uint64(first), "chunks": np.uint64(some), "lowest": found}
        launch = Launch(device, FILE, instance("lowest_of_chunks", INTEGERS[kind]), arguments)
        launch(stream, (-(-some // THREADS), 1, 1), THREADS)
        lowest[first : first + some] = found.get()
    return lowest
