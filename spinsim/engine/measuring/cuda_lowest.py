"""Lowest states that measurements meet, kept on the GPU that makes them as ``Best`` does on a host."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from spinsim.cuda.device import multiprocessors, require_memory
from spinsim.cuda.launch import ADDRESS, SIZE, Launch, record, struct_type
from spinsim.engine.protocols import Configurations, LowestStates
from spinsim.model.ising import Ising

THREADS: Final = 128
LOWEST: Final = struct_type(
    **dict.fromkeys(("energy", "replica", "changed", "states"), ADDRESS),
    **dict.fromkeys(("samples", "replicas", "words"), SIZE),
)
BLOCKS: Final = 4  # of a multiprocessor that copy states, where samples are few
_MANY: Final = 16  # samples whose states are fetched together, not one by one
_MOST_BYTES: Final = 2**28  # of all states that are fetched together
WORDS_A_THREAD: Final = 16  # of a state, at least


class Fetched:
    """A copy of an array on the host that is read as one on the device is: parts by index, and ``get``."""

    def __init__(self, whole: npt.NDArray[Any]) -> None:
        self._whole = whole

    def __getitem__(self, index: Any) -> Fetched:
        return Fetched(self._whole[index])

    def get(self) -> npt.NDArray[Any]:
        """Return the array."""
        return np.ascontiguousarray(self._whole)


class CudaLowest:
    """The lowest energy of every replica, and a copy of each sample's state at its lowest.

    Args:
        device: Number of the device; the present one of CuPy.
        state: The spins on the device, samples along the first axis.
        reads: The stream by which the host reads.

    Raises:
        InputError: where the device has no room for the copies.
    """

    def __init__(
        self,
        device: int,
        model: Ising,
        replicas: int,
        state: Any,
        read: Callable[[Any, int, int], npt.NDArray[np.int8]],
        reads: Any,
    ) -> None:
        import cupy

        samples = model.samples
        size = state.nbytes // samples  # of a sample: whole words of 32 bits in every layout
        if size % 4:
            raise TypeError(f"the state of a sample has {size} bytes, which are no whole words")
        require_memory(device, state.nbytes + 8 * samples * (replicas + 4), "the lowest state of every sample")
        self._device, self._read, self._reads, self._sites = device, read, reads, model.sites
        with reads:
            self._energy, self._so_far = cupy.full((samples, replicas), np.inf), cupy.full((2, samples), np.inf)
            self._replica, self._changed = cupy.zeros(samples, cupy.int32), cupy.zeros(samples, cupy.uint32)
            self._states = cupy.empty(state.shape, state.dtype)
            reads.synchronize()
        words, several = size // 4, BLOCKS * multiprocessors(device) // samples
        self._grid = max(1, min(several, words // (THREADS * WORDS_A_THREAD))), samples, 1
        to = record(
            LOWEST, energy=self._energy, replica=self._replica, changed=self._changed, states=self._states,
            samples=samples, replicas=replicas, words=words,
        )  # fmt: skip
        self._keep = Launch(device, "measuring/lowest.cu", "keep_lowest", {
            "numbers": np.uint64(0), "size": np.uint64(0), "count": np.uint32(0),
            **dict.fromkeys(("energy", "holder", "state"), np.uint64(0)), "to": to,
            **dict.fromkeys(("before", "after"), np.uint64(0)),
        })  # fmt: skip
        self._so_far_at = tuple(each.data.ptr for each in self._so_far)
        self._turn = 0
        self._given: Configurations | None = None
        self._is_copied = np.zeros(samples, np.bool_)  # since configurations were given

    def queue(self, stream: Any, numbers: int, size: int, count: int, energy: int, holder: int, state: int) -> None:
        """Queue measurements in succession.

        Args:
            numbers: Address of the first one's numbers.
            size: Words from those of a measurement to the next one's.
            energy: Word at which the energies of a measurement begin, by copy and place.
            holder: Word at which their replicas begin.
            state: Address of the first one's spins, behind which those of the next ones follow.
        """
        before, after = self._so_far_at[self._turn], self._so_far_at[1 - self._turn]
        where = {"energy": energy, "holder": holder, "state": state, "before": before, "after": after}
        self._keep(stream, self._grid, THREADS, numbers=numbers, size=size, count=count, **where)
        self._turn = 1 - self._turn

    def states(self, added: Any) -> LowestStates:
        """Return what has been found by an event."""
        import cupy

        with cupy.cuda.Device(self._device), self._reads:
            self._reads.wait_event(added)
            energy, replica, changed = (array.get() for array in (self._energy, self._replica, self._changed))
            self._changed.data.memset_async(0, self._changed.nbytes, self._reads)
            self._reads.synchronize()
            numbers = np.flatnonzero(changed)
            at_once = len(numbers) >= _MANY and self._states.nbytes <= _MOST_BYTES
            states = Fetched(self._states.get()) if at_once else self._states
        self._is_copied |= changed != 0
        spins = partial(self._spins, states, replica)
        return LowestStates(np.asarray(energy), spins, numbers)

    def _spins(self, states: Any, replica: npt.NDArray[np.int32], sample: int) -> npt.NDArray[np.int8]:
        import cupy

        if not self._is_copied[sample]:
            return np.zeros(self._sites, np.int8) if self._given is None else np.asarray(self._given[sample], np.int8)
        with cupy.cuda.Device(self._device), self._reads:
            return self._read(states, sample, int(replica[sample]))

    def restore(self, energy: npt.NDArray[np.float64], spins: Configurations, added: Any) -> None:
        """Go back to energies (samples, replicas) and configurations of each sample, when an event has come."""
        import cupy

        with cupy.cuda.Device(self._device), self._reads:
            self._reads.wait_event(added)
            self._energy.set(np.ascontiguousarray(energy, np.float64))
            self._so_far.set(np.ascontiguousarray(np.broadcast_to(energy.min(axis=1), self._so_far.shape)))
            self._changed.data.memset_async(0, self._changed.nbytes, self._reads)
            self._reads.synchronize()
        self._given = spins
        self._is_copied[:] = False
