"""What kernels take by value: structs of addresses and numbers, round keys."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from spinsim import rng


def address(argument: Any) -> Any:
    """An array on the device as its address; anything else as it is."""
    return argument.data.ptr if hasattr(argument, "data") and hasattr(argument.data, "ptr") else argument


def record(*members: float) -> npt.NDArray[np.void]:
    """64-bit integers and doubles as a C struct."""
    kinds = [np.float64 if isinstance(m, float) else np.int64 for m in members]
    return np.array(members, [(f"m{i}", kind) for i, kind in enumerate(kinds)])


def struct(*members: Any) -> npt.NDArray[np.void]:
    """Device pointers and 64-bit integers as a C struct, passed to a kernel by value."""
    values = tuple(address(m) for m in members)
    return np.array(values, [(f"m{i}", np.uint64) for i in range(len(values))])


def round_keys(seed: int) -> npt.NDArray[np.void]:
    """``Key`` of philox.cuh: the two key words of every round."""
    low, high = (np.uint32(word) for word in rng.split_seed(seed))
    rounds = np.arange(rng.ROUNDS, dtype=np.uint32)
    keys = (low + rounds * np.uint32(rng.WEYL_0), high + rounds * np.uint32(rng.WEYL_1))  # modulo 2^32
    return np.array(keys, [("low", np.uint32, rng.ROUNDS), ("high", np.uint32, rng.ROUNDS)])
