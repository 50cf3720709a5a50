"""The isotropic Suzuki-Trotter form of the transverse-field Ising model: slices of one model in (imaginary) time.

The weight of a configuration is exp(-k A) with the action

    A = - sum over slices tau of [ sum over bonds of J_xy s_x,tau s_y,tau + sum over sites of s_x,tau s_x,tau+1 ],

periodic in time, the disorder J the same in every slice. It is the weight of a quantum model in the transverse field
Gamma = -ln tanh(k) / (2 k), with the step in time k, the unit of energy that of J; k times the number of slices is the
inverse temperature. Source: M. Suzuki, Prog. Theor. Phys. 56, 1454 (1976).

A is the energy of a classical model of one dimension more, which is what ``trotter`` makes: k is its inverse
temperature. Site (x, tau) of a lattice whose cells have one site, or of a graph, has the number tau + slices x;
``Graph.world_lines`` knows it for all.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from spinsim.errors import InputError
from spinsim.machine.memory import require
from spinsim.model.geometry.lattice import Lattice, lattice_in_time
from spinsim.model.graph import Graph
from spinsim.model.identity import described
from spinsim.model.ising import Ising

_BOND_BYTES, _COUPLING_BYTES = 64, 40  # of a bond: its ends and lists of neighbours; and its coupling in each sample
FEWEST: Final = 2
"""Slices: the trace over two has two bonds between equal sites of both, which a lattice of side 2 has too."""


def check_slices(slices: Any) -> int:
    if not isinstance(slices, int | np.integer) or slices < FEWEST:
        raise InputError(f"slices {slices!r} are not allowed: give an even number, at least {FEWEST}")
    if slices % 2:
        raise InputError(
            f"slices {slices} are odd, so that a ring of them has no two colours for the update: give an even number"
        )
    return int(slices)


def trotter(space: Ising, slices: int, by_term: bool = False, powers: bool = True) -> Ising:
    """The classical model of space and time whose energy is the action A of a quantum model.

    Args:
        space: The couplings J and the fields along z, on a lattice or a graph, with any number of samples. On a lattice
            with open boundaries it loses its lattice, as time is periodic.
        slices: Even, 2 or more.
        by_term: Whether bonds in space, with the fields, and bonds in time are two terms, whose inverse temperatures
            K_s and K_tau may differ: the general form.
        powers: Whether fourth powers of overlaps are to be measured, which must fit 64 bits.

    Raises:
        InputError: for slices that are not even or fewer than 2, a model that has slices already, sizes whose sums of
            fourth powers of overlaps do not fit 64 bits, and those that do not fit in memory.
    """
    slices = check_slices(slices)
    if space.graph.slices > 1:
        raise InputError(f"model {space.name} has {space.graph.slices} slices in time already: give the one in space")
    if powers:
        check_powers(space.sites, slices)
    bonds = (space.bonds + space.sites) * slices
    needed = bonds * (_BOND_BYTES + _COUPLING_BYTES * space.samples)
    require(needed, f"{space.name} in {slices} slices", "give fewer slices, samples or sites")
    lattice = lattice_in_time(space.lattice, slices)
    graph = _of_graph(space.graph, slices) if lattice is None else Graph.of_lattice(lattice, slices)
    couplings = _couplings_on_lattice(space, lattice) if lattice else _couplings_on_graph(space, slices)
    terms = _terms(space, graph, slices) if by_term else None
    model = Ising(graph, couplings, _fields(space, graph), name=f"{space.name}-{slices}-slices", terms=terms)
    model.origin = described(space)
    model.rounded |= space.rounded
    model.rounding_error = max(model.rounding_error, space.rounding_error)
    return model


def first_slice(model: Ising) -> Ising:
    """Returns the model in space from which ``trotter`` has made one of space and time, as a graph: its first slice."""
    first = model.graph.world_lines()[:, 0]
    number = np.full(model.sites, -1)
    number[first] = np.arange(len(first))
    ends = number[model.graph.edges]
    inside = (ends >= 0).all(axis=1)
    return Ising(Graph(len(first), ends[inside]), model.couplings[:, inside], model.fields[:, first])


def check_powers(sites: int, slices: int) -> None:
    """Refuse a space whose sums of fourth powers of overlaps, slices times sites^4, do not fit signed 64 bits."""
    if slices * sites**4 >= 2**63:
        most = int((2**63 / slices) ** 0.25)
        raise InputError(
            f"{sites} sites in {slices} slices are too many for exact fourth powers of overlaps: give {most} at most"
        )


def _of_graph(space: Graph, slices: int) -> Graph:
    """Bonds of space slice by slice, those of a bond together, then bonds in time."""
    time = np.arange(slices)
    in_space = space.edges[:, None].astype(np.int64) * slices + time[:, None]
    first = np.arange(space.sites)[:, None] * slices
    in_time = np.stack([first + time, first + (time + 1) % slices], axis=-1)
    return Graph(space.sites * slices, np.concatenate([in_space.reshape(-1, 2), in_time.reshape(-1, 2)]), None, slices)


def _couplings_on_graph(space: Ising, slices: int) -> npt.NDArray[Any]:
    rows = np.repeat(space.couplings, slices, axis=1)
    return np.concatenate([rows, np.ones((len(rows), space.sites * slices), rows.dtype)], axis=1)


def _couplings_on_lattice(space: Ising, lattice: Lattice) -> npt.NDArray[Any]:
    """Couplings in the order of the lattice's bonds; one number where all are 1."""
    if len(space.couplings) == 1 and space.one_coupling and space.uniform_coupling in (None, 1.0):
        return np.asarray(1.0)
    slices, own = lattice.shape[0], space.lattice
    assert own is not None  # noqa: S101  (else there is no lattice in time)
    in_space, in_time = len(own.cell.bonds), own.cell.sites
    rows = np.zeros((len(space.couplings), own.most_bonds), space.couplings.dtype)
    present = own.present_bonds()
    rows[:, slice(None) if present is None else present] = space.couplings
    found: npt.NDArray[Any] = np.ones((len(rows), own.most_bonds // in_space, slices, in_time + in_space), rows.dtype)
    found[..., in_time:] = rows.reshape(len(rows), -1, 1, in_space)
    found = found.reshape(len(rows), -1)
    present = lattice.present_bonds()
    return found if present is None else np.ascontiguousarray(found[:, present])


def _terms(space: Ising, graph: Graph, slices: int) -> npt.NDArray[np.uint8]:
    """Returns the term of each bond: 0 in space, 1 in time."""
    if graph.lattice is None:
        return np.repeat(np.array([0, 1], np.uint8), [space.bonds * slices, space.sites * slices])
    assert space.lattice is not None  # noqa: S101  (else there is no lattice in time)
    return np.asarray(graph.lattice.bond_numbers() < space.lattice.cell.sites, np.uint8)


def _fields(space: Ising, graph: Graph) -> npt.NDArray[Any]:
    """The field of each site of space in every slice."""
    if space.fields.strides[-1] == 0:
        return np.asarray(space.fields[0, 0])
    found = np.empty((len(space.fields), graph.sites), space.fields.dtype)
    found[:, graph.world_lines()] = space.fields[:, :, None]
    return found
