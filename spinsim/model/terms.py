"""Terms of an energy: bonds of two kinds, such as those in space and those in time, or along different axes.

Each bond belongs to term 0 or to term 1, all fields to term 0, and the weight of a configuration is
exp(- beta_0 E_0 - beta_1 E_1). With one inverse temperature for both terms it is that of an ordinary Ising model.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from spinsim.errors import InputError
from spinsim.model.graph import Adjacency, Graph, adjacency

if TYPE_CHECKING:
    from spinsim.model.geometry.lattice import Lattice
    from spinsim.model.ising import Ising

MOST_TERMS: Final = 2


def check_terms(terms: npt.ArrayLike | None, bonds: int) -> npt.NDArray[np.uint8] | None:
    """The term of each bond, ``uint8`` (bonds,), or None where there is one term."""
    if terms is None:
        return None
    try:
        given: npt.NDArray[Any] = np.asarray(terms)
    except ValueError as error:  # lists of unequal lengths
        raise InputError("terms cannot be read as numbers: give 0 or 1 for each bond") from error
    if given.shape != (bonds,) or given.dtype.kind not in "iub":
        raise InputError(
            f"terms have shape {given.shape} and type {given.dtype}: give whole numbers of shape ({bonds},), one for "
            "each bond"
        )
    wrong = given[(given != 0) & (given != 1)]
    if wrong.size:
        raise InputError(f"terms hold {wrong[0]}: give 0 or 1 for each bond")
    return given.astype(np.uint8)


def magnitudes_of(couplings: npt.NDArray[Any], terms: npt.NDArray[np.uint8], quantum: float) -> tuple[int, ...] | None:
    """|J| of each term in quanta; 1 of a term without bonds, None where a term has several or one that is 0.

    Couplings are (1 or samples, bonds), terms (bonds,).
    """
    magnitudes = []
    for term in range(MOST_TERMS):
        sizes = np.abs(couplings[:, terms == term])
        largest = float(sizes.max(initial=0))
        if sizes.size and not (largest and largest == sizes.min()):
            return None
        magnitudes.append(round(largest / quantum) if sizes.size else 1)
    return tuple(magnitudes)


def degrees_of_terms(model: Ising) -> tuple[int, int] | None:
    """Bonds of each of two terms at the site that has most of them, where a term's couplings are +J or -J."""
    terms = model.terms
    if terms is None or model.term_magnitudes is None:
        return None
    edges = model.graph.edges
    first, second = (
        int(np.bincount(edges[terms == term].reshape(-1), minlength=model.sites).max()) for term in range(MOST_TERMS)
    )
    return first, second


def adjacency_by_term(graph: Graph, terms: npt.NDArray[np.uint8]) -> tuple[Adjacency, npt.NDArray[np.int64]]:
    """Neighbours with those by bonds of term 0 first, and where in its row each site's others begin."""
    near = adjacency(graph)
    site, others = np.repeat(np.arange(graph.sites), np.diff(near.start)), terms[near.bond]
    order = np.lexsort((others, site))
    first = np.bincount(site[others == 0], minlength=graph.sites)
    return Adjacency(near.start, near.neighbour[order], near.bond[order]), near.start[:-1] + first


def along_axes(lattice: Lattice, couplings: npt.ArrayLike, along: Sequence[float]) -> npt.NDArray[np.float64]:
    """Couplings, one or (samples, bonds), times the factor of each bond's axis; equal factors keep one number one."""
    if len(set(along)) == 1:
        return np.asarray(couplings) * np.float64(along[0])
    return np.asarray(np.asarray(couplings) * np.array(along, np.float64)[lattice.bond_numbers()])


def terms_along(lattice: Lattice, along: Sequence[float]) -> npt.NDArray[np.uint8] | None:
    """The term of each bond where axes have two strengths: 0 along the first axis and those like it; else None."""
    sizes = np.abs(np.array(along, np.float64))
    if len(np.unique(sizes)) != 2:
        return None
    return np.asarray((sizes != sizes[0]).astype(np.uint8)[lattice.bond_numbers()])


def degrees_along(along: Sequence[float]) -> tuple[int, int] | None:
    """Bonds of each term at a site where axes have two strengths, else None."""
    sizes = [abs(factor) for factor in along]
    if len(set(sizes)) != 2:
        return None
    first = 2 * sizes.count(sizes[0])
    return first, 2 * len(sizes) - first
