"""What the file of a transfer-matrix run holds, and what it must hold to be read."""

from __future__ import annotations

from typing import Final

import h5py
import numpy as np

from spinsim.store.forms import DamageError, Form, axis_of, group_of, length_of
from spinsim.store.layout import ENERGY, Layout, Series, Sizes

SPECTRUM: Final = "spectrum"
"""The group of the levels."""
SECTORS: Final = (b"even", b"odd", b"all")


def transfer_layout(sites: int, bonds: int, sectors: tuple[str, ...], levels: int) -> Layout:
    """A row for each sample and temperature, all temperatures of a sample in succession."""
    state = "sector", "level"
    rows = [
        ("step", (), np.int64, "sample * temperatures + temperature", "1"),
        ("sample", (), np.int64, "disorder sample", "1"),
        ("k", (), np.float64, "1 / T, which multiplies the couplings of the layer", "k_B / coupling unit"),
        ("k_time", (), np.float64, "coupling between layers", "1"),
        ("log_eigenvalue", state, np.float64, "ln of the eigenvalue of the transfer matrix", "1"),
        ("residual", state, np.float64, "|T x - lambda x| / lambda", "1"),
        ("correlation_length", state, np.float64, "1 / ln(lambda_0 / lambda), in layers", "1"),
        ("gap", (), np.float64, "ln of the ratio of the two largest eigenvalues", "1"),
        ("free_energy_per_site", (), np.float64, "-ln(lambda_0) / (N k)", ENERGY),
        ("energy_per_site", (), np.float64, "energy per site, of bonds in the layer and to the next", ENERGY),
        ("products", ("sector",), np.int64, "products with the transfer matrix", "1"),
        ("sigma", ("level", "site"), np.float64, "<0| s_i |level>; level of the odd sector where there are two", "1"),
    ]
    if bonds:
        rows.append(("sigma_sigma", ("level", "bond"), np.float64, "<0| s_i s_j |level> of the first sector", "1"))
    scales = {
        "sector": np.array([name.encode() for name in sectors]),
        "level": np.arange(levels),
        "site": np.arange(sites),
        "bond": np.arange(bonds),
    }
    return Layout(scales, {}, tuple(Series(*row, SPECTRUM) for row in rows))


def _layout_of(file: h5py.File, sizes: Sizes) -> tuple[Layout, int]:
    """Returns the layout that a file should have, by its own axes; there are no replicas."""
    group = group_of(file, SPECTRUM)
    sectors, levels = axis_of(group, "sector", None).tolist(), length_of(group, "level")
    if not sectors or not set(sectors) <= set(SECTORS) or len(set(sectors)) < len(sectors):
        raise DamageError(f"its sectors {sectors} are none of even, odd and all")
    return transfer_layout(sizes.sites, sizes.bonds, tuple(name.decode() for name in sectors), levels), 0


def check_samples(file: h5py.File, rows: int) -> int:
    """Refuse rows whose samples do not come in turn; returns how many points a sample has."""
    samples, there = file[SPECTRUM]["sample"][:rows], len(file["model/sample"])
    points = int((samples == 0).sum())
    if not np.array_equal(samples, np.arange(rows) // max(1, points)) or rows > points * there:
        raise DamageError("its rows belong to other samples than they should")
    return points


def _check_numbers(file: h5py.File, rows: int) -> None:
    check_samples(file, rows)


_TEXT_OR_NOTHING: Final = (str, type(None))
FORM = Form(
    planned=dict.fromkeys(("temperature", "k", "k_time"), _TEXT_OR_NOTHING),
    groups=(SPECTRUM,),
    layout=_layout_of,
    check_numbers=_check_numbers,
)
