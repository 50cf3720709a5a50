"""What makes functions of ``machine/compiled.py`` those of Numba, which is loaded with this module and no other."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from numba import config, njit
from numba.core import event
from numba.extending import register_jitable

from spinsim.errors import InputError
from spinsim.machine.clock import COMPILING

if getattr(config, "DISABLE_JIT", 0):
    raise InputError("NUMBA_DISABLE_JIT is set, but kernels must be compiled: unset it")

_OPTIONS: Final[Any] = {"nogil": True, "boundscheck": False, "error_model": "numpy"}
_NO_WRAPPERS: Final[Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
SOURCES: Final = (
    "acceptance.py",
    "engine/measuring/cpu_comparison.py",
    "engine/metropolis/anisotropic/cpu_sweep.py",
    "engine/metropolis/anisotropic/cpu_tempering.py",
    "engine/metropolis/packed/adders.py",
    "engine/metropolis/packed/batches.py",
    "engine/metropolis/replica_packed/degrees/cheap_steps.py",
    "engine/metropolis/packed/classes.py",
    "engine/metropolis/packed/cpu_tables.py",
    "engine/metropolis/packed/steps.py",
    "engine/metropolis/packed/wide_steps.py",
    "engine/metropolis/by_replica/cpu_sweep.py",
    "engine/metropolis/dense/cpu_sweep.py",
    "engine/metropolis/dense/cpu_tempering.py",
    "engine/metropolis/dense/cpu_vectors.py",
    "engine/metropolis/replica_packed/counting/cpu.py",
    "engine/metropolis/replica_packed/cpu_sweep.py",
    "engine/metropolis/replica_packed/cpu_sweep_in_field.py",
    "engine/metropolis/replica_packed/degrees/cpu_sweep.py",
    "engine/metropolis/replica_packed/degrees/cpu_tempering.py",
    "engine/metropolis/replica_packed/degrees/fields.py",
    "engine/metropolis/replica_packed/tempering/cpu.py",
    "engine/metropolis/site_packed/cpu_comparison.py",
    "engine/metropolis/site_packed/cpu_sweep.py",
    "engine/metropolis/site_packed/signs.py",
    "engine/metropolis/unpacked/cpu_counting.py",
    "engine/metropolis/unpacked/cpu_sweep.py",
    "engine/metropolis/unpacked/cpu_sweep_terms.py",
    "engine/metropolis/unpacked/tempering/cpu.py",
    "engine/metropolis/unpacked/replica_order.py",
    "engine/resampling/cpu.py",
    "engine/resampling/parents.py",
    "engine/start/at_random.py",
    "engine/tempering/cpu_exchange.py",
    "engine/tempering/ladder.py",
    "machine/compiler.py",
    "machine/intrinsics.py",
    "model/colouring.py",
    "model/drawing.py",
    "bits.py",
    "packing.py",
    "rng.py",
    "transfer_matrix/cpu.py",
    "transfer_matrix/vectors.py",
)
"""Files that hold compiled functions, and those from which these take constants; a test keeps the list."""


def _source_digest() -> str:
    """Identity of everything that kernels inline: Numba itself looks at the file of the kernel only."""
    root = Path(__file__).parents[1]
    return hashlib.sha256(b"".join((root / name).read_bytes() for name in SOURCES)).hexdigest()


SOURCE_DIGEST: Final = _source_digest()


class _Listener(event.Listener):
    """Has the clock stand still while Numba compiles."""

    def on_start(self, event: event.Event) -> None:
        """Numba begins in a thread."""
        COMPILING.begin()

    def on_end(self, event: event.Event) -> None:
        """Numba is done in a thread."""
        COMPILING.end()


event.register("numba:compiler_lock", _Listener())  # type: ignore[no-untyped-call]


def kernel(function: Callable[..., Any]) -> Any:
    """Compile an entry point: without the interpreter lock, cached on disk until a source of ``SOURCES`` changes."""
    return _entry_point(function, _OPTIONS)


def real_kernel(function: Callable[..., Any]) -> Any:
    """The same where the last bits are free: sums may be reordered and multiply-adds fused."""
    return _entry_point(function, _OPTIONS | {"fastmath": {"reassoc", "contract", "nsz"}})


def _entry_point(function: Callable[..., Any], options: dict[str, Any]) -> Any:
    try:
        compiled = njit(cache=True, **options)(function)
    except RuntimeError:  # neither the package's folder nor the user's cache can be written
        return njit(**options)(function)
    cache = compiled._cache._cache_file
    cache._source_stamp = SOURCE_DIGEST
    cache._load_index = _or_nothing(cache._load_index)
    return compiled


def _or_nothing(load_index: Callable[[], dict[Any, Any]]) -> Callable[[], dict[Any, Any]]:
    """Take compiled kernels that name types of modules that are there no longer for what they are: out of date."""

    def load() -> dict[Any, Any]:
        try:
            return load_index()
        except (ImportError, AttributeError):
            return {}

    return load


def part(function: Callable[..., Any]) -> Any:
    """Compile a piece of a kernel, always inlined: a call inside a loop would stop its vectorisation."""
    return njit(forceinline=True, **_OPTIONS, **_NO_WRAPPERS)(function)


def body(function: Callable[..., Any]) -> Any:
    """Write a function into the one kernel that calls it, before that is compiled: it is never compiled alone."""
    return njit(inline="always", **_OPTIONS)(function)


def make_known(function: Callable[..., Any]) -> None:
    """Let compiled functions call a function that stays one of Python."""
    register_jitable(forceinline=True)(function)
