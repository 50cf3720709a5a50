"""The Suzuki-Trotter form of the transverse-field Ising model: slices of one model in (imaginary) time.

First the isotropic form, in which both couplings are one number k.

The weight of a configuration is exp(-k A) with the action

    A = - sum over slices tau of [ sum over bonds of J_xy s_x,tau s_y,tau + sum over sites of s_x,tau s_x,tau+1 ],

periodic in time, the disorder J the same in every slice. It is the weight of a quantum model in the transverse field
Gamma = -ln tanh(k) / (2 k), with the step in time k, the unit of energy that of J; k times the number of slices is the
inverse temperature. Source: M. Suzuki, Prog. Theor. Phys. 56, 1454 (1976).

A is the energy of a classical model of one dimension more, which ``trotter`` makes; k is its inverse temperature. In
the general form space and time have couplings of their own: with the step in time
Delta tau = beta / slices the weight is exp(- K_s E_s - K_tau E_tau), where E_s is the energy in space and
E_tau = - sum of s(tau) s(tau + 1), K_s = Delta tau and K_tau = -ln tanh(Gamma Delta tau) / 2.

Site (x, tau) of a lattice whose cells have one site, or of a graph, has the number tau + slices x;
``Graph.world_lines`` knows it for all.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal, localcontext
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from spinsim.acceptance import HOTTEST
from spinsim.errors import InputError
from spinsim.machine.memory import require
from spinsim.model.graph import Graph
from spinsim.model.ising import Ising, described
from spinsim.model.lattice import Lattice, lattice_in_time

Floats = npt.NDArray[np.float64]

LEAST_GAMMA_STEP: Final = 1e-9  # Gamma Delta tau below which no spin would turn against its neighbours in time
MOST_GAMMA_STEP: Final = 10.0  # above which neighbours in time would not interact
LEAST_STEP: Final = 1e-9  # in time, of the isotropic form, below which neither space nor time would order anything
MOST_STEP: Final = 10.0  # above which no spin would turn against its neighbours in time
_MOST_STEP: Final = 1e60  # in time, of the general form: errors of specific heats hold the fourth power of beta
_DIGITS: Final = 40
_BOND_BYTES, _COUPLING_BYTES = 64, 40  # of a bond: its ends and lists of neighbours; and its coupling in each sample
FEWEST: Final = 2
"""Slices: the trace over two has two bonds between equal sites of both, which a lattice of side 2 has too."""


def check_slices(slices: Any) -> int:
    if not isinstance(slices, int | np.integer) or slices < FEWEST:
        raise InputError(f"slices {slices!r} are not allowed: give an even number, at least {FEWEST}")
    if slices % 2:
        raise InputError(f"slices {slices} are odd, but the update needs two colours in time: give an even number")
    return int(slices)


def trotter(space: Ising, slices: int, by_term: bool = False, powers: bool = True) -> Ising:
    """The classical model of space and time whose energy is the action A of a quantum model.

    Args:
        space: The couplings J and the fields along z, on a lattice or a graph, with any number of samples. On a lattice
            with open boundaries it loses its lattice, as time is periodic.
        slices: Even, 2 or more.
        by_term: True if bonds in space, with the fields, and bonds in time are two terms, whose inverse temperatures
            K_s and K_tau may differ: the general form.
        powers: True if fourth powers of overlaps are to be measured, whose sums, up to slices times sites^4, must fit
            signed 64 bits.

    Raises:
        InputError: for slices that are not even or fewer than 2, a model that has slices already, and sizes that do not
            fit in memory or 64 bits.
    """
    slices = check_slices(slices)
    if space.graph.slices > 1:
        raise InputError(f"model {space.name} has {space.graph.slices} slices in time already: give the one in space")
    if powers and slices * space.sites**4 >= 2**63:
        most = int((2**63 / slices) ** 0.25)
        raise InputError(
            f"{space.sites} sites in {slices} slices are too many for exact fourth powers of overlaps: give {most}"
        )
    bonds = (space.bonds + space.sites) * slices
    needed = bonds * (_BOND_BYTES + _COUPLING_BYTES * space.samples)
    require(needed, f"{space.name} in {slices} slices", "give fewer slices, samples or sites")
    lattice = lattice_in_time(space.lattice, slices)
    graph = _of_graph(space.graph, slices) if lattice is None else Graph.of_lattice(lattice, slices)
    if lattice:
        couplings = _couplings_on_lattice(space, lattice)
    else:
        rows = np.repeat(space.couplings, slices, axis=1)
        couplings = np.concatenate([rows, np.ones((len(rows), space.sites * slices), rows.dtype)], axis=1)
    terms = _terms(space, graph, slices) if by_term else None
    model = Ising(graph, couplings, _fields(space, graph), name=f"{space.name}-{slices}-slices", terms=terms)
    model.origin = described(space)
    model.rounded |= space.rounded
    model.rounding_error = max(model.rounding_error, space.rounding_error)
    return model


def first_slice(model: Ising) -> Ising:
    """Return the model in space from which ``trotter`` made a model of space and time: its first slice, as a graph."""
    first = model.graph.world_lines()[:, 0]
    number = np.full(model.sites, -1)
    number[first] = np.arange(len(first))
    ends = number[model.graph.edges]
    inside = (ends >= 0).all(axis=1)
    return Ising(Graph(len(first), ends[inside]), model.couplings[:, inside], model.fields[:, first])


def _of_graph(space: Graph, slices: int) -> Graph:
    """Bonds in space, each bond in all slices in turn, then bonds in time."""
    time = np.arange(slices)
    in_space = space.edges[:, None].astype(np.int64) * slices + time[:, None]
    first = np.arange(space.sites)[:, None] * slices
    in_time = np.stack([first + time, first + (time + 1) % slices], axis=-1)
    return Graph(space.sites * slices, np.concatenate([in_space.reshape(-1, 2), in_time.reshape(-1, 2)]), None, slices)


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
    shape = len(rows), own.most_bonds // in_space, slices, in_time + in_space
    couplings: npt.NDArray[Any] = np.ones(shape, rows.dtype)
    couplings[..., in_time:] = rows.reshape(len(rows), -1, 1, in_space)
    couplings = couplings.reshape(len(rows), -1)
    present = lattice.present_bonds()
    return couplings if present is None else np.ascontiguousarray(couplings[:, present])


def _terms(space: Ising, graph: Graph, slices: int) -> npt.NDArray[np.uint8]:
    """Return the term of each bond: 0 in space, 1 in time."""
    if graph.lattice is None:
        return np.repeat(np.array([0, 1], np.uint8), [space.bonds * slices, space.sites * slices])
    assert space.lattice is not None  # noqa: S101  (else there is no lattice in time)
    return np.asarray(graph.lattice.bond_numbers() < space.lattice.cell.sites, np.uint8)


def _fields(space: Ising, graph: Graph) -> npt.NDArray[Any]:
    if space.fields.strides[-1] == 0:
        return np.asarray(space.fields[0, 0])
    fields = np.empty((len(space.fields), graph.sites), space.fields.dtype)
    fields[:, graph.world_lines()] = space.fields[:, :, None]
    return fields


@dataclass(frozen=True, eq=False)
class Points:
    """A ladder of points, arrays of shape (points,), from the end that is deepest in the ordered phase."""

    axis: str  # quantity along the ladder: ``k`` in the isotropic form, ``gamma`` or ``beta`` in the general one
    slices: int  # in time
    gamma: Floats  # transverse field, in the unit of the couplings
    beta: Floats  # inverse temperature, in the inverse of that unit
    k: Floats  # step in time, which is the coupling K_s of space, likewise
    k_time: Floats  # coupling K_tau of neighbours in time

    def __len__(self) -> int:
        return len(self.k)

    @property
    def is_general(self) -> bool:
        return self.axis != "k"

    @property
    def values(self) -> Floats:
        values: Floats = getattr(self, self.axis)
        return values

    @property
    def couplings(self) -> Floats:
        """Inverse temperatures of the model of space and time: (points,), or (points, 2) where it has two terms."""
        return np.stack([self.k, self.k_time], axis=1) if self.is_general else self.k

    def check(self, model: Ising) -> None:
        """Refuse steps in time at which a model in slices is too hot to mix, or so cold that numbers overflow."""
        scale = model.energy_scale
        least, most = 1 / (HOTTEST * scale) if scale else 0.0, _MOST_STEP
        for step in self.k[(self.k < least) | (self.k > most)]:
            name = "the step in time, beta / slices," if self.is_general else "k"
            raise InputError(
                f"{name} is {step:.3g}, but couplings of {model.name} take {least:.3g} to {most:.3g}: give others"
            )


def isotropic(k: Floats, slices: int) -> Points:
    with np.errstate(over="ignore"):  # k that is too large is refused as a temperature 1 / k
        return Points("k", slices, np.asarray(-np.log(np.tanh(k)) / (2 * k)), k * slices, k, k)


def general(gamma: Floats, beta: Floats, slices: int) -> Points:
    """The points of the general form, sorted: Gamma rises, or beta falls; one of the two is a single number."""
    if len(gamma) > 1 and len(beta) > 1:
        raise InputError(
            f"{len(gamma)} values of gamma and {len(beta)} of beta are no ladder: give one number for one of them"
        )
    axis = "beta" if len(beta) > 1 else "gamma"
    gamma, beta = np.sort(gamma), np.sort(beta)[::-1]
    for name, values in (("gamma", gamma), ("beta", beta)):
        twice = values[1:][np.diff(values) == 0]
        if twice.size:
            raise InputError(f"{name} {twice[0]:g} stands there twice: give each value once")
    gamma, beta = (np.array(values) for values in np.broadcast_arrays(gamma, beta))
    step = beta / slices
    for field, one in zip(gamma.tolist(), step.tolist(), strict=True):
        check_gamma_step(field, one)
    k_time = np.array([coupling_in_time(field, one) for field, one in zip(gamma.tolist(), step.tolist(), strict=True)])
    return Points(axis, slices, gamma, beta, step, k_time)


def check_steps(k: Floats) -> None:
    """Refuse steps in time of the isotropic form at which spins are frozen in time or hardly feel anything."""
    for value in k.tolist():
        if not LEAST_STEP <= value <= MOST_STEP:
            why = "leaves no spin free in time" if value > MOST_STEP else "leaves spins that do not interact"
            raise InputError(f"k {value:g} {why}: give values from {LEAST_STEP:g} to {MOST_STEP:g}")


def check_gamma_step(gamma: float, step: float) -> None:
    """Refuse a field and a step in time whose coupling in time would be too strong or too weak."""
    product = gamma * step
    if not LEAST_GAMMA_STEP <= product <= MOST_GAMMA_STEP:
        why = "leaves no spin free in time" if product < LEAST_GAMMA_STEP else "leaves slices that do not interact"
        mend = "fewer slices" if product < LEAST_GAMMA_STEP else "more slices"
        raise InputError(
            f"gamma {gamma:g} times the step in time beta / slices = {step:g} is {product:.3g}, which {why}: "
            f"give {mend}, for a product from {LEAST_GAMMA_STEP:g} to {MOST_GAMMA_STEP:g}"
        )


def coupling_in_time(gamma: float, step: float) -> float:
    """K_tau = -ln tanh(Gamma Delta tau) / 2, with the same bits on every machine: logarithms of libraries differ."""
    with localcontext() as context:
        context.prec = _DIGITS
        turned = (-2 * Decimal(gamma) * Decimal(step)).exp()
        return float(((1 + turned) / (1 - turned)).ln() / 2)
