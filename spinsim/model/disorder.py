"""Models of quenched disorder on a lattice: sample k does not depend on the other samples."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, sqrt
from operator import index
from typing import Final

import numpy as np
import numpy.typing as npt

from spinsim import rng
from spinsim.errors import InputError, WrongTypeError
from spinsim.inputs.arguments import judges, public
from spinsim.inputs.texts import as_seed, beyond_ising, shown
from spinsim.model.couplings import GAUSSIAN_GRID, Drawn, dilute, gaussian_rows, relative_change, round_to, uniforms
from spinsim.model.graph import Graph, along_axes, terms_along
from spinsim.model.ising import Ising, changed
from spinsim.model.lattice import Lattice

RANDOM_KINDS: Final = ("pm-j", "gaussian")
KINDS: Final = ("ferromagnet", "antiferromagnet", *RANDOM_KINDS)


@public
@judges("lattice", "couplings")
def EdwardsAnderson(  # noqa: N802  (it reads as the model's name)
    lattice: Lattice,
    samples: int = 1,
    seed: int | None = 0,
    couplings: str = "pm-j",
    bond_fraction: float = 0.5,
    field: npt.ArrayLike = 0.0,
    dilution: float = 0.0,
    random_field: float = 0.0,
    couplings_along: Sequence[float] | None = None,
) -> Ising:
    """The Edwards-Anderson spin glass (J. Phys. F 5, 965 (1975)) on a lattice.

    Args:
        lattice: Lattice of the bonds.
        samples: Number of disorder samples.
        seed: Disorder seed; sample k depends on the seed and k alone. None draws a fresh one, which
            ``model.origin`` and ``result.config`` hold.
        couplings: ``pm-j`` or ``gaussian``.
        bond_fraction: Share of positive bonds of ``pm-j``; with 1 it is a ferromagnet.
        field: Uniform or site-wise field h. With Gaussian couplings or a random field it is rounded
            to their grid, so that a sample does not depend on the other samples.
        dilution: Probability that a bond is missing. It stays in the graph with the coupling 0.
        random_field: Standard deviation of a Gaussian field at each site, which is added to
            ``field``.
        couplings_along: Factor of the couplings along each axis, such as (1, 1, 0.5), for lattices
            whose bonds lie along axes.

    Raises:
        InputError: for an unknown kind, a fraction outside [0, 1], a dilution outside [0, 1), a
            negative random field, fewer than one sample and factors that do not fit the lattice.

    Returns:
        The model of all samples.

    Examples:
        >>> model = ss.EdwardsAnderson(ss.cubic(4), samples=16, seed=7)
        >>> model.couplings.shape  # (samples, bonds), +1 and -1
        (16, 192)
    """
    if not isinstance(lattice, Lattice):
        raise WrongTypeError(f"{shown(lattice)} is no lattice: give one such as ss.cubic(8)")
    if not isinstance(couplings, str):
        raise WrongTypeError("couplings are not pm-j or gaussian: give your own to ss.Ising(lattice, couplings)")
    if couplings not in RANDOM_KINDS:
        raise InputError(
            f"couplings {couplings!r} are not a spin glass: {beyond_ising(couplings) or 'choose pm-j or gaussian'}"
        )
    return lattice_model(
        lattice, couplings, samples, as_seed(seed), bond_fraction, field, dilution, random_field, couplings_along
    )


def lattice_model(
    lattice: Lattice,
    couplings: str,
    samples: int = 1,
    seed: int = 0,
    bond_fraction: float = 0.5,
    field: npt.ArrayLike = 0.0,
    dilution: float = 0.0,
    random_field: float = 0.0,
    couplings_along: Sequence[float] | None = None,
    antiperiodic_axis: int | None = None,
    perturbation: float = 0.0,
    perturbation_seed: int = 0,
) -> Ising:
    """Model on a lattice by the names of the command line: ferromagnet, antiferromagnet, pm-j or gaussian."""
    _check_disorder(couplings, samples, seed, bond_fraction, dilution, random_field)
    name, along = f"{lattice.label}-{couplings}", couplings_along
    rows: npt.ArrayLike | Drawn = 1.0 if couplings == "ferromagnet" else -1.0
    if couplings == "pm-j":
        rows = Drawn(float(bond_fraction), seed, samples)
        if dilution or along is not None:
            rows = rows.rows(lattice.bonds)
    elif couplings == "gaussian":
        rows = gaussian_rows(samples, Graph.of_lattice(lattice).bonds, seed, rng.Stream.COUPLINGS)
    if along is not None:
        lattice.cell.check_along(along)
        name += f"-along-{'x'.join(f'{factor:g}' for factor in along)}"
    if dilution:
        rows = np.asarray(rows)
        if rows.ndim == 0:
            rows = np.full((samples, lattice.bonds), rows, np.int8)
        dilute(rows, seed, dilution)
        name += f"-dilution-{dilution:g}"
    given = on_grid = np.asarray(field, np.float64)
    if couplings == "gaussian" or random_field:
        on_grid = round_to(given, GAUSSIAN_GRID)
    fields = on_grid
    if random_field:
        fields = on_grid + gaussian_rows(samples, lattice.sites, seed, rng.Stream.RANDOM_FIELD, random_field)
        name += f"-random-field-{random_field:g}"
    change, terms = relative_change(given, on_grid), None
    if along is not None:
        rows = exact = along_axes(lattice, np.asarray(rows), along)
        if couplings == "gaussian" or random_field:
            rows = round_to(exact, GAUSSIAN_GRID)
            change = max(change, relative_change(exact, rows))
        terms = None if couplings == "gaussian" or dilution else terms_along(lattice, along)
    model = Ising(lattice, rows, fields, name=name, terms=terms)
    model.rounding_error = max(model.rounding_error, change)
    model.rounded |= model.rounding_error > 0
    model.origin = {"couplings": couplings, "disorder_seed": index(seed), "dilution": float(dilution)}
    model.origin |= {"random_field": float(random_field)}
    model.origin |= {"field": float(given)} if given.ndim == 0 else {}
    model.origin |= {} if along is None else {"couplings_along": ",".join(map(str, along))}
    model.origin |= {"bond_fraction": float(bond_fraction)} if couplings == "pm-j" else {}
    model = perturbed(model, perturbation, perturbation_seed) if perturbation else model
    return model if antiperiodic_axis is None else antiperiodic(model, antiperiodic_axis)


@public
def antiperiodic(model: Ising, axis: int = 0) -> Ising:
    """A model with antiperiodic boundaries along an axis: couplings across that boundary change their sign.

    Args:
        model: Model on a periodic lattice.
        axis: Axis of the boundary, 0 for x.

    Returns:
        The model with the same disorder. ``ss.interface`` compares free energies of both.

    Raises:
        InputError: for a model without a periodic lattice, and an axis that it lacks or of a single cell.
    """
    lattice = model.lattice
    if lattice is None or not lattice.periodic or not 0 <= axis < lattice.dimension or lattice.shape[axis] < 2:
        raise InputError(
            f"{model.name} has no periodic boundary along axis {axis} of two cells or more: give another antiperiodic "
            "axis, from 0, or a periodic lattice"
        )
    made = changed(model, model.couplings * np.where(lattice.closing_bonds(axis), np.int8(-1), np.int8(1)))
    made.name, made.origin = f"{model.name}-antiperiodic-{axis}", model.origin | {"antiperiodic": axis}
    return made


@public
def perturbed(model: Ising, strength: float, seed: int = 0) -> Ising:
    """A model whose couplings are changed at random a little, for bond chaos.

    Couplings of one size change their sign with probability ``strength`` d. Gaussian ones become
    (J + d x) / sqrt(1 + d^2) with normal x, which keeps their distribution. Missing bonds stay missing.

    Args:
        model: Model with couplings +J and -J, or Gaussian ones of ``EdwardsAnderson``.
        strength: d, from 0; for couplings of one size at most 1.
        seed: Seed of the changes; those of sample k depend on it and k alone.

    Returns:
        The model with the changed couplings.

    Raises:
        InputError: for other couplings, and a strength out of range.

    Source: H. G. Katzgraber, F. Krzakala, Phys. Rev. Lett. 98, 017201 (2007).
    """
    rows = np.array(np.broadcast_to(model.couplings, (model.samples, model.bonds)))
    is_gaussian = model.origin.get("couplings") == "gaussian" and "couplings_along" not in model.origin
    has_one_size = len(np.unique(np.abs(rows[rows != 0]))) == 1
    if not 0 <= strength < inf or not (is_gaussian or (has_one_size and strength <= 1)):
        raise InputError(
            f"couplings of {model.name} cannot be perturbed by {strength}: give a number from 0 for Gaussian "
            "couplings, from 0 to 1 for couplings of one size"
        )
    if is_gaussian:
        normal = gaussian_rows(model.samples, model.bonds, seed, rng.Stream.PERTURBATION)
        rows = round_to(np.where(rows, (rows + strength * normal) / sqrt(1 + strength**2), 0), GAUSSIAN_GRID)
    else:
        for sample, row in enumerate(rows):
            for where, uniform in uniforms(seed, rng.Stream.PERTURBATION, sample, row.size):
                row[where][(uniform >> np.uint64(11)) * 2.0**-53 < strength] *= -1
    made = changed(model, rows)
    made.name = f"{model.name}-perturbed-{strength:g}"
    made.origin = model.origin | {"perturbation": float(strength), "perturbation_seed": index(seed)}
    return made


def _check_disorder(
    couplings: str, samples: int, seed: int, bond_fraction: float, dilution: float, random_field: float
) -> None:
    if couplings not in KINDS:
        raise InputError(f"couplings {couplings!r} are unknown: choose one of {', '.join(KINDS)}")
    is_random = couplings in RANDOM_KINDS
    if is_random and not 0 <= bond_fraction <= 1:
        raise InputError(f"bond fraction {bond_fraction} is not a probability: give a number from 0 to 1")
    if not (is_random or samples == 1 or dilution or random_field):
        raise InputError(
            f"{samples} samples of a {couplings} are all equal: leave samples out, give a dilution or a random field, "
            "or choose pm-j or gaussian couplings"
        )
    if not 1 <= samples <= 2**rng.SAMPLE_BITS:
        raise InputError(f"{samples} samples cannot be simulated: give 1 to 2^{rng.SAMPLE_BITS}")
    rng.split_seed(seed)
    if not 0 <= dilution < 1:
        raise InputError(f"dilution {dilution} leaves no model: give a probability from 0 to below 1")
    if not 0 <= random_field < inf:
        raise InputError(f"random field {random_field} is no standard deviation: give a finite number, at least 0")
