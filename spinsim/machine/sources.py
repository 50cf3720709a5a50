"""Sources of the CPU's kernels: machine code that was made from others is out of date."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from typing import Final

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
    "engine/metropolis/replica_packed/tempering/cpu_in_field.py",
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


@cache
def source_digest() -> str:
    """SHA-256 of all files that kernels inline or take constants from."""
    root = Path(__file__).parents[1]
    return hashlib.sha256(b"".join((root / name).read_bytes() for name in SOURCES)).hexdigest()
