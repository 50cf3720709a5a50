"""One layer of a transfer matrix: its states, their weights, its bonds to the next layer; and the couplings of a run.

T = D B D between the 2^N states of neighbouring layers, with D = exp(k/2 (sum J s s + sum h s)) on the diagonal and
B = product over sites of [[e^k', e^-k'], [e^-k', e^k']]. Bit i of a state is the spin of site i, 1 is up. A constant,
``log_scale``, is taken out of T so that all its elements lie in (0, 1].

Without fields T commutes with the flip of all spins. In a sector of that symmetry a vector has an amplitude for each
state whose last spin is down; the state with all spins flipped has the same amplitude, or minus that. In a sector the
flip F of all spins adds a factor to the factors of the free sites: B = (1 +- e^-2k' F) x product over the rest.
"""

from __future__ import annotations

from copy import copy
from math import inf, log, sqrt
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spinsim.errors import InputError
from spinsim.inputs.numbers import read_grid
from spinsim.model.ising import Ising

SECTORS: Final = {"even": 1, "odd": -1, "all": 0}
MOST_SITES: Final = 40
LARGEST_EXPONENT: Final = 600.0  # exp of twice as much still has a reciprocal in float64
SMALLEST_K: Final = 1e-300  # its reciprocal is a temperature
SMALLEST_K_TIME: Final = 1e-8  # below it 1 - e^(-2 k_time), which all levels but one have as a factor, loses its digits
_Array = npt.NDArray[np.float64]
CRITICAL: Final = {1: log(1 + sqrt(2)) / 2, 2: 0.22165463}
"""Critical k of the ferromagnet, J = 1, that layers of one and two dimensions make; the latter is from A. Ferrenberg,
J. Xu, D. Landau, Phys. Rev. E 97, 043301 (2018)."""


def sectors_of(model: Ising, sector: str = "both") -> tuple[str, ...]:
    """The sectors that ``sector`` (``both``, ``even`` or ``odd``) stands for; with a field there is one, ``all``."""
    if np.any(model.fields):
        if sector != "both":
            raise InputError(f"sector {sector!r} does not exist in a field, which mixes even and odd: leave it out")
        return ("all",)
    return ("even", "odd") if sector == "both" else (sector,)


def check_couplings(model: Ising, k: float, k_time: float) -> None:
    """Refuse couplings between spins that overflow, vanish by rounding or that a transfer matrix cannot have."""
    largest = LARGEST_EXPONENT / model.sites
    strength = max((_strength(model, k) for k in range(model.samples)), default=0.0) * model.quantum
    for name, value, low, high in (
        ("k", k, SMALLEST_K, LARGEST_EXPONENT / strength if strength else LARGEST_EXPONENT),
        ("k_time", k_time, SMALLEST_K_TIME, largest),
    ):
        if not low <= value <= high:
            rule = "is not positive" if not value > 0 else "overflows" if value > high else "is lost to rounding"
            raise InputError(f"{name} {value:.6g} {rule}: give a number from {low:g} to {high:.4g} for this layer")


def _strength(model: Ising, sample: int) -> float:
    """Sum of all |J| and |h| in quanta, which no energy exceeds."""
    return float(np.abs(model.integer_couplings(sample)).sum() + np.abs(model.integer_fields(sample)).sum())


class Layer:
    """The bonds and fields of one disorder sample, in one sector: ``even``, ``odd``, or ``all`` without that symmetry.

    Couplings inside the layer are k = J / T, couplings between layers ``k_time``.

    Attributes:
        sites: Spins of a layer, of which ``bits`` are free in this sector; vectors have 2^bits amplitudes,
            ``dimension``.
        sign: +1, -1, or 0 for ``all``.
        ratio: e^(-2 k_time).
        log_scale: Logarithm of the number by which T is divided.
        pairs: k/2 times the coupling of sites i and j, symmetric, (sites, sites).
        fields: k/2 times the field on each site.
        offset: k/2 times the largest energy that the couplings allow.

    Raises:
        InputError: for an unknown sector, a sample that the model has not, and too many sites.
    """

    def __init__(self, model: Ising, sample: int, k: float, k_time: float, sector: str) -> None:
        if sector not in SECTORS:
            raise InputError(f"sector {sector!r} is unknown: choose one of {', '.join(SECTORS)}")
        if not 0 <= sample < model.samples:
            last = model.samples - 1
            raise InputError(f"sample {sample} of {model.name} does not exist: give a number from 0 to {last}")
        self.sites, self.sector, self.sign = model.sites, sector, SECTORS[sector]
        if self.sites > MOST_SITES:
            raise InputError(f"{self.sites} sites make 2^{self.sites} states: choose a layer of up to {MOST_SITES}")
        self.bits = self.sites - (self.sign != 0)
        self.dimension = 1 << self.bits
        self.ratio = float(np.exp(-2 * k_time))
        couplings = np.zeros((self.sites, self.sites))
        edges, half = model.graph.edges, 0.5 * k * model.quantum
        np.add.at(couplings, (edges[:, 0], edges[:, 1]), model.integer_couplings(sample).astype(np.float64))
        couplings += couplings.T
        self._exact = couplings, model.integer_fields(sample).astype(np.float64), _strength(model, sample), half
        self.pairs, self.fields = half * couplings, half * self._exact[1]
        self.offset = half * self._exact[2]
        self.log_scale = 2 * self.offset + self.sites * k_time

    def free(self, pairs: _Array, fields: _Array) -> tuple[_Array, _Array]:
        """Couplings and fields of the free spins, with the fields from a last spin that is down."""
        if not self.sign:
            return pairs, fields
        return pairs[:-1, :-1], fields[:-1] - pairs[:-1, -1]

    def part(self, index: int, top: int) -> Layer:
        """Layer of all other free spins, for the states whose highest ``top`` bits are ``index``.

        The diagonal is the same as in this layer. The part keeps the factors of its own bits, but not the flip of all
        spins.
        """
        part, left = copy(self), self.bits - top
        couplings, fields, strength, half = self._exact
        couplings, fields = self.free(couplings, fields)
        spins = 2.0 * (index >> np.arange(top) & 1) - 1
        constant = fields[left:] @ spins + spins @ couplings[left:, left:] @ spins / 2
        inside, local = couplings[:left, :left], fields[:left] + couplings[:left, left:] @ spins
        part._exact = inside, local, strength - float(constant), half
        part.sites = part.bits = left
        part.dimension, part.sign = 1 << left, 0
        part.pairs, part.fields = half * inside, half * local
        part.offset = half * part._exact[2]
        return part

    def diagonal(self, xp: Any) -> Any:
        """D as a vector of NumPy or CuPy, its largest possible element 1; energies are exact before the exponential."""
        couplings, fields, strength, half = self._exact
        energy = quadratic(xp, *self.free(couplings, fields))
        energy -= strength
        energy *= half
        return xp.exp(energy, out=energy)


def quadratic(xp: Any, pairs: _Array, fields: _Array) -> Any:
    """Sum of pairs[i, j] s_i s_j over i < j and of fields[i] s_i for all 2^m states."""
    values = xp.zeros(1 << len(fields))
    for i, field in enumerate(fields):
        local = linear(xp, pairs[i, :i], field)
        values[1 << i : 2 << i] = values[: 1 << i] + local
        values[: 1 << i] -= local
    return values


def linear(xp: Any, weights: _Array, constant: float = 0.0) -> Any:
    """``constant`` and the sum of weights[i] s_i for all states."""
    values = xp.empty(1 << len(weights))
    values[:1] = constant
    for i, weight in enumerate(weights):
        values[1 << i : 2 << i] = values[: 1 << i] + float(weight)
        values[: 1 << i] -= float(weight)
    return values


class Points(NamedTuple):
    """Couplings of every point."""

    k: npt.NDArray[np.float64]  # 1 / T, which multiplies the couplings of the layer, shape (points,)
    k_time: npt.NDArray[np.float64]  # coupling between layers, a number without unit, likewise


def read_points(temperature: str | None, k: str | None, k_time: str | None, model: Ising | None) -> Points:
    """Couplings of every point from texts as ``grids.read_grid`` takes them; the model is None where not known yet.

    T is in the unit of the couplings, k = 1 / T. Where neither is given, k is the critical value of the ferromagnet on
    the layer's lattice with the layer's |J|.
    """
    if temperature is not None and k is not None:
        raise InputError(f"temperature {temperature!r} and k {k!r} say the same thing, k = 1 / T: leave one out")
    if temperature is not None:
        with np.errstate(over="ignore"):  # what overflows becomes infinite, which ``make_points`` refuses
            inside = np.asarray(1 / read_grid("temperature", temperature))
    elif k is not None:
        inside = read_grid("k", k)
    else:
        dimension = model.lattice.dimension if model and model.lattice else 2
        inside = np.array([CRITICAL.get(dimension, CRITICAL[2]) / (model.coupling_unit if model else 1.0)])
    return make_points(inside, None if k_time is None else read_grid("k_time", k_time), model)


def make_points(k: npt.ArrayLike, k_time: npt.ArrayLike | None, model: Ising | None = None) -> Points:
    """Points from numbers above 0; ``k_time`` is by default k times the |J| of all bonds, 1 where they share none."""
    inside = positive("k", k)
    scale = model.coupling_unit if model else 1.0
    between = scale * inside if k_time is None else positive("k_time", k_time)
    if between.size not in (1, inside.size):
        raise InputError(f"{between.size} of k_time do not fit {inside.size} of k or temperature: give one or as many")
    return Points(inside, np.broadcast_to(between, inside.shape).copy())


def positive(name: str, values: npt.ArrayLike) -> npt.NDArray[np.float64]:
    try:
        numbers = np.atleast_1d(np.asarray(values, np.float64))
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} {values!r} cannot be read as numbers: give floats") from error
    if numbers.ndim != 1 or not numbers.size:
        raise InputError(f"{name} has shape {numbers.shape}: give one number, or a list of them")
    bad = numbers[~((numbers > 0) & (numbers < inf))]
    if bad.size:
        raise InputError(f"{name} {bad[0]} does not make a transfer matrix: give finite numbers above 0")
    return numbers
