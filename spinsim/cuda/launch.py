"""Kernel launches through the driver, with arguments laid out once: CuPy's own call lays them out anew each time."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from spinsim.cuda.compile import kernel, parameters
from spinsim.cuda.records import address


def in_memory(argument: Any) -> npt.NDArray[Any]:
    """An argument as the bytes that a kernel receives: arrays on the device as their address."""
    where = address(argument)
    return np.array([argument]) if where is argument else np.array([where], np.uint64)


class Launch:
    """One kernel instance on one device and its arguments.

    Args:
        device: Number of the device.
        file: Kernel file.
        expression: Template instance.
        arguments: NumPy scalars, structs and arrays on the device, by the names of the kernel's parameters.
        shared: Dynamic shared memory in bytes.

    Raises:
        TypeError: where the names are not those of the parameters.
    """

    def __init__(
        self,
        device: int,
        file: str,
        expression: str,
        arguments: dict[str, Any],
        shared: int = 0,
    ) -> None:
        from cupy.cuda import Device

        names = parameters(file, expression)
        if arguments.keys() != set(names):
            raise TypeError(f"{file}: {expression} takes {', '.join(names)}, not {', '.join(arguments)}")
        function = kernel(device, file, expression)
        with Device(device):  # CuPy's functions are those of the device that is current when they are asked
            if shared:  # the limit belongs to the function, which other launches share
                function.max_dynamic_shared_size_bytes = max(shared, function.max_dynamic_shared_size_bytes)
            self._function, self._shared = function.kernel.ptr, shared
        self._kept = arguments, function  # device arrays live as long as the launch
        self._values = {name: in_memory(arguments[name]) for name in names}
        self._pointers = np.array([value.ctypes.data for value in self._values.values()], np.uintp)

    def blocks_at_once(self, threads: int) -> int:
        """Blocks of so many threads that one multiprocessor holds."""
        from cupy.cuda import driver

        return int(driver.occupancyMaxActiveBlocksPerMultiprocessor(self._function, threads, self._shared))

    def __call__(
        self, stream: Any, grid: tuple[int, int, int], threads: int, wait: bool = False, **changed: Any
    ) -> None:
        """Launch, after giving some arguments new values; ``wait`` says that blocks wait for each other."""
        from cupy.cuda import driver

        for name, value in changed.items():
            self._values[name][0] = value
        where = self._shared, stream.ptr, self._pointers.ctypes.data
        if wait:  # the driver refuses a grid that cannot be resident at once
            driver.launchCooperativeKernel(self._function, *grid, threads, 1, 1, *where)
        else:
            driver.launchKernel(self._function, *grid, threads, 1, 1, *where, 0)
