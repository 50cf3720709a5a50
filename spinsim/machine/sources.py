"""Sources of the CPU's kernels: machine code that was made from others is out of date."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from typing import Final

SOURCES: Final = (
    "acceptance.py",
    "engine/measuring/cpu_comparison.py",
    "engine/moves/metropolis/anisotropic/cpu_sweep.py",
    "engine/moves/metropolis/anisotropic/cpu_tempering.py",
    "engine/layouts/replica_packed/adders.py",
    "engine/moves/metropolis/packed/batches.py",
    "engine/moves/metropolis/replica_packed/degrees/cheap_steps.py",
    "engine/moves/metropolis/packed/classes.py",
    "engine/moves/metropolis/packed/cpu_tables.py",
    "engine/moves/metropolis/packed/steps.py",
    "engine/moves/metropolis/packed/wide_steps.py",
    "engine/moves/metropolis/by_replica/cpu_sweep.py",
    "engine/moves/metropolis/dense/cpu_sweep.py",
    "engine/moves/metropolis/dense/cpu_tempering.py",
    "engine/moves/metropolis/dense/cpu_vectors.py",
    "engine/layouts/replica_packed/cpu_counting.py",
    "engine/moves/metropolis/replica_packed/cpu_sweep.py",
    "engine/moves/metropolis/replica_packed/cpu_sweep_in_field.py",
    "engine/moves/metropolis/replica_packed/degrees/cpu_sweep.py",
    "engine/moves/metropolis/replica_packed/degrees/cpu_tempering.py",
    "engine/moves/metropolis/replica_packed/degrees/fields.py",
    "engine/moves/metropolis/replica_packed/tempering/cpu.py",
    "engine/moves/metropolis/replica_packed/tempering/cpu_in_field.py",
    "engine/moves/metropolis/site_packed/cpu_comparison.py",
    "engine/moves/metropolis/site_packed/cpu_sweep.py",
    "engine/moves/metropolis/site_packed/signs.py",
    "engine/layouts/unpacked/cpu.py",
    "engine/moves/metropolis/unpacked/cpu_sweep.py",
    "engine/moves/metropolis/unpacked/cpu_sweep_terms.py",
    "engine/moves/metropolis/unpacked/tempering/cpu.py",
    "engine/moves/resample/cpu.py",
    "engine/moves/resample/parents.py",
    "engine/start/at_random.py",
    "engine/moves/exchange/cpu_exchange.py",
    "engine/moves/exchange/ladder.py",
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
