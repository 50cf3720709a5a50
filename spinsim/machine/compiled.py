"""How functions are compiled by Numba, and the bit operations that NumPy lacks."""

from __future__ import annotations

import contextlib
import hashlib
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from llvmlite import ir
from numba import config, njit, types
from numba.core import event
from numba.extending import intrinsic
from numba.np.arrayobj import make_array

from spinsim.errors import InputError

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
    "engine/metropolis/dense/cpu_sweep.py",
    "engine/metropolis/replica_packed/counting/cpu.py",
    "engine/metropolis/replica_packed/cpu_sweep.py",
    "engine/metropolis/replica_packed/cpu_sweep_in_field.py",
    "engine/metropolis/replica_packed/degrees/cpu_sweep.py",
    "engine/metropolis/replica_packed/degrees/cpu_tempering.py",
    "engine/metropolis/replica_packed/tempering/cpu.py",
    "engine/metropolis/site_packed/cpu_comparison.py",
    "engine/metropolis/site_packed/cpu_sweep.py",
    "engine/metropolis/site_packed/signs.py",
    "engine/metropolis/unpacked/cpu_counting.py",
    "engine/metropolis/unpacked/cpu_sweep.py",
    "engine/metropolis/unpacked/cpu_sweep_terms.py",
    "engine/metropolis/unpacked/cpu_tempering.py",
    "engine/metropolis/unpacked/replica_order.py",
    "engine/resampling/cpu.py",
    "engine/resampling/parents.py",
    "engine/start/at_random.py",
    "engine/tempering/cpu_exchange.py",
    "engine/tempering/ladder.py",
    "machine/compiled.py",
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


class _CompilingTime(event.Listener):
    """Counts the time during which at least one thread compiles or waits for another that does."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._compiling, self._since, self._total = 0, 0.0, 0.0

    def on_start(self, event: event.Event) -> None:
        """Numba begins in a thread."""
        self.begin()

    def on_end(self, event: event.Event) -> None:
        """Numba is done in a thread."""
        self.end()

    def begin(self) -> None:
        """A thread begins."""
        with self._lock:
            if not self._compiling:
                self._since = time.perf_counter()
            self._compiling += 1

    def end(self) -> None:
        """A thread is done."""
        with self._lock:
            self._compiling -= 1
            if not self._compiling:
                self._total += time.perf_counter() - self._since

    def seconds(self) -> float:
        """The time so far."""
        with self._lock:
            return self._total + (time.perf_counter() - self._since if self._compiling else 0.0)


_COMPILING: Final = _CompilingTime()
event.register("numba:compiler_lock", _COMPILING)  # type: ignore[no-untyped-call]


@contextlib.contextmanager
def compiling() -> Iterator[None]:
    """Count what is done meanwhile as the compiling of kernels, which no clock of a search or of a rate counts."""
    _COMPILING.begin()
    try:
        yield
    finally:
        _COMPILING.end()


def compiling_seconds() -> float:
    """How long this process has compiled kernels, or read compiled ones from disk, so far."""
    return _COMPILING.seconds()


def seconds_without_compiling() -> float:
    """A clock that stands still while kernels are compiled."""
    return time.perf_counter() - compiling_seconds()


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


def _trailing_zeros(typing_context, word):  # type: ignore[no-untyped-def]
    """Position of the lowest set bit of a nonzero uint64."""

    def generate(context, builder, signature, args):  # type: ignore[no-untyped-def]
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.uint64(types.uint64), generate


trailing_zeros: Any = intrinsic(_trailing_zeros)


def _borrowed(typing_context, array):  # type: ignore[no-untyped-def]
    """The same array without a count of references, whose owner must live longer.

    Atomic instructions that count the references of slices and arguments cost more than what is done with a few words.
    """

    def generate(context, builder, signature, args):  # type: ignore[no-untyped-def]
        found = make_array(signature.return_type)(context, builder, args[0])  # type: ignore[no-untyped-call]
        found.meminfo = ir.Constant(found.meminfo.type, None)
        return found._getvalue()

    return array(array), generate


borrowed: Any = intrinsic(_borrowed)


def _set_bits(typing_context, word):  # type: ignore[no-untyped-def]
    """Number of set bits of a uint64."""

    def generate(context, builder, signature, args):  # type: ignore[no-untyped-def]
        return builder.ctpop(args[0])

    return types.uint64(types.uint64), generate


set_bits: Any = intrinsic(_set_bits)
