"""Pieces that panels of several figures have: units, sizes, exact curves, ticks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.ticker import MaxNLocator, NullLocator

from spinsim.analysis import onsager
from spinsim.analysis.figures.paper import GREY
from spinsim.analysis.summary import Estimate
from spinsim.model.ising import Ising
from spinsim.model.lattice import Lattice
from spinsim.result import TemperResult

Array = npt.NDArray[np.float64]

TEMPERATURE: Final = "temperature $T$"
ENERGY: Final = "energy per site $E/N$"
UNKNOWN_ERROR: Final = "error unknown: series too short"


def is_constant(temperature: Array) -> bool:
    """Whether all temperatures are one."""
    return bool(np.all(temperature == temperature[0]))


def is_onsager(model: Ising) -> bool:
    """Whether the model is a periodic square ferromagnet with equal couplings in zero field."""
    lattice = model.lattice
    return (
        lattice is not None
        and lattice.dimension == 2
        and lattice.present_bonds() is None
        and model.magnitude is not None
        and bool(model.couplings.min() > 0)
        and not np.any(model.fields)
    )


def size_text(model: Ising) -> str:
    """Such as "8 x 8 x 8", or "N = 100" where there is no lattice of two dimensions or more."""
    lattice = model.lattice
    return f"${sides(lattice)}$" if lattice and lattice.dimension > 1 else f"$N = {model.sites}$"


def run_text(result: TemperResult) -> str:
    """Such as "8 x 8 x 8, 4 samples of 2 copies"."""
    _, samples, copies, _ = result.energy.shape
    each = f"{copies} cop" + ("ies" if copies > 1 else "y")
    run = f"{samples} samples of {each}" if samples > 1 else each
    return f"{size_text(result.model)}, {run}"


def sides(lattice: Lattice) -> str:
    """Such as "8 x 8 x 8", for a formula."""
    return r" \times ".join(map(str, lattice.shape))


def show_zero(ax: Axes) -> None:
    """Let a positive quantity's axis begin just below 0."""
    high = ax.get_ylim()[1]
    ax.set_ylim(-0.05 * high, 1.02 * high)


def draw_exact(ax: Axes, temperature: Array, exact: Callable[[Array, float], Array], coupling: float) -> None:
    """The infinite lattice over the range of the data, in a panel that has any; at one temperature a level line."""
    if not ax.containers:
        return
    style: dict[str, Any] = {"color": GREY, "linewidth": 0.8, "zorder": 1, "label": r"exact, $L = \infty$"}
    # m falls like (T_c - T)^(1/8): its foot needs points much closer to T_c than an even grid has
    near = coupling * np.geomspace(1e-9, 0.1, 100)
    critical = coupling * onsager.CRITICAL_TEMPERATURE
    low, high = temperature.min(), temperature.max()
    grid = np.unique(np.concatenate([np.linspace(low, high, 500), critical - near, critical + near]))
    grid = grid[(grid >= low) & (grid <= high)]
    x = ax.get_xlim() if is_constant(temperature) else grid
    ax.plot(x, np.broadcast_to(exact(grid, coupling), len(x)), **style)


def draw_estimate(ax: Axes, x: Array, estimate: Estimate, colour: str, label: str, joined: bool = False) -> None:
    """Points with error bars, and open ones without where the error cannot be trusted."""
    value, error = estimate.value, estimate.error
    style: dict[str, Any] = {"fmt": "o", "ms": 2.2, "mec": "none", "elinewidth": 0.6, "capthick": 0.6, "color": colour}
    if joined:
        ax.plot(x, value, color=colour, linewidth=0.6, zorder=1)
    known = estimate.trusted & np.isfinite(error)
    ax.errorbar(x, np.where(known, value, np.nan), np.where(known, error, np.nan), label=label, **style)
    if not known.all():
        ax.plot(x[~known], value[~known], "o", ms=2.6, mfc="white", mec=colour, mew=0.6, label=UNKNOWN_ERROR)


def tick_integers(axis: Axis) -> None:
    """Ticks at whole numbers only, for sites and steps: there is nothing between two."""
    axis.set_major_locator(MaxNLocator(nbins=6, steps=[1, 2, 5, 10], integer=True, min_n_ticks=1))
    axis.set_minor_locator(NullLocator())
