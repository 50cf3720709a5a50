"""Levels of a transfer-matrix run, and the contents of its file."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from spinsim.analysis.runs import Strips
from spinsim.inputs.signatures import public
from spinsim.inputs.texts import count
from spinsim.model.ising import Ising
from spinsim.record import Record
from spinsim.store.contents import ENERGY, Contents, Series
from spinsim.transfer_matrix.layer import read_points
from spinsim.transfer_matrix.spectrum import RESOLUTION

SPECTRUM: Final = "spectrum"  # the group of the levels
MOST_NOISE: Final = 0.01  # of a correlation length that counts
_FIELDS: Final = {"log_eigenvalue": "levels"}  # series whose field has another name
_OF_POINT: Final = ("step", "sample", "k", "k_time")


def transfer_contents(sites: int, bonds: int, sectors: tuple[str, ...], levels: int) -> Contents:
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
    return Contents(scales, {}, tuple(Series(*row, SPECTRUM) for row in rows))


def values_of(contents: Contents) -> list[str]:
    """Returns the names of the series that do not only say where a row belongs."""
    return [series.name for series in contents.series if series.name not in _OF_POINT]


def place_of(step: Any, k: npt.NDArray[np.float64], k_time: npt.NDArray[np.float64]) -> dict[str, Any]:
    """Returns where rows of these numbers belong, by names of series."""
    sample, point = divmod(step, len(k))
    return {"step": step, "sample": sample, "k": k[point], "k_time": k_time[point]}


@public
@dataclass(frozen=True, repr=False)
class TransferResult(Strips):
    """Leading eigenvalues of transfer matrices, of each disorder sample at each temperature.

    NaN stands for missing numbers: levels that did not converge, quantities that need both sectors if there was one,
    and matrix elements if vectors were too long to keep. ``dataset()`` has a step for each sample and point;
    ``dataset().set_index(step=("sample", "k")).unstack("step")`` has axes of samples and couplings instead.

    Attributes:
        model: One layer.
        k: 1 / T, the factor of the couplings of the layer, (points,).
        k_time: Coupling between layers, without unit, (points,).
        sectors: ``even`` and ``odd`` under the flip of all spins, or one of them; ``all`` in a field.
        levels: ln of the eigenvalues, (samples, points, sectors, levels).
        residual: |T x - lambda x| / lambda, of the shape of ``levels``; also of levels that did not converge. NaN if no
            vector was found.
        correlation_length: 1 / ln(lambda_0 / lambda) in layers, of the shape of ``levels``.
        gap: ln of the ratio of the two largest eigenvalues of all sectors, (samples, points).
        free_energy_per_site: -ln(lambda_0) / (N k) in the unit of the couplings, (samples, points).
        energy_per_site: Energy per site in the unit of the couplings, (samples, points).
        products: Number of products with the transfer matrix, (samples, points, sectors).
        sigma: <0| s_i |level>, (samples, points, levels, sites).
        sigma_sigma: <0| s_i s_j |level>, (samples, points, levels, bonds).
        record: All of the run as named arrays, as its file has it.
    """

    job = "transfer"
    series_group = SPECTRUM

    model: Ising
    k: npt.NDArray[np.float64]
    k_time: npt.NDArray[np.float64]
    sectors: tuple[str, ...]
    levels: npt.NDArray[np.float64]
    residual: npt.NDArray[np.float64]
    correlation_length: npt.NDArray[np.float64]
    gap: npt.NDArray[np.float64]
    free_energy_per_site: npt.NDArray[np.float64]
    energy_per_site: npt.NDArray[np.float64]
    products: npt.NDArray[np.int64]
    sigma: npt.NDArray[np.float64]
    sigma_sigma: npt.NDArray[np.float64]
    record: Record = field(default_factory=Record)

    @property
    def log_eigenvalue(self) -> dict[str, npt.NDArray[np.float64]]:
        """``levels`` by sector, the level first: (levels, samples, points), of which axes of length 1 are left out."""
        first = np.moveaxis(self.levels, -1, 0)  # (levels, samples, points, sectors)
        shape = len(first), *(n for n in first.shape[1:3] if n > 1)
        return {name: first[..., i].reshape(shape) for i, name in enumerate(self.sectors)}

    @property
    def there(self) -> npt.NDArray[np.bool_]:
        """Marks of the samples and points that have been computed, (samples, points)."""
        return np.asarray((self.products > 0).all(axis=2))

    @property
    def incomplete(self) -> npt.NDArray[np.bool_]:
        """Marks of those that lack levels that did not converge, (samples, points)."""
        return np.asarray(self.there & np.isnan(self.levels).any(axis=(2, 3)))

    @property
    def in_noise(self) -> npt.NDArray[np.bool_]:
        """Marks of the correlation lengths that rounding and unfinished convergence may have changed by more than 1 %.

        An eigenvalue is off by its residual at most, and by residual^2 / distance from the next one of its sector.
        """
        off = np.nan_to_num(self.residual)
        if self.levels.shape[-1] > 1:
            apart = np.nan_to_num(self.levels[..., 0] - self.levels[..., 1])
            off[..., 0] = np.minimum(off[..., 0], off[..., 0] ** 2 / np.maximum(apart, RESOLUTION))
        with np.errstate(divide="ignore"):
            distance = 1 / self.correlation_length
        return np.asarray(RESOLUTION + off[:, :, :1, :1] + off > MOST_NOISE * distance)

    @property
    def planned_rows(self) -> int:
        """Samples times points that the run is to have."""
        asked = self.config.get("transfer")
        if asked is None:
            return self.model.samples * len(self.config.get("k", self.k))
        points = read_points(asked["temperature"], asked["k"], asked["k_time"], self.model)
        return self.model.samples * len(points.k)

    @property
    def temperature(self) -> npt.NDArray[np.float64]:
        """1 / k in the unit of the couplings, shape (points,)."""
        return 1 / self.k

    @property
    def _run_facts(self) -> dict[str, str]:
        return {
            "couplings": count(len(self.k), "coupling"),
            "sectors": " and ".join(self.sectors),
            "levels": count(self.levels.shape[-1], "level"),
            "rows": f"{int(self.there.sum())} of {count(self.planned_rows, 'row')}",
        }


def read(record: Record, model: Ising) -> TransferResult:
    """Returns the run of a record, as (samples, points, ...), with NaN and 0 for rows that are not there yet."""
    group = record.group(SPECTRUM)
    points = max(1, int((group["sample"] == 0).sum()))
    shape, table = (model.samples, points), {}
    sectors = tuple(name.decode() for name in group["sector"].tolist())
    contents = transfer_contents(model.sites, model.bonds, sectors, len(group["level"]))
    for name in values_of(contents):
        rows = np.asarray(group[name])
        whole = np.full((prod(shape), *rows.shape[1:]), np.nan if rows.dtype.kind == "f" else 0, rows.dtype)
        whole[: len(rows)] = rows
        table[_FIELDS.get(name, name)] = whole.reshape(*shape, *rows.shape[1:])
    table.setdefault("sigma_sigma", np.empty((*shape, len(contents.scales["level"]), 0)))
    ladder = {name: np.full(points, np.nan) for name in ("k", "k_time")}
    for name, values in ladder.items():
        values[: len(group[name])] = group[name][:points]
    return TransferResult(model=model, record=record, sectors=sectors, **ladder, **table)
