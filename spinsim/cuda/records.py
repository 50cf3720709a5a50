"""What kernels take by value: structs of addresses and numbers, round keys; and arrays that share one buffer."""

from __future__ import annotations

from math import prod
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from spinsim import rng

Layout = np.dtype[np.void]

ADDRESS: Final = np.uint64
SIZE: Final = np.uint64  # size_t


def struct_type(**members: Any) -> Layout:
    """The type of a C struct: the types of its members, in order, by the names that they have in the kernels."""
    return np.dtype(list(members.items()), align=True)


KEY: Final = struct_type(low=(np.uint32, rng.ROUNDS), high=(np.uint32, rng.ROUNDS))


def address(argument: Any) -> Any:
    """An array on the device as its address; anything else as it is."""
    return argument.data.ptr if hasattr(argument, "data") and hasattr(argument.data, "ptr") else argument


def record(kind: Layout, **members: Any) -> npt.NDArray[np.void]:
    """A struct by the names of its members: numbers, structs as tuples, arrays on the device as their address.

    Raises:
        TypeError: where the names are not those of the struct's members.
    """
    names = kind.names or ()
    if members.keys() != set(names):
        raise TypeError(f"a struct of {', '.join(names)} is given {', '.join(members)}")
    return np.array(tuple(address(members[name]) for name in names), kind)


def round_keys(seed: int) -> npt.NDArray[np.void]:
    """The two key words of every round, as ``KEY``."""
    first, second = (np.uint32(word) for word in rng.split_seed(seed))
    rounds = np.arange(rng.ROUNDS, dtype=np.uint32)
    low, high = first + rounds * np.uint32(rng.WEYL_0), second + rounds * np.uint32(rng.WEYL_1)  # modulo 2^32
    return record(KEY, low=low, high=high)


class Fields:
    """Arrays in one buffer of int64 words, which one copy fetches: in the order given, each at a whole word.

    Args:
        fields: Shape and type by name.

    Attributes:
        words: First word of each.
        sizes: Items of each.
        size: Words of the buffer.
    """

    def __init__(self, **fields: tuple[tuple[int, ...], Any]) -> None:
        self.sizes = {name: prod(shape) for name, (shape, _) in fields.items()}
        self.words, self._places, self.size = {}, {}, 0
        for name, (shape, kind) in fields.items():
            dtype = np.dtype(kind)
            self.words[name] = self.size
            self._places[name] = 8 * self.size, 8 * self.size + self.sizes[name] * dtype.itemsize, dtype, shape
            self.size += -(-self.sizes[name] * dtype.itemsize // 8)

    def split(self, words: Any) -> dict[str, Any]:
        """Views of a buffer, on the host or on the device."""
        octets = words.view(np.uint8)
        return {
            name: octets[first:end].view(dtype).reshape(shape)
            for name, (first, end, dtype, shape) in self._places.items()
        }
