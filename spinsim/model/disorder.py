"""Random couplings, from a seed and a stream of their own: sample k is the same whichever samples go with it."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from spinsim import rng
from spinsim.compiled import kernel
from spinsim.errors import InputError
from spinsim.model.geometry.lattice import Lattice
from spinsim.model.graph import Graph
from spinsim.model.ising import Ising, relative_change, round_to

RANDOM_KINDS: Final = ("pm-j", "gaussian")
KINDS: Final = ("ferromagnet", "antiferromagnet", *RANDOM_KINDS)
GAUSSIAN_GRID: Final = 2.0**-24  # Gaussian couplings are multiples of it, so that local fields fit 32 bits
AT_ONCE: Final = 2**22  # bonds that are drawn at once


@kernel
def _draw(sample, first, k0, k1, out):  # type: ignore[no-untyped-def]
    """64-bit uniform integers of bonds from ``first`` on."""
    stream = np.uint64(rng.Stream.COUPLINGS) << np.uint64(8)
    block = rng.counter_block(np.uint64(sample), np.uint64(0))
    for i in range(out.size):
        x0, x1, _, _ = rng.philox(np.uint64(first + i), block, np.uint64(0), stream, k0, k1, rng.ROUNDS)
        out[i] = (x0 << rng.SHIFT32) | rng.low32(x1)


def _signs(uniform: npt.NDArray[np.uint64], positive_fraction: float) -> npt.NDArray[np.int8]:
    """+1 with probability ``positive_fraction``, else -1."""
    if positive_fraction >= 1:
        return np.ones(len(uniform), np.int8)
    return np.where(uniform < np.uint64(int(positive_fraction * 2.0**64)), np.int8(1), np.int8(-1))


def _gaussian(uniform: npt.NDArray[np.uint64]) -> npt.NDArray[np.float64]:
    """Normal numbers of mean 0 and variance 1 on a grid of 2^-24."""
    between = ((uniform >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52
    return np.asarray(np.rint(ndtri(between) / GAUSSIAN_GRID) * GAUSSIAN_GRID)


def EdwardsAnderson(  # noqa: N802  (it reads as the model's name)
    lattice: Lattice,
    samples: int = 1,
    seed: int = 0,
    couplings: str = "pm-j",
    bond_fraction: float = 0.5,
    field: npt.ArrayLike = 0.0,
) -> Ising:
    """The Edwards-Anderson spin glass (J. Phys. F 5, 965 (1975)) on a lattice.

    Args:
        lattice: Where the bonds are.
        samples: Number of disorder samples.
        seed: Disorder seed; sample k depends on it and on k alone.
        couplings: ``pm-j`` or ``gaussian``.
        bond_fraction: Share of positive bonds of ``pm-j``.
        field: Uniform or site-wise field h; beside Gaussian couplings it is rounded to their grid, so that a sample is
            the same whichever samples go with it.

    Raises:
        InputError: for an unknown kind, a fraction outside [0, 1] or fewer than one sample.
    """
    if not isinstance(lattice, Lattice):
        raise InputError(f"a {type(lattice).__name__} is no lattice: give one such as ss.cubic(8)")
    if couplings not in RANDOM_KINDS:
        raise InputError(f"couplings {couplings!r} are not a spin glass: choose pm-j or gaussian")
    if not 0 <= bond_fraction <= 1:
        raise InputError(f"bond fraction {bond_fraction} is not a probability: give a number from 0 to 1")
    if not 1 <= samples <= 2**rng.SAMPLE_BITS:
        raise InputError(f"{samples} samples cannot be simulated: give 1 to 2^{rng.SAMPLE_BITS}")
    rng.split_seed(seed)
    graph = Graph.of_lattice(lattice)
    bonds = graph.bonds
    rows = np.empty((samples, bonds), np.int8 if couplings == "pm-j" else np.float64)
    uniform = np.empty(min(bonds, AT_ONCE), np.uint64)
    for sample in range(samples):
        for first in range(0, bonds, AT_ONCE):
            drawn = uniform[: bonds - first]
            _draw(sample, first, *rng.split_seed(seed), drawn)
            values = _signs(drawn, bond_fraction) if couplings == "pm-j" else _gaussian(drawn)
            rows[sample, first : first + len(drawn)] = values
    given = held = np.asarray(field, np.float64)
    if couplings == "gaussian":
        held = round_to(given, GAUSSIAN_GRID)
    model = Ising(graph, rows, held, name=f"{lattice.label}-{couplings}")
    model.rounding_error = max(model.rounding_error, relative_change(given, held))
    model.rounded |= model.rounding_error > 0
    return model


def lattice_model(
    lattice: Lattice, couplings: str, *, samples: int = 1, seed: int = 0, bond_fraction: float = 0.5, field: float = 0.0
) -> Ising:
    """The model of the command line's names: ferromagnet, antiferromagnet, pm-j or gaussian on a lattice."""
    if couplings not in KINDS:
        raise InputError(f"couplings {couplings!r} are unknown: choose one of {', '.join(KINDS)}")
    if couplings in RANDOM_KINDS:
        return EdwardsAnderson(lattice, samples, seed, couplings, bond_fraction, field)
    if samples != 1:
        raise InputError(
            f"{samples} samples of a {couplings} are all equal: leave samples out, or choose pm-j or gaussian couplings"
        )
    sign = 1.0 if couplings == "ferromagnet" else -1.0
    return Ising(lattice, sign, field, name=f"{lattice.label}-{couplings}")
