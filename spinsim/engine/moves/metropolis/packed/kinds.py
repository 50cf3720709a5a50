"""The special cases of the packed updates that have CUDA kernels of their own."""

from __future__ import annotations

from enum import IntEnum
from math import log2
from typing import Final, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from spinsim.acceptance import ZERO_ACCEPTANCE
from spinsim.engine.dynamics import Dynamics
from spinsim.engine.moves.metropolis.packed.classes import OWN_PLANES, PLANES

ZERO_PLANES: Final = round(-log2(1 - ZERO_ACCEPTANCE))
"""Flips that cost nothing are refused, under the default rule, where so many planes are all ones."""


LEAST_BITS: Final = 2  # of cheap classes


class Limits(NamedTuple):
    """What decides flips at some temperatures, (parity of the degree, class, temperature).

    Attributes:
        certain: Whether a flip needs no random number.
        thresholds: Else its threshold.
    """

    certain: npt.NDArray[np.bool_]
    thresholds: npt.NDArray[np.uint64]


class Kind(IntEnum):
    """Special cases of the packed update with kernels of their own.

    ANY: none. PLAIN: only gains flip for certain, no field, the default zero-cost rule. WARM, COLD: besides, thresholds
    begin with as many zeros as ``WARM_CLEAR`` or ``COLD_CLEAR`` say.
    """

    ANY = 0
    PLAIN = 1
    WARM = 2
    COLD = 3


class Clear(NamedTuple):
    """How many of the first planes hold no threshold bits of a class that costs energy.

    Attributes:
        largest: Of class 0, the largest cost, which sites of four bonds do not have.
        middle: Of class 1.
        smallest: Of class 2.
    """

    largest: int
    middle: int
    smallest: int


WARM_CLEAR: Final = Clear(4, 2, 1)
"""With six bonds of +-J: below T = 4.32 |J|."""

COLD_CLEAR: Final = Clear(OWN_PLANES, OWN_PLANES, 2)
"""Below T = 2.31 |J|: of the own planes, only the smallest cost has bits."""


class PackedPlan(Protocol):
    """What a special case follows from, of either packed update."""

    dynamics: Dynamics
    has_field: bool


def kind_of(plan: PackedPlan, limits: Limits) -> Kind:
    """The special case of a run at temperatures of ``limits``; its sites of odd degree are at most ``PLAIN``."""
    if plan.has_field or plan.dynamics.zero_acceptance != ZERO_ACCEPTANCE or limits.certain.any():
        return Kind.ANY
    for kind, clear in ((Kind.COLD, COLD_CLEAR), (Kind.WARM, WARM_CLEAR)):
        beyond = np.array([[64 - planes] for planes in clear], np.uint64)
        if not (limits.thresholds[0, : len(clear)] >> beyond).any():
            return kind
    return Kind.PLAIN


def cheap_bits(limits: Limits) -> int:
    """B of cheap_steps.py: of the classes, without a field, all but the last 2^B have no bits in the planes."""
    in_planes = limits.certain | (limits.thresholds >> np.uint64(64 - PLANES) != 0)
    of_class: npt.NDArray[np.bool_] = in_planes.any(axis=(0, 2))[::-1]  # the cheapest first
    return bits_up_to(int(of_class.nonzero()[0].max(initial=0)))


def bits_up_to(last: int) -> int:
    """Of so many bits is the number of the last class, of the cheapest first, that has bits in the planes."""
    return max(LEAST_BITS, last.bit_length())
